"""PrivCFS four-stage loss, and the edge-only, feature-only and joint arms.

  python -m experiments.cfs_decomposition
  python -m experiments.cfs_decomposition --datasets=cora,citeseer

Where validity is lost between an unrestricted explainer and a private release
(App. D), each stage on the same targets:

  unrestricted   some deletion or mask in the two-hop receptive field flips
  support        some candidate of the support flips, every edge disclosed
  public prior   some candidate flips, a fraction rho disclosed (the ceiling)
  release        P(one release flips), exact

No search of the whole receptive field is exhaustive: the first stage counts
what mask optimization, greedy deletion or the support itself found, a lower
bound, and so is the price of the support.

The same chain with pairs only, features only and both shows which kind of
operation carries the release. Each support is enumerated, so a feature-only
ceiling is a proof for its target: either a counterfactual is exhibited, and
checked by the exact model on the edited graph, or none exists. Masks that leave
the logits alone ('inert') need no search beyond edges.

Everything here reads the private graph, and no row is certified.
"""

import dataclasses
import functools
from typing import Any, NamedTuple

from absl import flags
import numpy as np

from experiments import _common
from experiments import cfs_decomposition_report
from experiments import experiment as experiment_lib
from experiments import worlds
from privjax import counterfactual
from privjax import data
from privjax import explainers
from privjax import mechanisms

# operations -> what `PrivCFSConfig` bounds.
OPERATIONS = {
  'joint': {},
  'edges': dict(max_features=0),
  'features': dict(max_edges=0),
}
_PROTOCOLS = ('borderline', 'stratified')
_RHOS = flags.DEFINE_list('chain_rhos', ['0.5', '0.7'], 'Disclosed.')
_EPSILON = flags.DEFINE_string('chain_epsilon', '8', 'Exact epsilon.')


@dataclasses.dataclass(frozen=True, kw_only=True)
class Config:
  """Everything that the rows depend on; numbers in canonical spelling."""

  datasets: tuple[str, ...] = ('embedded',)
  seeds: tuple[int, ...] = (0, 1, 2)
  protocols: tuple[str, ...] = _PROTOCOLS
  rhos: tuple[str, ...] = ('0.5', '0.7')
  epsilon: str = '8'
  feature_masks: tuple[str, ...] = counterfactual.FEATURE_MASKS
  num_steps: int = 200
  max_targets: int | None = None

  def __post_init__(self):
    choices = experiment_lib.check_choices
    choices('datasets', self.datasets, data.DATASETS)
    choices('protocols', self.protocols, counterfactual.PROTOCOLS)
    choices('feature_masks', self.feature_masks, counterfactual.FEATURE_MASKS)
    experiment_lib.check_numbers('chain_rhos', self.rhos, 1)
    experiment_lib.check_numbers('chain_epsilon', (self.epsilon,), 10**4)
    experiment_lib.check_seeds(self.seeds)
    if self.num_steps < 1:
      raise ValueError(f'num_steps must be >= 1, got {self.num_steps}')
    if self.max_targets is not None and self.max_targets < 1:
      raise ValueError(f'max_targets must be >= 1, got {self.max_targets}')


class Scored(NamedTuple):
  """One target's support under one arm, scored on the private graph.

  Attributes:
    row: columns of the support and its release.
    smallest: the smallest candidate that flips; empty if none does.
  """

  row: experiment_lib.Row
  smallest: explainers.Intervention


def unit_names(config: Config) -> list[str]:
  """One unit per dataset, seed and protocol."""
  return [
    f'{dataset} {seed} {protocol}'
    for dataset in config.datasets
    for seed in config.seeds
    for protocol in config.protocols
  ]


def run_unit(
  config: Config, name: str, data_dir: str | None
) -> list[experiment_lib.Row]:
  """Returns one row per target, arm, kind of operations and rho."""
  dataset, seed, protocol = name.split(' ')
  world = worlds.load(dataset, int(seed), data_dir)
  targets = worlds.targets(world, protocol, int(seed))[: config.max_targets]
  snapshot = functools.partial(
    worlds.load_snapshot, dataset, int(seed), data_dir=data_dir
  )
  search = functools.cache(
    functools.partial(_search, world, tuple(targets), config.num_steps)
  )
  scored = [
    one
    for arm in config.feature_masks
    for operations in OPERATIONS
    for one in _chains(
      config, world, snapshot, targets, arm, operations, search
    )
  ]
  witnesses = _witnesses_flip(world, [one.smallest for one in scored])
  cell = {
    'dataset': dataset,
    'protocol': protocol,
    'seed': int(seed),
    'epsilon': config.epsilon,
    'certified': False,
  }
  return [
    cell | one.row | {'witness_flips': bool(flips)}
    for one, flips in zip(scored, witnesses)
  ]


