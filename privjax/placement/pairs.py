"""Numbering of the unordered pairs of nodes: (0, 1), (0, 2), ..., (N-2, N-1).

The upper triangle of the adjacency, row by row, is a vector of N (N - 1) / 2
bits, one per unordered pair: a graph-level mechanism adds noise to that vector,
once per pair. Both directions are exact in int64.

>>> index = index_of(np.array([[0, 1], [0, 3], [2, 3]]), 4)
>>> index.tolist(), pair_at(index, 4).tolist()
([0, 2, 5], [[0, 1], [0, 3], [2, 3]])

The number of nodes is public; which pairs are edges is not.
"""

import numpy as np

from privjax import _validate

MAX_NODES = 2**31  # Then every product below stays under 2**63.


def num_pairs(num_nodes: int) -> int:
  """Returns N (N - 1) / 2."""
  _validate.integer(1, MAX_NODES, num_nodes=num_nodes)
  return num_nodes * (num_nodes - 1) // 2


def index_of(pairs: np.ndarray, num_nodes: int) -> np.ndarray:
  """Returns the `[P]` int64 numbers of `[P, 2]` int64 pairs, i < j."""
  num_pairs(num_nodes)
  first, second = pairs[:, 0], pairs[:, 1]
  return _row_start(first, num_nodes) + second - first - 1


def pair_at(index: np.ndarray, num_nodes: int) -> np.ndarray:
  """Returns the `[P, 2]` int64 pairs with these numbers, i < j."""
  # From the end, rows start at the triangular numbers t (t + 1) / 2: there the
  # root of a float64 is off by less than one.
  from_end = num_pairs(num_nodes) - 1 - np.asarray(index, np.int64)
  row = ((np.sqrt(8.0 * from_end + 1) - 1) / 2).astype(np.int64)
  row -= row * (row + 1) // 2 > from_end
  row += (row + 1) * (row + 2) // 2 <= from_end
  first = num_nodes - 2 - row
  second = num_nodes - 1 - (from_end - row * (row + 1) // 2)
  return np.stack([first, second], axis=1)


def _row_start(first: np.ndarray, num_nodes: int) -> np.ndarray:
  return first * (2 * num_nodes - first - 1) // 2
