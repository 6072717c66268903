"""What a graph-level mechanism puts in the place of the private graph.

>>> import fractions
>>> graph, _ = graphs.from_pairs(3, [[0, 1], [1, 2]])
>>> guarantee = types.PrivacyGuarantee(
...   epsilon=fractions.Fraction(1),
...   relation=types.NeighboringRelation.ADD_REMOVE_ONE_EDGE,
...   theorem='an example',
... )
>>> noisy = NoisyGraph(
...   graph=graph, weights=np.array([1.0, 0.5]), guarantee=guarantee
... )
>>> noisy.degree.tolist(), noisy.certified
([1.0, 1.5, 0.5], False)

A noisy graph whose guarantee names an epsilon could be published at that price,
had it been drawn by a certified sampler. These are seeded simulations.
"""

import dataclasses
import functools
from typing import Any

import numpy as np

from privjax import _validate
from privjax import graphs
from privjax import types
from privjax.graphs import message_graph
from privjax.placement import pairs as pairs_lib


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class NoisyGraph:
  """A graph that a placement drew (arrays are not modified).

  Attributes:
    graph: the graph, on the private graph's node ids.
    weights: `[M]` float64 > 0, the weight of each of `graph.pairs`; `None` says
      that all are 1.
    guarantee: what the draw of this graph satisfies; its epsilon is `None`
      where nothing is proven.
  """

  graph: graphs.Graph
  weights: np.ndarray | None = None
  guarantee: types.PrivacyGuarantee

  def __post_init__(self):
    if self.weights is not None:
      _validate.shape((self.graph.num_edges,), weights=self.weights)
      if not (np.isfinite(self.weights) & (self.weights > 0)).all():
        raise ValueError('weights must be finite and > 0')

  @property
  def certified(self) -> bool:
    """False: a seeded draw in floating point is never a release."""
    return False

  @property
  def degree(self) -> np.ndarray:
    """`[N]` sum of the weights at each node (the degree if all are 1)."""
    if self.weights is None:
      return self.graph.degree
    return np.bincount(
      self.graph.pairs.ravel(),
      np.repeat(self.weights, 2),
      minlength=self.graph.num_nodes,
    )

  def weight_of(self, pairs: np.ndarray) -> np.ndarray:
    """Returns the `[P]` float64 weights of `[P, 2]` pairs; 0 if no edge."""
    is_edge = self.graph.has_pairs(pairs)
    if self.weights is None or not self.graph.num_edges:
      return is_edge.astype(np.float64)
    codes = np.sort(pairs, axis=1) @ np.array([self.graph.num_nodes, 1])
    slot = np.minimum(
      np.searchsorted(self._codes, codes), self.graph.num_edges - 1
    )
    return np.where(is_edge, self.weights[slot], 0.0)

  @functools.cached_property
  def _codes(self) -> np.ndarray:
    return self.graph.pairs @ np.array([self.graph.num_nodes, 1])


def from_indices(
  index: np.ndarray,
  num_nodes: int,
  guarantee: types.PrivacyGuarantee,
  weights: np.ndarray | None = None,
) -> NoisyGraph:
  """Builds a noisy graph from ascending pair numbers (`pairs.pair_at`)."""
  graph, _ = graphs.from_pairs(num_nodes, pairs_lib.pair_at(index, num_nodes))
  return NoisyGraph(graph=graph, weights=weights, guarantee=guarantee)


def to_message_graph(noisy: NoisyGraph, features: types.Array) -> Any:
  """Returns the `jraph.GraphsTuple` that a node model reads.

  An edge's weight is its mask and a node's degree is the sum of its weights,
  so that a GCN normalizes by the weighted adjacency.

  Args:
    noisy: the graph.
    features: `[N, F]` dense.
  """
  plain: Any = graphs.to_message_graph(noisy.graph, features)
  if noisy.weights is None:
    return plain
  ends = np.stack([plain.receivers, plain.senders], axis=1)
  return message_graph.graphs_tuple(
    num_nodes=noisy.graph.num_nodes,
    nodes={'features': np.asarray(features), 'degree': noisy.degree},
    edges={'mask': noisy.weight_of(ends)},
    senders=plain.senders,
    receivers=plain.receivers,
  )


def retained_edges(private: graphs.PrivateGraph, noisy: NoisyGraph) -> int:
  """Returns how many private edges the noisy graph has. Not for release."""
  return int(noisy.graph.has_pairs(private.graph.pairs).sum())
