"""Milliseconds per exact draw, beside OpenDP's exact samplers in one run.

  python -m experiments.bench_sampling

Synthetic integer utilities over the 16 levels of the gated utility at its
default weights (denominator 100, sensitivity 0.96), at the support size of the
paper's largest setting and at 4 million candidates. Evaluation is not timed.

* exponential: `privjax.mechanisms.exact`, unweighted and weighted;
* permute-and-flip: one coin per candidate;
* OpenDP (extra `peers`): report noisy max with Gumbel noise, which has the
  exponential mechanism's law, and with exponential noise, which has
  permute-and-flip's. It reads the same NumPy array. Where it is not installed
  the seconds are not a number and the table says absent.

Rounds alternate between the samplers, so that a busy machine slows all of them.
Timed draws read the operating system's entropy. Seconds are not replayed; the
candidates drawn from a seeded source are.
"""

from collections.abc import Callable
import dataclasses
import importlib
import math
import pathlib
import time
from typing import Any

import numpy as np
import pandas as pd

from experiments import _common
from experiments import experiment as experiment_lib
from experiments import results
from privjax import counterfactual
from privjax import prng
from privjax.mechanisms import entropy
from privjax.mechanisms import exact
from privjax.mechanisms import permute_and_flip

_CONFIG = counterfactual.PrivCFSConfig(
  utility=counterfactual.UtilityConfig(sensitivity='tight')
)
_DENOMINATOR = _CONFIG.denominator
_SENSITIVITY = _CONFIG.sensitivity
_LEVELS = counterfactual.utility_levels(
  _CONFIG.utility,
  max_edges=_CONFIG.max_edges,
  max_features=_CONFIG.max_features,
)
_FLIP_RATE = 0.1
_LARGE = 100_000  # Above, `num_rounds_large` rounds and one replayed draw.


@dataclasses.dataclass(frozen=True, kw_only=True)
class Config:
  """Everything that the decisions depend on."""

  num_candidates: tuple[int, ...] = (23_621, 4_000_000)
  epsilons: tuple[str, ...] = ('0.1', '1', '8', '100')
  seed: int = 0
  num_rounds: int = 50
  num_rounds_large: int = 5
  num_replayed: int = 5

  def __post_init__(self):
    experiment_lib.check_numbers('epsilons', self.epsilons, 10**4)
    experiment_lib.check_seeds((self.seed,))
    if not self.num_candidates or min(self.num_candidates) < 1:
      raise ValueError(
        f'num_candidates must be integers >= 1, got {self.num_candidates}'
      )


def run_unit(
  config: Config, name: str, data_dir: str | None
) -> list[experiment_lib.Row]:
  """Measures one support size."""
  del data_dir
  count = int(name)
  large = count > _LARGE
  utility, weights = _problem(config.seed, count)
  rows = []
  for epsilon in config.epsilons:
    ours = _samplers(utility, weights, epsilon)
    peers = _peers(utility, epsilon)
    replayed = {
      sampler: _replay(config, draw, name, epsilon, 1 if large else None)
      for sampler, draw in ours.items()
    }
    num_rounds = config.num_rounds_large if large else config.num_rounds
    for sampler, taken in _alternate(ours | peers, num_rounds).items():
      rows.append(
        {
          'num_candidates': count,
          'num_levels': len(_LEVELS),
          'epsilon': epsilon,
          'sampler': sampler,
          'replayed': replayed.get(sampler, ''),
          'seconds': float(np.median(taken)),
          'best_seconds': float(np.min(taken)),
        }
      )
  return rows


def _problem(seed: int, count: int) -> tuple[np.ndarray, np.ndarray]:
  """Returns `[C]` utilities, most of which do not flip, and `[C]` weights."""
  rng = prng.generator(seed, 'bench_sampling', count)
  flips = rng.random(count) < _FLIP_RATE
  utility = np.where(flips, rng.choice(_LEVELS[2:], count), 0)
  utility[0] = 20
  return utility, rng.integers(1, 1000, count)


