"""Seconds per explained target, beside a PyTorch loop in one run.

  python -m experiments.bench_explainers --datasets=cora

Mask optimization over the two-hop receptive field (edges and features of the
target), 200 steps in float64: the library's search, all targets in one program,
and the same steps as a loop over targets and steps in PyTorch (extra `peers`;
absent where it is not installed) on as many threads as PyTorch takes. Both must
find the same masks: `num_equal` counts the targets for which they do. Rounds
alternate; seconds are not replayed, decisions are.
"""

import dataclasses
import importlib
import math
import pathlib
import time
from typing import Any
import warnings

import jax
import numpy as np
import pandas as pd

from experiments import _common
from experiments import experiment as experiment_lib
from experiments import results
from experiments import torch_loop
from experiments import worlds
from privjax import counterfactual
from privjax import data
from privjax import explainers

_COLD = 'privjax, compiling included'
_WARM = 'privjax, warm'
_PEER = 'PyTorch loop'


@dataclasses.dataclass(frozen=True, kw_only=True)
class Config:
  """Everything that the decisions depend on."""

  datasets: tuple[str, ...] = ('embedded',)
  seed: int = 0
  protocols: tuple[str, ...] = ('borderline', 'random')
  num_steps: int = 200
  num_rounds: int = 3
  num_peer_targets: int = 10
  max_targets: int | None = None

  def __post_init__(self):
    choices = experiment_lib.check_choices
    choices('datasets', self.datasets, data.DATASETS)
    choices('protocols', self.protocols, counterfactual.PROTOCOLS)
    experiment_lib.check_seeds((self.seed,))


def unit_names(config: Config) -> list[str]:
  """One unit per dataset and protocol."""
  return [
    f'{dataset} {protocol}'
    for dataset in config.datasets
    for protocol in config.protocols
  ]


def run_unit(
  config: Config, name: str, data_dir: str | None
) -> list[experiment_lib.Row]:
  """Measures one population of targets."""
  dataset, protocol = name.split(' ')
  world = worlds.load(dataset, config.seed, data_dir)
  graph, features = world.dataset.graph.graph, world.dataset.features
  targets = worlds.targets(world, protocol, config.seed)[: config.max_targets]
  spaces = [
    explainers.receptive_field_space(graph, features, int(t), num_hops=2)
    for t in targets
  ]
  settings = explainers.MaskConfig(num_steps=config.num_steps)
  search = lambda: explainers.search(
    world.model, graph, features, spaces, config=settings
  )
  chosen = spaces[: config.num_peer_targets]
  loop = _loop(world, chosen, settings)
  jax.clear_caches()
  cold, found = _timed(search)
  warm, peer = [], []
  for _ in range(config.num_rounds):
    warm.append(_timed(search)[0])
    if loop is not None:
      seconds, expected = _timed(loop)
      peer.append(seconds)
  common = {
    'dataset': dataset,
    'protocol': protocol,
    'num_valid': sum(bool(one.valid) for one in found),
    'total_size': sum(int((~np.concatenate(one.keep)).sum()) for one in found),
  }
  rows = [
    {'name': _COLD, 'num_targets': len(spaces), 'seconds': cold},
    {
      'name': _WARM,
      'num_targets': len(spaces),
      'seconds': float(np.median(warm)),
    },
    {
      'name': _PEER,
      'num_targets': len(chosen),
      'seconds': float(np.median(peer)) if peer else math.nan,
      'num_equal': _num_equal(found, expected) if peer else -1,
    },
  ]
  return [common | row for row in rows]


def _timed(function) -> tuple[float, Any]:
  start = time.perf_counter()
  result = function()
  return time.perf_counter() - start, result


def _loop(world: worlds.World, spaces, settings):
  """Returns the loop over targets, or `None` if PyTorch is not installed."""
  with warnings.catch_warnings():
    warnings.simplefilter('ignore')
    try:
      torch: Any = importlib.import_module('torch')
    except ImportError:
      return None
  graph, features = world.dataset.graph.graph, world.dataset.features
  return lambda: [
    torch_loop.optimize(
      torch, dict(world.model.params), graph, features, space, settings
    )[0]
    for space in spaces
  ]


def _num_equal(found, expected) -> int:
  """Counts the targets for which both found the same mask, or none."""
  return sum(
    (best is None and not bool(one.valid))
    or (best is not None and np.array_equal(np.concatenate(one.keep), best))
    for one, best in zip(found, expected)
  )


def report(
  config: Config, rows: list[experiment_lib.Row], folder: pathlib.Path
) -> None:
  """Prints milliseconds per target and how many times the loop's are."""
  del config
  frame = pd.DataFrame(rows)
  each = frame['seconds'] / frame['num_targets']
  frame['milliseconds_per_target'] = each * 1e3
  keys = ['dataset', 'protocol']
  warm = frame[frame['name'] == _WARM].set_index(keys)[
    'milliseconds_per_target'
  ]
  frame['times_warm'] = [
    own / warm[dataset, protocol]
    for dataset, protocol, own in zip(
      frame['dataset'], frame['protocol'], frame['milliseconds_per_target']
    )
  ]
  results.write_text(folder / 'summary.csv', frame.to_csv(index=False))
  print('num_equal: targets for which the loop found the same mask')
  print(
    frame.to_string(
      index=False, float_format=lambda x: f'{x:,.2f}', na_rep='absent'
    )
  )


EXPERIMENT = experiment_lib.Experiment(
  name='bench_explainers',
  config_class=Config,
  unit_names=unit_names,
  run_unit=run_unit,
  inputs=worlds.inputs,
  report=report,
  measured=frozenset({'seconds', 'num_equal'}),
)


def _config() -> Config:
  chosen: dict[str, Any] = dict(datasets=tuple(_common.DATASETS.value))
  if _common.SMOKE.value:
    chosen |= dict(
      protocols=('borderline',),
      num_steps=10,
      num_rounds=1,
      num_peer_targets=1,
      max_targets=1,
    )
  seeds = _common.int_list(_common.SEEDS.value, 'seeds')
  return Config(seed=seeds[0], **chosen)


def main() -> int:
  """Runs the benchmark as the flags say."""
  return _common.execute(EXPERIMENT, _config)


if __name__ == '__main__':
  _common.start(main)
