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

import jax
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
_MOST_UNROLLED = 16


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
  by_class = jnp.moveaxis(jnp.asarray(logits), -1, 0)
  classes = jnp.arange(len(by_class), dtype=jnp.int32)
  empty = by_class[:, 0, 0]
  empty = jnp.where(jnp.isfinite(empty).all(), empty, 0)
  original = jnp.argmax(empty).astype(jnp.int32)
  others = jnp.where(classes == original, -jnp.inf, empty)
  ranked = _rank(by_class, classes, original)
  finite = jnp.isfinite(ranked.top) & jnp.isfinite(ranked.low)
  keep = finite & finite[0, 0]
  gap = ranked.own - ranked.best_other
  return Decision(
    label=jnp.where(keep, ranked.label, original),
    gap=jnp.where(keep, gap, jnp.where(finite[0, 0], gap[0, 0], 0)),
    runner_up_label=jnp.argmax(others).astype(jnp.int32),
  )


class _Ranked(NamedTuple):
  """What `decide` asks of the logits of each candidate, each `[A, B]`."""

  label: types.Array
  top: types.Array
  low: types.Array
  own: types.Array
  best_other: types.Array


def _rank(by_class, classes, original) -> _Ranked:
  """Compares classes one after the other: the last axis is too short to."""

  def add(ranked: _Ranked, item):
    label, logit = item
    other = jnp.maximum(ranked.best_other, logit)
    return _Ranked(
      label=jnp.where(logit > ranked.top, label, ranked.label),
      top=jnp.maximum(ranked.top, logit),
      low=jnp.minimum(ranked.low, logit),
      own=jnp.where(label == original, logit, ranked.own),
      best_other=jnp.where(label == original, ranked.best_other, other),
    ), None

  lowest = jnp.full_like(by_class[0], -jnp.inf)
  none = jnp.zeros(lowest.shape, jnp.int32)
  start = _Ranked(none, lowest, -lowest, lowest, lowest)
  unroll = unroll_few(len(classes))
  return jax.lax.scan(add, start, (classes, by_class), unroll=unroll)[0]


def unroll_few(num_steps: int) -> int:
  """Returns `unroll` of a scan: all of few steps are fused into one kernel."""
  return num_steps if num_steps <= _MOST_UNROLLED else 1


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
