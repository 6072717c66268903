"""Does a model of yours keep the contract of `NodeModel`? Try it and see."""

import jax
import numpy as np
import scipy.sparse

from privjax import graphs
from privjax.models import node_model


def check_locality(
  model: node_model.NodeModel,
  graph: graphs.Graph,
  features: scipy.sparse.csr_array,
  nodes: np.ndarray,
  *,
  tolerance: float = 1e-9,
) -> None:
  """Compares receptive-field forwards with whole-graph forwards.

  For every node, in float64: the logits on its padded receptive field must
  equal those on the whole graph, before and after an edge at the node, and one
  a hop away, is deleted (by mask and degrees on the field, by surgery on the
  graph).

  Args:
    model: the model to check, its parameters float64 or exact in float64.
    graph: a graph to try it on; public or synthetic, its logits decide the
      outcome.
    features: `[N, F]` features.
    nodes: node ids to try.
    tolerance: largest accepted absolute difference of a logit.

  Raises:
    ValueError: naming the first node and the contract clause that fails.
  """
  if not len(nodes):
    raise ValueError('nodes must not be empty')
  features = scipy.sparse.csr_array(features, dtype=np.float64)
  with jax.enable_x64(True):
    whole = _whole(model, graph, features)
    for node in map(int, nodes):
      field = _padded_field(graph, node, model.num_hops)
      _compare(
        _on_field(model, field, features, None),
        whole[node],
        node,
        tolerance,
        'logits must depend on num_hops and nodes["degree"] only',
      )
      for pair in _nearby_pairs(graph, node):
        edited = _whole(model, graphs.toggle_pair(graph, pair), features)[node]
        _compare(
          _on_field(model, field, features, pair),
          edited,
          node,
          tolerance,
          'an edge must act only through edges["mask"] and nodes["degree"]',
        )


def _nearby_pairs(graph, node) -> list[tuple[int, int]]:
  """Returns an edge at the node and one a hop away, if there are any."""
  pairs = [(node, int(u)) for u in graph.neighbors(node)[:1]]
  for u in graph.neighbors(node):
    beyond = [int(w) for w in graph.neighbors(u) if w != node]
    if beyond:
      return [*pairs, (int(u), beyond[0])]
  return pairs


def _padded_field(graph, node, num_hops) -> graphs.ReceptiveField:
  """Pads by a few nodes and edges: a model has to leave them alone."""
  exact = graphs.extract_receptive_field(graph, node, num_hops=num_hops)
  size = graphs.Capacity(
    len(exact.node_ids) + 2, int(exact.graph.n_edge[0]) + 3
  )
  return graphs.extract_receptive_field(
    graph, node, num_hops=num_hops, capacity=size
  )


def _whole(model, graph, features):
  message_graph = graphs.to_message_graph(graph, features.toarray())
  return np.asarray(model.apply_fn(model.params, message_graph))


def _on_field(model, field, features, deleted_pair):
  degree = field.boundary_degree.copy()
  mask = field.graph.edges['mask'].copy()
  if deleted_pair is not None:
    ends = np.flatnonzero(np.isin(field.node_ids, deleted_pair))
    degree[ends] -= 1
    touched = np.isin(field.graph.senders, ends)
    mask[touched & np.isin(field.graph.receivers, ends)] = 0
  message_graph = field.graph._replace(
    nodes={
      'features': graphs.field_features(field, features),
      'degree': degree,
    },
    edges={'mask': mask},
  )
  return np.asarray(model.apply_fn(model.params, message_graph))[
    field.target_index
  ]


def _compare(found, expected, node, tolerance, clause):
  difference = np.abs(found - expected).max()
  if not difference <= tolerance:
    raise ValueError(
      f'model must be local at node {node}: {clause}; the logits differ by '
      f'{difference:.3g}'
    )
