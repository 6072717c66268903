"""Canonical undirected graphs, and who may see them.

A `Graph` stores each undirected edge once as a pair (i < j), sorted, beside
the CSR neighbor lists that every computation reads. `PrivateGraph` and
`Snapshot` wrap it: functions that build a support take a `Snapshot`, functions
that score take a `PrivateGraph`, so a signature shows what it can reach.

>>> graph, counts = from_pairs(4, [[1, 0], [0, 1], [2, 2], [1, 2], [3, 2]])
>>> graph.pairs.tolist(), graph.degree.tolist()
([[0, 1], [1, 2], [2, 3]], [1, 2, 2, 1])
>>> counts
CanonicalCounts(self_loops=1, duplicates=1)
"""

import dataclasses
import functools
from typing import Literal, NamedTuple

import numpy as np

from privjax import _validate
from privjax import types


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class Graph:
  """An undirected simple graph on nodes 0..N-1 (arrays are not modified).

  Attributes:
    num_nodes: N, public.
    pairs: `[M, 2]` int64, i < j, sorted by i then j.
    indptr: `[N+1]` int64, offsets of the neighbor lists.
    indices: `[2M]` int64, neighbor lists, ascending within a node.
    degree: `[N]` int64, number of neighbors (no self-loop counted).
  """

  num_nodes: int
  pairs: np.ndarray
  indptr: np.ndarray
  indices: np.ndarray
  degree: np.ndarray

  @property
  def num_edges(self) -> int:
    """M, the number of undirected edges."""
    return self.pairs.shape[0]

  def neighbors(self, node: int) -> np.ndarray:
    """Returns the ascending neighbor ids of `node`, `[degree]` int64."""
    _validate.integer(0, self.num_nodes - 1, node=node)
    return self.indices[self.indptr[node] : self.indptr[node + 1]]

  def padded_neighbors(
    self, nodes: types.Array | int, width: int
  ) -> tuple[np.ndarray, np.ndarray]:
    """Returns the lowest `width` neighbors of each node, padded with 0.

    Shapes and the number of steps depend on `nodes` and `width` only.

    Args:
      nodes: `[...]` node ids.
      width: neighbors kept per node, >= 0.

    Returns:
      `[..., width]` int64 ids, ascending, and `[..., width]` bool, which of
      them are neighbors.
    """
    _validate.integer(0, width=width)
    column = np.arange(width)
    valid = column < np.expand_dims(self.degree[nodes], -1)
    slot = np.expand_dims(self.indptr[nodes], -1) + column
    last = max(len(self.indices) - 1, 0)
    ids = np.append(self.indices, 0)[np.minimum(slot, last)]
    return np.where(valid, ids, 0), valid

  def has_pairs(self, pairs: types.Array) -> np.ndarray:
    """Returns `[...]` bool: which of the `[..., 2]` pairs are edges."""
    pairs = np.asarray(pairs)
    if not np.issubdtype(pairs.dtype, np.integer):
      raise ValueError(f'pairs must hold integer node ids, got {pairs.dtype}')
    _check_ids(self.num_nodes, pairs)
    pairs = pairs.astype(np.int64)
    low, high = pairs.min(axis=-1), pairs.max(axis=-1)
    codes = low * self.num_nodes + high
    own = self._codes
    slot = np.minimum(np.searchsorted(own, codes), max(len(own) - 1, 0))
    return own[slot] == codes if len(own) else np.zeros(codes.shape, bool)

  @functools.cached_property
  def _codes(self) -> np.ndarray:
    """`[M]` int64, i * N + j of the pairs, ascending."""
    return self.pairs[:, 0] * self.num_nodes + self.pairs[:, 1]


@dataclasses.dataclass(frozen=True)
class PrivateGraph:
  """The data owner's graph: its edge set is the secret.

  Node ids are public; `graph.pairs` and everything computed from it are not.
  """

  graph: Graph


@dataclasses.dataclass(frozen=True)
class Snapshot:
  """A public graph, disclosed before and independently of the private one.

  Attributes:
    graph: the disclosed graph, on the private graph's node ids.
    origin: 'external' if it really was disclosed; 'simulated' if an experiment
      sampled it from the private graph, in which case no release that uses it
      can be certified.
  """

  graph: Graph
  origin: Literal['external', 'simulated']

  def __post_init__(self):
    _validate.one_of(('external', 'simulated'), origin=self.origin)


