"""How much noise and regularization objective perturbation needs.

The mechanism releases the minimizer of

  J(w) = (1/n) sum_i loss(y_i w.x_i) + (Lambda + Delta)/2 |w|^2 + b.w / n

with b of density proportional to exp(-eps' |b| / 2), for rows of norm <= 1.
This module computes eps' and Delta from public numbers alone, under two rules:

  'paper'  eps' = eps - 2 log(1 + c/(n Lambda)), Delta = 0; if that is not
           positive, Delta = c/(n (exp(eps/4) - 1)) - Lambda and eps' = eps/2
           (Chaudhuri, Monteleoni & Sarwate, 2011, Algorithm 2)
  'tight'  eps' = eps - log(1 + c/(n (Lambda + Delta))) with
           Delta = max(0, c/(n (exp(eps/10) - 1)) - Lambda)

>>> from privjax.erm import losses
>>> svm = dict(loss=losses.huber_hinge(), num_rows=746, regularization=1e-3)
>>> paper = calibrate(2, **svm, calibration='paper')
>>> tight = calibrate(2, **svm, calibration='tight')
>>> f'{paper.noise_epsilon:.2f} {tight.noise_epsilon:.2f}'
'0.30 1.80'
"""

import dataclasses
import fractions
import math
from typing import Literal

from privjax import _validate
from privjax.erm import losses

Fraction = fractions.Fraction
Rule = Literal['paper', 'tight']
RULES = ('paper', 'tight')

# The part of epsilon that the 'tight' rule lets the determinant use.
TIGHT_SHARE = Fraction(1, 10)

# Every result is moved to the safe side by this, well above its rounding.
_SAFETY = 2.0**-40
# Well within what float64 holds of exp(eps / 10) and 1 / eps.
_MIN_EPSILON = Fraction(1, 2**40)
_MAX_EPSILON = 10**4


@dataclasses.dataclass(frozen=True, kw_only=True)
class Calibration:
  """Public numbers of one objective perturbation.

  Attributes:
    epsilon: what one release costs; exact.
    noise_epsilon: eps' > 0, the part spent on the norm of the noise.
    regularization: Lambda + Delta > 0.
    extra_regularization: Delta >= 0.
    num_rows: n.
    rule: 'paper' or 'tight'.
  """

  epsilon: Fraction
  noise_epsilon: float
  regularization: float
  extra_regularization: float
  num_rows: int
  rule: Rule

  @property
  def noise_scale(self) -> float:
    """The scale of |b| ~ Gamma(d, scale): 2 / eps'."""
    return 2 / self.noise_epsilon

  @property
  def slack(self) -> float:
    """The part of epsilon that the determinants may use: eps - eps'."""
    return float(self.epsilon) - self.noise_epsilon


def check_epsilon(epsilon: int | str | Fraction) -> Fraction:
  """Returns epsilon as an exact fraction in [2^-40, 10^4].

  Raises:
    ValueError: if it is out of range.
  """
  exact = _validate.rational(epsilon=epsilon)
  if not _MIN_EPSILON <= exact <= _MAX_EPSILON:
    raise ValueError(
      f'epsilon must be in [2^-40, {_MAX_EPSILON}], got {epsilon}'
    )
  return exact


