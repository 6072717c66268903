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
  margins: jax.Array
  slopes: jax.Array  # Of the loss, at the margins.
  gradient: jax.Array
  num_steps: jax.Array


class _Trial(NamedTuple):
  size: jax.Array
  slopes: jax.Array
  slope: jax.Array  # Of J along the step.
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

  Stops once the gradient norm is at most `tolerance`, or after `max_steps`; a
  batched caller's finished problems stand still while others go on.

  Args:
    rows: `[n, d]` float64, each row multiplied by its label.
    row_weights: `[n]` float64 >= 0, not all zero.
    linear: `[d]` float64.
    penalty: `[d]` float64 > 0.
    loss: static.
    tolerance: on the gradient norm.
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

  def gradient_at(weights, slopes):
    return slopes @ weighted + penalty * weights + linear

  def direction(packed, gradient):
    hessian = packed[unpack] + jnp.diag(penalty)
    factor = jnp.linalg.cholesky(hessian)
    return -jax.scipy.linalg.cho_solve((factor, True), gradient)

  def step(state):
    p = direction(loss.second_of_slope(state.slopes) @ products, state.gradient)
    q = rows @ p
    decrease = -(state.gradient @ p)
    # Of the regularizer and the linear term along p.
    flat, bend = (penalty * state.weights + linear) @ p, penalty @ (p * p)
    bound = loss.curvature * (row_weights @ (q * q)) + bend
    sure = decrease * decrease / (4 * bound)
    quick = jnp.where(state.num_steps < _QUICK_STEPS, decrease / 4, 0)

    def attempt(trial):
      # Full, then to the zero of the secant, then by halves.
      secant = jnp.maximum(decrease / (decrease + trial.slope), 0.1)
      shorter = jnp.where(trial.count == 1, secant, trial.size / 2)
      size = jnp.where(trial.count == 0, 1.0, shorter)
      slopes = loss.first(state.margins + size * q)
      slope = (row_weights * slopes) @ q + flat + size * bend
      accepted = (slope <= quick) | (slope * size <= sure)
      return _Trial(size, slopes, slope, accepted, trial.count + 1)

    trial = jax.lax.while_loop(
      lambda t: ~t.accepted & (t.count < _MAX_TRIALS),
      attempt,
      _Trial(
        size=jnp.ones_like(decrease),
        slopes=state.slopes,
        slope=-decrease,
        accepted=jnp.zeros((), bool),
        count=jnp.zeros((), jnp.int32),
      ),
    )
    weights = state.weights + trial.size * p
    return _State(
      weights,
      state.margins + trial.size * q,
      trial.slopes,
      gradient_at(weights, trial.slopes),
      state.num_steps + 1,
    )

  def unfinished(state):
    large = jnp.linalg.norm(state.gradient) > tolerance
    return large & (state.num_steps < max_steps)

  # From 0, a step with the curvature bound for the second derivative: it cannot
  # overshoot, and its matrix is the same for a whole batch.
  slopes = loss.first(jnp.zeros(rows.shape[0], rows.dtype))
  start = direction(
    loss.curvature * products.sum(0),
    gradient_at(jnp.zeros_like(linear), slopes),
  )
  margins = rows @ start
  slopes = loss.first(margins)
  initial = _State(
    start, margins, slopes, gradient_at(start, slopes), jnp.ones((), jnp.int32)
  )
  final = jax.lax.while_loop(unfinished, step, initial)
  # From the weights alone: updated margins carry the rounding of every step.
  gradient = gradient_at(final.weights, loss.first(rows @ final.weights))
  return Fit(final.weights, jnp.linalg.norm(gradient), final.num_steps)


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
