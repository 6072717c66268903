"""PrivCFS composed: public support, private score, exact release law.

  support   public objects                 -> CandidateSet
  score     private graph, support         -> ScoredSupport   (not for release)
  log_law   scored support, epsilon        -> log P over the support
  guarantee epsilon                        -> PrivacyGuarantee

The expensive step is `score`; every epsilon, weight and metric after it is a
cheap pure function. Drawing one candidate from the law is the release.
"""

from collections.abc import Callable
import dataclasses
import fractions
from typing import Literal, NamedTuple

import numpy as np
import scipy.sparse

from privjax import _validate
from privjax import graphs
from privjax import types
from privjax.counterfactual import candidates as candidates_lib
from privjax.counterfactual import evaluation as evaluation_lib
from privjax.counterfactual import factored
from privjax.counterfactual import universe as universe_lib
from privjax.counterfactual import utility as utility_lib
from privjax.mechanisms import exponential
from privjax.models import node_model


@dataclasses.dataclass(frozen=True, kw_only=True)
class PrivCFSConfig:
  """Public settings of a release; the defaults are the paper's.

  Attributes:
    num_pairs: k_E, size of the pair universe.
    max_edges: k_E^max, most pairs deleted.
    num_features: k_F, size of the feature universe.
    max_features: k_F^max, most features masked.
    num_hops: 1 or 2, reach of the pair universe.
    feature_masks: 'effective' (the method as written) or 'inert' (the
      reproduction of the published tables).
    utility: weights, kind and sensitivity.
  """

  num_pairs: int = 12
  max_edges: int = 2
  num_features: int = 12
  max_features: int = 3
  num_hops: Literal[1, 2] = 1
  feature_masks: evaluation_lib.FeatureMasks = 'effective'
  utility: utility_lib.UtilityConfig = utility_lib.UtilityConfig()

  def __post_init__(self):
    _validate.integer(0, num_pairs=self.num_pairs)
    _validate.integer(0, num_features=self.num_features)
    _validate.integer(0, max_edges=self.max_edges)
    _validate.integer(0, max_features=self.max_features)
    _validate.integer(1, k_max=self.max_edges + self.max_features)
    _validate.one_of((1, 2), num_hops=self.num_hops)
    _validate.one_of(
      evaluation_lib.FEATURE_MASKS, feature_masks=self.feature_masks
    )

  @property
  def sensitivity(self) -> fractions.Fraction:
    """The exact bound that the law divides by."""
    return self.utility.sensitivity_bound(
      max_edges=self.max_edges, max_features=self.max_features
    )

  @property
  def denominator(self) -> int:
    """D: utilities are integers over it."""
    return self.utility.denominator(
      max_edges=self.max_edges, max_features=self.max_features
    )


class ScoredSupport(NamedTuple):
  """The support with its private scores. Not for release.

  Attributes:
    candidates: the public support.
    evaluation: labels, flips and gaps on the private graph.
    utility: `[A, B]` int64, in units of 1 / config.denominator.
    config: the public settings that it was scored with.
  """

  candidates: candidates_lib.CandidateSet
  evaluation: evaluation_lib.CandidateEvaluation
  utility: np.ndarray
  config: PrivCFSConfig


def support(
  snapshot: graphs.Snapshot,
  features: scipy.sparse.csr_array,
  first_layer: types.Array,
  target: int,
  config: PrivCFSConfig = PrivCFSConfig(),
) -> candidates_lib.CandidateSet:
  """Builds the support of a release from public objects alone.

  Args:
    snapshot: the public graph.
    features: `[N, F]` public features.
    first_layer: `[F, H]` public kernel of the backbone's first layer.
    target: node id.
    config: public settings.
  """
  universe = universe_lib.build_universe(
    snapshot,
    features,
    first_layer,
    target,
    num_pairs=config.num_pairs,
    num_features=config.num_features,
    num_hops=config.num_hops,
    fill_features=config.feature_masks == 'inert',
  )
  return candidates_lib.enumerate_candidates(
    universe, max_edges=config.max_edges, max_features=config.max_features
  )


def score(
  model: node_model.NodeModel,
  graph: graphs.PrivateGraph | graphs.Snapshot,
  features: scipy.sparse.csr_array,
  candidates: candidates_lib.CandidateSet,
  config: PrivCFSConfig = PrivCFSConfig(),
  *,
  evaluator: Callable[
    ..., evaluation_lib.CandidateEvaluation
  ] = factored.evaluate_factored,
) -> ScoredSupport:
  """Scores the whole support on one graph. Reads private edges.

  Args:
    model: the frozen classifier.
    graph: the private graph (or a `Snapshot`, for a public-only explanation).
    features: `[N, F]` public features.
    candidates: from `support`, with the same config.
    config: public settings.
    evaluator: any of the three evaluators. The default pads to sizes that
      depend on the private neighborhood: for experiments. A release fixes a
      public `capacity`.

  Raises:
    ValueError: if the support was enumerated with other bounds than config's.
  """
  bounds = (config.max_edges, config.max_features)
  if (candidates.max_edges, candidates.max_features) != bounds:
    raise ValueError(
      f'candidates must be enumerated with the bounds {bounds} of config, got '
      f'{(candidates.max_edges, candidates.max_features)}'
    )
  evaluation = evaluator(
    model, graph, features, candidates, feature_masks=config.feature_masks
  )
  utility = utility_lib.candidate_utility(
    evaluation, candidates, config.utility
  )
  return ScoredSupport(candidates, evaluation, utility, config)


def log_law(
  scored: ScoredSupport,
  epsilon: int | str | fractions.Fraction,
  *,
  log_base_measure: np.ndarray | None = None,
) -> np.ndarray:
  """Returns `[A, B]` float64 log probabilities of the release.

  Args:
    scored: from `score`; sensitivity and denominator are its config's.
    epsilon: exact privacy parameter > 0.
    log_base_measure: `[A, B]`, public; `None` is uniform.

  Formal guarantees:
    One draw is `guarantee(epsilon)`: the support is public (`support` takes
    public inputs only) and the utility's sensitivity is
    `config.sensitivity` (see `UtilityConfig.sensitivity_bound`). Shapes and
    compilation are covered only if `score` had an evaluator with a public
    capacity, as `release.PrivateExplainer` does; its default follows the
    private degree.
  """
  config = scored.config
  return exponential.log_law(
    scored.utility,
    epsilon=epsilon,
    sensitivity=config.sensitivity,
    denominator=config.denominator,
    valid=scored.candidates.valid,
    log_base_measure=log_base_measure,
  )


def guarantee(
  epsilon: int | str | fractions.Fraction,
) -> types.PrivacyGuarantee:
  """Returns the statement that one release at `epsilon` satisfies.

  It conditions on public objects fixed before the mechanism runs: node ids,
  features, classes, the backbone, the snapshot and the target. k releases for
  one private graph cost k epsilon, whatever their targets.
  """
  return types.PrivacyGuarantee(
    epsilon=_validate.rational(epsilon=epsilon),
    relation=types.NeighboringRelation.ADD_REMOVE_ONE_EDGE,
    theorem='McSherry & Talwar (2007), Theorem 6; PrivCFS, Theorem 1',
  )
