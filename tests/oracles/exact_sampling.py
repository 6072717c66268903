"""Exact selection by rejection, and its laws in 120 decimal digits.

The samplers use nothing but fair bits, integers and fractions: Bernoulli trials
of probability exp(-x) after Canonne, Kamath & Steinke (2020), "The discrete
Gaussian for differential privacy", algorithm 1. No interval, no inversion and
no level appears here.
"""

from collections.abc import Callable
import decimal
import fractions
import itertools
import math

Fraction = fractions.Fraction
Bit = Callable[[], int]

_CONTEXT = decimal.Context(prec=120, Emin=-(10**12), Emax=10**12)

# What the laws below may be off by, generously.
LAW_ERROR = Fraction(1, 10**100)


def uniform_below(count: int, bit: Bit) -> int:
  """Draws an integer in [0, count), rejecting those that are too large."""
  while True:
    value = 0
    for _ in range((count - 1).bit_length()):
      value = 2 * value + bit()
    if value < count:
      return value


def bernoulli(p: Fraction, bit: Bit) -> bool:
  """Returns True with probability p."""
  return uniform_below(p.denominator, bit) < p.numerator


def bernoulli_exp(x: Fraction, bit: Bit) -> bool:
  """Returns True with probability exp(-x), x >= 0."""
  while x > 1:
    if not bernoulli_exp(Fraction(1), bit):
      return False
    x -= 1
  order = 1
  while bernoulli(x / order, bit):
    order += 1
  return order % 2 == 1


def exponential_mechanism(
  utility, scale: Fraction, bit: Bit, *, weights=None
) -> int:
  """Draws P(i) ~ weights[i] exp(scale utility[i]) by rejection."""
  weights = [1] * len(utility) if weights is None else list(weights)
  top = max(utility)
  while True:
    rank = uniform_below(sum(weights), bit)
    index = 0
    while rank >= weights[index]:
      rank -= weights[index]
      index += 1
    if bernoulli_exp(scale * (top - utility[index]), bit):
      return index


def permute_and_flip(utility, scale: Fraction, bit: Bit) -> int:
  """Visits candidates in random order; stops at the first coin that comes up.

  McKenna & Sheldon (2020), algorithm 1.
  """
  rest = list(range(len(utility)))
  top = max(utility)
  while True:
    index = rest.pop(uniform_below(len(rest), bit))
    if bernoulli_exp(scale * (top - utility[index]), bit):
      return index


def exp(x: Fraction) -> Fraction:
  """Returns exp(x) to about 115 digits."""
  with decimal.localcontext(_CONTEXT):
    ratio = decimal.Decimal(x.numerator) / decimal.Decimal(x.denominator)
    return Fraction(ratio.exp())


def law(utility, scale: Fraction, *, weights=None) -> list[Fraction]:
  """Returns the exponential mechanism's law."""
  weights = [1] * len(utility) if weights is None else list(weights)
  top = max(utility)
  terms = [
    weight * exp(scale * (value - top))
    for weight, value in zip(weights, utility)
  ]
  return [term / sum(terms) for term in terms]


def permute_and_flip_law(utility, scale: Fraction) -> list[Fraction]:
  """Returns permute-and-flip's law by inclusion and exclusion.

  Expanding the product in the integral gives a sum over subsets J of the other
  candidates: p_i sum_J (-1)^|J| / (|J| + 1) prod_{j in J} p_j.
  """
  top = max(utility)
  p = [exp(scale * (value - top)) for value in utility]
  result = []
  for index, own in enumerate(p):
    others = p[:index] + p[index + 1 :]
    total = Fraction(0)
    for size in range(len(others) + 1):
      for subset in itertools.combinations(others, size):
        total += Fraction((-1) ** size, size + 1) * math.prod(subset)
    result.append(own * total)
  return result
