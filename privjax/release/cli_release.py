"""One certified release at the command line.

  privjax-release --snapshot=disclosed.npz --features=features.npz
    --weights=gcn.npz --ledger=budget.db --receipt=receipt.txt
    --dataset_id=cora --target=17 --dry_run
  privjax-release ... --graph=private.npz --epsilon=1 --out=answer

The first prints what a release would cost and buy; it spends and writes nothing
and does not open the private graph.

The second charges the ledger, then computes, then writes the folder --out: the
certificate, a page about it to print (card.html) and the public objects that
`privjax-verify` needs. The same query again is answered from the ledger and
costs nothing. Exit codes: 0 done, 1 refused or failed (the message says what
was spent), 2 bad usage (nothing was spent). What it prints is public.
"""

from collections.abc import Sequence
import contextlib
import fractions
import io
import json
import os
import pathlib
import secrets
import shutil
import sys
from typing import Any

from absl import flags
import scipy.sparse

from privjax import _validate
from privjax import counterfactual
from privjax import graphs
from privjax import models
from privjax.data import node_dataset
from privjax.graphs import importers
from privjax.mechanisms import entropy
from privjax.models import weights_io
from privjax.release import card
from privjax.release import cli_ledger
from privjax.release import explainer as explainer_lib
from privjax.release import ledger as ledger_lib
from privjax.release import ledger_chain
from privjax.release import ledger_errors
from privjax.release import ledger_storage

_GRAPH_FILES = (
  'an npz file with pairs and num_nodes or of scipy.sparse.save_npz, or a csv '
  'file with two columns of node numbers and no header'
)
# Their messages are public by contract.
_PUBLIC_ERRORS = (
  entropy.EntropyError,
  explainer_lib.ReleaseError,
  ledger_errors.LedgerError,
)


def main(arguments: Sequence[str] | None = None) -> int:
  """Runs `privjax-release`; returns the exit code."""
  values = flags.FlagValues()
  cli_ledger.define_account_flags(values)
  text = {
    'graph': f'The private graph: {_GRAPH_FILES}. Not read with --dry_run.',
    'snapshot': 'The graph that was disclosed before, and independently of, '
    f'the private edges: {_GRAPH_FILES}.',
    'features': 'Node features, of scipy.sparse.save_npz; read as float32.',
    'weights': 'The frozen two-layer GCN: npz, safetensors, or a PyTorch '
    'state_dict (.pt, .pth, .bin).',
    'epsilon': 'Exact: 1, 0.5 or 1/3.',
    'out': 'New folder of the answer.',
  }
  for name in text:
    flags.DEFINE_string(name, None, text[name], flag_values=values)
  flags.DEFINE_integer('target', None, 'Node number.', flag_values=values)
  flags.DEFINE_enum(
    'sensitivity',
    'tight',
    ['paper', 'tight'],
    'Bound of the utility: 1, or the exact 24/25.',
    flag_values=values,
  )
  flags.DEFINE_enum(
    'orientation',
    None,
    ['in_out', 'out_in'],
    'Of the kernels, where neither names nor shapes tell: X W, or X W^T.',
    flag_values=values,
  )
  flags.DEFINE_bool(
    'dry_run', False, 'Print the price list; spend nothing.', flag_values=values
  )
  return cli_ledger.run(__doc__ or '', values, _command, arguments)


def price_lines(
  offer: explainer_lib.Offer, delta: fractions.Fraction | None = None
) -> list[str]:
  """Returns a price list as text.

  Args:
    offer: of `PrivateExplainer.price_list`.
    delta: of an account that adds up zCDP; `None` for one in epsilon.
  """
  prices = offer.prices
  lines = [
    f'node {offer.target}: {offer.support_size} candidates in the support',
    f'{"epsilon":>10} {f"cost ({offer.unit})":>16}  expected validity',
  ]
  rates = zip(prices.epsilons, prices.valid_cf_rate, prices.standard_error)
  for epsilon, rate, error in rates:
    cost = ledger_chain.cost_of(epsilon, delta, bounded_range=True)
    lines.append(f'{epsilon!s:>10} {cost!s:>16}  {rate:.3f} +- {error:.3f}')
  return [
    *lines,
    f'{"free":>10} {0:>16}  {prices.free:.3f}',
    f'{"ceiling":>10} {"":>16}  {prices.ceiling:.3f}',
    f'Simulated on the snapshot, for the {prices.num_targets} nodes nearest in '
    'margin; +- is one standard error.',
  ]


