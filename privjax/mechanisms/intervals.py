"""Certified enclosures of exp(-x) for a rational x >= 0, in integers only.

  low * 2^exponent  <=  exp(-x)  <=  high * 2^exponent

The precision is *relative*: `low` has exactly as many bits as asked for,
however small exp(-x) is, so that a ratio of two enclosures can be refined
without knowing how far below 1 they lie. Nothing here is private or random.

>>> exp_neg(Fraction(1), 10)  # 1 / e = 753.4 / 2048.
Interval(low=753, high=754, exponent=-11)
"""

import fractions
import math
from typing import NamedTuple

from privjax import _validate

Fraction = fractions.Fraction

_GUARD_BITS = 16  # Width only; no bound below depends on it.


class Interval(NamedTuple):
  """The real numbers from low * 2^exponent to high * 2^exponent.

  Attributes:
    low: integer >= 0.
    high: integer >= low.
    exponent: any integer.
  """

  low: int
  high: int
  exponent: int


def exp_neg(x: Fraction, precision: int) -> Interval:
  """Encloses exp(-x); `low` has exactly `precision` bits.

  Args:
    x: exact, >= 0.
    precision: number of bits of `low`, >= 1.

  Returns:
    An interval that contains exp(-x). It is the single point 1 if x = 0;
    otherwise high - low <= 2, so its relative width is at most 2^(2-precision).

  Raises:
    ValueError: if x is not a Fraction >= 0 or precision not an integer >= 1.

  Proof that exp(-x) is inside. Let s be `halvings`, w be `work`, and let one
  unit be 2^-w.

  1. Reduction. Y = floor(2^w x / 2^s) and y = Y / 2^w satisfy
     0 <= x / 2^s - y < one unit. The slope of exp(-t) is in [-1, 0) for t > 0,
     so exp(-x / 2^s) lies in (exp(-y) - 1 unit, exp(-y)].
  2. Terms. The exact terms a_i = 2^w y^i / i! are followed by the integers
     t_0 = 2^w, t_i = floor(floor(t_{i-1} Y / 2^w) / i) = floor(t_{i-1} y / i).
     With e_i = a_i - t_i, e_0 = 0 and 0 <= e_i < e_{i-1} y / i + 1. Since
     y < 1 / 16, e_i < 2 by induction.
  3. Remainder. Let N be the first order with t_N = 0. The sum of the terms
     before N, with alternating signs, is off by less than 2 (N - 1) units. The
     a_i decrease, so the rest of the alternating series is at most
     a_N < t_N + 2 = 2. Together: |sum - 2^w exp(-y)| < 2 N.
  4. Lower end sum - 2 N - 1 and upper end sum + 2 N therefore enclose
     2^w exp(-x / 2^s), and the lower end is positive.
  5. Squaring s times, each time cutting both ends to w bits, the lower end
     rounded down and the upper end up, encloses exp(-x), because squaring is
     increasing on positive numbers. So does the last cut to `precision` bits.

  Width: ln(high / low) is below (4 N + 1) 2^(1-w) after step 4; each squaring
  doubles it and its cut adds less than 2^(3-w). As 4 N <= w + 4, it ends below
  (w + 9) 2^(s+1-w) < 2^(-13-precision) by the choice of w, which is less than
  one unit of the last cut; that cut adds less than two.
  """
  if not isinstance(x, (Fraction, int)) or x < 0:
    raise ValueError(f'x must be a Fraction >= 0, got {x!r}')
  _validate.integer(1, precision=precision)
  if x == 0:
    return Interval(1 << precision - 1, 1 << precision - 1, 1 - precision)
  whole_bits = (x.numerator // x.denominator).bit_length()
  # At least 4, so y < 2^-4; more of them at high precision, to balance the
  # number of squarings against the number of terms.
  halvings = whole_bits + 4 + math.isqrt(precision) // 2
  work = precision + halvings + _GUARD_BITS
  work += work.bit_length()
  y = (x.numerator << work) // (x.denominator << halvings)
  total, slack = _taylor(y, work)
  low, high, exponent = total - slack - 1, total + slack, -work
  for _ in range(halvings):
    low, high = low * low, high * high
    shift = low.bit_length() - work
    low, high = low >> shift, -(-high >> shift)
    exponent = 2 * exponent + shift
  return cut(Interval(low, high, exponent), precision)


def product(a: Interval, b: Interval) -> Interval:
  """Returns the exact interval of products of two non-negative intervals."""
  return Interval(a.low * b.low, a.high * b.high, a.exponent + b.exponent)


def cut(interval: Interval, num_bits: int) -> Interval:
  """Shortens `low` to at most `num_bits` bits, rounding both ends outward."""
  shift = max(interval.low.bit_length() - num_bits, 0)
  low, high = fixed_point(interval, interval.exponent + shift)
  return Interval(low, high, interval.exponent + shift)


def fixed_point(interval: Interval, anchor: int) -> tuple[int, int]:
  """Rewrites an interval in units of 2^anchor, rounding outward.

  Returns:
    Integers (low, high) with low * 2^anchor at most the lower end and
    high * 2^anchor at least the upper end.
  """
  shift = interval.exponent - anchor
  if shift >= 0:
    return interval.low << shift, interval.high << shift
  return interval.low >> -shift, -(-interval.high >> -shift)


def _taylor(y: int, work: int) -> tuple[int, int]:
  """Returns (sum, 2 N) of the proof's steps 2 and 3."""
  total = term = 1 << work
  order = 0
  while term:
    order += 1
    term = (term * y >> work) // order
    total += -term if order % 2 else term
  return total, 2 * order
