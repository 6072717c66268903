"""The records of a ledger: entries, receipts, charges, balances.

An entry is a row of an append-only table. Its hash covers the previous hash
and every column, so that a receipt (ledger, sequence number, hash) pins the
whole history before it. There is no time in an entry: the order is the
sequence number, and a time would tell how long the private computation took.

>>> receipt = Receipt(ledger_id='ab' * 16, sequence=7, hash='cd' * 32)
>>> Receipt.parse(str(receipt)) == receipt
True

Public inputs only.
"""

import dataclasses
import fractions
import hashlib
import json
import re
from typing import NamedTuple

from privjax import types
from privjax.release import ledger_errors

GENESIS = '0' * 64  # The hash before the first entry.
KINDS = ('ledger', 'account', 'cap', 'charge', 'release')

_IDENTIFIER = re.compile(r'[a-z0-9][a-z0-9._-]{0,127}')
_DIGEST = re.compile(r'[0-9a-f]{64}')
_RECEIPT = re.compile(
  r'privjax-ledger-receipt 1 ([0-9a-f]{32}) ([0-9]{1,18}) ([0-9a-f]{64})\n?'
)


class Entry(NamedTuple):
  """One row.

  Attributes:
    sequence: 1, 2, 3, ... without gaps.
    kind: 'ledger', 'account', 'cap', 'charge' or 'release'.
    dataset_id: the account; `None` in the first entry.
    analyst: the sub-account, or `None`.
    query_digest: sha256 of the public query, of charges and releases.
    epsilon: 'p/q', of accounts, caps, charges and releases.
    cost: 'p/q', the same in the account's unit: epsilon or rho.
    body: canonical JSON of what else the kind has.
    previous: hash of the entry before, or 64 zeros.
    hash: sha256 over `previous` and all columns above it.
  """

  sequence: int
  kind: str
  dataset_id: str | None
  analyst: str | None
  query_digest: str | None
  epsilon: str | None
  cost: str | None
  body: str
  previous: str
  hash: str


@dataclasses.dataclass(frozen=True, kw_only=True)
class Receipt:
  """Where a ledger stood: to be kept where a restored backup cannot reach it.

  Attributes:
    ledger_id: 32 hex digits, drawn when the ledger was created.
    sequence: number of the last entry; it only grows.
    hash: 64 hex digits, the hash of that entry.
  """

  ledger_id: str
  sequence: int
  hash: str

  def __str__(self) -> str:
    return (
      f'privjax-ledger-receipt 1 {self.ledger_id} {self.sequence} {self.hash}'
    )

  @classmethod
  def parse(cls, text: str) -> 'Receipt':
    """Returns the receipt that `str` printed."""
    match = _RECEIPT.fullmatch(text)
    if not match:
      raise ledger_errors.LedgerError(f'not a ledger receipt: {text[:200]!r}')
    ledger_id, sequence, digest = match.groups()
    return cls(ledger_id=ledger_id, sequence=int(sequence), hash=digest)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Charge:
  """A charge that is on disk: the computation it pays for may start.

  Attributes:
    dataset_id: the account.
    analyst: the sub-account, or `None`.
    query_digest: sha256 of the public query.
    epsilon: exact.
    cost: exact, in the account's unit.
    receipt: of the charge's entry.
  """

  dataset_id: str
  analyst: str | None
  query_digest: str
  epsilon: fractions.Fraction
  cost: fractions.Fraction
  receipt: Receipt


@dataclasses.dataclass(frozen=True, kw_only=True)
class Balance:
  """How an account, or an analyst's share of it, stands.

  Attributes:
    budget: exact, in `unit`.
    spent: exact, in `unit`.
    unit: 'epsilon' (pure sum) or 'rho' (zCDP filter).
    guarantee: what holds for all releases together, however they were chosen:
      the statement about the whole budget.
  """

  budget: fractions.Fraction
  spent: fractions.Fraction
  unit: str
  guarantee: types.PrivacyGuarantee

  @property
  def remaining(self) -> fractions.Fraction:
    """What may still be charged."""
    return self.budget - self.spent


def ratio(value: fractions.Fraction) -> str:
  """Returns the canonical text 'p/q'."""
  return f'{value.numerator}/{value.denominator}'


def canonical_json(value) -> str:
  """Returns the one text that stands for a JSON value."""
  return json.dumps(
    value, allow_nan=False, separators=(',', ':'), sort_keys=True
  )


def next_entry(previous: Entry | None, **columns) -> Entry:
  """Returns the entry that follows another one, hash included."""
  entry = Entry(
    sequence=previous.sequence + 1 if previous else 1,
    previous=previous.hash if previous else GENESIS,
    hash='',
    **{
      'dataset_id': None,
      'analyst': None,
      'query_digest': None,
      'epsilon': None,
      'cost': None,
      **columns,
    },
  )
  return entry._replace(hash=entry_hash(entry))


def entry_hash(entry: Entry) -> str:
  """Returns sha256 over the previous hash and the canonical row."""
  row = canonical_json(entry[: Entry._fields.index('previous')])
  return hashlib.sha256(f'{entry.previous}\n{row}'.encode()).hexdigest()


def identifier(**kwargs) -> str:
  """Checks a dataset id or the name of an analyst.

  Lower case only: `Cora` beside `cora` would be a second budget.
  """
  ((name, value),) = kwargs.items()
  if not (isinstance(value, str) and _IDENTIFIER.fullmatch(value)):
    raise ValueError(
      f'{name} must be 1 to 128 of a-z, 0-9, ".", "_", "-", starting with a '
      f'letter or digit, got {value!r}'
    )
  return value


def digest(**kwargs) -> str:
  """Checks a sha256 in lower-case hex."""
  ((name, value),) = kwargs.items()
  if not (isinstance(value, str) and _DIGEST.fullmatch(value)):
    raise ValueError(
      f'{name} must be 64 lower-case hex digits (a sha256), got {value!r}'
    )
  return value
