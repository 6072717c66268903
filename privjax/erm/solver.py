"""Damped Newton for a regularized linear model, as one pure function.

  J(w) = (1 / n) sum_i r_i loss(z_i) + 1/2 sum_j penalty_j w_j^2 + linear.w
  z = rows w,  n = sum_i r_i

The rows already carry their labels. Row weights r select a fold (0 or 1) or
count equal rows, so one shape serves all of them. `minimize` is written for one
problem. Callers `vmap` it over linear terms and penalties while rows and row
weights stay shared, which turns the Hessians of a batch into one matrix
product, and map over folds. (It can be mapped over row weights as well, but
then the products of a row with itself exist once per problem.)

>>> from privjax.erm import losses
>>> with jax.enable_x64(True):
...   fit = minimize(
...     np.array([[1.0], [1.0], [-1.0]]), np.ones(3), np.zeros(1), np.ones(1),
...     loss=losses.huber_hinge(0.5),
...   )
>>> float(fit.weights[0]), float(fit.residual) < 1e-12
(0.3333333333333333, True)

Everything here reads private rows; nothing here is for release.
"""

from typing import NamedTuple

import chex
import jax
import jax.numpy as jnp
import numpy as np

from privjax import types
from privjax.erm import losses

_MAX_TRIALS = 40
_QUICK_STEPS = 20


class Fit(NamedTuple):
  """A minimizer with its error bound. Not for release.

  Attributes:
    weights: `[d]` float64.
    residual: float64 scalar, the norm of the gradient at `weights`. The exact
      minimizer is within residual / min(penalty) of `weights`, up to the
      rounding of this one gradient.
    num_steps: int32 scalar >= 1, steps taken.
  """

  weights: jax.Array
  residual: jax.Array
  num_steps: jax.Array


class _State(NamedTuple):
  weights: jax.Array
  gradient: jax.Array
  num_steps: jax.Array


class _Trial(NamedTuple):
  size: jax.Array
  weights: jax.Array
  gradient: jax.Array
  accepted: jax.Array
  count: jax.Array


