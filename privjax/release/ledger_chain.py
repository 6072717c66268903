"""Checks of a ledger's entries, in a database or in an export.

Two layers: every hash and sequence number is right, and the entries tell a
possible story (accounts are opened once, charges cost what their epsilon says
and never exceed a budget or a cap, a release belongs to one charge). Whoever
can write the file can compute a new chain that is consistent: that, and a cut
at the end, is found only by comparing with a receipt.

Public inputs only.
"""

from collections.abc import Iterable
import fractions
import json
import os

from privjax import types
from privjax.mechanisms import accounting
from privjax.release import ledger_errors
from privjax.release import ledger_records
from privjax.release import ledger_storage

Fraction = fractions.Fraction
_ZERO = Fraction(0)


def verify(
  entries: Iterable[ledger_records.Entry],
  receipt: ledger_records.Receipt | None = None,
) -> ledger_records.Receipt:
  """Checks a whole history and returns the receipt of its last entry.

  Args:
    entries: from the first one, in order.
    receipt: what the history must contain; `None` to skip.

  Raises:
    LedgerTamperError: naming the first entry that is wrong.
    LedgerRollbackError: if the history does not contain the receipt.
  """
  story, last, pinned = _Story(), None, None
  for entry in entries:
    _check_link(last, entry)
    try:
      story.read(entry)
    except (ArithmeticError, KeyError, TypeError, ValueError) as error:
      raise ledger_errors.LedgerTamperError(
        f'entry {entry.sequence} is not possible here: {error}'
      ) from error
    last = entry
    if receipt is not None and entry.sequence == receipt.sequence:
      pinned = entry.hash
  if last is None:
    raise ledger_errors.LedgerTamperError('the ledger has no entries')
  if receipt is not None:
    check_receipt(receipt, story.ledger_id, last.sequence, pinned)
  return ledger_records.Receipt(
    ledger_id=story.ledger_id, sequence=last.sequence, hash=last.hash
  )


def check_receipt(
  receipt: ledger_records.Receipt,
  ledger_id: str,
  sequence: int,
  pinned: str | None,
) -> None:
  """Checks that a history contains a receipt.

  Args:
    receipt: the owner's.
    ledger_id: of the history.
    sequence: of its last entry.
    pinned: the hash of its entry number `receipt.sequence`, if it has one.

  Raises:
    LedgerRollbackError: if it does not; nothing was spent.
  """
  problem = None
  if receipt.ledger_id != ledger_id:
    problem = f'the receipt is of ledger {receipt.ledger_id}, not {ledger_id}'
  elif receipt.sequence > sequence:
    problem = (
      f'the receipt is at entry {receipt.sequence} but the ledger ends at '
      f'{sequence}: it is an old copy'
    )
  elif receipt.hash != pinned:
    problem = f'entry {receipt.sequence} is not the one on the receipt'
  if problem:
    raise ledger_errors.LedgerRollbackError(
      f'{problem}. Releases may have been paid that this copy does not know; '
      'nothing was spent'
    )


def _check_link(
  last: ledger_records.Entry | None, entry: ledger_records.Entry
) -> None:
  sequence = last.sequence + 1 if last else 1
  previous = last.hash if last else ledger_records.GENESIS
  if (
    entry.sequence != sequence
    or entry.previous != previous
    or entry.hash != ledger_records.entry_hash(entry)
  ):
    raise ledger_errors.LedgerTamperError(
      f'the chain is broken at entry {sequence}'
    )


