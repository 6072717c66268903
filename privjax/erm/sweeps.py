"""Objective perturbation over a grid, for experiments: never a release.

One compiled solve serves every epsilon, regularization, fold and draw of a
loss. Noise is seeded and named by its cell, so a cell's draw does not depend on
the grid around it. Equal signed rows are merged into one weighted row, which
changes no objective and costs nothing where features are categorical.

>>> from privjax.erm import config as config_lib
>>> config = config_lib.ErmConfig(
...   loss=losses.LOGISTIC, regularization=1.0, row_norm=1.0, classes=(0, 1)
... )
>>> rows = config_lib.unit_rows(np.array([[1.0], [-1.0]]), [1, 0], config)
>>> fits = sweep(
...   rows, np.ones((1, 2), bool), loss=losses.LOGISTIC, epsilons=(1, None),
...   regularizations=(0.1,), num_draws=3, key=prng.key(0),
... )
>>> fits.weights.shape, bool((fits.residual <= 1e-9).all())
((1, 2, 1, 3, 1), True)
"""

from collections.abc import Sequence
import fractions
import functools
import itertools
from typing import Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from privjax import _validate
from privjax import prng
from privjax import types
from privjax.erm import calibration as calibration_lib
from privjax.erm import config as config_lib
from privjax.erm import losses
from privjax.erm import solver
from privjax.mechanisms import vector_noise

Fraction = fractions.Fraction
Noise = Literal['fresh', 'shared']
NOISES = ('fresh', 'shared')

# Distance from the optimum, in units of unit rows, that is aimed at without
# noise.
_EXACT = 1e-8

# Regularization of the optimum, on all rows, that every fit starts from.
_START = 1e-3


class SweepFits(NamedTuple):
  """Fits of a grid: regularizations, epsilons, folds, draws. Not for release.

  Attributes:
    weights: `[R, E, K, S, d]` float64, for unit rows; divide by
      `UnitRows.divisor` for features in their own units.
    residual: `[R, E, K, S]` float64, the norm of the gradient at `weights`,
      for the caller to check: a fit that ran out of steps is returned as well.
    num_steps: `[R, E, K, S]` int32.
  """

  weights: np.ndarray
  residual: np.ndarray
  num_steps: np.ndarray


def cell_noise(
  key: types.KeyArray,
  cells: Sequence[tuple[Fraction, Fraction, int, int]],
  *,
  dimension: int,
  names: tuple[prng.Name, ...] = (),
  noise: Noise = 'fresh',
) -> np.ndarray:
  """Returns `[L, d]` noise vectors at scale 1, one per cell, by name.

  Args:
    key: root key; folded by name, not consumed.
    cells: (regularization, epsilon, fold, draw) of each vector.
    dimension: d.
    names: prefix of every name (data set, loss).
    noise: 'fresh', or 'shared': folds share a vector. Published tables did so;
      two releases that share noise have NO guarantee together.
  """
  _validate.one_of(NOISES, noise=noise)
  fold_name = lambda fold: fold if noise == 'fresh' else 'all'
  cell_names = [
    (*names, 'objective', regularization, epsilon, fold_name(fold), draw)
    for regularization, epsilon, fold, draw in cells
  ]
  return vector_noise.simulate(key, cell_names, dimension=dimension)


def sweep(
  rows: config_lib.UnitRows,
  fold_masks: types.Array,
  *,
  loss: losses.Loss,
  epsilons: Sequence[int | str | Fraction | None],
  regularizations: Sequence[float],
  num_draws: int,
  key: types.KeyArray,
  calibration: calibration_lib.Rule = 'tight',
  names: tuple[prng.Name, ...] = (),
  noise: Noise = 'fresh',
  tolerance: float = 1e-9,
  batch_size: int = 100,
) -> SweepFits:
  """Fits every cell of a grid on private rows. Not for release.

  Every fit starts from an optimum of all rows, a fold's held-out ones among
  them; what is left of it is below the tolerance.

  Args:
    rows: private unit rows. `config.regularization` and `config.loss` play no
      part here: the grid's do.
    fold_masks: `[K, n]` bool, public; True for the rows a fold trains on.
    loss: one per sweep.
    epsilons: exact; `None` is the non-private limit, solved once per fold and
      repeated over draws.
    regularizations: Lambdas > 0.
    num_draws: S >= 1.
    key: root key; folded by name, not consumed.
    calibration: 'tight' or 'paper'.
    names: prefix of every noise name.
    noise: as in `cell_noise`.
    tolerance: on the gradient norm of fits with noise. Those without aim at
      1e-8 Lambda if that is less, so that they are within 1e-8 of the optimum
      as far as float64 goes.
    batch_size: fits at work at a time. Memory grows with it; results do
      not depend on it beyond rounding.

  Raises:
    ValueError: on an argument out of range, before anything is fitted.
  """
  _validate.integer(1, num_draws=num_draws)
  _validate.integer(1, batch_size=batch_size)
  _validate.positive(tolerance=tolerance)
  fold_masks = np.asarray(fold_masks)
  _validate.shape((None, rows.num_rows), fold_masks=fold_masks)
  if fold_masks.dtype != bool:
    raise ValueError(f'fold_masks must be bool, got {fold_masks.dtype}')
  if 0 in (len(fold_masks), len(epsilons), len(regularizations)):
    raise ValueError(
      'fold_masks, epsilons and regularizations must not be empty, got '
      f'{len(fold_masks)}, {len(epsilons)} and {len(regularizations)}'
    )
  grid = _grid(fold_masks, loss, epsilons, regularizations, calibration)
  # (i, j, s) of what is solved per fold: one draw where there is no noise.
  cells = [
    (i, j, draw)
    for i, (j, epsilon) in itertools.product(
      range(len(regularizations)), enumerate(epsilons)
    )
    for draw in range(1 if epsilon is None else num_draws)
  ]
  unique, row_counts, fold_weights = _merged(rows.signed, fold_masks)
  fits = _solve(
    unique,
    row_counts,
    fold_weights,
    _linear(rows, grid, cells, key, names, noise),
    np.array(
      [[numbers[cell[:2]].regularization for cell in cells] for numbers in grid]
    ),
    np.array(
      [
        min(tolerance, _EXACT * regularizations[i])
        if epsilons[j] is None
        else tolerance
        for i, j, _ in cells
      ]
    ),
    loss=loss,
    batch_size=min(batch_size, len(cells)),
  )
  index = np.zeros((len(regularizations), len(epsilons), num_draws), np.int64)
  for position, (i, j, draw) in enumerate(cells):
    index[i, j, draw if epsilons[j] is not None else slice(None)] = position
  arrange = lambda leaf: np.moveaxis(leaf[:, index], 0, 2)
  return SweepFits(*map(arrange, fits))


