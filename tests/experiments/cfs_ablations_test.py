"""Tests of the ablations: rows against the frontier, reuse, report."""

import contextlib
import dataclasses
import fractions
import io
import unittest.mock

from absl.testing import parameterized
import numpy as np
import pandas as pd

from experiments import cfs_ablations
from experiments import cfs_ablations_report
from experiments import cfs_frontier
from experiments import experiment as experiment_lib
from privjax import counterfactual
from tests.experiments import harness

_ROUNDING = 1e-12
_VARIANTS = (
  'default',
  'narrow universe',
  'soft utility',
  'tight sensitivity',
  'permute-and-flip',
  'runner-up label',
)
# Shares its shapes with `harness.TINY`, so that little more is compiled.
GRID = cfs_ablations.Config(
  seeds=(0,),
  protocols=('random', 'borderline'),
  rhos=('0.5',),
  epsilons=('1', '8'),
  feature_masks=('effective',),
  variants=_VARIANTS,
  max_targets=2,
)


def _run(config):
  units = experiment_lib.run(cfs_ablations.EXPERIMENT, config)
  return [row for rows in units for row in rows]


def _by(rows, *fields):
  return {tuple(row[field] for field in fields): row for row in rows}


class RowsTest(parameterized.TestCase):
  @classmethod
  def setUpClass(cls):
    super().setUpClass()
    cls.rows = _run(GRID)
    names = ('protocol', 'target', 'variant', 'epsilon')
    cls.cells = _by(cls.rows, *names)

  def _pairs(self, first, second):
    """Yields the rows of two variants, target by target."""
    for (*cell, variant, epsilon), row in self.cells.items():
      if variant == first:
        yield row, self.cells[(*cell, second, epsilon)]

  def test_one_row_per_cell(self):
    self.assertLen(self.rows, 2 * 2 * len(_VARIANTS) * 2)
    self.assertLen(self.cells, len(self.rows))

  def test_values_are_plain_and_none_is_certified(self):
    for row in self.rows:
      self.assertIs(row['certified'], False)
      for name, value in row.items():
        self.assertIn(type(value), (int, bool, str, float), name)

  def test_rates(self):
    for row in self.rows:
      self.assertEqual(row['ceiling'] == 1, row['num_flips'] > 0)
      self.assertLessEqual(row['targeted_ceiling'], row['ceiling'])
      self.assertLessEqual(row['valid_cf_rate'], row['ceiling'] + _ROUNDING)
      self.assertLessEqual(
        row['targeted_success'], row['valid_cf_rate'] + _ROUNDING
      )
      if not row['targeted_ceiling']:
        self.assertEqual(row['targeted_success'], 0)

  @parameterized.parameters(
    ('default', 'paper'), ('tight sensitivity', 'tight')
  )
  def test_agrees_with_the_frontier(self, variant, sensitivity):
    frontier = cfs_frontier.Config(
      seeds=(0,),
      rhos=GRID.rhos,
      epsilons=GRID.epsilons,
      protocols=GRID.protocols,
      feature_masks=GRID.feature_masks,
      sensitivity=sensitivity,
      num_draws=1,
      max_targets=2,
    )
    units = experiment_lib.run(cfs_frontier.EXPERIMENT, frontier)
    expected = _by(
      [row for rows in units for row in rows], 'protocol', 'target', 'epsilon'
    )
    for cell, row in expected.items():
      found = self.cells[(*cell[:2], variant, cell[2])]
      for name in set(row) & set(found):
        self.assertEqual(row[name], found[name], name)

  def test_less_sensitivity_is_more_budget(self):
    for default, tight in self._pairs('default', 'tight sensitivity'):
      self.assertEqual(tight['sensitivity'], '24/25')
      self.assertEqual(default['sensitivity'], '1')
      self.assertGreater(tight['expected_utility'], default['expected_utility'])

  def test_permute_and_flip_is_never_worse(self):
    # McKenna & Sheldon (2020), Theorem 3.
    gained = 0
    for default, other in self._pairs('default', 'permute-and-flip'):
      self.assertGreaterEqual(
        other['expected_utility'], default['expected_utility'] - _ROUNDING
      )
      gained += other['expected_utility'] > default['expected_utility']
    self.assertGreater(gained, 0)

  def test_the_runner_up_is_reached_more_often_if_it_is_asked_for(self):
    gained = 0
    for default, other in self._pairs('default', 'runner-up label'):
      for field in ('ceiling', 'targeted_ceiling', 'num_flips'):
        self.assertEqual(default[field], other[field])
      self.assertGreaterEqual(
        other['targeted_success'], default['targeted_success'] - _ROUNDING
      )
      gained += other['targeted_success'] > default['targeted_success']
    self.assertGreater(gained, 0)

  def test_a_narrow_universe_is_part_of_the_default(self):
    for default, narrow in self._pairs('default', 'narrow universe'):
      self.assertLess(narrow['support_size'], default['support_size'])
      self.assertLessEqual(narrow['num_flips'], default['num_flips'])

  def test_a_cell_does_not_depend_on_the_grid(self):
    config = dataclasses.replace(
      GRID,
      protocols=('borderline',),
      epsilons=('8',),
      variants=('tight sensitivity', 'default'),
      max_targets=1,
    )
    names = ('protocol', 'target', 'variant', 'epsilon')
    for cell, row in _by(_run(config), *names).items():
      self.assertEqual(row, self.cells[cell])

  def test_a_support_is_scored_once(self):
    score = unittest.mock.Mock(wraps=counterfactual.score)
    with unittest.mock.patch.object(counterfactual, 'score', score):
      _run(dataclasses.replace(GRID, protocols=('borderline',), max_targets=1))
    # The default support and the narrow one, for six variants at two epsilons.
    self.assertEqual(score.call_count, 2)


