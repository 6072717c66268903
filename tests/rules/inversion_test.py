"""Tests of the model-inversion attack, against slow loops."""

import dataclasses
import math

from absl.testing import parameterized
import numpy as np
from scipy import stats

from privjax.rules import inversion
from privjax.rules import rule_set
from privjax.rules import sensitive
from tests.oracles import rules_attack as oracle
from tests.rules import attack_cases

_PRIOR = np.array([6, 1, 3])
_SCORE = attack_cases.SCORE


def _codes(x):
  return sensitive.codes(_SCORE, attack_cases.NAMES, x)


class RulesTest(parameterized.TestCase):
  def test_scores_and_guesses_equal_the_oracle(self):
    for rules, x, labels in attack_cases.CASES:
      scores = inversion.rule_scores(rules, _SCORE, x, labels)
      exact = oracle.inversion_scores(rules, _SCORE, x, labels)
      np.testing.assert_array_equal(scores, exact)
      self.assertEqual(
        inversion.guess(scores, _PRIOR).tolist(),
        [oracle.guess(row, _PRIOR) for row in exact],
      )

  def test_a_list_scores_its_own_prediction(self):
    for rules, x, labels in attack_cases.CASES:
      if not rules.ordered:
        continue
      predictions = inversion.level_predictions(
        lambda rows, rules=rules: rule_set.predict(rules, rows),
        _SCORE,
        attack_cases.NAMES,
        x,
      )
      np.testing.assert_array_equal(
        inversion.rule_scores(rules, _SCORE, x, labels),
        inversion.classifier_scores(predictions, labels),
      )

  def test_the_targets_level_is_not_read(self):
    for rules, x, labels in attack_cases.CASES:
      hidden = sensitive.with_level(_SCORE, attack_cases.NAMES, x, 0)
      np.testing.assert_array_equal(
        inversion.rule_scores(rules, _SCORE, x, labels),
        inversion.rule_scores(rules, _SCORE, hidden, labels),
      )

  def test_rules_without_s_do_not_move_the_guess(self):
    for rules, x, labels in attack_cases.CASES:
      if rules.ordered:
        continue
      admits = sensitive.admitted(rules, _SCORE)
      some = rule_set.take(rules, ~admits.all(axis=1))
      np.testing.assert_array_equal(
        inversion.guess(
          inversion.rule_scores(rules, _SCORE, x, labels), _PRIOR
        ),
        inversion.guess(inversion.rule_scores(some, _SCORE, x, labels), _PRIOR),
      )

  @parameterized.parameters(False, True)
  def test_an_empty_rule_set_gives_the_marginal(self, ordered):
    empty = rule_set.make(
      [], [], [], names=attack_cases.NAMES, default=1, ordered=ordered
    )
    _, x, labels = attack_cases.CASES[2]
    scores = inversion.rule_scores(empty, _SCORE, x, labels)
    outcome = inversion.evaluate(scores, _codes(x), prior=_PRIOR)
    self.assertEqual(set(outcome.guess), {0})
    self.assertEqual(outcome.attack_success, outcome.marginal)
    self.assertEqual(outcome.marginal, float(np.mean(_codes(x) == 0)))

  def test_no_rule_matches_gives_the_prior(self):
    rules, attribute, x, labels = attack_cases.eight_rows()
    # Rows with P = 1 meet no rule; neither does class -1.
    scores = inversion.rule_scores(rules, attribute, x, labels)
    for prior, level in (((5, 3), 0), ((3, 5), 1), ((4, 4), 0)):
      guesses = inversion.guess(scores, np.array(prior))
      self.assertEqual(guesses[:4].tolist(), [level] * 4)
      self.assertEqual(guesses[4], 1)
      self.assertEqual(guesses[5:].tolist(), [level] * 3)

  def test_relabelling_levels_changes_nothing(self):
    order = np.array([2, 0, 1])  # New code w stands for the old order[w].
    permuted = sensitive.SensitiveAttribute(
      columns=_SCORE.columns, levels=_SCORE.levels[order]
    )
    for rules, x, labels in attack_cases.CASES:
      first = inversion.evaluate(
        inversion.rule_scores(rules, _SCORE, x, labels),
        _codes(x),
        prior=_PRIOR,
      )
      second = inversion.evaluate(
        inversion.rule_scores(rules, permuted, x, labels),
        sensitive.codes(permuted, attack_cases.NAMES, x),
        prior=_PRIOR[order],
      )
      np.testing.assert_array_equal(first.is_right, second.is_right)
      np.testing.assert_array_equal(
        first.is_marginal_right, second.is_marginal_right
      )

  def test_real_weights_tie_whatever_the_order_of_the_sum(self):
    rules = rule_set.make(
      [[0.5, -np.inf], [-np.inf, 0.5], [0.5, -np.inf], [0.5, -np.inf]],
      [[np.inf] * 2] * 4,
      [1] * 4,
      names=('S=0', 'S=1'),
      default=1,
      ordered=False,
      weight=[0.1, 0.6, 0.2, 0.3],
    )
    self.assertNotEqual(0.1 + 0.2 + 0.3, 0.6)
    attribute = sensitive.one_hot(rules.names)
    scores = inversion.rule_scores(rules, attribute, np.eye(2), np.ones(2))
    for prior, level in (((1, 2), 1), ((2, 1), 0)):
      guesses = inversion.guess(scores, np.array(prior))
      self.assertEqual(guesses.tolist(), [level] * 2)

  def test_a_level_unseen_in_training(self):
    # It has no prior, but a score alone still points to it.
    scores = np.array([[0.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 1.0, 1.0]])
    prior = inversion.prior_counts(np.array([0, 0, 2]), 3)
    self.assertEqual(prior.tolist(), [2, 0, 1])
    self.assertEqual(inversion.guess(scores, prior).tolist(), [0, 1, 2])

  def test_a_shift_of_the_weights_scale_changes_no_guess(self):
    for rules, x, labels in attack_cases.CASES:
      scaled = dataclasses.replace(rules, weight=rules.weight * 1e-9)
      np.testing.assert_array_equal(
        *(
          inversion.guess(inversion.rule_scores(r, _SCORE, x, labels), _PRIOR)
          for r in (rules, scaled)
        )
      )


