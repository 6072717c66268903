"""Tests of the PrivCFS frontier: rows, draws, independence of the grid."""

import collections
import dataclasses
import fractions
import os
import pathlib
import signal
import subprocess
import sys
import time
import unittest.mock

from absl.testing import parameterized
import jax
import pytest
from scipy import stats

from experiments import cfs_frontier
from experiments import experiment as experiment_lib
from privjax import counterfactual
from privjax.counterfactual import factored
from privjax.data import sources
from tests import statistics
from tests.experiments import harness

_ROOT = pathlib.Path(__file__).resolve().parents[2]
_DATA_DIR = os.environ.get(sources.DATA_DIR_VARIABLE)
_ROUNDING = 1e-12

# Rows of this grid feed the tests of `RowsTest`.
GRID = cfs_frontier.Config(
  seeds=(0,),
  rhos=('0.3', '0.5', '1'),
  epsilons=('0.1', '1', '4', '8'),
  protocols=('random', 'borderline'),
  num_draws=2000,
  max_targets=4,
)


def _run(config, data_dir=None):
  experiment = cfs_frontier.EXPERIMENT
  units = experiment_lib.run(experiment, config, data_dir)
  return [row for rows in units for row in rows]


def _replace(**fields):
  return dataclasses.replace(harness.TINY, **fields)


def _cells(rows, *fields):
  """Groups rows by fields, in order."""
  cells = collections.defaultdict(list)
  for row in rows:
    cells[tuple(row[field] for field in fields)].append(row)
  return cells


