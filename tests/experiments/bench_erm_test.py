"""Tests of the benchmark's peers and report; nothing here measures time."""

import contextlib
import dataclasses
import io

from absl.testing import parameterized
import numpy as np
import pandas as pd

from experiments import bench_erm
from experiments import dp_accuracy_fits
from experiments import experiment as experiment_lib
from privjax import erm
from privjax import prng
from tests.experiments import harness

TINY = bench_erm.Config(
  regularizations=('0.01',), epsilons=('0.5', '2'), num_draws=2, num_rounds=1
)
MEASURED = bench_erm.EXPERIMENT.measured


def _problem(model):
  return dp_accuracy_fits.load_problem('breast_cancer', model, 0, None)


class PeersTest(parameterized.TestCase):
  @parameterized.parameters('svm', 'lr')
  def test_lbfgs_solves_the_cells_of_the_sweep(self, model):
    problem = _problem(model)
    loss = dp_accuracy_fits.MODELS[model]
    fits = bench_erm._sweep(TINY, problem)
    distinct, counts = bench_erm._distinct(problem)
    signed = problem.rows.signed[problem.train[0]]
    self.assertEqual(counts.sum(), len(signed))
    cells = list(bench_erm._perturbed(TINY, problem))
    self.assertLen(cells, 2)
    for j, (linear, penalty) in enumerate(cells):
      self.assertGreater(np.linalg.norm(linear), 0)
      for rows, number in ((signed, np.ones(len(signed))), (distinct, counts)):
        found = bench_erm.lbfgs(rows, number, linear, penalty, loss=loss)
        # Two gradients of norm 1e-8 at most, over the penalty.
        np.testing.assert_allclose(
          found, fits.weights[0, j, 0, 0], rtol=0, atol=2e-8 / penalty
        )

  def test_newton_cholesky_solves_the_limit_without_noise(self):
    problem = _problem('lr')
    signed = problem.rows.signed[problem.train[0]]
    labels = problem.labels[problem.train[0]]
    found = bench_erm.newton_cholesky(signed * labels[:, None], labels, 0.01)
    fits = erm.sweep(
      problem.rows,
      problem.train[:1],
      loss=dp_accuracy_fits.MODELS['lr'],
      epsilons=(None,),
      regularizations=(0.01,),
      num_draws=1,
      key=prng.key(0),
    )
    np.testing.assert_allclose(
      found, fits.weights[0, 0, 0, 0], rtol=0, atol=1e-5
    )


class ReportTest(parameterized.TestCase):
  def test_times_a_sweep_per_fit(self):
    common = dict(dataset='d', model='lr')
    rows = [
      common
      | dict(name='sweep, compiling included', num_fits=1000, seconds=2.0),
      common | dict(name='sweep, warm', num_fits=1000, seconds=1.0),
      common | dict(name='peer', num_fits=10, seconds=1.0),
    ]
    folder, out = harness.temporary_folder(self), io.StringIO()
    with contextlib.redirect_stdout(out):
      bench_erm.report(TINY, rows, folder)
    table = pd.read_csv(folder / 'summary.csv')
    np.testing.assert_allclose(table['times_cold'], [1, 0.5, 50])
    np.testing.assert_allclose(table['times_warm'], [2, 1, 100])
    np.testing.assert_allclose(table['milliseconds_per_fit'], [2, 1, 100])
    self.assertIn('d: 1,000 fits in 2.0 s', out.getvalue())

  @parameterized.parameters(
    (dict(seed=-1), r'seeds must be in .*, got -1'),
    (dict(datasets=('iris',)), r"datasets must be among .*, got 'iris'"),
    (dict(epsilons=('0',)), r'epsilons must be in .*, got 0'),
    (dict(regularizations=('0',)), r'regularizations must be in .*, got 0'),
  )
  def test_bad_config(self, changed, message):
    with self.assertRaisesRegex(ValueError, message):
      dataclasses.replace(TINY, **changed)


class RunTest(parameterized.TestCase):
  def test_two_runs_decide_alike(self):
    first, second = (
      bench_erm.run_unit(TINY, 'breast_cancer lr', None) for _ in range(2)
    )
    self.assertEqual(*map(experiment_lib.decision_digest, (first, second)))
    self.assertEqual(
      *(experiment_lib.value_digest(rows, MEASURED) for rows in (first, second))
    )
    # 10 folds of 569 rows, 1 Lambda, 2 epsilons and 'none', 2 draws.
    self.assertEqual(first[0]['num_fits'], 10 * 1 * 3 * 2)
    self.assertBetween(first[0]['num_correct'], 6 * 569 * 0.5, 6 * 569)
    names = [row['name'] for row in first]
    self.assertIn('scikit-learn newton-cholesky', names)
    self.assertLen(set(names), len(names))
    for row in first:
      self.assertGreater(row['seconds'], 0)
      self.assertLessEqual(row['residual'], bench_erm.TOLERANCE)