class ClassifierTest(parameterized.TestCase):
  def test_scores_are_agreement_with_f(self):
    predictions = np.array([[1, -1, 1], [-1, -1, -1]])
    scores = inversion.classifier_scores(predictions, np.array([1, 1]))
    self.assertEqual(scores.tolist(), [[1, 0, 1], [0, 0, 0]])
    # Tied levels, and none: the prior.
    guesses = inversion.guess(scores, np.array([1, 7, 3]))
    self.assertEqual(guesses.tolist(), [2, 1])

  def test_level_predictions_write_the_levels(self):
    x = attack_cases.rows(np.random.Generator(np.random.Philox(1)), 6)
    seen = []

    def predict(rows):
      seen.append(rows)
      return np.where(rows[:, 4] > 0, 1, -1)

    predictions = inversion.level_predictions(
      predict, _SCORE, attack_cases.NAMES, x
    )
    # Column 4 is level b.
    self.assertEqual(predictions.tolist(), [[-1, 1, -1]] * 6)
    for rows in seen:
      np.testing.assert_array_equal(rows[:, [1, 3]], x[:, [1, 3]])

  @parameterized.named_parameters(
    # A cast to integers would make classes of the first two.
    ('margins', lambda rows: np.full(len(rows), 1.7)),
    ('negative_margins', lambda rows: np.full(len(rows), -1.2)),
    ('probabilities', lambda rows: np.full(len(rows), 0.7)),
    ('two_columns', lambda rows: np.ones((len(rows), 2))),
    ('nan', lambda rows: np.full(len(rows), math.nan)),
  )
  def test_level_predictions_refuse_other_classes(self, predict):
    with self.assertRaisesRegex(ValueError, 'predictions'):
      inversion.level_predictions(
        predict, _SCORE, attack_cases.NAMES, np.zeros((3, 5))
      )


