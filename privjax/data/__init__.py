"""Files to graphs: public data sets, their sources and an offline default."""

from privjax.data import node_dataset
from privjax.data import planetoid
from privjax.data import registry
from privjax.data import restricted_pickle
from privjax.data import sources
from privjax.data import synthetic

DATASETS = registry.DATASETS
NodeDataset = node_dataset.NodeDataset
load = registry.load

__all__ = [
  'DATASETS',
  'NodeDataset',
  'load',
  'node_dataset',
  'planetoid',
  'registry',
  'restricted_pickle',
  'sources',
  'synthetic',
]