def write_release(
  folder: pathlib.Path,
  explainer: explainer_lib.PrivateExplainer,
  target: int,
  epsilon: str,
) -> explainer_lib.Release:
  """Makes a release and writes its folder, whole or not at all.

  The public objects are on disk before the charge, so that a place that cannot
  be written costs nothing.

  Args:
    folder: must not exist.
    explainer: of the private graph.
    target: node id.
    epsilon: exact.

  Raises:
    CommandError: if something failed that may have come after the charge; the
      message says what was spent.
    OSError, ValueError: nothing was spent.
  """
  if os.path.lexists(folder):
    raise ValueError(f'--out must be a new folder, {folder} exists')
  partial = folder.with_name(f'.{folder.name}.{secrets.token_hex(4)}.partial')
  partial.mkdir()
  try:
    explainer.public.save(partial / 'public.npz')
    _sync(partial / 'public.npz')
    with _spending(explainer):
      release = explainer.release(target, epsilon=epsilon)
      assert release.certificate is not None
      _write(partial / 'certificate.json', release.certificate)
      _write(partial / 'card.html', card.html_card(release.certificate))
      ledger_storage.sync_folder(str(partial))
      os.rename(partial, folder)
      ledger_storage.sync_folder(str(folder.parent))
  except BaseException:
    shutil.rmtree(partial, ignore_errors=True)
    raise
  return release


def _command(given: cli_ledger.Given, positional: list[str]) -> None:
  if positional:
    raise ValueError(f'no positional arguments are taken, got {positional}')
  public = ('snapshot', 'features', 'weights', 'ledger', 'dataset_id')
  cli_ledger.require(given, *public, 'target')
  dry_run = given['dry_run']
  if not dry_run:
    cli_ledger.require(given, 'graph', 'epsilon', 'out')
  epsilon = given['epsilon']
  if epsilon is not None:
    cli_ledger.exact('epsilon', epsilon)
  arguments = _public_objects(given)
  num_nodes = arguments['snapshot'].graph.num_nodes
  if dry_run:
    # The private graph is not opened: the snapshot stands in for it.
    private = arguments['snapshot'].graph
  else:
    private = _read_private(given, num_nodes)
  with cli_ledger.open_ledger(given, writing=not dry_run) as ledger:
    explainer = explainer_lib.PrivateExplainer(
      private=graphs.PrivateGraph(private),
      ledger=ledger,
      dataset_id=given['dataset_id'],
      analyst=given['analyst'],
      **arguments,
    )
    if dry_run:
      _print_prices(given, explainer)
    else:
      _release(given, explainer)
    _print_balances(given, ledger)


def _print_prices(given, explainer) -> None:
  """Prints the offer, with the epsilon asked for among the usual ones."""
  asked = given['epsilon']
  texts = [*explainer_lib.PRICED, *([] if asked is None else [asked])]
  epsilons = sorted({_validate.rational(epsilon=text) for text in texts})
  offer = explainer.price_list(given['target'], epsilons)
  delta = explainer.account().guarantee.delta if offer.unit == 'rho' else None
  print('\n'.join(price_lines(offer, delta)))
  print('Dry run: nothing was spent.')


def _release(given, explainer) -> None:
  """Makes the release and says what it cost."""
  folder = pathlib.Path(given['out'])
  release = write_release(folder, explainer, given['target'], given['epsilon'])
  charge = json.loads(release.certificate or '')['charge']
  print(f'node {release.target}, epsilon {release.epsilon}')
  print(f'delete pairs {[list(pair) for pair in release.delete_pairs]}')
  print(f'mask features {list(release.mask_features)}')
  if release.cached:
    print('The same query was answered before: charged 0.')
  else:
    cost = fractions.Fraction(charge['cost'])
    print(f'Charged {cost} {explainer.account().unit}.')
  for name in ('certificate.json', 'card.html', 'public.npz'):
    print(f'wrote {folder / name}')


def _print_balances(given, ledger: ledger_lib.Ledger) -> None:
  dataset_id, analyst = given['dataset_id'], given['analyst']
  for each in dict.fromkeys((None, analyst)):
    print(cli_ledger.balance_line(ledger, dataset_id, each))


