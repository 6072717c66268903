"""The ledger under kills, failing I/O, full disks, ctrl-C and races.

Every n-th call of SQLite and of the system fails in turn, in this process;
`ledger_faults.py` does the same to real processes at every system call.
"""

import fractions
import json
import os
import pathlib
import shutil
import sqlite3
import subprocess
import sys
import types as builtin_types
from unittest import mock

import pytest

from privjax import release
from privjax import types
from privjax.release import ledger_storage

Fraction = fractions.Fraction
_FOLDER = pathlib.Path(__file__).parent
_EDGE = types.NeighboringRelation.ADD_REMOVE_ONE_EDGE
# Runs a campaign without the rest of privjax, which a fork has no use for.
_BOOT = """
import sys, types, warnings
root = sys.argv.pop(1)
sys.path.insert(0, root)
sys.modules['privjax'] = package = types.ModuleType('privjax')
package.__path__ = [root + '/privjax']
warnings.filterwarnings('ignore', message='.*os.fork')
from tests.release import ledger_faults
ledger_faults.main(*sys.argv[1:])
"""
_CALLS = ('open', 'close', 'fsync', 'replace', 'stat')


class Faults:
  """Makes the n-th call through any of its wrappers go wrong."""

  def __init__(self, number, error, after):
    self.number, self.error, self.after = number, error, after
    self.count = 0

  def call(self, function, *args, **kwargs):
    self.count += 1
    if self.count != self.number:
      return function(*args, **kwargs)
    if self.after:
      function(*args, **kwargs)
    raise self.error


class FaultyConnection:
  """A connection whose `execute` may fail before or after it acts."""

  def __init__(self, faults, connection):
    self._faults, self._connection = faults, connection

  def execute(self, *args):
    return self._faults.call(self._connection.execute, *args)

  def close(self):
    self._connection.close()

  @property
  def in_transaction(self):
    return self._connection.in_transaction


def _faulty_os(faults):
  module = builtin_types.SimpleNamespace(**vars(os))
  for name in _CALLS:
    function = getattr(os, name)
    wrapper = lambda *args, _f=function, **kw: faults.call(_f, *args, **kw)
    setattr(module, name, wrapper)
  return module


def _spend(path, receipt, acknowledged):
  """Opens, charges and records; ends at the first error."""
  with release.Ledger.open(path, receipt=receipt) as ledger:
    charge = ledger.charge('d', '1/11', 'a' * 64)
    acknowledged.append('charge')
    ledger.record_release(charge, '{}')
    acknowledged.append('release')


def _kinds(path, receipt):
  with release.Ledger.open(path, receipt=receipt) as ledger:
    charges = [e.kind for e in ledger.history()].count('charge')
    assert ledger.balance('d').spent == Fraction(charges, 11)
    return [entry.kind for entry in ledger.history()]


@pytest.fixture
def template(tmp_path):
  path, receipt = tmp_path / 'template.db', tmp_path / 'template.receipt'
  with release.Ledger.create(path, receipt=receipt) as ledger:
    ledger.open_account('d', '3/11', _EDGE)
  return path, receipt


@pytest.mark.parametrize('after', [False, True], ids=['before', 'after'])
@pytest.mark.parametrize(
  'error',
  [sqlite3.OperationalError('database or disk is full'), KeyboardInterrupt()],
  ids=['sqlite', 'ctrl_c'],
)
def test_each_call_fails(template, tmp_path, error, after):
  path, receipt = tmp_path / 'ledger.db', tmp_path / 'ledger.receipt'
  connect = ledger_storage.connect
  wasted = 0
  for number in range(1, 1000):
    shutil.copy(template[0], path)
    shutil.copy(template[1], receipt)
    faults, acknowledged = Faults(number, error, after), []
    with (
      mock.patch.object(
        ledger_storage,
        'connect',
        lambda name, f=faults: FaultyConnection(f, connect(name)),
      ),
      mock.patch.object(ledger_storage, 'os', _faulty_os(faults)),
    ):
      if isinstance(error, sqlite3.Error):
        faults.error = error
      try:
        _spend(path, receipt, acknowledged)
        outcome = 'done'
      except (release.LedgerError, KeyboardInterrupt, sqlite3.Error) as caught:
        outcome = str(caught)
    if faults.count < number:
      break
    with release.Ledger.open(path, receipt=receipt) as ledger:
      kinds = [entry.kind for entry in ledger.history()]
      balance = ledger.balance('d')
      assert balance.spent == Fraction(kinds.count('charge'), 11)
      # Whatever happened, the next release is paid in full and not refused.
      ledger.charge('d', balance.remaining, 'f' * 64)
      with pytest.raises(release.InsufficientBudgetError):
        ledger.charge('d', '1/1000000', 'f' * 64)
    for kind in ('charge', 'release'):
      extra = kinds.count(kind) - acknowledged.count(kind)
      assert 0 <= extra <= 1, (number, kind, outcome)
      if extra and kind == 'charge':
        wasted += 1
        # Says that something was spent, or does not say that nothing was.
        assert 'nothing was spent' not in outcome, (number, outcome)
    for name in tmp_path.glob('ledger.*'):
      name.unlink()
  assert number > 40
  assert wasted >= 1


