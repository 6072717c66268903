"""Fits and counts behind `dp_accuracy`: one dataset, model and seed at a time.

Everything here reads private rows; nothing is for release.
"""

from collections.abc import Iterator, Sequence
from fractions import Fraction
import functools
import hashlib
from typing import Any, NamedTuple

import numpy as np

from experiments import _common
from experiments import experiment as experiment_lib
from privjax import data
from privjax import erm
from privjax import prng
from privjax.data import encoding
from privjax.erm import losses

MODELS = {'svm': losses.huber_hinge(0.5), 'lr': losses.LOGISTIC}
NUM_FOLDS = 10
# The Lambda that stands for all at which Delta > 0; none may be smaller.
LEAST = '0.000000001'

_TOLERANCE = 1e-11  # So far below a score that no prediction depends on it.


class Problem(NamedTuple):
  """One dataset, model and seed. Private.

  Attributes:
    dataset: its name.
    model: one of `MODELS`.
    seed: of a balanced set, the folds and the noise.
    rows: unit rows times their labels.
    labels: `[n]` in {-1, +1}.
    train: `[K, n]` bool, the rows that a fold trains on.
  """

  dataset: str
  model: str
  seed: int
  rows: erm.UnitRows
  labels: np.ndarray
  train: np.ndarray


class Mechanism(NamedTuple):
  """Public numbers of one cell.

  Attributes:
    noise_epsilon: eps' of fold 0.
    total_regularization: Lambda + Delta of fold 0.
    num_extra: the folds in which Delta > 0.
  """

  noise_epsilon: float
  total_regularization: float
  num_extra: int


def load_problem(
  dataset: str, model: str, seed: int, data_dir: str | None
) -> Problem:
  """Returns the unit rows and training folds of one unit."""
  features, labels = load_rows(dataset, seed, data_dir)
  folds = data.stratified_folds(labels, NUM_FOLDS, seed)
  settings = erm.ErmConfig(
    loss=MODELS[model],
    regularization=1.0,  # Of no effect: a sweep has its own.
    row_norm=1.0,
    classes=(-1, 1),
  )
  return Problem(
    dataset=dataset,
    model=model,
    seed=seed,
    rows=erm.unit_rows(features, labels, settings),
    labels=labels,
    train=np.arange(NUM_FOLDS)[:, None] != folds,
  )


@functools.lru_cache(maxsize=8)
def load_rows(
  dataset: str, seed: int, data_dir: str | None
) -> tuple[np.ndarray, np.ndarray]:
  """Returns encoded features `[n, d]` and labels `[n]` in {-1, +1}; cached."""
  table = data.load_table(dataset, data_dir, seed)
  return encoding.encode(table.schema, table.columns), table.labels


def inputs(config: Any, data_dir: str | None) -> dict[str, str]:
  """Returns the sha256 of every dataset's encoded tables, over the seeds."""
  found = {}
  for name in config.datasets:
    digest = hashlib.sha256()
    for seed in experiment_lib.seeds(config):
      for array in load_rows(name, seed, data_dir):
        digest.update(np.ascontiguousarray(array).tobytes())
    found[name] = digest.hexdigest()
  return found


def mechanism(
  problem: Problem, rule: Any, regularization: str, epsilon: str
) -> Mechanism:
  """Returns what a cell's folds are calibrated to."""
  folds = [
    erm.calibrate(
      epsilon,
      loss=MODELS[problem.model],
      num_rows=int(train.sum()),
      regularization=number(regularization),
      calibration=rule,
    )
    for train in problem.train
  ]
  return Mechanism(
    noise_epsilon=folds[0].noise_epsilon,
    total_regularization=folds[0].regularization,
    num_extra=sum(fold.extra_regularization > 0 for fold in folds),
  )


def private_counts(
  problem: Problem,
  rule: Any,
  noise: Any,
  cells: dict[tuple[str, str], Mechanism],
  num_draws: int,
) -> Iterator[tuple[tuple[str, str], experiment_lib.Row]]:
  """Yields each (Lambda, epsilon) with the counts of its draws."""
  fitted_at = {
    cell: LEAST if numbers.num_extra == NUM_FOLDS else cell[0]
    for cell, numbers in cells.items()
  }
  fitted = {}
  for regularization in dict.fromkeys(fitted_at.values()):
    epsilons = [e for (_, e), at in fitted_at.items() if at == regularization]
    epsilons = list(dict.fromkeys(epsilons))
    fits = _sweep(
      problem,
      epsilons,
      (regularization,),
      num_draws=num_draws,
      calibration=rule,
      names=(problem.dataset, problem.model, rule),
      noise=noise,
    )
    for j, epsilon in enumerate(epsilons):
      fitted[regularization, epsilon] = _counts(
        problem, fits.weights[0, j], fits.residual[0, j]
      )
  for cell, at in fitted_at.items():
    yield cell, fitted[at, cell[1]]


def non_private_counts(
  problem: Problem, regularizations: Sequence[str]
) -> Iterator[tuple[str, experiment_lib.Row]]:
  """Yields each Lambda with the counts of its one run."""
  fits = _sweep(problem, (None,), regularizations, num_draws=1)
  for i, regularization in enumerate(regularizations):
    yield (
      regularization,
      _counts(problem, fits.weights[i, 0], fits.residual[i, 0]),
    )


def _sweep(
  problem: Problem, epsilons, regularizations, *, num_draws: int, **settings
) -> erm.SweepFits:
  return erm.sweep(
    problem.rows,
    problem.train,
    loss=MODELS[problem.model],
    epsilons=epsilons,
    regularizations=[number(text) for text in regularizations],
    num_draws=num_draws,
    key=prng.key(problem.seed),
    tolerance=_TOLERANCE,
    # Whole draws of a cell, so that private sweeps compile once.
    batch_size=min(num_draws * len(regularizations), _common.batch_size()),
    **settings,
  )


def _counts(
  problem: Problem, weights: np.ndarray, residual: np.ndarray
) -> experiment_lib.Row:
  """Counts the held-out rows that are predicted right: integers, per draw."""
  correct = num_correct(problem, weights)
  return {
    'num_draws': len(correct),
    'num_correct': int(correct.sum()),
    'sum_squares': int(np.square(correct).sum()),
    'least_correct': int(correct.min()),
    'most_correct': int(correct.max()),
    'residual': float(residual.max()),
  }


def num_correct(problem: Problem, weights: np.ndarray) -> np.ndarray:
  """Counts the rows that the fit of their own test fold predicts right.

  Args:
    problem: rows and folds.
    weights: `[K, S, d]` for unit rows.

  Returns:
    `[S]` int64, out of n. A score of exactly 0 predicts the label -1.
  """
  correct = np.zeros(weights.shape[1], np.int64)
  for train, fold_weights in zip(problem.train, weights):
    margin = problem.rows.signed[~train] @ fold_weights.T
    tie_is_right = (problem.labels[~train] == -1)[:, None]
    correct += ((margin > 0) | ((margin == 0) & tie_is_right)).sum(axis=0)
  return correct


def number(text: str) -> float:
  """Returns the value of a canonical number, which may be a fraction."""
  return float(Fraction(text))
