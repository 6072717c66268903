"""Tests of the accuracy sweep: rows against SciPy, noise, grid, resuming."""

import collections
import dataclasses
import fractions
import math
import os
import unittest.mock

from absl.testing import parameterized
import numpy as np
import pandas as pd
import pytest
from scipy import optimize
from scipy import special

from experiments import dp_accuracy
from experiments import dp_accuracy_fits
from experiments import dp_accuracy_report
from experiments import erm_paper_values
from experiments import experiment as experiment_lib
from experiments import registry
from experiments import replay
from privjax import erm
from privjax import prng
from privjax.data import sources
from tests.experiments import harness

Fraction = fractions.Fraction

_DATA_DIR = os.environ.get(sources.DATA_DIR_VARIABLE)

TINY = dp_accuracy.Config(
  seeds=(0,),
  models=('lr',),
  regularizations=('0.01', '0.00001'),
  epsilons=('0.5', 'none', '8'),
  num_draws=2,
)


def _run(config, data_dir=None):
  units = experiment_lib.run(dp_accuracy.EXPERIMENT, config, data_dir)
  return [row for rows in units for row in rows]


def _replace(**fields):
  return dataclasses.replace(TINY, **fields)


def _cell(rows, **fields):
  """Returns the one row whose fields have these values."""
  (row,) = [r for r in rows if all(r[k] == v for k, v in fields.items())]
  return row


def _key(row):
  fields = ('dataset', 'model', 'seed', 'calibration', 'noise')
  return tuple(row[f] for f in (*fields, 'regularization', 'epsilon'))


def _value_and_gradient(weights, rows, penalty, linear, model):
  """J of the module's docstring in plain NumPy, for signed rows."""
  z = rows @ weights
  if model == 'lr':
    value, slope = np.logaddexp(0, -z), -special.expit(-z)
  else:
    slope = -np.clip(1.5 - z, 0, 1)
    value = np.where(z < 0.5, 1 - z, slope**2 / 2)
  return (
    value.mean() + penalty / 2 * weights @ weights + linear @ weights,
    rows.T @ slope / len(rows) + penalty * weights + linear,
  )


def _solve(rows, penalty, linear, model):
  result = optimize.minimize(
    _value_and_gradient,
    np.zeros(rows.shape[1]),
    (rows, penalty, linear, model),
    jac=True,
    method='BFGS',
    options={'gtol': 1e-9},
  )
  return result.x


def _oracle_counts(row, num_draws):
  """Counts per draw by NumPy's objective and SciPy's minimizer."""
  model, rule = row['model'], row['calibration']
  problem = dp_accuracy_fits.load_problem(
    'breast_cancer', model, row['seed'], None
  )
  labels, features = problem.labels, problem.rows.signed
  features = features * labels[:, None]
  regularization = Fraction(row['regularization'])
  counts = []
  for draw in range(num_draws):
    right = 0
    for fold in range(10):
      train = problem.train[fold]
      penalty, linear = float(regularization), np.zeros(features.shape[1])
      if row['epsilon'] != 'none':
        calibrated = erm.calibrate(
          row['epsilon'],
          loss=dp_accuracy_fits.MODELS[model],
          num_rows=int(train.sum()),
          regularization=float(regularization),
          calibration=rule,
        )
        named = regularization
        if calibrated.extra_regularization > 0:
          named = Fraction(dp_accuracy_fits.LEAST)
        (noise,) = erm.cell_noise(
          prng.key(row['seed']),
          [(named, Fraction(row['epsilon']), fold, draw)],
          dimension=features.shape[1],
          names=('breast_cancer', model, rule),
          noise=row['noise'],
        )
        penalty = calibrated.regularization
        linear = noise * calibrated.noise_scale / train.sum()
      signed = features[train] * labels[train][:, None]
      weights = _solve(signed, penalty, linear, model)
      predicted = np.where(features[~train] @ weights > 0, 1, -1)
      right += int((predicted == labels[~train]).sum())
    counts.append(right)
  return counts


