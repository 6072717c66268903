"""PrivCFS ablations: one public setting of the release changed at a time.

  python -m experiments.cfs_ablations
  python -m experiments.cfs_ablations --datasets=cora,citeseer

Universe breadth and reach, k_max, soft utility, weights, sensitivity, the
mechanism (exponential or permute-and-flip) and the label that has to be reached
(any other, or the runner-up). Every figure is an exact expectation over the
release law; a target is evaluated once per support, and every utility,
sensitivity, mechanism and epsilon reuses that. Variants of a target are paired,
so differences are far sharper than the rates themselves.

Each variant is epsilon-DP by the proof of the default: its support reads public
objects only and its utility keeps its range. Snapshots are simulated from the
private graph, so no row is certified; rho = 1 is an upper reference only.
"""

import dataclasses
import fractions
import functools
from typing import Any, Literal, NamedTuple

from absl import flags
import numpy as np

from experiments import _common
from experiments import cfs_ablations_report
from experiments import experiment as experiment_lib
from experiments import worlds
from privjax import counterfactual
from privjax import data
from privjax import mechanisms

Fraction = fractions.Fraction


class Variant(NamedTuple):
  """One setting of the release, and the variant it is compared with.

  Attributes:
    support: what differs from the default `PrivCFSConfig`.
    utility: what differs from the default `UtilityConfig`.
    mechanism: the law over the support.
    label: which label counts as a flip in the utility.
    base: the variant that differs in one setting only.
  """

  support: dict[str, int] = {}
  utility: dict[str, Any] = {}
  mechanism: Literal['exponential', 'permute-and-flip'] = 'exponential'
  label: Literal['any', 'runner-up'] = 'any'
  base: str = 'default'


def _weights(flip: str, compact: str, plausible: str) -> Variant:
  names = ('w_flip', 'w_compact', 'w_plausible')
  values = map(Fraction, (flip, compact, plausible))
  return Variant(utility=dict(zip(names, values)))


def _k_max(max_edges: int, max_features: int) -> Variant:
  return Variant(support=dict(max_edges=max_edges, max_features=max_features))


VARIANTS = {
  'default': Variant(),
  'narrow universe': Variant(support=dict(num_features=4, max_features=2)),
  'two-hop pairs': Variant(support=dict(num_hops=2)),
  'k_max 1+1': _k_max(1, 1),
  'k_max 2+1': _k_max(2, 1),
  'k_max 1+3': _k_max(1, 3),
  'k_max 3+3': _k_max(3, 3),
  'soft utility': Variant(utility=dict(kind='soft')),
  'weights .9/.05/.05': _weights('0.9', '0.05', '0.05'),
  'weights .5/.4/.1': _weights('0.5', '0.4', '0.1'),
  'weights 1/0/0': _weights('1', '0', '0'),
  'tight sensitivity': Variant(utility=dict(sensitivity='tight')),
  'permute-and-flip': Variant(mechanism='permute-and-flip'),
  'pairs only': _k_max(2, 0),
  'pairs only permute-and-flip': _k_max(2, 0)._replace(
    mechanism='permute-and-flip', base='pairs only'
  ),
  'runner-up label': Variant(label='runner-up'),
}
# Two supports; --smoke compiles little else.
_SMOKE_VARIANTS = (
  'default',
  'narrow universe',
  'soft utility',
  'tight sensitivity',
  'permute-and-flip',
  'runner-up label',
)

_VARIANTS = flags.DEFINE_list(
  'variants',
  [],
  'Settings to compare; all if empty. A variant needs '
  'the one that it is compared with.',
)
_RHOS = flags.DEFINE_list('ablation_rhos', ['0.5', '0.7', '1'], 'Disclosed.')
_EPSILONS = flags.DEFINE_list('ablation_epsilons', ['1', '8'], 'Exact.')


@dataclasses.dataclass(frozen=True, kw_only=True)
class Config:
  """Everything that the rows depend on; numbers in canonical spelling."""

  datasets: tuple[str, ...] = ('embedded',)
  seeds: tuple[int, ...] = (0, 1, 2)
  protocols: tuple[str, ...] = ('borderline', 'random')
  rhos: tuple[str, ...] = ('0.5', '0.7', '1')
  epsilons: tuple[str, ...] = ('1', '8')
  feature_masks: tuple[str, ...] = counterfactual.FEATURE_MASKS
  variants: tuple[str, ...] = tuple(VARIANTS)
  max_targets: int | None = None

  def __post_init__(self):
    choices = experiment_lib.check_choices
    choices('datasets', self.datasets, data.DATASETS)
    choices('protocols', self.protocols, counterfactual.PROTOCOLS)
    choices('feature_masks', self.feature_masks, counterfactual.FEATURE_MASKS)
    choices('variants', self.variants, tuple(VARIANTS))
    experiment_lib.check_numbers('ablation_rhos', self.rhos, 1)
    experiment_lib.check_numbers('ablation_epsilons', self.epsilons, 10**4)
    experiment_lib.check_seeds(self.seeds)
    for name in self.variants:
      if VARIANTS[name].base not in self.variants:
        raise ValueError(
          f'variants must hold {VARIANTS[name].base!r}, which {name!r} is '
          f'compared with, got {self.variants}'
        )
    if self.max_targets is not None and self.max_targets < 1:
      raise ValueError(f'max_targets must be >= 1, got {self.max_targets}')


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
  """Returns the rows of all targets, variants and epsilons of one unit."""
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
    'certified': False,
    'upper_reference': rho == '1',
  }
  return [
    cell | {'target': int(target)} | row
    for target in targets
    for row in _target_rows(config, world, snapshot, int(target), arm)
  ]