class CanonicalCounts(NamedTuple):
  """What canonicalization dropped: `self_loops` and `duplicates` (rows)."""

  self_loops: int
  duplicates: int


def from_pairs(
  num_nodes: int, pairs: types.Array | list
) -> tuple[Graph, CanonicalCounts]:
  """Builds the canonical graph of any list of pairs.

  Both orientations of a pair are one edge. Self-loops and repeats are dropped
  and counted.

  Args:
    num_nodes: N >= 1.
    pairs: `[P, 2]` integer node ids in [0, N).

  Returns:
    The graph and the counts of dropped rows.

  Raises:
    ValueError: if `pairs` has another shape, is not integer, or has an id
      outside [0, N).
  """
  _validate.integer(1, num_nodes=num_nodes)
  pairs = np.asarray(pairs)
  if pairs.size == 0:
    pairs = np.zeros((0, 2), np.int64)
  _validate.shape((None, 2), pairs=pairs)
  if not np.issubdtype(pairs.dtype, np.integer):
    raise ValueError(f'pairs must hold integer node ids, got {pairs.dtype}')
  _check_ids(num_nodes, pairs)
  pairs = np.sort(pairs.astype(np.int64), axis=1)
  is_loop = pairs[:, 0] == pairs[:, 1]
  codes = pairs[~is_loop] @ np.array([num_nodes, 1])
  # Not `np.unique`, whose hash table takes seconds for a million codes.
  unique = np.sort(codes)
  unique = unique[np.diff(unique, prepend=-1) > 0]
  counts = CanonicalCounts(int(is_loop.sum()), len(codes) - len(unique))
  return _from_codes(num_nodes, unique), counts


def toggle_pair(graph: Graph, pair: tuple[int, int]) -> Graph:
  """Returns the neighboring graph: `pair` is removed if present, else added."""
  first, second = pair
  within = lambda node: (
    isinstance(node, (int, np.integer)) and 0 <= node < graph.num_nodes
  )
  if not (within(first) and within(second)) or first == second:
    raise ValueError(
      f'pair must be two nodes of the graph (two ids in [0, '
      f'{graph.num_nodes})), got {pair!r}'
    )
  i, j = sorted((int(first), int(second)))
  code = np.array([i * graph.num_nodes + j])
  return _from_codes(graph.num_nodes, np.setxor1d(graph._codes, code))


def subgraph_of_edges(graph: Graph, edge_index: types.Array) -> Graph:
  """Returns the graph on the same nodes with the edges at `edge_index`.

  Args:
    graph: the whole graph.
    edge_index: `[E]` distinct rows of `graph.pairs`, or a `[M]` bool mask.

  Raises:
    ValueError: if an index repeats or is not in [0, M).
  """
  index = np.asarray(edge_index)
  if index.dtype == bool:
    _validate.shape((graph.num_edges,), edge_index=index)
    index = np.flatnonzero(index)
  elif index.size and not np.issubdtype(index.dtype, np.integer):
    raise ValueError(f'edge_index must be integers, got {index.dtype}')
  index = index.astype(np.int64)
  inside = (index >= 0) & (index < graph.num_edges)
  if not inside.all() or len(np.unique(index)) < len(index):
    raise ValueError(
      f'edge_index must be distinct and in [0, {graph.num_edges})'
    )
  return _from_codes(graph.num_nodes, np.sort(graph._codes[index]))


def _check_ids(num_nodes: int, pairs: np.ndarray) -> None:
  num_outside = int(np.count_nonzero((pairs < 0) | (pairs >= num_nodes)))
  if num_outside:
    raise ValueError(
      f'pairs must hold node ids in [0, {num_nodes}), got {num_outside} ids '
      'outside'
    )


def _from_codes(num_nodes: int, codes: np.ndarray) -> Graph:
  """Builds a graph from sorted unique codes i * N + j with i < j."""
  pairs = np.stack([codes // num_nodes, codes % num_nodes], axis=1)
  both = np.concatenate([pairs, pairs[:, ::-1]])
  order = np.lexsort((both[:, 1], both[:, 0]))
  degree = np.bincount(both[:, 0], minlength=num_nodes)
  return Graph(
    num_nodes=num_nodes,
    pairs=pairs,
    indptr=np.concatenate([[0], np.cumsum(degree)]),
    indices=both[order, 1],
    degree=degree,
  )
