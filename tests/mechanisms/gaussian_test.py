"""Calibration against numerical integration of the privacy loss."""

import fractions

from absl.testing import parameterized

from privjax.mechanisms import gaussian
from tests.oracles import placement as oracle


class ExactDeltaTest(parameterized.TestCase):
  @parameterized.product(
    sigma=(0.4, 0.6, 1.0, 3.0), epsilon=('1/10', '1', '3', '8')
  )
  def test_is_the_integral_of_the_excess(self, sigma, epsilon):
    expected = oracle.gaussian_delta(sigma, float(fractions.Fraction(epsilon)))
    found = gaussian.exact_delta(sigma, epsilon=epsilon)
    self.assertAlmostEqual(found, expected, delta=1e-11)

  def test_depends_on_sigma_over_sensitivity(self):
    self.assertEqual(
      gaussian.exact_delta(1.5, epsilon=2, sensitivity=0.5),
      gaussian.exact_delta(3.0, epsilon=2),
    )

  @parameterized.parameters((9.0, 20), (40.0, 1), (2.2, 932))
  def test_gaussian_noise_is_never_pure(self, sigma, epsilon):
    """Here the exact value underflows."""
    self.assertGreater(gaussian.exact_delta(sigma, epsilon=epsilon), 0)

  def test_tiny_noise_costs_everything(self):
    self.assertEqual(gaussian.exact_delta(1e-3, epsilon=1), 1)


class AnalyticTest(parameterized.TestCase):
  @parameterized.parameters((1.0, 0.6002), (2**0.5, 0.8489))
  def test_known_values(self, sensitivity, expected):
    found = gaussian.analytic_sigma(8, delta='1e-5', sensitivity=sensitivity)
    self.assertAlmostEqual(found, expected, 4)

  @parameterized.product(
    epsilon=('1/1000', '1/2', '8', '1000'), delta=('1/100', '1e-5', '1e-9')
  )
  def test_is_the_smallest_that_suffices(self, epsilon, delta):
    sigma = gaussian.analytic_sigma(epsilon, delta=delta)
    bound = float(fractions.Fraction(delta))
    self.assertLessEqual(gaussian.exact_delta(sigma, epsilon=epsilon), bound)
    less = gaussian.exact_delta(sigma * (1 - 1e-6), epsilon=epsilon)
    self.assertGreater(less, bound)

  @parameterized.parameters('1/100', '1/2', '99/100')
  def test_the_classic_one_is_larger_below_one(self, epsilon):
    classic = gaussian.classic_sigma(epsilon, delta='1e-5')
    self.assertGreater(classic, gaussian.analytic_sigma(epsilon, delta='1e-5'))
    self.assertLessEqual(gaussian.exact_delta(classic, epsilon=epsilon), 1e-5)

  @parameterized.parameters(9, 16, 100)
  def test_the_classic_one_is_false_for_large_epsilon(self, epsilon):
    classic = gaussian.classic_sigma(epsilon, delta='1e-5')
    self.assertGreater(gaussian.exact_delta(classic, epsilon=epsilon), 1e-5)

  def test_the_classic_value_of_the_paper(self):
    found = gaussian.classic_sigma(8, delta='1e-5', sensitivity=2**0.5)
    self.assertAlmostEqual(found, 0.8564, 4)


class ValidationTest(parameterized.TestCase):
  @parameterized.parameters(0, -1, 1001, float('inf'), float('nan'), 'x', True)
  def test_epsilon(self, epsilon):
    for call in (
      lambda: gaussian.exact_delta(1.0, epsilon=epsilon),
      lambda: gaussian.classic_sigma(epsilon, delta='1e-5'),
      lambda: gaussian.analytic_sigma(epsilon, delta='1e-5'),
    ):
      with self.assertRaisesRegex(ValueError, 'epsilon'):
        call()

  @parameterized.parameters(0, 1, '3/2', -1, float('nan'), '1e-301', '1e-400')
  def test_delta(self, delta):
    for function in (gaussian.classic_sigma, gaussian.analytic_sigma):
      with self.assertRaisesRegex(ValueError, 'delta'):
        function(1, delta=delta)

  @parameterized.parameters(0, -1.0, float('inf'), float('nan'))
  def test_sigma_and_sensitivity(self, value):
    with self.assertRaisesRegex(ValueError, 'sigma'):
      gaussian.exact_delta(value, epsilon=1)
    with self.assertRaisesRegex(ValueError, 'sensitivity'):
      gaussian.exact_delta(1.0, epsilon=1, sensitivity=value)
    with self.assertRaisesRegex(ValueError, 'sensitivity'):
      gaussian.analytic_sigma(1, delta='1e-5', sensitivity=value)
