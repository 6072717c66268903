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

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
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
# Places for masks of pairs in a batch, beyond which it takes fewer targets.
_MOST_PAIRS = 1 << 18
# Ends of pairs that a batch has room for, per node and per edge.
_ENDS_PER_NODE = 8


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

  Args:
    fields: one per target.
    batch_size: the most targets of a batch; fewer where pairs are many.
  """
  _validate.integer(1, batch_size=batch_size)
  order = np.argsort([-len(field.exists) for field in fields], kind='stable')
  begun = 0
  while begun < len(order):
    width = bucket(max(len(fields[order[begun]].exists), _FEW_PAIRS))
    num_targets = min(batch_size, max(1, _MOST_PAIRS // width))
    chosen = order[begun : begun + num_targets]
    begun += num_targets
    yield chosen, stack([fields[i] for i in chosen], num_targets, width)


def stack(
  fields: Sequence[masked_field.MaskedField], num_targets: int, num_pairs: int
) -> FieldBatch:
  """Returns fields as one graph with room for `num_targets` and `num_pairs`."""
  # Where each field's nodes and masks begin, and the place of no mask.
  nodes = np.cumsum([0, *(len(field.rows) for field in fields)])
  masks = num_pairs * np.arange(len(fields))
  no_mask = num_targets * num_pairs
  pairs = [
    np.where(
      field.edge_pair < len(field.exists), field.edge_pair + mask, no_mask
    )
    for field, mask in zip(fields, masks)
  ]
  ends = [np.nonzero(_touches(field)) for field in fields]
  num_edges, num_ends = sum(map(len, pairs)), sum(len(pair) for _, pair in ends)
  # The last node is nobody's.
  size = _room(nodes[-1] + 1, num_edges, num_ends)
  most_ends = _ENDS_PER_NODE * size
  in_graph = lambda name: _joined(
    (
      getattr(field.field.graph, name) + node
      for field, node in zip(fields, nodes)
    ),
    size,
    size - 1,
  )
  graph = message_graph.graphs_tuple(
    num_nodes=size,
    nodes={
      'features': _joined((field.rows for field in fields), size, 0),
      'degree': _joined(
        (field.field.boundary_degree for field in fields), size, 0
      ),
    },
    # Padding joins the last node to itself: receivers stay sorted.
    edges={'mask': (np.arange(size) < num_edges).astype(np.float64)},
    senders=in_graph('senders'),
    receivers=in_graph('receivers'),
  )
  sizes = np.zeros((2, num_targets, 1), np.int64)
  for place, field in enumerate(fields):
    sizes[:, place, 0] = len(field.exists), len(field.feature_rows)
  num_features = bucket(max(int(sizes[1].max()), _FEW_FEATURES))
  width = fields[0].feature_rows.shape[1]
  feature_rows = np.zeros((num_targets, num_features, width))
  for place, field in enumerate(fields):
    feature_rows[place, : len(field.feature_rows)] = field.feature_rows
  return FieldBatch(
    graph=graph,
    targets=_joined(
      (
        np.array([field.field.target_index + node], np.int32)
        for field, node in zip(fields, nodes)
      ),
      num_targets,
      size - 1,
    ),
    feature_rows=feature_rows,
    edge_pair=_joined(pairs, size, no_mask),
    end_pair=_joined(
      (pair + mask for (_, pair), mask in zip(ends, masks)), most_ends, no_mask
    ),
    end_node=_joined(
      (field.ends[end] + node for field, end, node in zip(fields, ends, nodes)),
      most_ends,
      size - 1,
    ),
    pair_valid=np.arange(num_pairs) < sizes[0],
    feature_valid=np.arange(num_features) < sizes[1],
  )


def _joined(
  parts: Iterable[np.ndarray], length: int, fill: float
) -> np.ndarray:
  """Returns one array of `length` rows, `fill` at its end; ids as int32."""
  joined = np.concatenate(list(parts))
  floating = np.issubdtype(joined.dtype, np.floating)
  result = np.full(
    (length, *joined.shape[1:]), fill, joined.dtype if floating else np.int32
  )
  result[: len(joined)] = joined
  return result


def _touches(field: masked_field.MaskedField) -> np.ndarray:
  """Returns `[2, P]`, which ends of edges lie in the field."""
  return field.exists & (field.ends < len(field.rows))


def _room(num_nodes: int, num_edges: int, num_ends: int) -> int:
  """Returns a size with room for all of a batch."""
  return bucket(max(num_nodes, num_edges, -(-num_ends // _ENDS_PER_NODE)))


def bucket(size: int) -> int:
  """Returns the smallest 16 * 4^k that is at least `size`."""
  result = _SMALLEST
  while result < size:
    result *= 4
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
