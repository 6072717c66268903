"""The enumerated support."""

import math

from absl.testing import parameterized
import hypothesis
import numpy as np

from privjax import counterfactual
from privjax.counterfactual import candidates as candidates_lib
from tests.counterfactual import cases


def _universe(num_pairs, num_features, valid_pairs=None, valid_features=None):
  valid_pairs = num_pairs if valid_pairs is None else valid_pairs
  valid_features = num_features if valid_features is None else valid_features
  others = 1 + np.arange(num_pairs)
  return counterfactual.Universe(
    target=0,
    pairs=np.stack([np.zeros_like(others), others], axis=1),
    pair_valid=np.arange(num_pairs) < valid_pairs,
    features=np.arange(num_features),
    feature_valid=np.arange(num_features) < valid_features,
  )


class CountTest(parameterized.TestCase):
  @parameterized.parameters(
    (12, 2, 12, 3, 23_621),
    (12, 2, 4, 2, 869),
    (12, 0, 12, 3, 299),
    (12, 2, 0, 3, 79),
    (0, 2, 0, 3, 1),
    (3, 9, 2, 9, 32),
  )
  def test_sizes(self, num_pairs, max_edges, num_features, max_features, size):
    candidates = counterfactual.enumerate_candidates(
      _universe(num_pairs, num_features),
      max_edges=max_edges,
      max_features=max_features,
    )
    self.assertEqual(candidates.support_size, size)
    self.assertEqual(candidates.valid.sum(), size)
    self.assertEqual(candidates.k_max, max_edges + max_features)

  @parameterized.parameters((0, 0), (1, 2), (5, 12), (12, 0))
  def test_padded_rows_are_not_valid(self, valid_pairs, valid_features):
    universe = _universe(12, 12, valid_pairs, valid_features)
    candidates = counterfactual.enumerate_candidates(universe)
    self.assertEqual(candidates.valid.shape, (79, 299))
    choose = lambda n, most: sum(math.comb(n, k) for k in range(most + 1))
    self.assertEqual(candidates.edge_valid.sum(), choose(valid_pairs, 2))
    self.assertEqual(candidates.feature_valid.sum(), choose(valid_features, 3))
    self.assertTrue(candidates.valid[0, 0])
    self.assertFalse(
      candidates.edge_subsets[candidates.edge_valid][:, valid_pairs:].any()
    )
    self.assertFalse(
      candidates.feature_subsets[candidates.feature_valid][
        :, valid_features:
      ].any()
    )


class OrderTest(parameterized.TestCase):
  def test_by_size_then_lexicographic(self):
    rows = candidates_lib.subsets(3, 2)
    self.assertEqual(
      [np.flatnonzero(row).tolist() for row in rows],
      [[], [0], [1], [2], [0, 1], [0, 2], [1, 2]],
    )

  def test_the_product_is_edges_by_features(self):
    candidates = counterfactual.enumerate_candidates(
      _universe(2, 3), max_edges=1, max_features=2
    )
    self.assertEqual(candidates.edge_sizes.tolist(), [0, 1, 1])
    self.assertEqual(candidates.feature_sizes.tolist(), [0, 1, 1, 1, 2, 2, 2])
    self.assertEqual(candidates.sizes.shape, (3, 7))
    self.assertEqual(candidates.sizes[0, 0], 0)
    self.assertEqual(candidates.sizes[2].tolist(), [1, 2, 2, 2, 3, 3, 3])

  @hypothesis.settings(max_examples=30)
  @hypothesis.given(case=cases.any_case())
  def test_any_support(self, case):
    for config in (cases.CONFIG, cases.TWO_HOP):
      candidates = case.support(config)
      self.assertEqual(cases.named(candidates), case.subsets(config))
      edge_subsets, feature_subsets = case.subsets(config)
      self.assertLen(set(edge_subsets), len(edge_subsets))
      self.assertLen(set(feature_subsets), len(feature_subsets))

  def test_shared_rows_are_read_only(self):
    rows = candidates_lib.subsets(4, 2)
    with self.assertRaisesRegex(ValueError, 'read-only'):
      rows[0, 0] = True


class ErrorTest(parameterized.TestCase):
  @parameterized.parameters(
    (dict(max_edges=0, max_features=0), 'k_max must be an integer >= 1, got 0'),
    (dict(max_edges=-1), 'max_edges must be an integer >= 0, got -1'),
    (dict(max_features=-2), 'max_features must be an integer >= 0, got -2'),
    (dict(max_edges=1.0), 'max_edges must be an integer >= 0, got 1.0'),
    (dict(max_edges=True), 'max_edges must be an integer >= 0, got True'),
  )
  def test_bad_values(self, kwargs, message):
    with self.assertRaisesRegex(ValueError, message):
      counterfactual.enumerate_candidates(_universe(3, 3), **kwargs)
