"""Noisy versions of a long, sparse bit vector, without writing it down.

The vector has `size` bits, of which the sorted positions `ones` are 1. Noise
treats all zeros alike, so only how many of them come out must be drawn, and
then which: the law is that of the vector written out, in time and memory
proportional to `ones` plus the output.

  flip     each bit kept or set at random (a channel per bit)
  top      the `count` largest entries of bit + noise
  clipped  the positive entries of bit + Gaussian noise, capped at 1

>>> from privjax import prng
>>> rng = prng.generator(0, 'doctest')
>>> top(rng, np.array([3, 7]), 10**12, 2, noise='gaussian', scale=0.01)
array([3, 7])

Seeded simulations on private bits: never a release. What is private, and what
the result guarantees, is said by the mechanism that calls.
"""

from typing import Literal

import numpy as np
from scipy import special

from privjax import _validate

Noise = Literal['gaussian', 'laplace']
NOISES = ('gaussian', 'laplace')

MAX_SIZE = 2**61  # Positions and counts stay exact in int64.
MAX_ONES = 4_000_000


class OutputTooLargeError(ValueError):
  """An output would exceed the caller's bound. Nothing was drawn.

  Attributes:
    expected: the expected number of entries (a private number).
    limit: the bound.
  """

  def __init__(self, expected: float, limit: int):
    super().__init__(
      f'the output would have {expected:.4g} entries in expectation, more than '
      f'the limit of {limit}: raise the limit or use a smaller graph'
    )
    self.expected = expected
    self.limit = limit


def check_fits(expected: float, limit: int) -> None:
  """Raises an `OutputTooLargeError` if more than `limit` are expected."""
  if expected > limit:
    raise OutputTooLargeError(expected, limit)


def flip(
  rng: np.random.Generator,
  ones: np.ndarray,
  size: int,
  *,
  keep_prob: float,
  false_prob: float,
  max_ones: int = MAX_ONES,
) -> np.ndarray:
  """Sends every bit through its own channel.

  Args:
    rng: advanced.
    ones: `[M]` int64 positions of the ones, ascending. Private.
    size: number of bits, at most 2**61.
    keep_prob: probability that a 1 stays 1.
    false_prob: probability that a 0 becomes 1.
    max_ones: the largest expected output.

  Returns:
    Ascending int64 positions of the ones of the output.

  Raises:
    OutputTooLargeError: with the expected count, if that exceeds `max_ones`.
  """
  _check_bits(ones, size)
  num_zeros = size - len(ones)
  check_fits(len(ones) * keep_prob + num_zeros * false_prob, max_ones)
  kept = ones[rng.random(len(ones)) < keep_prob]
  num_false = int(rng.binomial(num_zeros, false_prob))
  return np.sort(np.append(kept, some_zeros(rng, ones, size, num_false)))


def top(
  rng: np.random.Generator,
  ones: np.ndarray,
  size: int,
  count: int,
  *,
  noise: Noise,
  scale: float,
  max_ones: int = MAX_ONES,
) -> np.ndarray:
  """Returns the positions of the `count` largest of bit + noise.

  The largest noises of the zeros are drawn in order by Renyi's representation
  of exponential order statistics; at most `count` of them can be in the answer.

  Args:
    rng: advanced.
    ones: `[M]` int64 positions of the ones, ascending. Private.
    size: number of bits, at most 2**61.
    count: how many to keep, in [0, size].
    noise: 'gaussian' (scale is the standard deviation) or 'laplace' (density
      proportional to exp(-|x| / scale)), independent per bit.
    scale: > 0.
    max_ones: the largest `count`.

  Returns:
    `[count]` int64 positions, ascending.

  Raises:
    OutputTooLargeError: if `count` exceeds `max_ones`.
  """
  _check_bits(ones, size)
  _validate.integer(0, size, count=count)
  _validate.one_of(NOISES, noise=noise)
  _validate.positive(scale=scale)
  check_fits(count, max_ones)
  num_zeros = size - len(ones)
  if noise == 'gaussian':
    own = rng.standard_normal(len(ones))
  else:
    own = rng.laplace(size=len(ones))
  best = _largest(rng, num_zeros, min(count, num_zeros), noise)
  values = np.concatenate([1 + scale * own, scale * best])
  kept = np.argsort(-values, kind='stable')[:count]
  is_one = kept < len(ones)
  zeros = some_zeros(rng, ones, size, int(np.sum(~is_one)))
  return np.sort(np.append(ones[kept[is_one]], zeros))