class IntervalsTest(parameterized.TestCase):
  def _hits(self, num_targets=400, right=0.7, marginal=0.6):
    index = np.arange(num_targets)
    return inversion.Outcome(
      guess=np.zeros(num_targets, np.int64),
      is_right=index < right * num_targets,
      is_marginal_right=index < marginal * num_targets,
    )

  def test_seeded(self):
    outcome = self._hits()
    first = inversion.intervals(outcome, seed=3)
    self.assertEqual(first, inversion.intervals(outcome, seed=3))
    self.assertNotEqual(first, inversion.intervals(outcome, seed=4))

  def test_ends_are_the_binomial_quantiles(self):
    outcome = self._hits()
    found = inversion.intervals(outcome, seed=0, num_resamples=4000)
    for ends, share in (
      (found.attack_success, 0.7),
      (found.marginal, 0.6),
      (found.excess, 0.1),
    ):
      law = stats.binom(400, share)
      # An end is an order statistic: its level is off by 0.0025 (s.d.), here
      # five times that either way, and one step of the lattice.
      for end, level in zip(ends, (0.025, 0.975)):
        low = law.ppf(max(level - 0.0125, 1e-3)) / 400 - 1 / 400
        high = law.ppf(min(level + 0.0125, 1 - 1e-3)) / 400 + 1 / 400
        self.assertBetween(end, low, high)

  def test_the_excess_is_paired(self):
    # Every target is right for both: the excess never varies.
    outcome = self._hits(right=0.6)
    found = inversion.intervals(outcome, seed=0, num_resamples=50)
    self.assertEqual(found.excess, (0.0, 0.0))
    self.assertLess(*found.attack_success)


class BadInputTest(parameterized.TestCase):
  def test_unknown_sensitive_column(self):
    rules, _, x, labels = attack_cases.eight_rows()
    with self.assertRaisesRegex(ValueError, "columns .'T=0'. of the sensitive"):
      inversion.rule_scores(rules, sensitive.one_hot(('T=0', 'S=1')), x, labels)

  @parameterized.named_parameters(
    ('nan_score', [[math.nan, 1.0]], [1, 1], 'scores'),
    ('negative_score', [[-1.0, 1.0]], [1, 1], 'scores'),
    ('negative_prior', [[0.0, 1.0]], [-1, 1], 'prior'),
    ('nan_prior', [[0.0, 1.0]], [math.nan, 1], 'prior'),
    ('other_levels', [[0.0, 1.0]], [1, 1, 1], 'scores'),
  )
  def test_guess(self, scores, prior, name):
    with self.assertRaisesRegex(ValueError, name):
      inversion.guess(np.array(scores), np.array(prior))

  @parameterized.named_parameters(
    ('out_of_range', [2, 0]),
    ('negative', [-1, 0]),
    ('float', [0.0, 1.0]),
    ('short', [0]),
    ('none', []),
  )
  def test_codes(self, codes):
    with self.assertRaisesRegex(ValueError, 'codes'):
      inversion.evaluate(
        np.ones((2, 2)), np.array(codes), prior=np.array([1, 2])
      )

  def test_no_targets(self):
    with self.assertRaisesRegex(ValueError, 'must hold a target'):
      inversion.evaluate(
        np.ones((0, 2)), np.zeros(0, int), prior=np.array([1, 2])
      )

  def test_labels_and_predictions(self):
    rules, attribute, x, labels = attack_cases.eight_rows()
    with self.assertRaisesRegex(ValueError, 'labels'):
      inversion.rule_scores(rules, attribute, x, labels[:3])
    with self.assertRaisesRegex(ValueError, 'labels'):
      inversion.rule_scores(rules, attribute, x, labels * 0)
    with self.assertRaisesRegex(ValueError, 'predictions'):
      inversion.classifier_scores(np.zeros((2, 2)), np.ones(2))

  @parameterized.parameters(0, 1.1, math.nan)
  def test_level(self, level):
    outcome = inversion.Outcome(*(np.ones(2, bool),) * 3)
    with self.assertRaisesRegex(ValueError, 'level'):
      inversion.intervals(outcome, seed=0, level=level)
