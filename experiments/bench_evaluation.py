"""How fast the whole support is scored, as ratios within one run.

  python -m experiments.bench_evaluation --datasets=cora

* floor: the fastest of several jitted ways to write the multiply-add-relu-
  accumulate over exactly the [A, U, B, H] elements that a 12-neighbor target
  needs, plus the [A, B, H] x [H, K] product, on random numbers;
* evaluation: the library on that target, the jitted stage and the whole call;
* one forward per candidate: the two reference evaluators, on a sample;
* sweep: every test target with the whole graph disclosed, compiling included.

Rounds alternate between floor and evaluation, so that a busy machine slows
both. Seconds are not replayed; the decisions made along the way are.
"""

from collections.abc import Callable
import dataclasses
import functools
import pathlib
import time
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd

from experiments import _common
from experiments import experiment as experiment_lib
from experiments import results
from experiments import worlds
from privjax import counterfactual
from privjax import data
from privjax import graphs
from privjax.counterfactual import evaluation
from privjax.counterfactual import factored

_DTYPES = {'float32': np.float32, 'float64': np.float64}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Config:
  """Everything that the decisions depend on."""

  datasets: tuple[str, ...] = ('embedded',)
  seed: int = 0
  num_neighbors: int = 12
  num_rounds: int = 30
  num_sampled: int = 64
  max_targets: int | None = None

  def __post_init__(self):
    experiment_lib.check_choices('datasets', self.datasets, data.DATASETS)
    experiment_lib.check_seeds((self.seed,))


def run_unit(
  config: Config, name: str, data_dir: str | None
) -> list[experiment_lib.Row]:
  """Measures one dataset."""
  world = worlds.load(name, config.seed, data_dir)
  snapshot = worlds.load_snapshot(name, config.seed, '1', data_dir)
  target = _target(world, config.num_neighbors)
  candidates = _support(world, snapshot, target)
  rows = []
  for dtype in _DTYPES:
    rows += _floor_and_evaluation(config, world, candidates, dtype)
  rows += _references(config, world, candidates)
  rows.append(_sweep(config, world, snapshot))
  return [{'dataset': name, 'target': target, **row} for row in rows]


def _target(world: worlds.World, num_neighbors: int) -> int:
  """Returns the test node whose degree is closest to the wanted one."""
  nodes = np.sort(world.dataset.test_index)
  distance = np.abs(world.dataset.graph.graph.degree[nodes] - num_neighbors)
  return int(nodes[np.argmin(distance)])


def _support(world, snapshot, target) -> counterfactual.CandidateSet:
  return counterfactual.support(
    snapshot,
    world.dataset.features,
    world.model.params['hidden']['kernel'],
    target,
  )


def _floor_and_evaluation(config, world, candidates, dtype):
  """Times the floor's variants and the library in alternating rounds."""
  degree = world.dataset.graph.graph.degree[candidates.universe.target]
  num_slots = int(degree) + 1
  shape = (*candidates.valid.shape, num_slots)
  num_hidden, num_classes = world.model.params['output']['kernel'].shape
  args = _random_operands(shape, num_hidden, num_classes, _DTYPES[dtype])
  whole = lambda: counterfactual.evaluate_factored(
    world.model,
    world.dataset.graph,
    world.dataset.features,
    candidates,
    projected=world.projected,
    dtype=_DTYPES[dtype],
  )
  features = world.dataset.features
  plan = evaluation.plan(world.dataset.graph, features, candidates, 'effective')
  inputs = factored.prepare(
    world.model, features, candidates, plan, projected=world.projected
  )
  with jax.enable_x64(dtype == 'float64'):
    cast = lambda x: np.asarray(x, dtype if x.dtype.kind == 'f' else x.dtype)
    inputs, params = jax.tree.map(cast, (inputs, dict(world.model.params)))
    score = jax.jit(factored.score, static_argnames='chunk_size')
    timed: dict[str, Callable[[], Any]] = {
      name: functools.partial(jax.jit(form), *args)
      for name, form in _FORMS.items()
    }
    timed['evaluation: jitted stage'] = lambda: score(
      params, inputs, chunk_size=factored.CHUNK_SIZE
    )
    timed['evaluation: whole call'] = whole
    seconds = _alternate(timed, config.num_rounds)
  num_candidates = candidates.valid.size
  # A replay compares it: float32 may decide near-ties otherwise elsewhere.
  flips = int(whole().flips.sum()) if dtype == 'float64' else None
  return [
    {
      'kind': 'floor' if name in _FORMS else 'evaluation',
      'name': name,
      'dtype': dtype,
      'num_candidates': num_candidates,
      'num_slots': num_slots,
      'num_flips': flips,
      'seconds': float(np.median(taken)),
      'best_seconds': float(np.min(taken)),
    }
    for name, taken in seconds.items()
  ]


