"""Tests of the life of a run: resume, refusals, exit codes, flags."""

import dataclasses
import json
import unittest.mock

from absl.testing import parameterized

from experiments import _common
from experiments import bench_evaluation
from experiments import cfs_frontier
from experiments import environment
from experiments import experiment as experiment_lib
from experiments import replay
from experiments import results
from experiments import train_backbones
from tests.experiments import harness

CONFIG = harness.FakeConfig()
EXPECTED = [
  {'unit': unit, **row}
  for unit in CONFIG.units
  for row in harness.fake_rows(unit)
]


class ExecuteTest(parameterized.TestCase):
  def setUp(self):
    super().setUp()
    self.out = harness.temporary_folder(self) / 'results'

  def execute(self, *args, config=CONFIG, **kwargs):
    experiment = harness.fake_experiment(**kwargs)
    return harness.execute(experiment, config, f'--out_dir={self.out}', *args)

  def execute_until(self, unit):
    """Runs up to a unit, where the user presses ctrl-C."""

    def run_unit(config, name, data_dir):
      if name == unit:
        raise KeyboardInterrupt
      return harness.fake_rows(name)

    return self.execute(run_unit=run_unit)

  def assert_complete(self):
    self.assertEqual(harness.read_rows(self.out), EXPECTED)
    manifest = harness.read_manifest(self.out)
    self.assertEqual(manifest['status'], 'finished')
    self.assertEqual(manifest['num_rows'], len(EXPECTED))
    self.assertEqual(
      manifest['decision_digest'], experiment_lib.decision_digest(EXPECTED)
    )
    self.assertEqual(
      manifest['value_digest'],
      experiment_lib.value_digest(EXPECTED, frozenset()),
    )

  def test_first_run(self):
    outcome = self.execute(f'--data_dir={self.out.parent}')
    self.assertEqual(outcome.code, 0)
    table = [json.dumps(row) for row in EXPECTED]
    self.assertEqual(outcome.out.splitlines()[: len(table)], table)
    folder = self.out / 'fake' / experiment_lib.config_hash(CONFIG)
    self.assertIn(str(folder), outcome.out)
    self.assertEqual(
      {path.name for path in folder.iterdir()},
      {'.lock', 'manifest.json', 'rows.jsonl', 'summary.csv'},
    )
    self.assert_complete()
    manifest = harness.read_manifest(self.out)
    self.assertEqual(manifest['experiment'], 'fake')
    self.assertEqual(manifest['config'], {'units': list(CONFIG.units)})
    self.assertEqual(manifest['inputs'], {'data': '00'})
    self.assertEqual(manifest['environment'], environment.describe())

  def test_second_run_prints_the_same_and_computes_nothing(self):
    first = self.execute()
    before = harness.only(self.out, 'rows.jsonl').read_bytes()
    manifest = harness.read_manifest(self.out)
    run_unit = unittest.mock.Mock(side_effect=AssertionError)
    second = self.execute(run_unit=run_unit)
    self.assertEqual((second.code, second.out), (0, first.out))
    run_unit.assert_not_called()
    self.assertEqual(harness.only(self.out, 'rows.jsonl').read_bytes(), before)
    self.assertEqual(harness.read_manifest(self.out), manifest)

  def test_data_dir_reaches_the_experiment(self):
    seen = []

    def run_unit(config, name, data_dir):
      seen.append((config, name, data_dir))
      return harness.fake_rows(name)

    folder = str(self.out.parent)
    self.execute(f'--data_dir={folder}', run_unit=run_unit)
    self.assertEqual(seen, [(CONFIG, unit, folder) for unit in CONFIG.units])

  def test_a_missing_data_dir_is_bad_usage(self):
    outcome = self.execute('--data_dir=/no/such/folder')
    self.assertEqual(outcome.code, 2)
    self.assertIn('data_dir must be a folder, got /no/such/folder', outcome.err)
    self.assertFalse(self.out.exists() and list(self.out.iterdir()))

  def test_changed_rows_of_a_finished_run_are_refused(self):
    self.execute()
    path = harness.only(self.out, 'rows.jsonl')
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    rows[0] = {
      name: value + 1 if type(value) in (int, float) else value
      for name, value in rows[0].items()
    }
    path.write_text(''.join(json.dumps(row) + '\n' for row in rows))
    outcome = self.execute()
    self.assertEqual(outcome.code, 1)
    self.assertIn('is damaged', outcome.err)

  @parameterized.parameters(*CONFIG.units)
  def test_interrupted_run_resumes(self, unit):
    outcome = self.execute_until(unit)
    self.assertEqual(outcome.code, 130)
    self.assertIn('error: interrupted: run the same command', outcome.err)
    self.assertEqual(harness.read_manifest(self.out)['status'], 'running')
    self.assertEqual(self.execute().code, 0)
    self.assert_complete()

  def test_interrupted_again_and_again(self):
    for unit in ('b', 'a', 'c', 'b', 'd'):
      self.execute_until(unit)
    self.assertEqual(self.execute().code, 0)
    self.assert_complete()

  def test_only_the_missing_units_run(self):
    self.execute_until('d')
    ran = []

    def run_unit(config, name, data_dir):
      ran.append(name)
      return harness.fake_rows(name)

    self.execute(run_unit=run_unit)
    # 'c' may have been torn: the last unit is always computed again.
    self.assertEqual(ran, ['c', 'd'])
    self.assert_complete()

  def test_failure_in_a_unit_resumes(self):
    def run_unit(config, name, data_dir):
      if name == 'c':
        raise ValueError('features must be finite, got nan')
      return harness.fake_rows(name)

    outcome = self.execute(run_unit=run_unit)
    self.assertEqual(outcome.code, 1)
    self.assertIn('error: features must be finite, got nan', outcome.err)
    self.assertEqual(self.execute().code, 0)
    self.assert_complete()

  def test_failure_in_the_report_does_not_finish_the_run(self):
    broken = dataclasses.replace(
      harness.fake_experiment(),
      report=unittest.mock.Mock(side_effect=OSError('disk full')),
    )
    outcome = harness.execute(broken, CONFIG, f'--out_dir={self.out}')
    self.assertEqual(outcome.code, 1)
    self.assertIn('error: disk full', outcome.err)
    self.assertEqual(harness.read_manifest(self.out)['status'], 'running')
    self.assertEqual(self.execute().code, 0)
    self.assert_complete()

  def test_measured_fields_do_not_enter_the_digest(self):
    measured = dataclasses.replace(
      harness.fake_experiment(), measured=frozenset({'value'})
    )
    harness.execute(measured, CONFIG, f'--out_dir={self.out}')
    self.assertEqual(
      harness.read_manifest(self.out)['value_digest'],
      experiment_lib.value_digest(EXPECTED, frozenset({'value'})),
    )

  def test_another_config_gets_its_own_folder(self):
    self.execute()
    self.execute(config=harness.FakeConfig(units=('a',)))
    self.assertLen(list(self.out.rglob('rows.jsonl')), 2)

  def test_overwrite_starts_again(self):
    self.execute(run_unit=lambda *args: [{'index': -1}])
    self.assertEqual(self.execute('--overwrite').code, 0)
    self.assert_complete()

  def test_other_environment_is_refused(self):
    self.execute_until('c')
    rows = harness.only(self.out, 'rows.jsonl').read_bytes()
    other = environment.describe() | {'num_cores': 999}
    with unittest.mock.patch.object(
      environment, 'describe', return_value=other
    ):
      outcome = self.execute()
    self.assertEqual(outcome.code, 1)
    cores = environment.describe()['num_cores']
    self.assertIn('was started with other environment', outcome.err)
    self.assertIn(f'num_cores {cores} -> 999', outcome.err)
    self.assertIn('--overwrite', outcome.err)
    # Refused, not damaged: nothing after the dropped unit changed.
    self.assertTrue(
      rows.startswith(harness.only(self.out, 'rows.jsonl').read_bytes())
    )
    self.assertEqual(self.execute().code, 0)
    self.assert_complete()

  def test_other_inputs_are_refused(self):
    self.execute_until('c')
    outcome = self.execute(inputs={'data': '01', 'more': '02'})
    self.assertEqual(outcome.code, 1)
    self.assertIn('was started with other inputs', outcome.err)
    self.assertIn('data 00 -> 01, more None -> 02', outcome.err)

  def test_damaged_run(self):
    self.execute()
    harness.only(self.out, 'manifest.json').write_text('{')
    outcome = self.execute()
    self.assertEqual(outcome.code, 1)
    self.assertRegex(outcome.err, 'error: .*manifest.json is damaged')
    self.assertEqual(self.execute('--overwrite').code, 0)
    self.assert_complete()

  def test_run_in_use(self):
    self.execute()
    folder = harness.only(self.out, 'rows.jsonl').parent
    held = results.Results(folder, overwrite=False)
    self.addCleanup(held.close)
    outcome = self.execute()
    self.assertEqual(outcome.code, 1)
    self.assertIn('is in use by another process', outcome.err)

  def test_out_dir_below_a_file(self):
    self.out.write_text('a file')
    outcome = self.execute()
    self.assertEqual(outcome.code, 2)
    self.assertStartsWith(outcome.err, 'error: out_dir must be writable: ')
    self.assertIn(str(self.out), outcome.err)

  def test_bad_config_writes_nothing(self):
    def make_config():
      raise ValueError('rhos must be in (0, 1], got 2')

    outcome = harness.call(
      lambda: _common.execute(harness.fake_experiment(), make_config),
      f'--out_dir={self.out}',
    )
    self.assertEqual(outcome.code, 2)
    self.assertEqual(outcome.err, 'error: rhos must be in (0, 1], got 2\n')
    self.assertFalse(self.out.exists())