class _Numbers(NamedTuple):
  """Public numbers of one (regularization, epsilon, fold)."""

  regularization: float
  noise_factor: float  # Of noise at scale 1, in the objective; 0 for none.
  name: tuple[Fraction, Fraction] | None  # Of the noise; `None` for none.


def _grid(fold_masks, loss, epsilons, regularizations, rule):
  """Returns, per fold, the numbers of each (i, j)."""
  _validate.one_of(calibration_lib.RULES, calibration=rule)
  grid = []
  for num_rows in (int(mask.sum()) for mask in fold_masks):
    _validate.integer(1, num_rows=num_rows)
    numbers = {}
    for i, regularization in enumerate(regularizations):
      _validate.positive(regularization=regularization)
      for j, epsilon in enumerate(epsilons):
        numbers[i, j] = _numbers(num_rows, loss, epsilon, regularization, rule)
    grid.append(numbers)
  return grid


def _numbers(num_rows, loss, epsilon, regularization, rule) -> _Numbers:
  if epsilon is None:
    return _Numbers(float(regularization), 0.0, None)
  calibrated = calibration_lib.calibrate(
    epsilon,
    loss=loss,
    num_rows=num_rows,
    regularization=regularization,
    calibration=rule,
  )
  return _Numbers(
    calibrated.regularization,
    calibrated.noise_scale / num_rows,
    (_validate.rational(regularization=regularization), calibrated.epsilon),
  )


def _linear(rows, grid, cells, key, names, noise) -> np.ndarray:
  """Returns `[K, C, d]`: b / n of every cell."""
  linear = np.zeros((len(grid), len(cells), rows.dimension))
  noisy = [
    (fold, position, numbers[i, j], draw)
    for fold, numbers in enumerate(grid)
    for position, (i, j, draw) in enumerate(cells)
    if numbers[i, j].name
  ]
  if noisy:
    unit_noise = cell_noise(
      key,
      [(*numbers.name, fold, draw) for fold, _, numbers, draw in noisy],
      dimension=rows.dimension,
      names=names,
      noise=noise,
    )
    factors = np.array([numbers.noise_factor for _, _, numbers, _ in noisy])
    folds, positions, _, _ = zip(*noisy)
    linear[list(folds), list(positions)] = factors[:, None] * unit_noise
  return linear


def _merged(signed, fold_masks) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
  """Returns distinct rows `[u, d]`, counts `[u]` and per fold `[K, u]`."""
  unique, inverse, counts = np.unique(
    signed, axis=0, return_inverse=True, return_counts=True
  )
  fold_counts = [
    np.bincount(inverse.ravel(), weights=mask, minlength=len(unique))
    for mask in fold_masks.astype(np.float64)
  ]
  return unique, counts.astype(np.float64), np.stack(fold_counts)


def _solve(
  unique,
  row_counts,
  fold_weights,
  linear,
  penalty,
  tolerance,
  *,
  loss,
  batch_size,
) -> list[np.ndarray]:
  """Returns the leaves of a `solver.Fit`, each `[K, C, ...]`."""

  def solve(*arguments):
    with jax.enable_x64(True):
      fits = _solve_fold(unique, *arguments, loss=loss, batch_size=batch_size)
      return [np.asarray(leaf) for leaf in fits]

  # All start from one point that only the table decides, so that what a fit has
  # left of it, within its tolerance, does not depend on the grid. The program
  # of the folds finds it as one of as many problems; the others end at once.
  _, num_cells, dimension = linear.shape
  (start, *_), _, _ = solve(
    row_counts,
    np.zeros((num_cells, dimension)),
    np.full(num_cells, _START),
    np.where(np.arange(num_cells) == 0, _EXACT, np.inf),
    np.zeros(dimension),
  )
  # One after the other: programs that run side by side in threads can wait for
  # each other's workers forever, and one alone uses all cores.
  folds = [
    solve(*fold, tolerance, start)
    for fold in zip(fold_weights, linear, penalty)
  ]
  return [np.stack(leaf) for leaf in zip(*folds)]


@functools.partial(jax.jit, static_argnames=('loss', 'batch_size'))
def _solve_fold(
  unique, row_weights, linear, penalty, tolerance, start, *, loss, batch_size
):
  return solver.minimize(
    unique,
    row_weights,
    linear,
    jnp.broadcast_to(penalty[:, None], linear.shape),
    loss=loss,
    start=start,
    tolerance=tolerance,
    batch_size=batch_size,
  )
