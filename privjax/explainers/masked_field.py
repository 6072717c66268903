"""One target's receptive field with the places that masks act on.

The fields of many targets are scored together, see `field_batch`. All of this
reads private edges and nothing here is for release; the features and the model
are public.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from privjax import counterfactual
from privjax import graphs
from privjax.counterfactual import evaluation
from privjax.explainers import operation_space
from privjax.graphs import message_graph
from privjax.models import gcn
from privjax.models import node_model


class MaskedField(NamedTuple):
  """One target's receptive field with the places that masks act on.

  n nodes, e directed edges, P pairs, Q features, D input columns.

  Attributes:
    field: the receptive field; a GCN's without the edges into its outermost
      nodes, whose sums never reach the target.
    rows: `[n, D]` float64 input rows, the target's without its maskable
      features.
    feature_rows: `[Q, D]` float64, what each maskable feature adds to the
      target's row.
    edge_pair: `[e]`, the pair that each directed edge belongs to, or P.
    ends: `[2, P]`, local ids of both ends of each pair, or n outside the field.
    exists: `[P]` bool, which pairs are edges of the graph.
  """

  field: graphs.ReceptiveField
  rows: np.ndarray
  feature_rows: np.ndarray
  edge_pair: np.ndarray
  ends: np.ndarray
  exists: np.ndarray


class InputRows(NamedTuple):
  """A model and the input rows that its first layer reads.

  Attributes:
    model: the model of these rows.
    rows: `[N, D]`, dense or sparse.
    weight: `[F, D]` dense, or `None` for the identity: one unit of feature d
      adds `weight[d]` to a row.
  """

  model: node_model.NodeModel
  rows: Any
  weight: np.ndarray | None


def input_rows(
  model: node_model.NodeModel, features: scipy.sparse.csr_array
) -> InputRows:
  """Returns the projected rows `X W1` of a GCN, else the features themselves.

  The first layer of a GCN is linear in a node's features, so it may start from
  `X W1`, which has F / H times fewer columns.
  """
  if model.apply_fn is not gcn.apply:
    return InputRows(model, features, None)
  hidden, output = model.params['hidden'], model.params['output']
  params = {'hidden': {'bias': hidden['bias']}, 'output': output}
  return InputRows(
    node_model.NodeModel(gcn.apply_projected, params, model.num_hops),
    counterfactual.project(model, features),
    np.asarray(hidden['kernel'], np.float64),
  )


def build_all(
  model: node_model.NodeModel,
  graph: graphs.Graph,
  features: scipy.sparse.csr_array,
  spaces: Sequence[operation_space.OperationSpace],
) -> tuple[node_model.NodeModel, list[MaskedField]]:
  """Returns the model of the fields' rows, and one field per space."""
  inputs = input_rows(model, features)
  fields = [build(model, graph, features, space, inputs) for space in spaces]
  return inputs.model, fields


def build(
  model: node_model.NodeModel,
  graph: graphs.Graph,
  features: scipy.sparse.csr_array,
  space: operation_space.OperationSpace,
  inputs: InputRows,
) -> MaskedField:
  """Gathers one target's field, on the host in float64.

  Args:
    model: the frozen classifier.
    graph: the graph to explain or to check on.
    features: `[N, F]` public features.
    space: the target and the elements to mask.
    inputs: `input_rows(model, features)`.
  """
  operation_space.check_space(graph, space)
  field = graphs.extract_receptive_field(
    graph, space.target, num_hops=model.num_hops
  )
  if model.apply_fn is gcn.apply:
    field = _without_outer_edges(graph, space.target, field)
  rest, added = _target_parts(features, space, inputs.weight)
  return MaskedField(
    field=field,
    rows=_rows(field, inputs.rows, rest),
    feature_rows=added,
    edge_pair=_edge_pair(field, space.pairs),
    ends=_local_ids(field, space.pairs).T,
    exists=graph.has_pairs(space.pairs),
  )


def _without_outer_edges(graph, target, field) -> graphs.ReceptiveField:
  """Drops the edges into the outermost nodes of a GCN's field.

  A GCN sums the last layer at the target and the one before at its neighbors.
  Another model may count these edges or divide by their number.
  """
  inner = graphs.extract_receptive_field(
    graph, target, num_hops=gcn.NUM_HOPS - 1
  ).node_ids
  receivers = field.graph.receivers
  chosen = np.isin(field.node_ids, inner)[receivers]
  edges = message_graph.graphs_tuple(
    num_nodes=len(field.node_ids),
    nodes=None,
    edges={'mask': field.graph.edges['mask'][chosen]},
    senders=field.graph.senders[chosen],
    receivers=receivers[chosen],
  )
  return field._replace(graph=edges)


def _target_parts(features, space, weight):
  """Returns the target's rest `[D]` and what each feature adds, `[Q, D]`."""
  row = evaluation.target_row(features, space.target)
  values = row[space.features]
  row[space.features] = 0
  if weight is not None:
    return row @ weight, values[:, None] * weight[space.features]
  added = np.zeros((len(values), len(row)))
  added[np.arange(len(values)), space.features] = values
  return row, added


def _rows(field, rows, rest) -> np.ndarray:
  """Returns the field's rows, the target's without its maskable features.

  The rest is summed, not the whole row less the features: what is left of a
  difference would decide exact ties.
  """
  real = field.node_ids >= 0
  chosen = rows[np.where(real, field.node_ids, 0)]
  chosen = chosen.toarray() if hasattr(chosen, 'toarray') else chosen
  chosen = np.where(real[:, None], chosen, 0.0)
  chosen[field.target_index] = rest
  return chosen


def _local_ids(field, pairs) -> np.ndarray:
  """Returns the local ids of node ids, n where they are not in the field."""
  num_nodes = len(field.node_ids)
  real = field.node_ids[field.node_ids >= 0]
  slot = np.minimum(np.searchsorted(real, pairs), len(real) - 1)
  return np.where(real[slot] == pairs, slot, num_nodes)


def _edge_pair(field, pairs) -> np.ndarray:
  """Returns which pair each directed edge of the field is, or P."""
  rows = {tuple(pair): row for row, pair in enumerate(pairs.tolist())}
  first = field.node_ids[field.graph.senders]
  second = field.node_ids[field.graph.receivers]
  ends = np.sort(np.stack([first, second], axis=1), axis=1).tolist()
  found = [rows.get(tuple(pair), len(pairs)) for pair in ends]
  return np.array(found, np.int64)
