"""Frozen node classifiers: a two-layer GCN, and the contract for any other."""

from privjax.models import gcn
from privjax.models import params_io
from privjax.models.locality import check_locality
from privjax.models.node_model import NodeModel
from privjax.models.training import train
from privjax.models.training import TrainingConfig

__all__ = (
  'NodeModel',
  'TrainingConfig',
  'check_locality',
  'gcn',
  'params_io',
  'train',
)