class VariantsTest(parameterized.TestCase):
  def test_every_variant_is_a_release(self):
    for name, variant in cfs_ablations.VARIANTS.items():
      setting = cfs_ablations.privcfs_config(variant, 'effective')
      self.assertGreater(setting.sensitivity, 0, name)
      self.assertGreater(setting.denominator, 0, name)

  def test_variants_are_distinct_and_differ_in_one_setting(self):
    settings = [repr(v) for v in cfs_ablations.VARIANTS.values()]
    self.assertLen(set(settings), len(settings))
    for name, variant in cfs_ablations.VARIANTS.items():
      base = cfs_ablations.VARIANTS[variant.base]
      changed = [
        field
        for field in ('support', 'utility', 'mechanism', 'label')
        if getattr(variant, field) != getattr(base, field)
      ]
      self.assertLen(changed, int(name != 'default'), name)

  def test_narrow_universe_is_27_times_smaller(self):
    universe = counterfactual.Universe(
      target=0,
      pairs=np.zeros((12, 2), np.int64),
      pair_valid=np.ones(12, bool),
      features=np.arange(12),
      feature_valid=np.ones(12, bool),
    )
    sizes = []
    for name in ('default', 'narrow universe'):
      setting = cfs_ablations.privcfs_config(
        cfs_ablations.VARIANTS[name], 'effective'
      )
      kept = universe._replace(
        features=universe.features[: setting.num_features],
        feature_valid=universe.feature_valid[: setting.num_features],
      )
      candidates = counterfactual.enumerate_candidates(
        kept,
        max_edges=setting.max_edges,
        max_features=setting.max_features,
      )
      sizes.append(candidates.support_size)
    self.assertEqual(sizes, [23621, 869])

  def test_runner_up_utility(self):
    universe = counterfactual.Universe(
      target=0,
      pairs=np.array([[0, 1], [0, 2]]),
      pair_valid=np.ones(2, bool),
      features=np.zeros(0, np.int64),
      feature_valid=np.zeros(0, bool),
    )
    variant = cfs_ablations.Variant(
      support=dict(max_edges=1, max_features=0, num_features=0, num_pairs=2),
      label='runner-up',
    )
    candidates = counterfactual.enumerate_candidates(
      universe, max_edges=1, max_features=0
    )
    label = np.array([[0], [1], [2]])
    evaluation = counterfactual.CandidateEvaluation(
      label=label,
      flips=label != 0,
      existing_edges=np.array([0, 1, 1]),
      gap=np.array([[1.0], [-1.0], [-1.0]]),
      runner_up_label=np.array(2),
    )
    scored = counterfactual.ScoredSupport(
      candidates,
      evaluation,
      np.zeros((3, 1), np.int64),
      cfs_ablations.privcfs_config(variant, 'effective'),
    )
    found = cfs_ablations.rescore(scored, variant, 'effective')
    # Empty 0.2; a flip to another label is worth nothing; 0.7 + 0 + 0.1.
    scale = found.config.denominator
    self.assertEqual(
      [fractions.Fraction(int(u), scale) for u in found.utility[:, 0]],
      [fractions.Fraction(1, 5), 0, fractions.Fraction(4, 5)],
    )
    for mechanism in ('exponential', 'permute-and-flip'):
      law = cfs_ablations.law(found, mechanism, '8')
      self.assertAlmostEqual(float(law.sum()), 1)
      self.assertEqual(int(law.argmax()), 2)


