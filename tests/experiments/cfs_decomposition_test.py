"""Tests of the four-stage chain and the operation arms."""

import contextlib
import dataclasses
import io
import unittest.mock

from absl.testing import parameterized
import pandas as pd
import pytest

from experiments import cfs_decomposition
from experiments import cfs_decomposition_report
from experiments import experiment as experiment_lib
from experiments import worlds
from privjax import explainers
from tests.experiments import harness

_ROUNDING = 1e-12
_STAGES = list(cfs_decomposition_report.STAGES)
GRID = cfs_decomposition.Config(
  seeds=(0,),
  protocols=('borderline',),
  rhos=('0.5', '1'),
  num_steps=10,
  max_targets=3,
)


def _run(config):
  units = experiment_lib.run(cfs_decomposition.EXPERIMENT, config)
  return [row for rows in units for row in rows]


def _cell(row):
  names = ('target', 'feature_masks', 'operations', 'rho')
  return tuple(row[name] for name in names)


class RowsTest(parameterized.TestCase):
  @classmethod
  def setUpClass(cls):
    super().setUpClass()
    cls.rows = _run(GRID)
    cls.cells = {_cell(row): row for row in cls.rows}

  def test_one_row_per_cell(self):
    self.assertLen(self.rows, 3 * 2 * 3 * 2)
    self.assertLen(self.cells, len(self.rows))

  def test_values_are_plain_and_none_is_certified(self):
    for row in self.rows:
      self.assertIs(row['certified'], False)
      for name, value in row.items():
        self.assertIn(type(value), (int, bool, str, float), name)

  def test_no_stage_gains(self):
    for row in self.rows:
      values = [row[stage] for stage in _STAGES]
      for before, after in zip(values, values[1:]):
        self.assertLessEqual(after, before + _ROUNDING)
      self.assertEqual(row['unrestricted'] == 1, row['found_by'] != 'nothing')

  def test_full_disclosure_has_no_prior_to_pay(self):
    for row in self.rows:
      if row['rho'] == '1':
        self.assertEqual(row['full_ceiling'], row['ceiling'])
        self.assertEqual(row['full_support_size'], row['support_size'])

  def test_the_exact_model_confirms_every_ceiling(self):
    flipped = 0
    for row in self.rows:
      self.assertEqual(row['witness_flips'], row['ceiling'] == 1)
      self.assertEqual(row['num_flips'] > 0, row['ceiling'] == 1)
      self.assertEqual(row['smallest_size'] > 0, row['ceiling'] == 1)
      flipped += row['witness_flips']
    self.assertGreater(flipped, 0)
    self.assertLess(flipped, len(self.rows))

  def test_feature_only_arm(self):
    """Zero by enumeration if masks are inert; far from it if they work."""
    effective = 0
    for row in self.rows:
      if row['operations'] != 'features':
        continue
      self.assertGreater(row['support_size'], 1)
      if row['feature_masks'] == 'inert':
        self.assertEqual(row['found_by'], 'nothing')
        for field in ('num_flips', 'ceiling', 'valid_cf_rate'):
          self.assertEqual(row[field], 0)
      else:
        effective += row['num_flips']
    self.assertGreater(effective, 0)

  def test_edge_only_arm_does_not_depend_on_masks(self):
    for (target, arm, operations, rho), row in self.cells.items():
      if operations == 'edges' and arm == 'inert':
        other = self.cells[target, 'effective', 'edges', rho]
        self.assertEqual(row | {'feature_masks': 'effective'}, other)

  def test_joint_reaches_what_its_parts_reach(self):
    for (target, arm, _, rho), row in self.cells.items():
      joint = self.cells[target, arm, 'joint', rho]
      self.assertLessEqual(row['num_flips'], joint['num_flips'])
      self.assertLessEqual(row['ceiling'], joint['ceiling'])

  def test_a_cell_does_not_depend_on_the_grid(self):
    config = dataclasses.replace(
      GRID, rhos=('0.5',), feature_masks=('inert',), epsilon='8'
    )
    rows = _run(config)
    self.assertLen(rows, 3 * 3)
    for row in rows:
      self.assertEqual(row, self.cells[_cell(row)])


