"""Tests of the benchmark's rows and report; nothing here measures time."""

import contextlib
import dataclasses
import io
import json

from absl.testing import parameterized
import numpy as np
import pandas as pd
import pytest

from experiments import bench_evaluation
from experiments import experiment as experiment_lib
from tests.experiments import harness

TINY = bench_evaluation.Config(
  num_neighbors=3, num_rounds=1, num_sampled=2, max_targets=2
)
MEASURED = bench_evaluation.EXPERIMENT.measured


class FloorTest(parameterized.TestCase):
  def test_every_form_computes_the_same(self):
    args = bench_evaluation._random_operands((3, 5, 4), 6, 2, np.float64)
    p, c, w, z, kernel = args
    hidden = np.maximum(p[:, :, None] + c[..., None, None] * z[None, None], 0)
    wanted = (w[..., None, None] * hidden).sum(axis=1) @ kernel
    self.assertEqual(wanted.shape, (3, 5, 2))
    for name, form in bench_evaluation._FORMS.items():
      np.testing.assert_allclose(form(*args), wanted, rtol=1e-12, err_msg=name)


class ReportTest(parameterized.TestCase):
  def test_ratios_to_the_fastest_floor(self):
    row = dict(dataset='embedded', dtype='float64', num_candidates=100)
    rows = [
      row | dict(kind='floor', name='slow', seconds=0.5),
      row | dict(kind='floor', name='fast', seconds=0.25),
      row | dict(kind='floor', name='f32', seconds=0.1, dtype='float32'),
      row | dict(kind='evaluation', name='call', seconds=0.5),
      row | dict(kind='sweep', name='all', seconds=2.0),
    ]
    folder, out = harness.temporary_folder(self), io.StringIO()
    with contextlib.redirect_stdout(out):
      bench_evaluation.report(TINY, rows, folder)
    table = pd.read_csv(folder / 'summary.csv')
    np.testing.assert_allclose(
      table['ratio_to_floor'], [2, 1, 1, 2, float('nan')]
    )
    np.testing.assert_allclose(
      table['candidates_per_second'], [200, 400, 1000, 200, 50]
    )
    self.assertIn('ratio_to_floor', out.getvalue())
    self.assertRegex(out.getvalue(), r'evaluation +call .* 2\.00\n')

  def test_bad_seed(self):
    with self.assertRaisesRegex(ValueError, r'seeds must be in .*, got -1'):
      dataclasses.replace(TINY, seed=-1)


@pytest.mark.slow
class RunTest(parameterized.TestCase):
  def test_two_runs_decide_alike(self):
    runs = [
      [
        row
        for rows in experiment_lib.run(bench_evaluation.EXPERIMENT, TINY)
        for row in rows
      ]
      for _ in range(2)
    ]
    self.assertEqual(*map(experiment_lib.decision_digest, runs))
    self.assertEqual(
      *(experiment_lib.value_digest(rows, MEASURED) for rows in runs)
    )
    rows = json.loads(json.dumps(runs[0]))
    kinds = [row['kind'] for row in rows]
    self.assertEqual(kinds.count('floor'), 2 * len(bench_evaluation._FORMS))
    self.assertEqual(kinds.count('evaluation'), 2 * 2)
    self.assertEqual(kinds.count('one forward per candidate'), 2)
    self.assertEqual(kinds.count('sweep'), 1)
    # The two reference evaluators, on one sample, flip alike.
    sampled = {r['num_flips'] for r in rows if 'num_sampled' in r}
    self.assertLen(sampled, 1)
    for row in rows:
      # A slope between two tiny samples may be 0.
      self.assertGreaterEqual(row['seconds'], 0)
