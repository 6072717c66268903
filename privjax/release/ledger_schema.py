"""The tables of a ledger, their versions, and how to move between them.

One append-only table. Triggers refuse UPDATE, DELETE and any INSERT that is
not the next link of the chain (which also stops INSERT OR REPLACE). Whoever
can write the file can drop the triggers, so `check` compares the schema with
the one written here whenever a ledger is opened.

Public inputs only.
"""

from collections.abc import Callable
import secrets
import sqlite3

from privjax import _validate
from privjax import types
from privjax.release import ledger_errors
from privjax.release import ledger_records

VERSION = 1
APPLICATION_ID = 0x70726A78  # 'prjx', in the header of the file.

_COLUMNS = ', '.join(ledger_records.Entry._fields)
_KINDS = ', '.join(f"'{kind}'" for kind in ledger_records.KINDS)
_STATEMENTS = (
  f"""CREATE TABLE entries (
  sequence INTEGER PRIMARY KEY NOT NULL,
  kind TEXT NOT NULL CHECK (kind IN ({_KINDS})),
  dataset_id TEXT,
  analyst TEXT,
  query_digest TEXT,
  epsilon TEXT CHECK (epsilon NOT LIKE '-%'),
  cost TEXT CHECK (cost NOT LIKE '-%'),
  body TEXT NOT NULL,
  previous TEXT NOT NULL,
  hash TEXT NOT NULL
)""",
  """CREATE INDEX entries_by_account
ON entries (dataset_id, kind, analyst, query_digest)""",
  """CREATE TRIGGER entries_no_update BEFORE UPDATE ON entries
BEGIN SELECT RAISE(ABORT, 'entries are append-only'); END""",
  """CREATE TRIGGER entries_no_delete BEFORE DELETE ON entries
BEGIN SELECT RAISE(ABORT, 'entries are append-only'); END""",
  f"""CREATE TRIGGER entries_in_order BEFORE INSERT ON entries
WHEN NEW.sequence IS NOT (SELECT COALESCE(MAX(sequence), 0) + 1 FROM entries)
OR NEW.previous IS NOT COALESCE(
  (SELECT hash FROM entries ORDER BY sequence DESC LIMIT 1),
  '{ledger_records.GENESIS}'
)
BEGIN SELECT RAISE(ABORT, 'not the next entry of the chain'); END""",
)


def create(connection: sqlite3.Connection) -> None:
  """Creates the table and the first entry; the caller holds a transaction."""
  for statement in _STATEMENTS:
    connection.execute(statement)
  connection.execute(f'PRAGMA application_id = {APPLICATION_ID}')
  connection.execute(f'PRAGMA user_version = {VERSION}')
  body = {'ledger_id': secrets.token_hex(16), 'version': VERSION}
  append(connection, kind='ledger', body=ledger_records.canonical_json(body))


def append(connection: sqlite3.Connection, **columns) -> ledger_records.Entry:
  """Adds the next entry; the caller holds a transaction."""
  entry = ledger_records.next_entry(head(connection), **columns)
  marks = ', '.join('?' for _ in entry)
  connection.execute(f'INSERT INTO entries VALUES ({marks})', entry)
  return entry


def head(connection: sqlite3.Connection) -> ledger_records.Entry | None:
  """Returns the last entry."""
  found = select(connection, 'TRUE ORDER BY sequence DESC LIMIT 1')
  return found[0] if found else None


def select(
  connection: sqlite3.Connection, where: str, *values
) -> list[ledger_records.Entry]:
  """Returns entries by a condition with `?` for each value."""
  rows = connection.execute(
    f'SELECT {_COLUMNS} FROM entries WHERE {where}', values
  )
  return [ledger_records.Entry(*row) for row in rows]


def version(connection: sqlite3.Connection) -> int | None:
  """Returns the schema version, or `None` if this is no ledger."""
  (number,) = connection.execute('PRAGMA user_version').fetchone()
  (application,) = connection.execute('PRAGMA application_id').fetchone()
  if application == APPLICATION_ID:
    return number
  tables = {name for name, _ in _schema(connection)}
  return 0 if number == 0 and {'accounts', 'charges'} <= tables else None


