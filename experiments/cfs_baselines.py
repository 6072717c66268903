"""Private explainers side by side: Table 3, and Table 7 (equal operations).

  python -m experiments.cfs_baselines
  python -m experiments.cfs_baselines --datasets=cora,citeseer

Every method explains the same targets, at one epsilon, in three placements: on
the explanation (noise on what is released), on the graph (noise on the edges,
then a plain explainer), on the model (a backbone trained on noisy edges). An
explanation counts if it flips the prediction of the *private* graph.

* certified, guarantee: what the library states about the complete release, from
  each method's guarantee object, for public targets, an external snapshot and a
  public backbone; not_covered says which of these a row only simulates. No row
  is itself a release;
* csr: share of targets whose prediction flips (over draws, or exact for PrivCFS
  and the public-only row);
* size: mean number of named elements, over the explanations that name any, in
  the method's own currency (PrivCFS: exact, with its rare empty releases);
* pollution: the noisy prediction is another one before anything is explained;
  spurious: the intervention flips the noisy graph and not the private one.

Arms: with 'effective' masks a method may also mask features of the target;
masks that leave the logits alone ('inert') are never worth their size, so that
arm of an explainer has edges only. Everything is simulated and drawn by seed,
for research: a noisy graph serves all rows of its placement, and a target's
noise is one in all operation spaces and arms, whose differences are paired.
"""

import dataclasses
from typing import Any

from absl import flags

from experiments import _common
from experiments import cfs_baselines_report
from experiments import cfs_methods
from experiments import cfs_placements
from experiments import experiment as experiment_lib
from experiments import worlds
from privjax import counterfactual
from privjax import data

_PROTOCOLS = ('borderline', 'random')
_PRIVATE_TARGETS = 'the targets were chosen by private margins'
_EPSILON = flags.DEFINE_string(
  'baseline_epsilon', '8', 'Exact epsilon of one release.'
)
_DELTA = flags.DEFINE_string('delta', '1e-5', 'Exact delta.')


@dataclasses.dataclass(frozen=True, kw_only=True)
class Config:
  """Everything that the rows depend on; numbers in canonical spelling."""

  datasets: tuple[str, ...] = ('embedded',)
  seeds: tuple[int, ...] = (0, 1, 2)
  protocols: tuple[str, ...] = _PROTOCOLS
  feature_masks: tuple[str, ...] = counterfactual.FEATURE_MASKS
  rhos: tuple[str, ...] = ('0.5', '0.7')
  placements: tuple[str, ...] = cfs_methods.PLACEMENTS
  epsilon: str = '8'
  delta: str = '0.00001'
  num_draws: int = 10
  num_steps: int = 200
  max_targets: int | None = None

  def __post_init__(self):
    choices = experiment_lib.check_choices
    choices('datasets', self.datasets, data.DATASETS)
    choices('protocols', self.protocols, counterfactual.PROTOCOLS)
    choices('feature_masks', self.feature_masks, counterfactual.FEATURE_MASKS)
    choices('placements', self.placements, cfs_methods.PLACEMENTS)
    experiment_lib.check_numbers('rhos', self.rhos, 1)
    experiment_lib.check_numbers('baseline_epsilon', (self.epsilon,), 1000)
    experiment_lib.check_numbers('delta', (self.delta,), 1)
    if float(self.delta) < 1e-300:
      raise ValueError(f'delta must be >= 1e-300, got {self.delta}')
    experiment_lib.check_seeds(self.seeds)
    for name in ('num_draws', 'num_steps'):
      if getattr(self, name) < 1:
        raise ValueError(f'{name} must be >= 1, got {getattr(self, name)}')
    if self.max_targets is not None and self.max_targets < 1:
      raise ValueError(f'max_targets must be >= 1, got {self.max_targets}')


def unit_names(config: Config) -> list[str]:
  """One unit per dataset, protocol and seed."""
  return [
    f'{dataset} {protocol} {seed}'
    for dataset in config.datasets
    for protocol in config.protocols
    for seed in config.seeds
  ]


def run_unit(
  config: Config, name: str, data_dir: str | None
) -> list[experiment_lib.Row]:
  """Returns one row per method, operation space and arm."""
  dataset, protocol, seed = name.split(' ')
  world = worlds.load(dataset, int(seed), data_dir)
  targets = worlds.targets(world, protocol, int(seed))[: config.max_targets]
  cell = cfs_methods.Cell(
    world=world,
    targets=targets,
    seed=int(seed),
    epsilon=config.epsilon,
    delta=config.delta,
    num_draws=config.num_draws,
    num_steps=config.num_steps,
    placements=config.placements,
  )
  snapshots = {
    rho: worlds.load_snapshot(dataset, int(seed), rho, data_dir)
    for rho in config.rhos
  }
  rows = []
  placements = cfs_placements.draw(cell)
  for arm in config.feature_masks:
    found = cfs_methods.explanation_level(cell, arm)
    found += cfs_placements.graph_level(cell, arm, snapshots, placements)
    found += cfs_methods.public_support(cell, arm, snapshots)
    if protocol != 'random':
      found = [cfs_methods.leaves_out(row, _PRIVATE_TARGETS) for row in found]
    rows += [{'feature_masks': arm} | row for row in found]
  common = {
    'dataset': dataset,
    'protocol': protocol,
    'seed': int(seed),
    'epsilon': config.epsilon,
    'drawn_by_seed': True,
    'num_targets': len(targets),
  }
  return [common | row for row in rows]


EXPERIMENT = experiment_lib.Experiment(
  name='cfs_baselines',
  config_class=Config,
  unit_names=unit_names,
  run_unit=run_unit,
  inputs=worlds.inputs,
  report=cfs_baselines_report.report,
)


def _config() -> Config:
  canonical = experiment_lib.canonical_numbers
  chosen: dict[str, Any] = dict(
    datasets=tuple(_common.DATASETS.value),
    seeds=_common.int_list(_common.SEEDS.value, 'seeds'),
    epsilon=canonical('baseline_epsilon', [_EPSILON.value])[0],
    delta=canonical('delta', [_DELTA.value])[0],
  )
  if _common.SMOKE.value:
    chosen |= dict(
      seeds=(0,),
      protocols=('borderline',),
      feature_masks=('effective',),
      rhos=('0.5',),
      placements=('EdgeRand',),
      num_draws=2,
      num_steps=20,
      max_targets=1,
    )
  return Config(**chosen)


def main() -> int:
  """Runs the experiment as the flags say."""
  return _common.execute(EXPERIMENT, _config)


if __name__ == '__main__':
  _common.start(main)
