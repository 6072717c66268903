"""The ledger at the command line.

  privjax-ledger create --ledger=budget.db --receipt=receipt.txt
  privjax-ledger open-account ... --dataset_id=cora --budget=4
  privjax-ledger cap ... --dataset_id=cora --analyst=ann --epsilon=1
  privjax-ledger balance ... --dataset_id=cora [--analyst=ann]
  privjax-ledger history ... [--dataset_id=cora]
  privjax-ledger export ... --out=entries.jsonl
  privjax-ledger verify ...
  privjax-ledger verify --export=entries.jsonl [--receipt=receipt.txt]
  privjax-ledger receipt ...

(... are --ledger and, if there is a receipt file, --receipt.)

Only `privjax-release` charges: no command here spends anything. Exit codes: 0
done, 1 refused or different, 2 bad usage. What it prints is public.
"""

from collections.abc import Callable, Sequence
import os
import pickle
import sys
from typing import Any, NamedTuple

from absl import flags

from privjax import types
from privjax.release import ledger as ledger_lib
from privjax.release import ledger_chain
from privjax.release import ledger_errors
from privjax.release import ledger_storage

Given = dict[str, Any]  # The values of the flags, by name.
DONE, FAILED, BAD_USAGE = 0, 1, 2

_ROW = '{:>8}  {:<8} {:<20} {:<12} {:>8}  {}'


class CommandError(Exception):
  """A command failed; the message says what was spent. Exit code 1."""


def run(
  usage: str,
  values: flags.FlagValues,
  command: Callable[[Given, list[str]], None],
  arguments: Sequence[str] | None,
) -> int:
  """Parses a command line and runs it; errors become one line and a code.

  Args:
    usage: what `--help` says before the flags.
    values: flags of this command line only: `flags.FLAGS` belongs to whoever
      imports this module.
    command: gets the values of the flags and the positional arguments; raises
      `CommandError` once something may have been spent.
    arguments: without the program's name; `None` takes `sys.argv`.

  Returns:
    The exit code.
  """
  flags.DEFINE_bool('help', None, 'Show this.', flag_values=values)
  values.set_gnu_getopt(True)
  arguments = sys.argv[1:] if arguments is None else arguments
  try:
    positional = values(['', *arguments])[1:]
    if values['help'].value:
      print(usage, values.get_help(), sep='\n')
    else:
      command(values.flag_values_dict(), positional)
  except CommandError as error:
    return _fail(str(error), FAILED)
  except ledger_errors.LedgerError as error:
    return _fail(_unspent(error), FAILED)
  except KeyboardInterrupt:
    return _fail('interrupted; nothing was spent', FAILED)
  except (
    flags.Error,
    ImportError,
    OSError,
    TypeError,
    ValueError,
    pickle.UnpicklingError,
  ) as error:
    return _fail(_unspent(error), BAD_USAGE)
  return DONE


def define_account_flags(values: flags.FlagValues) -> None:
  """Defines what both command lines need to find an account."""
  define = _definer(values)
  define('ledger', 'File of the ledger.')
  define(
    'receipt',
    "The owner's receipt file, kept where a restore of the ledger does not "
    'restore it. Without it a restored backup is not detected.',
  )
  define('dataset_id', "The owner's name of the data, for all its versions.")
  define('analyst', 'Who asks, if the analyst has a cap.')


def require(given: Given, *names: str) -> None:
  """Checks that flags were given.

  Raises:
    ValueError: naming those that were not.
  """
  missing = [f'--{name}' for name in names if given[name] in (None, '')]
  if missing:
    raise ValueError(f'{" and ".join(missing)} must be given')


def open_ledger(given: Given, *, writing: bool) -> ledger_lib.Ledger:
  """Opens the ledger of the flags.

  Args:
    given: the values of `define_account_flags`, among others.
    writing: whether the receipt file follows the ledger; otherwise the two are
      only compared, and neither changes.
  """
  path, receipt = given['ledger'], given['receipt']
  for each in (path, receipt):
    if each is not None and not os.path.exists(each):
      raise FileNotFoundError(f'{each} does not exist')
  if receipt is not None and not writing:
    receipt = ledger_storage.read_receipt(receipt)
  return ledger_lib.Ledger.open(path, receipt=receipt)


def exact(name: str, text: str) -> str:
  """Refuses spellings of a number that take forever to read."""
  exponent = text.lower().partition('e')[2]
  if len(text) > 64 or len(exponent) > 5:
    raise ValueError(f'{name} must be a short number, got {text[:64]!r}')
  return text


def balance_line(
  ledger: ledger_lib.Ledger, dataset_id: str, analyst: str | None = None
) -> str:
  """Says in exact fractions how an account, or a share of it, stands."""
  balance = ledger.balance(dataset_id, analyst)
  owner = f'{dataset_id}, analyst {analyst}' if analyst else dataset_id
  return (
    f'{owner}: {balance.unit} budget {balance.budget}, spent {balance.spent}, '
    f'remaining {balance.remaining}'
  )


