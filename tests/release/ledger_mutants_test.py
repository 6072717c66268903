"""Every wrong ledger is caught, and the right one passes the same check.

A mutant is a release pipeline, or a patch of the ledger, under which more is
learned than is charged. `_CHECKS` names the check that finds it.
"""

import contextlib
import fractions
import pathlib
import sqlite3
import tempfile
from unittest import mock

from absl.testing import parameterized

from privjax import _validate
from privjax import release
from privjax import types
from privjax.release import ledger_accounts
from privjax.release import ledger_chain
from privjax.release import ledger_file
from privjax.release import ledger_schema

Fraction = fractions.Fraction
_EDGE = types.NeighboringRelation.ADD_REMOVE_ONE_EDGE
_QUERY = 'a' * 64


class _CrashError(Exception):
  """Stands for a process that dies while it computes."""


class Pipeline:
  """The right order of steps: cache, charge, compute, record."""

  def account(self, dataset_id, graph):
    del graph
    return dataset_id

  def answer(self, ledger, dataset_id, epsilon, compute, graph='v1'):
    account = self.account(dataset_id, graph)
    stored = self.stored(ledger, account)
    if stored is not None:
      return stored
    charge = self.pay(ledger, account, epsilon)
    text = compute()
    ledger.record_release(charge, text)
    return text

  def stored(self, ledger, account):
    return ledger.cached(account, _QUERY)

  def pay(self, ledger, account, epsilon):
    return ledger.charge(account, epsilon, _QUERY)


class ChargeAfterCompute(Pipeline):
  """Pays once the answer is there."""

  def answer(self, ledger, dataset_id, epsilon, compute, graph='v1'):
    text = compute()
    return super().answer(ledger, dataset_id, epsilon, lambda: text, graph)


class RetryUncharged(Pipeline):
  """Takes a charge whose release was never recorded as not yet used."""

  def __init__(self):
    self._open = {}

  def pay(self, ledger, account, epsilon):
    if account not in self._open:
      self._open[account] = super().pay(ledger, account, epsilon)
    return self._open[account]


class CacheWithoutDataset(Pipeline):
  """Looks answers up by the query alone."""

  def stored(self, ledger, account):
    for entry in ledger.history():
      if entry.kind == 'release' and entry.query_digest == _QUERY:
        return ledger.cached(entry.dataset_id, _QUERY)
    return None


class FreshAccountPerGraph(Pipeline):
  """Opens an account for each version of the graph."""

  def account(self, dataset_id, graph):
    return dataset_id if graph == 'v1' else f'{dataset_id}-{graph}'

  def answer(self, ledger, dataset_id, epsilon, compute, graph='v1'):
    with contextlib.suppress(release.LedgerExistsError):
      ledger.open_account(self.account(dataset_id, graph), 1, _EDGE)
    return super().answer(ledger, dataset_id, epsilon, compute, graph)


def _any_rational(**kwargs):
  ((_, value),) = kwargs.items()
  return Fraction(value)


def _schema(*, drop='', erase=()):
  """The schema without one statement, or without conditions of its table."""
  kept = [s for s in ledger_schema._STATEMENTS if not drop or drop not in s]
  for condition in erase:
    kept = [statement.replace(condition, '') for statement in kept]
  assert tuple(kept) != ledger_schema._STATEMENTS
  return mock.patch.object(ledger_schema, '_STATEMENTS', tuple(kept))


def _float_sums():
  """Budgets are compared as floats."""
  exact = ledger_accounts.spent

  def require(connection, account, cost):
    used = float(exact(connection, account))
    if used + float(cost) > float(account.budget):
      raise AssertionError('a charge that fits was refused')

  return mock.patch.object(ledger_accounts, 'require', require)


@contextlib.contextmanager
def _negative_charges():
  with (
    mock.patch.object(_validate, 'rational', _any_rational),
    mock.patch.object(ledger_chain, '_require', lambda *args: None),
    _schema(
      erase=(" CHECK (epsilon NOT LIKE '-%')", " CHECK (cost NOT LIKE '-%')")
    ),
  ):
    yield


def _analyst_pays_alone():
  """Charges to an analyst do not count for the dataset."""

  def spent(connection, account):
    rows = connection.execute(
      "SELECT cost FROM entries WHERE kind = 'charge' AND analyst IS ?",
      (account.analyst,),
    )
    return sum((Fraction(cost) for (cost,) in rows), Fraction(0))

  return mock.patch.object(ledger_accounts, 'spent', spent)


def _check_pays_first(make, pipeline):
  """A crash while computing is paid, and nothing unpaid is computed."""
  ledger = make()
  with contextlib.suppress(_CrashError):
    pipeline.answer(ledger, 'cora', '1/2', _crash)
  assert ledger.balance('cora').spent == Fraction(1, 2)
  calls = []
  with contextlib.suppress(release.InsufficientBudgetError):
    pipeline.answer(ledger, 'cora', '2/3', lambda: calls.append(1) or '1')
  assert calls == []


def _check_pays_each_time(make, pipeline):
  """A second attempt draws again, and pays again."""
  ledger = make()
  with contextlib.suppress(_CrashError):
    pipeline.answer(ledger, 'cora', '1/3', _crash)
  pipeline.answer(ledger, 'cora', '1/3', lambda: '1')
  assert ledger.balance('cora').spent == Fraction(2, 3)


