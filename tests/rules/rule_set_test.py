from absl.testing import parameterized
import hypothesis
from hypothesis import strategies as st
import jax
import numpy as np

from privjax.rules import rule_set
from tests.rules import rule_set_cases as cases

_INF = np.inf


def _random_rules(seed, ordered):
  """Returns rules over 3 columns with thresholds on a small grid, and rows."""
  rng = np.random.default_rng(seed)
  num_rules = int(rng.integers(0, 6))
  lower = rng.integers(-1, 3, (num_rules, 3)).astype(float)
  upper = lower + rng.integers(1, 4, (num_rules, 3))
  lower[rng.random(lower.shape) < 0.5] = -_INF
  upper[rng.random(upper.shape) < 0.5] = _INF
  probability = rng.integers(0, 5, num_rules) / 4
  default = int(rng.choice([-1, 1]))
  consequent = np.where(probability > 0.5, 1, -1)
  consequent[probability == 0.5] = default
  rules = rule_set.make(
    lower,
    upper,
    consequent,
    names=('a', 'b', 'c'),
    default=default,
    ordered=ordered,
    probability=probability,
    weight=rng.integers(0, 3, num_rules),
  )
  return rules, rng.integers(-2, 5, (40, 3))


class MatchTest(parameterized.TestCase):
  @hypothesis.given(st.integers(0, 10**6), st.booleans())
  def test_equals_the_definition(self, seed, ordered):
    rules, rows = _random_rules(seed, ordered)
    for i, row in enumerate(rows):
      expected = [
        all(low < v <= high for low, v, high in zip(lows, row, highs))
        for lows, highs in zip(rules.lower, rules.upper)
      ]
      self.assertEqual(rule_set.matches(rules, rows)[i].tolist(), expected)
      first = expected.index(True) if any(expected) else rules.num_rules
      self.assertEqual(rule_set.first_match(rules, rows)[i], first)

  @hypothesis.given(st.integers(0, 10**6), st.booleans())
  def test_predict_is_the_argmax_of_predict_proba(self, seed, ordered):
    rules, rows = _random_rules(seed, ordered)
    proba = rule_set.predict_proba(rules, rows)
    predicted = rule_set.predict(rules, rows)
    np.testing.assert_allclose(proba.sum(axis=1), 1)
    tied = proba[:, 0] == proba[:, 1]
    argmax = np.array([-1, 1])[np.argmax(proba, axis=1)]
    np.testing.assert_array_equal(predicted[~tied], argmax[~tied])
    self.assertTrue((predicted[tied] == rules.default).all())

  @hypothesis.given(st.integers(0, 10**6))
  def test_a_list_partitions_the_rows_and_decides_by_consequent(self, seed):
    rules, rows = _random_rules(seed, True)
    self.assertEqual(rule_set.coverage(rules, rows).sum(), len(rows))
    classes = np.append(rules.consequent, rules.default)
    np.testing.assert_array_equal(
      rule_set.predict(rules, rows), classes[rule_set.first_match(rules, rows)]
    )

  def test_votes_and_ties(self):
    for default in (-1, 1):
      rules, rows = cases.voting_set(default)
      expected = cases.expected_votes(default)
      np.testing.assert_array_equal(rule_set.predict(rules, rows), expected)
    np.testing.assert_allclose(
      rule_set.predict_proba(rules, rows)[:, 1], [1, 1, 0.25, 1]
    )
    self.assertEqual(rule_set.coverage(rules, rows).tolist(), [2, 2, 2, 1])

  def test_the_order_of_weights_decides_no_tie(self):
    for order in ([0, 1, 2], [2, 1, 0]):  # .1 + .2 - .3 is not 0 in floats.
      rules = rule_set.make(
        np.full((3, 1), -_INF),
        np.full((3, 1), _INF),
        np.array([1, 1, -1])[order],
        names=('a',),
        default=-1,
        ordered=False,
        weight=np.array([0.1, 0.2, 0.3])[order],
      )
      self.assertEqual(rule_set.predict(rules, np.zeros((1, 1))).tolist(), [-1])

  @parameterized.parameters(5e-324, 1e-310, np.finfo(float).max / 2)
  def test_votes_of_any_size_count(self, weight):
    # Half of 5e-324 is 0, and twice more than half of the largest is inf.
    rules = rule_set.make(
      np.full((2, 1), -_INF),
      np.full((2, 1), _INF),
      [1, 1],
      names=('a',),
      default=-1,
      ordered=False,
      weight=[weight, weight],
    )
    for kept in (rules, rule_set.take(rules, [0])):
      self.assertEqual(rule_set.predict(kept, np.zeros((1, 1))).tolist(), [1])

  def test_agrees_with_trees_near_thresholds(self):
    self.assertEqual(cases.stump_disagreements(rule_set.matches), 0)

  def test_no_bound_holds_for_numbers_beyond_float32(self):
    rules = rule_set.make(
      [[-_INF]], [[_INF]], [1], names=('a',), default=-1, ordered=True
    )
    rows = np.array([[-1e300], [1e300]])
    self.assertEqual(rule_set.predict(rules, rows).tolist(), [1, 1])

  def test_no_rules(self):
    rules = rule_set.make([], [], [], names=('a',), default=1, ordered=False)
    rows = np.zeros((3, 1))
    self.assertEqual(rule_set.matches(rules, rows).shape, (3, 0))
    self.assertEqual(rule_set.predict(rules, rows).tolist(), [1, 1, 1])
    self.assertEqual(rule_set.coverage(rules, rows).tolist(), [3])
    self.assertEqual(rule_set.predict(rules, rows[:0]).shape, (0,))

  @parameterized.parameters(np.nan, np.inf)
  def test_refuses_rows_that_are_not_finite(self, value):
    rules, _ = cases.voting_set()
    with self.assertRaisesRegex(ValueError, 'x must be finite'):
      rule_set.matches(rules, np.full((1, 2), value))

  def test_refuses_rows_of_another_width(self):
    rules, _ = cases.voting_set()
    with self.assertRaisesRegex(ValueError, 'x must have shape'):
      rule_set.predict(rules, np.zeros((1, 3)))


