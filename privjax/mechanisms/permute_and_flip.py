"""Permute-and-flip: its law, and an exact sampler (McKenna & Sheldon, 2020).

Visit the candidates in a uniformly random order and stop at the first one whose
coin, of probability p_i = exp(-epsilon (u_max - u_i) / (2 sensitivity)), comes
up:

  P(i) = p_i * integral over t in [0, 1] of prod_{j != i} (1 - p_j t) dt

with t the time at which i is visited when the times are uniform. A candidate of
the highest utility always stops it. Private input: the utilities.

>>> import numpy as np
>>> law = np.exp(log_law(np.array([0, 1]), epsilon=1, sensitivity=1))
>>> [f'{value:.10f}' for value in law]
['0.3032653299', '0.6967346701']
"""

from collections.abc import Iterator, Sequence
import fractions

import numpy as np

from privjax import types
from privjax.mechanisms import entropy
from privjax.mechanisms import exact
from privjax.mechanisms import grouping
from privjax.mechanisms import intervals
from privjax.mechanisms import inversion

Fraction = fractions.Fraction

_FIRST_PRECISION = 64
_NUM_NODES = 64  # Gauss-Legendre nodes of one panel.


def sample(
  utility: types.Array,
  *,
  levels: Sequence[int],
  epsilon: int | str | Fraction,
  sensitivity: int | str | Fraction,
  denominator: int = 1,
  source: entropy.BitSource | None = None,
) -> exact.Draw:
  """Draws a candidate from permute-and-flip's law, without rounding.

  Every candidate's coin is flipped, and the choice is uniform over those that
  came up: the first of them in a random order. So the number of coins is the
  number of candidates, whatever the utilities.

  Args:
    utility: `[C]` integers in units of 1 / denominator. The only private
      argument.
    levels: ascending integers: every value that a utility can take; public.
    epsilon: exact, in [2^-40, 10^4].
    sensitivity: exact bound > 0 on the change of the utility between neighbors.
    denominator: public D >= 1.
    source: bits for a replay, consumed. `None` reads the operating system, and
      only then is the draw certified.

  Returns:
    The draw.

  Raises:
    ValueError: as `exact.sample`, before any bit is read.
    entropy.EntropyError: if the operating system gives no bits.

  Formal guarantees:
    If `utility` changes by at most `sensitivity` between neighbors and all
    other arguments are public, `index` is epsilon-DP with delta = 0 (McKenna &
    Sheldon, 2020, Theorem 1), given independent uniform bits. Account for it by
    epsilon only: no bounded-range property is claimed, so the composition that
    the exponential mechanism enjoys through bounded range must not be used.

    Edge cases: every candidate has positive probability at every epsilon. One
    candidate: it is returned and no bit read. Not covered: time, as in
    `exact.sample`; the coins of the highest level read no bits.
  """
  scale = grouping.scale(epsilon, sensitivity, denominator)
  grouped = grouping.group(utility, levels)
  source = entropy.os_entropy() if source is None else source
  top = max(level for level, n in zip(grouped.levels, grouped.totals) if n)
  bits_used = 0
  accepted = []
  for level, total in zip(grouped.levels, grouped.totals):
    # Levels above the top are empty; their coins are never flipped.
    exponent = scale * max(top - level, 0)
    heads, num_bits = _flip(exponent, total, source)
    accepted.append(heads)
    bits_used += num_bits
  rank, num_bits = inversion.uniform_below(sum(accepted), source)
  bits_used += num_bits
  chosen = 0
  while rank >= accepted[chosen]:
    rank -= accepted[chosen]
    chosen += 1
  # Which candidates of a level came up is exchangeable: any of them.
  place, num_bits = inversion.uniform_below(grouped.totals[chosen], source)
  return exact.Draw(
    index=grouping.member(grouped, chosen, place),
    certified=entropy.is_certified(source),
    bits_used=bits_used + num_bits,
  )


def log_law(
  utility: types.Array,
  *,
  epsilon: int | str | Fraction,
  sensitivity: int | str | Fraction,
  denominator: int = 1,
) -> np.ndarray:
  """Returns the log probability of every candidate, `[C]` float64.

  The integral is a sum over panels [2^-k-1, 2^-k] that are fine where the
  integrand lives, around 1 / C. Relative error about 1e-12. For tables, audits
  and tests; arguments and errors as in `sample`.

  Formal guarantees: one draw from this law is epsilon-DP under the conditions
  of `sample`. The array itself is private: not for release.
  """
  scale = grouping.scale(epsilon, sensitivity, denominator)
  values = np.asarray(utility)
  levels = np.unique(values)
  grouped = grouping.group(values, levels.tolist())
  log_p = -float(scale) * (levels[-1] - levels).astype(np.float64)
  nodes, node_weights = _panels(len(values))
  log_tail = np.log1p(-np.exp(log_p)[:, None] * nodes)  # [L, nodes]
  log_all = np.asarray(grouped.totals, np.float64) @ log_tail
  integrals = np.exp(log_all - log_tail) @ node_weights
  return (log_p + np.log(integrals))[grouped.level]


def _flip(
  exponent: Fraction, count: int, source: entropy.BitSource
) -> tuple[int, int]:
  """Flips `count` coins of probability exp(-exponent): (heads, bits read).

  A coin is a uniform number below p. All coins read their next binary digit at
  once; those whose digit differs from p's are decided, about half of them. So a
  coin takes two bits on average, and only the number of ones matters.
  """
  if not exponent:
    return count, 0
  heads = num_bits = 0
  digits = _digits(exponent)
  while count:
    ones = source.bits(count).bit_count()
    num_bits += count
    if next(digits):
      heads += count - ones
      count = ones
    else:
      count -= ones
  return heads, num_bits


def _digits(exponent: Fraction) -> Iterator[int]:
  """Yields the binary digits of exp(-exponent) < 1 after the point.

  A digit is certain once both ends of an enclosure have it and all before it.
  As the number is irrational, every digit becomes certain.
  """
  place, precision = 0, _FIRST_PRECISION
  while True:
    interval = intervals.exp_neg(exponent, precision)
    low, high = intervals.fixed_point(interval, -precision)
    while place < precision:
      shift = precision - place - 1
      if low >> shift != high >> shift:
        break
      yield low >> shift & 1
      place += 1
    precision *= 2


def _panels(num_candidates: int) -> tuple[np.ndarray, np.ndarray]:
  """Returns nodes and weights of a rule on [0, 1]."""
  nodes, weights = np.polynomial.legendre.leggauss(_NUM_NODES)
  ends = 0.5 ** np.arange(num_candidates.bit_length() + 2)
  starts = np.append(ends[1:], 0.0)
  half = ((ends - starts) / 2)[:, None]
  middle = ((ends + starts) / 2)[:, None]
  return (middle + half * nodes).ravel(), (half * weights).ravel()