class RowsTest(parameterized.TestCase):
  @classmethod
  def setUpClass(cls):
    super().setUpClass()
    cls.rows = _run(GRID)

  def test_one_row_per_cell(self):
    fields = ('protocol', 'rho', 'feature_masks', 'target', 'epsilon')
    cells = _cells(self.rows, *fields)
    self.assertLen(self.rows, 2 * 3 * 2 * 4 * 4)
    self.assertLen(cells, len(self.rows))

  def test_values_are_plain(self):
    # What json writes and reads unchanged; a NumPy scalar would not be.
    for row in self.rows:
      for name, value in row.items():
        self.assertIn(type(value), (int, bool, str, float), name)

  def test_no_row_is_certified_and_only_rho_1_is_a_reference(self):
    for row in self.rows:
      self.assertIs(row['certified'], False)
      self.assertIs(row['upper_reference'], row['rho'] == '1')

  def test_rates(self):
    k_max = GRID.max_edges + GRID.max_features
    for row in self.rows:
      self.assertIn(row['ceiling'], (0.0, 1.0))
      self.assertEqual(row['ceiling'] == 1, row['num_flips'] > 0)
      self.assertLessEqual(row['num_flips'], row['support_size'] - 1)
      self.assertLessEqual(int(row['public_only']), row['ceiling'])
      self.assertGreaterEqual(row['targeted_success'], 0)
      self.assertLessEqual(row['targeted_success'], row['valid_cf_rate'])
      self.assertLessEqual(row['valid_cf_rate'], row['ceiling'])
      self.assertLessEqual(row['valid_cf_rate'], row['nonempty_valid_rate'])
      self.assertLessEqual(row['nonempty_valid_rate'], 1 + _ROUNDING)
      self.assertBetween(row['empty_rate'], 0, 1)
      self.assertBetween(row['size'], 0, k_max)
      self.assertBetween(
        row['collision'], 1 / row['support_size'] - _ROUNDING, 1
      )
      self.assertBetween(row['margin'], 0, 1)
      self.assertGreaterEqual(row['regret'], -_ROUNDING)
      self.assertBetween(row['expected_utility'], 0, 1)
      self.assertEqual(row['num_draws'], GRID.num_draws)
      self.assertBetween(row['valid_draws'], 0, row['num_draws'])

  def test_the_population_is_not_trivial(self):
    ceilings = {row['ceiling'] for row in self.rows}
    self.assertEqual(ceilings, {0.0, 1.0})
    self.assertTrue(any(row['public_only'] for row in self.rows))
    self.assertTrue(any(row['num_pairs'] == 0 for row in self.rows))

  def test_more_budget_means_less_regret(self):
    fields = ('protocol', 'rho', 'feature_masks', 'target')
    fell = 0
    for cell in _cells(self.rows, *fields).values():
      self.assertEqual([row['epsilon'] for row in cell], list(GRID.epsilons))
      for less, more in zip(cell, cell[1:]):
        self.assertLessEqual(more['regret'], less['regret'] + _ROUNDING)
        fell += more['regret'] < less['regret'] - 0.01
    self.assertGreater(fell, 0)

  def test_epsilon_moves_the_law_only(self):
    law = {*counterfactual.Metrics._fields, 'epsilon', 'valid_draws'}
    law -= {'ceiling'}
    fields = ('protocol', 'rho', 'feature_masks', 'target')
    for cell in _cells(self.rows, *fields).values():
      same = [{k: v for k, v in r.items() if k not in law} for r in cell]
      self.assertEqual(same, [same[0]] * len(cell))

  def test_more_disclosure_means_a_larger_support(self):
    # Snapshots of one seed are nested. Below 12 pairs nothing is truncated, so
    # the supports are nested as well, and flips are decided on one graph.
    grew = 0
    fields = ('protocol', 'feature_masks', 'target', 'epsilon')
    for cell in _cells(self.rows, *fields).values():
      self.assertEqual([row['rho'] for row in cell], list(GRID.rhos))
      if cell[-1]['num_pairs'] == 12:
        continue
      for less, more in zip(cell, cell[1:]):
        for name in ('num_pairs', 'support_size', 'num_flips', 'ceiling'):
          self.assertLessEqual(less[name], more[name], name)
        grew += less['num_pairs'] < more['num_pairs']
    self.assertGreater(grew, 0)

  def test_public_fields_do_not_depend_on_the_mask_arm(self):
    shared = (
      'dataset',
      'seed',
      'margin',
      'num_pairs',
      'disclosed_edges',
      'num_edges',
      'upper_reference',
      'sensitivity',
    )
    fields = ('protocol', 'rho', 'target', 'epsilon')
    for cell in _cells(self.rows, *fields).values():
      arms = {row['feature_masks']: row for row in cell}
      self.assertEqual(set(arms), {'effective', 'inert'})
      for name in shared:
        self.assertEqual(arms['effective'][name], arms['inert'][name], name)
      self.assertLessEqual(
        arms['effective']['support_size'], arms['inert']['support_size']
      )

  def test_inert_masks_leave_the_prediction_alone(self):
    num_feature_subsets = 299  # 12 features, at most 3: 1 + 12 + 66 + 220.
    for row in self.rows:
      if row['feature_masks'] == 'effective':
        continue
      pairs = row['num_pairs']
      edge_subsets = 1 + pairs + pairs * (pairs - 1) // 2
      self.assertEqual(row['support_size'], edge_subsets * num_feature_subsets)
      self.assertEqual(row['num_flips'] % num_feature_subsets, 0)
      if not pairs:
        self.assertEqual(row['num_flips'], 0)

  def test_disclosed_edges(self):
    for row in self.rows:
      wanted = round(fractions.Fraction(row['rho']) * row['num_edges'])
      self.assertEqual(row['disclosed_edges'], wanted)

  def test_draws_follow_the_exact_rate(self):
    num_compared = 0
    for row in self.rows:
      rate = row['valid_cf_rate']
      low, high = _binomial_bounds(row['num_draws'], rate)
      self.assertBetween(row['valid_draws'], low, high, f'{rate}')
      num_compared += 0 < rate < 1
    self.assertGreater(num_compared, 100)

  def test_power_of_the_draws(self):
    # The mutant draws at half the epsilon: some row rejects it almost surely.
    fields = ('protocol', 'rho', 'feature_masks', 'target')
    power = 0.0
    for cell in _cells(self.rows, *fields).values():
      rate = {row['epsilon']: row['valid_cf_rate'] for row in cell}
      low, high = _binomial_bounds(GRID.num_draws, rate['8'])
      mutant = stats.binom(GRID.num_draws, rate['4'])
      power = max(power, mutant.cdf(low - 1) + mutant.sf(high))
    self.assertGreater(power, 0.999)


def _binomial_bounds(count, rate):
  """The counts that a binomial leaves with probability `ALPHA` at most."""
  law = stats.binom(count, min(rate, 1.0))
  return law.ppf(statistics.ALPHA / 2), law.isf(statistics.ALPHA / 2)


