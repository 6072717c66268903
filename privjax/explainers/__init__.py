"""What PrivCFS is compared with: explainers, private and not."""

from privjax.explainers import privcf_out
from privjax.explainers import privcf_sgd
from privjax.explainers import randomized_response
from privjax.explainers.deletion import greedy
from privjax.explainers.deletion import greedy_guarantee
from privjax.explainers.deletion import minimal_counterfactual
from privjax.explainers.deletion import minimal_guarantee
from privjax.explainers.deletion import random_guarantee
from privjax.explainers.deletion import random_masks
from privjax.explainers.exact_model import check_masks
from privjax.explainers.exact_model import judge
from privjax.explainers.exact_model import predict
from privjax.explainers.field_batch import Masks
from privjax.explainers.guarantees import ReleaseGuarantee
from privjax.explainers.intervention import apply_intervention
from privjax.explainers.intervention import CURRENCIES
from privjax.explainers.intervention import Explanation
from privjax.explainers.intervention import Intervention
from privjax.explainers.intervention import Labels
from privjax.explainers.mask_optimization import explain
from privjax.explainers.mask_optimization import find_intervention
from privjax.explainers.mask_optimization import find_interventions
from privjax.explainers.mask_optimization import guarantee
from privjax.explainers.mask_optimization import MaskConfig
from privjax.explainers.mask_optimization import Search
from privjax.explainers.mask_optimization import search
from privjax.explainers.operation_space import OperationSpace
from privjax.explainers.operation_space import public_space
from privjax.explainers.operation_space import receptive_field_space

__all__ = (
  'CURRENCIES',
  'Explanation',
  'Intervention',
  'Labels',
  'MaskConfig',
  'Masks',
  'OperationSpace',
  'ReleaseGuarantee',
  'Search',
  'apply_intervention',
  'check_masks',
  'explain',
  'find_intervention',
  'find_interventions',
  'greedy',
  'greedy_guarantee',
  'guarantee',
  'judge',
  'minimal_counterfactual',
  'minimal_guarantee',
  'predict',
  'privcf_out',
  'privcf_sgd',
  'public_space',
  'random_guarantee',
  'random_masks',
  'randomized_response',
  'receptive_field_space',
  'search',
)
