"""A graph with node features, node labels and a public split.

>>> from privjax.data import synthetic
>>> dataset = synthetic.citation_graph()
>>> dataset.features.shape, dataset.num_classes, len(dataset.train_index)
((2708, 1433), 7, 140)

Under `ADD_REMOVE_ONE_EDGE` the edges are the private input; nodes, features,
labels and the split are the same in both neighbors.
"""

import dataclasses

import numpy as np
import scipy.sparse

from privjax import _validate
from privjax.graphs import graph as graph_lib


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class NodeDataset:
  """A node classification data set (arrays are not modified).

  Attributes:
    name: the name that `data.load` knows it by.
    graph: the private graph on N nodes.
    features: `[N, F]` float32 CSR array, finite, with sorted indices and
      neither duplicates nor explicit zeros.
    labels: `[N]` int64 in [0, K).
    num_classes: K >= 1.
    train_index: `[T]` int64 node ids.
    val_index: `[V]` int64 node ids.
    test_index: `[S]` int64 node ids.
    counts: the self-loops and repeated edges dropped from the source.

  Raises:
    ValueError: naming the field that breaks one of these rules.
  """

  name: str
  graph: graph_lib.PrivateGraph
  features: scipy.sparse.csr_array
  labels: np.ndarray
  num_classes: int
  train_index: np.ndarray
  val_index: np.ndarray
  test_index: np.ndarray
  counts: graph_lib.CanonicalCounts

  def __post_init__(self):
    num_nodes = self.graph.graph.num_nodes
    _validate.integer(1, num_classes=self.num_classes)
    _check_features(self.features, num_nodes)
    _validate.shape((num_nodes,), labels=self.labels)
    _check_ids(self.num_classes, labels=self.labels)
    _check_ids(num_nodes, train_index=self.train_index)
    _check_ids(num_nodes, val_index=self.val_index)
    _check_ids(num_nodes, test_index=self.test_index)


def canonical_features(matrix) -> scipy.sparse.csr_array:
  """Returns any matrix as the CSR array that `NodeDataset.features` wants.

  Args:
    matrix: `[N, F]`, dense or SciPy sparse; not modified. Duplicate entries
      are summed, explicit zeros dropped, values rounded to float32.
  """
  result = scipy.sparse.csr_array(matrix, dtype=np.float32, copy=True)
  result.sum_duplicates()
  result.eliminate_zeros()
  return result


def _check_features(features: scipy.sparse.csr_array, num_nodes: int) -> None:
  if not isinstance(features, scipy.sparse.csr_array):
    kind = type(features).__name__
    raise ValueError(f'features must be a SciPy csr_array, got {kind}')
  _validate.shape((num_nodes, None), features=features)
  if features.dtype != np.float32:
    raise ValueError(f'features must be float32, got {features.dtype}')
  _validate.finite(features=features)
  num_zeros = features.nnz - np.count_nonzero(features.data)
  if num_zeros or not features.has_canonical_format:
    raise ValueError(
      'features must have sorted indices and neither duplicates nor explicit '
      f'zeros (got {num_zeros} zeros): see `canonical_features`'
    )


def _check_ids(stop: int, **kwargs) -> None:
  """Checks that a vector is int64 with every entry in [0, stop)."""
  _validate.shape((None,), **kwargs)
  ((name, ids),) = kwargs.items()
  if ids.dtype != np.int64:
    raise ValueError(f'{name} must be int64, got {ids.dtype}')
  outside = ids[(ids < 0) | (ids >= stop)]
  if outside.size:
    raise ValueError(
      f'{name} must be in [0, {stop}), got {outside.size} outside, such as '
      f'{int(outside[0])}'
    )
