"""Objective perturbation without assumptions about floating point.

The exact-minimizer mechanism is approximated within a public distance gamma on
*every* string of random bits, and the difference is paid for:

  1. rows, noise and gradient are exact integers and fractions;
  2. a float64 solver proposes w; the exact gradient at w proves |w - w*| <=
     gamma, else w is improved until it does;
  3. w is rounded to a public grid, and exact discrete Laplace noise is added.

>>> from privjax.erm import calibration, losses
>>> numbers = calibration.calibrate(
...   1, loss=losses.LOGISTIC, num_rows=2, regularization=0.5
... )
>>> weights, gamma = release(
...   np.array([[0.5], [-0.25]]), numbers, Fraction(1, 100),
...   loss=losses.LOGISTIC, source=entropy.seeded(0, 'doc'),
... )
>>> weights.shape, gamma < 1e-9
((1,), True)
"""

import dataclasses
import fractions
import math

import numpy as np

from privjax.erm import calibration as calibration_lib
from privjax.erm import losses
from privjax.erm import single
from privjax.mechanisms import entropy
from privjax.mechanisms import intervals
from privjax.mechanisms import vector_noise

Fraction = fractions.Fraction

_ROW_BITS = 60
_AIM_BITS = 36  # gamma aims at a gradient norm of 2^-36 or below.
_REFINEMENTS = 20
_MAX_CONDITION_BITS = 40
_SATURATED = 128  # exp(-128) < 2^-184; see `_logistic_slope`.


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Exact:
  """One perturbed objective in exact arithmetic. Private.

  Attributes:
    rows: `[n, d]` Python integers, in units of 2^-_ROW_BITS.
    noise: d fractions, within `noise_error` of the real noise vector.
    regularization: mu, exact.
    curvature: c, exact.
    bits: weights and slopes are integers in units of 2^-bits.
    error: bound on the norm of the error of `gradient`; public.
    gamma: the public distance to be proved.
    radius: bound on |w*|, from public numbers and the noise.
  """

  rows: np.ndarray
  noise: list[Fraction]
  loss: losses.Loss
  regularization: Fraction
  curvature: Fraction
  bits: int
  error: Fraction
  gamma: Fraction
  radius: Fraction

  def gradient(self, weights: list[int]) -> list[Fraction]:
    """Returns the gradient, within `error` of that of the ideal objective."""
    margins = self.rows @ np.array(weights, dtype=object)
    cut = [int(margin) >> _ROW_BITS for margin in margins]
    slopes = np.array([self._slope(z) for z in cut], dtype=object)
    sums = slopes @ self.rows
    unit = 1 << self.bits
    num_rows = len(self.rows)
    return [
      Fraction(int(total), num_rows * unit << _ROW_BITS)
      + self.regularization * Fraction(weight, unit)
      + noise / num_rows
      for total, weight, noise in zip(sums, weights, self.noise)
    ]

  def _slope(self, margin: int) -> int:
    if self.loss.name == 'logistic':
      return _logistic_slope(margin, self.bits)
    return _hinge_slope(margin, self.bits, Fraction(self.loss.smoothing))

  def proved(self, gradient: list[Fraction]) -> bool:
    """Whether |w - w*| <= gamma follows from the gradient at w."""
    room = self.gamma * self.regularization - self.error
    return sum(g * g for g in gradient) <= room * room

  def sufficient_steps(self, weights: list[int]) -> int:
    """Returns how many steps of `descend` are enough, for any rows."""
    smooth = self.curvature + self.regularization
    start = self.radius + Fraction(sum(map(abs, weights)), 1 << self.bits)
    shrink = 2 * smooth * start / (self.gamma * self.regularization)
    # The logarithm to base 2, rounded up, is above the natural one.
    log = math.ceil(shrink).bit_length()
    return math.ceil(smooth / self.regularization * log)


def check(numbers: calibration_lib.Calibration, *, loss: losses.Loss) -> None:
  """Refuses, by public numbers alone, what `release` refuses.

  Args:
    numbers: public calibration of the ideal mechanism.
    loss: the loss.

  Raises:
    ValueError: if the loss is not one of `losses`, whose slopes are exact here,
      or (c + mu) / mu exceeds 2^40, beyond which float64 proposes nothing.
  """
  losses.check_own(loss)
  mu = Fraction(numbers.regularization)
  if Fraction(loss.curvature) + mu > mu * 2**_MAX_CONDITION_BITS:
    raise ValueError(
      'regularization + Delta must be at least the curvature times '
      f'2^-{_MAX_CONDITION_BITS} in this mode, got {float(mu):.3g}. Use a '
      'larger regularization or a smaller epsilon. Nothing was fitted'
    )


