"""One minimization at a time, shared by the mechanisms. Not for release."""

import functools

import jax
import numpy as np

from privjax.erm import losses
from privjax.erm import solver

TOLERANCE = 1e-11


class ConvergenceError(RuntimeError):
  """The solver missed its tolerance; no weights were returned."""


def solve(
  signed: np.ndarray,
  linear: np.ndarray,
  *,
  loss: losses.Loss,
  regularization: float,
) -> tuple[np.ndarray, float]:
  """Minimizes over private unit rows, with a public linear term or noise.

  Args:
    signed: `[n, d]` float64 unit rows times labels.
    linear: `[d]` float64, b / n.
    loss: the loss.
    regularization: > 0, for every coordinate.

  Returns:
    (weights `[d]`, bound on their distance from the exact minimizer). With mu
    = regularization it is (residual + rounding) / mu, where rounding bounds the
    error of the residual's own gradient in float64,

      2^-52 (n + d + 8) (1 + |linear| + (c + mu) |w|):

    sums over n rows of norm <= 1 and d columns, slopes within 8 units of the
    last place, and margins off by d |w| units, which slopes pass on times c.

  Raises:
    ConvergenceError: if the gradient norm stays above TOLERANCE times
      1 + |linear|. It depends on the private rows.
  """
  tolerance = TOLERANCE * (1 + float(np.linalg.norm(linear)))
  fitted = attempt(
    signed,
    linear,
    loss=loss,
    regularization=regularization,
    # Aim lower: a step more costs little, and the bound is what counts.
    tolerance=tolerance / 1000,
  )
  residual = float(fitted.residual)
  if not residual <= tolerance:
    raise ConvergenceError(
      f'the gradient norm is above {TOLERANCE} (1 + |linear|); no weights were '
      'returned. Use a larger regularization'
    )
  weights = np.asarray(fitted.weights)
  size = 1 + float(np.linalg.norm(linear))
  size += (loss.curvature + regularization) * float(np.linalg.norm(weights))
  rounding = 2.0**-52 * (sum(signed.shape) + 8) * size
  return weights, (residual + rounding) / regularization


def attempt(
  signed: np.ndarray,
  linear: np.ndarray,
  *,
  loss: losses.Loss,
  regularization: float,
  tolerance: float,
) -> solver.Fit:
  """Returns the fit of one problem, converged or not; rows are padded."""
  num_rows, dimension = signed.shape
  capacity = _capacity(num_rows)
  rows = np.zeros((capacity, dimension))
  rows[:num_rows] = signed
  with jax.enable_x64(True):
    fits = _minimize(
      rows,
      (np.arange(capacity) < num_rows).astype(np.float64),
      np.asarray(linear, np.float64)[None],
      np.full((1, dimension), float(regularization)),
      loss=loss,
      tolerance=np.float64(tolerance),
    )
    return solver.Fit(*(leaf[0] for leaf in fits))


def _capacity(num_rows: int) -> int:
  """The next of 16, 24, 32, 48, ...: nearby sizes share one compilation."""
  size = 16
  while size < num_rows:
    size = size * 3 // 2 if size & size - 1 == 0 else size * 4 // 3
  return size


_minimize = functools.partial(jax.jit, static_argnames='loss')(solver.minimize)
