"""Receptive fields of many targets as one graph, scored under soft masks.

Soft masks enter a model through its own contract (`graphs.message_graph`): a
pair kept by m in [0, 1] multiplies both directions of its edge by m and leaves
`1 - m` of a degree behind at both ends. At m in {0, 1} this *is* deletion, with
full-graph degrees at the boundary, so a binarized mask is judged by the exact
model (Lucic et al., 2022, leave the degrees of the whole subgraph in place).

The fields lie side by side without edges between them: one forward scores all
targets, and small fields are not padded to the size of large ones. The whole
graph is padded to one of few sizes, so that a sweep compiles a handful of
programs. All of this reads private edges and nothing here is for release; the
features and the model are public.

>>> [bucket(size) for size in (1, 17, 100)]
[16, 64, 256]
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import jraph
import numpy as np

from privjax import _validate
from privjax import types
from privjax.counterfactual import evaluation
from privjax.explainers import masked_field
from privjax.explainers import operation_space
from privjax.graphs import message_graph

_SMALLEST = 16
_FEW_FEATURES = 64
_FEW_PAIRS = 64
# A batch takes fewer targets beyond so many places for masks of pairs, and so
# many numbers in its feature rows.
_MOST_PAIRS = 1 << 18
_MOST_NUMBERS = 1 << 22
# Above it sizes come in steps of 2 and no longer of 4.
_LARGE = 1 << 16
# Ends of pairs that a batch has room for, per node and per edge.
_ENDS_PER_NODE = 8
# What `stack` collects.
_PARTS = (
  'features',
  'degree',
  'senders',
  'receivers',
  'edge_pair',
  'end_pair',
  'end_node',
  'targets',
)


class FieldBatch(NamedTuple):
  """The fields of T targets as one graph, padded; arrays may be traced.

  N nodes, E directed edges, M ends; at most P pairs and Q features per target.

  Attributes:
    graph: the fields side by side, on the contract of `graphs.message_graph`.
    targets: `[T]` int32 node of each target; on padding the last node.
    feature_rows: `[T, Q, D]` float64, 0 on padding.
    edge_pair: `[E]` int32, which of the T P masks multiplies each edge, or T P.
    end_pair: `[M]` int32, which mask takes from a degree, or T P.
    end_node: `[M]` int32, whose degree that is.
    pair_valid: `[T, P]` bool, False on padding.
    feature_valid: `[T, Q]` bool, False on padding.
  """

  graph: jraph.GraphsTuple
  targets: types.Array
  feature_rows: types.Array
  edge_pair: types.Array
  end_pair: types.Array
  end_node: types.Array
  pair_valid: types.Array
  feature_valid: types.Array


class Masks(NamedTuple):
  """One number per pair `[P]` and per feature `[Q]`; `[T, ...]` of a batch."""

  edge: types.Array
  feature: types.Array


def batches(
  fields: Sequence[masked_field.MaskedField], batch_size: int
) -> Iterator[tuple[np.ndarray, FieldBatch]]:
  """Yields the indices of fields and their batch, larger fields first.

  The rows of a batch, and its feature rows, are at most 2^22 float64 (32 MiB)
  each before sizes are rounded up, unless one field alone is larger.

  Args:
    fields: one per target.
    batch_size: the most targets of a batch; fewer where fields are large.
  """
  _validate.integer(1, batch_size=batch_size)
  order = np.argsort([-len(field.exists) for field in fields], kind='stable')
  begun = 0
  while begun < len(order):
    first = fields[order[begun]]
    num_columns = max(first.rows.shape[1], 1)
    num_pairs = bucket(max(len(first.exists), _FEW_PAIRS))
    features = max(len(fields[i].feature_rows) for i in order[begun:])
    features = bucket(max(features, _FEW_FEATURES))
    room = min(
      _MOST_PAIRS // num_pairs, _MOST_NUMBERS // (features * num_columns)
    )
    num_targets = min(batch_size, max(1, room))
    chosen = order[begun : begun + num_targets]
    needed = np.cumsum([_size(fields[i]) for i in chosen]) * num_columns
    chosen = chosen[: max(1, int((needed <= _MOST_NUMBERS).sum()))]
    begun += len(chosen)
    yield (
      chosen,
      stack([fields[i] for i in chosen], num_targets, num_pairs, features),
    )


def _size(field: masked_field.MaskedField) -> int:
  """Returns what a field needs of a batch's size."""
  num_ends = int(_touches(field).sum())
  return max(
    len(field.rows), len(field.edge_pair), -(-num_ends // _ENDS_PER_NODE)
  )


def stack(
  fields: Sequence[masked_field.MaskedField],
  num_targets: int,
  num_pairs: int,
  num_features: int,
) -> FieldBatch:
  """Returns fields as one graph, with room for so much per target."""
  no_mask = num_targets * num_pairs
  parts: dict[str, list[np.ndarray]] = {name: [] for name in _PARTS}
  node = 0  # The field's first.
  for place, field in enumerate(fields):
    local, mask = field.field, place * num_pairs
    end, pair = np.nonzero(_touches(field))
    named = field.edge_pair < len(field.exists)
    for name, part in dict(
      features=field.rows,
      degree=local.boundary_degree,
      senders=np.asarray(local.graph.senders) + node,
      receivers=np.asarray(local.graph.receivers) + node,
      edge_pair=np.where(named, field.edge_pair + mask, no_mask),
      end_pair=pair + mask,
      end_node=field.ends[end, pair] + node,
      targets=np.array([local.target_index + node]),
    ).items():
      parts[name].append(part)
    node += len(field.rows)
  # One node more, the last one, is nobody's.
  num_edges = sum(map(len, parts['edge_pair']))
  num_ends = sum(map(len, parts['end_pair']))
  size = bucket(max(node + 1, num_edges, -(-num_ends // _ENDS_PER_NODE)))

  def padded(name, length, fill):
    return _joined(parts[name], length, fill)

  graph = message_graph.graphs_tuple(
    num_nodes=size,
    nodes={
      'features': padded('features', size, 0),
      'degree': padded('degree', size, 0),
    },
    # Padding joins the last node to itself: receivers stay sorted.
    edges={'mask': (np.arange(size) < num_edges).astype(np.float64)},
    senders=padded('senders', size, size - 1),
    receivers=padded('receivers', size, size - 1),
  )
  pair_valid = np.zeros((num_targets, num_pairs), bool)
  feature_valid = np.zeros((num_targets, num_features), bool)
  feature_rows = np.zeros((*feature_valid.shape, fields[0].rows.shape[1]))
  for place, field in enumerate(fields):
    pair_valid[place, : len(field.exists)] = True
    feature_valid[place, : len(field.feature_rows)] = True
    feature_rows[place, : len(field.feature_rows)] = field.feature_rows
  return FieldBatch(
    graph=graph,
    targets=padded('targets', num_targets, size - 1),
    feature_rows=feature_rows,
    edge_pair=padded('edge_pair', size, no_mask),
    end_pair=padded('end_pair', _ENDS_PER_NODE * size, no_mask),
    end_node=padded('end_node', _ENDS_PER_NODE * size, size - 1),
    pair_valid=pair_valid,
    feature_valid=feature_valid,
  )


def _joined(
  parts: Sequence[np.ndarray], length: int, fill: float
) -> np.ndarray:
  """Returns one array of `length` rows, `fill` at its end; ids as int32."""
  joined = np.concatenate(parts)
  floating = np.issubdtype(joined.dtype, np.floating)
  result = np.full(
    (length, *joined.shape[1:]), fill, joined.dtype if floating else np.int32
  )
  result[: len(joined)] = joined
  return result


def _touches(field: masked_field.MaskedField) -> np.ndarray:
  """Returns `[2, P]`, which ends of edges lie in the field."""
  return field.exists & (field.ends < len(field.rows))


def bucket(size: int) -> int:
  """Returns the first of 16, 64, ..., 2^16, 2^17, ... from `size` on."""
  result = _SMALLEST
  while result < size:
    result *= 4 if result < _LARGE else 2
  return result


def logits(
  apply_fn: Callable[..., types.Array],
  params: types.Params,
  batch: FieldBatch,
  edge_keep: types.Array,
  feature_keep: types.Array,
) -> jax.Array:
  """Returns the targets' logits `[T, K]` under masks; pure, differentiable.

  Args:
    apply_fn: the model of `masked_field.build_all`, static.
    params: its parameters.
    batch: the targets' fields.
    edge_keep: `[T, P]` in [0, 1], 1 keeps the pair.
    feature_keep: `[T, Q]` in [0, 1], 1 keeps the feature.
  """
  nodes: Any = batch.graph.nodes
  edges: Any = batch.graph.edges
  kept = jnp.append(edge_keep.ravel(), 1.0)
  degree = jnp.asarray(nodes['degree'], kept.dtype)
  row = jnp.einsum(
    'tq,tqd->td',
    feature_keep,
    batch.feature_rows,
    precision=jax.lax.Precision.HIGHEST,
  )
  edited = batch.graph._replace(
    nodes={
      'features': jnp.asarray(nodes['features']).at[batch.targets].add(row),
      'degree': degree.at[batch.end_node].add(kept[batch.end_pair] - 1),
    },
    edges={'mask': edges['mask'] * kept[batch.edge_pair]},
  )
  return jnp.asarray(apply_fn(params, edited))[batch.targets]


def _binary(keep: types.Array) -> jax.Array:
  """Returns a bool mask as numbers, in the default float dtype."""
  return jnp.where(keep, 1.0, 0.0)


def keep_all(batch: FieldBatch) -> Masks:
  """Returns the masks of the empty intervention."""
  return Masks(
    jnp.ones(batch.pair_valid.shape), jnp.ones(batch.feature_valid.shape)
  )


def clean_logits(apply_fn, params, batch: FieldBatch) -> jax.Array:
  """Returns the targets' logits with no intervention, `[T, K]`."""
  return logits(apply_fn, params, batch, *keep_all(batch))


def decide(
  apply_fn, params, batch: FieldBatch, keep: Masks, clean: jax.Array
) -> evaluation.Decision:
  """Returns decisions before and after binary masks, `[T, 2, 1]` each."""
  new = logits(apply_fn, params, batch, *map(_binary, keep))
  return jax.vmap(evaluation.decide)(jnp.stack([clean, new], 1)[:, :, None])


def flips(
  apply_fn, params, batch: FieldBatch, keep: Masks, clean: jax.Array
) -> jax.Array:
  """Returns whether binary masks change each label, `[T]`."""
  label = decide(apply_fn, params, batch, keep, clean).label
  return label[:, 1, 0] != label[:, 0, 0]


def pad(masks: Mapping[int, Masks], batch: FieldBatch) -> Masks:
  """Returns bool masks by place in the batch, True where there are none."""
  edge = np.ones(batch.pair_valid.shape, bool)
  feature = np.ones(batch.feature_valid.shape, bool)
  for place, one in masks.items():
    edge[place, : len(one.edge)] = one.edge
    feature[place, : len(one.feature)] = one.feature
  return Masks(edge, feature)


def crop(masks: Masks, space: operation_space.OperationSpace) -> Masks:
  """Returns masks without their padding."""
  return Masks(
    masks.edge[: len(space.pairs)], masks.feature[: len(space.features)]
  )


def split(values: np.ndarray, space: operation_space.OperationSpace) -> Masks:
  """Returns `[P + Q]` values as masks."""
  return Masks(values[: len(space.pairs)], values[len(space.pairs) :])
