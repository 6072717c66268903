"""What a private choice of Lambda costs, beside the leaky one of the paper.

  python -m experiments.dp_tuning --datasets=compas,mammographic

Accuracy on held-out folds of private classifiers whose Lambda is

* private: chosen by the exponential mechanism on disjoint parts of the training
  rows, within the same epsilon ("Differentially private empirical risk
  minimization", Chaudhuri, Monteleoni & Sarwate, 2011, Algorithm 3);
* fixed: `FIXED`, named without looking;
* best on test: of one fit per Lambda, the one that does best on the test fold,
  which is how the paper's tables are read. NOT COVERED by any epsilon;
* best of equals: as before, but every fit has Lambda `FIXED`. What this gains
  over `fixed` is not a better Lambda but the luckiest noise on the test rows.

`guarantee` in each row is what the library states about the choice. Accuracies
are computed on private rows: they are for research, and NOT COVERED.
"""

import dataclasses
import functools
import pathlib
from typing import Any

from absl import flags
import numpy as np
import pandas as pd

from experiments import _common
from experiments import dp_accuracy_fits
from experiments import experiment as experiment_lib
from experiments import results
from privjax import data
from privjax import erm
from privjax import prng

FIXED = '0.01'
CHOICES = ('private', 'fixed', 'best on test', 'best of equals')

_EPSILONS = flags.DEFINE_list(
  'tuning_epsilons', ['0.5', '1', '5'], 'Exact epsilons of one choice and fit.'
)
_NUM_DRAWS = flags.DEFINE_integer('tuning_draws', 5, 'Draws a cell.')


@dataclasses.dataclass(frozen=True, kw_only=True)
class Config:
  """Everything that the rows depend on; numbers in canonical spelling."""

  datasets: tuple[str, ...] = ('breast_cancer',)
  seed: int = 0
  models: tuple[str, ...] = tuple(dp_accuracy_fits.MODELS)
  regularizations: tuple[str, ...] = ('0.01', '0.001', '0.00001', '0.0000001')
  epsilons: tuple[str, ...] = ('0.5', '1', '5')
  num_draws: int = 5
  num_folds: int = dp_accuracy_fits.NUM_FOLDS

  def __post_init__(self):
    experiment_lib.check_choices('datasets', self.datasets, data.TABLES)
    models = tuple(dp_accuracy_fits.MODELS)
    experiment_lib.check_choices('models', self.models, models)
    experiment_lib.check_seeds((self.seed,))
    experiment_lib.check_numbers('regularizations', self.regularizations, 1)
    experiment_lib.check_numbers('epsilons', self.epsilons, 10**4)
    if self.num_draws < 1:
      raise ValueError(f'num_draws must be >= 1, got {self.num_draws}')
    if not 1 <= self.num_folds <= dp_accuracy_fits.NUM_FOLDS:
      raise ValueError(f'num_folds must be in [1, 10], got {self.num_folds}')


def unit_names(config: Config) -> list[str]:
  """One unit per dataset and model."""
  return [
    f'{dataset} {model}'
    for dataset in config.datasets
    for model in config.models
  ]


def run_unit(
  config: Config, name: str, data_dir: str | None
) -> list[experiment_lib.Row]:
  """Returns one row per epsilon and choice."""
  dataset, model = name.split(' ')
  problem = dp_accuracy_fits.load_problem(dataset, model, config.seed, data_dir)
  features = problem.rows.signed * problem.labels[:, None]
  rows = []
  for epsilon in config.epsilons:
    for choice in CHOICES:
      correct, picked, stated = _runs(
        config, problem, features, epsilon, choice
      )
      rows.append(
        {
          'dataset': dataset,
          'model': model,
          'seed': config.seed,
          'epsilon': epsilon,
          'choice': choice,
          'guarantee': stated,
          'certified': False,
          'num_tested': int((~problem.train[: config.num_folds]).sum()),
          'num_draws': config.num_draws,
          'num_correct': int(correct.sum()),
          'sum_squares': int(np.square(correct).sum()),
          'picked': ' '.join(map(str, picked)),
        }
      )
  return rows


