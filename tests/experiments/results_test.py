"""Tests of the results folder: resume, damage, locks, atomic files."""

import contextlib
import json
import os
import pathlib
import resource
import signal
import subprocess
import sys
import time

from absl.testing import parameterized

from experiments import results
from tests.experiments import harness

_ROOT = pathlib.Path(__file__).resolve().parents[2]
RUNNING = {'status': 'running', 'environment': {}, 'inputs': {}}
UNITS = ('a', 'b', 'c')

# Writes units of 200 long rows as fast as it can, until it is killed.
_WRITER = """
import pathlib, sys
from experiments import results
found = results.Results(pathlib.Path(sys.argv[1]), overwrite=False)
if found.manifest is None:
  found.write_manifest({'status': 'running', 'environment': {}, 'inputs': {}})
for unit in range(len(found.done), 10**9):
  found.append(str(unit), [{'i': i, 'text': 'x' * 500} for i in range(200)])
"""


def _open(folder, overwrite=False):
  return contextlib.closing(results.Results(folder, overwrite=overwrite))


def _rows(unit):
  return [{'unit': unit, **row} for row in harness.fake_rows(unit)]


class ResultsTest(parameterized.TestCase):
  def setUp(self):
    super().setUp()
    self.folder = harness.temporary_folder(self) / 'new' / 'run'
    self.path = self.folder / 'rows.jsonl'

  def write(self, units=UNITS, finish=False):
    with _open(self.folder) as found:
      found.write_manifest(RUNNING)
      for unit in units:
        found.append(unit, harness.fake_rows(unit))
      if finish:
        num_rows = len(found.rows(units))
        found.write_manifest(
          RUNNING | {'status': 'finished', 'num_rows': num_rows}
        )

  def assert_damaged(self, name):
    with self.assertRaisesRegex(
      results.DamagedRunError, f'{self.folder}/{name} is damaged.*--overwrite'
    ):
      results.Results(self.folder, overwrite=False)

  def test_a_new_folder_is_empty(self):
    with _open(self.folder) as found:
      self.assertIsNone(found.manifest)
      self.assertFalse(found.finished)
      self.assertEmpty(found.done)
      self.assertEmpty(found.rows(UNITS))

  def test_rows_come_back_by_unit_order(self):
    self.write(finish=True)
    with _open(self.folder) as found:
      self.assertTrue(found.finished)
      self.assertEqual(found.done, set(UNITS))
      self.assertEqual(
        found.rows(('c', 'a', 'z', 'b')), _rows('c') + _rows('a') + _rows('b')
      )

  def test_rows_of_the_running_process_are_those_on_disk(self):
    with _open(self.folder) as found:
      found.write_manifest(RUNNING)
      found.append('a', harness.fake_rows('a'))
      self.assertEqual(found.rows(('a',)), _rows('a'))
      lines = self.path.read_text().splitlines()
    self.assertEqual([json.loads(line) for line in lines], _rows('a'))

  def test_resuming_drops_exactly_the_last_unit(self):
    self.write()
    with _open(self.folder) as found:
      self.assertEqual(found.done, {'a', 'b'})
      found.append('c', harness.fake_rows('c'))
      self.assertEqual(found.rows(UNITS), _rows('a') + _rows('b') + _rows('c'))
    self.assertEqual(
      harness.read_rows(self.folder), _rows('a') + _rows('b') + _rows('c')
    )

  def test_reading_a_finished_run_changes_nothing(self):
    self.write(finish=True)
    before = self.path.read_bytes()
    with _open(self.folder):
      pass
    self.assertEqual(self.path.read_bytes(), before)

  def test_every_torn_end_resumes_to_whole_units(self):
    with _open(self.folder) as found:
      found.write_manifest(RUNNING)
      for unit in UNITS:
        found.append(unit, [{}, {}])
    lines = self.path.read_bytes().splitlines(keepends=True)
    units = [json.loads(line)['unit'] for line in lines]
    whole = b''.join(lines)
    for cut in range(len(whole)):
      self.path.write_bytes(whole[:cut])
      num_whole = whole[:cut].count(b'\n')
      last = units[num_whole - 1] if num_whole else 'a'
      kept = [line for unit, line in zip(units, lines) if unit < last]
      with _open(self.folder) as found:
        self.assertEqual(found.done, {u for u in UNITS if u < last}, cut)
      self.assertEqual(self.path.read_bytes(), b''.join(kept), cut)

  @parameterized.named_parameters(
    ('not_json', b'{"unit": "a"}\n{"unit": \n{"unit": "b"}\n'),
    ('no_unit', b'{"index": 1}\n'),
    ('unit_not_text', b'{"unit": 1}\n'),
    ('a_list', b'[1]\n'),
    ('a_number', b'1\n'),
    ('not_text', b'\xff\xfe\n'),
    ('empty_line', b'{"unit": "a"}\n\n{"unit": "b"}\n'),
  )
  def test_damaged_rows(self, content):
    self.write()
    self.path.write_bytes(content)
    self.assert_damaged('rows.jsonl')
    self.assertEqual(self.path.read_bytes(), content)

  @parameterized.named_parameters(
    ('not_json', b'{"status": '),
    ('empty', b''),
    ('a_list', b'[]'),
    ('no_inputs', b'{"status": "running", "environment": {}}'),
    ('not_text', b'\xff\xfe'),
  )
  def test_damaged_manifest(self, content):
    self.write()
    (self.folder / 'manifest.json').write_bytes(content)
    self.assert_damaged('manifest.json')

  def test_missing_manifest(self):
    self.write()
    (self.folder / 'manifest.json').unlink()
    self.assert_damaged('manifest.json')

  def test_missing_rows_of_a_running_run_start_again(self):
    self.write()
    self.path.unlink()
    with _open(self.folder) as found:
      self.assertEmpty(found.done)

  @parameterized.named_parameters(
    ('torn', lambda content: content[:-5]),
    ('a_line_short', lambda content: content[content.find(b'\n') + 1 :]),
    ('a_line_twice', lambda c: c + c.splitlines(keepends=True)[0]),
    ('empty', lambda content: b''),
  )
  def test_a_finished_run_must_be_whole(self, change):
    self.write(finish=True)
    self.path.write_bytes(change(self.path.read_bytes()))
    self.assert_damaged('rows.jsonl')

  def test_a_finished_run_must_have_rows(self):
    self.write(finish=True)
    self.path.unlink()
    self.assert_damaged('rows.jsonl')

  def test_overwrite_drops_a_damaged_run(self):
    self.write(finish=True)
    self.path.write_bytes(b'{')
    with _open(self.folder, overwrite=True) as found:
      self.assertIsNone(found.manifest)
      self.assertEmpty(found.done)
      self.assertFalse(self.path.exists())

  def test_only_one_opener(self):
    with _open(self.folder) as found:
      found.write_manifest(RUNNING)
      found.append('a', harness.fake_rows('a'))
      for overwrite in (False, True):
        with self.assertRaisesRegex(results.DamagedRunError, 'is in use'):
          results.Results(self.folder, overwrite=overwrite)
    self.assertEqual(harness.read_rows(self.folder), _rows('a'))

  def test_a_failed_open_lets_go_of_the_lock(self):
    self.write()
    (self.folder / 'manifest.json').write_text('{')
    self.assert_damaged('manifest.json')
    with _open(self.folder, overwrite=True) as found:
      self.assertEmpty(found.done)

  def test_folder_below_a_file(self):
    file = harness.temporary_folder(self) / 'file'
    file.touch()
    with self.assertRaises(OSError):
      results.Results(file / 'run', overwrite=False)

  def test_a_full_disk_is_an_error_and_resumes(self):
    self.write(('a', 'b'))
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    size = self.path.stat().st_size
    with _open(self.folder) as found:
      # A write that passes the limit is first cut short, then refused.
      resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
      try:
        with self.assertRaises(OSError):
          found.append('c', harness.fake_rows('c') * 100)
      finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
      self.assertEqual(found.rows(UNITS), _rows('a'))
    with _open(self.folder) as found:
      self.assertEmpty(found.done - {'a'})

  def test_kill_in_the_middle_of_writing(self):
    units = 0
    for _ in range(3):
      command = [sys.executable, '-c', _WRITER, str(self.folder)]
      environment = os.environ | {'PYTHONPATH': str(_ROOT)}
      with subprocess.Popen(command, cwd=_ROOT, env=environment) as writer:
        want = (units + 3) * 200 * 500
        while not self.path.exists() or self.path.stat().st_size < want:
          self.assertIsNone(writer.poll(), 'the writer ended by itself')
          time.sleep(0.005)
        writer.send_signal(signal.SIGKILL)
      with _open(self.folder) as found:
        self.assertGreater(len(found.done), units)
        units = len(found.done)
        names = [str(unit) for unit in range(units)]
        self.assertEqual(found.done, set(names))
        self.assertEqual(
          [row['i'] for row in found.rows(names)], [*range(200)] * units
        )


class WriteTextTest(parameterized.TestCase):
  def test_replaces_and_leaves_no_partial_file(self):
    path = harness.temporary_folder(self) / 'file'
    results.write_text(path, 'old')
    results.write_text(path, 'new')
    self.assertEqual(path.read_text(), 'new')
    self.assertEqual([p.name for p in path.parent.iterdir()], ['file'])

  def test_a_failed_write_keeps_the_old_file(self):
    path = harness.temporary_folder(self) / 'file'
    results.write_text(path, 'old')
    with self.assertRaises(UnicodeEncodeError):
      results.write_text(path, 'new \ud800')
    self.assertEqual(path.read_text(), 'old')
