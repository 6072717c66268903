"""Candidates grouped by utility level: bookkeeping of the exact samplers.

Arrays hold integers only. Every array operation has the length of the public
support or of the public set of levels, whatever the private utilities are.
"""

from collections.abc import Sequence
import fractions
from typing import NamedTuple

import numpy as np

from privjax import _validate
from privjax import types

Fraction = fractions.Fraction

MIN_EPSILON = Fraction(1, 2**40)
MAX_EPSILON = Fraction(10**4)

_MAX_LEVEL = 2**61  # The difference of two levels fits in 64 bits.
_MAX_TOTAL = 2**63 - 1
_MAX_TABLE = 2**20  # Entries of a direct map from utility to level.


class Grouped(NamedTuple):
  """A support sorted into levels. Private, not for release.

  Attributes:
    levels: the public levels, as Python ints.
    level: `[C]` position of each candidate's utility in the public levels.
    weights: `[C]` int64 public weights, or `None` for all one.
    totals: one Python int per public level: the weight of its candidates.
  """

  levels: list[int]
  level: np.ndarray
  weights: np.ndarray | None
  totals: list[int]


def group(
  utility: types.Array,
  levels: Sequence[int],
  weights: types.Array | None = None,
) -> Grouped:
  """Sorts private utilities into public levels.

  Args:
    utility: `[C]` integers; the only private argument.
    levels: every value that a utility can take, ascending; public.
    weights: `[C]` public integers >= 0, or `None` for all one.

  Raises:
    ValueError: if an array is empty, not 1-D or not of integers, if the levels
      are not ascending, if a weight is negative or their sum is 0 or above
      2^63 - 1, or if a utility is not a level: then the public levels are
      wrong. No message holds a private value.
  """
  utility = _integers(utility=utility)
  known = _levels(levels)
  if weights is not None:
    _validate.shape(utility.shape, weights=weights)
    weights = _integers(weights=weights)
    _check_weights(weights)
  level = _level_of(utility, known)
  if weights is None:
    totals = np.bincount(level, minlength=len(known))
  else:
    totals = np.zeros(len(known), np.int64)
    np.add.at(totals, level, weights)
  return Grouped(known.tolist(), level, weights, totals.tolist())


def member(grouped: Grouped, level: int, rank: int) -> int:
  """Returns the candidate of a level that holds the unit of weight `rank`.

  Args:
    grouped: the support.
    level: position of a level with a positive total.
    rank: in [0, total of the level).

  Returns:
    The first candidate whose cumulative weight within the level exceeds
    `rank`: over uniform ranks, each has probability weight / total.
  """
  inside = grouped.level == level
  if grouped.weights is None:
    cumulative = np.cumsum(inside, dtype=np.int64)
  else:
    cumulative = np.cumsum(np.where(inside, grouped.weights, 0))
  return int(np.searchsorted(cumulative, rank, side='right'))


def scale(
  epsilon: int | str | Fraction,
  sensitivity: int | str | Fraction,
  denominator: int,
) -> Fraction:
  """Returns epsilon / (2 sensitivity denominator), checked and exact.

  Raises:
    ValueError: if epsilon is not in [2^-40, 10^4], or sensitivity or
      denominator is not a finite number > 0.
  """
  exact = _validate.rational(epsilon=epsilon)
  if not MIN_EPSILON <= exact <= MAX_EPSILON:
    raise ValueError(f'epsilon must be in [2**-40, 10**4], got {epsilon!r}')
  bound = _validate.rational(sensitivity=sensitivity)
  _validate.integer(1, denominator=denominator)
  return Fraction(exact, 2 * bound * int(denominator))


def _integers(**kwargs) -> np.ndarray:
  """Returns the value as a 1-D, non-empty int64 array."""
  ((name, value),) = kwargs.items()
  array = np.asarray(value)
  is_integer = np.issubdtype(array.dtype, np.integer)
  fits = is_integer and np.can_cast(array.dtype, np.int64)  # No wrap.
  if array.ndim != 1 or not array.size or not fits:
    raise ValueError(
      f'{name} must be a non-empty 1-D array of integers within int64, got '
      f'shape {array.shape} and dtype {array.dtype}'
    )
  return array.astype(np.int64, copy=False)


def _levels(levels: Sequence[int]) -> np.ndarray:
  known = _integers(levels=levels)
  if (known[1:] <= known[:-1]).any():
    raise ValueError('levels must be ascending, without repetition')
  if known[0] < -_MAX_LEVEL or known[-1] > _MAX_LEVEL:
    raise ValueError('levels must be in [-2**61, 2**61]')
  return known


def _check_weights(weights: np.ndarray) -> None:
  if weights.min() < 0:
    raise ValueError(f'weights must be >= 0, got {int(weights.min())}')
  # Sums of the halves of up to 2^31 weights fit in 64 bits.
  high, low = weights >> 32, weights & (2**32 - 1)
  total = (int(high.sum()) << 32) + int(low.sum())
  if not 0 < total <= _MAX_TOTAL:
    raise ValueError(f'weights must sum to 1 to 2**63 - 1, got {total}')


def _level_of(utility: np.ndarray, known: np.ndarray) -> np.ndarray:
  """Returns `[C]` positions in `known`, or raises without a private value."""
  first, last = int(known[0]), int(known[-1])
  inside = first <= int(utility.min()) and int(utility.max()) <= last
  if inside and last - first < _MAX_TABLE:
    table = np.full(last - first + 1, -1, np.int64)
    table[known - first] = np.arange(len(known))
    position = table[utility - first]
    inside = int(position.min()) >= 0
  elif inside:
    position = np.searchsorted(known, utility)
    inside = bool((known[position] == utility).all())
  if not inside:
    raise ValueError(
      'every utility must be one of levels; nothing was drawn. The levels are '
      'public: name all values that any private input can lead to'
    )
  return position
