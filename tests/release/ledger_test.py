"""Accounts, charges, caps, cache, receipts, export of the ledger."""

import ast
import contextlib
import fractions
import json
import os
import pathlib
import shutil
import sqlite3
import tempfile
import time
from unittest import mock

from absl.testing import parameterized
import hypothesis
from hypothesis import strategies as st

from privjax import release
from privjax import types
from privjax.mechanisms import accounting
from privjax.release import ledger as ledger_lib
from privjax.release import ledger_chain
from privjax.release import ledger_records
from privjax.release import ledger_storage
from tests.release import ledger_faults

Fraction = fractions.Fraction
_EDGE = types.NeighboringRelation.ADD_REMOVE_ONE_EDGE
_QUERY = 'a' * 64
_OTHER = 'b' * 64


class LedgerTest(parameterized.TestCase):
  """A folder with one ledger and its receipt."""

  def setUp(self):
    super().setUp()
    folder = tempfile.TemporaryDirectory()
    self.addCleanup(folder.cleanup)
    self.folder = pathlib.Path(folder.name)
    self.path = self.folder / 'ledger.db'
    self.receipt = self.folder / 'ledger.receipt'
    self.ledger = release.Ledger.create(self.path, receipt=self.receipt)
    self.addCleanup(lambda: self.ledger.close())
    self.ledger.open_account('cora', '1', _EDGE)

  def reopen(self, receipt=None):
    self.ledger.close()
    self.ledger = release.Ledger.open(self.path, receipt=receipt)
    return self.ledger

  @contextlib.contextmanager
  def refused(self, error, words=''):
    """Checks an error and that the history is what it was."""
    before = self.ledger.history()
    with self.assertRaisesRegex(error, words):
      yield
    self.assertEqual(self.ledger.history(), before)

  def raw(self, *statements):
    """Runs SQL beside the ledger."""
    connection = sqlite3.connect(self.path)
    try:
      with connection:
        for statement in statements:
          connection.execute(statement)
    finally:
      connection.close()