def main(arguments: Sequence[str] | None = None) -> int:
  """Runs `privjax-ledger`; returns the exit code."""
  values = flags.FlagValues()
  define_account_flags(values)
  define = _definer(values)
  define('budget', 'Total epsilon of a new account, exact: 4, 0.5 or 1/3.')
  define(
    'delta',
    'Of a new account: all releases together are then (budget, delta)-DP, '
    'added up as zCDP. Default: epsilons add up, delta is 0.',
  )
  define('epsilon', "Of an analyst's cap, exact.")
  define('out', 'New file of an export.')
  define('export', 'An export to verify, instead of a ledger.')
  relations = [relation.value for relation in types.NeighboringRelation]
  flags.DEFINE_enum(
    'relation',
    None,
    relations,
    f'Of a new account. Default: {_DEFAULT_RELATION.value}.',
    flag_values=values,
  )
  return run(__doc__ or '', values, _command, arguments)


def _definer(values: flags.FlagValues):
  return lambda name, text: flags.DEFINE_string(
    name, None, text, flag_values=values
  )


def _fail(message: str, code: int) -> int:
  print(f'error: {" ".join(message.split())}', file=sys.stderr)
  return code


def _unspent(error: Exception) -> str:
  """Adds that nothing was spent, unless the error says what was."""
  text = str(error)
  return text if 'was spent' in text else f'{text}; nothing was spent'


def _command(given: Given, positional: list[str]) -> None:
  """Runs the command that the first positional argument names."""
  if len(positional) != 1 or positional[0] not in _COMMANDS:
    raise ValueError(
      f'one command must be given of {", ".join(_COMMANDS)}, got '
      f'{" ".join(positional) or "none"}'
    )
  function, required, optional = _COMMANDS[positional[0]]
  if given['export'] is not None and function is _verify:
    function, required, optional = _verify_export, ('export',), ('receipt',)
  require(given, *required)
  used = [name for name, value in given.items() if value not in (None, '')]
  stray = [f'--{name}' for name in used if name not in required + optional]
  if stray:
    raise ValueError(f'{positional[0]} does not take {", ".join(stray)}')
  function(given)


def _create(given: Given):
  path, receipt = given['ledger'], given['receipt']
  with ledger_lib.Ledger.create(path, receipt=receipt) as ledger:
    print(ledger.receipt())
  if receipt is None:
    print('No receipt file: keep this line, to detect a restored backup.')


def _open_account(given: Given):
  relation = given['relation'] or _DEFAULT_RELATION
  delta = given['delta']
  with open_ledger(given, writing=True) as ledger:
    ledger.open_account(
      given['dataset_id'],
      exact('budget', given['budget']),
      types.NeighboringRelation(relation),
      delta=None if delta is None else exact('delta', delta),
    )
    print(balance_line(ledger, given['dataset_id']))


def _cap(given: Given):
  dataset_id, analyst = given['dataset_id'], given['analyst']
  with open_ledger(given, writing=True) as ledger:
    epsilon = exact('epsilon', given['epsilon'])
    ledger.set_analyst_cap(dataset_id, analyst, epsilon)
    print(balance_line(ledger, dataset_id, analyst))


def _balance(given: Given):
  dataset_id, analyst = given['dataset_id'], given['analyst']
  with open_ledger(given, writing=False) as ledger:
    print(balance_line(ledger, dataset_id, analyst))
    guarantee = ledger.balance(dataset_id, analyst).guarantee
  print(
    f'The whole budget is epsilon {guarantee.epsilon}, delta '
    f'{guarantee.delta}, for {guarantee.relation.value} ({guarantee.theorem})'
  )


def _history(given: Given):
  wanted = given['dataset_id']
  with open_ledger(given, writing=False) as ledger:
    entries = ledger.history()
  columns = ('sequence', 'kind', 'dataset_id', 'analyst', 'epsilon')
  print(_ROW.format(*columns, 'query_digest'))
  for entry in entries:
    if wanted in (None, entry.dataset_id):
      cells = (getattr(entry, name) or '-' for name in columns)
      print(_ROW.format(*cells, entry.query_digest or '-'))


def _export(given: Given):
  with open_ledger(given, writing=False) as ledger:
    ledger.export(given['out'])
    print(ledger.receipt())


def _verify(given: Given):
  with open_ledger(given, writing=False) as ledger:
    print(f'intact up to {ledger.receipt()}')


def _verify_export(given: Given):
  receipt = given['receipt']
  if receipt is not None:
    receipt = ledger_storage.read_receipt(receipt)
  found = ledger_chain.verify_export(given['export'], receipt)
  print(f'intact up to {found}')


def _receipt(given: Given):
  with open_ledger(given, writing=False) as ledger:
    print(ledger.receipt())


class _Command(NamedTuple):
  """A command and the flags that it takes."""

  function: Callable[[Given], None]
  required: tuple[str, ...]
  optional: tuple[str, ...] = ('receipt',)


_DEFAULT_RELATION = types.NeighboringRelation.ADD_REMOVE_ONE_EDGE
_COMMANDS = {
  'create': _Command(_create, ('ledger',)),
  'open-account': _Command(
    _open_account,
    ('ledger', 'dataset_id', 'budget'),
    ('receipt', 'relation', 'delta'),
  ),
  'cap': _Command(_cap, ('ledger', 'dataset_id', 'analyst', 'epsilon')),
  'balance': _Command(
    _balance, ('ledger', 'dataset_id'), ('receipt', 'analyst')
  ),
  'history': _Command(_history, ('ledger',), ('receipt', 'dataset_id')),
  'export': _Command(_export, ('ledger', 'out')),
  'verify': _Command(_verify, ('ledger',)),
  'receipt': _Command(_receipt, ('ledger',)),
}


if __name__ == '__main__':
  sys.exit(main())
