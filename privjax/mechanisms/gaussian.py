"""Calibration of the Gaussian mechanism, and what a given noise costs.

For noise of standard deviation sigma on a query of L2 sensitivity s, with
a = s / (2 sigma) and b = epsilon sigma / s, the exact price is

  delta(epsilon) = Phi(a - b) - exp(epsilon) Phi(-a - b)

(Balle & Wang, 2018, Theorem 8). The analytic calibration is the smallest sigma
that this allows. The classic one, s sqrt(2 ln(1.25 / delta)) / epsilon, is a
theorem only for epsilon < 1 (Dwork & Roth, 2014, Theorem A.1): above, ask
`exact_delta` what it gives.

>>> f'{classic_sigma(8, delta="1e-5", sensitivity=2**0.5):.4f}'
'0.8564'
>>> f'{analytic_sigma(8, delta="1e-5", sensitivity=2**0.5):.4f}'
'0.8489'
>>> exact_delta(classic_sigma(16, delta='1e-5'), epsilon=16) > 1e-5
True

All arguments are public. The statements are about real numbers: noise drawn in
floating point simulates them.
"""

import fractions
import math

from scipy import special

from privjax import _validate

Rational = int | str | fractions.Fraction

ANALYTIC = 'Balle & Wang (2018), Theorem 8'
CLASSIC = 'Dwork & Roth (2014), Theorem A.1, epsilon < 1'

# Relative to the first term: above the rounding of the terms' difference for
# every epsilon up to _MAX_EPSILON.
_ROUNDING = 1e-12
_MAX_EPSILON = 1000
# Gaussian noise is never pure: what underflows is this, not 0.
_MIN_DELTA = 1e-300
_NUM_BISECTIONS = 200


def exact_delta(
  sigma: float, *, epsilon: Rational, sensitivity: float = 1.0
) -> float:
  """Returns the smallest delta of this noise, rounded up.

  Args:
    sigma: standard deviation of the noise, > 0, in the units of the query.
    epsilon: > 0, at most 1000.
    sensitivity: L2 sensitivity s of the query, > 0.

  Returns:
    delta(epsilon), in [1e-300, 1], above the true value by at most about 1e-12.

  Formal guarantees:
    The query plus N(0, sigma^2) noise on every coordinate is (epsilon, delta)-
    DP, for the relation that the sensitivity is stated for, and for no smaller
    delta.
  """
  _validate.positive(sigma=sigma)
  _validate.positive(sensitivity=sensitivity)
  value = _epsilon(epsilon)
  half, shift = sensitivity / (2 * sigma), value * sigma / sensitivity
  first = special.ndtr(half - shift)
  second = math.exp(min(0.0, value + special.log_ndtr(-half - shift)))
  upper = max(0.0, first - second) + _ROUNDING * first
  return float(min(1.0, max(_MIN_DELTA, upper)))


def classic_sigma(
  epsilon: Rational, *, delta: Rational, sensitivity: float = 1.0
) -> float:
  """Returns s sqrt(2 ln(1.25 / delta)) / epsilon.

  Args:
    epsilon: > 0, at most 1000.
    delta: in [1e-300, 1).
    sensitivity: L2 sensitivity s of the query, > 0.

  Formal guarantees:
    For epsilon < 1, (epsilon, delta)-DP (Dwork & Roth, 2014, Theorem A.1). For
    epsilon >= 1 the theorem says nothing, and for large epsilon the claim is
    false: check `exact_delta`.
  """
  _validate.positive(sensitivity=sensitivity)
  ratio = 1.25 / _delta(delta)
  return sensitivity * math.sqrt(2 * math.log(ratio)) / _epsilon(epsilon)


def analytic_sigma(
  epsilon: Rational, *, delta: Rational, sensitivity: float = 1.0
) -> float:
  """Returns the smallest sigma with `exact_delta` at most delta.

  Args:
    epsilon: > 0, at most 1000.
    delta: in [1e-300, 1).
    sensitivity: L2 sensitivity s of the query, > 0.

  Formal guarantees:
    (epsilon, delta)-DP (Balle & Wang, 2018, Theorem 8), for every epsilon.
    Bisection keeps the upper end, so rounding never understates the noise.
  """
  _validate.positive(sensitivity=sensitivity)
  bound = _delta(delta)
  low, high = 0.0, 1.0
  while exact_delta(high, epsilon=epsilon) > bound:
    low, high = high, 2 * high
  for _ in range(_NUM_BISECTIONS):
    middle = (low + high) / 2
    if not low < middle < high:
      break
    if exact_delta(middle, epsilon=epsilon) > bound:
      low = middle
    else:
      high = middle
  return sensitivity * high


def _epsilon(epsilon: Rational) -> float:
  value = _validate.rational(epsilon=epsilon)
  if value > _MAX_EPSILON:
    raise ValueError(f'epsilon must be at most {_MAX_EPSILON}, got {epsilon!r}')
  return float(value)


def _delta(delta: Rational) -> float:
  value = _validate.rational(delta=delta)
  if not _MIN_DELTA <= value < 1:
    raise ValueError(f'delta must be in [1e-300, 1), got {delta!r}')
  return float(value)