class ChargeTest(LedgerTest):
  def test_eleven_elevenths_are_one(self):
    for number in range(11):
      self.ledger.charge('cora', '1/11', f'{number:064x}')
    balance = self.ledger.balance('cora')
    self.assertEqual(balance.spent, 1)
    self.assertEqual(balance.remaining, 0)
    with self.refused(release.InsufficientBudgetError):
      self.ledger.charge('cora', Fraction(1, 10**40), _QUERY)

  def test_three_tenths_as_floats(self):
    self.ledger.open_account('tenths', 0.3, _EDGE)
    for _ in range(3):
      self.ledger.charge('tenths', 0.1, _QUERY)
    self.assertEqual(self.ledger.balance('tenths').remaining, 0)

  def test_error_says_what_was_and_was_not_spent(self):
    self.ledger.charge('cora', '9/11', _QUERY)
    words = (
      'dataset cora: the epsilon budget is 1, spent 9/11, remaining 2/11, '
      'requested 1/2; nothing was spent'
    )
    with self.refused(release.InsufficientBudgetError, words):
      self.ledger.charge('cora', '1/2', _OTHER)
    with self.assertRaises(release.InsufficientBudgetError) as caught:
      self.ledger.charge('cora', '1/2', _OTHER)
    error = caught.exception
    self.assertEqual(
      (error.budget, error.spent, error.remaining, error.requested),
      (1, Fraction(9, 11), Fraction(2, 11), Fraction(1, 2)),
    )

  @parameterized.parameters(
    0, -1, '-1/2', '0', 0.0, -0.5, True, None, '', 'one', '1/0',
    float('nan'), float('inf'), float('-inf'), 'nan', 'inf', ([1],),
  )  # fmt: skip
  def test_refuses_bad_epsilon(self, epsilon):
    with self.refused(ValueError, 'epsilon'):
      self.ledger.charge('cora', epsilon, _QUERY)
    with self.refused(ValueError, 'budget'):
      self.ledger.open_account('pubmed', epsilon, _EDGE)
    with self.refused(ValueError, 'epsilon'):
      self.ledger.set_analyst_cap('cora', 'ada', epsilon)
    if epsilon is not None:
      with self.refused(ValueError, 'delta'):
        self.ledger.open_account('pubmed', 1, _EDGE, delta=epsilon)

  def test_subnormal_epsilon_is_not_lost(self):
    self.ledger.charge('cora', 5e-324, _QUERY)
    self.assertEqual(self.ledger.balance('cora').spent, Fraction('5e-324'))

  @parameterized.parameters('Cora', ' cora', 'cora/2', 'cоra', '', 7, None)
  def test_refuses_bad_dataset_id(self, dataset_id):
    with self.refused(ValueError, 'dataset_id'):
      self.ledger.open_account(dataset_id, 1, _EDGE)
    with self.refused(ValueError, 'dataset_id'):
      self.ledger.charge(dataset_id, 1, _QUERY)

  @parameterized.parameters('A' * 64, 'a' * 63, 'a' * 64 + '\n', b'a' * 64, '')
  def test_refuses_bad_digest(self, digest):
    with self.refused(ValueError, 'query_digest'):
      self.ledger.charge('cora', 1, digest)
    with self.refused(ValueError, 'query_digest'):
      self.ledger.cached('cora', digest)

  def test_unknown_dataset(self):
    with self.refused(release.UnknownAccountError, 'nothing was spent'):
      self.ledger.charge('pubmed', 1, _QUERY)

  def test_an_account_is_opened_once(self):
    with self.refused(release.LedgerExistsError, 'same budget'):
      self.ledger.open_account('cora', 5, _EDGE)

  def test_guarantee(self):
    guarantee = self.ledger.balance('cora').guarantee
    self.assertEqual((guarantee.epsilon, guarantee.delta), (1, 0))
    self.assertEqual(guarantee.relation, _EDGE)
    self.assertEqual(guarantee.theorem, accounting.PURE_SUM)

  @hypothesis.given(
    epsilons=st.lists(
      st.fractions(min_value=0, max_value=1, max_denominator=9).filter(bool),
      max_size=12,
    )
  )
  @hypothesis.settings(max_examples=8)
  def test_never_more_than_the_budget(self, epsilons):
    name = f'set-{len(self.ledger.history())}'
    self.ledger.open_account(name, 2, _EDGE)
    total = Fraction(0)
    for epsilon in epsilons:
      fits = total + epsilon <= 2
      with contextlib.suppress(release.InsufficientBudgetError):
        self.ledger.charge(name, epsilon, _QUERY)
        self.assertTrue(fits)
        total += epsilon
      self.assertEqual(self.ledger.balance(name).spent, total)
      if fits:
        self.assertGreaterEqual(total, epsilon)