def test_charge_survives_ctrl_c_after_it(template):
  path, receipt = template
  with pytest.raises(KeyboardInterrupt):
    with release.Ledger.open(path, receipt=receipt) as ledger:
      ledger.charge('d', '1/11', 'a' * 64)
      raise KeyboardInterrupt
  assert _kinds(path, receipt).count('charge') == 1


def test_full_database(template):
  path, receipt = template
  connect = ledger_storage.connect

  def limited(name):
    connection = connect(name)
    (pages,) = connection.execute('PRAGMA page_count').fetchone()
    connection.execute(f'PRAGMA max_page_count = {pages}')
    return connection

  charges = 0
  with mock.patch.object(ledger_storage, 'connect', limited):
    with release.Ledger.open(path, receipt=receipt) as ledger:
      with pytest.raises(release.LedgerStorageError, match='nothing was spent'):
        for number in range(1000):
          ledger.charge('d', '1/11000', f'{number:064x}')
          charges += 1
      assert ledger.balance('d').spent == Fraction(charges, 11000)
  with release.Ledger.open(path, receipt=receipt) as ledger:
    ledger.charge('d', '1/11000', 'a' * 64)
    assert ledger.balance('d').spent == Fraction(charges + 1, 11000)


@pytest.fixture(scope='module')
def shim(tmp_path_factory):
  """The library that counts system calls; skips without a C compiler."""
  compiler = shutil.which('cc') or shutil.which('gcc')
  if not compiler or not sys.platform.startswith('linux'):
    pytest.skip('needs a C compiler on Linux')
  library = tmp_path_factory.mktemp('shim') / 'shim.so'
  source = _FOLDER / 'ledger_shim.c'
  command = [compiler, '-shared', '-fPIC', '-o', library, source, '-ldl']
  subprocess.run(command, check=True)
  return str(library)


def _campaign(name, folder, size, *, seed=0, preload=None, mutant=None):
  environment = dict(os.environ)
  if preload:
    environment['LD_PRELOAD'] = preload
  command = [sys.executable, '-c', _BOOT, str(_FOLDER.parents[1])]
  command += [name, str(folder), str(seed), str(size)]
  done = subprocess.run(
    command + ([mutant] if mutant else []),
    env=environment,
    capture_output=True,
    check=False,
    text=True,
  )
  assert done.returncode == 0, done.stderr[-3000:]
  return json.loads(done.stdout)


@pytest.mark.slow
@pytest.mark.parametrize(
  'name', ['call_kill_before', 'call_kill_after', 'call_kill_torn']
)
def test_kill_at_every_system_call(name, shim, tmp_path):
  result = _campaign(name, tmp_path, 0, preload=shim)
  assert result['violations'] == []
  assert result['faults'] > 50
  assert result['charges'] > 0


@pytest.mark.slow
@pytest.mark.parametrize('name', ['call_fails', 'call_full_disk'])
def test_every_system_call_fails(name, shim, tmp_path):
  result = _campaign(name, tmp_path, 0, preload=shim)
  assert result['violations'] == []
  assert result['faults'] > 50
  assert result['errors'] > 0


@pytest.mark.slow
@pytest.mark.parametrize('name', ['create_kill_before', 'create_kill_torn'])
def test_kill_in_create_and_migrate(name, shim, tmp_path):
  result = _campaign(name, tmp_path, 0, preload=shim)
  assert result['violations'] == []
  assert result['faults'] > 50


@pytest.mark.slow
@pytest.mark.parametrize(
  ('name', 'size'),
  [
    ('line_kill', 200),
    ('line_interrupt', 200),
    ('kill_outside', 200),
    ('race', 20),
    ('file_size', 100),
    ('full_pages', 10),
  ],
)
def test_campaign(name, size, tmp_path):
  result = _campaign(name, tmp_path, size)
  assert result['violations'] == []
  assert result['faults'] >= size
  assert result['charges'] > 0
  if name in {'line_interrupt', 'file_size', 'full_pages'}:
    assert result['errors'] > 0


@pytest.mark.slow
@pytest.mark.parametrize(
  ('name', 'size', 'mutant', 'words'),
  [
    ('line_kill', 40, 'pay_after', 'C acknowledged'),
    ('full_pages', 3, 'forget', 'LedgerRollbackError'),
  ],
)
def test_campaigns_find_mutants(name, size, mutant, words, tmp_path):
  result = _campaign(name, tmp_path, size, mutant=mutant)
  assert any(words in violation for violation in result['violations'])


@pytest.mark.parametrize('seed', range(2))
def test_two_processes_race_for_the_last_budget(tmp_path, seed):
  result = _campaign('race', tmp_path, 2, seed=seed)
  assert result['violations'] == []
  assert result['charges'] >= 21
