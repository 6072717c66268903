"""Tests of `privjax-ledger` as the owner of a budget runs it."""

import contextlib
import io
import pathlib
import re
import sqlite3
import tempfile
from typing import NamedTuple
import unittest.mock

from absl import flags
from absl.testing import parameterized

from privjax.release import cli_ledger
from privjax.release import ledger as ledger_lib
from privjax.release import ledger_records

_DIGEST = 'ab' * 32
_RECEIPT = r'privjax-ledger-receipt 1 [0-9a-f]{32} [0-9]+ [0-9a-f]{64}'


class Outcome(NamedTuple):
  """How a command ended."""

  code: int
  out: str
  err: str


class LedgerCase(parameterized.TestCase):
  def setUp(self):
    super().setUp()
    self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
    self.path = self.folder / 'ledger.db'
    self.receipt = self.folder / 'receipt.txt'

  def call(self, *args):
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
      code = cli_ledger.main(args)
    return Outcome(code, out.getvalue(), err.getvalue())

  def on(self, command, *args, receipt=True):
    """Runs a command on the ledger of this test."""
    files = [f'--ledger={self.path}', f'--receipt={self.receipt}']
    return self.call(command, *files[: 1 + receipt], *args)

  def done(self, command, *args, **kwargs):
    outcome = self.on(command, *args, **kwargs)
    self.assertEqual((outcome.code, outcome.err), (0, ''))
    return outcome.out

  def populate(self):
    """Creates an account of 4, a cap of 1/3, a charge of 1/4 and its answer."""
    self.done('create')
    self.done('open-account', '--dataset_id=cora', '--budget=4')
    self.done('cap', '--dataset_id=cora', '--analyst=ann', '--epsilon=1/3')
    with ledger_lib.Ledger.open(self.path, receipt=self.receipt) as ledger:
      charge = ledger.charge('cora', '1/4', _DIGEST, analyst='ann')
      ledger.record_release(charge, '{"answer": "pear"}')
    return charge

  def files(self):
    return {path.name: path.read_bytes() for path in self.folder.iterdir()}

  def check_refused(self, outcome, code, message):
    self.assertEqual(outcome.code, code, outcome.err)
    self.assertEqual(outcome.out, '')
    self.assertRegex(
      outcome.err, rf'^error: [^\n]*{message}[^\n]*nothing was spent\n$'
    )


