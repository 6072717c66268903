"""Every mutant is caught, and what it was made from passes the same check."""

from absl.testing import parameterized
import numpy as np

from privjax import erm
from privjax import prng
from privjax.audit import density_ratio
from tests import mutants_erm
from tests.erm import cases

_RULES = ('paper', 'tight')
# The part of the density ratio that must be found guilty.
_CHARGES = {
  'doubled_noise_epsilon': 'norm',
  'missing_slack': 'determinant',
  'unclipped_rows': 'determinant',
  'unpenalized_intercept': 'determinant',
  'curvature_linear_in_the_norm': 'determinant',
  'gamma_of_lower_shape': 'norm',
}


def _report(subject):
  return density_ratio.search(subject, num_features=2, num_triples=800, seed=0)


class SubjectsTest(parameterized.TestCase):
  @parameterized.product(
    name=sorted(mutants_erm.SUBJECTS),
    case=((cases.LOGISTIC, 'paper'), (cases.HINGE, 'tight')),
  )
  def test_is_caught(self, name, case):
    report = _report(mutants_erm.SUBJECTS[name](*case))
    self.assertIn(_CHARGES[name], report.violations)

  @parameterized.product(
    named=cases.LOSSES,
    rule=_RULES,
    row_norm=(1.0, 10.0),
    intercept=(None, 1.0),
  )
  def test_the_library_passes(self, named, rule, row_norm, intercept):
    subject = mutants_erm.library(named[1], rule, row_norm, intercept)
    self.assertEqual(_report(subject).violations, ())

  def test_every_mutant_is_charged(self):
    self.assertEqual(set(_CHARGES), set(mutants_erm.SUBJECTS))

  def test_the_total_alone_would_miss_a_doubled_noise_epsilon(self):
    subject = mutants_erm.doubled_noise_epsilon(cases.LOGISTIC, 'paper')
    report = _report(subject)
    self.assertEqual(report.violations, ('norm',))
    self.assertLess(report.max_total, report.epsilon)


def _distinct_noise(noise_fn) -> bool:
  """Whether two folds' releases hold different noise, read off the weights.

  The noise is recovered from released weights and rows, as an attacker who
  knows all rows would: equal vectors tie two releases to one table.
  """
  features, labels = cases.table(42)
  rows = erm.unit_rows(features, labels, cases.config())
  masks = np.arange(42)[None] % 3 != np.arange(3)[:, None]
  numbers = erm.calibrate(
    1, loss=cases.LOGISTIC, num_rows=28, regularization=0.1
  )
  noise = noise_fn(
    prng.key(0), [(1, 1, fold, 0) for fold in range(3)], dimension=4
  )
  recovered = []
  for mask, b in zip(masks, noise):
    weights, _ = erm.single.solve(
      rows.signed[mask],
      b * numbers.noise_scale / 28,
      loss=cases.LOGISTIC,
      regularization=numbers.regularization,
    )
    slopes = np.asarray(cases.LOGISTIC.first(rows.signed[mask] @ weights))
    pull = slopes @ rows.signed[mask]
    recovered.append(-28 * numbers.regularization * weights - pull)
  gaps = [
    np.linalg.norm(recovered[i] - recovered[j])
    for i, j in ((0, 1), (0, 2), (1, 2))
  ]
  return min(gaps) > 1e-6


class FoldsTest(parameterized.TestCase):
  def test_noise_reused_across_folds_is_caught(self):
    self.assertFalse(_distinct_noise(mutants_erm.noise_reused_across_folds))

  def test_the_library_passes(self):
    self.assertTrue(_distinct_noise(erm.cell_noise))
