"""The Planetoid citation graphs: Cora and CiteSeer with their usual split.

A set is seven files `ind.<name>.<part>`: features and one-hot labels of the
first rows (`allx`, `ally`) and of the test rows (`tx`, `ty`), the number of
training rows (`y`), neighbor lists (`graph`) and the node ids of the test rows
(`test.index`).

References: Yang, Cohen and Salakhutdinov (2016), "Revisiting semi-supervised
learning with graph embeddings"; Kipf and Welling (2017), whose reading of the
files every later paper follows.
"""

import os
from typing import Any

import numpy as np
import scipy.sparse

from privjax import _validate
from privjax.data import node_dataset
from privjax.data import restricted_pickle
from privjax.data import sources
from privjax.graphs import graph as graph_lib

NAMES = ('cora', 'citeseer')
_PICKLED_PARTS = ('y', 'allx', 'ally', 'tx', 'ty', 'graph')
_NUM_VAL = 500


def load(
  name: str, data_dir: str | os.PathLike | None = None
) -> node_dataset.NodeDataset:
  """Loads Cora or CiteSeer.

  Features are the 0/1 words of the files, not row-normalized. The first rows
  train (20 per class: 140 and 120), the next 500 validate and the rows listed
  in `test.index` (1,000) test.

  CiteSeer's files lack 15 nodes inside the range of test ids. They are in the
  neighbor lists, so they stay in the graph: with no feature, with label 0 (the
  argmax of a missing one-hot row, as the field reads it) and in no split.

  Args:
    name: 'cora' or 'citeseer'.
    data_dir: where to look for the files first, see `sources.locate`.

  Returns:
    The data set; its edges are private.

  Raises:
    ValueError: if `name` is another, or a file has a wrong checksum.
    FileNotFoundError: if a file is neither on disk nor downloadable.
  """
  _validate.one_of(NAMES, name=name)
  parts = {part: _unpickle(name, part, data_dir) for part in _PICKLED_PARTS}
  path = _locate(name, 'test.index', data_dir)
  test_index = np.array(path.read_text('ascii').split(), np.int64)
  num_train, num_classes = parts['y'].shape
  labels, features = _place_rows(parts, test_index)
  graph, counts = graph_lib.from_pairs(len(labels), _pairs(parts['graph']))
  return node_dataset.NodeDataset(
    name=name,
    graph=graph_lib.PrivateGraph(graph),
    features=node_dataset.canonical_features(features),
    labels=labels,
    num_classes=num_classes,
    train_index=np.arange(num_train),
    val_index=np.arange(num_train, num_train + _NUM_VAL),
    test_index=test_index,
    counts=counts,
  )


def _locate(name: str, part: str, data_dir: str | os.PathLike | None):
  return sources.locate(sources.PLANETOID, f'ind.{name}.{part}', data_dir)


def _unpickle(name: str, part: str, data_dir: str | os.PathLike | None) -> Any:
  return restricted_pickle.loads(_locate(name, part, data_dir).read_bytes())


def _place_rows(
  parts: dict[str, Any], test_index: np.ndarray
) -> tuple[np.ndarray, scipy.sparse.coo_array]:
  """Puts the test rows at their node ids, behind the other rows.

  Returns:
    `[N]` int64 labels, and the `[N, F]` features.
  """
  num_first = parts['allx'].shape[0]
  node = np.concatenate([np.arange(num_first), test_index])
  one_hot = np.concatenate([parts['ally'], parts['ty']])
  labels = np.zeros(node.max() + 1, np.int64)
  labels[node] = one_hot.argmax(axis=1)
  words = scipy.sparse.vstack([parts['allx'], parts['tx']]).tocoo()
  return labels, scipy.sparse.coo_array(
    (words.data, (node[words.row], words.col)),
    shape=(len(labels), words.shape[1]),
  )


def _pairs(neighbors: dict[int, list[int]]) -> np.ndarray:
  """Returns the `[P, 2]` edges of lists that hold every edge at both ends."""
  both = np.array([(i, j) for i, row in neighbors.items() for j in row])
  both.sort(axis=1)
  both = both[np.lexsort(both.T)]
  # Equal rows are now adjacent, so that every other row is one end's copy and
  # the counts of loops and repeats are of edges, not of list entries.
  if not np.array_equal(both[::2], both[1::2]):
    raise ValueError('graph must list every edge at both of its ends')
  return both[::2]