def minimize(
  rows: types.Array,
  row_weights: types.Array,
  linear: types.Array,
  penalty: types.Array,
  *,
  loss: losses.Loss,
  tolerance: float = 1e-12,
  max_steps: int = 100,
) -> Fit:
  """Minimizes J by Newton steps with a safeguarded step size.

  Stops once the gradient norm is at most `tolerance` or what rounding alone
  makes of it, or after `max_steps`; a batched caller's finished problems stand
  still while others go on.

  Args:
    rows: `[n, d]` float64, each row multiplied by its label.
    row_weights: `[n]` float64 >= 0, not all zero.
    linear: `[d]` float64.
    penalty: `[d]` float64 > 0.
    loss: static.
    tolerance: on the gradient norm; 0 asks for what float64 can do.
    max_steps: static bound on the number of steps.

  Returns:
    The fit. Whether it converged is for the caller to judge by `residual`.

  Raises:
    TypeError: if any input would be computed in less than 64 bits.

  Step size: t is accepted once phi'(t) <= max(0, a^2 / (4 K t)), where phi is J
  along the step p, a = -phi'(0) and K >= phi'' comes from the curvature bound.
  Since phi' is increasing, the part of phi that rises rises by at most
  t phi'(t) <= a^2 / (4 K), and the part before it falls by at least
  a^2 / (2 K): no loss value is needed to know that J decreased. As the penalty
  is at least mu, a^2 / (4 K) >= mu |gradient|^2 / (4 (c + mu)^2) for rows of
  norm <= 1, so in exact arithmetic the method converges from anywhere. The
  first 20 steps are less careful and accept phi'(t) <= a / 4: nearly every
  problem ends before that, with fewer evaluations.
  """
  rows, row_weights, linear, penalty = map(
    jnp.asarray, (rows, row_weights, linear, penalty)
  )
  _check_inputs(rows, row_weights, linear, penalty)
  first, second = np.triu_indices(rows.shape[1])
  unpack = _unpack_index(rows.shape[1])
  row_weights = row_weights / row_weights.sum()
  weighted = row_weights[:, None] * rows
  # Constant across a batch: each Hessian is then a row of one matrix product.
  products = weighted[:, first] * rows[:, second]

  curvature_bound = loss.curvature * products.sum(0)

  def slopes_at(weights):
    return loss.first(rows @ weights)

  def gradient_at(weights):
    return slopes_at(weights) @ weighted + penalty * weights + linear

  def hessian(packed):
    return packed[unpack] + jnp.diag(penalty)

  def direction(matrix, gradient):
    factor = jnp.linalg.cholesky(matrix)
    return -jax.scipy.linalg.cho_solve((factor, True), gradient)

  # Margins are computed again and not carried along: in a batch, a loop copies
  # what it carries for every problem that stands still.
  def step(state):
    second = loss.second_of_slope(slopes_at(state.weights))
    p = direction(hessian(second @ products), state.gradient)
    decrease = -(state.gradient @ p)
    sure = decrease * decrease / (4 * (p @ hessian(curvature_bound) @ p))
    quick = jnp.where(state.num_steps < _QUICK_STEPS, decrease / 4, 0)

    def attempt(trial):
      # Full, then to the zero of the secant, then by halves.
      slope = trial.gradient @ p
      secant = jnp.maximum(decrease / (decrease + slope), 0.1)
      shorter = jnp.where(trial.count == 1, secant, trial.size / 2)
      size = jnp.where(trial.count == 0, 1.0, shorter)
      weights = state.weights + size * p
      gradient = gradient_at(weights)
      slope = gradient @ p
      accepted = (slope <= quick) | (slope * size <= sure)
      return _Trial(size, weights, gradient, accepted, trial.count + 1)

    trial = jax.lax.while_loop(
      lambda t: ~t.accepted & (t.count < _MAX_TRIALS),
      attempt,
      _Trial(
        size=jnp.ones_like(decrease),
        weights=state.weights,
        gradient=state.gradient,
        accepted=jnp.zeros((), bool),
        count=jnp.zeros((), jnp.int32),
      ),
    )
    return _State(trial.weights, trial.gradient, state.num_steps + 1)

  steepest = jnp.linalg.norm(hessian(curvature_bound))
  constant = 1 + jnp.linalg.norm(linear)

  def unfinished(state):
    # A shorter gradient is rounding of its terms: slopes of at most 1, the
    # linear term, and what weights contribute by margins and penalty.
    rounding = constant + steepest * jnp.linalg.norm(state.weights)
    enough = jnp.maximum(tolerance, 2.0**-52 * rounding)
    large = jnp.linalg.norm(state.gradient) > enough
    return large & (state.num_steps < max_steps)

  # From 0, a step with the curvature bound for the second derivative: it cannot
  # overshoot, and its matrix is the same for a whole batch.
  zero = jnp.zeros_like(linear)
  start = direction(hessian(curvature_bound), gradient_at(zero))
  initial = _State(start, gradient_at(start), jnp.ones((), jnp.int32))
  final = jax.lax.while_loop(unfinished, step, initial)
  residual = jnp.linalg.norm(final.gradient)
  return Fit(final.weights, residual, final.num_steps)


def _check_inputs(rows, row_weights, linear, penalty):
  chex.assert_rank((rows, row_weights, linear, penalty), (2, 1, 1, 1))
  chex.assert_equal(rows.shape[0], row_weights.shape[0])
  chex.assert_equal_shape((linear, penalty, rows[0]))
  for name, value in dict(rows=rows, linear=linear, penalty=penalty).items():
    if value.dtype != jnp.float64:
      raise TypeError(
        f'{name} must be float64, got {value.dtype}: call inside '
        'jax.enable_x64(True)'
      )


def _unpack_index(dimension: int) -> np.ndarray:
  """Returns `[d, d]` positions in the packed upper triangle."""
  index = np.zeros((dimension, dimension), np.int32)
  upper = np.triu_indices(dimension)
  index[upper] = np.arange(len(upper[0]))
  return np.maximum(index, index.T)