class GridTest(parameterized.TestCase):
  def test_a_cell_does_not_depend_on_the_grid_around_it(self):
    alone = _run(harness.TINY)
    around = _replace(
      seeds=(1, 0),
      rhos=('0.3', '0.5'),
      epsilons=('8', '1/3', '1'),
      protocols=('borderline', 'random'),
      feature_masks=('inert', 'effective'),
      max_targets=3,
    )
    fields = ('dataset', 'seed', 'rho', 'feature_masks', 'protocol', 'target')
    wide = _cells(_run(around), *fields, 'epsilon')
    self.assertLen(alone, 4)
    for key, rows in _cells(alone, *fields, 'epsilon').items():
      self.assertEqual(rows, wide[key])

  def test_num_draws_moves_the_draws_only(self):
    more = _run(_replace(num_draws=21))
    drop = lambda row: {k: v for k, v in row.items() if 'draws' not in k}
    self.assertEqual(
      [drop(row) for row in more], [drop(row) for row in _run(harness.TINY)]
    )

  def test_units_are_distinct(self):
    names = cfs_frontier.unit_names(cfs_frontier.Config())
    self.assertLen(set(names), len(names))
    self.assertLen(names, 3 * 4 * 2 * 3)

  def test_tight_sensitivity_sharpens_the_law(self):
    for paper, tight in zip(
      _run(harness.TINY), _run(_replace(sensitivity='tight'))
    ):
      self.assertEqual(
        (paper['sensitivity'], tight['sensitivity']), ('1', '24/25')
      )
      self.assertLessEqual(tight['regret'], paper['regret'])
      self.assertEqual(tight['num_flips'], paper['num_flips'])

  @pytest.mark.realdata
  @pytest.mark.skipif(
    not _DATA_DIR,
    reason=f'needs the Planetoid files: set {sources.DATA_DIR_VARIABLE}',
  )
  def test_the_order_of_data_sets_does_not_matter(self):
    first = _run(_replace(datasets=('cora', 'embedded')), _DATA_DIR)
    second = _run(_replace(datasets=('embedded', 'cora')), _DATA_DIR)
    self.assertEqual(first, second[4:] + second[:4])
    self.assertEqual(second[:4], _run(harness.TINY))


class TracesTest(parameterized.TestCase):
  def test_one_trace_per_bucket(self):
    traced, num_calls = [], 0
    score, decide_all = factored.score, factored._decide_all.__wrapped__

    def counted(params, inputs, chunk_size):
      traced.append(
        (len(inputs.slot_valid), *inputs.deleted.shape, len(inputs.keep))
      )
      return score(params, inputs, chunk_size)

    def fresh(params, inputs, *, chunk_size):
      return decide_all(params, inputs, chunk_size=chunk_size)

    jitted = jax.jit(fresh, static_argnames='chunk_size')

    def call(*args, **kwargs):
      nonlocal num_calls
      num_calls += 1
      return jitted(*args, **kwargs)

    config = _replace(
      rhos=('0.5', '1'),
      feature_masks=('inert',),
      max_targets=12,
    )
    with (
      unittest.mock.patch.object(factored, 'score', counted),
      unittest.mock.patch.object(factored, '_decide_all', call),
    ):
      _run(config)
    # Private graph and snapshot, per rho and target; epsilons share them.
    self.assertEqual(num_calls, 2 * 2 * 12)
    self.assertLen(set(traced), len(traced))
    self.assertLessEqual(len(traced), 2 * len(factored.BUCKETS))
    self.assertGreater(len(traced), 1)
    for slots, *_ in traced:
      self.assertIn(slots, factored.BUCKETS)


class ConfigTest(parameterized.TestCase):
  @parameterized.named_parameters(
    (
      'epsilon_zero',
      dict(epsilons=('0',)),
      r'epsilons must be in \(0, 10000\], got 0',
    ),
    ('epsilon_nan', dict(epsilons=('nan',)), "epsilons: .* got 'nan'"),
    ('epsilon_inf', dict(epsilons=('inf',)), "epsilons: .* got 'inf'"),
    ('epsilon_negative', dict(epsilons=('-2',)), 'epsilons must .* got -2'),
    ('epsilon_text', dict(epsilons=('two',)), "epsilons: .* got 'two'"),
    ('epsilon_spelling', dict(epsilons=('1.0',)), r"epsilons must .*'1.0'"),
    ('rho_zero', dict(rhos=('0',)), r'rhos must be in \(0, 1\], got 0'),
    ('rho_above', dict(rhos=('1.5',)), r'rhos must be in \(0, 1\], got 1.5'),
    ('rho_spelling', dict(rhos=('1.0',)), "rhos must be spelled .*'1.0'"),
    ('seed_wraps', dict(seeds=(2**32,)), 'seeds must be .* got 4294967296'),
    ('seed_negative', dict(seeds=(-1,)), 'seeds must be in .* got -1'),
    ('no_seed', dict(seeds=()), r'seeds must be distinct .* got \(\)'),
    ('protocol', dict(protocols=('easy',)), "protocols must .* got 'easy'"),
    ('dataset', dict(datasets=('pubmed',)), "datasets must .* got 'pubmed'"),
    ('mask', dict(feature_masks=('off',)), "feature_masks must .* got 'off'"),
    ('sensitivity', dict(sensitivity='loose'), "sensitivity must .*'loose'"),
    ('k_max', dict(max_edges=0, max_features=0), 'k_max must be .* got 0'),
    ('num_draws', dict(num_draws=0), 'num_draws must be >= 1, got 0'),
    ('max_targets', dict(max_targets=0), 'max_targets must be >= 1, got 0'),
  )
  def test_errors_name_argument_and_value(self, fields, message):
    with self.assertRaisesRegex(ValueError, f'^{message}'):
      _replace(**fields)


