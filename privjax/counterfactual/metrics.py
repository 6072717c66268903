"""Every reported quantity as a closed form of the release law.

No Monte Carlo: a metric is an expectation over the exact law. All of them are
functions of the private graph, for experiments and audits, not for release.
"""

from typing import NamedTuple

import numpy as np

from privjax.counterfactual import candidates as candidates_lib
from privjax.counterfactual import evaluation as evaluation_lib


class Metrics(NamedTuple):
  """What one release law does on one graph (all floats).

  Attributes:
    ceiling: 1.0 if any candidate of the support flips, else 0.0 (starCF).
    valid_cf_rate: P(the drawn candidate flips).
    targeted_success: P(it flips to the runner-up label).
    empty_rate: P(the empty set).
    nonempty_valid_rate: P(flips | not empty).
    size: mean number of named elements.
    collision: P(two independent releases agree), sum of P squared.
    regret: max u - E u, in utility units.
    expected_utility: E u.
  """

  ceiling: float
  valid_cf_rate: float
  targeted_success: float
  empty_rate: float
  nonempty_valid_rate: float
  size: float
  collision: float
  regret: float
  expected_utility: float


def release_metrics(
  probs: np.ndarray,
  utility: np.ndarray,
  evaluation: evaluation_lib.CandidateEvaluation,
  candidates: candidates_lib.CandidateSet,
  *,
  denominator: int,
) -> Metrics:
  """Computes all metrics of one law.

  Args:
    probs: `[A, B]` float64 law, 0 off the support.
    utility: `[A, B]` int64, in units of 1 / denominator.
    evaluation: the support scored on the private graph.
    candidates: the support.
    denominator: public D.
  """
  valid = candidates.valid
  to_runner_up = evaluation.flips & (
    evaluation.label == evaluation.runner_up_label
  )
  expected = float((probs * utility).sum()) / denominator
  valid_cf_rate = float(probs[evaluation.flips].sum())
  empty_rate = float(probs[0, 0])
  nonempty = 1 - empty_rate
  return Metrics(
    ceiling=float((evaluation.flips & valid).any()),
    valid_cf_rate=valid_cf_rate,
    targeted_success=float(probs[to_runner_up].sum()),
    empty_rate=empty_rate,
    nonempty_valid_rate=valid_cf_rate / nonempty if nonempty > 0 else 0.0,
    size=float((probs * candidates.sizes).sum()),
    collision=float((probs**2).sum()),
    regret=float(utility[valid].max()) / denominator - expected,
    expected_utility=expected,
  )


def retention(valid_cf_rate: float, ceiling: float) -> float | None:
  """Returns valid_cf_rate / ceiling, or None if nothing can flip.

  A ratio of means: pool both over targets first.
  """
  return valid_cf_rate / ceiling if ceiling > 0 else None
