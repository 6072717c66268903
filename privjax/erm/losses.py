"""Margin losses, their derivatives and what a privacy proof needs of them.

With the margin z = y w.x of a row x with label y in {-1, +1}:

  logistic      log(1 + exp(-z))                              c = 1 / 4
  huber_hinge   max(0, 1 - z), its kink replaced by a         c = 1 / (2 h)
                parabola on |1 - z| <= h

Both are convex and differentiable with |first derivative| <= 1, and c bounds
the second derivative. Chaudhuri, Monteleoni & Sarwate (2011), Sections 3.4.1
and 3.4.2.

>>> float(LOGISTIC.first(0.0)), float(LOGISTIC.second(0.0))
(-0.5, 0.25)
>>> huber_hinge(0.5).curvature
1.0
"""

from collections.abc import Callable
import dataclasses
import functools

import jax
import jax.numpy as jnp

from privjax import _validate
from privjax import types

MarginFn = Callable[[types.Array], jax.Array]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Loss:
  """A convex loss of the margin whose slope is in [-1, 0].

  Attributes:
    name: 'logistic' or 'huber_hinge'.
    value: elementwise loss of the margin, in the margin's dtype.
    first: elementwise derivative; its absolute value is at most 1.
    second: elementwise second derivative, in [0, curvature]. Where it does not
      exist (two points of the Huber hinge) it is the value of one side.
    second_of_slope: `second` as a function of `first`, which spares the solver
      an exponential.
    curvature: c, the bound on `second`.
    smoothing: h, half the width of the Huber hinge's parabola; 0 for logistic.
  """

  name: str
  value: MarginFn
  first: MarginFn
  second: MarginFn
  second_of_slope: MarginFn
  curvature: float
  smoothing: float = 0.0


def _logistic_value(margin):
  # Never exponentiates a positive number.
  return jnp.maximum(-margin, 0) + jnp.log1p(jnp.exp(-jnp.abs(margin)))


def _logistic_first(margin):
  return -jax.nn.sigmoid(-margin)


def _logistic_second(margin):
  e = jnp.exp(-jnp.abs(margin))
  return e / ((1 + e) * (1 + e))


def _logistic_second_of_slope(slope):
  return -slope * (1 + slope)


LOGISTIC = Loss(
  name='logistic',
  value=_logistic_value,
  first=_logistic_first,
  second=_logistic_second,
  second_of_slope=_logistic_second_of_slope,
  curvature=0.25,
)


def huber_hinge(smoothing: float = 0.5) -> Loss:
  """Returns the hinge loss with its kink smoothed over |1 - z| <= smoothing.

  Args:
    smoothing: h in [1e-100, 1e100]. The curvature is 1 / (2 h).

  Raises:
    ValueError: if smoothing is out of range.
  """
  _validate.positive(smoothing=smoothing)
  h = float(smoothing)
  # Far beyond any use, and far within what float64 holds of 1 / (2 h).
  if not 1e-100 <= h <= 1e100:
    raise ValueError(f'smoothing must be in [1e-100, 1e100], got {smoothing!r}')
  return _huber_hinge(h)


# Cached, so that equal losses are one object and compile once.
@functools.cache
def _huber_hinge(h: float) -> Loss:
  def value(margin):
    inside = jnp.square(1 + h - margin) / (4 * h)
    outside = jnp.maximum(1 - margin, 0)
    return jnp.where(jnp.abs(1 - margin) <= h, inside, outside)

  def first(margin):
    return -jnp.clip((1 + h - margin) / (2 * h), 0, 1)

  def second_of_slope(slope):
    inside = (slope < 0) & (slope > -1)
    return jnp.where(inside, jnp.ones_like(slope) / (2 * h), 0)

  def second(margin):
    return second_of_slope(first(margin))

  return Loss(
    name='huber_hinge',
    value=value,
    first=first,
    second=second,
    second_of_slope=second_of_slope,
    curvature=1 / (2 * h),
    smoothing=h,
  )


def check_own(loss: Loss) -> None:
  """Refuses what only looks like a loss of this module.

  A record of the same name with another slope or a smaller curvature would be
  fitted under a guarantee that is not its own.

  Args:
    loss: anything.

  Raises:
    ValueError: if it does not equal `LOGISTIC` or some `huber_hinge(h)`.
  """
  own = isinstance(loss, Loss) and (
    loss == LOGISTIC or (loss.smoothing and loss == huber_hinge(loss.smoothing))
  )
  if not own:
    raise ValueError(
      f'loss must be losses.LOGISTIC or losses.huber_hinge(h), got {loss!r}'
    )
