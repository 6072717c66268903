"""The exponential mechanism's law and its seeded simulation."""

import fractions
import math

from absl.testing import parameterized
import hypothesis
import hypothesis.strategies as st
import numpy as np

from privjax import mechanisms
from privjax import prng
from tests import statistics
from tests.oracles import counterfactual as oracle

Fraction = fractions.Fraction

_RATIO_SLACK = 1e-9  # Rounding of float64 log probabilities up to about 1e3.


def _law(utility, **kwargs):
  settings = dict(epsilon=1, sensitivity=1) | kwargs
  return mechanisms.log_law(np.asarray(utility), **settings)


class ValuesTest(parameterized.TestCase):
  def test_two_candidates(self):
    probs = mechanisms.probabilities(_law([0, 1]))
    self.assertAlmostEqual(probs[1], 0.6224593312, delta=5e-11)
    self.assertAlmostEqual(probs[1], 1 / (1 + math.exp(-0.5)), delta=1e-15)

  def test_large_epsilon_keeps_the_whole_support(self):
    log_probs = _law([0, 1], epsilon=100)
    self.assertAlmostEqual(log_probs[0], -50, delta=1e-12)
    self.assertEqual(f'{math.exp(log_probs[0]):.1e}', '1.9e-22')
    self.assertAlmostEqual(log_probs[1] - log_probs[0], 50, delta=1e-12)

  def test_probabilities_below_the_float_range_stay_finite_logs(self):
    log_probs = _law([0, 1], epsilon=4000)
    self.assertEqual(mechanisms.probabilities(log_probs)[0], 0)
    self.assertAlmostEqual(log_probs[0], -2000, delta=1e-9)

  @parameterized.parameters('1', '1.0', '1e0', 1, 1.0, Fraction(1))
  def test_epsilon_is_read_by_value(self, epsilon):
    np.testing.assert_array_equal(_law([0, 1], epsilon=epsilon), _law([0, 1]))

  def test_only_the_ratio_matters(self):
    """Units, sensitivity and epsilon scale against each other exactly."""
    expected = _law([0, 3, 5], epsilon=2, sensitivity=1)
    for kwargs in (
      dict(epsilon=4, sensitivity=2),
      dict(epsilon='0.5', sensitivity='1/4'),
      dict(epsilon=200, sensitivity=1, denominator=100),
      dict(epsilon=2, sensitivity='1/100', denominator=100),
    ):
      np.testing.assert_array_equal(_law([0, 3, 5], **kwargs), expected)

  def test_shift_of_the_utility_cancels(self):
    np.testing.assert_allclose(
      _law([7, 8, 10]), _law([-1, 0, 2]), rtol=0, atol=1e-14
    )

  def test_base_measure(self):
    log_probs = _law([0, 1], log_base_measure=np.log([3, 1]))
    weights = [3, math.exp(0.5)]
    np.testing.assert_allclose(
      np.exp(log_probs), np.divide(weights, sum(weights)), rtol=1e-14
    )

  def test_a_constant_base_measure_cancels(self):
    utility = np.array([0, 2, 5])
    np.testing.assert_allclose(
      _law(utility, log_base_measure=np.full(3, 700.0)),
      _law(utility),
      rtol=0,
      atol=1e-12,
    )

  def test_valid_is_the_support(self):
    valid = np.array([[True, False], [True, True]])
    log_probs = _law([[0, 9], [1, 2]], valid=valid)
    self.assertEqual(log_probs[0, 1], -np.inf)
    np.testing.assert_allclose(log_probs[valid], _law([0, 1, 2]), rtol=1e-15)

  def test_base_measure_off_the_support_is_not_read(self):
    valid = np.array([True, False, True])
    expected = _law([0, 1, 2], valid=valid)
    for value in (np.nan, np.inf, -np.inf, 1e300):
      log_probs = _law(
        [0, 1, 2], valid=valid, log_base_measure=np.array([0, value, 0])
      )
      np.testing.assert_array_equal(log_probs, expected)

  @hypothesis.given(
    utility=st.lists(st.integers(-200, 200), min_size=1, max_size=30),
    epsilon=st.fractions(min_value='1/1000', max_value=50),
    sensitivity=st.fractions(min_value='1/100', max_value=10),
    denominator=st.integers(1, 100),
  )
  def test_any_law(self, utility, epsilon, sensitivity, denominator):
    log_probs = _law(
      utility,
      epsilon=epsilon,
      sensitivity=sensitivity,
      denominator=denominator,
    )
    values = [Fraction(units, denominator) for units in utility]
    np.testing.assert_allclose(
      mechanisms.probabilities(log_probs),
      oracle.law(values, epsilon, sensitivity),
      rtol=1e-9,
      atol=1e-300,
    )
    self.assertEqual(log_probs.dtype, np.float64)

  @hypothesis.given(
    utility=st.lists(st.integers(0, 100), min_size=2, max_size=20, unique=True)
  )
  def test_more_utility_is_more_probable(self, utility):
    order = np.argsort(utility)
    self.assertTrue((np.diff(_law(utility)[order]) > 0).all())