class _Story:
  """The state that the entries so far lead to."""

  def __init__(self):
    self.ledger_id = ''
    self._modes = {}  # dataset -> delta in zCDP mode, None in pure mode.
    self._budgets = {}  # (dataset, analyst or None) -> budget.
    self._spent = {}
    self._charges = {}  # sequence -> charge without a release yet.

  def read(self, entry: ledger_records.Entry) -> None:
    """Takes one more entry, or raises."""
    body = json.loads(entry.body)
    if ledger_records.canonical_json(body) != entry.body:
      raise ValueError('its body is not canonical')
    if (entry.kind == 'ledger') != (entry.sequence == 1):
      raise ValueError('only the first entry names the ledger')
    getattr(self, f'_read_{_known(entry.kind)}')(entry, body)

  def _read_ledger(self, entry, body):
    del entry
    self.ledger_id = str(body['ledger_id'])

  def _read_account(self, entry, body):
    epsilon, cost = _amounts(entry)
    delta = None if body['delta'] is None else Fraction(body['delta'])
    _require(entry.dataset_id not in self._modes, 'the account exists')
    _require(body['mode'] == ('pure' if delta is None else 'zcdp'), 'its mode')
    types.NeighboringRelation(body['relation'])
    if delta is None:
      _require(cost == epsilon, 'its budget')
    else:
      implied = accounting.zcdp_epsilon(cost, delta=delta)
      _require(implied <= epsilon, 'its budget')
    self._modes[entry.dataset_id] = delta
    self._budgets[entry.dataset_id, None] = cost

  def _read_cap(self, entry, body):
    del body
    _, cost = _amounts(entry)
    _require(entry.analyst is not None, 'a cap needs an analyst')
    _require(cost <= self._budgets[entry.dataset_id, None], 'its budget')
    self._budgets[entry.dataset_id, entry.analyst] = cost

  def _read_charge(self, entry, body):
    epsilon, cost = _amounts(entry)
    delta = self._modes[entry.dataset_id]
    expected = cost_of(epsilon, delta, bounded_range=body['bounded_range'])
    _require(cost == expected, 'its cost')
    for analyst in {None, entry.analyst}:
      account = entry.dataset_id, analyst
      spent = self._spent.get(account, _ZERO) + cost
      _require(spent <= self._budgets[account], 'it exceeds the budget')
      self._spent[account] = spent
    self._charges[entry.sequence] = entry

  def _read_release(self, entry, body):
    charge = self._charges.pop(body['charge'])
    first = ledger_records.Entry._fields.index('dataset_id')
    last = ledger_records.Entry._fields.index('body')
    _require(entry[first:last] == charge[first:last], 'it is not its charge')
    _require(isinstance(body['release'], str), 'its release')


def _known(kind: str) -> str:
  _require(kind in ledger_records.KINDS, 'an unknown kind')
  return kind


def _require(condition: bool, problem: str) -> None:
  if not condition:
    raise ValueError(problem)


def _amounts(entry: ledger_records.Entry) -> tuple[Fraction, Fraction]:
  """Returns epsilon and cost, both canonical and positive."""
  values = []
  for text in (entry.epsilon, entry.cost):
    value = Fraction(str(text))
    _require(value > 0, 'an amount is not positive')
    _require(ledger_records.ratio(value) == text, 'an amount is not canonical')
    values.append(value)
  return values[0], values[1]


def cost_of(
  epsilon: Fraction, delta: Fraction | None, *, bounded_range: bool
) -> Fraction:
  """Returns what a release costs in the account's unit.

  Args:
    epsilon: exact.
    delta: of the account: `None` for the pure sum, in epsilon; else zCDP, in
      rho.
    bounded_range: whether the mechanism is the exponential mechanism.
  """
  if delta is None:
    return epsilon
  return accounting.zcdp_cost(epsilon, bounded_range=bounded_range)


def export(
  path: str | os.PathLike[str], entries: Iterable[ledger_records.Entry]
) -> None:
  """Writes one JSON object per line to a new file."""
  try:
    with open(path, 'x', encoding='ascii') as file:
      for entry in entries:
        file.write(ledger_records.canonical_json(entry._asdict()) + '\n')
      file.flush()
      os.fsync(file.fileno())
  except FileExistsError:
    raise ledger_errors.LedgerExistsError(f'{path} exists') from None
  except OSError as error:
    ledger_storage.raise_storage_error(error, f'{path} cannot be written')


def verify_export(
  path: str | os.PathLike[str], receipt: ledger_records.Receipt | None = None
) -> ledger_records.Receipt:
  """Checks an export as `verify` does; without a receipt a cut is not seen."""
  entries = []
  with open(path, encoding='utf-8') as file:
    for number, line in enumerate(file, 1):
      try:
        entries.append(ledger_records.Entry(**json.loads(line)))
      except (TypeError, ValueError) as error:
        raise ledger_errors.LedgerTamperError(
          f'line {number} is not an entry: {error}'
        ) from error
  return verify(entries, receipt)
