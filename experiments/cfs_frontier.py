"""PrivCFS frontier: Tables 1 and 2, the stratified table, Figs. 4 and 5.

  python -m experiments.cfs_frontier
  python -m experiments.cfs_frontier --datasets=cora,citeseer

For every target, disclosed fraction rho and epsilon: what the support allows
(ceiling), what the snapshot gives away for free (public_only) and what the
release achieves (valid_cf_rate), exactly and from draws. Prints the price list,
then the published numbers beside the measured ones.

Snapshots are simulated from the private graph, so no row is certified; rho = 1
discloses every edge and is an upper reference only.
"""

import dataclasses
import functools
from typing import Any

from absl import flags
import numpy as np

from experiments import _common
from experiments import cfs_report
from experiments import experiment as experiment_lib
from experiments import worlds
from privjax import counterfactual
from privjax import data
from privjax import mechanisms
from privjax import prng

_RHOS = flags.DEFINE_list('rhos', ['0.3', '0.5', '0.7', '1'], 'Disclosed.')
_EPSILONS = flags.DEFINE_list(
  'epsilons', ['0.1', '0.5', '1', '2', '4', '8'], 'Exact epsilons.'
)
_PROTOCOLS = flags.DEFINE_list(
  'protocols', list(counterfactual.PROTOCOLS), 'Target populations.'
)
_FEATURE_MASKS = flags.DEFINE_list(
  'feature_masks', list(counterfactual.FEATURE_MASKS), 'Mask arms.'
)
_SENSITIVITY = flags.DEFINE_string('sensitivity', 'paper', 'Or "tight".')
_NUM_DRAWS = flags.DEFINE_integer('num_draws', 100, 'Simulated draws a cell.')
_K_MAX_EDGES = flags.DEFINE_integer('max_edges', 2, 'Most pairs deleted.')
_K_MAX_FEATURES = flags.DEFINE_integer(
  'max_features', 3, 'Most features masked.'
)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Config:
  """Everything that the rows depend on; numbers in canonical spelling."""

  datasets: tuple[str, ...] = ('embedded',)
  seeds: tuple[int, ...] = (0, 1, 2)
  rhos: tuple[str, ...] = ('0.3', '0.5', '0.7', '1')
  epsilons: tuple[str, ...] = ('0.1', '0.5', '1', '2', '4', '8')
  protocols: tuple[str, ...] = counterfactual.PROTOCOLS
  feature_masks: tuple[str, ...] = counterfactual.FEATURE_MASKS
  sensitivity: str = 'paper'
  num_draws: int = 100
  max_edges: int = 2
  max_features: int = 3
  max_targets: int | None = None

  def __post_init__(self):
    experiment_lib.check_choices('datasets', self.datasets, data.DATASETS)
    experiment_lib.check_choices(
      'protocols', self.protocols, counterfactual.PROTOCOLS
    )
    experiment_lib.check_choices(
      'feature_masks', self.feature_masks, counterfactual.FEATURE_MASKS
    )
    experiment_lib.check_numbers('epsilons', self.epsilons, 10**4)
    experiment_lib.check_numbers('rhos', self.rhos, 1)
    experiment_lib.check_seeds(self.seeds)
    if self.num_draws < 1:
      raise ValueError(f'num_draws must be >= 1, got {self.num_draws}')
    if self.max_targets is not None and self.max_targets < 1:
      raise ValueError(f'max_targets must be >= 1, got {self.max_targets}')
    for arm in self.feature_masks:
      privcfs_config(self, arm)


def privcfs_config(
  config: Config, feature_masks: str
) -> counterfactual.PrivCFSConfig:
  """Returns the library config of one arm."""
  return counterfactual.PrivCFSConfig(
    max_edges=config.max_edges,
    max_features=config.max_features,
    feature_masks=feature_masks,
    utility=counterfactual.UtilityConfig(sensitivity=config.sensitivity),
  )


def unit_names(config: Config) -> list[str]:
  """One unit per dataset, seed, rho, arm and protocol."""
  return [
    f'{dataset} {seed} {rho} {arm} {protocol}'
    for dataset in config.datasets
    for seed in config.seeds
    for rho in config.rhos
    for arm in config.feature_masks
    for protocol in config.protocols
  ]


