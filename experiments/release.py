"""A certified release from end to end: price, charge, draw, certify, verify.

  python -m experiments.release
  python -m experiments.release --dry_run

A release is certified only if its snapshot was fixed before, and independently
of, the private edges. So the data set's published graph, on which the backbone
was trained as well, is the *snapshot*, and the private graph is that graph and
new edges drawn after it. They are drawn with a seed that anyone may use: this
shows the mechanics, and protects nobody.

Each unit releases from a ledger of its own and verifies the certificate, and
changed ones. A certified draw cannot be replayed, so rows hold what does not
depend on it, and a seeded draw, which is not certified. Then one release is
made to keep, in `<results>/release`: certificate, card, public objects.
"""

import contextlib
import dataclasses
import functools
import io
import json
import pathlib
import shutil
import sys
import tempfile
from typing import Any

from absl import flags
import numpy as np
import pandas as pd

from experiments import _common
from experiments import experiment as experiment_lib
from experiments import results
from experiments import worlds
from privjax import counterfactual
from privjax import data
from privjax import graphs
from privjax import prng
from privjax import types
from privjax.release import certificate
from privjax.release import cli_ledger
from privjax.release import cli_release
from privjax.release import explainer as explainer_lib
from privjax.release import ledger as ledger_lib
from privjax.release import ledger_errors
from privjax.release import verify_certificate

_EPSILON = flags.DEFINE_string('release_epsilon', '1', 'Exact, at most 4.')
_DRY_RUN = flags.DEFINE_bool(
  'dry_run', False, 'Print the price list; spend nothing and write nothing.'
)

_NEW_SHARE = 0.1  # New private edges, by published ones.


@dataclasses.dataclass(frozen=True, kw_only=True)
class Config:
  """Everything that the rows depend on; numbers in canonical spelling."""

  datasets: tuple[str, ...] = ('embedded',)
  seeds: tuple[int, ...] = (0, 1, 2)
  epsilon: str = '1'
  priced: tuple[str, ...] = ('0.5', '1', '2', '4', '8')
  budget: str = '4'

  def __post_init__(self):
    experiment_lib.check_choices('datasets', self.datasets, data.DATASETS)
    experiment_lib.check_seeds(self.seeds)
    experiment_lib.check_numbers('priced', self.priced, 10**4)
    experiment_lib.check_numbers('budget', (self.budget,), 10**4)
    experiment_lib.check_numbers(
      'release_epsilon', (self.epsilon,), int(self.budget)
    )


def unit_names(config: Config) -> list[str]:
  """One unit per dataset and seed."""
  return [
    f'{dataset}/{seed}' for dataset in config.datasets for seed in config.seeds
  ]


def run_unit(
  config: Config, name: str, data_dir: str | None
) -> list[experiment_lib.Row]:
  """Returns the price list, the facts of a release, and a simulated draw."""
  target = _target(name, data_dir)
  common = {
    'dataset': name.split('/')[0],
    'seed': int(name.split('/')[1]),
    'target': target,
  }
  with tempfile.TemporaryDirectory() as text:
    folder = pathlib.Path(text)
    with _open_ledger(config, folder) as ledger:
      explainer = _explainer(name, data_dir, ledger)
      rows = [
        *_price_rows(explainer.price_list(target, config.priced)),
        _release_row(config, explainer, ledger, target, folder),
        _simulated_row(config, explainer, common),
      ]
  return [common | row for row in rows]


def _price_rows(offer: explainer_lib.Offer) -> list[dict[str, Any]]:
  prices = offer.prices
  rates = zip(prices.epsilons, prices.valid_cf_rate, prices.standard_error)
  return [
    {
      'kind': 'price',
      'epsilon': str(epsilon),
      'support_size': offer.support_size,
      'valid_cf_rate': float(rate),
      'standard_error': float(error),
      'free': prices.free,
      'ceiling': prices.ceiling,
      'num_targets': prices.num_targets,
    }
    for epsilon, rate, error in rates
  ]


