"""Damped Newton for a batch of regularized linear models, as a pure function.

  J(w) = (1 / n) sum_i r_i loss(z_i) + 1/2 sum_j penalty_j w_j^2 + linear.w
  z = rows w,  n = sum_i r_i

The rows already carry their labels. Row weights r select a fold (0 or 1) or
count equal rows. Problems of a batch share rows and row weights and differ in
their linear terms and penalties: their Hessians are one matrix product.

>>> from privjax.erm import losses
>>> with jax.enable_x64(True):
...   fit = minimize(
...     np.array([[1.0], [1.0], [-1.0]]), np.ones(3), np.zeros((1, 1)),
...     np.ones((1, 1)), loss=losses.huber_hinge(0.5),
...   )
>>> float(fit.weights[0, 0]), float(fit.residual[0]) < 1e-12
(0.3333333333333333, True)

Everything here reads private rows; nothing here is for release.
"""

import functools
from typing import NamedTuple

import chex
import jax
import jax.numpy as jnp
import numpy as np

from privjax import _validate
from privjax import types
from privjax.erm import losses

_MAX_TRIALS = 40
_QUICK_STEPS = 20


class Fit(NamedTuple):
  """Minimizers with their error bounds. Not for release.

  Attributes:
    weights: `[B, d]` float64.
    residual: `[B]` float64, the norm of the gradient at `weights`. An exact
      minimizer is within residual / min(penalty) of its `weights`, up to the
      rounding of this one gradient.
    num_steps: `[B]` int32 >= 1, steps taken.
  """

  weights: jax.Array
  residual: jax.Array
  num_steps: jax.Array


class _Batch(NamedTuple):
  """B problems on n rows of d columns.

  Attributes:
    rows: `[n, d]`.
    weighted: `[n, d]`, rows times their share.
    products: `[n, d (d + 1) / 2]`, packed `weighted_i rows_i^T`: a Hessian is
      one product with them.
    bound: `[d, d]`, above every Hessian of the losses.
    linear: `[B, d]`.
    penalty: `[B, d]`.
    tolerance: `[B]`.
    start: `[d]`.
    first_gradient: `[B, d]`, at the start.
    first_direction: `[B, d]`, of the first step.
  """

  rows: jax.Array
  weighted: jax.Array
  products: jax.Array
  bound: jax.Array
  linear: jax.Array
  penalty: jax.Array
  tolerance: jax.Array
  start: jax.Array
  first_gradient: jax.Array
  first_direction: jax.Array


class _State(NamedTuple):
  """The problems at work, one per slot, and what is known of all."""

  index: jax.Array  # [S] int32, the slot's problem; B for none.
  weights: jax.Array  # [S, d]
  gradient: jax.Array  # [S, d]
  direction: jax.Array  # [S, d], of the step that is tried next.
  size: jax.Array  # [S], of that step.
  num_steps: jax.Array  # [S] int32
  num_trials: jax.Array  # [S] int32, of that step.
  num_begun: jax.Array  # int32
  fits: Fit


