"""What can go wrong with a ledger, and whether anything was spent.

>>> from fractions import Fraction
>>> print(
...   InsufficientBudgetError(
...     'dataset cora',
...     budget=Fraction(1),
...     spent=Fraction(9, 11),
...     requested=Fraction(1, 2),
...     unit='epsilon',
...   )
... )
dataset cora: the epsilon budget is 1, spent 9/11, remaining 2/11, requested
1/2; nothing was spent

Public inputs only; no message ever holds a private value.
"""

import fractions


class LedgerError(Exception):
  """Any refusal of the ledger."""


class LedgerExistsError(LedgerError):
  """There is a ledger, an account or a release already."""


class UnknownAccountError(LedgerError):
  """No such dataset, or no cap for such an analyst: nothing was spent."""


class LedgerVersionError(LedgerError):
  """The file is not a ledger, or one of another schema version."""


class LedgerTamperError(LedgerError):
  """The chain, the schema or the arithmetic of the entries is broken."""


class LedgerRollbackError(LedgerError):
  """The database is older than the owner's receipt, or another one."""


class LedgerStorageError(LedgerError):
  """The operating system or SQLite failed; the message says what was spent."""


class NetworkFileSystemError(LedgerStorageError):
  """File locks and shared memory cannot be trusted there."""


class ReadOnlyLedgerError(LedgerStorageError):
  """The file, its folder or its file system cannot be written."""


class InsufficientBudgetError(LedgerError):
  """The charge does not fit; nothing was spent.

  Attributes:
    budget: the account's or the sub-cap's budget.
    spent: what was charged before.
    requested: what this charge would cost.
    remaining: budget - spent.
    unit: 'epsilon' or 'rho'.
  """

  def __init__(
    self,
    account: str,
    *,
    budget: fractions.Fraction,
    spent: fractions.Fraction,
    requested: fractions.Fraction,
    unit: str,
  ):
    self.budget = budget
    self.spent = spent
    self.requested = requested
    self.remaining = budget - spent
    self.unit = unit
    super().__init__(
      f'{account}: the {unit} budget is {budget}, spent {spent}, remaining '
      f'{self.remaining}, requested {requested}; nothing was spent'
    )