class AnalystTest(LedgerTest):
  def setUp(self):
    super().setUp()
    self.ledger.set_analyst_cap('cora', 'ada', '1/2')
    self.ledger.set_analyst_cap('cora', 'bob', '3/4')

  def test_charges_the_share_and_the_whole(self):
    self.ledger.charge('cora', '1/3', _QUERY, analyst='ada')
    self.ledger.charge('cora', '1/6', _QUERY, analyst='bob')
    self.assertEqual(self.ledger.balance('cora').spent, Fraction(1, 2))
    self.assertEqual(self.ledger.balance('cora', 'ada').spent, Fraction(1, 3))
    self.assertEqual(
      self.ledger.balance('cora', 'bob').remaining, Fraction(7, 12)
    )

  def test_cap_binds(self):
    self.ledger.charge('cora', '1/2', _QUERY, analyst='ada')
    with self.refused(
      release.InsufficientBudgetError, 'dataset cora, analyst ada'
    ):
      self.ledger.charge('cora', '1/100', _QUERY, analyst='ada')

  def test_dataset_binds_under_the_caps(self):
    self.ledger.charge('cora', '1/2', _QUERY, analyst='ada')
    self.ledger.charge('cora', '1/4', _QUERY)
    with self.refused(release.InsufficientBudgetError, 'dataset cora: '):
      self.ledger.charge('cora', '1/2', _QUERY, analyst='bob')

  def test_unknown_analyst(self):
    with self.refused(release.UnknownAccountError, 'nothing was spent'):
      self.ledger.charge('cora', '1/9', _QUERY, analyst='eve')

  def test_cap_above_the_budget(self):
    with self.refused(ValueError, 'at most the budget 1'):
      self.ledger.set_analyst_cap('cora', 'ada', '1.01')

  def test_a_lower_cap_counts_what_was_spent(self):
    self.ledger.charge('cora', '1/3', _QUERY, analyst='ada')
    self.ledger.set_analyst_cap('cora', 'ada', '1/4')
    with self.refused(release.InsufficientBudgetError, 'spent 1/3'):
      self.ledger.charge('cora', '1/100', _QUERY, analyst='ada')
    self.reopen()

  def test_an_answer_is_for_who_paid(self):
    charge = self.ledger.charge('cora', '1/3', _QUERY, analyst='ada')
    self.ledger.record_release(charge, '1')
    self.assertEqual(self.ledger.cached('cora', _QUERY, analyst='ada'), '1')
    self.assertIsNone(self.ledger.cached('cora', _QUERY, analyst='bob'))
    self.assertIsNone(self.ledger.cached('cora', _QUERY))


class ZcdpTest(LedgerTest):
  def setUp(self):
    super().setUp()
    self.ledger.open_account('wide', 5, _EDGE, delta='1e-6')

  def test_bounded_range_costs_an_eighth(self):
    charge = self.ledger.charge('wide', '1/2', _QUERY, bounded_range=True)
    self.assertEqual(charge.cost, Fraction(1, 32))
    charge = self.ledger.charge('wide', '1/2', _QUERY)
    self.assertEqual(charge.cost, Fraction(1, 8))
    self.assertEqual(self.ledger.balance('wide').spent, Fraction(5, 32))

  def test_admits_what_the_filter_admits(self):
    account = accounting.ZcdpFilter.for_guarantee(5, delta='1e-6')
    cost = accounting.zcdp_cost('1/2', bounded_range=True)
    number = 0
    while account.admits(cost):
      account = account.spend(cost)
      self.ledger.charge('wide', '1/2', f'{number:064x}', bounded_range=True)
      number += 1
    self.assertEqual(number, 14)  # The pure sum would admit 10.
    with self.refused(release.InsufficientBudgetError, 'the rho budget'):
      self.ledger.charge('wide', '1/2', _QUERY, bounded_range=True)
    self.assertEqual(self.ledger.balance('wide').remaining, account.remaining)
    self.reopen()

  def test_guarantee_and_cap(self):
    balance = self.ledger.balance('wide')
    self.assertEqual(balance.unit, 'rho')
    self.assertEqual(balance.guarantee.epsilon, 5)
    self.assertEqual(balance.guarantee.delta, Fraction(1, 10**6))
    self.assertStartsWith(balance.guarantee.theorem, accounting.FILTER)
    self.ledger.set_analyst_cap('wide', 'ada', 1)
    share = self.ledger.balance('wide', 'ada')
    self.assertEqual(share.budget, accounting.zcdp_budget(1, delta='1e-6'))
    self.assertEqual(share.guarantee.epsilon, 1)