class SearchTest(parameterized.TestCase):
  def _found(self, valid, then_valid):
    """Searches with stubs that say which targets they flip."""
    world = worlds.load('embedded', 0, None)
    targets = worlds.targets(world, 'borderline', 0)[:3]
    say = lambda flags: [unittest.mock.Mock(valid=flag) for flag in flags]
    explain = unittest.mock.Mock(return_value=say(valid))
    greedy = unittest.mock.Mock(return_value=say(then_valid))
    with (
      unittest.mock.patch.object(explainers, 'explain', explain),
      unittest.mock.patch.object(explainers, 'greedy', greedy),
    ):
      found = cfs_decomposition._search(world, targets, 7, True, False)
    self.assertEqual(explain.call_args.kwargs['config'].num_steps, 7)
    spaces = greedy.call_args.args[3]
    asked = [space.target for space in spaces]
    missed = [int(t) for t, flag in zip(targets, valid) if not flag]
    self.assertEqual(asked, missed)
    for space in spaces:
      self.assertEmpty(space.features)
    return found

  def test_greedy_tries_what_optimization_missed(self):
    found = self._found([True, False, False], [True, False])
    self.assertEqual(found, ['mask optimization', 'greedy deletion', 'nothing'])

  def test_nothing_to_search(self):
    found = cfs_decomposition._search(None, (1, 2), 7, False, False)
    self.assertEqual(found, ['nothing'] * 2)

  def test_what_the_support_flips_is_found(self):
    config = dataclasses.replace(GRID, feature_masks=('inert',), rhos=('0.5',))
    nothing = lambda world, targets, *_: ['nothing'] * len(targets)
    with unittest.mock.patch.object(cfs_decomposition, '_search', nothing):
      rows = _run(config)
    for row in rows:
      by = 'support' if row['full_ceiling'] else 'nothing'
      self.assertEqual(row['found_by'], by)
    self.assertIn('support', {row['found_by'] for row in rows})


class ConfigTest(parameterized.TestCase):
  @parameterized.named_parameters(
    ('dataset', dict(datasets=('x',)), "datasets must be among .*'x'"),
    ('protocol', dict(protocols=('x',)), "protocols must be .*'x'"),
    ('arm', dict(feature_masks=('x',)), "feature_masks must be .*'x'"),
    ('rho', dict(rhos=('2',)), r'chain_rhos must be in \(0, 1\], got 2'),
    ('epsilon', dict(epsilon='0'), 'chain_epsilon must be .*got 0'),
    ('seed', dict(seeds=(-1,)), 'seeds must be in'),
    ('steps', dict(num_steps=0), 'num_steps must be >= 1, got 0'),
    ('targets', dict(max_targets=0), 'max_targets must be >= 1, got 0'),
  )
  def test_bad_values(self, fields, message):
    with self.assertRaisesRegex(ValueError, message):
      dataclasses.replace(GRID, **fields)

  def test_bad_flag(self):
    outcome = harness.call(cfs_decomposition.main, '--chain_epsilon=none')
    self.assertEqual(outcome.code, 2)
    self.assertIn('chain_epsilon: expected an exact number', outcome.err)

  def test_units_are_distinct(self):
    names = cfs_decomposition.unit_names(cfs_decomposition.Config())
    self.assertLen(names, 3 * 2)
    self.assertLen(set(names), len(names))


