"""Graph data sets by name.

>>> load('embedded').graph.graph.num_nodes
2708
"""

import os

from privjax import _validate
from privjax.data import node_dataset
from privjax.data import planetoid
from privjax.data import synthetic

DATASETS = ('cora', 'citeseer', 'embedded')


def load(
  name: str, data_dir: str | os.PathLike | None = None
) -> node_dataset.NodeDataset:
  """Loads the graph data set called `name`.

  Args:
    name: 'cora' or 'citeseer' (`planetoid.load`), or 'embedded', the synthetic
      graph of `synthetic.citation_graph()`, which needs no file.
    data_dir: where to look for files first, see `sources.locate`.

  Returns:
    The data set; its edges are private.

  Raises:
    ValueError: if no data set has that name, or a file has a wrong checksum.
    FileNotFoundError: if a file is neither on disk nor downloadable.
  """
  _validate.one_of(DATASETS, dataset=name)
  if name == 'embedded':
    return synthetic.citation_graph()
  return planetoid.load(name, data_dir)
