"""Reference evaluator: graph surgery and one whole forward per candidate.

No masks, no degree bookkeeping, no receptive field: edges are really removed
and the model runs on the whole graph. Slow (seconds to minutes per target);
the other evaluators are tested against it.
"""

import functools

import jax
import numpy as np
import scipy.sparse

from privjax import graphs
from privjax.counterfactual import candidates as candidates_lib
from privjax.counterfactual import evaluation
from privjax.models import node_model


def evaluate_full_graph(
  model: node_model.NodeModel,
  graph: graphs.PrivateGraph | graphs.Snapshot,
  features: scipy.sparse.csr_array,
  candidates: candidates_lib.CandidateSet,
  *,
  feature_masks: evaluation.FeatureMasks = 'effective',
) -> evaluation.CandidateEvaluation:
  """Scores every candidate by a forward pass on the surgically edited graph.

  Reads private edges; the result is not for release.

  Args:
    model: the frozen classifier; any number of hops.
    graph: the graph to score on (a `Snapshot` for public-only explanations).
    features: `[N, F]` public features.
    candidates: the support.
    feature_masks: 'effective' or 'inert'.

  Returns:
    The evaluation of all A x B candidates.
  """
  plan = evaluation.plan(graph, features, candidates, feature_masks)
  universe = candidates.universe
  dense = np.asarray(features.toarray(), np.float64)
  row = dense[universe.target].copy()
  with jax.enable_x64(True):
    forward = functools.partial(_target_logits, model.apply_fn, model.params)
    logits = []
    for deleted in plan.deleted:
      edited = plan.graph
      for pair in universe.pairs[deleted]:
        edited = graphs.toggle_pair(edited, pair)
      for kept in plan.keep:
        dense[universe.target] = row
        dense[universe.target, universe.features[~kept]] = 0
        message_graph = graphs.to_message_graph(edited, dense)
        logits.append(np.asarray(forward(message_graph, universe.target)))
    shape = (len(plan.deleted), len(plan.keep), -1)
    decision = jax.jit(evaluation.decide)(np.reshape(logits, shape))
  return evaluation.finish(decision, plan, candidates)


@functools.partial(jax.jit, static_argnums=0)
def _target_logits(apply_fn, params, graph, target):
  return apply_fn(params, graph)[target]
