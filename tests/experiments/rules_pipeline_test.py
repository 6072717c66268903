"""Tests of the units, rows and configs of the rule pipeline."""

import dataclasses

from absl.testing import parameterized

from experiments import experiment as experiment_lib
from experiments import rules_baseline
from experiments import rules_pipeline
from experiments import rules_privacy
from experiments import rules_summary
from tests.experiments import harness

TINY = rules_pipeline.Config(
  models=('lr',),
  epsilons=('2',),
  seeds=(0,),
  alphas=('0.5',),
  num_folds=2,
  num_iterations=200,
)
NAME = 'breast_cancer lr 2 0'
EXPERIMENTS = (
  rules_baseline.EXPERIMENT,
  rules_privacy.EXPERIMENT,
  rules_summary.EXPERIMENT,
)


class RowsTest(parameterized.TestCase):
  @classmethod
  def setUpClass(cls):
    super().setUpClass()
    cls.rows = rules_pipeline.run_unit(TINY, NAME, None)

  def test_two_runs_are_equal(self):
    again = rules_pipeline.run_unit(TINY, NAME, None)
    digest = experiment_lib.value_digest
    self.assertEqual(digest(self.rows, frozenset()), digest(again, frozenset()))

  def test_one_row_per_release_with_an_integer_per_fold(self):
    names = ('explainer', 'arm', 'alpha', 'privacy_rate')
    keys = [tuple(row[name] for name in names) for row in self.rows]
    self.assertLen(set(keys), 1 + 2 * (1 + 2 * 2))
    self.assertLen(keys, len(set(keys)))
    for row in self.rows:
      counts = [v for k, v in row.items() if k.startswith('num_')]
      self.assertTrue(all(len(values) == 2 for values in counts))
      for value in sum(counts, []):
        self.assertIs(type(value), int)

  def test_every_row_says_what_covers_each_stage(self):
    for row in self.rows:
      stages = {k: v for k, v in row.items() if k.startswith('stage_')}
      self.assertEqual(stages.pop('stage_classifier'), 'dp(2)')
      self.assertEqual(set(stages.values()), {'NOT COVERED'})
      self.assertLen(stages, 5)
      self.assertFalse(row['certified'])

  def test_no_stage_is_covered_without_privacy(self):
    config = dataclasses.replace(
      TINY, epsilons=('none',), alphas=(), num_folds=1
    )
    rows = rules_pipeline.run_unit(config, 'breast_cancer lr none 0', None)
    for row in rows:
      self.assertEqual(
        {v for k, v in row.items() if k.startswith('stage_')}, {'NOT COVERED'}
      )

  def test_fewer_alphas_leave_the_other_rows_as_they_are(self):
    config = dataclasses.replace(TINY, alphas=())
    fewer = rules_pipeline.run_unit(config, NAME, None)
    self.assertEqual(fewer, [r for r in self.rows if r['arm'] == 'whole'])


class BinaryTest(parameterized.TestCase):
  @parameterized.parameters(*EXPERIMENTS)
  def test_run_to_the_end(self, experiment):
    config = dataclasses.replace(TINY, num_folds=1)
    if experiment.name == 'rules_baseline':
      config = dataclasses.replace(config, alphas=())
    folder = harness.temporary_folder(self)
    outcome = harness.execute(experiment, config, f'--out_dir={folder}')
    self.assertEqual(outcome.code, 0, outcome.err)
    self.assertIn('NOT COVERED', outcome.out)
    self.assertIn('NOT private', outcome.out)
    self.assertEqual(
      harness.read_manifest(folder)['experiment'], experiment.name
    )
    self.assertNotEmpty(harness.only(folder, 'summary.csv').read_text())

  @parameterized.parameters(
    ('--rules_alphas=-1', r'alphas must be in \(0, 100\], got -1'),
    ('--rules_alphas=a', "rules_alphas: expected an exact number, got 'a'"),
    ('--rules_alphas=', 'rules_alphas must not be empty'),
    ('--rules_rates=1.5', r'privacy_rates must be in \[0, 1\], got 1.5'),
    ('--rules_rates=-0.5', r'privacy_rates must be in \[0, 1\], got -0.5'),
    ('--rules_rates=0,0', 'privacy_rates must be distinct'),
    ('--rules_rates=', 'privacy_rates must be distinct and not empty'),
    ('--rules_models=tree', "models must be among .*, got 'tree'"),
    ('--rules_epsilons=0', 'epsilons must be in .*, got 0'),
    ('--rules_epsilons=none,none', 'epsilons must be distinct'),
    ('--datasets=cora', "datasets must be among .*, got 'cora'"),
    ('--seeds=x', 'seeds must be integers'),
  )
  def test_bad_usage(self, flag, message):
    folder = harness.temporary_folder(self)
    outcome = harness.call(rules_privacy.main, flag, f'--out_dir={folder}')
    self.assertEqual(outcome.code, 2)
    self.assertRegex(outcome.err, message)

  @parameterized.parameters(rules_baseline, rules_summary)
  def test_bad_dataset_of_the_views(self, module):
    outcome = harness.call(module.main, '--datasets=cora')
    self.assertEqual(outcome.code, 2)
    self.assertRegex(outcome.err, "datasets must be among .*, got 'cora'")

  @parameterized.parameters(
    (dict(num_folds=0), r'num_folds must be in \[1, 10\], got 0'),
    (dict(num_folds=11), r'num_folds must be in \[1, 10\], got 11'),
    (dict(num_iterations=1), 'num_iterations must be >= 2, got 1'),
    (dict(epsilons=()), 'epsilons must be distinct and not empty'),
    (dict(seeds=(0, 0)), 'seeds must be distinct'),
  )
  def test_bad_config(self, changed, message):
    with self.assertRaisesRegex(ValueError, message):
      dataclasses.replace(TINY, **changed)

  def _unit_names(self, module, *flags):
    found = []

    def main():
      found.extend(rules_pipeline.unit_names(module._config()))
      return 0

    self.assertEqual(harness.call(main, *flags).code, 0)
    return set(found)

  def test_units_of_the_views_are_units_of_the_whole(self):
    whole = rules_pipeline.unit_names(rules_pipeline.Config())
    for flags in ((), ('--datasets=compas,mammographic',)):
      names = [
        self._unit_names(module, *flags)
        for module in (rules_privacy, rules_baseline, rules_summary)
      ]
      self.assertLess(names[1], names[0])
      self.assertLess(names[2], names[0])
      if not flags:
        self.assertLess(names[0], set(whole))  # One seed.
      else:
        self.assertLen(names[0], 2 * 2 * 7 * 3)
