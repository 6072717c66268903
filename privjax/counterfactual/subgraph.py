"""Evaluator for any local model: `vmap` over candidates on the receptive field.

One padded receptive field, one masked forward per candidate, batched. Works
for any number of hops and any pairs; costs a forward on the ball per
candidate. The two-layer GCN has a much faster path, `evaluate_factored`.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse

from privjax import _validate
from privjax import graphs
from privjax.counterfactual import candidates as candidates_lib
from privjax.counterfactual import evaluation
from privjax.models import node_model


def evaluate_subgraph(
  model: node_model.NodeModel,
  graph: graphs.PrivateGraph | graphs.Snapshot,
  features: scipy.sparse.csr_array,
  candidates: candidates_lib.CandidateSet,
  *,
  feature_masks: evaluation.FeatureMasks = 'effective',
  capacity: graphs.Capacity | None = None,
  batch_size: int = 64,
) -> evaluation.CandidateEvaluation:
  """Scores every candidate by a masked forward on the padded receptive field.

  Reads private edges; the result is not for release.

  Args:
    model: the frozen classifier, with the locality that `NodeModel` promises.
    graph: the graph to score on (a `Snapshot` for public-only explanations).
    features: `[N, F]` public features.
    candidates: the support.
    feature_masks: 'effective' or 'inert'.
    capacity: public padded sizes of the field. A field that exceeds them is cut
      (see `graphs.extract_receptive_field`), since an error would tell its
      size; any score keeps the guarantee. `None` takes the exact, private sizes
      (experiments and tests only).
    batch_size: candidates per vmapped forward; bounds memory, which is about
      `8 * batch_size * nodes * F` bytes.

  Returns:
    The evaluation of all A x B candidates.
  """
  plan = evaluation.plan(graph, features, candidates, feature_masks)
  _validate.integer(1, batch_size=batch_size)
  field = graphs.extract_receptive_field(
    plan.graph,
    candidates.universe.target,
    num_hops=model.num_hops,
    capacity=capacity,
    truncate=capacity is not None,
  )
  on_edge, on_node = _incidence(field, candidates.universe.pairs)
  with jax.enable_x64(True):
    decision = _decide_all(
      model.params,
      field,
      graphs.field_features(field, features),
      candidates.universe.features,
      on_edge,
      on_node,
      plan.deleted,
      plan.keep,
      apply_fn=model.apply_fn,
      batch_size=batch_size,
    )
  return evaluation.finish(decision, plan, candidates)


@functools.partial(jax.jit, static_argnames=('apply_fn', 'batch_size'))
def _decide_all(
  params,
  field,
  rows,
  feature_ids,
  on_edge,
  on_node,
  deleted,
  keep,
  *,
  apply_fn,
  batch_size,
):
  """Decides all A x B candidates, `batch_size` at a time."""
  num_columns = len(keep)

  def logits(index):
    # Masked features multiply by 0, kept ones by 1; a padded id repeats feature
    # 0 with keep = True, and `min` leaves the word to the real entry.
    mask = jnp.ones(rows.shape[1])
    mask = mask.at[feature_ids].min(keep[index % num_columns] * 1.0)
    gone = deleted[index // num_columns]
    edited = _intervene(field, rows, mask, gone, on_edge, on_node)
    return apply_fn(params, edited)[field.target_index]

  indices = jnp.arange(len(deleted) * num_columns)
  flat = jax.lax.map(logits, indices, batch_size=batch_size)
  return evaluation.decide(flat.reshape(len(deleted), num_columns, -1))


def _intervene(field, rows, mask, deleted, on_edge, on_node):
  """Returns the field as a message graph, after one intervention."""
  hit = (on_edge & deleted[None, :]).any(axis=1)
  lost = (on_node & deleted[None, :]).sum(axis=1)
  return field.graph._replace(
    nodes={
      'features': rows.at[field.target_index].multiply(mask),
      'degree': field.boundary_degree - lost,
    },
    edges={'mask': field.graph.edges['mask'] * ~hit},
  )


def _incidence(field: graphs.ReceptiveField, pairs: np.ndarray):
  """Returns which pairs are which edges `[e, k_E]` and touch which nodes."""
  senders = field.node_ids[field.graph.senders][:, None]
  receivers = field.node_ids[field.graph.receivers][:, None]
  first, second = pairs[:, 0], pairs[:, 1]
  on_edge = ((senders == first) & (receivers == second)) | (
    (senders == second) & (receivers == first)
  )
  nodes = field.node_ids[:, None]
  return on_edge, (nodes == first) | (nodes == second)
