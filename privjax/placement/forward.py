"""Exact forwards on the receptive fields of several targets at once.

The union of the balls around the targets, with every node's degree in the whole
graph, gives each target the logits of a whole-graph forward. An intervention
takes pairs out (a pair that is no edge is left alone) and hides features of one
target; degrees follow, also those of nodes on the rim.

>>> path, _ = graphs.from_pairs(5, [[0, 1], [1, 2], [2, 3], [3, 4]])
>>> features = scipy.sparse.csr_array(np.eye(5))
>>> field = union_field(graph_view(path), features, np.array([0]), 2)
>>> field.node_ids.tolist(), field.graph.nodes['degree'].tolist()
([0, 1, 2], [1.0, 2.0, 2.0])
>>> cut = explainers.Intervention(target=0, pairs=((2, 3),), features=(0,))
>>> intervene(field, 0, cut).graph.nodes['degree'].tolist()
[1.0, 2.0, 1.0]

The edges of a private graph reach everything here: not for release.
"""

from collections.abc import Callable, Sequence
import functools
from typing import Any, NamedTuple

import jax
import numpy as np
import scipy.sparse

from privjax import _validate
from privjax import explainers
from privjax import graphs
from privjax import models
from privjax.graphs import message_graph
from privjax.placement import noisy_graph


class GraphView(NamedTuple):
  """A weighted graph, as far as a forward needs it.

  Attributes:
    graph: its edges.
    degree: `[N]` float64, the weighted degree.
    weight_fn: `[P, 2]` pairs -> `[P]` float64 weights, 0 where no edge is.
  """

  graph: graphs.Graph
  degree: np.ndarray
  weight_fn: Callable[[np.ndarray], np.ndarray]


class UnionField(NamedTuple):
  """The part of a graph that decides the logits of T targets.

  Attributes:
    view: the graph that it was taken from.
    graph: `jraph.GraphsTuple` on the contract of `graphs.message_graph`.
    node_ids: `[n]` int64, ascending.
    target_index: `[T]` rows of the targets.
  """

  view: GraphView
  graph: Any
  node_ids: np.ndarray
  target_index: np.ndarray


def graph_view(graph: graphs.Graph) -> GraphView:
  """Views a graph with weights 1."""
  weight_fn = lambda pairs: graph.has_pairs(pairs).astype(np.float64)
  return GraphView(graph, graph.degree.astype(np.float64), weight_fn)


def noisy_view(noisy: noisy_graph.NoisyGraph) -> GraphView:
  """Views a noisy graph with its weights."""
  degree = noisy.degree.astype(np.float64)
  return GraphView(noisy.graph, degree, noisy.weight_of)


def union_field(
  view: GraphView,
  features: scipy.sparse.csr_array,
  targets: np.ndarray,
  num_hops: int,
) -> UnionField:
  """Extracts the union of the balls around the targets.

  Args:
    view: the graph.
    features: `[N, F]` features; the field's rows become dense float64.
    targets: `[T]` node ids.
    num_hops: radius, >= 0.
  """
  for target in targets:
    _validate.integer(0, view.graph.num_nodes - 1, target=target)
  ball = np.unique(targets)
  for _ in range(num_hops):
    ball = np.union1d(ball, graphs.neighbor_lists(view.graph, ball)[0])
  neighbors, lengths = graphs.neighbor_lists(view.graph, ball)
  receivers = np.repeat(np.arange(len(ball)), lengths)
  senders = np.minimum(np.searchsorted(ball, neighbors), len(ball) - 1)
  inside = ball[senders] == neighbors
  senders, receivers = senders[inside], receivers[inside]
  pairs = np.stack([ball[senders], ball[receivers]], axis=1)
  graph = message_graph.graphs_tuple(
    num_nodes=len(ball),
    nodes={
      'features': features[ball].toarray().astype(np.float64),
      'degree': view.degree[ball],
    },
    edges={'mask': view.weight_fn(pairs)},
    senders=senders,
    receivers=receivers,
  )
  return UnionField(view, graph, ball, np.searchsorted(ball, targets))


def intervene(
  field: UnionField, position: int, intervention: explainers.Intervention
) -> UnionField:
  """Returns the field after an intervention for the target at `position`."""
  pairs = np.asarray(intervention.pairs, np.int64).reshape(-1, 2)
  nodes = dict(field.graph.nodes)
  weight = np.repeat(field.view.weight_fn(pairs), 2)
  ends = np.minimum(
    np.searchsorted(field.node_ids, pairs.ravel()), len(field.node_ids) - 1
  )
  inside = field.node_ids[ends] == pairs.ravel()
  nodes['degree'] = nodes['degree'] - np.bincount(
    ends[inside], weight[inside], minlength=len(field.node_ids)
  )
  nodes['features'] = nodes['features'].copy()
  hidden = np.asarray(intervention.features, np.int64)
  nodes['features'][field.target_index[position], hidden] = 0
  code = np.array([field.view.graph.num_nodes, 1])
  edges = np.stack([field.graph.senders, field.graph.receivers], axis=1)
  is_deleted = np.isin(
    np.sort(field.node_ids[edges], axis=1) @ code, pairs @ code
  )
  mask = np.where(is_deleted, 0.0, field.graph.edges['mask'])
  return field._replace(
    graph=field.graph._replace(nodes=nodes, edges={'mask': mask})
  )


def logits(model: models.NodeModel, field: UnionField) -> np.ndarray:
  """Returns `[n, K]` float64 logits; those of the targets are exact."""
  return _apply(model, field.graph)


def field_logits(
  model: models.NodeModel,
  fields: Sequence[graphs.ReceptiveField],
  features: scipy.sparse.csr_array,
) -> np.ndarray:
  """Returns `[T, K]` float64 logits of the targets of T receptive fields."""
  sizes = np.array([len(field.node_ids) for field in fields])
  start = np.cumsum(sizes) - sizes
  shifted = lambda name: np.concatenate(
    [getattr(f.graph, name) + s for f, s in zip(fields, start)]
  )
  together = message_graph.graphs_tuple(
    num_nodes=int(sizes.sum()),
    nodes={
      'features': np.concatenate(
        [graphs.field_features(field, features) for field in fields]
      ),
      'degree': np.concatenate([f.boundary_degree for f in fields]),
    },
    edges={'mask': np.concatenate([_mask(field) for field in fields])},
    senders=shifted('senders'),
    receivers=shifted('receivers'),
  )
  rows = start + np.array([field.target_index for field in fields])
  return _apply(model, together)[rows]


def _mask(field: graphs.ReceptiveField) -> np.ndarray:
  edges: Any = field.graph.edges
  return edges['mask']


def _apply(model: models.NodeModel, graph: Any) -> np.ndarray:
  with jax.enable_x64(True):
    return np.asarray(_jitted(model.apply_fn)(model.params, graph), np.float64)


@functools.lru_cache(maxsize=8)
def _jitted(apply_fn):
  return jax.jit(apply_fn)