def _chains(config, world, snapshot, targets, arm, operations, search):
  """Returns one scored support per rho and target, with the stages before."""
  setting = counterfactual.PrivCFSConfig(
    feature_masks=arm, **OPERATIONS[operations]
  )
  score = functools.partial(_score, world, setting, config.epsilon)
  full = [score(snapshot('1'), int(target)) for target in targets]
  edges = operations != 'features'
  masked = operations != 'edges' and arm == 'effective'
  found = [
    'support' if by == 'nothing' and one.row['ceiling'] == 1 else by
    for by, one in zip(search(edges, masked), full)
  ]
  chains = []
  for rho in config.rhos:
    public = snapshot(rho)
    for target, all_disclosed, by in zip(targets, full, found):
      at_rho = score(public, int(target))
      stages = {
        'target': int(target),
        'feature_masks': arm,
        'operations': operations,
        'rho': rho,
        'found_by': by,
        'unrestricted': float(by != 'nothing'),
        'full_support_size': all_disclosed.row['support_size'],
        'full_ceiling': all_disclosed.row['ceiling'],
      }
      chains.append(at_rho._replace(row=stages | at_rho.row))
  return chains


def _score(world, setting, epsilon, snapshot, target) -> Scored:
  """Enumerates and scores one support, and its release at epsilon."""
  features = world.dataset.features
  kernel = world.model.params['hidden']['kernel']
  candidates = counterfactual.support(
    snapshot, features, kernel, target, setting
  )
  scored = counterfactual.score(
    world.model,
    world.dataset.graph,
    features,
    candidates,
    setting,
    evaluator=functools.partial(
      counterfactual.evaluate_factored,
      projected=world.projected,
      chunk_size=_common.chunk_size(),
    ),
  )
  flips = scored.evaluation.flips & candidates.valid
  law = mechanisms.probabilities(counterfactual.log_law(scored, epsilon))
  smallest = explainers.minimal_counterfactual(scored.evaluation, candidates)
  row = {
    'support_size': candidates.support_size,
    'num_flips': int(flips.sum()),
    'smallest_size': smallest.intervention.size,
    'ceiling': float(flips.any()),
    'valid_cf_rate': float(law[flips].sum()),
  }
  return Scored(row, smallest.intervention)


def _search(world, targets, num_steps, edges, masked) -> list[str]:
  """Names the search that found a flip in each target's receptive field.

  Args:
    world: dataset and backbone.
    targets: node ids.
    num_steps: of mask optimization.
    edges: whether edges may be deleted.
    masked: whether features of the target may be masked, with effect.

  Returns:
    'mask optimization', else 'greedy deletion', else 'nothing'; always
    'nothing' where no operation can have an effect.
  """
  if not edges and not masked:
    return ['nothing'] * len(targets)
  about = (world.model, world.dataset.graph.graph, world.dataset.features)
  spaces = [
    explainers.receptive_field_space(
      *about[1:],
      int(target),
      num_hops=world.model.num_hops,
      edges=edges,
      feature_masks=masked,
    )
    for target in targets
  ]
  config = explainers.MaskConfig(num_steps=num_steps)
  optimized = explainers.explain(*about, spaces, config=config)
  missed = [i for i, one in enumerate(optimized) if not one.valid]
  greedy = explainers.greedy(*about, [spaces[i] for i in missed])
  found = ['mask optimization' if one.valid else 'nothing' for one in optimized]
  for index, one in zip(missed, greedy):
    found[index] = 'greedy deletion' if one.valid else 'nothing'
  return found


def _witnesses_flip(
  world: worlds.World, cuts: list[explainers.Intervention]
) -> np.ndarray:
  """Asks the exact model on the edited graph: no enumeration is involved."""
  labels = explainers.predict(
    world.model, world.dataset.graph.graph, world.dataset.features, cuts
  )
  return labels.new != labels.original


EXPERIMENT = experiment_lib.Experiment(
  name='cfs_decomposition',
  config_class=Config,
  unit_names=unit_names,
  run_unit=run_unit,
  inputs=worlds.inputs,
  report=cfs_decomposition_report.report,
)


def _config() -> Config:
  canonical = experiment_lib.canonical_numbers
  chosen: dict[str, Any] = dict(
    datasets=tuple(_common.DATASETS.value),
    seeds=_common.int_list(_common.SEEDS.value, 'seeds'),
    rhos=canonical('chain_rhos', _RHOS.value),
    epsilon=canonical('chain_epsilon', [_EPSILON.value])[0],
  )
  if _common.SMOKE.value:
    chosen |= dict(seeds=(0,), protocols=('borderline',), rhos=('0.5',))
    chosen |= dict(num_steps=20, max_targets=2)
  return Config(**chosen)


def main() -> int:
  """Runs the experiment as the flags say."""
  return _common.execute(EXPERIMENT, _config)


if __name__ == '__main__':
  _common.start(main)