class MainTest(parameterized.TestCase):
  ARGUMENTS = (
    '--smoke',
    '--protocols=random',
    '--feature_masks=effective',
    '--epsilons=1.0,8',
    '--num_draws=20',
  )

  def setUp(self):
    super().setUp()
    self.out = harness.temporary_folder(self)

  def test_run_and_run_again(self):
    arguments = (*self.ARGUMENTS, f'--out_dir={self.out}')
    first = harness.call(cfs_frontier.main, *arguments)
    self.assertEqual(first.code, 0, first.err)
    self.assertIn('embedded, random targets, effective', first.out)
    self.assertRegex(first.out, r'rho +ceiling +free +eps 1 +eps 8\n +0\.5 ')
    folder = harness.only(self.out, 'rows.jsonl').parent
    self.assertIn(str(folder), first.out)
    for name in ('summary.csv', 'manifest.json'):
      self.assertGreater((folder / name).stat().st_size, 0)
    for name in ('frontier_effective', 'guidance_effective'):
      for suffix in ('.png', '.svg'):
        self.assertTrue((folder / name).with_suffix(suffix).exists())
    # The same config by hand, and the same rows.
    self.assertEqual(
      folder,
      self.out / 'cfs_frontier' / experiment_lib.config_hash(harness.TINY),
    )
    rows = [
      {k: v for k, v in r.items() if k != 'unit'}
      for r in harness.read_rows(folder)
    ]
    self.assertEqual(rows, _run(harness.TINY))
    self.assertEqual(harness.read_manifest(folder)['status'], 'finished')
    again = harness.call(cfs_frontier.main, *arguments)
    self.assertEqual((again.code, again.out), (0, first.out))
    self.assertLen(harness.read_rows(folder), len(rows))

  def test_interrupted_run_ends_like_a_whole_one(self):
    config = _replace(protocols=('random', 'borderline'), rhos=('0.5', '1'))
    silent = dataclasses.replace(
      cfs_frontier.EXPERIMENT, report=lambda *args: None
    )
    num_units = 0

    def run_unit(*args):
      nonlocal num_units
      num_units += 1
      if num_units == 3:
        raise KeyboardInterrupt
      return cfs_frontier.run_unit(*args)

    broken = dataclasses.replace(silent, run_unit=run_unit)
    torn, whole = self.out / 'torn', self.out / 'whole'
    outcome = harness.execute(broken, config, f'--out_dir={torn}')
    self.assertEqual(outcome.code, 130)
    outcome = harness.execute(silent, config, f'--out_dir={torn}')
    self.assertEqual(outcome.code, 0, outcome.err)
    harness.execute(silent, config, f'--out_dir={whole}')
    self.assertEqual(harness.read_rows(torn), harness.read_rows(whole))
    found, wanted = harness.read_manifest(torn), harness.read_manifest(whole)
    for name in ('decision_digest', 'value_digest', 'num_rows', 'inputs'):
      self.assertEqual(found[name], wanted[name])

  @pytest.mark.slow
  def test_kill_9_in_the_middle(self):
    command = [sys.executable, '-m', 'experiments.cfs_frontier', '--smoke']
    command += ['--epsilons=1']
    environment = os.environ | {'JAX_PLATFORMS': 'cpu'}
    torn, whole = self.out / 'torn', self.out / 'whole'
    with subprocess.Popen(
      [*command, f'--out_dir={torn}'],
      cwd=_ROOT,
      env=environment,
      stdout=subprocess.DEVNULL,
      stderr=subprocess.DEVNULL,
    ) as process:
      while not any(p.stat().st_size for p in torn.rglob('rows.jsonl')):
        self.assertIsNone(process.poll(), 'the run ended by itself')
        time.sleep(0.01)
      process.send_signal(signal.SIGKILL)
    self.assertEqual(harness.read_manifest(torn)['status'], 'running')
    for out in (torn, whole):
      subprocess.run(
        [*command, f'--out_dir={out}'],
        cwd=_ROOT,
        env=environment,
        check=True,
        capture_output=True,
      )
    self.assertEqual(harness.read_rows(torn), harness.read_rows(whole))
    found, wanted = harness.read_manifest(torn), harness.read_manifest(whole)
    for name in ('status', 'decision_digest', 'value_digest', 'num_rows'):
      self.assertEqual(found[name], wanted[name])
    # This process has x64 on, those had it off.
    config = cfs_frontier.Config(
      seeds=(0,), rhos=('0.5',), epsilons=('1',), max_targets=2
    )
    here = [
      {'unit': name, **row}
      for name in cfs_frontier.unit_names(config)
      for row in cfs_frontier.run_unit(config, name, None)
    ]
    digest = experiment_lib.decision_digest(here)
    self.assertEqual(digest, wanted['decision_digest'])