def _release_row(config, explainer, ledger, target, folder) -> dict[str, Any]:
  """Releases, asks again, and verifies the certificate and changed ones."""
  make = functools.partial(
    cli_release.write_release,
    explainer=explainer,
    target=target,
    epsilon=config.epsilon,
  )
  release = make(folder / 'answer')
  after_first = explainer.account()
  again = make(folder / 'again')
  after_second = explainer.account()
  content = json.loads(release.certificate)
  return {
    'kind': 'release',
    'epsilon': str(release.epsilon),
    'certified': release.certified,
    'support_size': content['support']['size'],
    'support_sha256': content['support']['sha256'],
    **{f'{k}_sha256': v for k, v in explainer.public.digests().items()},
    'charged': str(after_first.spent),
    'charged_again': str(after_second.spent - after_first.spent),
    'remaining': str(after_second.remaining),
    'same_certificate': again.certificate == release.certificate,
    **_verdicts(content, ledger, folder),
  }


def _verdicts(content, ledger, folder) -> dict[str, bool]:
  """Returns whether a verifier accepts the certificate, and changed ones."""
  ledger.export(folder / 'export.jsonl')
  cheaper = content | {'guarantee': content['guarantee'] | {'epsilon': '1/8'}}
  versions = {
    'accepted': content,
    'accepted_if_changed': cheaper,
    'accepted_if_resealed': cheaper | {'sha256': certificate.seal(cheaper)},
  }
  found = {}
  for name, version in versions.items():
    path = folder / f'{name}.json'
    path.write_text(json.dumps(version))
    code, _ = verify(
      path, folder / 'answer' / 'public.npz', folder / 'export.jsonl'
    )
    found[name] = code == 0
  return found


def _simulated_row(config, explainer, common) -> dict[str, Any]:
  release = explainer.simulate(
    common['target'], epsilon=config.epsilon, seed=common['seed']
  )
  return {
    'kind': 'simulated',
    'epsilon': str(release.epsilon),
    'certified': release.certified,
    'delete_pairs': json.dumps(release.delete_pairs),
    'mask_features': json.dumps(release.mask_features),
  }


def verify(*paths: pathlib.Path) -> tuple[int, str]:
  """Runs `privjax-verify`; returns its exit code and what it printed."""
  out = io.StringIO()
  with contextlib.redirect_stdout(out):
    code = verify_certificate.main([str(path) for path in paths])
  return code, out.getvalue()


def private_graph(
  published: graphs.Graph, dataset: str, seed: int
) -> graphs.PrivateGraph:
  """Returns the published graph with new edges between random nodes."""
  rng = prng.generator(seed, 'new private edges', dataset)
  count = round(_NEW_SHARE * published.num_edges)
  new = (rng.random((count, 2)) * published.num_nodes).astype(np.int64)
  graph, _ = graphs.from_pairs(
    published.num_nodes, np.concatenate([published.pairs, new])
  )
  return graphs.PrivateGraph(graph)


def _target(name: str, data_dir: str | None) -> int:
  """Chooses by a public rule: least margin on the snapshot."""
  dataset, seed = name.split('/')
  world = worlds.load(dataset, int(seed), data_dir)
  (target,) = counterfactual.borderline_targets(
    world.dataset.test_index, world.margin, count=1
  )
  return int(target)


def _explainer(
  name: str, data_dir: str | None, ledger: ledger_lib.Ledger
) -> explainer_lib.PrivateExplainer:
  dataset, seed = name.split('/')
  world = worlds.load(dataset, int(seed), data_dir)
  published = world.dataset.graph.graph
  return explainer_lib.PrivateExplainer(
    private=private_graph(published, dataset, int(seed)),
    snapshot=graphs.Snapshot(published, 'external'),
    features=world.dataset.features,
    model=world.model,
    ledger=ledger,
    dataset_id='demonstration',
  )


def _open_ledger(config: Config, folder: pathlib.Path) -> ledger_lib.Ledger:
  """Opens the ledger of a folder; creates it and its account if need be."""
  path = folder / 'ledger.db'
  # An owner keeps the receipt where a restore of the ledger cannot reach it.
  receipt = folder / 'receipt.txt'
  method = ledger_lib.Ledger.open if path.exists() else ledger_lib.Ledger.create
  ledger = method(path, receipt=receipt)
  try:
    ledger.balance('demonstration')
  except ledger_errors.UnknownAccountError:
    relation = types.NeighboringRelation.ADD_REMOVE_ONE_EDGE
    ledger.open_account('demonstration', config.budget, relation)
  return ledger


