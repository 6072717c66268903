"""Breaks processes that use a ledger, and checks what they leave behind.

`ledger_faults_test.py` runs `main` in a process of its own, which imports the
ledger once and forks a child per fault. A child tells through a pipe what the
ledger acknowledged (`C` a charge, `R` a release, `E` an error), one byte each,
and after it is gone the ledger is opened and compared:

  acknowledged <= recorded <= acknowledged + errors + kills,  recorded <= budget

Prints one JSON object: the number of faults, what was heard, the violations.
"""

import ctypes
import errno
import fractions
import hashlib
import json
import os
import pathlib
import random
import resource
import shutil
import signal
import sqlite3
import sys
import traceback

from privjax import release
from privjax import types
from privjax.release import ledger_storage

_EDGE = types.NeighboringRelation.ADD_REMOVE_ONE_EDGE
_STEP = fractions.Fraction(1, 11)
KILL_BEFORE, KILL_AFTER, KILL_TORN, FAIL, FULL = 1, 2, 3, 4, 5

VERSION_0 = """
CREATE TABLE accounts (
  dataset_id TEXT PRIMARY KEY, budget TEXT, relation TEXT);
CREATE TABLE charges (
  id INTEGER PRIMARY KEY, dataset_id TEXT, epsilon TEXT, query_digest TEXT,
  release TEXT);
INSERT INTO accounts VALUES ('d', '1', 'add_remove_one_edge');
INSERT INTO charges VALUES (1, 'd', '1/11', '{a}', '{{"candidate":1}}');
INSERT INTO charges VALUES (2, 'd', '1/11', '{b}', NULL);
""".format(a='a' * 64, b='b' * 64)


def digest(number: int) -> str:
  return hashlib.sha256(str(number).encode()).hexdigest()


def use(path, say, *, steps, first=0):
  """Charges and records until the steps or the budget are at an end."""
  with release.Ledger.open(path, receipt=f'{path}.receipt') as ledger:
    for number in range(first, first + steps):
      try:
        charge = ledger.charge('d', _STEP, digest(number))
        say(b'C')
        ledger.record_release(charge, json.dumps({'n': number}))
        say(b'R')
      except release.InsufficientBudgetError:
        return
      except (release.LedgerError, KeyboardInterrupt):
        say(b'E')


_right_use = use


def use_then_pay(path, say, *, steps, first=0):
  """The mutant that computes before it charges."""
  with release.Ledger.open(path, receipt=f'{path}.receipt') as ledger:
    for number in range(first, first + steps):
      say(b'C')
      charge = ledger.charge('d', _STEP, digest(number))
      ledger.record_release(charge, json.dumps({'n': number}))
      say(b'R')


def use_then_forget(path, say, *, steps, first=0):
  """The mutant that loses charges: it works on a copy that it puts back."""
  shutil.copy(path, f'{path}.copy')
  _right_use(path, say, steps=steps, first=first)
  os.replace(f'{path}.copy', path)


def new_ledger(path, budget='1'):
  with release.Ledger.create(path, receipt=f'{path}.receipt') as ledger:
    ledger.open_account('d', budget, _EDGE)


def counts(path):
  """Opens, verifies and counts (charges, releases) of a ledger."""
  with release.Ledger.open(path, receipt=f'{path}.receipt') as ledger:
    ledger.verify()
    kinds = [entry.kind for entry in ledger.history()]
    charges, releases = kinds.count('charge'), kinds.count('release')
    balance = ledger.balance('d')
    assert balance.spent == charges * _STEP, 'the sum is not the charges'
    assert balance.remaining >= 0, 'the budget is exceeded'
    return charges, releases


class Child:
  """A forked process and what it has said."""

  def __init__(self, body):
    self._read, write = os.pipe()
    self.said = b''
    self.pid = os.fork()
    if self.pid == 0:
      os.close(self._read)
      code = 0
      try:
        body(lambda text: os.write(write, text), write)
      except BaseException:
        code = 3
        if os.environ.get('LEDGER_FAULTS_VERBOSE'):
          traceback.print_exc()
      os._exit(code)
    os.close(write)

  def hear(self, size):
    """Waits for that many bytes, or the end."""
    while len(self.said) < size:
      more = os.read(self._read, size - len(self.said))
      if not more:
        break
      self.said += more

  def end(self):
    """Waits for the end and returns the status."""
    self.hear(1 << 30)
    os.close(self._read)
    return os.waitpid(self.pid, 0)[1]

  def kill(self):
    os.kill(self.pid, signal.SIGKILL)


