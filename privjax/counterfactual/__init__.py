"""PrivCFS: private counterfactual explanations on graphs."""

from privjax.counterfactual.candidates import CandidateSet
from privjax.counterfactual.candidates import enumerate_candidates
from privjax.counterfactual.evaluation import CandidateEvaluation
from privjax.counterfactual.evaluation import FEATURE_MASKS
from privjax.counterfactual.factored import evaluate_factored
from privjax.counterfactual.factored import NeighborCapacity
from privjax.counterfactual.factored import project
from privjax.counterfactual.full_graph import evaluate_full_graph
from privjax.counterfactual.metrics import Metrics
from privjax.counterfactual.metrics import release_metrics
from privjax.counterfactual.metrics import retention
from privjax.counterfactual.privcfs import guarantee
from privjax.counterfactual.privcfs import log_law
from privjax.counterfactual.privcfs import PrivCFSConfig
from privjax.counterfactual.privcfs import score
from privjax.counterfactual.privcfs import ScoredSupport
from privjax.counterfactual.privcfs import support
from privjax.counterfactual.public_only import public_only_candidate
from privjax.counterfactual.simulate import PriceList
from privjax.counterfactual.simulate import simulate_price_list
from privjax.counterfactual.subgraph import evaluate_subgraph
from privjax.counterfactual.targets import borderline_targets
from privjax.counterfactual.targets import margins
from privjax.counterfactual.targets import node_margins
from privjax.counterfactual.targets import PROTOCOLS
from privjax.counterfactual.targets import random_targets
from privjax.counterfactual.targets import stratified_targets
from privjax.counterfactual.universe import build_universe
from privjax.counterfactual.universe import Universe
from privjax.counterfactual.utility import candidate_utility
from privjax.counterfactual.utility import utility_levels
from privjax.counterfactual.utility import UtilityConfig

__all__ = (
  'CandidateEvaluation',
  'CandidateSet',
  'FEATURE_MASKS',
  'Metrics',
  'NeighborCapacity',
  'PROTOCOLS',
  'PriceList',
  'PrivCFSConfig',
  'ScoredSupport',
  'Universe',
  'UtilityConfig',
  'borderline_targets',
  'build_universe',
  'candidate_utility',
  'enumerate_candidates',
  'evaluate_factored',
  'evaluate_full_graph',
  'evaluate_subgraph',
  'guarantee',
  'log_law',
  'margins',
  'node_margins',
  'project',
  'public_only_candidate',
  'random_targets',
  'release_metrics',
  'retention',
  'score',
  'simulate_price_list',
  'stratified_targets',
  'support',
  'utility_levels',
)
