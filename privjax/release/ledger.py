"""A durable privacy budget: charge first, compute second, remember the answer.

Accounts are keyed by a dataset id that the *owner* declares and that stays the
same for every version of the private data: an edited graph gets no new budget.
A release is three steps, and only the first one costs:

  cached(...)          the stored answer to the same query costs nothing
  charge(...)          on disk, or an exception and nothing may be computed
  record_release(...)  the answer, for the cache

>>> import tempfile
>>> from privjax import types
>>> folder = tempfile.TemporaryDirectory()
>>> digest = '0' * 64  # Of the public query, its epsilon included.
>>> with Ledger.create(f'{folder.name}/ledger.db') as ledger:
...   ledger.open_account(
...     'cora', '1', types.NeighboringRelation.ADD_REMOVE_ONE_EDGE
...   )
...   charge = ledger.charge('cora', '1/3', digest)
...   ledger.record_release(charge, '{"candidate": 7}')
...   print(ledger.balance('cora').remaining)
...   print(ledger.cached('cora', digest))
2/3
{"candidate": 7}
>>> folder.cleanup()

A process that dies after `charge` leaves the charge: the answer may have been
seen, and a second attempt is a second release. A restored backup is found only
with a receipt: keep the receipt file (or the printed text) where a restore of
the ledger does not restore it.

Everything in a ledger is public: digests of public queries, epsilons, order,
and released answers. It holds no clock time, which would tell how long a
private computation took.
"""

import json

from privjax import _validate
from privjax import types
from privjax.mechanisms import accounting
from privjax.release import ledger_accounts
from privjax.release import ledger_chain
from privjax.release import ledger_errors
from privjax.release import ledger_file
from privjax.release import ledger_records
from privjax.release import ledger_schema

Path = ledger_file.Path
Receipt = ledger_records.Receipt


