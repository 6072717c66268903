"""Binary randomized response (Warner, 1965), and its exact law.

Every bit is reported wrong with probability 1 / (1 + exp(epsilon)),
independently. If neighbors differ in one bit, the report is epsilon-DP and no
better: the ratio exp(epsilon) is attained by every report.

>>> f'{flip_probability(8):.6f}'
'0.000335'
>>> wrong, right = (log_probability(k, 1, epsilon=8) for k in (1, 0))
>>> f'{right - wrong:.6f}'
'8.000000'

The true bits are private, epsilon and the number of bits are public.
"""

import fractions

from scipy import special

from privjax import _validate

Rational = int | str | fractions.Fraction

THEOREM = 'Warner (1965); Dwork & Roth (2014), Section 3.2'


def flip_probability(epsilon: Rational) -> float:
  """Returns 1 / (1 + exp(epsilon)), the chance that a bit is reported wrong."""
  return float(special.expit(-float(_validate.rational(epsilon=epsilon))))


def log_probability(
  num_flipped: int, num_bits: int, *, epsilon: Rational
) -> float:
  """Returns the log probability of one report.

  Args:
    num_flipped: in how many bits it differs from the truth.
    num_bits: how many bits there are.
    epsilon: exact, > 0.

  Formal guarantees:
    One report is epsilon-DP with delta 0, where neighbors differ in one bit:
    then num_flipped differs by exactly 1, and the log probability by exactly
    epsilon.
  """
  _validate.integer(0, num_bits=num_bits)
  _validate.integer(0, num_bits, num_flipped=num_flipped)
  value = float(_validate.rational(epsilon=epsilon))
  return float(num_bits * special.log_expit(value) - num_flipped * value)
