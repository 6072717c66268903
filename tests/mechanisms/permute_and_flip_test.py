"""Permute-and-flip: law, sampler, agreement with the literal algorithm."""

import fractions
import math
import random

from absl.testing import parameterized
import hypothesis
import hypothesis.strategies as st
import numpy as np

from privjax import mechanisms
from privjax.mechanisms import entropy
from privjax.mechanisms import exact
from privjax.mechanisms import permute_and_flip
from tests import statistics
from tests.mechanisms import sampling_checks
from tests.oracles import exact_sampling as oracle

Fraction = fractions.Fraction


def _law(utility, **kwargs):
  settings = dict(epsilon=1, sensitivity=1) | kwargs
  return np.exp(permute_and_flip.log_law(np.asarray(utility), **settings))


class LawTest(parameterized.TestCase):
  def test_two_candidates(self):
    """P(1) = 0.6967346701, the exponential mechanism's being 0.6224593312."""
    law = _law([0, 1])
    self.assertAlmostEqual(law[1], 0.6967346701, delta=5e-11)
    self.assertAlmostEqual(law[0], math.exp(-0.5) / 2, delta=1e-14)

  @hypothesis.settings(max_examples=30)
  @hypothesis.given(
    utility=st.lists(st.integers(-9, 9), min_size=1, max_size=6),
    epsilon=st.fractions(Fraction(1, 100), 60),
  )
  def test_inclusion_and_exclusion(self, utility, epsilon):
    expected = oracle.permute_and_flip_law(utility, epsilon / 2)
    np.testing.assert_allclose(
      _law(utility, epsilon=epsilon),
      [float(p) for p in expected],
      rtol=1e-11,
    )

  @parameterized.parameters(2_000, 30_000)
  def test_many_candidates(self, count):
    """Ties: 1 / C each. One better: a closed form of its own."""
    np.testing.assert_allclose(
      _law(np.zeros(count, int)), 1 / count, rtol=1e-11
    )
    utility = np.zeros(count, int)
    utility[0] = 1
    p = math.exp(-2)
    # P(0) = integral of (1 - p t)^(C - 1).
    best = -math.expm1(count * math.log1p(-p)) / (p * count)
    law = _law(utility, epsilon=4)
    self.assertAlmostEqual(law[0] / best, 1, delta=1e-11)
    self.assertAlmostEqual(law.sum(), 1, delta=1e-11)

  def test_probabilities_below_the_float_range_stay_finite_logs(self):
    log_law = permute_and_flip.log_law(
      np.array([0, 1]), epsilon=4000, sensitivity=1
    )
    self.assertAlmostEqual(log_law[0], -2000 - math.log(2), delta=1e-9)

  @hypothesis.settings(max_examples=40)
  @hypothesis.given(
    pairs=st.lists(
      st.tuples(st.integers(-300, 300), st.integers(-96, 96)),
      min_size=1,
      max_size=60,
    ),
    epsilon=st.fractions('1/100', 20),
  )
  def test_privacy(self, pairs, epsilon):
    """For any neighbor; `test_bound_is_attained` is the edge."""
    utility, change = map(np.array, zip(*pairs))
    logs = [
      permute_and_flip.log_law(
        values, epsilon=epsilon, sensitivity='0.96', denominator=100
      )
      for values in (utility, utility + change)
    ]
    ratio = np.abs(logs[0] - logs[1]).max()
    self.assertLessEqual(ratio, float(epsilon) + 1e-9)

  def test_bound_is_attained(self):
    count = 100_000
    utility = np.zeros(count, int)
    utility[0] = 1
    logs = [
      permute_and_flip.log_law(values, epsilon=1, sensitivity=1)
      for values in (utility, 1 - utility)
    ]
    self.assertBetween(logs[0][0] - logs[1][0], 0.99, 1)

  def test_never_worse_in_expectation_than_the_exponential_mechanism(self):
    """McKenna & Sheldon (2020), Theorem 2; equal only at a flat utility."""
    rng = np.random.default_rng(0)
    for _ in range(20):
      utility = rng.integers(0, 6, size=15)
      other = np.exp(mechanisms.log_law(utility, epsilon=2, sensitivity=1))
      self.assertGreater(
        _law(utility, epsilon=2) @ utility, other @ utility + 1e-3
      )

  @parameterized.parameters(([],), ([[0, 1]],), ([0.5, 1.0],), ([True],))
  def test_errors(self, utility):
    with self.assertRaisesRegex(ValueError, 'must be a non-empty 1-D array'):
      _law(utility)


