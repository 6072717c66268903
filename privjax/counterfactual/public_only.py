"""The epsilon-0 baseline: what anyone with the snapshot can compute for free.

The paper leaves it out. An explanation that the analyst can compute from
public objects alone spends nothing; a mechanism has to beat it to be worth its
budget.
"""

import numpy as np

from privjax.counterfactual import candidates as candidates_lib
from privjax.counterfactual import evaluation as evaluation_lib


def public_only_candidate(
  snapshot_evaluation: evaluation_lib.CandidateEvaluation,
  candidates: candidates_lib.CandidateSet,
) -> tuple[int, int]:
  """Returns the (a, b) of the best explanation *of the snapshot*.

  That is the valid non-empty candidate after which another class leads the
  snapshot's own prediction by most (the smallest gap); ties go to the lowest
  index. (0, 0) if the support holds nothing else.

  Args:
    snapshot_evaluation: the support scored on the public snapshot.
    candidates: the support.

  Formal guarantees:
    Reads public inputs only: epsilon is 0.
  """
  gap = np.where(candidates.valid, snapshot_evaluation.gap, np.inf)
  gap[0, 0] = np.inf
  if not np.isfinite(gap).any():
    return 0, 0
  a, b = np.unravel_index(int(np.argmin(gap)), gap.shape)
  return int(a), int(b)