class RecordTest(parameterized.TestCase):
  def test_take(self):
    rules, rows = cases.voting_set()
    kept = rule_set.take(rules, [2, 0])
    self.assertEqual(kept.weight.tolist(), [1, 2])
    np.testing.assert_array_equal(
      rule_set.matches(kept, rows), rule_set.matches(rules, rows)[:, [2, 0]]
    )
    masked = rule_set.take(rules, np.array([True, False, True]))
    self.assertEqual(masked.weight.tolist(), [2, 1])
    self.assertEqual(rule_set.take(rules, []).num_rules, 0)

  @parameterized.parameters([[3]], [[-1]], [[0.0]], [[[0]]])
  def test_take_refuses(self, index):
    rules, _ = cases.voting_set()
    with self.assertRaisesRegex(ValueError, 'index'):
      rule_set.take(rules, index)

  def test_take_refuses_a_mask_of_another_length(self):
    rules, _ = cases.voting_set()
    with self.assertRaisesRegex(ValueError, 'index must have shape'):
      rule_set.take(rules, np.array([True]))

  def test_uses(self):
    rules, _ = cases.voting_set()
    self.assertEqual(rule_set.uses(rules, ['a']).tolist(), [True, False, False])
    self.assertEqual(rule_set.uses(rules, ['a', 'b']).tolist(), [True] * 3)
    self.assertEqual(rule_set.uses(rules, []).tolist(), [False] * 3)

  def test_make_refuses_weights_that_do_not_add_up(self):
    with self.assertRaisesRegex(ValueError, 'weight'):
      rule_set.make(
        np.full((2, 1), -_INF),
        np.full((2, 1), _INF),
        [1, 1],
        names=('a',),
        default=-1,
        ordered=False,
        weight=[1e308, 1e308],
      )

  def test_uses_counts_upper_bounds(self):
    rules = rule_set.make(
      [[-_INF]], [[1.0]], [1], names=('a',), default=1, ordered=True
    )
    self.assertEqual(rule_set.uses(rules, ['a']).tolist(), [True])

  @parameterized.parameters([['c']], ['a'])
  def test_uses_refuses(self, columns):
    rules, _ = cases.voting_set()
    with self.assertRaisesRegex(ValueError, 'column'):
      rule_set.uses(rules, columns)

  def test_later_changes_of_the_arguments_do_not_reach_it(self):
    lower, upper, weight = np.zeros((1, 1)), np.ones((1, 1)), np.ones(1)
    rules = rule_set.make(
      lower, upper, [1], names=('a',), default=1, ordered=False, weight=weight
    )
    lower[:], upper[:], weight[:] = 5, -5, -1
    self.assertEqual(
      (rules.lower.tolist(), rules.upper.tolist(), rules.weight.tolist()),
      ([[0.0]], [[1.0]], [1.0]),
    )

  def test_is_a_tree_of_arrays_with_static_names(self):
    rules, _ = cases.voting_set()
    leaves, structure = jax.tree.flatten(rules)
    self.assertLen(leaves, 7)
    again = jax.tree.unflatten(structure, leaves)
    self.assertEqual((again.names, again.ordered), (rules.names, rules.ordered))

  @parameterized.parameters(
    ({'names': ('a', 'a')}, 'names'),
    ({'names': ('a', 1)}, 'names'),
    ({'lower': [[0.0]]}, 'lower'),
    ({'lower': [[1.0, 0.0]]}, 'lower'),
    ({'lower': [[np.nan, 0.0]]}, 'lower'),
    ({'upper': [[1.0, -_INF]]}, 'lower'),
    ({'consequent': [0]}, 'consequent'),
    ({'consequent': [[1]]}, 'consequent'),
    ({'default': 0}, 'default'),
    ({'ordered': 1}, 'ordered'),
    ({'probability': [1.5]}, 'probability'),
    ({'probability': [np.nan]}, 'probability'),
    ({'probability': [0.9, 0.9]}, 'probability'),
    ({'probability': [0.4]}, 'consequent'),
    ({'probability': [0.5]}, 'consequent'),
    ({'weight': [-1]}, 'weight'),
    ({'weight': [_INF]}, 'weight'),
    ({'weight': [[1]]}, 'weight'),
    ({'default_probability': 0.6}, 'default'),
    ({'default_probability': 2}, 'probability'),
    ({'default_probability': [0.2]}, 'default_probability'),
    ({'default': np.array([-1])}, 'default'),
  )
  def test_make_refuses(self, changes, name):
    arguments = {
      'lower': [[0.0, -_INF]],
      'upper': [[1.0, _INF]],
      'consequent': [1],
      'names': ('a', 'b'),
      'default': -1,
      'ordered': True,
    }
    rule_set.make(**arguments)
    arguments |= changes
    with self.assertRaisesRegex(ValueError, name):
      rule_set.make(**arguments)
