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
import numpy as np
import scipy.sparse

from privjax import graphs
from privjax.explainers import field_batch
from privjax.explainers import intervention as intervention_lib
from privjax.explainers import masked_field
from privjax.explainers import operation_space
from privjax.models import node_model

BATCH_SIZE = 16

# Masks of one target that are judged in one call.
_NUM_ROUNDS = 4


def run(
  function: Callable[..., Any],
  fields: Sequence[masked_field.MaskedField],
  batch_size: int,
  *arguments: Sequence[np.ndarray],
) -> list[Any]:
  """Calls a function on batches of fields; returns one result per target.

  Args:
    function: takes a batch and stacked arguments, returns a tree whose leaves
      have a leading axis T.
    fields: one per target.
    batch_size: the most targets of a batch.
    *arguments: sequences of one array per target.
  """
  results: list[Any] = [None] * len(fields)
  with jax.enable_x64(True):
    for index, batch in field_batch.batches(fields, batch_size):
      padding = [index[0]] * (len(batch.targets) - len(index))
      extra = [
        np.stack([values[i] for i in (*index, *padding)])
        for values in arguments
      ]
      found = jax.tree.map(np.asarray, function(batch, *extra))
      for place, target in enumerate(index):
        results[target] = jax.tree.map(lambda x, k=place: x[k], found)
  return results


@functools.partial(jax.jit, static_argnames='apply_fn')
def _decide_rounds(params, batch, masks, *, apply_fn):
  """Returns decisions before and after masks `[R, T, ...]`, `[R, T, 2, 1]`."""
  clean = field_batch.clean_logits(apply_fn, params, batch)
  return jax.lax.map(
    lambda keep: field_batch.decide(apply_fn, params, batch, keep, clean),
    masks,
  )


def check_masks(
  model: node_model.NodeModel,
  graph: graphs.Graph,
  features: scipy.sparse.csr_array,
  spaces: Sequence[operation_space.OperationSpace],
  masks: Sequence[field_batch.Masks],
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
    batch_size: most targets per call.
  """
  of_space: dict[int, list[int]] = {}
  for index, space in enumerate(spaces):
    of_space.setdefault(id(space), []).append(index)
  indices = list(of_space.values())
  unique = [spaces[own[0]] for own in indices]
  of_rows, fields = masked_field.build_all(model, graph, features, unique)
  decide = functools.partial(
    _decide_rounds, of_rows.params, apply_fn=of_rows.apply_fn
  )
  labels = intervention_lib.Labels(
    *(np.zeros(len(spaces), np.int64) for _ in range(3)),
    gap=np.zeros(len(spaces)),
  )
  with jax.enable_x64(True):
    for chosen, batch in field_batch.batches(fields, batch_size):
      for turn in _rounds([indices[i] for i in chosen]):
        padded = [
          field_batch.pad({t: masks[i] for t, i in one}, batch) for one in turn
        ]
        stacked = jax.tree.map(lambda *x: np.stack(x), *padded)
        found = jax.tree.map(np.asarray, decide(batch, stacked))
        for k, one in enumerate(turn):
          for target, index in one:
            labels.original[index] = found.label[k, target, 0, 0]
            labels.runner_up[index] = found.runner_up_label[k, target]
            labels.new[index] = found.label[k, target, 1, 0]
            labels.gap[index] = found.gap[k, target, 1, 0]
  return labels


def _rounds(
  indices: Sequence[Sequence[int]],
) -> Iterator[list[list[tuple[int, int]]]]:
  """Yields what one call judges: (target, index) pairs, round by round."""
  for first in range(0, max(map(len, indices)), _NUM_ROUNDS):
    yield [
      [(t, own[k]) for t, own in enumerate(indices) if k < len(own)]
      for k in range(first, first + _NUM_ROUNDS)
    ]


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
    batch_size: most targets per call.
  """
  spaces = [operation_space.named_by(cut) for cut in interventions]
  for cut in interventions:
    intervention_lib.check_ids(graph, features, cut)
  masks = [
    field_batch.Masks(
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
  masks: Sequence[field_batch.Masks],
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
