"""Calibration against the formulas, and the corners of its domain."""

import fractions
import math

from absl.testing import parameterized

from privjax import erm
from tests.erm import cases

Fraction = fractions.Fraction


class CalibrationTest(parameterized.TestCase):
  @parameterized.product(
    named=cases.LOSSES,
    epsilon=('1/10', '1/2', 2, 5),
    regularization=(1e-2, 1e-3, 1e-5, 1e-7),
  )
  def test_paper(self, named, epsilon, regularization):
    _, loss = named
    n, total = 746, float(Fraction(epsilon))
    found = erm.calibrate(
      epsilon,
      loss=loss,
      num_rows=n,
      regularization=regularization,
      calibration='paper',
    )
    noise = total - 2 * math.log(1 + loss.curvature / (n * regularization))
    extra = 0.0
    if noise <= 0:
      extra = loss.curvature / (n * (math.exp(total / 4) - 1)) - regularization
      noise = total / 2
    self.assertAlmostEqual(found.noise_epsilon / noise, 1, delta=1e-9)
    self.assertAlmostEqual(found.extra_regularization, extra, delta=1e-9)
    self.assertEqual(found.epsilon, Fraction(epsilon))

  @parameterized.product(
    named=cases.LOSSES, epsilon=('1/100', 1, 8), regularization=(1.0, 1e-6)
  )
  def test_tight_spends_exactly_one_logarithm(
    self, named, epsilon, regularization
  ):
    _, loss = named
    found = erm.calibrate(
      epsilon, loss=loss, num_rows=50, regularization=regularization
    )
    log = math.log1p(loss.curvature / (50 * found.regularization))
    self.assertAlmostEqual(found.slack / log, 1, delta=1e-6)
    # Rounded to the safe side.
    self.assertGreaterEqual(found.slack, log)
    self.assertLessEqual(log, float(Fraction(epsilon)) / 10)
    self.assertAlmostEqual(found.noise_scale, 2 / found.noise_epsilon)

  def test_the_published_dip_is_a_small_noise_epsilon(self):
    numbers = dict(loss=cases.HINGE, num_rows=746, regularization=1e-3)
    paper = erm.calibrate(2, **numbers, calibration='paper')
    self.assertAlmostEqual(paper.noise_epsilon, 0.3, delta=5e-3)
    tight = erm.calibrate(2, **numbers)
    self.assertGreater(tight.noise_epsilon, 1.7)

  def test_tiny_regularizations_coincide_once_both_are_raised(self):
    numbers = [
      erm.calibrate(
        1,
        loss=cases.LOGISTIC,
        num_rows=700,
        regularization=value,
        calibration='paper',
      )
      for value in (1e-5, 1e-7)
    ]
    self.assertGreater(numbers[0].extra_regularization, 0)
    self.assertAlmostEqual(
      numbers[0].regularization, numbers[1].regularization, delta=1e-12
    )
    self.assertEqual(numbers[0].noise_epsilon, numbers[1].noise_epsilon)

  @parameterized.parameters('paper', 'tight')
  def test_extreme_epsilons_stay_finite(self, rule):
    for epsilon in (Fraction(1, 2**40), 10**4):
      found = erm.calibrate(
        epsilon,
        loss=cases.HINGE,
        num_rows=1,
        regularization=1e-300,
        calibration=rule,
      )
      self.assertTrue(0 < found.noise_epsilon < math.inf)
      self.assertTrue(0 < found.regularization < math.inf)
      self.assertGreater(found.slack, 0)

  @parameterized.parameters(
    dict(epsilon=0),
    dict(epsilon=-1),
    dict(epsilon=float('nan')),
    dict(epsilon=float('inf')),
    dict(epsilon=10**4 + 1),
    dict(epsilon=10**400),
    dict(epsilon=Fraction(1, 2**40 + 1)),
    dict(epsilon='1e-400'),
    dict(regularization=0),
    dict(regularization=-1e-3),
    dict(regularization=float('nan')),
    dict(num_rows=0),
    dict(num_rows=2.5),
    dict(calibration='loose'),
  )
  def test_bad_argument(self, **bad):
    good = dict(epsilon=1, loss=cases.LOGISTIC, num_rows=10, regularization=0.1)
    erm.calibrate(**good)
    with self.assertRaisesRegex(ValueError, next(iter(bad))):
      erm.calibrate(**(good | bad))