class Campaign:
  """Faults so far, and what was wrong after any of them."""

  def __init__(self, folder, seed, size):
    self.folder = pathlib.Path(folder)
    self.rng = random.Random(seed)
    self.size = size
    self.faults = 0
    self.heard = b''
    self.violations = []
    self.template = str(self.folder / 'template.db')
    new_ledger(self.template)

  def fresh(self):
    """Copies the template, receipt included."""
    path = str(self.folder / 'ledger.db')
    for name in self.folder.glob('ledger.db*'):
      name.unlink()
    shutil.copy(self.template, path)
    shutil.copy(f'{self.template}.receipt', f'{path}.receipt')
    return path

  def compare(self, label, path, said, kills, before=(0, 0)):
    """Checks the invariant after a fault."""
    slack = kills + said.count(b'E')
    self.heard += said
    try:
      after = counts(path)
    except Exception as error:
      self.violations.append(f'{label}: {type(error).__name__}: {error}')
      return
    for name, mark, first, last in zip('CR', b'CR', before, after):
      heard = said.count(mark)
      if not heard <= last - first <= heard + slack:
        self.violations.append(
          f'{label}: {name} acknowledged {heard}, recorded {last - first}, '
          f'slack {slack}'
        )


def io_call(campaign, mode, code=0, steps=2):
  """Breaks each I/O call of open, charge, record and close in turn."""
  shim = ctypes.CDLL(None)
  for number in range(1, 10_000):
    path = campaign.fresh()

    def body(say, pipe, number=number, path=path):
      shim.shim_arm(ctypes.c_long(number), mode, code, pipe)
      try:
        use(path, say, steps=steps)
      finally:
        # Tells that the fault was reached although nobody died.
        say(b'.' if shim.shim_fired() else b'-')

    child = Child(body)
    status = child.end()
    if child.said.endswith(b'-'):
      return
    campaign.faults += 1
    killed = os.WIFSIGNALED(status)
    campaign.compare(f'call {number} mode {mode}', path, child.said, killed)


def io_create(campaign, mode):
  """Kills at each I/O call of create and of the migration of version 0."""
  shim = ctypes.CDLL(None)
  for name, make, prepare in (
    ('create', lambda path: new_ledger(path), lambda path: None),
    ('migrate', _migrate, _version_0),
  ):
    for number in range(1, 10_000):
      path = str(campaign.folder / f'{name}.db')
      for old in campaign.folder.glob(f'{name}.db*'):
        old.unlink()
      prepare(path)

      def body(say, pipe, number=number, path=path, make=make):
        shim.shim_arm(ctypes.c_long(number), mode, 0, pipe)
        make(path)
        say(b'-')

      child = Child(body)
      child.end()
      if child.said == b'-':
        break
      campaign.faults += 1
      _check_half_made(campaign, f'{name} call {number} mode {mode}', path)


def _migrate(path):
  release.Ledger.migrate(path, receipt=f'{path}.receipt').close()


def _version_0(path):
  connection = sqlite3.connect(path)
  connection.executescript(VERSION_0)
  connection.close()


def _check_half_made(campaign, label, path):
  """A ledger is whole, or refused by its version; it never lost a charge."""
  migrated = 'migrate' in label
  try:
    if migrated:
      try:
        release.Ledger.open(path).close()
      except release.LedgerVersionError:
        _migrate(path)
      with release.Ledger.open(path) as ledger:
        assert ledger.balance('d').spent == 2 * _STEP, 'lost a charge'
        assert ledger.cached('d', 'a' * 64) == '{"candidate":1}'
    elif os.path.exists(path):
      try:
        release.Ledger.open(path).close()
      except release.LedgerVersionError:
        assert not os.path.exists(f'{path}.receipt'), 'a receipt of nothing'
  except Exception as error:
    campaign.violations.append(f'{label}: {type(error).__name__}: {error}')


