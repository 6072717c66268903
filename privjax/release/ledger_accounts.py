"""Budgets, caps and what was spent, read from the entries of a ledger.

Sums are exact: SQL counts the charges of each cost, Python adds Fractions.

Public inputs only.
"""

import dataclasses
import fractions
import json
import sqlite3

from privjax import types
from privjax.mechanisms import accounting
from privjax.release import ledger_chain
from privjax.release import ledger_errors
from privjax.release import ledger_records
from privjax.release import ledger_schema

Fraction = fractions.Fraction


@dataclasses.dataclass(frozen=True, kw_only=True)
class Account:
  """The terms of a dataset's account, or of an analyst's share of it.

  Attributes:
    dataset_id: the owner's name for all versions of the private data.
    analyst: whose share, or `None` for the whole.
    epsilon: the budget as it was declared.
    budget: the same in `unit`.
    delta: `None` for the pure sum.
    relation: the neighboring relation of all charges.
  """

  dataset_id: str
  analyst: str | None
  epsilon: Fraction
  budget: Fraction
  delta: Fraction | None
  relation: types.NeighboringRelation

  @property
  def unit(self) -> str:
    """What is added up: 'epsilon' or 'rho'."""
    return 'epsilon' if self.delta is None else 'rho'

  @property
  def name(self) -> str:
    """How errors call it."""
    owner = f'dataset {self.dataset_id}'
    return f'{owner}, analyst {self.analyst}' if self.analyst else owner

  @property
  def guarantee(self) -> types.PrivacyGuarantee:
    """What holds for everything that the budget admits."""
    pure = self.delta is None
    theorem = f'{accounting.FILTER}; {accounting.CONVERSION}'
    return types.PrivacyGuarantee(
      epsilon=self.epsilon,
      delta=Fraction(0) if self.delta is None else self.delta,
      relation=self.relation,
      theorem=accounting.PURE_SUM if pure else theorem,
    )

  def convert(self, epsilon: Fraction) -> Fraction:
    """Returns a budget of this epsilon in the account's unit."""
    if self.delta is None:
      return epsilon
    return accounting.zcdp_budget(epsilon, delta=self.delta)

  def cost(self, epsilon: Fraction, *, bounded_range: bool) -> Fraction:
    """Returns what one release costs in the account's unit."""
    return ledger_chain.cost_of(
      epsilon, self.delta, bounded_range=bounded_range
    )


def load(
  connection: sqlite3.Connection, dataset_id: str, analyst: str | None = None
) -> Account:
  """Returns an account, or an analyst's share of it.

  Raises:
    UnknownAccountError: if there is no such account or no such cap.
  """
  account = _row(connection, 'account', dataset_id, None)
  if account is None:
    raise ledger_errors.UnknownAccountError(
      f'dataset {dataset_id} has no account; nothing was spent'
    )
  share = account
  if analyst is not None:
    share = _row(connection, 'cap', dataset_id, analyst)
    if share is None:
      raise ledger_errors.UnknownAccountError(
        f'dataset {dataset_id} has no cap for analyst {analyst}; nothing was '
        'spent'
      )
  body = json.loads(account.body)
  return Account(
    dataset_id=dataset_id,
    analyst=analyst,
    epsilon=Fraction(str(share.epsilon)),
    budget=Fraction(str(share.cost)),
    delta=None if body['delta'] is None else Fraction(body['delta']),
    relation=types.NeighboringRelation(body['relation']),
  )


def exists(connection: sqlite3.Connection, dataset_id: str) -> bool:
  """Returns whether a dataset has an account."""
  return _row(connection, 'account', dataset_id, None) is not None


def spent(connection: sqlite3.Connection, account: Account) -> Fraction:
  """Returns the exact sum of all charges to an account or a share of it."""
  query = (
    'SELECT cost, COUNT(*) FROM entries WHERE kind = ? AND dataset_id = ?'
    ' AND (? IS NULL OR analyst = ?) GROUP BY cost'
  )
  values = ('charge', account.dataset_id, account.analyst, account.analyst)
  rows = connection.execute(query, values)
  return sum((Fraction(cost) * count for cost, count in rows), Fraction(0))


def require(
  connection: sqlite3.Connection, account: Account, cost: Fraction
) -> None:
  """Checks that a cost fits.

  Raises:
    InsufficientBudgetError: if it does not.
  """
  used = spent(connection, account)
  if used + cost > account.budget:
    raise ledger_errors.InsufficientBudgetError(
      account.name,
      budget=account.budget,
      spent=used,
      requested=cost,
      unit=account.unit,
    )


def _row(connection, kind, dataset_id, analyst) -> ledger_records.Entry | None:
  """Returns the latest entry of a kind."""
  found = ledger_schema.select(
    connection,
    'kind = ? AND dataset_id = ? AND analyst IS ? '
    'ORDER BY sequence DESC LIMIT 1',
    kind,
    dataset_id,
    analyst,
  )
  return found[0] if found else None
