"""The epsilon-0 baseline: what anyone with the snapshot can compute for free.

The paper leaves it out. An explanation that the analyst can compute from
public objects alone spends nothing; a mechanism has to beat it to be worth its
budget.
"""

from collections.abc import Callable

import numpy as np
import scipy.sparse

from privjax import graphs
from privjax.counterfactual import candidates as candidates_lib
from privjax.counterfactual import evaluation as evaluation_lib
from privjax.counterfactual import factored
from privjax.models import node_model


def public_only_candidate(
  model: node_model.NodeModel,
  snapshot: graphs.Snapshot,
  features: scipy.sparse.csr_array,
  candidates: candidates_lib.CandidateSet,
  *,
  feature_masks: evaluation_lib.FeatureMasks = 'effective',
  evaluator: Callable[
    ..., evaluation_lib.CandidateEvaluation
  ] = factored.evaluate_factored,
) -> tuple[int, int]:
  """Returns the (a, b) of the best explanation *of the snapshot*.

  That is the valid non-empty candidate after which another class leads the
  snapshot's own prediction by most (the smallest gap); ties go to the lowest
  index. (0, 0) if the support holds nothing else.

  Args:
    model: the frozen, public classifier.
    snapshot: the public graph.
    features: `[N, F]` public features.
    candidates: the support.
    feature_masks: 'effective' or 'inert'.
    evaluator: any of the three evaluators.

  Raises:
    TypeError: if `snapshot` is not a `Snapshot`.

  Formal guarantees:
    Reads public inputs only: epsilon is 0.
  """
  if not isinstance(snapshot, graphs.Snapshot):
    raise TypeError(
      f'snapshot must be a Snapshot, got {type(snapshot).__name__}'
    )
  evaluation = evaluator(
    model, snapshot, features, candidates, feature_masks=feature_masks
  )
  gap = np.where(candidates.valid, evaluation.gap, np.inf)
  gap[0, 0] = np.inf
  if not np.isfinite(gap).any():
    return 0, 0
  a, b = np.unravel_index(int(np.argmin(gap)), gap.shape)
  return int(a), int(b)