@contextlib.contextmanager
def _spending(explainer: explainer_lib.PrivateExplainer):
  """Makes every failure say what was spent, and nothing else."""
  before = explainer.account()
  try:
    yield
  except BaseException as error:
    try:
      spent = explainer.account().spent - before.spent
    except Exception:
      spent = None
    if spent == 0 and isinstance(error, ValueError | TypeError):
      raise
    raise cli_ledger.CommandError(
      _message(error, _outcome(spent, before.unit))
    ) from None


def _message(error: BaseException, outcome: str) -> str:
  """Names an error; of most only the kind: a text could be private."""
  if isinstance(error, KeyboardInterrupt):
    return f'interrupted; {outcome}'
  if not isinstance(error, _PUBLIC_ERRORS):
    return f'{type(error).__name__}; {outcome}'
  text = str(error)
  return text if text.endswith(outcome) else f'{text}; {outcome}'


def _outcome(spent: fractions.Fraction | None, unit: str) -> str:
  if spent is None:
    return 'privjax-ledger balance says what was spent'
  if spent == 0:
    return 'nothing was spent'
  return (
    f'{spent} {unit} was spent and stays spent; if the answer was stored, the '
    'same command gets it for nothing'
  )


def _public_objects(given: cli_ledger.Given) -> dict[str, Any]:
  """Reads the public files, as arguments of `PrivateExplainer`."""
  features = _read_features(given['features'])
  num_nodes, num_features = features.shape[0], features.shape[1]
  if given['graph'] is not None:
    _check_other_file(given['graph'], given['snapshot'])
  snapshot = _read_graph(given['snapshot'], num_nodes)
  params = weights_io.load_gcn_weights(
    given['weights'],
    num_features=num_features,
    orientation=given['orientation'],
  )
  utility = counterfactual.UtilityConfig(sensitivity=given['sensitivity'])
  return {
    'snapshot': graphs.Snapshot(snapshot, 'external'),
    'features': features,
    'model': models.gcn.model(params),
    'config': counterfactual.PrivCFSConfig(utility=utility),
  }


def _read_features(path: str) -> scipy.sparse.csr_array:
  content = io.BytesIO(pathlib.Path(path).read_bytes())
  try:
    matrix = scipy.sparse.load_npz(content)
    if matrix.dtype.kind not in 'biuf':
      raise TypeError
    return node_dataset.canonical_features(matrix)
  # A damaged file fails in many ways.
  except Exception as error:
    raise ValueError(
      '--features must be a file of scipy.sparse.save_npz with real numbers, '
      f'got {path} ({type(error).__name__})'
    ) from None


def _check_other_file(graph: str, snapshot: str) -> None:
  """Refuses a snapshot that is the private graph, by name and not by content.

  Comparing the edges would say something about them.
  """
  if os.path.exists(graph) and os.path.samefile(graph, snapshot):
    raise ValueError(
      '--snapshot must have been disclosed independently of --graph, got the '
      f'same file {graph}'
    )


def _read_graph(path: str, num_nodes: int) -> graphs.Graph:
  """Reads a graph on nodes 0..N-1."""
  suffix = pathlib.Path(path).suffix
  if suffix == '.npz':
    return importers.from_npz(path).graph
  if suffix == '.csv':
    # Not from the edges: the node set is public, an isolated node in it too.
    return importers.from_edge_list(path, node_ids=range(num_nodes)).graph
  raise ValueError(f'a graph must end in .npz or .csv, got {path}')


def _read_private(given: cli_ledger.Given, num_nodes: int) -> graphs.Graph:
  """Reads the private graph; errors say nothing of what it holds."""
  path = given['graph']
  try:
    return _read_graph(path, num_nodes)
  except OSError:
    raise
  except Exception:
    raise ValueError(
      f'--graph must be {_GRAPH_FILES}, with the nodes 0 to {num_nodes - 1}, '
      f'got {path} (privjax.graphs.importers says more, to its owner)'
    ) from None


def _write(path: pathlib.Path, text: str) -> None:
  path.write_text(text, encoding='utf-8')
  _sync(path)


def _sync(path: pathlib.Path) -> None:
  with path.open('rb') as file:
    os.fsync(file.fileno())


if __name__ == '__main__':
  sys.exit(main())