def _random_operands(shape, num_hidden, num_classes, dtype):
  """Returns P, c, w, z and W2 of the factored form, random."""
  num_edges, num_features, num_slots = shape
  rng = np.random.default_rng(0)
  draw = lambda *size: rng.uniform(-1, 1, size).astype(dtype)
  return (
    draw(num_edges, num_slots, num_hidden),
    draw(num_edges, num_slots),
    np.abs(draw(num_edges, num_slots)),
    draw(num_features, num_hidden),
    draw(num_hidden, num_classes),
  )


def _scan_form(p, c, w, z, kernel):
  def add(total, slot):
    p_u, c_u, w_u = slot
    hidden = jax.nn.relu(p_u[:, None, :] + c_u[:, None, None] * z[None])
    return total + w_u[:, None, None] * hidden, None

  start = jnp.zeros((len(p), *z.shape), z.dtype)
  slots = (p.swapaxes(0, 1), c.T, w.T)
  return jax.lax.scan(add, start, slots)[0] @ kernel


def _unrolled_form(p, c, w, z, kernel):
  total = jnp.zeros((len(p), *z.shape), z.dtype)
  for u in range(p.shape[1]):
    hidden = jax.nn.relu(p[:, u, None, :] + c[:, u, None, None] * z[None])
    total = total + w[:, u, None, None] * hidden
  return total @ kernel


def _einsum_form(p, c, w, z, kernel):
  hidden = jax.nn.relu(p[:, :, None] + c[:, :, None, None] * z[None, None])
  return jnp.einsum('aubh,au->abh', hidden, w) @ kernel


def _broadcast_form(p, c, w, z, kernel):
  hidden = jax.nn.relu(p[:, :, None] + c[:, :, None, None] * z[None, None])
  return (w[:, :, None, None] * hidden).sum(axis=1) @ kernel


_FORMS = {
  'floor: scan': _scan_form,
  'floor: unrolled': _unrolled_form,
  'floor: einsum': _einsum_form,
  'floor: broadcast': _broadcast_form,
}


def _alternate(
  timed: dict[str, Callable[[], Any]], num_rounds: int
) -> dict[str, list[float]]:
  """Returns seconds per call, each once per round.

  Warm: an untimed call comes before each, so that no function pays for what
  the one before it left in the caches.
  """
  seconds: dict[str, list[float]] = {name: [] for name in timed}
  for _ in range(num_rounds):
    for name, function in timed.items():
      jax.block_until_ready(function())
      start = time.perf_counter()
      jax.block_until_ready(function())
      seconds[name].append(time.perf_counter() - start)
  return seconds


def _references(config, world, candidates):
  """Times a forward per candidate by the slope between two sample sizes.

  The slope leaves out what a call costs once: compiling, and setting up.
  """
  small = _sample(candidates, config.num_sampled)
  large = _sample(candidates, 4 * config.num_sampled)
  rows = []
  for name, evaluator in (
    ('whole graph', counterfactual.evaluate_full_graph),
    ('receptive field, vmapped', counterfactual.evaluate_subgraph),
  ):
    call = functools.partial(
      evaluator, world.model, world.dataset.graph, world.dataset.features
    )
    seconds, flips = [], 0
    for sample in (small, large):
      call(sample)
      start = time.perf_counter()
      flips = int(call(sample).flips.sum())
      seconds.append(time.perf_counter() - start)
    slope = (seconds[1] - seconds[0]) / (large.valid.size - small.valid.size)
    rows.append(
      {
        'kind': 'one forward per candidate',
        'name': name,
        'dtype': 'float64',
        'num_candidates': candidates.valid.size,
        'num_sampled': large.valid.size,
        'num_flips': flips,
        'seconds': max(slope, 0.0) * candidates.valid.size,
      }
    )
  return rows