def run_unit(
  config: Config, name: str, data_dir: str | None
) -> list[experiment_lib.Row]:
  """Returns the rows of all targets and epsilons of one unit."""
  dataset, seed, rho, arm, protocol = name.split(' ')
  world = worlds.load(dataset, int(seed), data_dir)
  snapshot = worlds.load_snapshot(dataset, int(seed), rho, data_dir)
  targets = worlds.targets(world, protocol, int(seed))[: config.max_targets]
  cell = {
    'dataset': dataset,
    'protocol': protocol,
    'seed': int(seed),
    'rho': rho,
    'feature_masks': arm,
  }
  return [
    row
    for target in targets
    for row in _target_rows(config, world, snapshot, int(target), cell)
  ]


def _target_rows(config, world, snapshot, target, cell):
  """Returns one row per epsilon; the target is evaluated once."""
  arm = privcfs_config(config, cell['feature_masks'])
  features = world.dataset.features
  kernel = world.model.params['hidden']['kernel']
  candidates = counterfactual.support(snapshot, features, kernel, target, arm)
  evaluator = functools.partial(
    counterfactual.evaluate_factored,
    projected=world.projected,
    chunk_size=_common.chunk_size(),
  )
  scored = counterfactual.score(
    world.model,
    world.dataset.graph,
    features,
    candidates,
    arm,
    evaluator=evaluator,
  )
  free = counterfactual.public_only_candidate(
    world.model,
    snapshot,
    features,
    candidates,
    feature_masks=arm.feature_masks,
    evaluator=evaluator,
  )
  flips = scored.evaluation.flips
  common = cell | {
    'target': target,
    'certified': False,
    'upper_reference': cell['rho'] == '1',
    'sensitivity': str(arm.sensitivity),
    'support_size': candidates.support_size,
    'num_pairs': int(candidates.universe.pair_valid.sum()),
    'disclosed_edges': snapshot.graph.num_edges,
    'num_edges': world.dataset.graph.graph.num_edges,
    'num_flips': int((flips & candidates.valid).sum()),
    'margin': float(world.margin[target]),
    'public_only': bool(flips[free]),
  }
  laws = np.stack(
    [
      mechanisms.probabilities(counterfactual.log_law(scored, epsilon))
      for epsilon in config.epsilons
    ]
  )
  draws = _draws(config, common, laws)
  return [
    common
    | {'epsilon': epsilon}
    | counterfactual.release_metrics(
      law,
      scored.utility,
      scored.evaluation,
      candidates,
      denominator=arm.denominator,
    )._asdict()
    | {
      'num_draws': config.num_draws,
      'valid_draws': int(flips.reshape(-1)[drawn].sum()),
    }
    for epsilon, law, drawn in zip(config.epsilons, laws, draws)
  ]


def _draws(config, row, laws) -> np.ndarray:
  """Draws from each law with a stream that is named by the cell alone."""
  identity = ('dataset', 'protocol', 'rho', 'feature_masks', 'target')
  names = [
    ('release', *(row[field] for field in identity), epsilon)
    for epsilon in config.epsilons
  ]
  return mechanisms.simulate(
    prng.key(row['seed']),
    names,
    laws.reshape(len(laws), -1),
    num_draws=config.num_draws,
  )


EXPERIMENT = experiment_lib.Experiment(
  name='cfs_frontier',
  config_class=Config,
  unit_names=unit_names,
  run_unit=run_unit,
  inputs=worlds.inputs,
  report=cfs_report.report,
)


def _config() -> Config:
  canonical = experiment_lib.canonical_numbers
  chosen: dict[str, Any] = dict(
    datasets=tuple(_common.DATASETS.value),
    seeds=_common.int_list(_common.SEEDS.value, 'seeds'),
    rhos=canonical('rhos', _RHOS.value),
    epsilons=canonical('epsilons', _EPSILONS.value),
    protocols=tuple(_PROTOCOLS.value),
    feature_masks=tuple(_FEATURE_MASKS.value),
    sensitivity=_SENSITIVITY.value,
    num_draws=_NUM_DRAWS.value,
    max_edges=_K_MAX_EDGES.value,
    max_features=_K_MAX_FEATURES.value,
  )
  if _common.SMOKE.value:
    chosen |= dict(seeds=(0,), rhos=('0.5',), max_targets=2)
  return Config(**chosen)


def main() -> int:
  """Runs the experiment as the flags say."""
  return _common.execute(EXPERIMENT, _config)


if __name__ == '__main__':
  _common.start(main)