def minimize(
  rows: types.Array,
  row_weights: types.Array,
  linear: types.Array,
  penalty: types.Array,
  *,
  loss: losses.Loss,
  start: types.Array | None = None,
  tolerance: types.Array | float = 1e-12,
  max_steps: int = 100,
  batch_size: int | None = None,
) -> Fit:
  """Minimizes each J by Newton steps with a safeguarded step size.

  A problem ends once its gradient norm is at most `tolerance` or what rounding
  alone makes of it, or after `max_steps`; the next one takes its place.

  Args:
    rows: `[n, d]` float64, each row multiplied by its label.
    row_weights: `[n]` float64 >= 0, not all zero.
    linear: `[B, d]` float64.
    penalty: `[B, d]` float64 > 0.
    loss: static.
    start: `[d]` float64, where to begin; 0 or `None` for nothing known. The
      optimum of a problem with the same rows saves steps.
    tolerance: `[]` or `[B]`, on the gradient norm; 0 asks for what float64 can
      do with terms of this size.
    max_steps: static bound on the number of steps.
    batch_size: static, S, how many problems are at work at a time; `None` for
      all. Memory is about 4 S n + n d^2 / 2 float64; a fit depends on it by
      rounding only.

  Returns:
    The fits. Whether one converged is for the caller to judge by `residual`: a
    loss of tiny smoothing can take more steps than there are. Where a step is
    not finite, the point before it is returned.

  Raises:
    TypeError: if any input would be computed in less than 64 bits.
    ValueError: if there is no problem, or `max_steps` or `batch_size` is below
      1.

  Step size: with phi J along the step p, a = -phi'(0) and K >= phi'' from the
  curvature bound, t is accepted once phi'(t) <= max(0, a^2 / (4 K t)). phi' is
  increasing, and every t that is tried is at least a / (2 K): the full step,
  since a = p H p <= K for the Hessian H at hand, the secant's zero, which is at
  least a / K, and halves, since phi' <= 0 up to a / K is accepted. Up to there
  phi falls by at least a^2 / (4 K) if phi'(t) <= 0, and by a^2 / (2 K) if not,
  where what rises rises by at most t phi'(t) <= a^2 / (4 K). So each step gains
  a^2 / (4 K) without a look at J. With penalties in [mu, M] and rows of norm <=
  1 that is at least mu |gradient|^2 / (4 (c + M)^2): in exact arithmetic, and
  while (c + M) / mu is below the 2^39 that halving reaches, the method
  converges from anywhere. The first 20 steps are less careful and accept
  phi'(t) <= a / 4: nearly every problem ends before that, with fewer
  evaluations.
  """
  rows, row_weights, linear, penalty = map(
    jnp.asarray, (rows, row_weights, linear, penalty)
  )
  count = len(linear)
  batch_size = count if batch_size is None else batch_size
  _validate.integer(1, max_steps=max_steps)
  _validate.integer(1, batch_size=batch_size)
  start = jnp.zeros(rows.shape[1]) if start is None else jnp.asarray(start)
  _check_inputs(rows, row_weights, linear, penalty, start)
  batch = _begin(
    rows, row_weights, linear, penalty, start, tolerance, loss=loss
  )
  final = jax.lax.while_loop(
    lambda state: (state.index < count).any(),
    functools.partial(_attempt, batch, loss=loss, max_steps=max_steps),
    _first_state(batch, min(batch_size, count)),
  )
  return final.fits


def _begin(
  rows, row_weights, linear, penalty, start, tolerance, *, loss
) -> _Batch:
  """Computes what all problems share, and their first steps."""
  weighted = (row_weights / row_weights.sum())[:, None] * rows
  first, second = np.triu_indices(rows.shape[1])
  products = weighted[:, first] * rows[:, second]
  bound = (loss.curvature * products.sum(0))[_unpack_index(rows.shape[1])]
  # One Hessian for all, but for the penalty. From 0, where nothing is known, it
  # takes the curvature bound for the second derivative: no step overshoots.
  slopes = loss.first(start @ rows.T)
  at_start = jnp.where(
    jnp.any(start != 0), loss.second_of_slope(slopes), loss.curvature
  )
  gradient = (slopes @ weighted)[None] + penalty * start[None] + linear
  return _Batch(
    rows=rows,
    weighted=weighted,
    products=products,
    bound=bound,
    linear=linear,
    penalty=penalty,
    tolerance=jnp.broadcast_to(tolerance, len(linear)),
    start=start,
    first_gradient=gradient,
    first_direction=_descend(at_start[None] @ products, penalty, gradient),
  )


def _first_state(batch: _Batch, slots: int) -> _State:
  index = jnp.arange(slots, dtype=jnp.int32)
  count = len(batch.linear)
  return _State(
    index=index,
    weights=jnp.broadcast_to(batch.start, (slots, len(batch.start))),
    gradient=batch.first_gradient[:slots],
    direction=batch.first_direction[:slots],
    size=jnp.ones(slots),
    num_steps=jnp.zeros_like(index),
    num_trials=jnp.zeros_like(index),
    num_begun=jnp.array(slots, jnp.int32),
    fits=Fit(
      jnp.zeros_like(batch.linear),
      jnp.zeros(count),
      jnp.zeros(count, jnp.int32),
    ),
  )


