"""The pipeline of Fig. 1: classifier, labels, rules, pruning and attacks.

One unit is a dataset, model, epsilon and seed, in ten folds. `rules_privacy`,
`rules_baseline` and `rules_summary` are three views of these units.

Per fold: the classifier f is fitted on the training rows by objective
perturbation (the paper's calibration, fresh noise in every fold), IT and a
Bayesian rule list on the same rows with f's labels, and alpha-violation is
scored on them, once. Everything is counted on held-out rows, for each alpha and
privacy rate, beside a control that drops the same number of rules at random.
IT's integer program stops at a number of nodes (`rules_folds.NODE_LIMITS`),
never at a time.

Attackers, given f(x): the paper's (eqs. 5-7) on the rules and, in the row of
explainer 'none', on f itself; and Bayes attackers that know the training rows
as their population: P(S | P), their own surrogate (a classifier without privacy
on the true classes), surrogate and released rules, and the classifier itself.

Only f is a mechanism. Rules, scores and pruning read private rows: NOT COVERED,
as the `stage_` fields of every row say.

A seed names the folds, the noise, the forest, the chains, the control and the
draw of a balanced set. Everything here reads private rows; nothing is for
release.
"""

import dataclasses
import fractions
import hashlib
from typing import Any

import numpy as np

from experiments import _common
from experiments import experiment as experiment_lib
from experiments import rules_folds
from privjax.rules import stages

NONE = rules_folds.NONE
MODELS = tuple(rules_folds.MODELS)
ALPHAS = ('0.1', '0.2', '0.3', '0.4', '0.5', '0.6', '0.7', '0.8', '0.9')
ALPHAS = (*ALPHAS, '1', '2')


@dataclasses.dataclass(frozen=True, kw_only=True)
class Config:
  """Everything that the rows depend on; numbers in canonical spelling."""

  datasets: tuple[str, ...] = ('breast_cancer',)
  models: tuple[str, ...] = MODELS
  epsilons: tuple[str, ...] = (NONE, '0.1', '0.25', '0.5', '1', '2', '5')
  seeds: tuple[int, ...] = (0, 1, 2)
  alphas: tuple[str, ...] = ALPHAS
  privacy_rates: tuple[str, ...] = ('0.5', '0')
  num_folds: int = rules_folds.NUM_FOLDS
  num_iterations: int = 10_000

  def __post_init__(self):
    experiment_lib.check_choices(
      'datasets', self.datasets, rules_folds.DATASETS
    )
    experiment_lib.check_choices('models', self.models, MODELS)
    experiment_lib.check_seeds(self.seeds)
    private = tuple(e for e in self.epsilons if e != NONE)
    if private or not self.epsilons:
      experiment_lib.check_numbers('epsilons', private, 10**4)
    if self.epsilons.count(NONE) > 1:
      raise ValueError(f'epsilons must be distinct, got {self.epsilons}')
    if self.alphas:
      experiment_lib.check_numbers('alphas', self.alphas, 100)
    _check_rates(self.privacy_rates)
    if not 1 <= self.num_folds <= rules_folds.NUM_FOLDS:
      raise ValueError(f'num_folds must be in [1, 10], got {self.num_folds}')
    if self.num_iterations < 2:
      raise ValueError(
        f'num_iterations must be >= 2, got {self.num_iterations}'
      )


def _check_rates(rates: tuple[str, ...]) -> None:
  """Checks privacy rates: canonical, distinct, at least one, in [0, 1]."""
  for rate in rates:
    if not 0 <= fractions.Fraction(rate) <= 1:
      raise ValueError(f'privacy_rates must be in [0, 1], got {rate}')
  positive = tuple(rate for rate in rates if rate != '0')
  if positive or not rates:
    experiment_lib.check_numbers('privacy_rates', positive, 1)
  if rates.count('0') > 1:
    raise ValueError(f'privacy_rates must be distinct, got {rates}')


def unit_names(config: Config) -> list[str]:
  """One unit per dataset, model, epsilon and seed."""
  return [
    f'{dataset} {model} {epsilon} {seed}'
    for dataset in config.datasets
    for model in config.models
    for epsilon in config.epsilons
    for seed in config.seeds
  ]


def run_unit(
  config: Config, name: str, data_dir: str | None
) -> list[experiment_lib.Row]:
  """Returns one row per release; its lists hold an integer per fold."""
  dataset, model, epsilon, seed = name.split(' ')
  exact = None if epsilon == NONE else epsilon
  common = {
    'dataset': dataset,
    'model': model,
    'epsilon': epsilon,
    'seed': int(seed),
    'certified': False,
  } | {f'stage_{k}': v for k, v in stages.pipeline(exact).items()}
  merged: dict[tuple, experiment_lib.Row] = {}
  settings = rules_folds.Settings(
    *(dataset, model, epsilon, int(seed)),
    alphas=config.alphas,
    privacy_rates=config.privacy_rates,
    num_iterations=config.num_iterations,
  )
  for fold in range(config.num_folds):
    for key, counts in rules_folds.run_fold(settings, fold, data_dir):
      names = ('explainer', 'arm', 'alpha', 'privacy_rate')
      row = merged.setdefault(key, common | dict(zip(names, key)))
      for field, count in counts.items():
        row.setdefault(field, []).append(int(count))
  return list(merged.values())


def inputs(config: Config, data_dir: str | None) -> dict[str, str]:
  """Returns the sha256 of every dataset as classifiers and rules see it."""
  found = {}
  for name in config.datasets:
    digest = hashlib.sha256()
    for seed in config.seeds:
      problem = rules_folds.load_problem(name, seed, data_dir)
      for array in (problem.rows, problem.binary, problem.labels):
        digest.update(np.ascontiguousarray(array).tobytes())
    found[name] = digest.hexdigest()
  return found


def config(**chosen: Any) -> Config:
  """Returns the config that the shared flags and an experiment's fields say.

  The embedded default is quick: one seed, two folds and short chains.
  """
  if _common.DATASETS.present:
    chosen |= dict(datasets=tuple(_common.DATASETS.value))
  else:
    chosen |= dict(seeds=(0,), num_folds=2, num_iterations=2000)
  if _common.SEEDS.present:
    chosen |= dict(seeds=_common.int_list(_common.SEEDS.value, 'seeds'))
  if _common.SMOKE.value:
    chosen |= dict(seeds=(0,), num_folds=2, num_iterations=500)
  return Config(**chosen)