class LifeTest(LedgerCase):
  def test_create(self):
    self.assertRegex(self.done('create'), f'^{_RECEIPT}\n$')
    printed = self.done('receipt')
    self.assertEqual(printed, self.receipt.read_text())

  def test_create_without_a_receipt_file_says_so(self):
    out = self.done('create', receipt=False)
    self.assertRegex(out, f'^{_RECEIPT}\nNo receipt file: keep this line')
    self.assertFalse(self.receipt.exists())

  # Flags may stand before the command.
  def test_order_of_flags(self):
    outcome = self.call(f'--ledger={self.path}', 'create')
    self.assertEqual(outcome.code, 0, outcome.err)
    self.assertTrue(self.path.exists())

  def test_open_account(self):
    self.done('create')
    self.assertEqual(
      self.done('open-account', '--dataset_id=cora', '--budget=0.1'),
      'cora: epsilon budget 1/10, spent 0, remaining 1/10\n',
    )
    out = self.done('balance', '--dataset_id=cora')
    self.assertIn(
      'The whole budget is epsilon 1/10, delta 0, for add_remove_one_edge', out
    )

  def test_open_account_for_another_relation(self):
    self.done('create')
    self.done(
      'open-account',
      '--dataset_id=table',
      '--budget=1',
      '--relation=replace_one_row',
    )
    out = self.done('balance', '--dataset_id=table')
    self.assertIn('for replace_one_row', out)

  def test_open_account_in_zcdp(self):
    self.done('create')
    out = self.done(
      'open-account', '--dataset_id=cora', '--budget=4', '--delta=1e-6'
    )
    self.assertStartsWith(out, 'cora: rho budget ')
    with ledger_lib.Ledger.open(self.path) as ledger:
      balance = ledger.balance('cora')
    self.assertIn(f'remaining {balance.remaining}', out)
    out = self.done('balance', '--dataset_id=cora')
    self.assertIn('epsilon 4, delta 1/1000000, for', out)

  def test_balances(self):
    self.populate()
    self.assertStartsWith(
      self.done('balance', '--dataset_id=cora'),
      'cora: epsilon budget 4, spent 1/4, remaining 15/4\n',
    )
    self.assertStartsWith(
      self.done('balance', '--dataset_id=cora', '--analyst=ann'),
      'cora, analyst ann: epsilon budget 1/3, spent 1/4, remaining 1/12\n',
    )

  def test_history(self):
    self.populate()
    out = self.done('history')
    rows = [line.split() for line in out.splitlines()]
    self.assertEqual(
      rows,
      [
        'sequence kind dataset_id analyst epsilon query_digest'.split(),
        ['1', 'ledger', '-', '-', '-', '-'],
        ['2', 'account', 'cora', '-', '4/1', '-'],
        ['3', 'cap', 'cora', 'ann', '1/3', '-'],
        ['4', 'charge', 'cora', 'ann', '1/4', _DIGEST],
        ['5', 'release', 'cora', 'ann', '1/4', _DIGEST],
      ],
    )
    self.assertNotIn('pear', out)

  def test_history_of_one_dataset(self):
    self.populate()
    self.done('open-account', '--dataset_id=other', '--budget=1')
    out = self.done('history', '--dataset_id=other')
    self.assertLen(out.splitlines(), 2)
    self.assertRegex(out, r'\n +6 +account +other ')

  def test_export_verifies_and_a_cut_one_does_not(self):
    charge = self.populate()
    path = self.folder / 'export.jsonl'
    printed = self.done('export', f'--out={path}')
    self.assertEqual(printed, self.receipt.read_text())
    flag = f'--export={path}'
    outcome = self.call('verify', flag, f'--receipt={self.receipt}')
    self.assertEqual(outcome.code, 0, outcome.err)
    self.assertEqual(outcome.out, f'intact up to {printed}')
    lines = path.read_text().splitlines(keepends=True)
    path.write_text(''.join(lines[:4]))
    self.assertEqual(
      self.call('verify', flag).out, f'intact up to {charge.receipt}\n'
    )
    self.check_refused(
      self.call('verify', flag, f'--receipt={self.receipt}'), 1, 'ends at 4'
    )
    path.write_text(''.join(lines).replace('1/4', '1/5'))
    self.check_refused(self.call('verify', flag), 1, 'broken at entry 4')

  def test_reading_changes_nothing(self):
    self.populate()
    # As after a crash between commit and receipt: the receipt is older.
    old = self.receipt.read_bytes()
    self.done('open-account', '--dataset_id=other', '--budget=1')
    self.receipt.write_bytes(old)
    before = self.files()
    for command, *args in (
      ('balance', '--dataset_id=cora'),
      ('history',),
      ('verify',),
      ('receipt',),
    ):
      self.done(command, *args)
    self.assertEqual(self.files(), before)
    # What writes an entry moves it on.
    self.done('cap', '--dataset_id=cora', '--analyst=bob', '--epsilon=1')
    self.assertEqual(self.done('receipt'), self.receipt.read_text())


class RefusedTest(LedgerCase):
  def test_create_twice(self):
    self.done('create')
    before = self.files()
    self.check_refused(self.on('create'), 1, 'belongs to an earlier ledger')
    self.check_refused(self.on('create', receipt=False), 1, 'ledger.db exists')
    self.assertEqual(self.files(), before)

  def test_second_account(self):
    self.populate()
    outcome = self.on('open-account', '--dataset_id=cora', '--budget=9')
    self.check_refused(outcome, 1, 'new version of the data')

  @parameterized.parameters('balance', 'cap')
  def test_unknown_dataset(self, command):
    self.populate()
    extra = ['--analyst=ann', '--epsilon=1'] if command == 'cap' else []
    outcome = self.on(command, '--dataset_id=strangers', *extra)
    self.check_refused(outcome, 1, 'strangers has no account')

  def test_unknown_analyst(self):
    self.populate()
    outcome = self.on('balance', '--dataset_id=cora', '--analyst=bob')
    self.check_refused(outcome, 1, 'no cap for analyst bob')

  def test_cap_above_the_budget(self):
    self.populate()
    outcome = self.on(
      'cap', '--dataset_id=cora', '--analyst=ann', '--epsilon=41/10'
    )
    self.check_refused(outcome, 2, 'at most the budget 4')

  def test_old_copy(self):
    self.done('create')
    backup = self.path.read_bytes()
    self.done('open-account', '--dataset_id=cora', '--budget=4')
    self.path.write_bytes(backup)
    for command in ('verify', 'history', 'receipt'):
      self.check_refused(self.on(command), 1, 'it is an old copy')

  def test_changed_entry(self):
    self.populate()
    connection = sqlite3.connect(self.path)
    (sql,) = connection.execute(
      "SELECT sql FROM sqlite_master WHERE name = 'entries_no_update'"
    ).fetchone()
    connection.execute('DROP TRIGGER entries_no_update')
    connection.execute("UPDATE entries SET epsilon = '1/5' WHERE sequence = 4")
    connection.execute(sql)
    connection.commit()
    connection.close()
    self.check_refused(self.on('verify'), 1, 'broken at entry 4')

  def test_not_a_ledger(self):
    self.path.write_bytes(b'a text')
    self.check_refused(self.on('verify', receipt=False), 1, 'not a database')

  def test_not_a_receipt(self):
    self.done('create')
    self.receipt.write_text('a text')
    self.check_refused(self.on('verify'), 1, 'not a ledger receipt')

  def test_interrupt(self):
    self.done('create')
    with unittest.mock.patch.object(
      ledger_lib.Ledger, 'history', side_effect=KeyboardInterrupt
    ):
      self.check_refused(self.on('history'), 1, 'interrupted')