def line(campaign, action):
  """Kills, or presses ctrl-C, at seeded lines of the ledger's own code."""

  def body(say, pipe, number=0, path=''):
    del pipe
    seen = [0]

    def trace(frame, event, argument):
      del argument
      if '/privjax/release/' not in frame.f_code.co_filename:
        return None
      if event == 'line':
        seen[0] += 1
        if seen[0] == number:
          if action == 'kill':
            os.kill(os.getpid(), signal.SIGKILL)
          raise KeyboardInterrupt
      return trace

    sys.settrace(trace)
    try:
      use(path, say, steps=2)
    finally:
      sys.settrace(None)
      say(b'.' if seen[0] >= number else b'-')
      say(seen[0].to_bytes(4, 'big') if number == 0 else b'')

  probe = Child(lambda say, pipe: body(say, pipe, 0, campaign.fresh()))
  probe.end()
  total = int.from_bytes(probe.said[-4:], 'big')
  chosen = campaign.rng.sample(range(1, total + 1), min(campaign.size, total))
  for number in chosen:
    path = campaign.fresh()
    child = Child(lambda say, pipe, n=number, p=path: body(say, pipe, n, p))
    status = child.end()
    campaign.faults += 1
    killed = os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 3
    said = child.said.replace(b'.', b'')
    campaign.compare(f'{action} at line {number}', path, said, killed)


def kill_outside(campaign):
  """Kills from outside after a seeded number of answers, on one ledger."""
  path = str(campaign.folder / 'long.db')
  new_ledger(path, budget='100000')
  for number in range(campaign.size):
    before = counts(path)
    child = Child(
      lambda say, pipe, n=number: use(path, say, steps=99, first=1000 * n)
    )
    child.hear(campaign.rng.randrange(8))
    child.kill()
    child.end()
    campaign.faults += 1
    campaign.compare(f'kill {number}', path, child.said, 1, before)


def race(campaign):
  """Several processes spend the last budget; one may be killed."""
  for number in range(campaign.size):
    path = campaign.fresh()
    children = [
      Child(lambda say, pipe, n=n, p=path: use(p, say, steps=20, first=100 * n))
      for n in range(3)
    ]
    kills = number % 2
    if kills:
      children[0].hear(campaign.rng.randrange(6))
      children[0].kill()
    for child in children:
      child.end()
    said = b''.join(child.said for child in children)
    campaign.faults += 1
    campaign.compare(f'race {number}', path, said, kills)
    if counts(path)[0] != 11:
      campaign.violations.append(f'race {number}: budget was left over')


def file_size(campaign):
  """Runs into a limit on the size of files, at every 512 bytes."""
  for limit in range(0, 200_000, max(1, 200_000 // campaign.size)):
    path = campaign.fresh()

    def body(say, pipe, limit=limit, path=path):
      del pipe
      signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
      resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
      use(path, say, steps=8)

    child = Child(body)
    child.end()
    campaign.faults += 1
    campaign.compare(f'file size {limit}', path, child.said, 0)


def full_pages(campaign):
  """Runs out of pages, and goes on once there are some."""
  connect = ledger_storage.connect
  for extra in range(campaign.size):
    path = campaign.fresh()

    def limited(name, extra=extra):
      connection = connect(name)
      (pages,) = connection.execute('PRAGMA page_count').fetchone()
      connection.execute(f'PRAGMA max_page_count = {pages + extra}')
      return connection

    def body(say, pipe, path=path, limited=limited):
      del pipe
      ledger_storage.connect = limited
      use(path, say, steps=40)

    child = Child(body)
    child.end()
    campaign.faults += 1
    campaign.compare(f'{extra} pages left', path, child.said, 0)


CAMPAIGNS = {
  'call_kill_before': lambda c: io_call(c, KILL_BEFORE),
  'call_kill_after': lambda c: io_call(c, KILL_AFTER),
  'call_kill_torn': lambda c: io_call(c, KILL_TORN),
  'call_fails': lambda c: io_call(c, FAIL, errno.EIO),
  'call_full_disk': lambda c: io_call(c, FULL, errno.ENOSPC, steps=3),
  'create_kill_before': lambda c: io_create(c, KILL_BEFORE),
  'create_kill_torn': lambda c: io_create(c, KILL_TORN),
  'line_kill': lambda c: line(c, 'kill'),
  'line_interrupt': lambda c: line(c, 'interrupt'),
  'kill_outside': kill_outside,
  'race': race,
  'file_size': file_size,
  'full_pages': full_pages,
}


MUTANTS = {'pay_after': use_then_pay, 'forget': use_then_forget}


def main(name, folder, seed, size, mutant=None):
  if mutant:
    globals()['use'] = MUTANTS[mutant]
  campaign = Campaign(folder, int(seed), int(size))
  CAMPAIGNS[name](campaign)
  result = {
    'faults': campaign.faults,
    'charges': campaign.heard.count(b'C'),
    'errors': campaign.heard.count(b'E'),
    'violations': campaign.violations,
  }
  print(json.dumps(result))
