"""Cells of equal rows, and frequent antecedents (Agrawal and Srikant 1994).

Rules see a row only through its items, so equal rows are merged into cells with
class counts first: COMPAS has 6,479 rows and a few hundred cells.

>>> from privjax.rules import items as items_lib
>>> items = items_lib.Items(names=('a', 'b', 'c'), features=('a', 'b', 'c'))
>>> binary = np.array([[1, 1, 0], [1, 0, 0], [0, 1, 0], [0, 0, 0], [0, 0, 0]])
>>> cells = compress(binary, np.array([1, 1, 1, -1, 1]), items)
>>> cells.counts.tolist()
[[1, 1], [0, 1], [0, 1], [0, 1]]
>>> mined = mine(cells, items, min_support=0.2, max_items=2)
>>> mined.items, mined.supports
(((0,), (1,), (0, 1)), (2, 2, 1))

The rows are private, and so is what is frequent in them.
"""

from collections.abc import Iterator
import math
from typing import NamedTuple

import numpy as np

from privjax import _validate
from privjax import types
from privjax.rules import items as items_lib


class Cells(NamedTuple):
  """K distinct rows. Not for release.

  Attributes:
    binary: `[K, C]` bool, in lexicographic order.
    counts: `[K, 2]` int64, the rows of class (-1, +1) in each cell.
  """

  binary: np.ndarray
  counts: np.ndarray


class Antecedents(NamedTuple):
  """M antecedents of different extents. Not for release.

  Attributes:
    items: for each antecedent its increasing columns; sorted by their number,
      then by the columns.
    extents: for each antecedent the cells it holds in, as bits: cell k is bit
      k of the integer.
    supports: for each antecedent its number of rows.
    num_duplicates: frequent antecedents left out, see `mine`.
  """

  items: tuple[tuple[int, ...], ...]
  extents: tuple[int, ...]
  supports: tuple[int, ...]
  num_duplicates: int


def compress(
  binary: types.Array, labels: types.Array, items: items_lib.Items
) -> Cells:
  """Merges equal rows.

  Args:
    binary: `[n, C]` of 0 and 1, n >= 1. Private.
    labels: `[n]` in {-1, +1}. Private.
    items: the C items.

  Raises:
    ValueError: on another shape or other entries.
  """
  binary, labels = np.asarray(binary), np.asarray(labels)
  _validate.shape((None, len(items.names)), binary=binary)
  if len(binary) == 0:
    raise ValueError('binary must have at least one row, got 0')
  if not np.all((binary == 0) | (binary == 1)):
    raise ValueError('binary must hold 0 and 1 only')
  _validate.shape((len(binary),), labels=labels)
  if not np.all((labels == 1) | (labels == -1)):
    raise ValueError('labels must be -1 or +1')
  # Eight columns a byte: the sort is most of the work.
  packed = np.packbits(binary.astype(bool), axis=1)
  _, first, inverse = np.unique(
    packed, axis=0, return_index=True, return_inverse=True
  )
  cell = inverse.ravel()
  counts = [
    np.bincount(cell[labels == c], minlength=len(first)) for c in (-1, 1)
  ]
  return Cells(binary[first].astype(bool), np.stack(counts, axis=1))


def mine(
  cells: Cells,
  items: items_lib.Items,
  *,
  min_support: float = 0.05,
  max_items: int = 2,
) -> Antecedents:
  """Returns the antecedents that hold in at least a part of the rows.

  Of antecedents that hold in the same rows only the first is kept: the one with
  the fewest items, then the lowest columns. One that holds in every row is the
  default by another name and is left out too. Neither can change what a list
  decides on these rows, but both would count in the prior of rule lists.

  Args:
    cells: private.
    items: the C items. Two of one feature never combine, even where both hold.
    min_support: the least part of the n rows, in (0, 1].
    max_items: the most items in one antecedent, >= 1.

  Raises:
    ValueError: naming the argument that is out of range.
  """
  _validate.fraction_of_one(min_support=min_support)
  _validate.integer(1, max_items=max_items)
  weights = cells.counts.sum(axis=1)
  part = _validate.rational(min_support=min_support)
  least = math.ceil(part * int(weights.sum()))  # At least 1, as n >= 1.
  seen, kept, num_frequent = {to_bits(weights > 0)}, [], 0
  for itemset, mask in _frequent(cells, items.features, least, max_items):
    num_frequent += 1
    extent = to_bits(mask)
    if extent not in seen:
      seen.add(extent)
      kept.append((itemset, extent, int(weights @ mask)))
  return Antecedents(
    items=tuple(itemset for itemset, _, _ in kept),
    extents=tuple(extent for _, extent, _ in kept),
    supports=tuple(support for _, _, support in kept),
    num_duplicates=num_frequent - len(kept),
  )


def to_bits(mask: np.ndarray) -> int:
  """Returns `[K]` bool as an integer whose bit k is mask[k]."""
  packed = np.packbits(mask, bitorder='little')
  return int.from_bytes(packed.tobytes(), 'little')


def from_bits(bits: int, size: int) -> np.ndarray:
  """Returns the `[size]` bool that `to_bits` gave `bits` for."""
  packed = np.frombuffer(bits.to_bytes(-(-size // 8), 'little'), np.uint8)
  return np.unpackbits(packed, count=size, bitorder='little').astype(bool)


def _frequent(cells, features, least, max_items) -> Iterator[tuple]:
  """Yields (columns, `[K]` mask), fewer items first, columns in order."""
  weights = cells.counts.sum(axis=1)
  singles = [((c,), mask) for c, mask in enumerate(cells.binary.T)]
  singles = [s for s in singles if weights @ s[1] >= least]
  level = singles
  for size in range(1, max_items + 1):
    yield from level
    if size < max_items:
      level = list(_extended(level, singles, features, weights, least))


def _extended(level, singles, features, weights, least) -> Iterator[tuple]:
  for itemset, mask in level:
    used = {features[column] for column in itemset}
    for (column,), other in singles:
      # Columns only increase, so every itemset is made once.
      if column <= itemset[-1] or features[column] in used:
        continue
      both = mask & other
      if weights @ both >= least:
        yield (*itemset, column), both
