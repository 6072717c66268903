"""Exact choices from lazily read bits, by inversion of a cumulative law.

The bits read so far say that a uniform number U lies in [prefix, prefix + 1) /
2^n. A choice is made as soon as every U in that interval leads to it, and not
before, so the choice has exactly the probability of the law: no rounding, no
rejection, no bit read twice.

>>> from privjax.mechanisms import entropy
>>> uniform_below(3, entropy.injected('10'))  # [1/2, 3/4) crosses 2 / 3.
Traceback (most recent call last):
  ...
privjax.mechanisms.entropy.BitsExhaustedError: only 2 bits were injected
>>> uniform_below(3, entropy.injected('100'))  # [1/2, 5/8) lies in [1/3, 2/3).
(1, 3)
"""

import bisect
from collections.abc import Callable
from typing import NamedTuple

from privjax.mechanisms import entropy

# Bits of the first enclosure of the boundaries: an undecided draw computes
# another one with probability about (number of outcomes) * 2^-64.
_FIRST_PRECISION = 64


class Boundaries(NamedTuple):
  """Enclosures of a cumulative law, in units of 2^-precision.

  Attributes:
    low: non-decreasing; low[i] is at most the probability of outcomes 0 to i.
    high: non-decreasing; high[i] is at least that.
      Both are exactly 0 before the first outcome of positive probability and
      exactly 2^precision from the last one on.
    precision: number of bits.
  """

  low: list[int]
  high: list[int]
  precision: int


def choose(
  enclose: Callable[[int], Boundaries], source: entropy.BitSource
) -> tuple[int, int]:
  """Chooses an outcome with exactly its probability.

  Outcome i is certain once high[i-1] <= U < low[i] for every U that the bits
  allow. Precision doubles whenever as many bits have been read.

  Args:
    enclose: `precision -> Boundaries` of one cumulative law; the enclosures
      must shrink to it as the precision grows.
    source: bits, consumed one by one.

  Returns:
    (outcome, number of bits read). No bit is read if only one outcome is
    possible.

  Formal guarantees: the probability of an outcome that the law gives p is
  exactly p, for independent uniform bits. A decided outcome is right because U
  lies between the true boundaries; the bits that decide nothing approach one of
  finitely many boundaries forever, which has probability zero. So an outcome
  with p > 0 is reached by some finite string of bits, and one with p = 0 by
  none.
  """
  prefix = num_bits = 0
  boundaries = enclose(_FIRST_PRECISION)
  while True:
    outcome = _certain_outcome(boundaries, prefix, num_bits)
    if outcome is not None:
      return outcome, num_bits
    if num_bits == boundaries.precision:
      boundaries = enclose(2 * boundaries.precision)
    prefix = prefix << 1 | source.bits(1)
    num_bits += 1


def uniform_below(count: int, source: entropy.BitSource) -> tuple[int, int]:
  """Draws a uniform integer in [0, count): floor(U count), once certain.

  Returns:
    (integer, number of bits read); at least ceil(log2(count)) bits.

  Formal guarantees: each integer has probability exactly 1 / count, for
  independent uniform bits.
  """
  num_bits = (count - 1).bit_length()
  prefix = source.bits(num_bits)
  while True:
    first = prefix * count >> num_bits
    last = (prefix + 1) * count - 1 >> num_bits
    if first == last:
      return first, num_bits
    prefix = prefix << 1 | source.bits(1)
    num_bits += 1


def _certain_outcome(
  boundaries: Boundaries, prefix: int, num_bits: int
) -> int | None:
  """Returns the outcome of every U in [prefix, prefix + 1) / 2^num_bits."""
  shift = boundaries.precision - num_bits
  begin, end = prefix << shift, prefix + 1 << shift
  outcome = bisect.bisect_left(boundaries.low, end)
  if outcome == len(boundaries.low):
    return None
  if outcome > 0 and boundaries.high[outcome - 1] > begin:
    return None
  return outcome