def privcfs_config(variant: Variant, arm: Any) -> counterfactual.PrivCFSConfig:
  """Returns the library config of one variant."""
  return counterfactual.PrivCFSConfig(
    feature_masks=arm,
    utility=counterfactual.UtilityConfig(**variant.utility),
    **variant.support,
  )


def _target_rows(config, world, snapshot, target, arm):
  """Yields one row per variant and epsilon; each support is scored once."""
  by_support = {}
  for name in config.variants:
    variant = VARIANTS[name]
    key = tuple(sorted(variant.support.items()))
    if key not in by_support:
      setting = privcfs_config(variant, arm)
      by_support[key] = _score(world, snapshot, target, setting)
    scored = rescore(by_support[key], variant, arm)
    for epsilon in config.epsilons:
      metrics = _metrics(by_support[key].evaluation, scored, variant, epsilon)
      yield {'variant': name, 'base': variant.base, **metrics}


def _score(world, snapshot, target, setting) -> counterfactual.ScoredSupport:
  features = world.dataset.features
  kernel = world.model.params['hidden']['kernel']
  candidates = counterfactual.support(
    snapshot, features, kernel, target, setting
  )
  return counterfactual.score(
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


def to_runner_up(
  evaluation: counterfactual.CandidateEvaluation,
) -> np.ndarray:
  """Returns `[A, B]` bool: flips to the runner-up label. Private."""
  return evaluation.flips & (evaluation.label == evaluation.runner_up_label)


def rescore(
  scored: counterfactual.ScoredSupport, variant: Variant, arm: str
) -> counterfactual.ScoredSupport:
  """Returns an evaluated support with a variant's utility. Private.

  With the runner-up label the evaluation's flips are those to it.

  Formal guarantees: which label is the runner-up is recomputed on each graph,
  as the flip itself is, so the utility keeps its range and `log_law` its
  guarantee.
  """
  setting = privcfs_config(variant, arm)
  evaluation = scored.evaluation
  if variant.label == 'runner-up':
    evaluation = evaluation._replace(flips=to_runner_up(evaluation))
  return scored._replace(
    evaluation=evaluation,
    config=setting,
    utility=counterfactual.candidate_utility(
      evaluation, scored.candidates, setting.utility
    ),
  )


def law(
  scored: counterfactual.ScoredSupport, mechanism: str, epsilon: str
) -> np.ndarray:
  """Returns `[A, B]` float64, the exact law of the release. Private."""
  if mechanism == 'exponential':
    return mechanisms.probabilities(counterfactual.log_law(scored, epsilon))
  valid = scored.candidates.valid
  probs = np.zeros(valid.shape)
  log_probs = mechanisms.permute_and_flip.log_law(
    scored.utility[valid],
    epsilon=epsilon,
    sensitivity=scored.config.sensitivity,
    denominator=scored.config.denominator,
  )
  probs[valid] = mechanisms.probabilities(log_probs)
  return probs


def _metrics(evaluation, scored, variant, epsilon) -> experiment_lib.Row:
  """Returns the columns of one release; `evaluation` counts any flip."""
  candidates, setting = scored.candidates, scored.config
  reached = to_runner_up(evaluation) & candidates.valid
  metrics = counterfactual.release_metrics(
    law(scored, variant.mechanism, epsilon),
    scored.utility,
    evaluation,
    candidates,
    denominator=setting.denominator,
  )
  return {
    'epsilon': epsilon,
    'sensitivity': str(setting.sensitivity),
    'support_size': candidates.support_size,
    'num_flips': int((evaluation.flips & candidates.valid).sum()),
    'targeted_ceiling': float(reached.any()),
  } | metrics._asdict()


EXPERIMENT = experiment_lib.Experiment(
  name='cfs_ablations',
  config_class=Config,
  unit_names=unit_names,
  run_unit=run_unit,
  inputs=worlds.inputs,
  report=cfs_ablations_report.report,
)


def _config() -> Config:
  canonical = experiment_lib.canonical_numbers
  chosen: dict[str, Any] = dict(
    datasets=tuple(_common.DATASETS.value),
    seeds=_common.int_list(_common.SEEDS.value, 'seeds'),
    rhos=canonical('ablation_rhos', _RHOS.value),
    epsilons=canonical('ablation_epsilons', _EPSILONS.value),
    variants=tuple(_VARIANTS.value) or tuple(VARIANTS),
  )
  if _common.SMOKE.value:
    chosen |= dict(seeds=(0,), rhos=('0.5',), max_targets=2)
    chosen |= dict(protocols=('borderline',), variants=_SMOKE_VARIANTS)
  return Config(**chosen)


def main() -> int:
  """Runs the experiment as the flags say."""
  return _common.execute(EXPERIMENT, _config)


if __name__ == '__main__':
  _common.start(main)
