"""Tests of one fold of the rule pipeline against slow recomputation."""

import collections
import functools
import unittest.mock

from absl.testing import parameterized
import numpy as np
import pytest

from experiments import rules_folds
from privjax import data
from privjax.data import encoding
from privjax.rules import bayes_attack
from privjax.rules import bayesian_rule_list
from privjax.rules import instance_transparency
from privjax.rules import inversion
from privjax.rules import rule_set
from privjax.rules import selection
from privjax.rules import sensitive
from privjax.rules import violation

SETTINGS = rules_folds.Settings(
  'breast_cancer', 'lr', '2', 0, ('0.5',), ('0.5', '0'), 200
)
UNIT = SETTINGS[:4]


@functools.lru_cache
def _counts():
  return dict(rules_folds.run_fold(SETTINGS, 0, None))


def _problem():
  return rules_folds.load_problem('breast_cancer', 0, None)


def _shared():
  problem = _problem()
  weights = rules_folds._weights(*UNIT, None)[0]
  surrogate = rules_folds._surrogate('breast_cancer', 0, None)[0]
  return rules_folds._make_fold(
    problem,
    0,
    rules_folds._classes(problem, weights),
    rules_folds._classes(problem, surrogate),
  )


class ProblemTest(parameterized.TestCase):
  def test_rows_are_those_of_the_table(self):
    table = data.load_table('breast_cancer')
    np.testing.assert_array_equal(
      _problem().rows, encoding.encode(table.schema, table.columns)
    )

  def test_levels_change_the_sensitive_entries_alone(self):
    problem = _problem()
    names = encoding.feature_names(data.load_table('breast_cancer').schema)
    changed = np.ptp(problem.by_level, axis=0).max(axis=0) > 0
    self.assertEqual(
      {name for name, is_changed in zip(names, changed) if is_changed},
      {name for name in names if name.startswith('mean texture')},
    )

  def test_public_features_leave_the_sensitive_one_out(self):
    problem = _problem()
    self.assertLen(problem.attribute.columns, 4)
    self.assertEqual(
      problem.public.shape[1], len(set(problem.items.features)) - 1
    )

  def test_held_out_labels_do_not_reach_the_classifier(self):
    problem = _problem()
    test = ~problem.train[0]
    flipped = problem._replace(
      labels=np.where(test, -problem.labels, problem.labels)
    )
    fit = lambda p: rules_folds._fit(
      p, rules_folds.MODELS['lr'], 1e-2, None, key=rules_folds.prng.key(0)
    )
    one, other = fit(problem), fit(flipped)
    np.testing.assert_allclose(one[0], other[0], atol=1e-7)
    self.assertGreater(np.abs(one[1] - other[1]).max(), 1e-3)

  @pytest.mark.realdata
  def test_variant_has_another_sensitive_feature(self):
    try:
      problem = rules_folds.load_problem('arrest_sex', 0, None)
    except FileNotFoundError as error:
      self.skipTest(str(error))
    self.assertLen(problem.attribute.columns, 2)
    self.assertTrue(all(c.startswith('sex') for c in problem.attribute.columns))