class SamplerTest(parameterized.TestCase):
  def test_two_candidates(self):
    """P(1) = 0.6967346701 off the decision tree."""
    draw = lambda source: permute_and_flip.sample(
      np.array([0, 1]), levels=(0, 1), epsilon=1, sensitivity=1, source=source
    )
    found = sampling_checks.tree(draw, 36)
    self.assertLess(found.undecided, Fraction(1, 2**34))
    self.assertAlmostEqual(float(found.masses[1]), 0.6967346701, delta=1e-10)

  def test_epsilon_100_reaches_index_0(self):
    """73 zeros make the coin come up; one more picks it."""
    draw = lambda text: permute_and_flip.sample(
      np.array([0, 1]),
      levels=(0, 1),
      epsilon=100,
      sensitivity=1,
      source=entropy.injected(text),
    )
    self.assertEqual(draw('0' * 200).index, 0)
    self.assertEqual(draw('1' * 200).index, 1)

  def test_one_candidate_reads_nothing(self):
    drawn = permute_and_flip.sample(
      [3], levels=(3, 4), epsilon=1, sensitivity=1, source=entropy.injected('')
    )
    self.assertEqual(drawn, exact.Draw(0, certified=False, bits_used=0))

  @parameterized.parameters(
    dict(utility=np.array([[0, 1]])),
    dict(utility=np.array([], np.int64)),
    dict(utility=np.array([0.0, 1.0])),
    dict(utility=np.array([0, 7])),
    dict(epsilon='1e-13'),
    dict(epsilon=math.nan),
    dict(sensitivity=0),
    dict(levels=(1, 0)),
    dict(denominator=0),
  )
  def test_errors_come_before_any_bit(self, **changed):
    settings = dict(
      utility=np.array([0, 1]), levels=(0, 1), epsilon=1, sensitivity=1
    )
    source = entropy.injected('')
    with self.assertRaises(ValueError):
      permute_and_flip.sample(**settings | changed, source=source)

  def test_agrees_with_the_literal_algorithm(self):
    """Power 1 - 1e-9 at least against an epsilon off by a factor 2."""
    num_draws = 2_500
    levels = (0, 1, 3)
    utility = np.repeat(levels, [6, 4, 2])
    source = entropy.seeded(0, 'permute and flip')
    ours = [
      permute_and_flip.sample(
        utility, levels=levels, epsilon=1, sensitivity=1, source=source
      ).index
      for _ in range(num_draws)
    ]
    generator = random.Random(2)
    literal = [
      oracle.permute_and_flip(
        utility.tolist(), Fraction(1, 2), lambda: generator.getrandbits(1)
      )
      for _ in range(num_draws)
    ]
    laws = {
      epsilon: statistics.level_law(_law(utility, epsilon=epsilon), utility)
      for epsilon in ('0.5', 1, 2)
    }
    for draws in (ours, literal):
      counts = statistics.level_counts(np.array(draws), utility)
      self.assertFalse(statistics.chi_square_rejects(counts, laws[1]))
      for epsilon in ('0.5', 2):
        self.assertTrue(statistics.chi_square_rejects(counts, laws[epsilon]))
        power = statistics.chi_square_power(
          laws[epsilon], laws[1], num_draws=num_draws
        )
        self.assertGreater(power, 1 - 1e-9)