def release(
  signed: np.ndarray,
  numbers: calibration_lib.Calibration,
  rounding_epsilon: Fraction,
  *,
  loss: losses.Loss,
  source: entropy.BitSource,
) -> tuple[np.ndarray, float]:
  """Draws the private weights for unit rows.

  Args:
    signed: `[n, d]` float64, private, rows of norm <= 1 times labels.
    numbers: public calibration of the ideal mechanism.
    rounding_epsilon: eps_o > 0, exact: what the inexactness may cost.
    loss: logistic or huber_hinge.
    source: random bits, consumed.

  Returns:
    (weights `[d]` float64, gamma). Both may be released.

  Raises:
    ValueError: see `check`.
    entropy.EntropyError: if the operating system gives no bits.

  Formal guarantees:
    (numbers.epsilon + rounding_epsilon)-DP, delta = 0, under REPLACE_ONE_ROW,
    for independent uniform bits and rows of norm <= 1. Proof.

    1. Ideal mechanism. Truncating each coordinate toward 0 to 60 bits maps each
       row, on its own, to a row of norm <= 1. On those, with mu and eps' the
       exact values of their float64 numbers and real noise b, the minimizer w*
       is numbers.epsilon-DP by `calibration.calibrate`.
    2. Coupling. `vector_noise.draw` gives b' with |b' - b| <= 2^-72 or so times
       the scale, for every string of bits. `_Exact.gradient` is off by at most
       `error`: the noise's error / n, plus 3 + c units of 2^-bits for the mean
       slope (3 for its evaluation, c for a margin cut by one unit; rows have
       norm <= 1). J is mu-strongly convex, so a w that passes `proved`
       satisfies |w - w*| <= gamma.
    3. No failure. If the solver's w and 20 refinements do not pass, gradient
       steps of length 1 / L with L = c + mu follow from 0, each of which
       shrinks |w - w*| by 1 - mu/L, up to (error + rounding)/L. Since |w*| <=
       |gradient at 0| / mu <= (1 + |b|/n) / mu <= `radius` =: R, after k steps
       L |w - w*| <= L R exp(-k mu/L) + D with D = (error + rounding) L / mu.
       By its choice, mu gamma >= 16 D; a w with L |w - w*| <= mu gamma - 2
       error passes; so k = (L/mu) log(2 L R / (mu gamma)) steps are enough.
       `sufficient_steps` rounds this up, and no more are taken. The bound
       holds for all rows: it depends on public numbers and on b, which is
       independent of them. So the output is never a failure, and gamma is a
       public constant.
    4. Rounding. With grid = gamma and Q the nearest grid point, in units of the
       grid |Q(w) - Q(w*)|_1 <= d + sqrt(d) =: s / 2. For Z with
       P(Z = k) proportional to exp(-|k|_1 eps_o / s) and every output o,
       P(Q(w) + Z = o) <= e^(eps_o/2) P(Q(w*) + Z = o), and the reverse.
       Q(w*) + Z is a post-processing of w*. Going from Q(w) to Q(w*), to the
       neighbor's Q(w*), to its Q(w) costs eps_o/2 + epsilon + eps_o/2.

    Not covered: time. How many of the at most 20 refinements and of the
    bounded number of gradient steps are taken depends on private rows. And the
    bound of step 3 is a bound, not a promise to end soon: L/mu may be 2^40.
  """
  problem = _exact(signed, numbers, loss, source)
  weights = _minimizer(problem, signed)
  dimension = len(weights)
  grid = problem.gamma * (1 << problem.bits)
  rounded = [round(weight / grid) for weight in weights]
  half = dimension + math.isqrt(dimension - 1) + 1  # d + sqrt(d), rounded up.
  noise = vector_noise.discrete_laplace(
    dimension, scale=2 * half / rounding_epsilon, source=source
  )
  released = [float((a + b) * problem.gamma) for a, b in zip(rounded, noise)]
  return np.array(released), float(problem.gamma)


def _exact(signed, numbers, loss, source) -> _Exact:
  check(numbers, loss=loss)
  num_rows, dimension = signed.shape
  scale = 2 / Fraction(numbers.noise_epsilon)
  mu = Fraction(numbers.regularization)
  # Rounded up: 1 / (2 h) need not be a float.
  curvature = Fraction(loss.curvature) * (1 + Fraction(1, 2**40))
  smooth = curvature + mu
  condition = math.ceil(smooth / mu).bit_length()
  bits = 80 + 2 * condition + dimension.bit_length()
  bits += math.ceil(curvature).bit_length()
  noise_error = scale * vector_noise.error_bound(dimension)
  error = noise_error / num_rows
  error += (4 + math.ceil(curvature)) * Fraction(1, 2**bits)
  # Of one weight vector, in the units of the gradient.
  rounding = smooth * Fraction(dimension, 2**bits)
  needed = max(
    Fraction(1, 2**_AIM_BITS) / mu,
    16 * (error + rounding) * smooth / (mu * mu),
  )
  draw = vector_noise.draw(dimension, source=source)
  noise = [
    scale * Fraction(unit, 2**vector_noise.UNIT_BITS) for unit in draw.units
  ]
  return _Exact(
    rows=_fixed_rows(signed),
    noise=noise,
    loss=loss,
    regularization=mu,
    curvature=curvature,
    bits=bits,
    error=error,
    gamma=_power_of_two_above(needed),
    radius=(1 + sum(map(abs, noise)) / num_rows + error) / mu,
  )