def _runs(config, problem, features, epsilon: str, choice: str):
  """Returns rows right per draw `[S]`, how often each Lambda, the guarantee."""
  correct = np.zeros(config.num_draws, np.int64)
  picked = dict.fromkeys(map(float, config.regularizations), 0)
  stated = ''
  for draw in range(config.num_draws):
    for fold, train in enumerate(problem.train[: config.num_folds]):
      tuned = _tuned(config, problem, features, epsilon, choice, draw, fold)
      missed = erm.tuning.count_errors(
        tuned.model, features[~train], problem.labels[~train]
      )
      correct[draw] += (~train).sum() - missed
      if tuned.regularization in picked:
        picked[tuned.regularization] += 1
      bound = tuned.model.guarantee.epsilon
      stated = 'NOT COVERED' if bound is None else f'dp({bound})'
  return correct, picked.values(), stated


def _tuned(
  config, problem, features, epsilon: str, choice: str, draw: int, fold: int
) -> erm.tuning.TunedModel:
  train = problem.train[fold]
  rows, labels = features[train], problem.labels[train]
  settings: dict[str, Any] = dict(
    config=erm.ErmConfig(
      loss=dp_accuracy_fits.MODELS[problem.model],
      regularization=float(FIXED),
      row_norm=1.0,
      classes=(-1, 1),
    ),
    epsilon=epsilon,
    key=prng.stream(
      prng.key(config.seed),
      *('dp_tuning', problem.dataset, problem.model),
      *(experiment_lib.Fraction(epsilon), choice, draw, fold),
    ),
  )
  grid = [float(text) for text in config.regularizations]
  on_test = functools.partial(
    erm.tuning.best_on_test,
    *(rows, labels, features[~train], problem.labels[~train]),
    **settings,
  )
  if choice == 'private':
    return erm.tuning.tune(
      rows, labels, regularizations=grid, split_seed=draw, **settings
    )
  if choice == 'best on test':
    return on_test(regularizations=grid)
  if choice == 'best of equals':
    # Distinct values, as a grid must be, and equal for any purpose.
    return on_test(
      regularizations=[float(FIXED) * (1 + i * 1e-9) for i in range(len(grid))]
    )
  model = erm.objective.fit(rows, labels, **settings)
  return erm.tuning.TunedModel(model=model, regularization=float(FIXED))


def report(
  config: Config, rows: list[experiment_lib.Row], folder: pathlib.Path
) -> None:
  """Prints the accuracy of each choice, mean +- sd over draws."""
  frame = pd.DataFrame(rows)
  tested, draws = frame['num_tested'], frame['num_draws']
  mean = frame['num_correct'] / draws
  spread = frame['sum_squares'] - draws * mean**2
  frame['accuracy'] = 100 * mean / tested
  variance = spread.clip(lower=0) / (draws - 1).clip(lower=1)
  frame['sd'] = 100 * np.sqrt(variance) / tested
  results.write_text(folder / 'summary.csv', frame.to_csv(index=False))
  grid = ', '.join(config.regularizations)
  print(f'Percent of held-out rows right; picked: how often each of {grid}')
  columns = ['dataset', 'model', 'epsilon', 'choice', 'guarantee']
  table = frame[[*columns, 'accuracy', 'sd', 'picked']]
  print(table.to_string(index=False, float_format=lambda x: f'{x:.2f}'))
  print(
    "'best on test' reads test labels: NOT COVERED, as are these accuracies. "
    "'best of equals'\ngains by luck alone; a better Lambda is what is left."
  )


EXPERIMENT = experiment_lib.Experiment(
  name='dp_tuning',
  config_class=Config,
  unit_names=unit_names,
  run_unit=run_unit,
  inputs=dp_accuracy_fits.inputs,
  report=report,
)


def _config() -> Config:
  canonical = experiment_lib.canonical_numbers
  chosen: dict[str, Any] = dict(
    epsilons=canonical('tuning_epsilons', _EPSILONS.value),
    num_draws=_NUM_DRAWS.value,
  )
  if _common.DATASETS.present:
    chosen |= dict(datasets=tuple(_common.DATASETS.value))
  if _common.SMOKE.value:
    chosen |= dict(num_draws=1, num_folds=2, models=('lr',), epsilons=('1',))
  seeds = _common.int_list(_common.SEEDS.value, 'seeds')
  return Config(seed=seeds[0], **chosen)


def main() -> int:
  """Runs the experiment as the flags say."""
  return _common.execute(EXPERIMENT, _config)


if __name__ == '__main__':
  _common.start(main)
