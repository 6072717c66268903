"""The exact self-test: its arithmetic, its reach, and the library under it."""

import dataclasses
import fractions
import math
import os

from absl.testing import parameterized
import numpy as np
import pytest

from privjax import erm
from privjax import prng
from privjax.audit import density_ratio
from tests.oracles import erm as oracle

_LOSSES = (
  ('logistic', erm.losses.LOGISTIC),
  ('huber_hinge', erm.losses.huber_hinge(0.5)),
)
# Of each slow search; set it to 1000000 for the long one.
_NUM_TRIPLES = int(os.environ.get('PRIVJAX_TEST_TRIPLES', 100_000))


def _config(loss, **changes):
  settings = dict(regularization=0.1, row_norm=2.0, excess='clip')
  return erm.ErmConfig(loss=loss, classes=(0, 1), **(settings | changes))


def _triples(count, num_rows, num_features, row_norm=1.0):
  rng = prng.generator(0, 'density_ratio_test')
  shape = (count, num_rows + 1, num_features)
  return density_ratio.Triples(
    row_norm * rng.normal(size=shape),
    np.where(rng.random(shape[:2]) < 0.5, -1.0, 1.0),
    3 * rng.normal(size=(count, num_features)),
  )


class PartsTest(parameterized.TestCase):
  @parameterized.product(named=_LOSSES, rule=('paper', 'tight'))
  def test_against_a_density_from_finite_differences(self, named, rule):
    name, loss = named
    config = _config(loss)
    subject = density_ratio.library_subject(
      config, 1, num_rows=4, calibration=rule
    )
    numbers = erm.calibrate(
      1, loss=loss, num_rows=4, regularization=0.1, calibration=rule
    )
    triples = _triples(20, 4, 3)
    norm, determinant = density_ratio.parts(subject, triples)
    for t in range(20):
      rows = triples.features[t] / config.row_norm
      lengths = np.linalg.norm(rows, axis=1, keepdims=True)
      rows = rows / np.maximum(lengths, 1)
      ours, theirs = (
        oracle.log_density(
          name,
          rows[used],
          triples.labels[t, used],
          triples.weights[t],
          penalty=np.full(3, numbers.regularization),
          scale=2 / numbers.noise_epsilon,
        )
        for used in (slice(0, 4), slice(1, 5))
      )
      self.assertAlmostEqual(norm[t], ours[0] - theirs[0], delta=1e-8)
      self.assertAlmostEqual(determinant[t], ours[1] - theirs[1], delta=1e-6)


class SearchTest(parameterized.TestCase):
  @parameterized.product(
    named=_LOSSES, rule=('paper', 'tight'), epsilon=('1/10', 1, 5)
  )
  def test_the_library_passes(self, named, rule, epsilon):
    subject = density_ratio.library_subject(
      _config(named[1]), epsilon, num_rows=5, calibration=rule
    )
    report = density_ratio.search(
      subject, num_features=2, num_triples=3000, seed=0
    )
    self.assertEqual(report.violations, ())
    self.assertAlmostEqual(report.epsilon, float(fractions.Fraction(epsilon)))
    # The search reaches the one logarithm of the proof: all of the tight
    # bound, half of the paper's.
    reached = report.max_determinant_part / report.determinant_bound
    self.assertAlmostEqual(reached, 1 if rule == 'tight' else 0.5, delta=1e-3)
    reached = report.max_norm_part / report.norm_bound
    self.assertGreater(reached, 0.95 if named[0] == 'huber_hinge' else 0.49)

  @parameterized.product(named=_LOSSES, rule=('paper', 'tight'))
  def test_one_row_at_norm_10_of_100(self, named, rule):
    """Declared bound 10, n Lambda = 1: where c q for c q^2 breaks."""
    config = _config(named[1], regularization=0.01, row_norm=10.0)
    subject = density_ratio.library_subject(
      config, 1, num_rows=100, calibration=rule
    )
    rng = prng.generator(0, 'norm_10')
    features = 0.1 * rng.normal(size=(300, 101, 2))
    features[:, 0] = [10.0, 0.0]
    features[:150, -1] = 0.0
    features[150:, -1] = [-10.0, 0.0]
    labels = np.where(rng.random((300, 101)) < 0.5, -1.0, 1.0)
    weights = rng.normal(size=(300, 2)) * 10.0 ** rng.uniform(-3, 2, (300, 1))
    weights[::3, 0] = 1.0  # The replaced row's margin, where curvature is.
    weights[1::3, 0] = 0.0
    norm, determinant = density_ratio.parts(
      subject, density_ratio.Triples(features, labels, weights)
    )
    self.assertLessEqual(np.abs(norm + determinant).max(), 1)
    self.assertLessEqual(np.abs(norm).max(), subject.norm_bound)
    self.assertLessEqual(np.abs(determinant).max(), subject.determinant_bound)
    self.assertGreater(np.abs(determinant).max(), 0.01)

  def test_the_worst_triples_are_reported(self):
    subject = density_ratio.library_subject(
      _config(_LOSSES[1][1]), 1, num_rows=3
    )
    report = density_ratio.search(
      subject, num_features=2, num_triples=2000, seed=3
    )
    norm, _ = density_ratio.parts(subject, report.worst_norm)
    self.assertAlmostEqual(abs(norm[0]), report.max_norm_part)
    _, determinant = density_ratio.parts(subject, report.worst_determinant)
    self.assertAlmostEqual(abs(determinant[0]), report.max_determinant_part)

  def test_a_seed_is_one_search(self):
    subject = density_ratio.library_subject(
      _config(_LOSSES[0][1]), 1, num_rows=3
    )
    run = lambda seed: (
      density_ratio.search(
        subject, num_features=2, num_triples=1000, seed=seed
      ).max_norm_part
    )
    self.assertEqual(run(0), run(0))
    self.assertNotEqual(run(0), run(1))

  def test_an_undefined_density_is_a_violation(self):
    subject = density_ratio.library_subject(
      _config(_LOSSES[0][1]), 1, num_rows=3
    )
    lost = dataclasses.replace(subject, penalty_fn=lambda d: np.full(d, np.nan))
    report = density_ratio.search(
      lost, num_features=2, num_triples=1000, seed=0
    )
    self.assertEqual(report.violations, ('norm', 'determinant', 'total'))

  def test_bad_argument(self):
    subject = density_ratio.library_subject(
      _config(_LOSSES[0][1]), 1, num_rows=3
    )
    with self.assertRaisesRegex(ValueError, 'num_triples'):
      density_ratio.search(subject, num_features=2, num_triples=10, seed=0)
    with self.assertRaisesRegex(ValueError, 'excess'):
      density_ratio.library_subject(
        _config(_LOSSES[0][1], excess='raise'), 1, num_rows=3
      )


@pytest.mark.slow
class SlowSearchTest(parameterized.TestCase):
  @parameterized.product(
    named=_LOSSES, rule=('paper', 'tight'), intercept=(None, 1.0)
  )
  def test_many_triples(self, named, rule, intercept):
    subject = density_ratio.library_subject(
      _config(named[1], intercept=intercept),
      1,
      num_rows=8,
      calibration=rule,
    )
    report = density_ratio.search(
      subject, num_features=4, num_triples=_NUM_TRIPLES, seed=0
    )
    self.assertGreaterEqual(report.num_triples, 100_000)
    self.assertEqual(report.violations, ())
    self.assertTrue(math.isfinite(report.max_total))
    self.assertGreater(report.max_norm_part, 0.49 * report.norm_bound)