class CacheTest(LedgerTest):
  def test_same_query_same_account(self):
    charge = self.ledger.charge('cora', '1/2', _QUERY)
    self.assertIsNone(self.ledger.cached('cora', _QUERY))
    self.ledger.record_release(charge, '{"b": 1,  "a": 2}')
    before = self.ledger.balance('cora')
    self.assertEqual(self.ledger.cached('cora', _QUERY), '{"b": 1,  "a": 2}')
    self.assertEqual(self.ledger.balance('cora'), before)
    self.assertIsNone(self.ledger.cached('cora', _OTHER))
    self.assertEqual(self.reopen().cached('cora', _QUERY), '{"b": 1,  "a": 2}')

  def test_the_first_answer_stays(self):
    for text in ('1', '2'):
      charge = self.ledger.charge('cora', '1/4', _QUERY)
      self.ledger.record_release(charge, text)
    self.assertEqual(self.ledger.cached('cora', _QUERY), '1')

  def test_one_charge_pays_for_one_release(self):
    charge = self.ledger.charge('cora', '1/4', _QUERY)
    self.ledger.record_release(charge, '1')
    with self.refused(release.LedgerExistsError, 'pays for one'):
      self.ledger.record_release(charge, '1')

  @parameterized.parameters('', '{', 'NaN', '[Infinity]', '{"a": -Infinity}')
  def test_refuses_what_is_not_json(self, text):
    charge = self.ledger.charge('cora', '1/4', _QUERY)
    with self.refused(ValueError):
      self.ledger.record_release(charge, text)

  def test_a_charge_of_another_ledger(self):
    path = self.folder / 'other.db'
    with release.Ledger.create(path) as other:
      other.open_account('cora', 1, _EDGE)
      charge = other.charge('cora', '1/4', _QUERY)
    with self.refused(release.LedgerError, 'not of this ledger'):
      self.ledger.record_release(charge, '1')


class ReceiptTest(LedgerTest):
  def _spend(self, number):
    self.ledger.charge('cora', '1/10', f'{number:064x}')

  def test_file_follows_the_ledger(self):
    for number in range(3):
      self._spend(number)
      text = self.receipt.read_text()
      self.assertEqual(text, f'{self.ledger.receipt()}\n')
      parsed = release.Receipt.parse(text)
      self.assertEqual(parsed.sequence, len(self.ledger.history()))

  def test_restored_backup(self):
    self._spend(0)
    self.ledger.close()
    shutil.copy(self.path, self.folder / 'backup.db')
    self.reopen(self.receipt)
    self._spend(1)
    printed = release.Receipt.parse(str(self.ledger.receipt()))
    self.ledger.close()
    shutil.copy(self.folder / 'backup.db', self.path)
    for receipt in (self.receipt, printed):
      with self.assertRaisesRegex(release.LedgerRollbackError, 'an old copy'):
        release.Ledger.open(self.path, receipt=receipt)
    # What no receipt can find: nothing was kept that is newer.
    self.assertEqual(self.reopen().balance('cora').spent, Fraction(1, 10))

  def test_backup_that_was_used_again(self):
    self.ledger.close()
    shutil.copy(self.path, self.folder / 'backup.db')
    self.reopen(self.receipt)
    self._spend(1)
    self.ledger.close()
    shutil.copy(self.folder / 'backup.db', self.path)
    self.reopen()
    for number in range(2, 5):
      self._spend(number)
    with self.assertRaisesRegex(release.LedgerRollbackError, 'is not the one'):
      self.reopen(self.receipt)

  def test_file_replaced_while_open(self):
    shutil.copy(self.path, self.folder / 'copy.db')
    os.replace(self.folder / 'copy.db', self.path)
    with self.assertRaisesRegex(release.LedgerRollbackError, 'replaced'):
      self._spend(0)

  def test_receipt_lost_or_of_another_ledger(self):
    with release.Ledger.create(self.folder / 'o.db') as other:
      foreign = other.receipt()
    with self.assertRaisesRegex(release.LedgerRollbackError, 'of ledger'):
      release.Ledger.open(self.path, receipt=foreign)
    self.receipt.unlink()
    with self.refused(release.LedgerRollbackError, 'cannot be read'):
      self._spend(0)
    with self.assertRaisesRegex(release.LedgerRollbackError, 'cannot be read'):
      release.Ledger.open(self.path, receipt=self.receipt)

  def test_receipt_garbled(self):
    self.receipt.write_text('privjax-ledger-receipt 1 x 1 y')
    with self.assertRaisesRegex(release.LedgerError, 'not a ledger receipt'):
      release.Ledger.open(self.path, receipt=self.receipt)

  def test_old_receipt_moves_on(self):
    old = self.receipt.read_text()
    self._spend(0)
    self.receipt.write_text(old)  # As after a crash before it was written.
    self.reopen(self.receipt)
    self.assertEqual(self.receipt.read_text(), f'{self.ledger.receipt()}\n')

  def test_create_forgets_nothing(self):
    for path, receipt in (
      (self.path, None),
      (self.folder / 'new.db', self.receipt),
    ):
      with self.assertRaises(release.LedgerExistsError):
        release.Ledger.create(path, receipt=receipt)
    self.ledger.close()
    self.path.unlink()
    (self.folder / 'ledger.db-wal').write_bytes(b'')
    with self.assertRaisesRegex(release.LedgerExistsError, 'earlier ledger'):
      release.Ledger.create(self.path)