class RowsTest(parameterized.TestCase):
  @classmethod
  def setUpClass(cls):
    super().setUpClass()
    cls.config = _replace(
      models=('svm', 'lr'), regularizations=('0.01', '0.00001', '0.0000001')
    )
    cls.rows = _run(cls.config)

  def test_one_row_per_cell(self):
    self.assertLen(self.rows, 2 * (3 + 2 * 2 * 3 * 2))
    self.assertLen({_key(row) for row in self.rows}, len(self.rows))

  def test_values_are_plain(self):
    for row in self.rows:
      for name, value in row.items():
        self.assertIn(type(value), (int, bool, str, float), name)

  def test_counts_are_of_one_set_of_draws(self):
    for row in self.rows:
      draws, total = row['num_draws'], row['num_correct']
      self.assertEqual(draws, 1 if row['epsilon'] == 'none' else 2)
      self.assertBetween(row['least_correct'], 0, row['most_correct'])
      self.assertLess(row['most_correct'], row['num_rows'])
      # Two draws at most, so that the extremes are the draws.
      drawn = [row['least_correct'], row['most_correct']][:draws]
      self.assertEqual(total, sum(drawn))
      self.assertEqual(row['sum_squares'], sum(c * c for c in drawn))
      self.assertLess(row['residual'], 1e-10)
      self.assertIs(row['certified'], False)
    self.assertEqual({row['majority_rows'] for row in self.rows}, {357})

  @parameterized.parameters(
    dict(model='lr', epsilon='none', regularization='0.01'),
    dict(model='svm', epsilon='none', regularization='0.01'),
    dict(model='lr', epsilon='8', noise='fresh', calibration='paper'),
    dict(model='lr', epsilon='0.5', noise='shared', calibration='tight'),
    dict(model='svm', epsilon='8', noise='fresh', calibration='tight'),
    dict(model='svm', epsilon='0.5', noise='shared', calibration='paper'),
  )
  def test_counts_equal_those_of_scipy(self, **cell):
    row = _cell(self.rows, **({'regularization': '0.01'} | cell))
    counts = _oracle_counts(row, row['num_draws'])
    self.assertEqual(sum(counts), row['num_correct'])
    self.assertEqual(max(counts), row['most_correct'])

  def test_equal_where_delta_is_positive_at_both(self):
    pairs = dp_accuracy_report.equal_cells(pd.DataFrame(self.rows))
    # At epsilon 8 the logistic loss, with its lesser curvature, needs none.
    cells = collections.Counter(zip(pairs['model'], pairs['epsilon']))
    wanted = {('svm', '0.5'): 2, ('svm', '8'): 2, ('lr', '0.5'): 2}
    self.assertEqual(cells, wanted)
    self.assertTrue(pairs['equal'].all())
    self.assertLess(pairs['mechanism_gap'].max(), 1e-9)

  @parameterized.parameters(*erm.sweeps.NOISES)
  def test_rows_differ_where_delta_is_zero(self, noise):
    cell = dict(model='lr', noise=noise, calibration='paper', epsilon='8')
    one = _cell(self.rows, **cell, regularization='0.01')
    other = _cell(self.rows, **cell, regularization='0.0000001')
    self.assertEqual((one['num_extra'], other['num_extra']), (0, 10))
    self.assertAlmostEqual(one['noise_epsilon'], 7.905, places=3)
    self.assertAlmostEqual(other['noise_epsilon'], 4)
    self.assertNotEqual(one['sum_squares'], other['sum_squares'])

  def test_noise_arms_and_calibrations_draw_apart(self):
    for model in self.config.models:
      sums = {
        row['sum_squares']
        for row in self.rows
        if row['model'] == model
        and (row['regularization'], row['epsilon']) == ('0.01', '0.5')
      }
      self.assertLen(sums, 4)


