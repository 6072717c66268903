"""Milliseconds per private fit, beside SciPy and scikit-learn in one run.

  python -m experiments.bench_erm --datasets=compas

* sweep: `privjax.erm.sweep` over both losses, four Lambdas, seven epsilons, ten
  folds and twenty draws, from a cold cache (compiling included) and again;
* floor: the matrix products of the Hessians that the sweep's steps need, and
  nothing else, at the sweep's batch size;
* SciPy: L-BFGS with the analytic gradient, started at zero, until the gradient
  norm is at most 1e-8, on the rows and on the distinct rows with their counts
  (which the sweep uses); a sample of the same cells;
* scikit-learn: newton-cholesky without noise (it takes no linear term), at the
  Lambdas of the same cells.

Each peer solves its sample as often as there are rounds, between two warm
sweeps. Seconds are not replayed; the predictions made along the way are.
"""

from collections.abc import Callable
import dataclasses
import functools
import pathlib
import time
from typing import Any

import jax
import numpy as np
import pandas as pd
import scipy.optimize
from sklearn import linear_model

from experiments import _common
from experiments import dp_accuracy_fits
from experiments import experiment as experiment_lib
from experiments import results
from privjax import data
from privjax import erm
from privjax import prng
from privjax.erm import losses
from privjax.erm import sweeps

TOLERANCE = 1e-8
_CALIBRATION = 'paper'

