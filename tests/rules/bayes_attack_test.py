"""Tests of the Bayes attackers, by enumeration."""

import collections
from fractions import Fraction
import math

from absl.testing import parameterized
import numpy as np

from privjax.rules import bayes_attack
from privjax.rules import inversion
from privjax.rules import rule_set
from privjax.rules import sensitive
from tests.oracles import rules_attack as oracle
from tests.rules import attack_cases

_SCORE = attack_cases.SCORE
_NAMES = attack_cases.NAMES


def _public(x):
  return x[:, [1, 3]].astype(np.int64)


def _draw(seed, num_rows):
  generator = np.random.Generator(np.random.Philox(seed))
  x = attack_cases.rows(generator, num_rows)
  return x, sensitive.codes(_SCORE, _NAMES, x), generator


class PopulationTest(parameterized.TestCase):
  def test_conditional_is_the_smoothed_share(self):
    x, codes, _ = _draw(0, 40)
    known = bayes_attack.population(_public(x), codes, 3)
    self.assertEqual(known.prior.tolist(), np.bincount(codes).tolist())
    targets = np.array([[0, 0], [4, 1], [9, 9], [2, 1]])
    found = bayes_attack.conditional(known, targets)
    pairs = collections.Counter(
      (*cell, level) for cell, level in zip(_public(x).tolist(), codes.tolist())
    )
    for row, target in zip(found, targets.tolist()):
      here = [pairs[(*target, level)] for level in range(3)]
      prior = [Fraction(int(n), 40) for n in known.prior]
      exact = [(n + p) / (sum(here) + 1) for n, p in zip(here, prior)]
      np.testing.assert_allclose(row, [float(e) for e in exact], rtol=1e-14)

  def test_an_unseen_cell_has_the_prior(self):
    known = bayes_attack.population(
      np.array([[0], [0], [1], [1]]), np.array([0, 0, 0, 2]), 3
    )
    found = bayes_attack.conditional(known, np.array([[7]]))
    self.assertEqual(found.tolist(), [[0.75, 0.0, 0.25]])

  def test_the_order_of_the_rows_changes_nothing(self):
    x, codes, _ = _draw(1, 30)
    first = bayes_attack.population(_public(x), codes, 3)
    second = bayes_attack.population(_public(x)[::-1], codes[::-1], 3)
    np.testing.assert_array_equal(first.cells, second.cells)
    np.testing.assert_array_equal(first.counts, second.counts)

  def test_without_a_public_feature_it_is_the_marginal(self):
    _, codes, _ = _draw(2, 30)
    nothing = np.zeros((30, 0), np.int64)
    known = bayes_attack.population(nothing, codes, 3)
    outcome = inversion.evaluate(
      bayes_attack.conditional(known, nothing), codes, prior=known.prior
    )
    self.assertEqual(outcome.attack_success, outcome.marginal)