class MechanismTest(parameterized.TestCase):
  # Why cells with Delta > 0 may be fitted at another Lambda.
  @parameterized.product(rule=('paper', 'tight'), model=('svm', 'lr'))
  def test_with_delta_the_fit_does_not_depend_on_lambda(self, rule, model):
    problem = dp_accuracy_fits.load_problem('breast_cancer', model, 0, None)
    signed = problem.rows.signed[problem.train[0]]
    noise = np.linspace(-3, 4, signed.shape[1])
    fits = []
    for text in (dp_accuracy_fits.LEAST, '0.0000001', '0.00001'):
      numbers = dp_accuracy_fits.mechanism(problem, rule, text, '1')
      self.assertEqual(numbers.num_extra, 10)
      weights, _ = erm.single.solve(
        signed,
        2 * noise / numbers.noise_epsilon / len(signed),
        loss=dp_accuracy_fits.MODELS[model],
        regularization=numbers.total_regularization,
      )
      fits.append(weights)
    np.testing.assert_allclose(fits, [fits[0]] * 3, rtol=1e-7)

  def test_the_least_lambda_has_delta_where_any_has(self):
    problem = dp_accuracy_fits.load_problem('breast_cancer', 'lr', 0, None)
    for rule in ('paper', 'tight'):
      for epsilon in ('0.1', '8', '30', '60'):
        extra = [
          dp_accuracy_fits.mechanism(problem, rule, text, epsilon).num_extra
          for text in (dp_accuracy_fits.LEAST, '0.0000001', '0.001', '0.01')
        ]
        self.assertEqual(extra, sorted(extra, reverse=True))

  def test_a_tie_predicts_the_negative_label(self):
    problem = dp_accuracy_fits.load_problem('breast_cancer', 'lr', 0, None)
    zero = np.zeros((10, 3, problem.rows.dimension))
    negative = int((problem.labels == -1).sum())
    counts = dp_accuracy_fits.num_correct(problem, zero)
    self.assertEqual(counts.tolist(), [negative] * 3)

  def test_a_row_is_predicted_by_the_fit_that_did_not_see_it(self):
    problem = dp_accuracy_fits.load_problem('breast_cancer', 'lr', 0, None)
    self.assertEqual(problem.train.sum(axis=0).tolist(), [9] * 569)
    # Only fold 3 predicts anything but ties, and it is right on its own rows.
    weights = np.zeros((10, 1, problem.rows.dimension))
    fitted = _solve(problem.rows.signed, 1e-6, np.zeros(weights.shape[2]), 'lr')
    weights[3, 0] = fitted
    held = ~problem.train[3]
    right = problem.rows.signed[held] @ fitted > 0
    ties = problem.labels[~held] == -1
    self.assertEqual(
      dp_accuracy_fits.num_correct(problem, weights)[0],
      right.sum() + ties.sum(),
    )


class GridTest(parameterized.TestCase):
  def test_a_cell_does_not_depend_on_the_grid_around_it(self):
    around = _replace(
      seeds=(1, 0),
      models=('svm', 'lr'),
      regularizations=('0.00001', '0.1', '0.01', '0.0000001'),
      epsilons=('8', '1/3', 'none', '0.5'),
      calibrations=('tight', 'paper'),
      noises=('shared', 'fresh'),
    )
    wide = {_key(row): row for row in _run(around)}
    for row in _run(TINY):
      other = wide[_key(row)]
      for name, value in row.items():
        if name == 'residual':
          continue  # Rounding; no decision depends on it.
        self.assertEqual(value, other[name], name)

  def test_more_draws_keep_the_first(self):
    def draws(num_draws):
      rows = _run(_replace(num_draws=num_draws, epsilons=('8',)))
      return _cell(
        rows, regularization='0.01', calibration='paper', noise='fresh'
      )

    one, two = draws(1), draws(2)
    self.assertIn(
      one['num_correct'], (two['least_correct'], two['most_correct'])
    )

  def test_another_seed_has_its_own_folds_and_noise(self):
    config = _replace(
      seeds=(1,),
      regularizations=('0.01',),
      epsilons=('0.5',),
      calibrations=('paper',),
      noises=('fresh',),
    )
    (row,) = _run(config)
    counts = _oracle_counts(row, row['num_draws'])
    self.assertEqual(sum(counts), row['num_correct'])

  def test_units_are_distinct(self):
    names = dp_accuracy.unit_names(dp_accuracy.Config())
    self.assertLen(set(names), len(names))
    self.assertLen(names, 2 * 5)

  def test_only_the_non_private_limit(self):
    rows = _run(_replace(epsilons=('none',)))
    self.assertEqual([row['epsilon'] for row in rows], ['none'] * 2)


