"""An open ledger file: its identity, its write lock and its receipt.

Every write checks, under the write lock, that the path still names the file
that was opened and that the owner's receipt is part of its history; after the
commit, again under the lock, the receipt moves to the last entry. A process
that dies in between leaves an older receipt, which the next open moves on.

Public inputs only.
"""

import contextlib
import os
import sqlite3

from privjax.release import ledger_chain
from privjax.release import ledger_errors
from privjax.release import ledger_records
from privjax.release import ledger_schema
from privjax.release import ledger_storage

Path = str | os.PathLike[str]
Receipt = ledger_records.Receipt


class LedgerFile:
  """One file, in one process; made by `create`, `open_file` or `migrate`."""

  def __init__(self, path: str, receipt_path: str | None):
    ledger_storage.check_local(path)
    self._identity = ledger_storage.file_identity(path)
    self._path = path
    self._receipt_path = receipt_path
    self._process = os.getpid()
    self._ledger_id = ''
    self.connection = ledger_storage.connect(path)

  @contextlib.contextmanager
  def closed_on_error(self):
    """Closes the file if the block fails; names errors of SQLite."""
    try:
      yield
    except BaseException as error:
      self.connection.close()
      ledger_storage.raise_storage_error(error, f'{self._path} failed')
      raise

  @contextlib.contextmanager
  def writing(self):
    """Holds the write lock for entries, commits, and moves the receipt."""
    with ledger_storage.transaction(self.connection):
      self._guard()
      yield
    self.publish()

  def publish(self) -> None:
    """Moves the receipt file to the last entry, if the ledger has one."""
    if self._receipt_path is None:
      return
    try:
      self.connection.execute('BEGIN IMMEDIATE')
      if os.path.lexists(self._receipt_path):
        self._guard()
      ledger_storage.write_receipt(self._receipt_path, self.receipt())
    except (OSError, sqlite3.Error) as error:
      raise ledger_errors.LedgerStorageError(
        f'the entry is recorded and counts, but its receipt is not: {error}; '
        'compute nothing on it'
      ) from error
    finally:
      ledger_storage.rollback(self.connection)

  def receipt(self) -> Receipt:
    """Returns the receipt of the last entry."""
    entry = ledger_schema.head(self.connection)
    if entry is None:
      raise ledger_errors.LedgerTamperError('the ledger has no entries')
    return self.receipt_of(entry)

  def receipt_of(self, entry: ledger_records.Entry) -> Receipt:
    """Returns the receipt of an entry."""
    return Receipt(
      ledger_id=self._ledger_id, sequence=entry.sequence, hash=entry.hash
    )

  def verify(self, receipt: Receipt | None) -> Receipt:
    """Checks file, schema and history; remembers the ledger's id."""
    ledger_schema.check(self.connection)
    problems = self.connection.execute('PRAGMA integrity_check').fetchall()
    if problems != [('ok',)]:
      raise ledger_errors.LedgerTamperError(
        f'SQLite finds the file damaged: {problems[0][0]}'
      )
    entries = ledger_schema.select(self.connection, 'TRUE ORDER BY sequence')
    found = ledger_chain.verify(entries, receipt)
    self._ledger_id = found.ledger_id
    return found

  def _guard(self) -> None:
    """Checks that this is the file, and the history, that it was."""
    if os.getpid() != self._process:
      raise ledger_errors.LedgerStorageError(
        'open the ledger in the process that uses it; nothing was spent'
      )
    if ledger_storage.file_identity(self._path) != self._identity:
      raise ledger_errors.LedgerRollbackError(
        f'{self._path} was replaced while it was open; nothing was spent'
      )
    if self._receipt_path is not None:
      pinned = ledger_storage.read_receipt(self._receipt_path)
      entries = ledger_schema.select(
        self.connection, 'sequence = ?', pinned.sequence
      )
      digest = entries[0].hash if entries else None
      last = self.receipt()
      ledger_chain.check_receipt(pinned, last.ledger_id, last.sequence, digest)


def create(path: Path, receipt: Path | None) -> LedgerFile:
  """Creates a ledger and its receipt file; replaces nothing."""
  path = os.path.realpath(path)
  receipt_path = None if receipt is None else os.path.realpath(receipt)
  ledger_storage.check_local(path)
  _refuse_rest(receipt_path, f'{path}-wal', f'{path}-journal')
  ledger_storage.new_file(path)
  file = LedgerFile(path, receipt_path)
  with file.closed_on_error():
    with ledger_storage.transaction(file.connection):
      ledger_schema.create(file.connection)
    ledger_storage.sync_folder(os.path.dirname(path))
    file.verify(None)
    file.publish()
  return file


def open_file(path: Path, receipt: Path | Receipt | None) -> LedgerFile:
  """Opens a ledger after checking its whole history against a receipt."""
  receipt_path, compared = None, None
  if isinstance(receipt, Receipt):
    compared = receipt
  elif receipt is not None:
    # Read before the ledger, which may only grow until the two are compared.
    receipt_path = os.path.realpath(receipt)
    compared = ledger_storage.read_receipt(receipt_path)
  file = LedgerFile(os.path.realpath(path), receipt_path)
  with file.closed_on_error():
    file.verify(compared)
    file.publish()
  return file


def migrate(path: Path, receipt: Path | None) -> LedgerFile:
  """Brings a ledger of an older version to this one in one transaction."""
  path = os.path.realpath(path)
  receipt_path = None if receipt is None else os.path.realpath(receipt)
  _refuse_rest(receipt_path)
  file = LedgerFile(path, receipt_path)
  with file.closed_on_error():
    with ledger_storage.transaction(file.connection):
      ledger_schema.migrate(file.connection)
    file.verify(None)
    file.publish()
  return file


def _refuse_rest(*paths: str | None) -> None:
  for path in paths:
    if path is not None and os.path.lexists(path):
      raise ledger_errors.LedgerExistsError(
        f'{path} belongs to an earlier ledger, which must not be forgotten'
      )
