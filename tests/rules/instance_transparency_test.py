"""Tests of instance-based transparency, end to end."""

import math

from absl.testing import parameterized
import numpy as np

from privjax.rules import instance_transparency
from privjax.rules import rule_set

_NAMES = ('a', 'b', 'c', 'd', 'e', 'f')


def _rows(seed=0, num_rows=400):
  generator = np.random.Generator(np.random.Philox(seed))
  x = generator.integers(0, 2, (num_rows, 6)).astype(float)
  score = x @ np.array([1.5, 1.0, -1.0, 0.8, 0.5, -0.4]) - 1.1
  return x, np.where(score > 0, 1, -1)


def _explain(x, labels, **kwargs):
  return instance_transparency.explain(
    x, labels, names=_NAMES, **{'seed': 0, **kwargs}
  )


class ExplainTest(parameterized.TestCase):
  @parameterized.product(weighting=('uniform', 'paper'), coverage=(0, 1, 2))
  def test_agrees_and_covers(self, weighting, coverage):
    x, labels = _rows()
    fit = _explain(x, labels, weighting=weighting, coverage=coverage)
    predicted = rule_set.predict(fit.rules, x)
    self.assertEqual(fit.agreement, np.count_nonzero(predicted == labels))
    self.assertGreater(fit.agreement, 0.95 * len(x))
    self.assertEqual(fit.status, 'optimal')
    self.assertLess(fit.rules.num_rules, fit.num_candidates)
    covered = rule_set.matches(fit.rules, x).sum(axis=1)
    # Ten trees cover every row more than twice before beta and the choice.
    self.assertGreaterEqual(covered.min(), coverage)
    self.assertEqual(fit.num_cells, len(np.unique(x, axis=0)))

  @parameterized.parameters('uniform', 'paper')
  def test_weights_and_probabilities_are_counts(self, weighting):
    x, labels = _rows()
    fit = _explain(x, labels, weighting=weighting)
    applies = rule_set.matches(fit.rules, x)
    self.assertFalse(fit.rules.ordered)
    for rule in range(fit.rules.num_rules):
      here = labels[applies[:, rule]]
      consequent = fit.rules.consequent[rule]
      agreeing = np.count_nonzero(here == consequent)
      self.assertGreater(2 * agreeing, len(here))
      self.assertEqual(
        fit.rules.weight[rule], 1 if weighting == 'uniform' else agreeing
      )
      self.assertEqual(fit.rules.probability[rule], np.mean(here == 1))
    majority = 1 if np.mean(labels) > 0 else -1
    self.assertEqual(fit.rules.default, majority)
    self.assertEqual(fit.rules.default_probability, np.mean(labels == 1))

  def test_deterministic_by_the_public_seed(self):
    x, labels = _rows()
    first, again, other = (_explain(x, labels, seed=s) for s in (1, 1, 2))
    for one, two in zip(
      (first.rules.lower, first.rules.upper, first.rules.consequent),
      (again.rules.lower, again.rules.upper, again.rules.consequent),
    ):
      np.testing.assert_array_equal(one, two)
    self.assertFalse(np.array_equal(first.rules.lower, other.rules.lower))

  def test_the_program_is_no_worse_than_the_greedy_cover(self):
    x, labels = _rows()
    best = _explain(x, labels)
    greedy = _explain(x, labels, node_limit=0)
    self.assertEqual(greedy.status, 'greedy')
    value = lambda fit: fit.agreement - fit.rules.num_rules / 2
    self.assertGreater(value(best), value(greedy))

  def test_deeper_trees_have_longer_rules(self):
    x, labels = _rows()
    lengths = [
      (_explain(x, labels, max_depth=d).rules.lower > -np.inf).sum(axis=1).max()
      for d in (1, 4)
    ]
    self.assertLessEqual(lengths[0], 1)
    self.assertGreater(lengths[1], lengths[0])


class DegenerateTest(parameterized.TestCase):
  @parameterized.parameters(-1, 1)
  def test_constant_labels(self, label):
    x, _ = _rows()
    fit = _explain(x, np.full(len(x), label))
    self.assertEqual((fit.rules.num_rules, fit.status), (0, 'empty'))
    np.testing.assert_array_equal(rule_set.predict(fit.rules, x), label)
    self.assertEqual(fit.agreement, len(x))
    self.assertEqual(fit.num_candidates, 0)

  def test_one_row(self):
    fit = _explain(np.zeros((1, 6)), np.array([1]))
    self.assertEqual(fit.rules.num_rules, 0)
    self.assertEqual(fit.rules.default, 1)
    self.assertEqual(fit.num_cells, 1)

  def test_a_single_row_of_both_labels(self):
    x = np.ones((10, 6))
    fit = _explain(x, np.repeat([1, -1], [7, 3]))
    self.assertEqual((fit.rules.num_rules, fit.status), (0, 'empty'))
    self.assertEqual(fit.agreement, 7)
    self.assertEqual(fit.num_cells, 2)

  def test_a_tied_majority_is_the_lower_class(self):
    fit = _explain(np.ones((4, 6)), np.array([1, 1, -1, -1]))
    self.assertEqual(fit.rules.default, -1)
    self.assertEqual(fit.rules.default_probability, 0.5)

  def test_duplicate_columns(self):
    x, labels = _rows()
    x = np.repeat(x[:, :3], 2, axis=1)
    fit = _explain(x, labels)
    applies = rule_set.matches(fit.rules, x)
    extensions = {column.tobytes() for column in applies.T}
    self.assertLen(extensions, fit.rules.num_rules)


class BadInputTest(parameterized.TestCase):
  @parameterized.named_parameters(
    ('labels', {'labels': np.zeros(400)}, 'labels'),
    ('short', {'labels': np.ones(399)}, 'labels'),
    ('nan', {'x': np.full((400, 6), math.nan)}, 'x'),
    ('wide', {'x': np.zeros((400, 5))}, 'x'),
    ('seed', {'seed': -1}, 'seed'),
    ('seed_float', {'seed': 1.0}, 'seed'),
    ('trees', {'num_trees': 0}, 'num_trees'),
    ('depth', {'max_depth': 0}, 'max_depth'),
    ('coverage', {'coverage': -1}, 'coverage'),
    ('weighting', {'weighting': 'none'}, 'weighting'),
    ('nodes', {'node_limit': -1}, 'node_limit'),
  )
  def test_names_the_argument(self, change, name):
    x, labels = _rows()
    arguments = {'x': x, 'labels': labels, **change}
    with self.assertRaisesRegex(ValueError, name):
      _explain(**arguments)

  def test_no_rows(self):
    with self.assertRaisesRegex(ValueError, 'must hold a row'):
      _explain(np.zeros((0, 6)), np.zeros(0))
