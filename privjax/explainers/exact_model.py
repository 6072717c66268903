"""The exact model's answers about interventions, batched over targets.

`predict` applies interventions to a graph and returns the labels of the exact
model, in float64; every method's explanation is judged by it. All of this
reads private edges and nothing here is for release.

>>> import numpy as np, scipy.sparse
>>> from privjax.models import gcn
>>> path, _ = graphs.from_pairs(3, [[0, 1], [1, 2]])
>>> x = scipy.sparse.csr_array(np.array([[2.0, 0.0], [0.0, 3.0], [0.0, 3.0]]))
>>> one = {'kernel': np.eye(2), 'bias': np.zeros(2)}
>>> model = gcn.model({'hidden': one, 'output': one})
>>> cut = intervention_lib.Intervention(target=0, pairs=((0, 1),))
>>> labels = predict(model, path, x, [cut])
>>> labels.original.tolist(), labels.new.tolist()
([1], [0])
"""

from collections.abc import Callable, Iterator, Sequence
import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse

from privjax import _validate
from privjax import graphs
from privjax.counterfactual import evaluation
from privjax.explainers import intervention as intervention_lib
from privjax.explainers import masked_field
from privjax.explainers import operation_space
from privjax.models import node_model

BATCH_SIZE = 4


def batches(
  fields: Sequence[masked_field.MaskedField], batch_size: int
) -> Iterator[tuple[np.ndarray, masked_field.MaskedField]]:
  """Stacks fields of one size; yields their indices and the stack.

  A stack is padded with copies of its first field up to the batch size, so
  that the number of targets adds no shape: compiling costs far more than the
  copies do.
  """
  _validate.integer(1, batch_size=batch_size)
  by_shape = {}
  for index, field in enumerate(fields):
    shape = (field.rows.shape, field.feature_rows.shape, field.exists.shape)
    by_shape.setdefault(shape, []).append(index)
  for members in by_shape.values():
    for start in range(0, len(members), batch_size):
      chosen = members[start : start + batch_size]
      padding = batch_size - len(chosen)
      rows = [fields[i] for i in chosen + chosen[:1] * padding]
      yield np.array(chosen), jax.tree.map(lambda *x: np.stack(x), *rows)


def run(
  function: Callable[..., Any],
  fields: Sequence[masked_field.MaskedField],
  batch_size: int,
  *arguments: Sequence[Any],
) -> list[Any]:
  """Calls a batched function on stacks of fields; returns one result each.

  Args:
    function: takes a stack and stacked arguments, returns a stacked tree.
    fields: one per target.
    batch_size: the largest stack.
    *arguments: sequences of one tree per target.
  """
  results: list[Any] = [None] * len(fields)
  with jax.enable_x64(True):
    for index, stack in batches(fields, batch_size):
      size = len(stack.rows)
      rows = [*index, *([index[0]] * (size - len(index)))]
      extra = [
        jax.tree.map(lambda *x: np.stack(x), *(values[i] for i in rows))
        for values in arguments
      ]
      found = jax.tree.map(np.asarray, function(stack, *extra))
      for place, target in enumerate(index):
        results[target] = jax.tree.map(lambda x, k=place: x[k], found)
  return results


@functools.partial(jax.jit, static_argnames='apply_fn')
def _decide_batch(params, masked, edge_keep, feature_keep, *, apply_fn):
  """Returns the decisions before and after, `[B, 2, 1]` of each field."""

  def one(masked, edge, feature):
    clean = masked_field.logits(
      apply_fn, params, masked, *masked_field.keep_all(masked)
    )
    new = masked_field.logits(
      apply_fn,
      params,
      masked,
      masked_field.binary(edge),
      masked_field.binary(feature),
    )
    return evaluation.decide(jnp.stack([clean, new])[:, None])

  return jax.vmap(one)(masked, edge_keep, feature_keep)


def check_masks(
  model: node_model.NodeModel,
  graph: graphs.Graph,
  features: scipy.sparse.csr_array,
  spaces: Sequence[operation_space.OperationSpace],
  masks: Sequence[masked_field.Masks],
  *,
  batch_size: int = BATCH_SIZE,
) -> intervention_lib.Labels:
  """Asks the exact model, in float64, what each target's masks do. Private.

  A non-finite logit counts as "no flip".

  Args:
    model: the frozen classifier.
    graph: the graph to check on.
    features: `[N, F]` public features.
    spaces: `[B]` operation spaces; a target may come up more than once.
    masks: `[B]` bool masks of each space, True = keep.
    batch_size: targets per call.
  """
  inputs = masked_field.input_rows(model, features)
  cache = {}
  for space in spaces:
    if id(space) not in cache:
      cache[id(space)] = masked_field.build(
        model, graph, features, space, inputs
      )
  fields = [cache[id(space)] for space in spaces]
  pad = lambda keep, valid: np.pad(
    keep, (0, len(valid) - len(keep)), constant_values=True
  )
  edge = [pad(m.edge, f.pair_valid) for m, f in zip(masks, fields)]
  feature = [pad(m.feature, f.feature_valid) for m, f in zip(masks, fields)]
  decide = functools.partial(
    _decide_batch, inputs.params, apply_fn=model.apply_fn
  )
  found = run(decide, fields, batch_size, edge, feature)
  column = lambda values, dtype: np.array(list(values), dtype)
  return intervention_lib.Labels(
    original=column((d.label[0, 0] for d in found), np.int64),
    runner_up=column((d.runner_up_label for d in found), np.int64),
    new=column((d.label[1, 0] for d in found), np.int64),
    gap=column((d.gap[1, 0] for d in found), np.float64),
  )


def predict(
  model: node_model.NodeModel,
  graph: graphs.Graph,
  features: scipy.sparse.csr_array,
  interventions: Sequence[intervention_lib.Intervention],
  *,
  batch_size: int = BATCH_SIZE,
) -> intervention_lib.Labels:
  """Applies interventions to a graph and returns the exact model's labels.

  Equal to a whole forward on the surgically edited graph
  (`intervention.apply_intervention`). Pairs that are no edges do nothing, so
  an intervention found on one graph may be checked on another.

  Args:
    model: the frozen classifier.
    graph: the graph to check on; private edges reach the result.
    features: `[N, F]` public features.
    interventions: `[B]`.
    batch_size: targets per call.
  """
  spaces = [operation_space.named_by(cut) for cut in interventions]
  for cut in interventions:
    intervention_lib.check_ids(graph, features, cut)
  masks = [
    masked_field.Masks(
      np.zeros(len(s.pairs), bool), np.zeros(len(s.features), bool)
    )
    for s in spaces
  ]
  return check_masks(
    model, graph, features, spaces, masks, batch_size=batch_size
  )


def judge(
  model: node_model.NodeModel,
  graph: graphs.Graph,
  features: scipy.sparse.csr_array,
  spaces: Sequence[operation_space.OperationSpace],
  masks: Sequence[masked_field.Masks],
  *,
  num_steps: int | Sequence[int],
) -> list[intervention_lib.Explanation]:
  """Returns the explanations that masks are, as the exact model judges them."""
  labels = check_masks(model, graph, features, spaces, masks)
  steps = np.broadcast_to(num_steps, len(spaces))
  return [
    intervention_lib.Explanation(
      intervention=space.intervention(*keep),
      valid=bool(labels.new[index] != labels.original[index]),
      currency=space.currency,
      num_steps=int(steps[index]),
      original_label=int(labels.original[index]),
      new_label=int(labels.new[index]),
    )
    for index, (space, keep) in enumerate(zip(spaces, masks))
  ]