def calibrate(
  epsilon: int | str | Fraction,
  *,
  loss: losses.Loss,
  num_rows: int,
  regularization: float,
  calibration: Rule = 'tight',
) -> Calibration:
  """Splits epsilon between the noise and the determinants.

  Args:
    epsilon: exact, in [2^-40, 10^4].
    loss: its curvature is c.
    num_rows: n >= 1, public.
    regularization: Lambda > 0, public, for rows of norm <= 1.
    calibration: 'paper' or 'tight'.

  Returns:
    The calibration. eps' is rounded down and Delta up, by about 1e-12.

  Raises:
    ValueError: on an argument out of range.

  Formal guarantees:
    For rows of norm at most 1, |loss'| <= 1, 0 <= loss'' <= c and n public, the
    exact minimizer of J is epsilon-DP, delta = 0, under REPLACE_ONE_ROW. Proof,
    for both rules at once; mu = Lambda + Delta.

    1. J is strongly convex and differentiable, so w is the output exactly if
       b = B(w; D) := -(n mu w + sum_i loss'(y_i w.x_i) y_i x_i). B(.; D) is a
       Lipschitz bijection of R^d whose inverse is Lipschitz too (it is
       strongly monotone). The output thus has the density
       p(w; D) = const exp(-eps'/2 |B(w; D)|) det H(w; D) for almost all w, with
       H = n mu I + sum_i loss''(y_i w.x_i) x_i x_i^T. ("Almost all" is what the
       Huber hinge needs, whose second derivative jumps.)
    2. Norm part. Let D' have one row (x', y') in place of (x, y). Then
       B(w; D) - B(w; D') is the difference of two vectors of norm <= 1, so the
       exponentials differ by a factor of at most exp(eps'/2 * 2) = exp(eps').
    3. Determinant part. Let M be n mu I plus the terms of the n - 1 common
       rows, a = loss''(y w.x) and a' = loss''(y' w.x'). By the matrix
       determinant lemma

         det H(w; D)    det(M + a x x^T)       1 + a  x^T  M^-1 x
         ----------- = -------------------- = --------------------- ,
         det H(w; D')   det(M + a' x' x'^T)    1 + a' x'^T M^-1 x'

       whose denominator is at least 1, because M is positive definite. As M is
       at least n mu I and a <= c, the numerator is at most 1 + c / (n mu). Only
       one term enters and one leaves, and the one that leaves can only help: a
       single log(1 + c/(n mu)) covers the ratio, in both directions by
       symmetry.
    4. 'tight': eps' + log(1 + c/(n mu)) = eps by definition. The rule for Delta
       makes the log at most eps / 10, so eps' >= 0.9 eps > 0.
       'paper': with Delta = 0, eps' + 2 log(1 + c/(n Lambda)) = eps; otherwise
       mu = c/(n (exp(eps/4) - 1)), so 2 log(1 + c/(n mu)) = eps / 2 and
       eps' = eps / 2. Half of what it sets aside is never used.

    | input                          | result                               |
    |--------------------------------|--------------------------------------|
    | epsilon 0, negative, inf, NaN  | ValueError                           |
    | epsilon outside [2^-40, 10^4]  | ValueError                           |
    | Lambda 0, negative, inf, NaN   | ValueError                           |
    | n = 1                          | allowed; Delta is large              |
    | Lambda tiny ('tight', 'paper') | Lambda + Delta depends on c/n, eps   |
  """
  epsilon = check_epsilon(epsilon)
  _validate.integer(1, num_rows=num_rows)
  _validate.positive(regularization=regularization)
  _validate.one_of(RULES, calibration=calibration)
  ratio = loss.curvature / num_rows
  total = float(epsilon)
  if calibration == 'tight':
    extra = _extra(ratio, total * float(TIGHT_SHARE), regularization)
    spent = math.log1p(ratio / (regularization + extra))
  else:
    extra, spent = 0.0, 2 * math.log1p(ratio / regularization)
    # Rounded like the result, so that what is left is positive.
    if total * (1 - _SAFETY) - spent * (1 + _SAFETY) <= 0:
      extra = _extra(ratio, total / 4, regularization)
      spent = total / 2
  return Calibration(
    epsilon=epsilon,
    noise_epsilon=total * (1 - _SAFETY) - spent * (1 + _SAFETY),
    regularization=regularization + extra,
    extra_regularization=extra,
    num_rows=int(num_rows),
    rule=calibration,
  )


def _extra(ratio: float, log_bound: float, regularization: float) -> float:
  """Returns Delta with log(1 + ratio / (Lambda + Delta)) <= log_bound."""
  # Above e^700 nothing is needed, and expm1 would overflow.
  needed = ratio / math.expm1(min(log_bound, 700.0))
  return max(0.0, needed * (1 + _SAFETY) - regularization)