def report(
  config: Config, rows: list[experiment_lib.Row], folder: pathlib.Path
) -> None:
  """Prints price lists and verdicts; writes summary.csv."""
  del config
  frame = pd.DataFrame(rows)
  results.write_text(folder / 'summary.csv', frame.to_csv(index=False))
  prices = frame[frame['kind'] == 'price'].astype({'support_size': int})
  columns = ['dataset', 'seed', 'target', 'support_size', 'epsilon']
  columns += ['valid_cf_rate', 'standard_error', 'free', 'ceiling']
  show = functools.partial(
    pd.DataFrame.to_string, index=False, float_format=lambda x: f'{x:.3f}'
  )
  print('\nPrice list: expected validity, simulated on the snapshot\n')
  print(show(prices[columns]))
  releases = frame[frame['kind'] == 'release']
  columns = ['dataset', 'seed', 'target', 'epsilon', 'charged', 'charged_again']
  columns += ['remaining', 'accepted', 'accepted_if_changed']
  print('\nReleases, the same query again, and what a verifier accepts\n')
  print(show(releases[[*columns, 'accepted_if_resealed']]))


EXPERIMENT = experiment_lib.Experiment(
  name='release',
  config_class=Config,
  unit_names=unit_names,
  run_unit=run_unit,
  inputs=worlds.inputs,
  report=report,
)


def keep_release(
  config: Config, data_dir: str | None, folder: pathlib.Path
) -> bool:
  """Makes the first unit's release to keep, once; returns if it verifies.

  The ledger stays beside it, so that a later call finds the answer there and
  pays nothing.
  """
  name = unit_names(config)[0]
  target = _target(name, data_dir)
  answer, export = folder / 'release', folder / 'ledger_export.jsonl'
  with _open_ledger(config, folder) as ledger:
    explainer = _explainer(name, data_dir, ledger)
    if answer.exists():
      print(f'\nReleased before: {answer}')
    else:
      release = cli_release.write_release(
        answer, explainer, target, config.epsilon
      )
      cost = 'from the ledger, charged 0' if release.cached else 'charged'
      print(f'\nReleased ({cost}): {answer}')
    balance = explainer.account()
    print(f'spent {balance.spent}, remaining {balance.remaining}')
    export.unlink(missing_ok=True)
    ledger.export(export)
  code, text = verify(
    answer / 'certificate.json', answer / 'public.npz', export
  )
  print(text, end='')
  return code == 0


def print_prices(config: Config, data_dir: str | None) -> None:
  """Prints the first unit's price list; the ledger is gone afterwards."""
  name = unit_names(config)[0]
  with tempfile.TemporaryDirectory() as folder:
    with _open_ledger(config, pathlib.Path(folder)) as ledger:
      explainer = _explainer(name, data_dir, ledger)
      offer = explainer.price_list(_target(name, data_dir), config.priced)
  print('\n'.join(cli_release.price_lines(offer)))
  print('Dry run: nothing was spent.')


def _config() -> Config:
  (epsilon,) = experiment_lib.canonical_numbers(
    'release_epsilon', [_EPSILON.value]
  )
  seeds = _common.int_list(_common.SEEDS.value, 'seeds')
  return Config(
    datasets=tuple(_common.DATASETS.value),
    seeds=(0,) if _common.SMOKE.value else seeds,
    epsilon=epsilon,
  )


def main() -> int:
  """Runs the experiment as the flags say, then keeps one release."""
  if _DRY_RUN.value:
    return _guarded(print_prices)
  code = _common.execute(EXPERIMENT, _config)
  if code != _common.DONE:
    return code
  digest = experiment_lib.config_hash(_config())
  folder = pathlib.Path(_common.OUT_DIR.value) / EXPERIMENT.name / digest
  if _common.OVERWRITE.value:
    shutil.rmtree(folder / 'release', ignore_errors=True)
  return _guarded(functools.partial(keep_release, folder=folder))


def _guarded(function) -> int:
  """Calls `function(config, data_dir)`; errors become one line and a code."""
  try:
    config = _config()
  except ValueError as error:
    print(f'error: {error}', file=sys.stderr)
    return _common.BAD_USAGE
  try:
    accepted = function(config, _common.DATA_DIR.value)
  except (OSError, cli_ledger.CommandError, ledger_errors.LedgerError) as error:
    print(f'error: {error}', file=sys.stderr)
    return _common.FAILED
  return _common.FAILED if accepted is False else _common.DONE


if __name__ == '__main__':
  _common.start(main)
