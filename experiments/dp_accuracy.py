"""Accuracy of private linear classifiers: Tables 1 and 2 and Fig. 2.

  python -m experiments.dp_accuracy
  python -m experiments.dp_accuracy --datasets=compas,mammographic

Objective perturbation at every Lambda and epsilon of "Robust Transparency
Against Model Inversion Attacks" (Sec. 6.1-6.3): Huber SVM (Table 1) and
logistic regression (Table 2), ten stratified folds, under the paper's
calibration and the tight one. Prints tables of mean +- sd over draws, the
published numbers beside the measured ones, and two structures of the tables.

Noise is `fresh` for every fold, or one draw `shared` by all folds, which is
what the published numbers at small epsilon look like. The classifier has no
intercept; rows are divided by the root of the number of features.

Where Delta > 0 in every fold, eps' and Lambda + Delta do not depend on Lambda:
those cells are one mechanism. It is fitted once, so their rows are equal draw
by draw. The non-private limit ('none') has one run per seed.

Epsilon is per fit, under REPLACE_ONE_ROW. Training folds overlap, so the ten
fits of a cross-validation released together cost 10 epsilon by basic
composition (with shared noise there is NO guarantee for them together). The
accuracies, and a Lambda that is chosen by them, are computed on private rows:
NOT COVERED by any epsilon.
"""

import dataclasses
import fractions
from typing import Any

from absl import flags
import numpy as np

from experiments import _common
from experiments import dp_accuracy_fits
from experiments import dp_accuracy_report
from experiments import experiment as experiment_lib
from privjax import data
from privjax.erm import calibration as calibration_lib
from privjax.erm import sweeps

NONE = 'none'

_MODELS = flags.DEFINE_list(
  'models', list(dp_accuracy_fits.MODELS), 'Classifiers.'
)
_REGULARIZATIONS = flags.DEFINE_list(
  'regularizations', ['1e-2', '1e-3', '1e-5', '1e-7'], 'Lambdas.'
)
_EPSILONS = flags.DEFINE_list(
  'fit_epsilons',
  ['0.1', '0.25', '0.5', '1', '2', '5', NONE],
  'Exact epsilons of one fit; "none" is the non-private limit.',
)
_CALIBRATIONS = flags.DEFINE_list(
  'calibrations', ['paper', 'tight'], 'Calibration rules.'
)
_NOISES = flags.DEFINE_list(
  'noises', list(sweeps.NOISES), 'Noise of the folds.'
)
_NUM_DRAWS = flags.DEFINE_integer('fit_draws', 20, 'Draws a cell and seed.')


@dataclasses.dataclass(frozen=True, kw_only=True)
class Config:
  """Everything that the rows depend on; numbers in canonical spelling.

  A seed names the folds, the root of the noise and, where the paper balances a
  data set by a random draw, that draw.
  """

  datasets: tuple[str, ...] = ('breast_cancer',)
  seeds: tuple[int, ...] = (0, 1, 2, 3, 4)
  models: tuple[str, ...] = tuple(dp_accuracy_fits.MODELS)
  regularizations: tuple[str, ...] = ('0.01', '0.001', '0.00001', '0.0000001')
  epsilons: tuple[str, ...] = ('0.1', '0.25', '0.5', '1', '2', '5', NONE)
  calibrations: tuple[str, ...] = ('paper', 'tight')
  noises: tuple[str, ...] = sweeps.NOISES
  num_draws: int = 20

  def __post_init__(self):
    choices = experiment_lib.check_choices
    choices('datasets', self.datasets, data.TABLES)
    choices('models', self.models, tuple(dp_accuracy_fits.MODELS))
    choices('calibrations', self.calibrations, calibration_lib.RULES)
    choices('noises', self.noises, sweeps.NOISES)
    experiment_lib.check_seeds(self.seeds)
    experiment_lib.check_numbers('regularizations', self.regularizations, 1)
    least = dp_accuracy_fits.LEAST
    for text in self.regularizations:
      if fractions.Fraction(text) < fractions.Fraction(least):
        raise ValueError(f'regularizations must be >= {least}, got {text}')
    if self.epsilons != (NONE,):
      experiment_lib.check_numbers('epsilons', self.private, 10**4)
    if self.epsilons.count(NONE) > 1:
      raise ValueError(f'epsilons must be distinct, got {self.epsilons}')
    if self.num_draws < 1:
      raise ValueError(f'num_draws must be >= 1, got {self.num_draws}')

  @property
  def private(self) -> tuple[str, ...]:
    """The epsilons but for 'none'."""
    return tuple(e for e in self.epsilons if e != NONE)