def _samplers(utility, weights, epsilon) -> dict[str, Callable[..., Any]]:
  """Returns functions of a bit source."""
  settings: dict[str, Any] = dict(
    levels=_LEVELS,
    epsilon=epsilon,
    sensitivity=_SENSITIVITY,
    denominator=_DENOMINATOR,
  )
  return {
    'exponential': lambda source=None: exact.sample(
      utility, **settings, source=source
    ),
    'exponential, weighted': lambda source=None: exact.sample(
      utility, **settings, weights=weights, source=source
    ),
    'permute-and-flip': lambda source=None: permute_and_flip.sample(
      utility, **settings, source=source
    ),
  }


def _peers(utility, epsilon) -> dict[str, Callable[[], Any] | None]:
  """Returns OpenDP's samplers, or `None` for each if it is not installed."""
  names = ('exponential, OpenDP', 'permute-and-flip, OpenDP')
  try:
    dp: Any = importlib.import_module('opendp.prelude')
  except ImportError:
    return dict.fromkeys(names)
  dp.enable_features('contrib')
  bound = float(_SENSITIVITY) * _DENOMINATOR
  measures = (dp.zero_concentrated_divergence(), dp.max_divergence())
  measurements = [
    dp.m.make_noisy_max(
      dp.vector_domain(dp.atom_domain(T='i64')),
      dp.linf_distance(T='i64'),
      measure,
      scale=2 * bound / float(epsilon),
    )
    for measure in measures
  ]
  return {
    name: lambda measurement=measurement: measurement(utility)
    for name, measurement in zip(names, measurements)
  }


def _replay(config: Config, draw, name: str, epsilon: str, most) -> str:
  """Returns the candidates drawn from one seeded source, as text."""
  num_draws = most or config.num_replayed
  source = entropy.seeded(config.seed, 'bench_sampling', name, epsilon)
  return ' '.join(str(draw(source).index) for _ in range(num_draws))


def _alternate(timed, num_rounds: int) -> dict[str, list[float]]:
  """Returns seconds per call: each once per round, after a warm-up."""
  seconds = {
    name: [math.nan] if function is None else []
    for name, function in timed.items()
  }
  present = {name: call for name, call in timed.items() if call is not None}
  for call in present.values():
    call()
  for _ in range(num_rounds):
    for name, call in present.items():
      start = time.perf_counter()
      call()
      seconds[name].append(time.perf_counter() - start)
  return seconds


def inputs(config: Config, data_dir: str | None) -> dict[str, str]:
  """Returns nothing: the utilities are synthetic."""
  del config, data_dir
  return {}


def report(
  config: Config, rows: list[experiment_lib.Row], folder: pathlib.Path
) -> None:
  """Prints milliseconds per draw and the ratio to the peer of equal law."""
  del config
  frame = pd.DataFrame(rows)
  frame['milliseconds'] = frame['seconds'] * 1e3
  frame['best_milliseconds'] = frame['best_seconds'] * 1e3
  keys = ['num_candidates', 'epsilon', 'sampler']
  seconds = frame.set_index(keys)['seconds']
  frame['peer_ratio'] = [
    seconds.get((count, epsilon, f'{sampler.partition(",")[0]}, OpenDP')) / own
    for count, epsilon, sampler, own in zip(
      *(frame[key] for key in keys), frame['seconds']
    )
  ]
  table = frame[[*keys, 'milliseconds', 'best_milliseconds', 'peer_ratio']]
  results.write_text(folder / 'summary.csv', table.to_csv(index=False))
  print('peer_ratio: how many times as long the peer of equal law takes')
  print(
    table.to_string(
      index=False, float_format=lambda x: f'{x:,.3f}', na_rep='absent'
    )
  )


EXPERIMENT = experiment_lib.Experiment(
  name='bench_sampling',
  config_class=Config,
  unit_names=lambda config: [str(count) for count in config.num_candidates],
  run_unit=run_unit,
  inputs=inputs,
  report=report,
  measured=frozenset({'seconds', 'best_seconds'}),
)


def _config() -> Config:
  chosen: dict[str, Any] = {}
  if _common.SMOKE.value:
    chosen = dict(
      num_candidates=(2_000, 200_000),
      epsilons=('1', '8'),
      num_rounds=3,
      num_rounds_large=2,
    )
  seeds = _common.int_list(_common.SEEDS.value, 'seeds')
  return Config(seed=seeds[0], **chosen)


def main() -> int:
  """Runs the benchmark as the flags say."""
  return _common.execute(EXPERIMENT, _config)


if __name__ == '__main__':
  _common.start(main)