def _check_cache_is_of_the_account(make, pipeline):
  """The same query on other data is another answer, and is paid."""
  ledger = make()
  ledger.open_account('pubmed', 1, _EDGE)
  pipeline.answer(ledger, 'cora', '1/3', lambda: '1')
  assert pipeline.answer(ledger, 'pubmed', '1/3', lambda: '2') == '2'
  assert ledger.balance('pubmed').spent == Fraction(1, 3)
  # And on the same data it is free.
  assert pipeline.answer(ledger, 'cora', '1/3', _crash) == '1'
  assert ledger.balance('cora').spent == Fraction(1, 3)


def _check_versions_share_a_budget(make, pipeline):
  """Answers about two versions of a graph are refused beyond one budget."""
  ledger = make()
  pipeline.answer(ledger, 'cora', 1, lambda: '1')
  pipeline.stored = lambda ledger, account: None  # Another query.
  try:
    pipeline.answer(ledger, 'cora', 1, lambda: '2', graph='v2')
  except release.InsufficientBudgetError:
    return
  raise AssertionError('an edited graph was paid from a fresh budget')


def _check_exact_sum(make, pipeline):
  """Neither does a tenth too much fit nor is a tenth too little refused."""
  del pipeline
  ledger = make()
  ledger.open_account('tenths', '0.3', _EDGE)
  for _ in range(3):
    ledger.charge('tenths', '0.1', _QUERY)
  ledger.charge('cora', 1, _QUERY)
  try:
    ledger.charge('cora', '1e-20', _QUERY)
  except release.InsufficientBudgetError:
    return
  raise AssertionError('a charge above the budget was lost in rounding')


def _check_append_only(make, pipeline):
  """An entry cannot be changed through SQL."""
  del pipeline
  ledger = make()
  ledger.charge('cora', 1, _QUERY)
  for statement in ("UPDATE entries SET cost = '1/9'", 'DELETE FROM entries'):
    with contextlib.suppress(sqlite3.IntegrityError):
      ledger._connection.execute(statement)
      raise AssertionError(f'{statement} was allowed')


def _check_monotone(make, pipeline):
  """No charge makes the remaining budget larger."""
  del pipeline
  ledger = make()
  ledger.charge('cora', '1/2', _QUERY)
  with contextlib.suppress(ValueError):
    ledger.charge('cora', '-1/2', _QUERY)
  assert ledger.balance('cora').spent == Fraction(1, 2)


def _check_analysts_share_the_budget(make, pipeline):
  """Two analysts together stay below the dataset's budget."""
  del pipeline
  ledger = make()
  for analyst in ('ada', 'bob'):
    ledger.set_analyst_cap('cora', analyst, '3/4')
  ledger.charge('cora', '3/4', _QUERY, analyst='ada')
  try:
    ledger.charge('cora', '3/4', _QUERY, analyst='bob')
  except release.InsufficientBudgetError:
    return
  raise AssertionError('analysts spent more than the dataset has')


def _check_rollback(make, pipeline):
  """An open ledger whose receipt is ahead of it refuses to spend."""
  del pipeline
  ledger = make()
  ledger.charge('cora', '1/4', _QUERY)
  path = pathlib.Path(ledger._file._receipt_path)
  newer = release.Receipt.parse(path.read_text())
  path.write_text(
    str(release.Receipt(ledger_id=newer.ledger_id, sequence=99, hash='0' * 64))
  )
  try:
    ledger.charge('cora', '1/4', _QUERY)
  except release.LedgerRollbackError:
    return
  raise AssertionError('an old copy of the ledger was spent from')


def _crash():
  raise _CrashError


_NOTHING = contextlib.nullcontext
# name -> (pipeline, patch, the check that finds it)
_MUTANTS = {
  'charge_after_compute': (ChargeAfterCompute, _NOTHING, _check_pays_first),
  'retry_uncharged': (RetryUncharged, _NOTHING, _check_pays_each_time),
  'cache_without_dataset': (
    CacheWithoutDataset,
    _NOTHING,
    _check_cache_is_of_the_account,
  ),
  'fresh_account_per_graph': (
    FreshAccountPerGraph,
    _NOTHING,
    _check_versions_share_a_budget,
  ),
  'float_sum': (Pipeline, _float_sums, _check_exact_sum),
  'update_allowed': (
    Pipeline,
    lambda: _schema(drop='no_update'),
    _check_append_only,
  ),
  'delete_allowed': (
    Pipeline,
    lambda: _schema(drop='no_delete'),
    _check_append_only,
  ),
  'negative_charge': (Pipeline, _negative_charges, _check_monotone),
  'analyst_pays_alone': (
    Pipeline,
    _analyst_pays_alone,
    _check_analysts_share_the_budget,
  ),
  'receipt_ignored': (
    Pipeline,
    lambda: mock.patch.object(
      ledger_file.ledger_chain, 'check_receipt', lambda *args: None
    ),
    _check_rollback,
  ),
}


class MutantsTest(parameterized.TestCase):
  def setUp(self):
    super().setUp()
    folder = tempfile.TemporaryDirectory()
    self.addCleanup(folder.cleanup)
    self._folder = pathlib.Path(folder.name)

  def _make(self):
    ledger = release.Ledger.create(
      self._folder / 'ledger.db', receipt=self._folder / 'ledger.receipt'
    )
    self.addCleanup(ledger.close)
    ledger.open_account('cora', 1, _EDGE)
    return ledger

  @parameterized.parameters(*_MUTANTS)
  def test_is_caught(self, name):
    pipeline, patch, check = _MUTANTS[name]
    with patch():
      with self.assertRaises(AssertionError):
        check(self._make, pipeline())

  @parameterized.parameters(*_MUTANTS)
  def test_the_ledger_passes(self, name):
    check = _MUTANTS[name][2]
    check(self._make, Pipeline())