class BadUsageTest(parameterized.TestCase):
  @parameterized.named_parameters(
    ('unknown_flag', '--epsilonz=1', 'epsilonz'),
    ('not_an_integer', '--num_draws=many', 'num_draws.*many'),
    ('not_a_bool', '--smoke=perhaps', 'smoke.*perhaps'),
    ('positional', 'cora', "no positional arguments are taken, .*'cora'"),
    ('dataset', '--datasets=pubmed', "datasets must be among .*'pubmed'"),
    ('no_dataset', '--datasets=', r'datasets must be .*, got \(\)'),
    (
      'epsilon_zero',
      '--epsilons=0',
      r'epsilons must be in \(0, 10000\], got 0',
    ),
    ('epsilon_nan', '--epsilons=1,nan', "epsilons: .* got 'nan'"),
    ('epsilon_infinite', '--epsilons=inf', "epsilons: .* got 'inf'"),
    (
      'epsilon_negative',
      '--epsilons=-1',
      r'epsilons must be in \(0, 10000\], got -1',
    ),
    ('epsilon_twice', '--epsilons=1,1.0', "epsilons must be dist.*'1', '1'"),
    ('no_epsilon', '--epsilons=', r'epsilons must be .*, got \(\)'),
    ('rho_zero', '--rhos=0', r'rhos must be in \(0, 1\], got 0'),
    ('rho_above', '--rhos=0.5,1.5', r'rhos must be in \(0, 1\], got 1.5'),
    ('rho_text', '--rhos=half', "rhos: .* got 'half'"),
    ('seed_wraps', '--seeds=4294967296', 'seeds must be .*, got 4294967296'),
    ('seed_negative', '--seeds=0,-1', 'seeds must be .*, got -1'),
    ('seed_text', '--seeds=one', r"seeds must be integers, got \['one'\]"),
    ('seed_twice', '--seeds=0,0', r'seeds must be distinct.*got \(0, 0\)'),
    ('no_seed', '--seeds=', r'seeds must be integers, got \[\]'),
    ('protocol', '--protocols=easy', "protocols must be among .*'easy'"),
    ('mask', '--feature_masks=off', "feature_masks must be among .*'off'"),
    ('sensitivity', '--sensitivity=loose', "sensitivity must be .*'loose'"),
    ('no_draws', '--num_draws=0', 'num_draws must be >= 1, got 0'),
    ('edges_negative', '--max_edges=-1', 'max_edges must be .*, got -1'),
    ('features_negative', '--max_features=-1', 'max_features must .*, got -1'),
  )
  def test_frontier(self, argument, message):
    out = harness.temporary_folder(self) / 'results'
    outcome = harness.call(cfs_frontier.main, f'--out_dir={out}', argument)
    self.assertEqual(outcome.code, 2)
    self.assertRegex(outcome.err, f'^error: .*{message}')
    self.assertEqual(outcome.err.count('error: '), 1)
    self.assertNotIn('Traceback', outcome.err)
    self.assertEmpty(outcome.out)
    self.assertFalse(out.exists())

  def test_frontier_k_max(self):
    out = harness.temporary_folder(self) / 'results'
    outcome = harness.call(
      cfs_frontier.main, f'--out_dir={out}', '--max_edges=0', '--max_features=0'
    )
    self.assertEqual(outcome.code, 2)
    self.assertEqual(
      outcome.err, 'error: k_max must be an integer >= 1, got 0\n'
    )
    self.assertFalse(out.exists())

  @parameterized.named_parameters(
    ('dataset', '--datasets=pubmed', "datasets must be among .*'pubmed'"),
    ('seed', '--seeds=-1', r'seeds must be in \[0, 2\*\*32\), got -1'),
    ('no_seed', '--seeds=', r'seeds must be integers, got \[\]'),
  )
  def test_bench(self, argument, message):
    out = harness.temporary_folder(self) / 'results'
    outcome = harness.call(bench_evaluation.main, f'--out_dir={out}', argument)
    self.assertEqual(outcome.code, 2)
    self.assertRegex(outcome.err, f'^error: {message}')
    self.assertFalse(out.exists())

  @parameterized.named_parameters(
    ('dataset', '--datasets=pubmed', "datasets must be among .*'pubmed'"),
    ('seed', '--seeds=4294967296', 'seeds must be .*, got 4294967296'),
    ('seed_text', '--seeds=one', r"seeds must be integers, got \['one'\]"),
  )
  def test_train_backbones(self, argument, message):
    out = harness.temporary_folder(self) / 'backbones'
    outcome = harness.call(
      train_backbones.main, f'--artifacts_dir={out}', argument
    )
    self.assertEqual(outcome.code, 2)
    self.assertRegex(outcome.err, f'^error: {message}')
    self.assertFalse(out.exists())

  def test_replay_needs_a_manifest(self):
    outcome = harness.call(replay.main)
    self.assertEqual(outcome.code, 2)
    self.assertEqual(
      outcome.err, 'error: --manifest must name a manifest.json\n'
    )


class IntListTest(parameterized.TestCase):
  def test_integers(self):
    self.assertEqual(_common.int_list(['0', '7'], 'seeds'), (0, 7))

  @parameterized.parameters(['1.0'], ['x'], [''], [])
  def test_not_integers(self, *values):
    with self.assertRaisesRegex(ValueError, '^seeds must be integers, got'):
      _common.int_list(list(values), 'seeds')
