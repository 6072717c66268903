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

FEATURE_MASKS = ('effective', 'inert')
FeatureMasks = Literal['effective', 'inert']
_FEW_PAIRS = 4


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
  classes = jnp.arange(logits.shape[-1], dtype=jnp.int32)
  top = logits.max(axis=-1)
  finite = jnp.isfinite(top) & jnp.isfinite(logits.min(axis=-1))
  empty = jnp.where(finite[0, 0], logits[0, 0], 0)
  original = _lowest_class(empty, empty.max(), classes)
  is_original = classes == original
  others = jnp.where(is_original, -jnp.inf, empty)
  label = _lowest_class(logits, top, classes)
  gap = _gap(logits, is_original[None, None])
  keep = finite & finite[0, 0]
  return Decision(
    label=jnp.where(keep, label, original),
    gap=jnp.where(keep, gap, jnp.where(finite[0, 0], gap[0, 0], 0)),
    runner_up_label=_lowest_class(others, others.max(), classes),
  )


def _lowest_class(logits, top, classes):
  """Returns the first class whose logit is `top`; cheaper than an argmax."""
  is_top = logits == jnp.expand_dims(top, -1)
  classes = jnp.expand_dims(classes, range(logits.ndim - 1))
  return jnp.where(is_top, classes, classes.size).min(axis=-1)


def _gap(logits, is_original):
  """Returns the original label's logit minus the best other."""
  best_other = jnp.where(is_original, -jnp.inf, logits).max(axis=-1)
  return jnp.where(is_original, logits, 0).sum(axis=-1) - best_other


class Plan(NamedTuple):
  """What an evaluator has to score: A' edge rows times B' feature columns.

  Shapes are public. Rows that name padding beyond the first few pairs are left
  out, and so are the columns of inert masks, which leave the logits alone.

  Attributes:
    graph: the graph to score on.
    exists: `[k_E]` bool, which valid candidate pairs are edges.
    deleted: `[A', k_E]` bool, existing pairs that each row deletes.
    keep: `[B', k_F]` bool, features that each column keeps.
    row_of: `[A]` int64, the row that stands for each edge subset.
  """

  graph: graphs.Graph
  exists: np.ndarray
  deleted: np.ndarray
  keep: np.ndarray
  row_of: np.ndarray


def plan(
  graph: graphs.PrivateGraph | graphs.Snapshot,
  features: scipy.sparse.csr_array,
  candidates: candidates_lib.CandidateSet,
  feature_masks: FeatureMasks,
) -> Plan:
  """Checks what evaluators share and says what to score.

  Args:
    graph: the graph to score on.
    features: `[N, F]` public features.
    candidates: the support.
    feature_masks: 'effective' masks as the method is written; 'inert' leaves
      the logits alone, so one column stands for all: this reproduces the
      published tables (see the README).

  Raises:
    TypeError: if `graph` is neither a `PrivateGraph` nor a `Snapshot`.
    ValueError: if the features or the target do not fit the graph.
  """
  if not isinstance(graph, (graphs.PrivateGraph, graphs.Snapshot)):
    raise TypeError(
      'graph must be a graphs.PrivateGraph or graphs.Snapshot, got '
      f'{type(graph).__name__}'
    )
  inner, universe = graph.graph, candidates.universe
  _validate.shape((inner.num_nodes, None), features=features)
  _validate.finite(features=features)
  _validate.canonical(features=features)
  _validate.integer(0, inner.num_nodes - 1, target=universe.target)
  _validate.one_of(FEATURE_MASKS, feature_masks=feature_masks)
  exists = universe.pair_valid & inner.has_pairs(universe.pairs)
  rows = _scored_rows(candidates)
  row_of = np.zeros(len(candidates.edge_subsets), np.int64)
  row_of[rows] = np.arange(len(rows))
  keep = ~(candidates.feature_subsets & universe.feature_valid)
  return Plan(
    graph=inner,
    exists=exists,
    deleted=candidates.edge_subsets[rows] & exists,
    keep=keep if feature_masks == 'effective' else keep[:1],
    row_of=row_of,
  )


def finish(
  decision: Decision, plan: Plan, candidates: candidates_lib.CandidateSet
) -> CandidateEvaluation:
  """Spreads the decisions `[A', B']` of a plan over the support `[A, B]`."""
  shape = (len(candidates.edge_subsets), len(candidates.feature_subsets))
  spread = lambda x: np.broadcast_to(np.asarray(x)[plan.row_of], shape)
  label = spread(decision.label)
  return CandidateEvaluation(
    label=label,
    flips=label != label[0, 0],
    existing_edges=(candidates.edge_subsets & plan.exists).sum(axis=1),
    gap=spread(decision.gap).astype(np.float64, copy=False),
    runner_up_label=np.asarray(decision.runner_up_label),
  )


def target_row(features: scipy.sparse.csr_array, target: int) -> np.ndarray:
  """Returns the target's features, `[F]` float64."""
  entries = slice(features.indptr[target], features.indptr[target + 1])
  row = np.zeros(features.shape[1])
  row[features.indices[entries]] = features.data[entries]
  return row


def _scored_rows(candidates: candidates_lib.CandidateSet) -> np.ndarray:
  """Returns the edge subsets among the first 4 pairs, or all of them.

  Two public sizes, so that few shapes are compiled; most nodes of a citation
  graph have at most 4 pairs, which are 11 subsets instead of 79.
  """
  num_pairs = (
    int(np.max(np.flatnonzero(candidates.universe.pair_valid), initial=-1)) + 1
  )
  if num_pairs > _FEW_PAIRS:
    return np.arange(len(candidates.edge_subsets))
  beyond = candidates.edge_subsets[:, _FEW_PAIRS:].any(axis=1)
  return np.flatnonzero(~beyond)
