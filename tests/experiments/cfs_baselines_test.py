"""Tests of Table 3's rows, rates and verdicts."""

import contextlib
import dataclasses
import io

from absl.testing import parameterized
import numpy as np
import pandas as pd
import pytest

from experiments import cfs_baselines
from experiments import cfs_baselines_report
from experiments import cfs_methods
from experiments import experiment as experiment_lib
from tests.experiments import harness

TINY = cfs_baselines.Config(
  seeds=(0,),
  protocols=('borderline',),
  feature_masks=('effective',),
  rhos=('0.5',),
  placements=('EdgeRand',),
  num_draws=2,
  num_steps=5,
  max_targets=1,
)


def _row(**changed):
  row = dict(
    dataset='cora',
    protocol='borderline',
    seed=0,
    feature_masks='inert',
    placement='graph',
    method='EdgeRand',
    space=cfs_methods.FIELD,
    certified=True,
    guarantee='pure 8',
    not_covered='',
    num_targets=10,
    num_draws=1,
    num_valid=4,
    total_size=20,
    currency='edges',
  )
  return row | changed


class ReportTest(parameterized.TestCase):
  def test_rates_are_pooled_over_targets(self):
    diagnosed = dict(num_explained=5, num_polluted=6, num_spurious=2)
    rows = [
      _row(**diagnosed, num_spurious_polluted=1),
      _row(
        seed=1,
        num_targets=30,
        num_valid=24,
        num_explained=10,
        num_polluted=6,
        num_spurious=6,
        num_spurious_polluted=6,
      ),
    ]
    (line,) = cfs_baselines_report.summarize(pd.DataFrame(rows)).to_dict(
      'records'
    )
    self.assertAlmostEqual(line['csr'], 28 / 40)
    self.assertAlmostEqual(line['csr_std'], np.std([0.4, 0.8], ddof=1))
    self.assertAlmostEqual(line['pollution'], 12 / 40)
    self.assertAlmostEqual(line['spurious'], 8 / 40)
    self.assertAlmostEqual(line['spurious_on_polluted'], 7 / 8)
    # Over what was explained: 20 / 5 and 20 / 10.
    self.assertAlmostEqual(line['size'], 3)

  def test_exact_rates_and_draws(self):
    rows = [
      _row(method='PrivCFS', csr=0.25, mean_size=3.5, num_valid=None),
      _row(method='PrivCF-out', num_draws=4, num_valid=30, total_size=80),
    ]
    lines = cfs_baselines_report.summarize(pd.DataFrame(rows))
    np.testing.assert_allclose(lines['csr'], [0.25, 30 / 40])
    np.testing.assert_allclose(lines['size'], [3.5, 2])
    self.assertTrue(lines['pollution'].isna().all())

  def test_one_uncertified_row_is_not_certified(self):
    rows = [_row(), _row(seed=1, certified=False)]
    lines = cfs_baselines_report.summarize(pd.DataFrame(rows))
    self.assertFalse(lines['certified'][0])

  @parameterized.parameters(
    (0.50, 0.05, 'reproduced'),
    (0.49, 0.05, 'not reproduced'),
    (0.92, 0.0, 'reproduced'),
    (0.93, 0.0, 'not reproduced'),
    (0.60, 0.13, 'inconclusive'),
  )
  def test_verdict(self, mean, error, expected):
    quote = cfs_baselines_report.Quote(
      *('3.2', 'cora', 'inert', 'EdgeRand', cfs_methods.FIELD),
      *('pollution', 0.6, 0.92),
    )
    found = cfs_baselines_report.verdict(quote, mean, error)
    self.assertEqual(found, expected)

  def test_quotes_name_methods_that_exist(self):
    known = {
      *cfs_methods.PLACEMENTS,
      *('PrivCFS', 'PrivCF-out', 'PrivCF-SGD'),
    }
    found = cfs_baselines_report.quotes()
    self.assertContainsSubset({quote.method for quote in found}, known)
    self.assertLen(set(found), len(found))

  def test_report_writes_tables_and_figures(self):
    rows = [_row(), _row(method='PrivCF-SGD', num_valid=5, certified=False)]
    folder, out = harness.temporary_folder(self), io.StringIO()
    with contextlib.redirect_stdout(out):
      cfs_baselines_report.report(None, rows, folder)
    verdicts = pd.read_csv(folder / 'paper_versus_measured.csv')
    sgd = verdicts[verdicts['method'] == 'PrivCF-SGD'].iloc[0]
    # 5 of 10 against .5, with a binomial error of .158.
    self.assertEqual(sgd['verdict'], 'inconclusive')
    self.assertIn('EdgeRand', out.getvalue())
    for name in ('baselines_inert.png', 'baselines_inert.svg', 'summary.csv'):
      self.assertGreater((folder / name).stat().st_size, 0)

  @parameterized.parameters(
    (dict(epsilon='0'), r'baseline_epsilon must be in .*, got 0'),
    (dict(delta='2'), r'delta must be in .*, got 2'),
    (dict(delta='0.' + 400 * '0' + '1'), 'delta must be >= 1e-300, got 0.00'),
    (dict(placements=('Laplace',)), r"placements must be among .*'Laplace'"),
    (dict(protocols=('all',)), r"protocols must be among .*, got 'all'"),
    (dict(num_steps=0), 'num_steps must be >= 1, got 0'),
    (dict(max_targets=0), 'max_targets must be >= 1, got 0'),
  )
  def test_bad_config(self, changed, message):
    with self.assertRaisesRegex(ValueError, message):
      dataclasses.replace(TINY, **changed)


@pytest.mark.slow
class RunTest(parameterized.TestCase):
  def test_certification_and_counts(self):
    rows = cfs_baselines.run_unit(TINY, 'embedded borderline 0', None)
    again = cfs_baselines.run_unit(TINY, 'embedded borderline 0', None)
    digest = experiment_lib.value_digest
    self.assertEqual(*(digest(r, frozenset()) for r in (rows, again)))
    certified = {(r['method'], r['space']) for r in rows if r['certified']}
    universe = 'public universe, rho 0.5'
    self.assertEqual(
      certified,
      {
        ('EdgeRand', cfs_methods.FIELD),
        ('EdgeRand', universe),
        ('PrivCFS', universe),
        ('public only', universe),
        ('random deletion', universe),
        ('PrivCF-SGD', universe),
        ('randomized response', universe),
      },
    )
    for row in rows:
      if 'num_valid' in row:
        most = row['num_targets'] * row['num_draws']
        self.assertBetween(row['num_valid'], 0, most)
      if not row['certified']:
        self.assertNotEmpty(row['not_covered'])