class LawTest(parameterized.TestCase):
  @parameterized.parameters('exponential', 'permute-and-flip')
  def test_nothing_off_the_support(self, mechanism):
    universe = counterfactual.Universe(
      target=0,
      pairs=np.array([[0, 1], [0, 0]]),
      pair_valid=np.array([True, False]),
      features=np.zeros(0, np.int64),
      feature_valid=np.zeros(0, bool),
    )
    candidates = counterfactual.enumerate_candidates(
      universe, max_edges=1, max_features=0
    )
    setting = counterfactual.PrivCFSConfig(
      num_pairs=2, max_edges=1, num_features=0, max_features=0
    )
    # The padded candidate would win if it were drawn.
    scored = counterfactual.ScoredSupport(
      candidates,
      unittest.mock.Mock(),
      np.array([[2], [8], [10]]),
      setting,
    )
    law = cfs_ablations.law(scored, mechanism, '1')[:, 0]
    self.assertEqual(law[2], 0)
    self.assertAlmostEqual(law[0] + law[1], 1)
    self.assertGreater(law[1], law[0])


class ConfigTest(parameterized.TestCase):
  @parameterized.named_parameters(
    ('dataset', dict(datasets=('x',)), "datasets must be among .*'x'"),
    ('protocol', dict(protocols=('x',)), "protocols must be .*'x'"),
    ('arm', dict(feature_masks=('x',)), "feature_masks must be .*'x'"),
    ('variant', dict(variants=('x',)), "variants must be among .*'x'"),
    ('no_base', dict(variants=('soft utility',)), "must hold 'default'"),
    ('rho', dict(rhos=('2',)), r'ablation_rhos must be in \(0, 1\], got 2'),
    ('epsilon', dict(epsilons=('0',)), 'ablation_epsilons must be .*got 0'),
    ('seed', dict(seeds=(-1,)), 'seeds must be in'),
    ('targets', dict(max_targets=0), 'max_targets must be >= 1, got 0'),
  )
  def test_bad_values(self, fields, message):
    with self.assertRaisesRegex(ValueError, message):
      dataclasses.replace(GRID, **fields)

  def test_bad_flag(self):
    outcome = harness.call(cfs_ablations.main, '--variants=nothing')
    self.assertEqual(outcome.code, 2)
    self.assertIn('variants must be among', outcome.err)

  def test_units_are_distinct(self):
    names = cfs_ablations.unit_names(cfs_ablations.Config())
    self.assertLen(names, 3 * 3 * 2 * 2)
    self.assertLen(set(names), len(names))