class ConfigTest(parameterized.TestCase):
  @parameterized.named_parameters(
    ('epsilon_zero', dict(epsilons=('0',)), r'epsilons must be in .* got 0'),
    ('epsilon_negative', dict(epsilons=('-2',)), 'epsilons must .* got -2'),
    ('epsilon_inf', dict(epsilons=('inf',)), "epsilons: .* got 'inf'"),
    ('epsilon_spelling', dict(epsilons=('1.0',)), r"epsilons must .*'1.0'"),
    ('no_epsilon', dict(epsilons=()), 'epsilons must be distinct'),
    ('none_twice', dict(epsilons=('none',) * 2), 'epsilons must be distinct'),
    (
      'none_twice_among_others',
      dict(epsilons=('none', '1', 'none')),
      'epsilons must be distinct',
    ),
    ('lambda_zero', dict(regularizations=('0',)), 'regularizations .* got 0'),
    (
      'lambda_negative',
      dict(regularizations=('-0.1',)),
      'regularizations must be .* got -0.1',
    ),
    (
      'lambda_tiny',
      dict(regularizations=('0.0000000001',)),
      'regularizations must be >= 0.000000001, got 0.0000000001',
    ),
    ('seed_wraps', dict(seeds=(2**32,)), 'seeds must be .* got 4294967296'),
    ('dataset', dict(datasets=('cora',)), "datasets must .* got 'cora'"),
    ('model', dict(models=('tree',)), "models must .* got 'tree'"),
    ('rule', dict(calibrations=('loose',)), "calibrations must .*'loose'"),
    ('noise', dict(noises=('no',)), "noises must .* got 'no'"),
    ('num_draws', dict(num_draws=0), 'num_draws must be >= 1, got 0'),
  )
  def test_errors_name_argument_and_value(self, fields, message):
    with self.assertRaisesRegex(ValueError, f'^{message}'):
      _replace(**fields)