# Rows that others are held against, by column.
_SWEEPS = {
  'times_warm': 'sweep, warm',
  'times_cold': 'sweep, compiling included',
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Config:
  """Everything that the decisions depend on."""

  datasets: tuple[str, ...] = ('breast_cancer',)
  seed: int = 0
  regularizations: tuple[str, ...] = ('0.01', '0.001', '0.00001', '0.0000001')
  epsilons: tuple[str, ...] = ('0.1', '0.25', '0.5', '1', '2', '5')
  num_draws: int = 20
  num_rounds: int = 3

  def __post_init__(self):
    experiment_lib.check_choices('datasets', self.datasets, data.TABLES)
    experiment_lib.check_seeds((self.seed,))
    experiment_lib.check_numbers('regularizations', self.regularizations, 1)
    experiment_lib.check_numbers('epsilons', self.epsilons, 10**4)


def unit_names(config: Config) -> list[str]:
  """One unit per dataset and loss."""
  return [
    f'{dataset} {model}'
    for dataset in config.datasets
    for model in dp_accuracy_fits.MODELS
  ]


def run_unit(
  config: Config, name: str, data_dir: str | None
) -> list[experiment_lib.Row]:
  """Measures one dataset and loss."""
  dataset, model = name.split(' ')
  problem = dp_accuracy_fits.load_problem(dataset, model, config.seed, data_dir)
  sweep = functools.partial(_sweep, config, problem)
  jax.clear_caches()
  cold, fits = _timed(sweep)
  peers = _peers(config, problem)
  seconds: dict[str, list[float]] = {}
  for _ in range(config.num_rounds):
    for peer, solve_sample in peers.items():
      seconds.setdefault(peer, []).append(_timed(solve_sample)[0])
    seconds.setdefault(_SWEEPS['times_warm'], []).append(_timed(sweep)[0])
    floor = _hessian_seconds(problem, fits)
    seconds.setdefault('floor: Hessian products', []).append(floor)
  num_fits = fits.num_steps.size
  weights = np.moveaxis(fits.weights, 2, 0)
  weights = weights.reshape(len(weights), -1, weights.shape[-1])
  common = {
    'dataset': dataset,
    'model': model,
    'num_rows': problem.rows.num_rows,
    'num_distinct': len(_distinct(problem)[0]),
    'num_correct': int(dp_accuracy_fits.num_correct(problem, weights).sum()),
    'mean_steps': float(fits.num_steps.mean()),
    'residual': float(fits.residual.max()),
  }
  first = {'name': _SWEEPS['times_cold'], 'seconds': cold}
  rows = [first] + [
    {'name': name, 'seconds': float(np.median(taken))}
    for name, taken in seconds.items()
  ]
  num_sampled = len(_sampled_cells(config))
  counts = {peer: num_sampled for peer in peers}
  return [
    common | row | {'num_fits': counts.get(row['name'], num_fits)}
    for row in rows
  ]


def _timed(function: Callable[[], Any]) -> tuple[float, Any]:
  start = time.perf_counter()
  result = function()
  return time.perf_counter() - start, result


def _sweep(config: Config, problem: dp_accuracy_fits.Problem) -> erm.SweepFits:
  return erm.sweep(
    problem.rows,
    problem.train,
    loss=dp_accuracy_fits.MODELS[problem.model],
    epsilons=(*config.epsilons, None),
    regularizations=[float(text) for text in config.regularizations],
    num_draws=config.num_draws,
    key=prng.key(config.seed),
    calibration=_CALIBRATION,
    tolerance=TOLERANCE,
    batch_size=_common.batch_size(),
  )


def _distinct(
  problem: dp_accuracy_fits.Problem,
) -> tuple[np.ndarray, np.ndarray]:
  """Returns the distinct signed rows of fold 0, and their counts."""
  return np.unique(
    problem.rows.signed[problem.train[0]], axis=0, return_counts=True
  )


def _hessian_seconds(problem, fits: erm.SweepFits) -> float:
  """Returns seconds of as many Hessian products as the sweep took steps."""
  num_distinct = len(np.unique(problem.rows.signed, axis=0))
  dimension = problem.rows.dimension
  batch = _common.batch_size()
  with jax.enable_x64(True):
    slopes = jax.numpy.ones((batch, num_distinct))
    products = jax.numpy.ones((num_distinct, dimension * (dimension + 1) // 2))
    product = jax.jit(lambda s, p: s @ p)
    call = lambda: product(slopes, products).block_until_ready()
    call()
    num_calls = -(-int(fits.num_steps.sum()) // batch)
    return _timed(lambda: [call() for _ in range(num_calls)])[0]


def _sampled_cells(config: Config) -> list[tuple[str, str]]:
  return [(r, e) for r in config.regularizations for e in config.epsilons]


def _peers(config: Config, problem) -> dict[str, Callable[[], Any]]:
  """Returns functions that solve the sampled cells of fold 0."""
  signed = problem.rows.signed[problem.train[0]]
  distinct, counts = _distinct(problem)
  loss = dp_accuracy_fits.MODELS[problem.model]
  problems = list(_perturbed(config, problem))
  peers: dict[str, Callable[[], Any]] = {
    'SciPy L-BFGS': lambda: [
      lbfgs(signed, np.ones(len(signed)), *numbers, loss=loss)
      for numbers in problems
    ],
    'SciPy L-BFGS, distinct rows': lambda: [
      lbfgs(distinct, counts, *numbers, loss=loss) for numbers in problems
    ],
  }
  if loss is losses.LOGISTIC:
    labels = problem.labels[problem.train[0]]
    rows = signed * labels[:, None]
    peers['scikit-learn newton-cholesky'] = lambda: [
      newton_cholesky(rows, labels, penalty) for _, penalty in problems
    ]
  return peers


def _perturbed(config: Config, problem):
  """Yields b / n and Lambda + Delta of the sampled cells, draw 0."""
  num_rows = int(problem.train[0].sum())
  for regularization, epsilon in _sampled_cells(config):
    numbers = erm.calibrate(
      epsilon,
      loss=dp_accuracy_fits.MODELS[problem.model],
      num_rows=num_rows,
      regularization=float(regularization),
      calibration=_CALIBRATION,
    )
    exact = experiment_lib.Fraction
    (noise,) = sweeps.cell_noise(
      prng.key(config.seed),
      [(exact(regularization), exact(epsilon), 0, 0)],
      dimension=problem.rows.dimension,
    )
    yield noise * numbers.noise_scale / num_rows, numbers.regularization


def lbfgs(signed, counts, linear, penalty, *, loss: losses.Loss) -> np.ndarray:
  """Minimizes the perturbed objective until its gradient norm is 1e-8.

  Args:
    signed: `[u, d]` rows times labels.
    counts: `[u]`, how often each occurs.
    linear: `[d]`, b / n.
    penalty: Lambda + Delta.
    loss: 'logistic' or 'huber_hinge', computed here in NumPy.

  Returns:
    `[d]` weights.

  Raises:
    RuntimeError: if the solver stops above the tolerance.
  """
  share = counts / counts.sum()
  value_and_slope = _VALUES[loss.name]

  def objective(weights):
    value, slope = value_and_slope(signed @ weights, loss.smoothing)
    smooth = share @ value + penalty / 2 * (weights @ weights)
    gradient = (share * slope) @ signed + penalty * weights + linear
    return smooth + linear @ weights, gradient

  weights = np.zeros(signed.shape[1])
  # The line search ends before the gradient norm is small if the objective no
  # longer changes in the last digit; from a new start it goes on.
  for _ in range(20):
    found = scipy.optimize.minimize(
      objective,
      weights,
      jac=True,
      method='L-BFGS-B',
      options={
        'gtol': TOLERANCE / np.sqrt(len(weights)),
        'ftol': 0.0,
        'maxiter': 10_000,
        'maxfun': 20_000,
      },
    )
    weights = found.x
    if np.linalg.norm(objective(weights)[1]) <= TOLERANCE:
      return weights
  raise RuntimeError('L-BFGS stopped above the tolerance')


def _logistic(margin, smoothing):
  del smoothing
  e = np.exp(-np.abs(margin))
  value = np.maximum(-margin, 0) + np.log1p(e)
  return value, -np.where(margin > 0, e, 1) / (1 + e)


def _huber_hinge(margin, smoothing):
  inside = np.clip((1 + smoothing - margin) / (2 * smoothing), 0, 1)
  parabola = smoothing * inside**2
  return np.where(inside < 1, parabola, 1 - margin), -inside


_VALUES = {'logistic': _logistic, 'huber_hinge': _huber_hinge}


def newton_cholesky(rows, labels, penalty: float) -> np.ndarray:
  """Fits a logistic regression without intercept by scikit-learn, `[d]`."""
  model = linear_model.LogisticRegression(
    C=1 / (len(rows) * penalty),
    fit_intercept=False,
    solver='newton-cholesky',
    tol=TOLERANCE,
    max_iter=1000,
  )
  return model.fit(rows, labels).coef_[0]


def report(
  config: Config, rows: list[experiment_lib.Row], folder: pathlib.Path
) -> None:
  """Prints milliseconds per fit, and how many times a peer's are."""
  del config
  frame = pd.DataFrame(rows)
  frame['milliseconds_per_fit'] = frame['seconds'] / frame['num_fits'] * 1e3
  for column, name in _SWEEPS.items():
    ours = frame[frame['name'] == name]
    own = ours.set_index(['dataset', 'model'])['milliseconds_per_fit']
    keys = zip(frame['dataset'], frame['model'], frame['milliseconds_per_fit'])
    frame[column] = [
      each / own[dataset, model] for dataset, model, each in keys
    ]
  columns = [
    'dataset',
    'model',
    'name',
    'num_fits',
    'seconds',
    'milliseconds_per_fit',
    *_SWEEPS,
  ]
  table = frame[columns]
  results.write_text(folder / 'summary.csv', table.to_csv(index=False))
  print('times_warm, times_cold: per fit, against the sweep')
  print(table.to_string(index=False, float_format=lambda x: f'{x:,.3f}'))
  ours = frame[frame['name'] == _SWEEPS['times_cold']]
  for dataset, group in ours.groupby('dataset', sort=False):
    print(
      f'{dataset}: {group["num_fits"].sum():,} fits in '
      f'{group["seconds"].sum():.1f} s, compiling included'
    )


EXPERIMENT = experiment_lib.Experiment(
  name='bench_erm',
  config_class=Config,
  unit_names=unit_names,
  run_unit=run_unit,
  inputs=dp_accuracy_fits.inputs,
  report=report,
  measured=frozenset({'seconds'}),
)


def _config() -> Config:
  chosen: dict[str, Any] = {}
  if _common.DATASETS.present:
    chosen |= dict(datasets=tuple(_common.DATASETS.value))
  if _common.SMOKE.value:
    chosen |= dict(
      num_draws=2, num_rounds=1, epsilons=('1',), regularizations=('0.01',)
    )
  seeds = _common.int_list(_common.SEEDS.value, 'seeds')
  return Config(seed=seeds[0], **chosen)


def main() -> int:
  """Runs the benchmark as the flags say."""
  return _common.execute(EXPERIMENT, _config)


if __name__ == '__main__':
  _common.start(main)