def clipped(
  rng: np.random.Generator,
  ones: np.ndarray,
  size: int,
  *,
  scale: float,
  max_ones: int = MAX_ONES,
) -> tuple[np.ndarray, np.ndarray]:
  """Returns the nonzero entries of clip(bit + N(0, scale^2), 0, 1).

  Args:
    rng: advanced.
    ones: `[M]` int64 positions of the ones, ascending. Private.
    size: number of bits, at most 2**61; half of the zeros come out positive.
    scale: standard deviation, > 0.
    max_ones: the largest expected output.

  Returns:
    Ascending int64 positions and their float64 values in (0, 1].

  Raises:
    OutputTooLargeError: with the expected count, if that exceeds `max_ones`.
  """
  _check_bits(ones, size)
  _validate.positive(scale=scale)
  num_zeros = size - len(ones)
  positive = special.ndtr(1 / scale)
  check_fits(len(ones) * positive + num_zeros / 2, max_ones)
  own = 1 + scale * rng.standard_normal(len(ones))
  num_false = int(rng.binomial(num_zeros, 0.5))
  position = np.append(ones[own > 0], some_zeros(rng, ones, size, num_false))
  false = scale * np.abs(rng.standard_normal(num_false))
  value = np.minimum(np.append(own[own > 0], false), 1)
  order = np.argsort(position)
  return position[order], value[order]


def some_zeros(
  rng: np.random.Generator, ones: np.ndarray, size: int, count: int
) -> np.ndarray:
  """Returns a uniformly random set of `count` zeros, ascending positions."""
  return unrank(_distinct(rng, size - len(ones), count), ones)


def unrank(rank: np.ndarray, excluded: np.ndarray) -> np.ndarray:
  """Returns the integers >= 0 that have these ranks once some are left out.

  Args:
    rank: int64, any shape.
    excluded: `[E]` int64, ascending, distinct: the integers left out.
  """
  before = excluded - np.arange(len(excluded))
  return rank + np.searchsorted(before, rank, side='right')


def _distinct(rng: np.random.Generator, bound: int, count: int) -> np.ndarray:
  """Returns a uniformly random set of `count` integers below `bound`."""
  if count > bound // 2:
    inside = np.ones(bound, bool)
    inside[_distinct(rng, bound, bound - count)] = False
    return np.flatnonzero(inside)
  found = np.zeros(0, np.int64)
  # Which draws collide does not depend on the labels of the integers, so every
  # set of the final size is equally likely.
  while len(found) < count:
    more = rng.integers(0, bound, size=count - len(found), dtype=np.int64)
    found = np.sort(np.append(found, more))
    # Not `np.unique`, whose hash table takes seconds for a million entries.
    found = found[np.diff(found, prepend=-1) > 0]
  return found


def _largest(
  rng: np.random.Generator, num_noises: int, count: int, noise: Noise
) -> np.ndarray:
  """Returns the `count` largest of `num_noises` standard noises, descending."""
  spacing = rng.standard_exponential(count) / (num_noises - np.arange(count))
  sums = np.cumsum(spacing)
  upper, lower = -np.expm1(-sums), np.exp(-sums)  # P(noise > x), P(noise <= x).
  is_tail = upper < 0.5
  tail = np.where(is_tail, upper, lower)
  if noise == 'gaussian':
    value = -special.ndtri(tail)
  else:
    value = -np.log(2 * tail)
  return np.where(is_tail, value, -value)


def _check_bits(ones: np.ndarray, size: int) -> None:
  _validate.integer(0, MAX_SIZE, size=size)
  _validate.shape((None,), ones=ones)
  ascending = len(ones) < 2 or (np.diff(ones) > 0).all()
  if ones.dtype != np.int64 or not ascending:
    raise ValueError(f'ones must be ascending int64 positions, got {ones!r}')
  if len(ones) and not 0 <= ones[0] <= ones[-1] < size:
    raise ValueError(f'ones must be in [0, {size}), got {ones!r}')