class ChainTest(LedgerTest):
  def setUp(self):
    super().setUp()
    self.ledger.set_analyst_cap('cora', 'ada', '1/2')
    charge = self.ledger.charge('cora', '1/3', _QUERY, analyst='ada')
    self.ledger.record_release(charge, '{"candidate": 3}')

  @parameterized.parameters(
    "UPDATE entries SET epsilon = '1/9' WHERE kind = 'charge'",
    'DELETE FROM entries WHERE sequence = 4',
    'DELETE FROM entries',
    "INSERT OR REPLACE INTO entries VALUES (4, 'charge', 'cora', NULL, '',"
    " '1/9', '1/9', '{}', '', '')",
    "INSERT INTO entries VALUES (9, 'charge', 'cora', NULL, '', '1/9', '1/9',"
    " '{}', '', '')",
    "INSERT INTO entries VALUES (6, 'charge', 'cora', NULL, '', '1/9', '1/9',"
    " '{}', 'x', '')",
    "INSERT INTO entries SELECT 6, 'charge', 'cora', NULL, '', '-1/9', '-1/9',"
    " '{}', hash, '' FROM entries WHERE sequence = 5",
  )
  def test_triggers_refuse(self, statement):
    with self.refused(sqlite3.IntegrityError):
      self.raw(statement)

  @parameterized.parameters(
    'DROP TRIGGER entries_no_update',
    'DROP INDEX entries_by_account',
    'CREATE TABLE more (x)',
    'CREATE TRIGGER t AFTER INSERT ON entries BEGIN SELECT 1; END',
  )
  def test_changed_schema(self, statement):
    self.ledger.close()
    self.raw(statement)
    with self.assertRaisesRegex(release.LedgerTamperError, 'were changed'):
      release.Ledger.open(self.path)

  @parameterized.parameters(
    ("UPDATE entries SET epsilon = '1/9', cost = '1/9' WHERE sequence = 4", 4),
    ('DELETE FROM entries WHERE sequence = 4', 4),
    ("UPDATE entries SET body = '{}' WHERE sequence = 5", 5),
    ('UPDATE entries SET hash = previous WHERE sequence = 2', 2),
    ('UPDATE entries SET sequence = 7 WHERE sequence = 5', 5),
  )
  def test_changed_entries(self, statement, where):
    self.ledger.close()
    connection = sqlite3.connect(self.path)
    triggers = connection.execute(
      "SELECT name, sql FROM sqlite_master WHERE type = 'trigger'"
    ).fetchall()
    connection.close()
    self.raw(
      *(f'DROP TRIGGER {name}' for name, _ in triggers),
      statement,
      *(sql for _, sql in triggers),
    )
    with self.assertRaisesRegex(
      release.LedgerTamperError, f'chain is broken at entry {where}'
    ):
      release.Ledger.open(self.path)

  def _export(self):
    path = self.folder / f'export-{len(list(self.folder.iterdir()))}.jsonl'
    self.ledger.export(path)
    return path

  def test_export(self):
    path = self._export()
    self.assertEqual(release.verify_export(path), self.ledger.receipt())
    lines = path.read_text().splitlines()
    self.assertLen(lines, len(self.ledger.history()))
    self.assertEqual(json.loads(lines[3])['epsilon'], '1/3')
    with self.assertRaises(release.LedgerExistsError):
      self.ledger.export(path)

  def test_export_with_any_byte_changed(self):
    path = self._export()
    data = path.read_bytes()
    accepted = []
    for position in range(0, len(data), 7):
      changed = bytearray(data)
      changed[position] ^= 1
      path.write_bytes(changed)
      try:
        release.verify_export(path)
        accepted.append((position, data[position - 20 : position + 5]))
      except (release.LedgerTamperError, UnicodeDecodeError):
        pass
    self.assertEqual(accepted, [])

  def test_cut_export_needs_the_receipt(self):
    receipt = self.ledger.receipt()
    path = self._export()
    lines = path.read_text().splitlines(keepends=True)
    path.write_text(''.join(lines[:-1]))
    release.verify_export(path)
    with self.assertRaisesRegex(release.LedgerRollbackError, 'an old copy'):
      release.verify_export(path, receipt)
    path.write_text('')
    with self.assertRaisesRegex(release.LedgerTamperError, 'no entries'):
      release.verify_export(path)

  def test_a_consistent_chain_that_lies(self):
    # Whoever writes the file can compute hashes, but not break the arithmetic.
    entries = self.ledger.history()
    good = entries[3]._asdict()
    for name in ('sequence', 'previous', 'hash'):
      del good[name]
    for change in (
      {'epsilon': '-1/3', 'cost': '-1/3'},
      {'epsilon': '0/1', 'cost': '0/1'},
      {'epsilon': '2/6', 'cost': '2/6'},
      {'cost': '1/9'},
      {'epsilon': '3/4', 'cost': '3/4'},
      {'epsilon': '1/4', 'cost': '1/4'},
      {'analyst': 'eve'},
      {'dataset_id': 'pubmed'},
      {'kind': 'refund'},
      {'kind': 'ledger'},
      {'body': '{"bounded_range": true}'},
      {'kind': 'release', 'body': '{"charge":4,"release":"1"}'},
      {'kind': 'release', 'body': '{"charge":3,"release":"1"}'},
    ):
      entry = ledger_records.next_entry(entries[-1], **(good | change))
      with self.assertRaisesRegex(release.LedgerTamperError, 'entry 6'):
        ledger_chain.verify([*entries, entry])
    entry = ledger_records.next_entry(
      entries[-1], **(good | {'epsilon': '1/6', 'cost': '1/6'})
    )
    ledger_chain.verify([*entries, entry])