class BadUsageTest(LedgerCase):
  @parameterized.parameters(
    ([], 'one command must be given of create, .*, got none'),
    (['spend'], 'got spend'),
    (['create', 'receipt'], 'got create receipt'),
    (['create'], '--ledger must be given'),
    (['create', '--ledger='], '--ledger must be given'),
    (['create', '--leger=x'], "flag 'leger'"),
    (['receipt', '--ledger=x', '--budget=4'], 'receipt does not take --budget'),
    (['cap', '--ledger=x'], '--dataset_id and --analyst and --epsilon must'),
    (['verify', '--export=x', '--ledger=y'], 'verify does not take --ledger'),
    (['create', '--ledger=x', '--export=y'], 'create does not take --export'),
    (['open-account', '--relation=none'], 'relation=none'),
  )
  def test_command_line(self, args, message):
    self.check_refused(self.call(*args), 2, message)

  @parameterized.parameters('receipt', 'verify', 'history')
  def test_missing_ledger(self, command):
    outcome = self.on(command, receipt=False)
    self.check_refused(outcome, 2, re.escape(f'{self.path} does not exist'))
    self.assertFalse(self.path.exists())

  def test_missing_receipt(self):
    self.done('create', receipt=False)
    outcome = self.on('verify')
    self.check_refused(outcome, 2, re.escape(f'{self.receipt} does not exist'))

  @parameterized.parameters(
    'nan inf -1 0 True 1/0 four 1e999999999 1e-99999999'.split()
  )
  def test_budget(self, budget):
    self.done('create')
    before = self.files()
    outcome = self.on('open-account', '--dataset_id=cora', f'--budget={budget}')
    self.check_refused(outcome, 2, 'budget must be')
    self.assertEqual(self.files(), before)

  @parameterized.parameters('Cora', 'co ra', '../cora')
  def test_dataset_id(self, dataset_id):
    self.done('create')
    outcome = self.on(
      'open-account', f'--dataset_id={dataset_id}', '--budget=4'
    )
    self.check_refused(outcome, 2, 'dataset_id must be')


class HelpTest(LedgerCase):
  def test_help_names_every_command(self):
    outcome = self.call('--help')
    self.assertEqual((outcome.code, outcome.err), (0, ''))
    for command in cli_ledger._COMMANDS:
      self.assertRegex(outcome.out, rf'privjax-ledger {command}\b')
    for entry in ('--receipt:', '--budget:', '--relation:'):
      self.assertIn(entry, outcome.out)

  def test_flags_of_the_process_are_left_alone(self):
    before = set(flags.FLAGS)
    self.done('create')
    self.done('receipt')
    self.assertEqual(set(flags.FLAGS), before)

  def test_arguments_of_the_process(self):
    argv = ['privjax-ledger', 'create', f'--ledger={self.path}']
    out = io.StringIO()
    with (
      unittest.mock.patch.object(cli_ledger.sys, 'argv', argv),
      contextlib.redirect_stdout(out),
    ):
      self.assertEqual(cli_ledger.main(), 0)
    receipt = ledger_records.Receipt.parse(out.getvalue().splitlines()[0])
    self.assertEqual(receipt.sequence, 1)
