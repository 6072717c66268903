"""Tests of the Planetoid reader, on a toy set and on the real files."""

import hashlib
import os
import pathlib
import pickle
import tempfile
import unittest.mock

from absl.testing import parameterized
import numpy as np
import pytest
import scipy.sparse

from privjax.data import planetoid
from privjax.data import sources

_DATA_DIR = os.environ.get(sources.DATA_DIR_VARIABLE)
_NUM_FIRST = 502  # 2 training rows and 500 validation rows.


def _toy_parts():
  """Two test rows, listed as 505, 503; node 504 is missing, 502 is not."""
  one_hot = np.eye(3, dtype=np.int32)
  neighbors = {node: [] for node in range(506)}
  for i, j in [(0, 1), (0, 1), (1, 505), (503, 503), (504, 2)]:
    neighbors[i].append(j)
    neighbors[j].append(i)
  return {
    'y': one_hot[:2],
    'ally': one_hot[np.arange(_NUM_FIRST) % 2],
    'allx': scipy.sparse.csr_matrix((_NUM_FIRST, 4), dtype=np.float32),
    'ty': one_hot[[2, 1, 2]],
    'tx': scipy.sparse.csr_matrix(np.eye(3, 4, dtype=np.float32)),
    'graph': neighbors,
    'test.index': [505, 503, 502],
  }


class ToyTest(parameterized.TestCase):
  def _load(self, parts):
    """Writes the parts as the files of 'cora' and loads them."""
    folder = pathlib.Path(self.enter_context(tempfile.TemporaryDirectory()))
    files = {}
    (folder / 'planetoid').mkdir()
    for part, value in parts.items():
      content = (
        ''.join(f'{i}\n' for i in value).encode()
        if part == 'test.index'
        else pickle.dumps(value)
      )
      (folder / 'planetoid' / f'ind.cora.{part}').write_bytes(content)
      files[f'ind.cora.{part}'] = sources.SourceFile(
        urls=(), sha256=(hashlib.sha256(content).hexdigest(),)
      )
    source = sources.Source(
      name='planetoid', version='', license='', citation='', files=files
    )
    with unittest.mock.patch.object(sources, 'PLANETOID', source):
      return planetoid.load('cora', folder)

  def test_places_test_rows_at_their_ids(self):
    dataset = self._load(_toy_parts())
    self.assertEqual(dataset.features.shape, (506, 4))
    rows = dataset.features.toarray()[502:]
    np.testing.assert_array_equal(
      rows, np.eye(3, 4)[[2, 1, 0, 0]] * [[1], [1], [0], [1]]
    )
    self.assertEqual(dataset.labels[502:].tolist(), [2, 1, 0, 2])
    self.assertEqual(dataset.labels[:4].tolist(), [0, 1, 0, 1])

  def test_missing_node_is_in_the_graph_and_in_no_split(self):
    dataset = self._load(_toy_parts())
    self.assertEqual(dataset.graph.graph.neighbors(504).tolist(), [2])
    self.assertEqual(dataset.train_index.tolist(), [0, 1])
    self.assertEqual(dataset.val_index.tolist(), list(range(2, 502)))
    self.assertEqual(dataset.test_index.tolist(), [505, 503, 502])

  def test_counts_loops_and_repeats_of_edges(self):
    dataset = self._load(_toy_parts())
    self.assertEqual(
      dataset.graph.graph.pairs.tolist(), [[0, 1], [1, 505], [2, 504]]
    )
    self.assertEqual(dataset.counts, (1, 1))

  def test_refuses_a_one_sided_edge(self):
    parts = _toy_parts()
    parts['graph'][7] = [8, 9]
    with self.assertRaisesRegex(ValueError, 'graph must list every edge'):
      self._load(parts)

  def test_refuses_nan_words(self):
    parts = _toy_parts()
    parts['tx'].data[1] = np.nan
    with self.assertRaisesRegex(ValueError, 'features must be finite'):
      self._load(parts)

  def test_refuses_another_name(self):
    with self.assertRaisesRegex(ValueError, "name must be one of 'cora'.*'pub"):
      planetoid.load('pubmed')


@pytest.mark.realdata
@pytest.mark.skipif(
  not _DATA_DIR,
  reason=f'needs the Planetoid files: set {sources.DATA_DIR_VARIABLE}',
)
class RealDataTest(parameterized.TestCase):
  @parameterized.named_parameters(
    ('cora', 'cora', (2708, 1433), 5278, 7, (0, 151), 140),
    ('citeseer', 'citeseer', (3327, 3703), 4552, 6, (124, 56), 120),
  )
  def test_sizes(self, name, shape, num_edges, num_classes, counts, num_train):
    dataset = planetoid.load(name, _DATA_DIR)
    self.assertEqual(dataset.name, name)
    self.assertEqual(dataset.features.shape, shape)
    self.assertEqual(dataset.graph.graph.num_edges, num_edges)
    self.assertEqual(dataset.num_classes, num_classes)
    self.assertEqual(dataset.counts, counts)
    self.assertEqual(set(dataset.features.data), {1.0})
    np.testing.assert_array_equal(
      np.bincount(dataset.labels[dataset.train_index]), [20] * num_classes
    )
    self.assertLen(dataset.train_index, num_train)
    self.assertLen(dataset.val_index, 500)
    self.assertLen(np.unique(dataset.test_index), 1000)
    homophily = np.equal(*dataset.labels[dataset.graph.graph.pairs].T).mean()
    # Misplaced test rows would bring it to about 0.5.
    self.assertGreater(homophily, 0.73)

  def test_citeseer_has_15_nodes_outside_its_files(self):
    dataset = planetoid.load('citeseer', _DATA_DIR)
    behind = np.arange(2312, 3327)
    missing = behind[~np.isin(behind, dataset.test_index)]
    self.assertLen(missing, 15)
    self.assertEqual(dataset.features[missing].nnz, 0)
    self.assertEqual(set(dataset.labels[missing]), {0})