def _row(seed, target, **fields):
  row = dict(dataset='cora', protocol='borderline', feature_masks='inert')
  row |= dict(rho='0.5', epsilon='8', operations='joint', seed=seed)
  row |= dict(target=target, found_by='mask optimization', unrestricted=1.0)
  row |= dict(full_ceiling=1.0, ceiling=float(target < 5), num_flips=4)
  row |= dict(support_size=10, witness_flips=target < 5)
  return row | dict(valid_cf_rate=0.96 * row['ceiling']) | fields


def _rows():
  joint = [_row(seed, target) for seed in range(3) for target in range(10)]
  zero = dict(unrestricted=0.0, full_ceiling=0.0, ceiling=0.0)
  zero |= dict(valid_cf_rate=0.0, num_flips=0, witness_flips=False)
  only = dict(operations='features', found_by='nothing')
  return joint + [row | zero | only for row in joint]


class ReportTest(parameterized.TestCase):
  def test_prices(self):
    frame = cfs_decomposition_report.priced(pd.DataFrame(_rows()))
    joint, features = cfs_decomposition_report.summarize(frame).to_dict(
      'records'
    )
    self.assertEqual(joint['price_support'], 0)
    self.assertAlmostEqual(joint['price_prior'], -0.5)
    self.assertAlmostEqual(joint['price_noise'], -0.02)
    self.assertEqual(joint['dominant'], 'prior')
    self.assertEqual(joint['found by mask optimization'], 30)
    self.assertEqual(joint['num_witnesses'], 15)
    self.assertEqual(features['dominant'], '-')
    total = sum(joint[price] for price in cfs_decomposition_report.PRICES)
    self.assertAlmostEqual(joint['unrestricted'] + total, 0.48)

  def test_prices_chain_from_stage_to_stage(self):
    ends = list(cfs_decomposition_report.PRICES.values())
    self.assertEqual(ends, list(zip(_STAGES, _STAGES[1:])))

  def test_verdicts(self):
    frame = cfs_decomposition_report.priced(pd.DataFrame(_rows()))
    lines = cfs_decomposition_report.cfs_claims.compare(
      frame, cfs_decomposition_report.claims()
    )
    found = dict(zip(lines['says'], lines['verdict']))
    self.assertEqual(
      found,
      {
        'price of the support': 'inconclusive',
        'price of the prior': 'reproduced',
        'price of the noise': 'reproduced',
        'unrestricted': 'reproduced',
        'feature-only arm is zero: ceiling': 'reproduced',
        'feature-only arm is zero: valid_cf_rate': 'reproduced',
      },
    )

  def test_report(self):
    folder = harness.temporary_folder(self)
    contents = []
    for _ in range(2):
      with contextlib.redirect_stdout(io.StringIO()) as out:
        cfs_decomposition_report.report(None, _rows(), folder)
      contents.append({p.name: p.read_bytes() for p in folder.iterdir()})
    self.assertEqual(contents[0], contents[1])
    self.assertEqual(
      set(contents[0]),
      {
        'chain_inert.png',
        'chain_inert.svg',
        'paper_versus_measured.csv',
        'summary.csv',
      },
    )
    text = out.getvalue()
    self.assertRegex(
      text, r'1\.000 \(\+0\.000\) +0\.500 \(-0\.500\) +0\.480 \(-0\.020\)'
    )
    self.assertRegex(text, r'inert, features +0\.000 +0\.000 .* 0 / 300')
    self.assertIn('a lower bound', text)
    self.assertStartsWith(contents[0]['chain_inert.png'], b'\x89PNG')
    self.assertIn(b'</svg>', contents[0]['chain_inert.svg'])


@pytest.mark.slow
class SmokeTest(parameterized.TestCase):
  def test_smoke_run(self):
    folder = harness.temporary_folder(self)
    outcome = harness.call(
      cfs_decomposition.main, '--smoke', f'--out_dir={folder}'
    )
    self.assertEqual(outcome.code, 0, outcome.err)
    self.assertEqual(harness.read_manifest(folder)['num_rows'], 12)
    self.assertIn('Operation arms', outcome.out)
