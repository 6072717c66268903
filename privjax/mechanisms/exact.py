"""The exponential mechanism, sampled exactly: the one for certified releases.

  P(i) = w_i exp(epsilon u_i / (2 sensitivity)) / normalizer

with integer utilities over a public denominator and public integer weights
(McSherry & Talwar, 2007). Only integers and fractions are used. Candidates of
equal utility form a level: first a level is drawn by inversion, from certified
enclosures of the levels' weights and as many random bits as the decision
needs, then a candidate of the level by its integer weight.

Private input: the utilities. Public: everything else. Released: the index.

>>> import numpy as np
>>> from privjax.mechanisms import entropy
>>> settings = dict(levels=(0, 1), epsilon=1, sensitivity=1)
>>> sample(np.array([0, 1]), **settings, source=entropy.injected('00'))
Draw(index=0, certified=False, bits_used=2)
>>> sample(np.array([0, 1]), **settings, source=entropy.injected('1'))
Draw(index=1, certified=False, bits_used=1)
>>> sample(np.array([0, 1]), **settings).certified
True
"""

from collections.abc import Sequence
import dataclasses
import fractions
import itertools

from privjax import types
from privjax.mechanisms import entropy
from privjax.mechanisms import grouping
from privjax.mechanisms import intervals
from privjax.mechanisms import inversion

Fraction = fractions.Fraction

_GUARD_BITS = 16  # Width only; no bound depends on it.


@dataclasses.dataclass(frozen=True)
class Draw:
  """One draw.

  Attributes:
    index: the candidate. The only field that the guarantee is about.
    certified: whether the bits came from the operating system; public.
    bits_used: how many bits were read. It depends on the private utilities and
      on the draw. Not for release.
  """

  index: int
  certified: bool
  bits_used: int


def sample(
  utility: types.Array,
  *,
  levels: Sequence[int],
  epsilon: int | str | Fraction,
  sensitivity: int | str | Fraction,
  denominator: int = 1,
  weights: types.Array | None = None,
  source: entropy.BitSource | None = None,
) -> Draw:
  """Draws a candidate from the exponential mechanism's law, without rounding.

  Args:
    utility: `[C]` integers in units of 1 / denominator. The only private
      argument.
    levels: ascending integers: every value that a utility can take on any
      private input, in the same units (a `range` will do). Public: the number
      of steps depends on it and not on the levels that occur.
    epsilon: exact, in [2^-40, 10^4].
    sensitivity: exact bound > 0 on the change of the utility between neighbors.
    denominator: public D >= 1.
    weights: `[C]` public integers >= 0 (a base measure), of sum below 2^63; 0
      is off the support. `None` means all one.
    source: bits for a replay, consumed. `None` reads the operating system, and
      only then is the draw certified.

  Returns:
    The draw.

  Raises:
    ValueError: before any bit is read, on a utility array that is empty, not
      1-D, not of integers or not within the levels; on weights that are
      negative, all zero or of another shape; on epsilon, sensitivity or
      denominator out of range, not finite or bool.
    entropy.EntropyError: if the operating system gives no bits. Nothing is
      drawn, and no other generator stands in.

  Formal guarantees:
    If `utility` changes by at most `sensitivity` between neighbors and all
    other arguments are public, `index` is epsilon-DP with delta = 0, for
    whatever relation the sensitivity is stated (McSherry & Talwar, 2007,
    Theorem 6), given independent uniform bits. The law is exact: the
    probability of every candidate is the formula's real number, so the
    guarantee is that of the theorem, not of an approximation of it.

    Edge cases: a candidate of positive weight has positive probability at every
    epsilon, and one of weight 0 has none. Equal utilities with equal weights
    have equal probabilities. One candidate: it is returned and no bit read.

    Not covered: time. Two things depend on private utilities: how many bits
    are read (and so how far the enclosures are refined), and the size of the
    integers, by the weight of the drawn level. Array operations and loops have
    lengths given by C and `levels`.
  """
  scale = grouping.scale(epsilon, sensitivity, denominator)
  grouped = grouping.group(utility, levels, weights)
  source = entropy.os_entropy() if source is None else source
  level, level_bits = inversion.choose(
    lambda precision: _boundaries(grouped, scale, precision), source
  )
  rank, rank_bits = inversion.uniform_below(grouped.totals[level], source)
  return Draw(
    index=grouping.member(grouped, level, rank),
    certified=entropy.is_certified(source),
    bits_used=level_bits + rank_bits,
  )


def _boundaries(
  grouped: grouping.Grouped, scale: Fraction, precision: int
) -> inversion.Boundaries:
  """Encloses the cumulative law over levels, ascending.

  With A the weight of levels up to i and B that of the others, the boundary
  A / (A + B) increases in A and decreases in B. So the lower end of A with the
  upper end of B bounds it from below, and the reverse from above.
  """
  # The sum is public. A heavy level far below the top would lose these bits.
  num_bits = precision + _GUARD_BITS + sum(grouped.totals).bit_length()
  factors = _factors(grouped.levels, scale, num_bits)
  pairs = _level_weights(grouped.totals, factors, num_bits)
  sums = list(itertools.accumulate(pairs, _add))
  all_low, all_high = sums[-1]
  low, high = [], []
  for up_to_low, up_to_high in sums:
    rest_low, rest_high = all_low - up_to_low, all_high - up_to_high
    low.append((up_to_low << precision) // (up_to_low + rest_high))
    high.append(-(-(up_to_high << precision) // (up_to_high + rest_low)))
  return inversion.Boundaries(low, high, precision)


def _factors(
  levels: list[int], scale: Fraction, num_bits: int
) -> list[intervals.Interval]:
  """Encloses exp(scale (level - top level)) for ascending public levels.

  A factor is the product over the steps between it and the top; equal steps
  share one exponential.
  """
  num_bits += len(levels).bit_length()
  steps = [a - b for a, b in itertools.pairwise(reversed(levels))]
  exponential = {
    step: intervals.exp_neg(scale * step, num_bits) for step in set(steps)
  }
  factors = [intervals.Interval(1, 1, 0)]
  for step in steps:
    longer = intervals.product(factors[-1], exponential[step])
    factors.append(intervals.cut(longer, num_bits))
  return factors[::-1]


def _level_weights(
  totals: list[int], factors: list[intervals.Interval], num_bits: int
) -> list[tuple[int, int]]:
  """Encloses total * factor in a common unit.

  The unit is fixed by the highest level that occurs, whose factor keeps at
  least `num_bits` bits; the law depends on ratios only.
  """
  top = max(i for i, total in enumerate(totals) if total)
  anchor = factors[top].exponent + factors[top].low.bit_length() - num_bits
  pairs = []
  for total, factor in zip(totals, factors):
    # Above the top every total is 0, and the shift might be astronomic.
    low, high = intervals.fixed_point(factor, anchor) if total else (0, 0)
    pairs.append((total * low, total * high))
  return pairs


def _add(a: tuple[int, int], b: tuple[int, int]) -> tuple[int, int]:
  return a[0] + b[0], a[1] + b[1]