class ClockAndPrivacyTest(LedgerTest):
  def test_no_module_reads_a_clock(self):
    folder = pathlib.Path(ledger_lib.__file__).parent
    files = sorted(folder.glob('ledger*.py'))
    self.assertGreaterEqual(len(files), 7)
    for path in files:
      tree = ast.parse(path.read_text())
      for node in ast.walk(tree):
        if isinstance(node, ast.Import):
          names = {alias.name for alias in node.names}
          self.assertNoCommonElements(names, {'time', 'datetime'}, path.name)
      self.assertNotRegex(path.read_text(), r"CURRENT_|'now'|strftime")

  def test_order_is_the_sequence_whatever_the_clock_says(self):
    for clock in (0.0, 4e9, -1.0):
      with mock.patch.object(time, 'time', return_value=clock):
        self.ledger.charge('cora', '1/10', _QUERY)
      os.utime(self.path, (abs(clock), abs(clock)))
    sequences = [entry.sequence for entry in self.ledger.history()]
    self.assertEqual(sequences, [1, 2, 3, 4, 5])
    self.assertEqual(
      self.reopen(self.receipt).balance('cora').spent, Fraction(3, 10)
    )

  def test_two_ledgers_of_one_story_differ_only_in_their_id(self):
    with release.Ledger.create(self.folder / 'twin.db') as twin:
      twin.open_account('cora', '1', _EDGE)
      for ledger in (self.ledger, twin):
        charge = ledger.charge('cora', '1/4', _QUERY)
        ledger.record_release(charge, '1')
      rows = lambda ledger: [entry[:8] for entry in ledger.history()[1:]]
      self.assertEqual(rows(self.ledger), rows(twin))


