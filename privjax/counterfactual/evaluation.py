"""What every evaluator returns, and how logits become decisions.

An evaluator scores the whole support on one graph. The three of them,
`evaluate_full_graph`, `evaluate_subgraph` and `evaluate_factored`, share one
signature and agree on every flip:

  evaluator(model, graph, features, candidates, *, feature_masks) ->
    CandidateEvaluation

The result is a function of private edges: it is not for release. Only the
mechanism's draw is.
"""

from typing import Literal, NamedTuple

import jax.numpy as jnp
import numpy as np
import scipy.sparse

from privjax import _validate
from privjax import graphs
from privjax import types
from privjax.counterfactual import candidates as candidates_lib
from privjax.models import node_model

FEATURE_MASKS = ('effective', 'inert')
FeatureMasks = Literal['effective', 'inert']


class CandidateEvaluation(NamedTuple):
  """The support, scored on one graph. Private; not for release.

  Attributes:
    label: `[A, B]` int32, class predicted after the intervention; ties go to
      the lowest class id. `label[0, 0]` is the original label.
    flips: `[A, B]` bool, `label != label[0, 0]`.
    existing_edges: `[A]` int64, how many of the named pairs are edges.
    gap: `[A, B]` float64, the original label's logit minus the best other
      logit, after the intervention.
    runner_up_label: `[]` int32, the second best class with no intervention.
  """

  label: np.ndarray
  flips: np.ndarray
  existing_edges: np.ndarray
  gap: np.ndarray
  runner_up_label: np.ndarray


class Decision(NamedTuple):
  """`label`, `gap` and `runner_up_label` of `CandidateEvaluation`."""

  label: types.Array
  gap: types.Array
  runner_up_label: types.Array


def decide(logits: types.Array) -> Decision:
  """Turns logits `[A, B, K]` into labels and gaps; pure and jit-able.

  A candidate with a NaN or infinite logit counts as "no flip", with the gap of
  the empty candidate (0 if that one is not finite either): private values must
  not raise, and any score in range keeps the guarantee.
  """
  logits = jnp.asarray(logits)
  num_classes = logits.shape[-1]
  finite = jnp.isfinite(logits).all(axis=-1)
  logits = jnp.where(finite[..., None], logits, 0)
  label = jnp.argmax(logits, axis=-1).astype(jnp.int32)
  original = label[0, 0]
  is_original = jnp.arange(num_classes) == original
  best_other = jnp.where(is_original[None, None], -jnp.inf, logits).max(axis=-1)
  gap = jnp.take(logits, original, axis=-1) - best_other
  keep = finite & finite[0, 0]
  others = jnp.where(is_original, -jnp.inf, logits[0, 0])
  return Decision(
    label=jnp.where(keep, label, original),
    gap=jnp.where(keep, gap, jnp.where(finite[0, 0], gap[0, 0], 0)),
    runner_up_label=jnp.argmax(others).astype(jnp.int32),
  )


def finish(
  decision: Decision,
  exists: np.ndarray,
  candidates: candidates_lib.CandidateSet,
) -> CandidateEvaluation:
  """Packs decisions for `[A, B]` (or `[A, 1]`, inert masks) into the record.

  Args:
    decision: labels and gaps; one feature column stands for all of them.
    exists: `[k_E]` bool, which candidate pairs are edges.
    candidates: the support.
  """
  shape = (len(candidates.edge_subsets), len(candidates.feature_subsets))
  label = np.broadcast_to(np.asarray(decision.label), shape)
  return CandidateEvaluation(
    label=label,
    flips=label != label[0, 0],
    existing_edges=(candidates.edge_subsets & exists).sum(axis=1),
    gap=np.broadcast_to(np.asarray(decision.gap, np.float64), shape),
    runner_up_label=np.asarray(decision.runner_up_label),
  )


def feature_keep(
  candidates: candidates_lib.CandidateSet, feature_masks: FeatureMasks
) -> np.ndarray:
  """Returns `[B or 1, k_F]` bool, which features each evaluated column keeps.

  'effective' masks as the method is written. 'inert' leaves the logits alone,
  so one column is evaluated and stands for all B: this reproduces the
  published tables (see the README).
  """
  _validate.one_of(FEATURE_MASKS, feature_masks=feature_masks)
  masked = candidates.feature_subsets & candidates.universe.feature_valid
  return ~masked if feature_masks == 'effective' else ~masked[:1]


def existing_pairs(
  graph: graphs.Graph, candidates: candidates_lib.CandidateSet
) -> np.ndarray:
  """Returns `[k_E]` bool: which valid candidate pairs are edges of `graph`."""
  universe = candidates.universe
  return universe.pair_valid & graph.has_pairs(universe.pairs)


def check_inputs(
  model: node_model.NodeModel,
  graph: graphs.PrivateGraph | graphs.Snapshot,
  features: scipy.sparse.csr_array,
  candidates: candidates_lib.CandidateSet,
) -> graphs.Graph:
  """Checks what evaluators share and returns the graph to score on.

  Raises:
    TypeError: if `graph` is neither a `PrivateGraph` nor a `Snapshot`.
    ValueError: if the features or the target do not fit the graph.
  """
  del model
  if not isinstance(graph, (graphs.PrivateGraph, graphs.Snapshot)):
    raise TypeError(
      'graph must be a graphs.PrivateGraph or graphs.Snapshot, got '
      f'{type(graph).__name__}'
    )
  inner = graph.graph
  _validate.shape((inner.num_nodes, None), features=features)
  _validate.integer(0, inner.num_nodes - 1, target=candidates.universe.target)
  return inner
