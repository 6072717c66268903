"""Frozen node classifiers: a two-layer GCN, and the contract for any other."""

from privjax.models import gcn
from privjax.models import params_io
from privjax.models import state_dict
from privjax.models.locality import check_locality
from privjax.models.node_model import NodeModel
from privjax.models.training import train
from privjax.models.training import TrainingConfig
from privjax.models.weights_io import check_logits
from privjax.models.weights_io import load_gcn_weights

__all__ = (
  'NodeModel',
  'TrainingConfig',
  'check_locality',
  'check_logits',
  'gcn',
  'load_gcn_weights',
  'params_io',
  'state_dict',
  'train',
)