class ClassifierCountsTest(parameterized.TestCase):
  def test_counts_by_hand(self):
    problem, counts = _problem(), _counts()['none', 'whole', 'none', 'none']
    train, test = problem.train[0], np.flatnonzero(~problem.train[0])
    weights = rules_folds._weights(*UNIT, None)[0]
    prior = collections.Counter(problem.codes[train].tolist())
    right = attacked = marginal = 0
    for row in test:
      said = 1 if problem.rows[row] @ weights > 0 else -1
      right += said == problem.labels[row]
      levels = [
        level
        for level in range(4)
        if (1 if problem.by_level[level, row] @ weights > 0 else -1) == said
      ]
      attacked += max(levels, key=lambda w: prior[w]) == problem.codes[row]
      marginal += prior.most_common(1)[0][0] == problem.codes[row]
    self.assertEqual(counts['num_tested'], len(test))
    self.assertEqual(counts['num_right'], right)
    self.assertEqual(counts['num_attacked'], attacked)
    self.assertEqual(counts['num_marginal'], marginal)

  def test_the_ladder_of_attackers(self):
    shared, counts = _shared(), _counts()['none', 'whole', 'none', 'none']
    problem, test = shared.problem, ~shared.train
    known = bayes_attack.population(
      problem.public[shared.train], problem.codes[shared.train], 4
    )
    given = bayes_attack.conditional(known, problem.public[test])
    success = lambda scores: np.sum(
      inversion.guess(scores, known.prior) == problem.codes[test]
    )
    self.assertEqual(counts['num_bayes_public'], success(given))
    for name, weights in (
      ('num_bayes', rules_folds._weights(*UNIT, None)[0]),
      ('num_bayes_surrogate', rules_folds._surrogate(*UNIT[::3], None)[0]),
    ):
      said = (problem.by_level @ weights > 0).T.astype(int)
      own = said[np.arange(len(said)), problem.codes]
      table = np.ones((2, 2))
      for signal, label in zip(own[shared.train], shared.labels[shared.train]):
        table[signal, int(label > 0)] += 1
      table /= table.sum(axis=1, keepdims=True)
      label = (shared.labels[test] > 0).astype(int)
      scores = given * table[said[test], label[:, None]]
      self.assertEqual(counts[name], success(scores))


class BayesTest(parameterized.TestCase):
  def test_the_likelihood_is_of_training_rows_at_their_own_level(self):
    shared = _shared()
    problem, train = shared.problem, shared.train
    # Any signal: here one that the label depends on by chance alone.
    signals = np.arange(problem.by_level.shape[1])[:, None] % 7 + np.arange(4)
    signals %= 3
    table = np.ones((3, 2))
    for row in np.flatnonzero(train):
      own = signals[row, problem.codes[row]]
      table[own, int(shared.labels[row] > 0)] += 1
    table /= table.sum(axis=1, keepdims=True)
    label = (shared.labels[~train] > 0).astype(int)
    np.testing.assert_allclose(
      rules_folds._bayes(shared, signals, 3),
      shared.given_public * table[signals[~train], label[:, None]],
    )


class TrainingRowsTest(parameterized.TestCase):
  """What private rows each stage is given: f's labels, of training rows."""

  def _check(self, shared, x, labels):
    train = shared.train
    np.testing.assert_array_equal(x, shared.problem.binary[train])
    np.testing.assert_array_equal(labels, shared.labels[train])
    self.assertTrue(np.any(labels != shared.problem.labels[train]))

  @parameterized.parameters(
    ('it', instance_transparency, 'explain'), ('brl', bayesian_rule_list, 'fit')
  )
  def test_miners(self, explainer, module, name):
    shared = _shared()
    with unittest.mock.patch.object(module, name) as mine:
      rules_folds._explain(SETTINGS, shared, explainer, 0)
    self._check(shared, *mine.call_args.args[:2])

  @parameterized.parameters(
    ('breast_cancer', rules_folds.NODE_LIMIT), ('lending', 1)
  )
  def test_node_limit_reaches_the_solver(self, dataset, limit):
    seen, solve = [], selection.optimize.milp

    def watched(*args, options, **kwargs):
      seen.append(options['node_limit'])
      return solve(*args, options=options, **kwargs)

    settings = SETTINGS._replace(dataset=dataset)
    with unittest.mock.patch.object(selection.optimize, 'milp', watched):
      rules_folds._explain(settings, _shared(), 'it', 0)
    self.assertEqual(seen, [limit])

  def test_the_program_is_solved_to_its_end_within_the_limit(self):
    shared = _shared()
    explain = lambda limit: instance_transparency.explain(
      shared.problem.binary[shared.train],
      shared.labels[shared.train],
      names=shared.problem.items.names,
      seed=0,
      node_limit=limit,
    )
    found = explain(rules_folds.NODE_LIMIT)
    # Not a greedy cover, and no limit would change it.
    self.assertEqual(found.status, 'optimal')
    self.assertGreater(found.agreement, explain(0).agreement)
    rules = rules_folds._explain(SETTINGS, shared, 'it', 0)
    for name in ('lower', 'upper', 'consequent'):
      for other in (found.rules, explain(10_000).rules):
        np.testing.assert_array_equal(
          getattr(rules, name), getattr(other, name)
        )

  def test_violation_scores(self):
    shared = _shared()
    rules = rules_folds._explain(SETTINGS, shared, 'it', 0)
    with unittest.mock.patch.object(
      violation, 'score', wraps=violation.score
    ) as score:
      list(rules_folds._releases(SETTINGS, shared, rules, 0))
    score.assert_called_once()
    self._check(shared, *score.call_args.args[2:])


