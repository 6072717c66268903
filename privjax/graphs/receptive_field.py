"""The padded k-hop ball around one node, with full-graph degrees.

A two-hop *induced* subgraph is not exact for a GCN: a node at distance two
normalizes by its degree in the whole graph, which the subgraph undercounts.
`ReceptiveField.boundary_degree` carries the true degrees.

>>> from privjax.graphs import graph as graph_lib
>>> path, _ = graph_lib.from_pairs(4, [[0, 1], [1, 2], [2, 3]])
>>> size = Capacity(num_nodes=4, num_edges=6)
>>> field = extract_receptive_field(path, 0, num_hops=2, capacity=size)
>>> field.node_ids.tolist(), field.boundary_degree.tolist()
([0, 1, 2, -1], [1, 2, 2, 0])
"""

from typing import NamedTuple

import jraph
import numpy as np
import scipy.sparse

from privjax import _validate
from privjax.graphs import graph as graph_lib
from privjax.graphs import message_graph


class Capacity(NamedTuple):
  """Static sizes of a padded field: `num_nodes` and `num_edges` (directed)."""

  num_nodes: int
  num_edges: int


class ReceptiveField(NamedTuple):
  """The subgraph that determines one node's logits (private, not for release).

  Attributes:
    graph: the ball as a `jraph.GraphsTuple`: `nodes` None, `edges['mask']`
      `[e]` (1.0 real, 0.0 padding), `senders` and `receivers` `[e]` local ids.
    target_index: local id of the target, int.
    node_ids: `[n]` int64 node ids, ascending; -1 on padding.
    boundary_degree: `[n]` int64 degrees in the whole graph; 0 on padding.
  """

  graph: jraph.GraphsTuple
  target_index: int
  node_ids: np.ndarray
  boundary_degree: np.ndarray


def extract_receptive_field(
  graph: graph_lib.Graph,
  target: int,
  *,
  num_hops: int,
  capacity: Capacity | None = None,
  truncate: bool = False,
) -> ReceptiveField:
  """Extracts the ball of radius `num_hops` around `target`.

  Args:
    graph: the whole graph. Private edges reach the result: not for release.
    target: node id in [0, N).
    num_hops: radius, >= 0.
    capacity: the padded sizes. Shapes are observable, so a release passes one
      public capacity; `None` pads to the exact, private size and is only for
      experiments and tests.
    truncate: cuts a ball that exceeds `capacity` instead of raising, as a
      release has to (an error would tell its size): the nodes nearest to the
      target stay, lower ids first, then the edges lowest in order. Degrees stay
      those of the whole graph.

  Raises:
    ValueError: if `target` is not in the graph or the ball exceeds `capacity`
      and `truncate` is false.
  """
  _validate.integer(0, graph.num_nodes - 1, target=target)
  _validate.integer(0, num_hops=num_hops)
  for size in capacity or ():
    _validate.integer(0, capacity=size)
  most = capacity.num_nodes if capacity is not None and truncate else None
  node_ids = _ball(graph, target, num_hops, most)
  senders, receivers = _induced_edges(graph, node_ids)
  if capacity is not None and truncate:
    senders = senders[: capacity.num_edges]
    receivers = receivers[: capacity.num_edges]
  size = Capacity(len(node_ids), len(senders))
  capacity = size if capacity is None else capacity
  if size.num_nodes > capacity.num_nodes or size.num_edges > capacity.num_edges:
    raise ValueError(f'capacity must cover the receptive field, got {capacity}')
  pad_nodes = capacity.num_nodes - size.num_nodes
  pad_edges = (0, capacity.num_edges - size.num_edges)
  last = capacity.num_nodes - 1
  return ReceptiveField(
    graph=message_graph.graphs_tuple(
      num_nodes=capacity.num_nodes,
      nodes=None,
      edges={'mask': np.pad(np.ones(size.num_edges), pad_edges)},
      # Padding edges join the last node to itself: receivers stay sorted.
      senders=np.pad(senders, pad_edges, constant_values=last),
      receivers=np.pad(receivers, pad_edges, constant_values=last),
    ),
    target_index=int(np.searchsorted(node_ids, target)),
    node_ids=np.pad(node_ids, (0, pad_nodes), constant_values=-1),
    boundary_degree=np.pad(graph.degree[node_ids], (0, pad_nodes)),
  )


def field_features(
  field: ReceptiveField, features: scipy.sparse.csr_array
) -> np.ndarray:
  """Returns the feature rows of a field's nodes, `[n, F]` dense float64.

  Args:
    field: the padded field; padding gets rows of zeros.
    features: `[N, F]` features of the whole graph.
  """
  real = field.node_ids >= 0
  rows = features[np.where(real, field.node_ids, 0)].toarray()
  return rows * real[:, None].astype(np.float64)


def neighbor_lists(
  graph: graph_lib.Graph, nodes: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
  """Returns the concatenated neighbor lists of `nodes` and their lengths."""
  lengths = graph.degree[nodes]
  starts = np.repeat(
    graph.indptr[nodes] - np.cumsum(lengths) + lengths, lengths
  )
  return graph.indices[starts + np.arange(lengths.sum())], lengths


def _ball(
  graph: graph_lib.Graph, target: int, num_hops: int, most: int | None
) -> np.ndarray:
  """Returns the ascending ids of the ball, or of its `most` nearest nodes."""
  ball = np.array([target], np.int64)
  for _ in range(num_hops):
    beyond = np.setdiff1d(neighbor_lists(graph, np.sort(ball))[0], ball)
    ball = np.concatenate([ball, beyond])
  return np.sort(ball[:most])


def _induced_edges(graph, node_ids):
  """Returns local (senders, receivers), sorted by receiver, then sender."""
  neighbors, lengths = neighbor_lists(graph, node_ids)
  receivers = np.repeat(np.arange(len(node_ids)), lengths)
  senders = np.minimum(np.searchsorted(node_ids, neighbors), len(node_ids) - 1)
  inside = node_ids[senders] == neighbors
  return senders[inside], receivers[inside]