class StorageTest(LedgerTest):
  def test_pragmas(self):
    connection = ledger_storage.connect(str(self.path))
    self.addCleanup(connection.close)
    for name, value in (
      ('journal_mode', 'wal'),
      ('synchronous', 2),
      ('recursive_triggers', 1),
      ('trusted_schema', 0),
    ):
      (actual,) = connection.execute(f'PRAGMA {name}').fetchone()
      self.assertEqual(actual, value, name)

  @parameterized.parameters(
    ('/data/x/ledger.db', 'nfs4'),
    ('/data/ledger.db', 'ext4'),
    ('/data/my disk/ledger.db', 'fuse.sshfs'),
    ('/database/ledger.db', 'ext4'),
    ('/over/ledger.db', 'cifs'),
    ('/elsewhere', 'ext4'),
  )
  def test_file_system_type(self, path, expected):
    mounts = (
      '/dev/a / ext4 rw 0 0\n/dev/b /data ext4 rw 0 0\nh:/x /data/x nfs4 rw 0 0'
      '\nh: /data/my\\040disk fuse.sshfs rw 0 0\n/dev/c /over ext4 rw 0 0\n'
      '//h/s /over cifs rw 0 0\n'
    )
    self.assertEqual(ledger_storage.file_system_type(path, mounts), expected)

  @parameterized.parameters(
    'nfs', 'nfs4', 'cifs', 'smb3', 'smbfs', 'fuse.sshfs', 'ceph', '9p',
    'fuse.gcsfuse', 'glusterfs', 'lustre',
  )  # fmt: skip
  def test_refuses_network_file_systems(self, kind):
    mounts = self.folder / 'mounts'
    mounts.write_text(f'h:/x {self.folder.resolve()} {kind} rw 0 0\n')
    with mock.patch.object(ledger_storage, '_MOUNTS', mounts):
      with self.assertRaisesRegex(release.NetworkFileSystemError, kind):
        release.Ledger.open(self.path)
      with self.assertRaisesRegex(release.NetworkFileSystemError, kind):
        release.Ledger.create(self.folder / 'new.db')
    self.assertFalse((self.folder / 'new.db').exists())

  def test_unknown_file_system_counts_as_local(self):
    mounts = self.folder / 'mounts'
    mounts.write_text(f'x {self.folder.resolve()} newfs rw 0 0\n')
    for path in (mounts, self.folder / 'missing'):
      with mock.patch.object(ledger_storage, '_MOUNTS', path):
        self.reopen()

  def test_read_only_file(self):
    self.ledger.close()
    self.path.chmod(0o444)
    with self.assertRaises(release.ReadOnlyLedgerError):
      release.Ledger.open(self.path)

  def test_read_only_file_system(self):
    flags = mock.Mock(f_flag=os.ST_RDONLY)
    with mock.patch.object(ledger_storage.os, 'statvfs', return_value=flags):
      with self.refused(release.ReadOnlyLedgerError, 'nothing was spent'):
        self.ledger.charge('cora', '1/2', _QUERY)

  def test_made_read_only_while_open(self):
    self.path.chmod(0o400)
    with self.refused(release.ReadOnlyLedgerError, 'nothing was spent'):
      self.ledger.charge('cora', '1/2', _QUERY)

  def test_missing_or_second_name(self):
    with self.assertRaisesRegex(release.LedgerStorageError, 'cannot be read'):
      release.Ledger.open(self.folder / 'missing.db')
    self.assertFalse((self.folder / 'missing.db').exists())
    os.link(self.path, self.folder / 'second.db')
    with self.assertRaisesRegex(release.LedgerStorageError, '2 hard links'):
      release.Ledger.open(self.path)

  def test_a_symbolic_link_is_the_same_ledger(self):
    (self.folder / 'link.db').symlink_to(self.path)
    with release.Ledger.open(self.folder / 'link.db') as other:
      other.charge('cora', '1/2', _QUERY)
    self.assertEqual(self.ledger.balance('cora').spent, Fraction(1, 2))

  def test_not_a_ledger(self):
    for data, error in (
      (b'', release.LedgerVersionError),
      (b'not a database' * 100, release.LedgerStorageError),
    ):
      path = self.folder / 'odd.db'
      path.write_bytes(data)
      with self.assertRaises(error):
        release.Ledger.open(path)

  def test_files_are_for_the_owner_only(self):
    for path in (self.path, self.receipt):
      self.assertEqual(path.stat().st_mode & 0o077, 0)

  def test_closed_ledger_spends_nothing(self):
    self.ledger.close()
    with self.assertRaisesRegex(
      release.LedgerStorageError, 'nothing was spent'
    ):
      self.ledger.charge('cora', '1/2', _QUERY)
    self.assertEqual(self.reopen().balance('cora').spent, 0)