class MainTest(parameterized.TestCase):
  ARGUMENTS = (
    '--smoke',
    '--models=lr',
    '--regularizations=1e-2,1e-5',
    '--fit_epsilons=0.50,none,8.0',
  )

  def setUp(self):
    super().setUp()
    self.out = harness.temporary_folder(self)

  def test_run_again_and_replay(self):
    arguments = (*self.ARGUMENTS, f'--out_dir={self.out}')
    first = harness.call(dp_accuracy.main, *arguments)
    self.assertEqual(first.code, 0, first.err)
    self.assertIn("breast_cancer, LR, 'paper' calibration, fresh", first.out)
    self.assertIn('cost 10\nepsilon by basic composition', first.out)
    self.assertIn('NOT COVERED', first.out)
    self.assertNotIn('Published', first.out)
    folder = harness.only(self.out, 'rows.jsonl').parent
    for name in ('summary.csv', 'manifest.json'):
      self.assertGreater((folder / name).stat().st_size, 0)
    for name in ('accuracy', 'gain'):
      for suffix in ('.png', '.svg'):
        self.assertTrue((folder / name).with_suffix(suffix).exists())
    # The same config by hand, and the same rows.
    digest = experiment_lib.config_hash(TINY)
    self.assertEqual(folder, self.out / 'dp_accuracy' / digest)
    rows = [
      {k: v for k, v in r.items() if k != 'unit'}
      for r in harness.read_rows(folder)
    ]
    self.assertEqual(rows, _run(TINY))
    again = harness.call(dp_accuracy.main, *arguments)
    self.assertEqual((again.code, again.out), (0, first.out))
    outcome = harness.call(
      replay.main, f'--manifest={folder / "manifest.json"}'
    )
    self.assertEqual(outcome.out, 'same decisions; same values\n')

  def test_the_flags_of_other_experiments_are_not_the_default(self):
    seen = []
    silent = dataclasses.replace(
      registry.load('dp_accuracy'),
      inputs=lambda config, data_dir: seen.append(config) or {},
      unit_names=lambda config: [],
      report=lambda *args: None,
    )
    self.enter_context(
      unittest.mock.patch.object(dp_accuracy, 'EXPERIMENT', silent)
    )
    harness.call(dp_accuracy.main, f'--out_dir={self.out}')
    harness.call(
      dp_accuracy.main,
      f'--out_dir={self.out}',
      '--datasets=compas',
      '--seeds=7',
    )
    chosen = dataclasses.replace(
      dp_accuracy.Config(), datasets=('compas',), seeds=(7,)
    )
    self.assertEqual(seen, [dp_accuracy.Config(), chosen])

  @parameterized.parameters(
    ('--fit_epsilons=0', 'epsilons must be in (0, 10000], got 0'),
    ('--fit_epsilons=one', "fit_epsilons: expected an exact number, got 'one'"),
    ('--regularizations=0', 'regularizations must be in (0, 1], got 0'),
    ('--datasets=cora', 'datasets must be among'),
    ('--seeds=x', "seeds must be integers, got ['x']"),
    ('--fit_draws=0', 'num_draws must be >= 1, got 0'),
  )
  def test_bad_usage(self, argument, message):
    outcome = harness.call(dp_accuracy.main, argument, f'--out_dir={self.out}')
    self.assertEqual(outcome.code, 2)
    self.assertIn(message, outcome.err)
    self.assertEmpty(list(self.out.iterdir()))

  def test_interrupted_run_ends_like_a_whole_one(self):
    config = _replace(seeds=(0, 1, 2), epsilons=('8', 'none'))
    silent = dataclasses.replace(
      dp_accuracy.EXPERIMENT, report=lambda *args: None
    )
    num_units = 0

    def run_unit(*args):
      nonlocal num_units
      num_units += 1
      if num_units == 3:
        raise KeyboardInterrupt
      return dp_accuracy.run_unit(*args)

    broken = dataclasses.replace(silent, run_unit=run_unit)
    torn, whole = self.out / 'torn', self.out / 'whole'
    outcome = harness.execute(broken, config, f'--out_dir={torn}')
    self.assertEqual(outcome.code, 130)
    outcome = harness.execute(silent, config, f'--out_dir={torn}')
    self.assertEqual(outcome.code, 0, outcome.err)
    harness.execute(silent, config, f'--out_dir={whole}')
    self.assertEqual(harness.read_rows(torn), harness.read_rows(whole))


@pytest.mark.realdata
@pytest.mark.skipif(
  not _DATA_DIR, reason=f'needs the tables: set {sources.DATA_DIR_VARIABLE}'
)
class RealDataTest(parameterized.TestCase):
  def test_non_private_compas_is_within_0_8_point_of_the_paper(self):
    config = dp_accuracy.Config(datasets=('compas',), epsilons=('none',))
    summary = dp_accuracy_report.summarize(
      pd.DataFrame(_run(config, _DATA_DIR))
    )
    verdicts = erm_paper_values.compare(summary)
    self.assertLen(verdicts, 8)
    self.assertEqual(set(verdicts['verdict']), {'reproduced'})
    self.assertLess(verdicts['sd'].max(), 0.3)

  def test_mass_svm_dips_at_1e_3_and_epsilon_2(self):
    config = dp_accuracy.Config(
      datasets=('mammographic',),
      seeds=(0,),
      models=('svm',),
      regularizations=('0.01', '0.001', '0.00001'),
      epsilons=('1', '2'),
      calibrations=('paper',),
      noises=('fresh',),
    )
    rows = _run(config, _DATA_DIR)
    mean, error = {}, {}
    for row in dp_accuracy_report.summarize(pd.DataFrame(rows)).to_dict(
      'records'
    ):
      cell = (row['regularization'], row['epsilon'])
      mean[cell], error[cell] = row['mean'], row['error']
    dip = _cell(rows, regularization='0.001', epsilon='2')
    self.assertAlmostEqual(dip['noise_epsilon'], 0.299, places=3)
    for cell in (('0.001', '1'), ('0.01', '2'), ('0.00001', '2')):
      gap = mean[cell] - mean['0.001', '2']
      self.assertGreater(
        gap, 4 * math.hypot(error[cell], error['0.001', '2']), cell
      )
