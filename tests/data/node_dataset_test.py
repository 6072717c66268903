"""Tests of the node data set record."""

import dataclasses

from absl.testing import parameterized
import numpy as np
import scipy.sparse

from privjax.data import node_dataset
from privjax.graphs import graph as graph_lib


def _fields(**changes):
  """Returns the fields of a valid data set of 4 nodes, with changes."""
  graph, counts = graph_lib.from_pairs(4, [[0, 1], [1, 2]])
  fields = {
    'name': 'toy',
    'graph': graph_lib.PrivateGraph(graph),
    'features': node_dataset.canonical_features(np.eye(4, 3)),
    'labels': np.array([0, 1, 1, 0]),
    'num_classes': 2,
    'train_index': np.array([0]),
    'val_index': np.array([1, 2]),
    'test_index': np.array([3]),
    'counts': counts,
  }
  return {**fields, **changes}


def _csr(data, indices, indptr, dtype=np.float32):
  return scipy.sparse.csr_array(
    (np.array(data, dtype), indices, indptr), shape=(4, 3)
  )


class NodeDatasetTest(parameterized.TestCase):
  def test_keeps_valid_fields(self):
    dataset = node_dataset.NodeDataset(**_fields())
    self.assertEqual(dataset.labels.tolist(), [0, 1, 1, 0])
    with self.assertRaises(dataclasses.FrozenInstanceError):
      dataset.name = 'other'

  @parameterized.named_parameters(
    ('nan', _csr([np.nan], [0], [0, 1, 1, 1, 1]), 'features must be finite'),
    ('inf', _csr([np.inf], [0], [0, 1, 1, 1, 1]), 'features must be finite'),
    ('float64', _csr([1], [0], [0, 1, 1, 1, 1], float), 'features.*float64'),
    ('zero', _csr([0], [0], [0, 1, 1, 1, 1]), r'features.*1 zeros'),
    ('unsorted', _csr([1, 1], [2, 0], [0, 2, 2, 2, 2]), 'features.*sorted'),
    ('repeated', _csr([1, 1], [2, 2], [0, 2, 2, 2, 2]), 'features.*duplicates'),
    ('dense', np.eye(4, 3, dtype=np.float32), 'features.*csr_array'),
    ('rows', node_dataset.canonical_features(np.eye(5, 3)), 'features.*shape'),
  )
  def test_refuses_features(self, features, message):
    with self.assertRaisesRegex(ValueError, message):
      node_dataset.NodeDataset(**_fields(features=features))

  @parameterized.named_parameters(
    ('label_high', 'labels', np.array([0, 1, 2, 0]), r'\[0, 2\), got 1 .* 2'),
    ('label_negative', 'labels', np.array([0, -1, 0, 0]), r'got 1 .* -1'),
    ('labels_short', 'labels', np.array([0, 1, 1]), 'shape'),
    ('labels_int32', 'labels', np.zeros(4, np.int32), 'int32'),
    ('train', 'train_index', np.array([4]), r'\[0, 4\)'),
    ('val', 'val_index', np.array([-1, 5]), 'got 2 outside'),
    ('test', 'test_index', np.array([[0]]), 'shape'),
    ('test_float', 'test_index', np.array([0.0]), 'float64'),
    ('no_class', 'num_classes', 0, '>= 1'),
  )
  def test_refuses_and_names(self, field, value, message):
    with self.assertRaisesRegex(ValueError, f'^{field} .*{message}'):
      node_dataset.NodeDataset(**_fields(**{field: value}))


class CanonicalFeaturesTest(parameterized.TestCase):
  def test_sorts_sums_and_drops_zeros_of_a_copy(self):
    matrix = _csr([1, 2, 4, 0], [2, 0, 2, 1], [0, 3, 4, 4, 4], float)
    result = node_dataset.canonical_features(matrix)
    self.assertEqual(result.dtype, np.float32)
    self.assertEqual(result.indices.tolist(), [0, 2])
    self.assertEqual(result.data.tolist(), [2, 5])
    self.assertEqual(matrix.indices.tolist(), [2, 0, 2, 1])