class SignalsTest(parameterized.TestCase):
  def test_release_signals_equal_the_oracle(self):
    seen = set()
    for rules, x, _ in attack_cases.CASES:
      found = bayes_attack.release_signals(rules, _SCORE, x)
      for row in range(len(x)):
        for level in range(3):
          target = sensitive.with_level(_SCORE, _NAMES, x, level)[row]
          applying = [
            rule
            for rule in range(rules.num_rules)
            if oracle.meets(rules, rule, target, range(5))
          ]
          if rules.ordered:
            vote = rules.consequent[applying[0]] if applying else 0
          else:
            vote = sum(rules.consequent[r] * rules.weight[r] for r in applying)
          exact = {-1: 1, 0: 0, 1: 2}[int(np.sign(vote))]
          self.assertEqual(found[row, level], exact)
          seen.add((rules.ordered, exact))
    self.assertLen(seen, 6)

  def test_the_default_is_not_a_signal(self):
    for default in (-1, 1):
      for ordered in (False, True):
        empty = rule_set.make(
          [], [], [], names=_NAMES, default=default, ordered=ordered
        )
        x, _, _ = _draw(3, 5)
        found = bayes_attack.release_signals(empty, _SCORE, x)
        self.assertEqual(found.tolist(), [[0] * 3] * 5)

  def test_join_keeps_both(self):
    first, second = np.meshgrid(np.arange(4), np.arange(3))
    joined = bayes_attack.join(first, second, 3)
    self.assertEqual(sorted(joined.ravel()), list(range(12)))
    np.testing.assert_array_equal(joined // 3, first)
    np.testing.assert_array_equal(joined % 3, second)

  def test_own_takes_the_rows_level(self):
    signals = np.arange(6).reshape(2, 3)
    own = bayes_attack.own(signals, np.array([2, 0]))
    self.assertEqual(own.tolist(), [2, 3])
    own = bayes_attack.own([[0, 1, 2], [3, 4, 5]], [2, 0])
    self.assertEqual(own.tolist(), [2, 3])

  def test_classifier_signals(self):
    found = bayes_attack.classifier_signals(np.array([[1, -1], [-1, -1]]))
    self.assertEqual(found.tolist(), [[1, 0], [0, 0]])


class ScoresTest(parameterized.TestCase):
  def test_likelihood_starts_every_count_at_one(self):
    table = bayes_attack.likelihood(
      np.array([0, 0, 0, 2]), np.array([1, 1, -1, -1]), 3
    )
    np.testing.assert_allclose(
      table, [[2 / 5, 3 / 5], [1 / 2, 1 / 2], [2 / 3, 1 / 3]], rtol=1e-15
    )

  def test_is_bayes_rule_on_the_joint_law(self):
    # With the whole table (cell, level, f) as the signal, the score is the
    # smoothed joint: its guess is the most frequent level of cell and label.
    generator = np.random.Generator(np.random.Philox(5))
    size = 4000
    public = generator.integers(0, 3, (size, 1))
    codes = generator.integers(0, 3, size)
    chance = generator.uniform(0.1, 0.9, (3, 3))
    labels = np.where(
      generator.random(size) < chance[public[:, 0], codes], 1, -1
    )
    known = bayes_attack.population(public, codes, 3)
    signals = public * 3 + np.arange(3)
    table = bayes_attack.likelihood(bayes_attack.own(signals, codes), labels, 9)
    scores = bayes_attack.bayes_scores(
      bayes_attack.conditional(known, public),
      signals=signals,
      labels=labels,
      likelihoods=table,
    )
    for cell in range(3):
      for label in (-1, 1):
        where = (public[:, 0] == cell) & (labels == label)
        counts = np.bincount(codes[where], minlength=3)
        shares = scores[where][0] / scores[where][0].sum()
        np.testing.assert_allclose(shares, counts / counts.sum(), atol=0.01)

  def test_a_silent_release_leaves_the_attacker_without_one(self):
    x, codes, generator = _draw(6, 200)
    labels = generator.choice([-1, 1], 200)
    surrogate = generator.integers(0, 2, (200, 3))
    known = bayes_attack.population(_public(x), codes, 3)
    given = bayes_attack.conditional(known, _public(x))
    silent = np.zeros((200, 3), np.int64)
    scores = []
    for signals, num in (
      (surrogate, 2),
      (bayes_attack.join(surrogate, silent, 3), 6),
    ):
      table = bayes_attack.likelihood(
        bayes_attack.own(signals, codes), labels, num
      )
      scores.append(
        bayes_attack.bayes_scores(
          given, signals=signals, labels=labels, likelihoods=table
        )
      )
    np.testing.assert_array_equal(*scores)

  def test_a_signal_without_s_adds_nothing(self):
    x, codes, generator = _draw(7, 200)
    labels = generator.choice([-1, 1], 200)
    signals = np.repeat(generator.integers(0, 4, (200, 1)), 3, axis=1)
    known = bayes_attack.population(_public(x), codes, 3)
    given = bayes_attack.conditional(known, _public(x))
    table = bayes_attack.likelihood(signals[:, 0], labels, 4)
    scores = bayes_attack.bayes_scores(
      given, signals=signals, labels=labels, likelihoods=table
    )
    np.testing.assert_array_equal(
      inversion.guess(scores, known.prior), inversion.guess(given, known.prior)
    )

  def test_the_white_box_beats_no_signal_where_f_is_s(self):
    x, codes, _ = _draw(8, 300)
    predictions = np.tile([-1, 1, 1], (300, 1))
    labels = bayes_attack.own(predictions, codes)
    signals = bayes_attack.classifier_signals(predictions)
    known = bayes_attack.population(_public(x), codes, 3)
    given = bayes_attack.conditional(known, _public(x))
    table = bayes_attack.likelihood(bayes_attack.own(signals, codes), labels, 2)
    success = [
      inversion.evaluate(scores, codes, prior=known.prior).attack_success
      for scores in (
        given,
        bayes_attack.bayes_scores(
          given, signals=signals, labels=labels, likelihoods=table
        ),
      )
    ]
    # f(x) tells level a from the others.
    self.assertGreater(success[1], success[0] + 0.2)


class BadInputTest(parameterized.TestCase):
  def test_population(self):
    public, codes = np.zeros((2, 1), int), np.array([0, 1])
    for wrong, name in (
      ((public * 1.0, codes, 2), 'public'),
      ((public[:, 0], codes, 2), 'public'),
      ((public, codes[:1], 2), 'codes'),
      ((public, codes + 1, 2), 'codes'),
      ((public, codes, 1), 'num_levels'),
      ((public[:0], codes[:0], 2), 'must hold a row'),
    ):
      with self.assertRaisesRegex(ValueError, name):
        bayes_attack.population(*wrong)
    known = bayes_attack.population(public, codes, 2)
    with self.assertRaisesRegex(ValueError, 'public'):
      bayes_attack.conditional(known, np.zeros((2, 2), int))

  def test_likelihood(self):
    for signals, labels, num, name in (
      ([0, 2], [1, 1], 2, 'signals'),
      ([0, -1], [1, 1], 2, 'signals'),
      ([0.0, 1.0], [1, 1], 2, 'signals'),
      ([0, 1], [1, 0], 2, 'labels'),
      ([0, 1], [1], 2, 'labels'),
      ([0, 0], [1, 1], 0, 'num_signals'),
    ):
      with self.assertRaisesRegex(ValueError, name):
        bayes_attack.likelihood(np.array(signals), np.array(labels), num)

  def test_scores(self):
    good = dict(
      signals=np.zeros((2, 3), int),
      labels=np.ones(2),
      likelihoods=np.full((1, 2), 0.5),
    )
    given = np.full((2, 3), 1 / 3)
    bayes_attack.bayes_scores(given, **good)
    for change, name in (
      ({'signals': np.zeros((2, 2), int)}, 'signals'),
      ({'signals': np.ones((2, 3), int)}, 'signals'),
      ({'labels': np.zeros(2)}, 'labels'),
      ({'likelihoods': np.full(2, 0.5)}, 'likelihoods'),
    ):
      with self.assertRaisesRegex(ValueError, name):
        bayes_attack.bayes_scores(given, **{**good, **change})

  def test_signals(self):
    with self.assertRaisesRegex(ValueError, 'predictions'):
      bayes_attack.classifier_signals(np.array([0, math.nan]))
    with self.assertRaisesRegex(ValueError, 'second'):
      bayes_attack.join(np.array([0]), np.array([3]), 3)
    with self.assertRaisesRegex(ValueError, 'codes'):
      bayes_attack.own(np.zeros((1, 2), int), np.array([2]))