def check(connection: sqlite3.Connection) -> None:
  """Checks that this is a ledger of this version with an intact schema.

  Raises:
    LedgerVersionError: if it is something else.
    LedgerTamperError: if a table, index or trigger was changed.
  """
  found = version(connection)
  if found is None:
    raise ledger_errors.LedgerVersionError(
      'not a ledger, or what an interrupted create left: nothing was ever '
      'charged to it if this program made it, and it may be deleted'
    )
  if found != VERSION:
    advice = 'run Ledger.migrate' if found < VERSION else 'update privjax'
    raise ledger_errors.LedgerVersionError(
      f'the ledger has schema version {found}, this is {VERSION}: {advice}'
    )
  if {sql for _, sql in _schema(connection)} != set(_STATEMENTS):
    raise ledger_errors.LedgerTamperError(
      'the tables or triggers of the ledger were changed'
    )


def _schema(connection: sqlite3.Connection) -> list[tuple[str, str]]:
  return connection.execute('SELECT name, sql FROM sqlite_master').fetchall()


def migrate(connection: sqlite3.Connection) -> None:
  """Brings an older schema to this one; the caller holds a transaction."""
  found = version(connection)
  if found is None or found not in _MIGRATIONS:
    raise ledger_errors.LedgerVersionError(
      f'no migration from schema version {found} to {VERSION}'
    )
  _MIGRATIONS[found](connection)


def _migrate_0(connection: sqlite3.Connection) -> None:
  """Version 0 had separate tables, no chain and no triggers."""
  accounts = connection.execute(
    'SELECT dataset_id, budget, relation FROM accounts ORDER BY dataset_id'
  ).fetchall()
  charges = connection.execute(
    'SELECT dataset_id, epsilon, query_digest, release FROM charges ORDER BY id'
  ).fetchall()
  connection.execute('DROP TABLE charges')
  connection.execute('DROP TABLE accounts')
  create(connection)
  for dataset_id, budget, relation in accounts:
    append(
      connection,
      kind='account',
      dataset_id=ledger_records.identifier(dataset_id=dataset_id),
      **amounts(budget),
      body=account_body(types.NeighboringRelation(relation)),
    )
  for dataset_id, epsilon, query_digest, release in charges:
    columns = {
      'dataset_id': dataset_id,
      'query_digest': ledger_records.digest(query_digest=query_digest),
      **amounts(epsilon),
    }
    charge = append(
      connection, kind='charge', **columns, body=charge_body(False)
    )
    if release is not None:
      body = release_body(charge.sequence, release)
      append(connection, kind='release', **columns, body=body)


def amounts(epsilon, cost=None) -> dict[str, str]:
  """Returns the two columns of amounts; the cost is the epsilon by default."""
  exact = _validate.rational(epsilon=epsilon)
  return {
    'epsilon': ledger_records.ratio(exact),
    'cost': ledger_records.ratio(exact if cost is None else cost),
  }


def account_body(relation: types.NeighboringRelation, delta=None) -> str:
  """Returns the body of an account; the mode is zCDP iff it has a delta."""
  return ledger_records.canonical_json(
    {
      'delta': None if delta is None else ledger_records.ratio(delta),
      'mode': 'pure' if delta is None else 'zcdp',
      'relation': relation.value,
    }
  )


def charge_body(bounded_range: bool) -> str:
  """Returns the body of a charge."""
  return ledger_records.canonical_json({'bounded_range': bool(bounded_range)})


def release_body(charge_sequence: int, release: str) -> str:
  """Returns the body of a release."""
  return ledger_records.canonical_json(
    {'charge': charge_sequence, 'release': release}
  )


_MIGRATIONS: dict[int, Callable[[sqlite3.Connection], None]] = {0: _migrate_0}