class PrivacyTest(parameterized.TestCase):
  @hypothesis.given(
    pairs=st.lists(
      st.tuples(
        st.integers(-1000, 1000),  # Utility, hundredths.
        st.integers(-96, 96),  # Its change to the neighbor.
        st.floats(-50, 50),  # Log base measure.
        st.booleans(),
      ),
      min_size=1,
      max_size=40,
    ),
    epsilon=st.fractions(min_value='1/100', max_value=20),
  )
  def test_any_neighbor_and_base_measure(self, pairs, epsilon):
    utility, change, base, valid = map(np.array, zip(*pairs))
    valid[0] = True
    laws = [
      _law(
        values,
        epsilon=epsilon,
        sensitivity='0.96',
        denominator=100,
        valid=valid,
        log_base_measure=base,
      )
      for values in (utility, utility + change)
    ]
    ratio = np.abs(laws[0][valid] - laws[1][valid]).max()
    self.assertLessEqual(ratio, float(epsilon) + _RATIO_SLACK)
    self.assertTrue(np.isinf(np.array(laws)[:, ~valid]).all())

  def test_the_bound_is_nearly_attained(self):
    """A bound of half the epsilon would be too small: the factor is right."""
    utility = np.zeros(100_000, np.int64)
    utility[0] = 1
    ratio = _law(utility)[0] - _law(1 - utility)[0]
    self.assertBetween(ratio, 0.999, 1)


class ErrorTest(parameterized.TestCase):
  @parameterized.named_parameters(
    ('empty', np.array([], np.int64)),
    ('float', np.array([0.0, 1.0])),
    ('bool', np.array([True, False])),
    ('nan', np.array([0, np.nan])),
    ('object', np.array([0, None])),
  )
  def test_utility(self, utility):
    with self.assertRaisesRegex(ValueError, 'utility must be a non-empty int'):
      _law(utility)

  @parameterized.product(
    name=('epsilon', 'sensitivity'),
    value=(0, -1, '0', math.nan, math.inf, 'nan', 'inf', True, 'abc', None),
  )
  def test_parameters(self, name, value):
    with self.assertRaisesRegex(ValueError, f'{name} must be .* > 0'):
      _law([0, 1], **{name: value})

  @parameterized.parameters(0, -1, 1.5, True)
  def test_denominator(self, value):
    with self.assertRaisesRegex(ValueError, 'denominator must be an integer'):
      _law([0, 1], denominator=value)

  @parameterized.parameters('valid', 'log_base_measure')
  def test_shapes(self, name):
    with self.assertRaisesRegex(
      ValueError, rf'{name} must have shape \(2, 2\)'
    ):
      _law([[0, 1], [2, 3]], **{name: np.ones(4, bool)})

  def test_empty_support(self):
    with self.assertRaisesRegex(ValueError, 'at least one candidate'):
      _law([0, 1], valid=np.zeros(2, bool))

  @parameterized.parameters(np.nan, np.inf, -np.inf)
  def test_base_measure_on_the_support(self, value):
    with self.assertRaisesRegex(ValueError, 'log_base_measure must be finite'):
      _law([0, 1], log_base_measure=np.array([0, value]))