def _descend(packed, penalty, gradient) -> jax.Array:
  """Returns Newton directions `[S, d]` from packed Hessians of the losses."""
  dimension = penalty.shape[1]
  matrix = packed[:, _unpack_index(dimension)]
  matrix += penalty[:, :, None] * jnp.eye(dimension)[None]
  factor = jnp.linalg.cholesky(matrix)
  solve = lambda lower, g: jax.scipy.linalg.cho_solve((lower, True), g)
  return -jax.vmap(solve)(factor, gradient)


def _attempt(batch: _Batch, state: _State, *, loss, max_steps: int) -> _State:
  """Tries each slot's step; one that is done takes the next problem."""
  index, p, size = state.index, state.direction, state.size
  linear, penalty = batch.linear[index], batch.penalty[index]
  weights = state.weights + size[:, None] * p
  slopes = loss.first(weights @ batch.rows.T)
  gradient = slopes @ batch.weighted + penalty * weights + linear
  decrease, slope = -_dot(state.gradient, p), _dot(gradient, p)
  curvature = _dot(p, p @ batch.bound + penalty * p)
  quick = jnp.where(state.num_steps < _QUICK_STEPS, decrease / 4, 0)
  accepted = (slope <= quick) | (4 * curvature * slope * size <= decrease**2)
  accepted |= state.num_trials == _MAX_TRIALS - 1
  num_steps = state.num_steps + accepted
  # A shorter gradient is rounding of its terms: slopes of at most 1, the linear
  # term, and what weights contribute by margins and penalty.
  steepest = jnp.linalg.norm(batch.bound) + _norm(penalty)
  rounding = 2.0**-52 * (1 + _norm(linear) + steepest * _norm(weights))
  large = _norm(gradient) > jnp.maximum(batch.tolerance[index], rounding)
  done = accepted & ~(large & (num_steps < max_steps))

  # Full, then to the zero of the secant, then by halves.
  secant = jnp.maximum(decrease / (decrease + slope), 0.1)
  shorter = jnp.where(state.num_trials == 0, secant, size / 2)
  turned = _descend(
    loss.second_of_slope(slopes) @ batch.products, penalty, gradient
  )
  count = len(batch.linear)
  following = state.num_begun + jnp.cumsum(done, dtype=jnp.int32) - 1
  index = jnp.where(done, jnp.minimum(following, count), index)

  def pick(old, new, begun):
    """Of slots that try again, that step on, and that begin a problem."""
    stepped = jnp.where(accepted[:, None], new, old)
    return jnp.where(done[:, None], begun, stepped)

  return _State(
    index=index,
    weights=pick(state.weights, weights, batch.start[None]),
    gradient=pick(state.gradient, gradient, batch.first_gradient[index]),
    direction=pick(p, turned, batch.first_direction[index]),
    size=jnp.where(accepted, 1.0, shorter),
    num_steps=jnp.where(done, 0, num_steps),
    num_trials=jnp.where(accepted, 0, state.num_trials + 1),
    num_begun=jnp.minimum(state.num_begun + done.sum(dtype=jnp.int32), count),
    fits=_written(state, done, weights, gradient, num_steps),
  )


def _written(state: _State, done, weights, gradient, num_steps) -> Fit:
  """Returns the fits with those that are done; not finite: the point before."""
  usable = jnp.isfinite(_norm(gradient))[:, None]
  found = Fit(
    jnp.where(usable, weights, state.weights),
    _norm(jnp.where(usable, gradient, state.gradient)),
    num_steps,
  )
  place = jnp.where(done, state.index, len(state.fits.residual))
  return Fit(
    *(
      old.at[place].set(new, mode='drop') for old, new in zip(state.fits, found)
    )
  )


def _norm(vectors):
  return jnp.linalg.norm(vectors, axis=-1)


def _dot(a, b):
  return (a * b).sum(-1)


def _check_inputs(rows, row_weights, linear, penalty, start):
  chex.assert_rank((rows, row_weights, linear), (2, 1, 2))
  chex.assert_equal(rows.shape[0], row_weights.shape[0])
  chex.assert_equal_shape((linear, penalty))
  chex.assert_equal_shape((start, linear[0], rows[0]))
  checked = dict(
    rows=rows,
    row_weights=row_weights,
    linear=linear,
    penalty=penalty,
    start=start,
  )
  for name, value in checked.items():
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