def unit_names(config: Config) -> list[str]:
  """One unit per dataset, model and seed."""
  return [
    f'{dataset} {model} {seed}'
    for dataset in config.datasets
    for model in config.models
    for seed in config.seeds
  ]


def run_unit(
  config: Config, name: str, data_dir: str | None
) -> list[experiment_lib.Row]:
  """Returns one row per calibration, noise, Lambda and epsilon."""
  dataset, model, seed = name.split(' ')
  problem = dp_accuracy_fits.load_problem(dataset, model, int(seed), data_dir)
  common = {
    'dataset': dataset,
    'model': model,
    'seed': int(seed),
    'certified': False,
    'num_rows': problem.rows.num_rows,
    'majority_rows': int(
      np.unique(problem.labels, return_counts=True)[1].max()
    ),
    'num_folds': dp_accuracy_fits.NUM_FOLDS,
  }
  rows = [common | row for row in _non_private_rows(config, problem)]
  for rule in config.calibrations if config.private else ():
    for noise in config.noises:
      rows += [common | row for row in _rows(config, problem, rule, noise)]
  return rows


def _non_private_rows(config: Config, problem: dp_accuracy_fits.Problem):
  """Yields the rows of epsilon 'none': one run each."""
  if NONE not in config.epsilons:
    return
  for regularization, counts in dp_accuracy_fits.non_private_counts(
    problem, config.regularizations
  ):
    yield {
      'calibration': NONE,
      'noise': NONE,
      'regularization': regularization,
      'epsilon': NONE,
      'noise_epsilon': 0.0,
      'total_regularization': dp_accuracy_fits.number(regularization),
      'num_extra': 0,
    } | counts


def _rows(config: Config, problem: dp_accuracy_fits.Problem, rule, noise):
  """Yields the rows of one calibration and noise."""
  cells = {
    (regularization, epsilon): dp_accuracy_fits.mechanism(
      problem, rule, regularization, epsilon
    )
    for regularization in config.regularizations
    for epsilon in config.private
  }
  for cell, counts in dp_accuracy_fits.private_counts(
    problem, rule, noise, cells, config.num_draws
  ):
    yield {
      'calibration': rule,
      'noise': noise,
      'regularization': cell[0],
      'epsilon': cell[1],
      **cells[cell]._asdict(),
    } | counts


EXPERIMENT = experiment_lib.Experiment(
  name='dp_accuracy',
  config_class=Config,
  unit_names=unit_names,
  run_unit=run_unit,
  inputs=dp_accuracy_fits.inputs,
  report=dp_accuracy_report.report,
)


def _config() -> Config:
  canonical = experiment_lib.canonical_numbers
  private = [text for text in _EPSILONS.value if text != NONE]
  spelled = iter(canonical('fit_epsilons', private))
  chosen: dict[str, Any] = dict(
    models=tuple(_MODELS.value),
    regularizations=canonical('regularizations', _REGULARIZATIONS.value),
    epsilons=tuple(
      text if text == NONE else next(spelled) for text in _EPSILONS.value
    ),
    calibrations=tuple(_CALIBRATIONS.value),
    noises=tuple(_NOISES.value),
    num_draws=_NUM_DRAWS.value,
  )
  # The defaults of the shared flags are those of other experiments.
  if _common.DATASETS.present:
    chosen |= dict(datasets=tuple(_common.DATASETS.value))
  if _common.SEEDS.present:
    chosen |= dict(seeds=_common.int_list(_common.SEEDS.value, 'seeds'))
  if _common.SMOKE.value:
    chosen |= dict(seeds=(0,), num_draws=2)
  return Config(**chosen)


def main() -> int:
  """Runs the experiment as the flags say."""
  return _common.execute(EXPERIMENT, _config)


if __name__ == '__main__':
  _common.start(main)