def _minimizer(problem: _Exact, signed: np.ndarray) -> list[int]:
  """Returns weights, in units of 2^-bits, that pass `proved`."""
  weights = _proposal(problem, signed)
  for _ in range(_REFINEMENTS):
    gradient = problem.gradient(weights)
    if problem.proved(gradient):
      return weights
    weights = _refined(problem, signed, weights, gradient)
  return descend(problem, [0] * len(weights))


def descend(problem: _Exact, weights: list[int]) -> list[int]:
  """Takes exact gradient steps until `proved`: slow, but sure to end.

  Args:
    problem: the exact objective.
    weights: d integers, in units of 2^-bits.

  Returns:
    Weights within gamma of the minimizer: either their own gradient proves it,
    or the number of steps does.
  """
  step = (1 << problem.bits) / (problem.curvature + problem.regularization)
  for _ in range(problem.sufficient_steps(weights)):
    gradient = problem.gradient(weights)
    if problem.proved(gradient):
      break
    weights = [w - round(g * step) for w, g in zip(weights, gradient)]
  return weights


def _proposal(problem: _Exact, signed: np.ndarray) -> list[int]:
  linear = np.array([float(b / len(problem.rows)) for b in problem.noise])
  fitted = single.attempt(
    signed,
    linear,
    loss=problem.loss,
    regularization=float(problem.regularization),
    tolerance=1e-13 * (1 + float(np.linalg.norm(linear))),
  )
  weights = np.nan_to_num(np.asarray(fitted.weights), posinf=0, neginf=0)
  unit = 1 << problem.bits
  return _inside(problem, [int(Fraction(w) * unit) for w in weights.tolist()])


def _refined(problem, signed, weights, gradient) -> list[int]:
  """One Newton step with a float64 Hessian and the exact gradient."""
  unit = 1 << problem.bits
  current = np.array([weight / unit for weight in weights])
  second = np.asarray(problem.loss.second(signed @ current), np.float64)
  hessian = signed.T @ (signed * second[:, None]) / len(signed)
  hessian += float(problem.regularization) * np.eye(len(weights))
  try:
    step = np.linalg.solve(hessian, np.array([float(g) for g in gradient]))
  except np.linalg.LinAlgError:
    # Singular in float64. An error would be an output that depends on rows.
    return weights
  if not np.isfinite(step).all():
    return weights
  moved = [w - int(Fraction(s) * unit) for w, s in zip(weights, step.tolist())]
  return _inside(problem, moved)


def _inside(problem: _Exact, weights: list[int]) -> list[int]:
  """Moves weights into a box around w*: no further from it, and never huge."""
  limit = math.ceil(problem.radius * (1 << problem.bits))
  return [min(max(weight, -limit), limit) for weight in weights]


def _fixed_rows(signed: np.ndarray) -> np.ndarray:
  """Truncates toward zero to integers in units of 2^-_ROW_BITS."""
  # Entries are at most 1, and scaling by a power of two is exact.
  scaled = np.trunc(np.ldexp(signed, _ROW_BITS)).astype(np.int64)
  return scaled.astype(object)


def _logistic_slope(margin: int, bits: int) -> int:
  """Returns -1 / (1 + exp(z)), within 3 units of 2^-bits."""
  one = 1 << bits
  size = abs(margin)
  if size >= _SATURATED * bits << bits:
    decay = 0
  else:
    # 4 more bits: within a unit, and another one for each floor.
    enclosure = intervals.exp_neg(Fraction(size, one), bits + 4)
    decay = intervals.fixed_point(enclosure, -bits)[0]
  top = decay if margin >= 0 else one
  return -((top << bits) // (one + decay))


def _hinge_slope(margin: int, bits: int, smoothing: Fraction) -> int:
  """Returns -clip((1 + h - z) / (2 h), 0, 1), within 1 unit of 2^-bits."""
  one = 1 << bits
  slope = ((1 + smoothing) * one - margin) / (2 * smoothing)
  return -min(max(math.floor(slope), 0), one)


def _power_of_two_above(value: Fraction) -> Fraction:
  exponent = 0
  while Fraction(2) ** exponent < value:
    exponent += 1
  while Fraction(2) ** (exponent - 1) >= value:
    exponent -= 1
  return Fraction(2) ** exponent