class SimulateTest(parameterized.TestCase):
  def setUp(self):
    super().setUp()
    rng = np.random.default_rng(0)
    self.levels = rng.choice([0, 20, 70, 86, 96], size=400)
    self.laws = np.stack(
      [
        np.exp(_law(self.levels, epsilon=epsilon, denominator=100))
        for epsilon in (4, 8, 1)
      ]
    )
    self.names = [('law', index) for index in range(3)]

  def _draw(self, order, num_draws=50, seed=3):
    return mechanisms.simulate(
      prng.key(seed),
      [self.names[index] for index in order],
      self.laws[list(order)],
      num_draws=num_draws,
    )

  def test_one_name_gives_one_result(self):
    draws = self._draw([0, 1, 2])
    self.assertEqual(draws.shape, (3, 50))
    np.testing.assert_array_equal(draws, self._draw([0, 1, 2]))
    self.assertFalse((draws == self._draw([0, 1, 2], seed=4)).all())

  def test_other_laws_and_their_order_do_not_matter(self):
    draws = self._draw([0, 1, 2])
    np.testing.assert_array_equal(draws[::-1], self._draw([2, 1, 0]))
    np.testing.assert_array_equal(draws[1:2], self._draw([1]))

  def test_another_name_gives_other_draws(self):
    result = mechanisms.simulate(
      prng.key(3), self.names, self.laws[[0, 0, 0]], num_draws=50
    )
    self.assertFalse((result[0] == result[1]).all())
    self.assertFalse((result[1] == result[2]).all())

  def test_draws_stay_in_the_support(self):
    valid = np.zeros(400, bool)
    valid[[5, 17, 200]] = True
    law = np.exp(_law(self.levels, denominator=100, valid=valid))
    draws = mechanisms.simulate(
      prng.key(0), [('support',)], law[None], num_draws=2_000
    )
    self.assertEqual(set(draws.ravel()), {5, 17, 200})

  def test_wrong_shape(self):
    with self.assertRaisesRegex(ValueError, 'probs must have shape'):
      mechanisms.simulate(prng.key(0), self.names, self.laws[:2], num_draws=1)

  def test_draws_follow_the_law(self):
    """Power 1 - 1e-9 at least against an epsilon that is off by a factor 2."""
    num_draws = 4_000
    draws = self._draw([0], num_draws)[0]
    counts = statistics.level_counts(draws, self.levels)
    law = statistics.level_law(self.laws[0], self.levels)
    self.assertFalse(statistics.chi_square_rejects(counts, law))
    for epsilon in (2, 8):
      other = np.exp(_law(self.levels, epsilon=epsilon, denominator=100))
      mutant = statistics.level_law(other, self.levels)
      power = statistics.chi_square_power(mutant, law, num_draws=num_draws)
      self.assertGreater(power, 1 - 1e-9)
      self.assertTrue(statistics.chi_square_rejects(counts, mutant))


class StatisticsTest(parameterized.TestCase):
  """The helper refuses what it cannot judge."""

  def test_refuses_thin_bins(self):
    with self.assertRaisesRegex(ValueError, 'must expect 5 draws, got 1'):
      statistics.chi_square_rejects(np.array([99, 1]), np.array([0.99, 0.01]))

  def test_refuses_what_is_not_a_law(self):
    for probs in ([0.5, 0.6], [1.0, 0.0]):
      with self.assertRaisesRegex(ValueError, 'probs must be positive'):
        statistics.chi_square_rejects(np.array([50, 50]), np.array(probs))

  def test_power_is_alpha_at_the_law_itself(self):
    law = np.array([0.2, 0.3, 0.5])
    power = statistics.chi_square_power(law, law, num_draws=1_000)
    self.assertAlmostEqual(power / statistics.ALPHA, 1, delta=1e-6)