class MigrationTest(LedgerTest):
  def setUp(self):
    super().setUp()
    self.old = self.folder / 'old.db'
    connection = sqlite3.connect(self.old)
    connection.executescript(ledger_faults.VERSION_0)
    connection.close()

  def test_version_0_keeps_what_was_spent(self):
    with self.assertRaisesRegex(release.LedgerVersionError, 'Ledger.migrate'):
      release.Ledger.open(self.old)
    receipt = self.folder / 'old.receipt'
    with release.Ledger.migrate(self.old, receipt=receipt) as ledger:
      self.assertEqual(ledger.balance('d').spent, Fraction(2, 11))
      self.assertEqual(ledger.cached('d', 'a' * 64), '{"candidate":1}')
      self.assertIsNone(ledger.cached('d', 'b' * 64))
      ledger.charge('d', '9/11', _QUERY)
    with release.Ledger.open(self.old, receipt=receipt) as ledger:
      self.assertEqual(ledger.balance('d').remaining, 0)
      self.assertEqual(ledger.balance('d').guarantee.relation, _EDGE)

  def test_a_bad_old_ledger_stays_as_it_was(self):
    connection = sqlite3.connect(self.old)
    with connection:
      connection.execute("UPDATE charges SET epsilon = '-1' WHERE id = 2")
    connection.close()
    with self.assertRaisesRegex(ValueError, 'epsilon'):
      release.Ledger.migrate(self.old)
    connection = sqlite3.connect(self.old)
    self.addCleanup(connection.close)
    (count,) = connection.execute('SELECT COUNT(*) FROM charges').fetchone()
    self.assertEqual(count, 2)

  def test_this_version_and_the_next(self):
    self.ledger.close()
    with self.assertRaisesRegex(release.LedgerVersionError, 'no migration'):
      release.Ledger.migrate(self.path)
    self.raw('PRAGMA user_version = 2')
    with self.assertRaisesRegex(release.LedgerVersionError, 'update privjax'):
      release.Ledger.open(self.path)