def _row(variant, seed, target, **fields):
  row = dict.fromkeys(
    [*cfs_ablations_report._FIELDS, *cfs_ablations_report._MORE], 0.0
  )
  row |= dict(dataset='cora', protocol='borderline', feature_masks='inert')
  row |= dict(rho='0.5', epsilon='8', seed=seed, target=target)
  base = cfs_ablations.VARIANTS[variant].base
  return row | dict(variant=variant, base=base, support_size=100) | fields


def _rows(rho='0.5'):
  rows = []
  for seed in range(3):
    for target in range(10):
      rate = 0.4 + 0.02 * target
      cell = dict(rho=rho, ceiling=1.0)
      add = lambda variant, seed=seed, target=target, cell=cell, **more: (
        rows.append(_row(variant, seed, target, **(cell | more)))
      )
      add('default', valid_cf_rate=rate)
      add('narrow universe', valid_cf_rate=rate + 0.002, support_size=4)
      add('two-hop pairs', valid_cf_rate=rate + 0.1, support_size=400)
      add('pairs only', valid_cf_rate=rate + 0.2)
      add('pairs only permute-and-flip', valid_cf_rate=rate + 0.23)
  return rows


class ReportTest(parameterized.TestCase):
  def setUp(self):
    super().setUp()
    self.frame = cfs_ablations_report.paired(pd.DataFrame(_rows()))
    self.summary = cfs_ablations_report.summarize(self.frame)

  def _cell(self, variant):
    (cell,) = self.summary[self.summary['variant'] == variant].to_dict(
      'records'
    )
    return cell

  @parameterized.parameters(
    ('default', 0.0),
    ('narrow universe', 0.002),
    ('two-hop pairs', 0.1),
    ('pairs only', 0.2),
    # Against 'pairs only', not against the default.
    ('pairs only permute-and-flip', 0.03),
  )
  def test_differences_are_paired(self, variant, expected):
    cell = self._cell(variant)
    self.assertAlmostEqual(cell['more_valid_cf_rate'], expected)
    # Rates vary over targets, differences do not.
    if variant != 'default':
      self.assertLess(cell['more_valid_cf_rate_error'], 1e-9)
    self.assertEqual(cell['num_targets'], 30)

  def test_ratio_of_candidates(self):
    self.assertAlmostEqual(self._cell('two-hop pairs')['times_candidates'], 4)
    self.assertAlmostEqual(
      self._cell('narrow universe')['times_candidates'], 0.04
    )

  def test_table(self):
    text = '\n'.join(cfs_ablations_report.tables(self.summary))
    self.assertIn(
      'cora, borderline targets, inert feature masks, epsilon 8', text
    )
    self.assertRegex(text, r'two-hop pairs +400 +1\.000 0\.590 \(\+0\.100\)')

  def test_claims(self):
    claims = cfs_ablations_report.claims()
    names = [
      (c.cell['dataset'], c.cell['rho'], c.cell['variant'], c.field)
      for c in claims
    ]
    self.assertLen(set(names), len(names))
    known = {*self.frame.columns}
    for claim in claims:
      self.assertIn(claim.cell['variant'], cfs_ablations.VARIANTS)
      self.assertIn(claim.field, known)
      self.assertIn(claim.cell['dataset'], ('cora', 'citeseer'))

  def test_report(self):
    folder = harness.temporary_folder(self)
    contents = []
    for _ in range(2):
      with contextlib.redirect_stdout(io.StringIO()) as out:
        cfs_ablations_report.report(None, _rows() + _rows('1'), folder)
      contents.append({p.name: p.read_bytes() for p in folder.iterdir()})
    self.assertEqual(contents[0], contents[1])
    self.assertEqual(
      set(contents[0]),
      {
        'ablations_inert.png',
        'ablations_inert.svg',
        'paper_versus_measured.csv',
        'summary.csv',
      },
    )
    self.assertIn('27x smaller: more_valid_cf_rate', out.getvalue())
    self.assertStartsWith(contents[0]['ablations_inert.png'], b'\x89PNG')
    self.assertIn(b'</svg>', contents[0]['ablations_inert.svg'])
