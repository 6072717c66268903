"""The numbering of pairs, exact at every size."""

from absl.testing import parameterized
import numpy as np

from privjax import prng
from privjax.placement import pairs
from tests.oracles import placement as oracle


class PairsTest(parameterized.TestCase):
  @parameterized.parameters(1, 2, 3, 4, 7, 20)
  def test_is_lexicographic(self, num_nodes):
    expected = oracle.all_pairs(num_nodes)
    total = pairs.num_pairs(num_nodes)
    self.assertLen(expected, total)
    found = pairs.pair_at(np.arange(total), num_nodes)
    self.assertEqual(list(map(tuple, found.tolist())), expected)
    index = pairs.index_of(found, num_nodes)
    self.assertEqual(index.tolist(), list(range(total)))

  @parameterized.parameters(10**5, 10**9 + 7, 2**31 - 1, 2**31)
  def test_is_exact_for_large_graphs(self, num_nodes):
    total = pairs.num_pairs(num_nodes)
    rng = prng.generator(0, 'pairs_test', num_nodes)
    rows = rng.integers(0, num_nodes - 1, 2000)
    # The first and last pairs of rows, where a root is off by one.
    edges = np.concatenate(
      [
        np.stack([rows, rows + 1], axis=1),
        np.stack([rows, np.full_like(rows, num_nodes - 1)], axis=1),
      ]
    )
    ends = np.arange(100)
    index = np.concatenate(
      [ends, total - 1 - ends, rng.integers(0, total, 999)]
    )
    found = pairs.pair_at(index, num_nodes)
    self.assertTrue((0 <= found[:, 0]).all())
    self.assertTrue((found[:, 0] < found[:, 1]).all())
    self.assertTrue((found[:, 1] < num_nodes).all())
    np.testing.assert_array_equal(pairs.index_of(found, num_nodes), index)
    np.testing.assert_array_equal(
      pairs.pair_at(pairs.index_of(edges, num_nodes), num_nodes), edges
    )

  @parameterized.parameters(0, 2**31 + 1, 1.5)
  def test_refuses(self, num_nodes):
    with self.assertRaisesRegex(ValueError, 'num_nodes'):
      pairs.num_pairs(num_nodes)