class Ledger:
  """One SQLite file; use `create` or `open`, in one process and thread.

  Formal guarantees:
    Per account: if every computation starts only after its `charge` returned,
    and the mechanism meets the epsilon (and, where it is claimed, the bounded
    range) that it was charged for under the account's relation, then all
    releases together meet `balance(dataset_id).guarantee`, whatever the
    queries, epsilons and the time to stop depended on, and whatever crashes,
    full disks or concurrent processes did in between. A crash can only waste
    budget: at most the one charge that was in flight. Not covered: a copy of
    the file used without its receipt, the data under two dataset ids, and
    analysts who collude (the dataset's budget then bounds all of them).
  """

  def __init__(self, file: ledger_file.LedgerFile):
    self._file = file
    self._connection = file.connection

  @classmethod
  def create(cls, path: Path, *, receipt: Path | None = None) -> 'Ledger':
    """Creates a ledger without accounts.

    Args:
      path: a new file on a local disk.
      receipt: a new file that this object keeps at the last entry; `None`
        leaves receipts to the caller. A restored backup is then not detected.

    Raises:
      LedgerExistsError: if either file, or a rest of an old ledger, exists.
      LedgerStorageError: if the place cannot hold a ledger.
    """
    return cls(ledger_file.create(path, receipt))

  @classmethod
  def open(
    cls, path: Path, *, receipt: Path | Receipt | None = None
  ) -> 'Ledger':
    """Opens a ledger after checking its whole history.

    Args:
      path: the file.
      receipt: the owner's receipt file, which must exist and is kept at the
        last entry; or a receipt that is only compared; or `None`.

    Raises:
      LedgerRollbackError: if the ledger does not contain the receipt.
      LedgerTamperError: if an entry or the schema was changed.
      LedgerVersionError: if it is no ledger of this version.
      LedgerStorageError: on a network file system, a read-only place, ...
    """
    return cls(ledger_file.open_file(path, receipt))

  @classmethod
  def migrate(cls, path: Path, *, receipt: Path | None = None) -> 'Ledger':
    """Brings a ledger of an older version to this one, and opens it.

    Args:
      path: the file; the change is one transaction.
      receipt: a new file, as in `create`.
    """
    return cls(ledger_file.migrate(path, receipt))

  def open_account(
    self,
    dataset_id: str,
    budget: accounting.Rational,
    relation: types.NeighboringRelation,
    *,
    delta: accounting.Rational | None = None,
  ) -> None:
    """Opens the account of a dataset, once for all versions of the data.

    Args:
      dataset_id: the owner's public, lower-case name.
      budget: total epsilon > 0.
      relation: what all charges are stated for; fixes the unit.
      delta: `None` adds up epsilons; else epsilons are added up as zCDP, and
        all releases together are (budget, delta)-DP.

    Raises:
      LedgerExistsError: if the dataset has an account.
      ValueError: on a bad argument.
    """
    ledger_records.identifier(dataset_id=dataset_id)
    account = ledger_accounts.Account(
      dataset_id=dataset_id,
      analyst=None,
      epsilon=_validate.rational(budget=budget),
      budget=_validate.rational(budget=budget),
      delta=None if delta is None else _validate.rational(delta=delta),
      relation=types.NeighboringRelation(relation),
    )
    amounts = ledger_schema.amounts(budget, account.convert(account.epsilon))
    with self._file.writing():
      if ledger_accounts.exists(self._connection, dataset_id):
        raise ledger_errors.LedgerExistsError(
          f'dataset {dataset_id} has an account: a new version of the data '
          'spends from the same budget'
        )
      ledger_schema.append(
        self._connection,
        kind='account',
        dataset_id=dataset_id,
        **amounts,
        body=ledger_schema.account_body(account.relation, account.delta),
      )

  def set_analyst_cap(
    self, dataset_id: str, analyst: str, epsilon: accounting.Rational
  ) -> None:
    """Lets an analyst spend up to a share of a dataset's budget.

    Args:
      dataset_id: an account.
      analyst: public, lower-case name.
      epsilon: the cap, at most the dataset's budget; the last one counts.

    Raises:
      UnknownAccountError: if the dataset has no account.
      ValueError: on a bad argument, or a cap above the dataset's budget.
    """
    ledger_records.identifier(dataset_id=dataset_id)
    ledger_records.identifier(analyst=analyst)
    exact = _validate.rational(epsilon=epsilon)
    with self._file.writing():
      account = ledger_accounts.load(self._connection, dataset_id)
      if exact > account.epsilon:
        raise ValueError(
          f'epsilon must be at most the budget {account.epsilon} of dataset '
          f'{dataset_id}, got {epsilon!r}'
        )
      ledger_schema.append(
        self._connection,
        kind='cap',
        dataset_id=dataset_id,
        analyst=analyst,
        **ledger_schema.amounts(exact, account.convert(exact)),
        body=ledger_records.canonical_json({}),
      )

  def charge(
    self,
    dataset_id: str,
    epsilon: accounting.Rational,
    query_digest: str,
    *,
    analyst: str | None = None,
    bounded_range: bool = False,
  ) -> ledger_records.Charge:
    """Spends budget on one release that has not been computed yet.

    Args:
      dataset_id: an account.
      epsilon: of the release, > 0; a float is read by its shortest decimal.
      query_digest: sha256 of the public query, with everything that shapes the
        answer's law (epsilon included) and nothing private.
      analyst: who asks, if under a cap; charged to the dataset as well.
      bounded_range: whether the mechanism is the exponential mechanism, which
        costs a quarter in a zCDP account. Not permute-and-flip.

    Returns:
      The charge, which is on disk.

    Raises:
      InsufficientBudgetError: if it does not fit; nothing was spent.
      LedgerStorageError: the message says whether something was spent; either
        way the release must not be computed.
      UnknownAccountError: if there is no such account or cap.
      ValueError: on a bad argument.
    """
    ledger_records.identifier(dataset_id=dataset_id)
    ledger_records.digest(query_digest=query_digest)
    if analyst is not None:
      ledger_records.identifier(analyst=analyst)
    exact = _validate.rational(epsilon=epsilon)
    _validate.one_of((False, True), bounded_range=bounded_range)
    with self._file.writing():
      account = ledger_accounts.load(self._connection, dataset_id)
      cost = account.cost(exact, bounded_range=bounded_range)
      ledger_accounts.require(self._connection, account, cost)
      if analyst is not None:
        share = ledger_accounts.load(self._connection, dataset_id, analyst)
        ledger_accounts.require(self._connection, share, cost)
      entry = ledger_schema.append(
        self._connection,
        kind='charge',
        dataset_id=dataset_id,
        analyst=analyst,
        query_digest=query_digest,
        **ledger_schema.amounts(exact, cost),
        body=ledger_schema.charge_body(bounded_range),
      )
    return ledger_records.Charge(
      dataset_id=dataset_id,
      analyst=analyst,
      query_digest=query_digest,
      epsilon=exact,
      cost=cost,
      receipt=self._file.receipt_of(entry),
    )

  def record_release(
    self, charge: ledger_records.Charge, release_json: str
  ) -> None:
    """Stores the answer that a charge paid for.

    Args:
      charge: of this ledger, without a release yet.
      release_json: a JSON text that is public once released.

    Raises:
      LedgerExistsError: if the charge has a release.
      LedgerError: if the charge is not of this ledger.
      ValueError: if the text is not JSON (NaN and infinities are not).
    """
    json.loads(release_json, parse_constant=_refuse_constant)
    with self._file.writing():
      entry = self._entry_of(charge)
      if self._is_released(entry):
        raise ledger_errors.LedgerExistsError(
          f'charge {entry.sequence} has a release; one charge pays for one'
        )
      columns = entry._asdict()
      for name in ('sequence', 'previous', 'hash'):
        del columns[name]
      columns['kind'] = 'release'
      columns['body'] = ledger_schema.release_body(entry.sequence, release_json)
      ledger_schema.append(self._connection, **columns)

  def cached(
    self, dataset_id: str, query_digest: str, *, analyst: str | None = None
  ) -> str | None:
    """Returns the first stored answer to a query, at no cost, or `None`.

    Args:
      dataset_id: an account.
      query_digest: sha256 of the public query.
      analyst: the sub-account: an answer that one analyst paid for is not in
        another's cache, since it would pass by the other's cap.

    Formal guarantees:
      Post-processing: the answer is one that was charged to this account.
    """
    ledger_records.identifier(dataset_id=dataset_id)
    ledger_records.digest(query_digest=query_digest)
    entries = self._releases(dataset_id, query_digest, analyst)
    return json.loads(entries[0].body)['release'] if entries else None

  def balance(
    self, dataset_id: str, analyst: str | None = None
  ) -> ledger_records.Balance:
    """Returns how an account, or an analyst's share of it, stands."""
    account = ledger_accounts.load(self._connection, dataset_id, analyst)
    return ledger_records.Balance(
      budget=account.budget,
      spent=ledger_accounts.spent(self._connection, account),
      unit=account.unit,
      guarantee=account.guarantee,
    )

  def history(self) -> list[ledger_records.Entry]:
    """Returns all entries in the order of their sequence numbers."""
    return ledger_schema.select(self._connection, 'TRUE ORDER BY sequence')

  def receipt(self) -> Receipt:
    """Returns the receipt of the last entry; `str` of it can be printed."""
    return self._file.receipt()

  def verify(self, receipt: Receipt | None = None) -> Receipt:
    """Checks file, schema, chain and arithmetic, as `open` does."""
    return self._file.verify(receipt)

  def export(self, path: Path) -> None:
    """Writes all entries to a new file, one JSON object per line.

    `ledger_chain.verify_export` checks it without the ledger.
    """
    ledger_chain.export(path, self.history())

  def close(self) -> None:
    """Closes the file; a closed ledger refuses everything."""
    self._connection.close()

  def __enter__(self) -> 'Ledger':
    return self

  def __exit__(self, *error) -> None:
    del error
    self.close()

  def _entry_of(self, charge: ledger_records.Charge) -> ledger_records.Entry:
    """Returns the entry of a charge, or raises if it is not of this ledger."""
    found = ledger_schema.select(
      self._connection,
      "kind = 'charge' AND sequence = ? AND hash = ?",
      charge.receipt.sequence,
      charge.receipt.hash,
    )
    if not found:
      raise ledger_errors.LedgerError(
        f'the charge {charge.receipt} is not of this ledger'
      )
    return found[0]

  def _is_released(self, charge: ledger_records.Entry) -> bool:
    """Returns whether a charge has its release."""
    body = lambda entry: json.loads(entry.body)
    releases = self._releases(
      charge.dataset_id, charge.query_digest, charge.analyst
    )
    return any(body(entry)['charge'] == charge.sequence for entry in releases)

  def _releases(self, dataset_id, query_digest, analyst):
    """Returns all stored answers of an account to a query, oldest first."""
    return ledger_schema.select(
      self._connection,
      "kind = 'release' AND dataset_id = ? AND analyst IS ? "
      'AND query_digest = ? ORDER BY sequence',
      dataset_id,
      analyst,
      query_digest,
    )


def _refuse_constant(name: str):
  raise ValueError(f'release_json must be JSON, which has no {name}')
