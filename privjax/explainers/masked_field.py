"""The exact model as a function of soft masks, batched over targets.

Soft masks enter a model through its own contract (`graphs.message_graph`): a
pair kept by m in [0, 1] multiplies both directions of its edge by m and leaves
`1 - m` of a degree behind at both ends. At m in {0, 1} this *is* deletion, with
full-graph degrees at the boundary, so a binarized mask is judged by the exact
model (Lucic et al., 2022, leave the degrees of the whole subgraph in place).

A target's field is padded to one of few sizes and fields of one size are
stacked, so that a sweep compiles a handful of shapes. All of this reads private
edges and nothing here is for release; the features and the model are public.

>>> [bucket(size) for size in (1, 17, 100)]
[16, 64, 256]
"""

from collections.abc import Callable
import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse

from privjax import counterfactual
from privjax import graphs
from privjax import types
from privjax.counterfactual import evaluation
from privjax.explainers import operation_space
from privjax.models import gcn
from privjax.models import node_model

_SMALLEST = 16
_DIRECTED_PER_NODE = 4
_FEW_FEATURES = 64
_FEW_PAIRS = 64


class MaskedField(NamedTuple):
  """One target's receptive field with the places that masks act on.

  n nodes, e directed edges, P pairs, Q features, D input columns, all padded.

  Attributes:
    field: the receptive field.
    rows: `[n, D]` float64 input rows, the target's without its maskable
      features.
    feature_rows: `[Q, D]` float64, what each maskable feature adds to the
      target's row; 0 on padding.
    edge_pair: `[e]` int32, the pair that each directed edge belongs to, or P.
    ends: `[2, P]` int32, local ids of both ends of each pair, or n outside the
      field.
    exists: `[P]` bool, which pairs are edges of the graph; False on padding.
    pair_valid: `[P]` bool, False on padding.
    feature_valid: `[Q]` bool, False on padding.
  """

  field: graphs.ReceptiveField
  rows: np.ndarray
  feature_rows: np.ndarray
  edge_pair: np.ndarray
  ends: np.ndarray
  exists: np.ndarray
  pair_valid: np.ndarray
  feature_valid: np.ndarray


class Masks(NamedTuple):
  """One number per pair `[P]` and per feature `[Q]`."""

  edge: types.Array
  feature: types.Array


class InputRows(NamedTuple):
  """A model and the input rows that its first layer reads.

  Attributes:
    params: the parameters that go with the rows.
    rows: `[N, D]`, dense or sparse.
    weight: `[F, D]` dense, or `None` for the identity: one unit of feature d
      adds `weight[d]` to a row.
  """

  params: types.Params
  rows: Any
  weight: np.ndarray | None


def input_rows(
  model: node_model.NodeModel, features: scipy.sparse.csr_array
) -> InputRows:
  """Returns the projected rows `X W1` of a GCN, else the features themselves.

  The first layer of a GCN is linear in a node's features, so `X W1` with the
  identity for a kernel is the same model on F / H times fewer columns.
  """
  if model.apply_fn is not gcn.apply:
    return InputRows(model.params, features, None)
  weight = np.asarray(model.params['hidden']['kernel'], np.float64)
  hidden = dict(model.params['hidden'], kernel=np.eye(weight.shape[1]))
  return InputRows(
    dict(model.params, hidden=hidden),
    counterfactual.project(model, features),
    weight,
  )


def build(
  model: node_model.NodeModel,
  graph: graphs.Graph,
  features: scipy.sparse.csr_array,
  space: operation_space.OperationSpace,
  inputs: InputRows,
) -> MaskedField:
  """Gathers and pads one target's field, on the host in float64.

  Args:
    model: the frozen classifier.
    graph: the graph to explain or to check on.
    features: `[N, F]` public features.
    space: the target and the elements to mask.
    inputs: `input_rows(model, features)`.
  """
  operation_space.check_space(graph, space)
  extract = functools.partial(
    graphs.extract_receptive_field,
    graph,
    space.target,
    num_hops=model.num_hops,
  )
  exact, num_pairs = extract(), len(space.pairs)
  directed = int(exact.graph.n_edge[0])
  size = bucket(max(len(exact.node_ids), -(-directed // _DIRECTED_PER_NODE)))
  field = extract(capacity=graphs.Capacity(size, _DIRECTED_PER_NODE * size))
  pairs = np.full((bucket(max(num_pairs, _FEW_PAIRS)), 2), -2)
  pairs[:num_pairs] = space.pairs
  pair_valid = np.arange(len(pairs)) < num_pairs
  exists = np.zeros(len(pairs), bool)
  exists[:num_pairs] = graph.has_pairs(space.pairs)
  num_features = len(space.features)
  # One size even without features: fewer shapes to compile.
  width = bucket(max(num_features, _FEW_FEATURES))
  rest, added = _target_parts(features, space, inputs.weight)
  return MaskedField(
    field=field,
    rows=_rows(field, inputs.rows, rest),
    feature_rows=np.pad(added, ((0, width - num_features), (0, 0))),
    edge_pair=_edge_pair(field, pairs),
    ends=_local_ids(field, pairs).T.astype(np.int32),
    exists=exists,
    pair_valid=pair_valid,
    feature_valid=np.arange(width) < num_features,
  )


def bucket(size: int) -> int:
  """Returns the smallest 16 * 4^k that is at least `size`."""
  result = _SMALLEST
  while result < size:
    result *= 4
  return result


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
  return np.array(found, np.int32)


def logits(
  apply_fn: Callable[..., types.Array],
  params: types.Params,
  masked: MaskedField,
  edge_keep: types.Array,
  feature_keep: types.Array,
) -> jax.Array:
  """Returns the target's logits `[K]` under masks; pure and differentiable.

  Args:
    apply_fn: the model, static.
    params: `InputRows.params`.
    masked: one target's field.
    edge_keep: `[P]` in [0, 1], 1 keeps the pair.
    feature_keep: `[Q]` in [0, 1], 1 keeps the feature.
  """
  field = masked.field
  on_edge: Any = field.graph.edges
  gone = (1 - edge_keep) * masked.exists
  kept = jnp.append(1 - gone, 1.0)[masked.edge_pair]
  degree = jnp.asarray(field.boundary_degree, gone.dtype)
  for ends in masked.ends:
    degree = degree.at[ends].add(-gone, mode='drop')
  row = jnp.matmul(
    feature_keep, masked.feature_rows, precision=jax.lax.Precision.HIGHEST
  )
  edited = field.graph._replace(
    nodes={
      'features': jnp.asarray(masked.rows).at[field.target_index].add(row),
      'degree': degree,
    },
    edges={'mask': on_edge['mask'] * kept},
  )
  return jnp.asarray(apply_fn(params, edited))[field.target_index]


def binary(keep: types.Array) -> jax.Array:
  """Returns a bool mask as numbers, in the default float dtype."""
  return jnp.where(keep, 1.0, 0.0)


def keep_all(masked: MaskedField) -> tuple[jax.Array, jax.Array]:
  """Returns the masks of the empty intervention."""
  return jnp.ones(masked.exists.shape), jnp.ones(masked.feature_valid.shape)


def crop(masks: Masks, space: operation_space.OperationSpace) -> Masks:
  """Returns masks without their padding."""
  return Masks(
    masks.edge[: len(space.pairs)], masks.feature[: len(space.features)]
  )


def split(values: np.ndarray, space: operation_space.OperationSpace) -> Masks:
  """Returns `[P + Q]` values as masks."""
  return Masks(values[: len(space.pairs)], values[len(space.pairs) :])
