"""Tests of replaying a run: confirmed, different, or not replayable."""

import dataclasses
import json
import shutil
import tempfile
import unittest.mock

from absl.testing import parameterized

from experiments import cfs_frontier
from experiments import environment
from experiments import registry
from experiments import replay
from tests.experiments import harness


class ReplayTest(parameterized.TestCase):
  @classmethod
  def setUpClass(cls):
    super().setUpClass()
    folder = cls.enterClassContext(tempfile.TemporaryDirectory())
    silent = dataclasses.replace(
      cfs_frontier.EXPERIMENT, report=lambda *args: None
    )
    config = dataclasses.replace(
      harness.TINY, protocols=('random', 'borderline')
    )
    outcome = harness.execute(silent, config, f'--out_dir={folder}')
    assert outcome.code == 0, outcome.err
    cls.original = folder

  def setUp(self):
    super().setUp()
    folder = harness.temporary_folder(self) / 'copy'
    shutil.copytree(self.original, folder)
    self.path = harness.only(folder, 'manifest.json')
    self.manifest = json.loads(self.path.read_text())
    self.rows_path = self.path.parent / 'rows.jsonl'
    lines = self.rows_path.read_text().splitlines()
    self.rows = [json.loads(line) for line in lines]

  def replay(self, **changes):
    manifest = self.manifest | changes
    self.path.write_text(json.dumps(manifest))
    return harness.call(replay.main, f'--manifest={self.path}')

  def write_rows(self):
    text = ''.join(json.dumps(row) + '\n' for row in self.rows)
    self.rows_path.write_text(text)

  def elsewhere(self):
    """Another machine: values are compared with the rows."""
    return self.manifest['environment'] | {'cpu': 'another'}

  def test_confirmed(self):
    outcome = self.replay()
    self.assertEqual(outcome.code, 0, outcome.out)
    self.assertEqual(outcome.out, 'same decisions; same values\n')

  def test_confirmed_elsewhere_and_at_another_commit(self):
    outcome = self.replay(
      environment=self.elsewhere() | {'git_commit': 'another'}
    )
    self.assertEqual(outcome.code, 0, outcome.out)

  def test_the_commit_alone_is_no_other_environment(self):
    self.rows_path.unlink()  # Would be missed if values were compared.
    outcome = self.replay(
      environment=self.manifest['environment'] | {'git_commit': 'another'}
    )
    self.assertEqual(outcome.code, 0, outcome.out)

  def test_other_decisions(self):
    outcome = self.replay(decision_digest='0' * 64)
    self.assertEqual(outcome.code, 1)
    self.assertEqual(
      outcome.out, 'different: decision_digest: the decisions differ\n'
    )

  def test_other_decisions_elsewhere(self):
    outcome = self.replay(
      decision_digest='0' * 64, environment=self.elsewhere()
    )
    self.assertEqual(outcome.code, 1)
    self.assertIn('different: decision_digest', outcome.out)

  def test_other_values_in_the_same_environment(self):
    outcome = self.replay(value_digest='0' * 64)
    self.assertEqual(outcome.code, 1)
    self.assertStartsWith(outcome.out, 'different: value_digest: ')
    self.assertNotIn('decision', outcome.out)

  def test_a_flip_that_the_code_no_longer_makes(self):
    original = cfs_frontier.run_unit

    def run_unit(*args):
      rows = original(*args)
      rows[0]['num_flips'] += 1
      return rows

    changed = dataclasses.replace(cfs_frontier.EXPERIMENT, run_unit=run_unit)
    with unittest.mock.patch.object(registry, 'load', return_value=changed):
      outcome = self.replay(environment=self.elsewhere())
    self.assertEqual(outcome.code, 1)
    self.assertEqual(
      outcome.out, 'different: decision_digest: the decisions differ\n'
    )

  @parameterized.parameters((1e-6, 1), (1e-12, 0))
  def test_values_elsewhere_have_a_tolerance(self, change, code):
    self.rows[-1]['margin'] += change
    self.write_rows()
    outcome = self.replay(environment=self.elsewhere())
    self.assertEqual(outcome.code, code, outcome.out)
    if code:
      unit = self.rows[-1]['unit']
      self.assertStartsWith(outcome.out, f'different: {unit}: margin is ')
      self.assertLen(outcome.out.splitlines(), 1)

  def test_the_order_of_recorded_units_does_not_matter(self):
    first = self.rows[0]['unit']
    self.rows.sort(key=lambda row: row['unit'] == first)
    self.write_rows()
    outcome = self.replay(environment=self.elsewhere())
    self.assertEqual(outcome.code, 0, outcome.out)

  @parameterized.named_parameters(
    ('null', lambda row: row | {'margin': None}),
    ('text', lambda row: row | {'margin': 'small'}),
    ('gone', lambda row: {k: v for k, v in row.items() if k != 'margin'}),
  )
  def test_values_that_are_no_numbers(self, change):
    self.rows[0] = change(self.rows[0])
    self.write_rows()
    outcome = self.replay(environment=self.elsewhere())
    self.assertEqual(outcome.code, 1)
    self.assertIn('margin is', outcome.out)

  def test_a_lost_row_elsewhere(self):
    del self.rows[1]
    self.write_rows()
    outcome = self.replay(environment=self.elsewhere())
    self.assertEqual(outcome.code, 1)
    self.assertRegex(outcome.out, r'different: 8 rows instead of 7')

  def test_no_rows_elsewhere(self):
    self.rows_path.unlink()
    outcome = self.replay(environment=self.elsewhere())
    self.assertEqual(outcome.code, 1)
    self.assertIn('rows.jsonl is missing', outcome.out)

  def test_other_inputs(self):
    inputs = self.manifest['inputs'] | {'embedded_seed0': '0' * 64}
    outcome = self.replay(inputs=inputs)
    self.assertEqual(outcome.code, 1)
    self.assertStartsWith(outcome.out, 'different: inputs: ')
    self.assertIn('0' * 64, outcome.out)

  @parameterized.named_parameters(
    ('unfinished', dict(status='running'), "finished run, got 'running'"),
    ('experiment', dict(experiment='nothing'), "among|one of .*'nothing'"),
    ('experiment_type', dict(experiment=None), 'must hold experiment'),
    ('config_type', dict(config=[1]), 'must hold config'),
    ('config_field', dict(config={'color': 'red'}), 'color'),
    ('config_value', dict(config={'rhos': ['2']}), 'rhos must be in .* got 2'),
    ('no_inputs', dict(inputs=None), 'must hold inputs'),
    ('no_digest', dict(value_digest=None), 'must hold value_digest'),
    ('no_environment', dict(environment=None), 'must hold environment'),
  )
  def test_not_replayable(self, changes, message):
    outcome = self.replay(**changes)
    self.assertEqual(outcome.code, 2)
    self.assertRegex(outcome.err, f'error: .*({message})')
    self.assertEmpty(outcome.out)

  @parameterized.parameters('', 'garbage', '[]', '{}', '\x00')
  def test_not_a_manifest(self, text):
    self.path.write_text(text)
    outcome = harness.call(replay.main, f'--manifest={self.path}')
    self.assertEqual(outcome.code, 2)
    self.assertStartsWith(outcome.err, 'error: manifest must be a manifest')

  def test_missing_file(self):
    self.path.unlink()
    outcome = harness.call(replay.main, f'--manifest={self.path}')
    self.assertEqual(outcome.code, 2)
    self.assertStartsWith(outcome.err, 'error: ')
    self.assertIn(str(self.path), outcome.err)

  def test_a_folder(self):
    outcome = harness.call(replay.main, f'--manifest={self.path.parent}')
    self.assertEqual(outcome.code, 2)
    self.assertStartsWith(outcome.err, 'error: ')

  def test_damaged_rows_elsewhere(self):
    self.rows_path.write_text('{\n')
    outcome = self.replay(environment=self.elsewhere())
    self.assertEqual(outcome.code, 2)
    self.assertStartsWith(outcome.err.splitlines()[-1], 'error: ')

  def test_the_environment_here_is_that_of_the_run(self):
    here = environment.describe() | {'git_commit': None}
    recorded = self.manifest['environment'] | {'git_commit': None}
    self.assertEqual(recorded, here)