def _sample(candidates, count) -> counterfactual.CandidateSet:
  """Keeps about `count` candidates: few subsets of each kind, spread."""
  num_edges, num_features = candidates.valid.shape
  side = max(int(count**0.5), 1)
  rows = np.linspace(0, num_edges - 1, min(side, num_edges)).astype(int)
  kept = np.linspace(0, num_features - 1, min(side, num_features)).astype(int)
  return candidates.replace(
    edge_subsets=candidates.edge_subsets[rows],
    edge_sizes=candidates.edge_sizes[rows],
    edge_valid=candidates.edge_valid[rows],
    feature_subsets=candidates.feature_subsets[kept],
    feature_sizes=candidates.feature_sizes[kept],
    feature_valid=candidates.feature_valid[kept],
  )


def _sweep(config, world, snapshot: graphs.Snapshot):
  """Scores every test target from a cold cache."""
  targets = world.dataset.test_index[: config.max_targets]
  jax.clear_caches()
  start = time.perf_counter()
  num_candidates = num_flips = 0
  for target in targets:
    candidates = _support(world, snapshot, int(target))
    scored = counterfactual.evaluate_factored(
      world.model,
      world.dataset.graph,
      world.dataset.features,
      candidates,
      projected=world.projected,
    )
    num_candidates += candidates.support_size
    num_flips += int((scored.flips & candidates.valid).sum())
  return {
    'kind': 'sweep',
    'name': 'all test targets, compiling included',
    'dtype': 'float64',
    'num_targets': len(targets),
    'num_candidates': num_candidates,
    'num_flips': num_flips,
    'seconds': time.perf_counter() - start,
  }


def report(
  config: Config, rows: list[experiment_lib.Row], folder: pathlib.Path
) -> None:
  """Prints seconds, candidates per second and ratios to the floor."""
  del config
  frame = pd.DataFrame(rows)
  floors = frame[frame['kind'] == 'floor'].groupby(['dataset', 'dtype'])
  floor = floors['seconds'].min()
  keys = list(zip(frame['dataset'], frame['dtype']))
  frame['milliseconds'] = frame['seconds'] * 1e3
  frame['candidates_per_second'] = frame['num_candidates'] / frame['seconds']
  frame['ratio_to_floor'] = [
    seconds / floor[key] if kind != 'sweep' else np.nan
    for seconds, key, kind in zip(frame['seconds'], keys, frame['kind'])
  ]
  columns = [
    'dataset',
    'kind',
    'name',
    'dtype',
    'num_candidates',
    'milliseconds',
    'candidates_per_second',
    'ratio_to_floor',
  ]
  table = frame[columns]
  results.write_text(folder / 'summary.csv', table.to_csv(index=False))
  print(table.to_string(index=False, float_format=lambda x: f'{x:,.2f}'))


EXPERIMENT = experiment_lib.Experiment(
  name='bench_evaluation',
  config_class=Config,
  unit_names=lambda config: list(config.datasets),
  run_unit=run_unit,
  inputs=worlds.inputs,
  report=report,
  measured=frozenset({'seconds', 'best_seconds'}),
)


def _config() -> Config:
  chosen: dict[str, Any] = dict(datasets=tuple(_common.DATASETS.value))
  seeds = _common.int_list(_common.SEEDS.value, 'seeds')
  first = seeds[0]
  if _common.SMOKE.value:
    chosen |= dict(num_rounds=2, num_sampled=4, max_targets=20)
  if _common.SEEDS.present and len(seeds) > 1:
    raise ValueError(f'seeds must be one seed for this benchmark, got {seeds}')
  return Config(seed=first, **chosen)


def main() -> int:
  """Runs the benchmark as the flags say."""
  return _common.execute(EXPERIMENT, _config)


if __name__ == '__main__':
  _common.start(main)