class RuleCountsTest(parameterized.TestCase):
  @parameterized.parameters(*rules_folds.EXPLAINERS)
  def test_whole_rules_on_every_row(self, explainer):
    shared, counts = _shared(), _counts()[explainer, 'whole', 'none', 'none']
    problem, test = shared.problem, ~shared.train
    rules = rules_folds._explain(SETTINGS, shared, explainer, 0)
    self.assertGreater(rules.num_rules, 0)
    said = rule_set.predict(rules, problem.binary[test])
    self.assertEqual(counts['num_rules'], rules.num_rules)
    self.assertEqual(counts['num_agree'], np.sum(said == shared.labels[test]))
    self.assertEqual(counts['num_right'], np.sum(said == problem.labels[test]))
    self.assertEqual(counts['num_attacked'], self._attacked(shared, rules))
    # Without cells: the release is asked about every row.
    spoken = bayes_attack.release_signals(
      rules, problem.attribute, problem.binary
    )
    signals = 3 * shared.surrogate + spoken
    scores = rules_folds._bayes(shared, signals, 6)
    guesses = inversion.guess(scores, shared.prior)
    self.assertEqual(
      counts['num_bayes'], np.sum(guesses == problem.codes[test])
    )

  def _attacked(self, shared, rules):
    """Counts the targets whose level wins the vote of eq. 6, by its words."""
    problem, test = shared.problem, ~shared.train
    said, scores = shared.labels[test], []
    for level in range(4):
      rows = sensitive.with_level(
        problem.attribute, rules.names, problem.binary[test], level
      )
      if rules.ordered:
        scores.append(rule_set.predict(rules, rows) == said)
      else:
        agrees = rules.consequent == said[:, None]
        scores.append((rule_set.matches(rules, rows) & agrees).sum(axis=1))
    guesses = [
      max(range(4), key=lambda w: (votes[w], shared.prior[w]))
      for votes in np.stack(scores, axis=1).astype(int).tolist()
    ]
    return np.sum(guesses == problem.codes[test])

  @parameterized.parameters(*rules_folds.EXPLAINERS)
  def test_pruned_rules_and_their_control(self, explainer):
    counts, shared = _counts(), _shared()
    rules = rules_folds._explain(SETTINGS, shared, explainer, 0)
    whole = counts[explainer, 'whole', 'none', 'none']
    scores = violation.score(
      rules,
      shared.problem.attribute,
      shared.problem.binary[shared.train],
      shared.labels[shared.train],
    )
    statuses = violation.statuses(scores, alpha=0.5)
    num_violating = statuses.count(violation.Status.VIOLATES)
    for rate, num_kept in (('0.5', num_violating // 2), ('0', 0)):
      pruned = counts[explainer, 'pruned', '0.5', rate]
      control = counts[explainer, 'random', '0.5', rate]
      left = rules.num_rules - num_violating + num_kept
      self.assertEqual(pruned['num_rules'], left)
      self.assertEqual(control['num_rules'], left)
      self.assertEqual(pruned['num_violates'], num_violating)
      self.assertEqual(
        sum(pruned[f'num_{status.value}'] for status in violation.Status),
        whole['num_rules'],
      )
      self.assertNotIn('num_violates', control)
