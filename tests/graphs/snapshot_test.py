"""Tests of simulated snapshots."""

import fractions

from absl.testing import parameterized
import hypothesis
from hypothesis import strategies as st
import numpy as np
from scipy import stats

from privjax.graphs import graph as graph_lib
from privjax.graphs import snapshot


def _private(num_edges):
  """Returns a private path with `num_edges` edges."""
  nodes = np.arange(num_edges)
  graph, _ = graph_lib.from_pairs(
    num_edges + 1, np.stack([nodes, nodes + 1], 1)
  )
  return graph_lib.PrivateGraph(graph)


def _disclosed(private, rho, seed):
  result = snapshot.simulate_snapshot(private, rho=rho, seed=seed)
  return {tuple(pair) for pair in result.graph.pairs.tolist()}


class SimulateSnapshotTest(parameterized.TestCase):
  @parameterized.named_parameters(
    ('half_of_1', 1, '1/2', 0),
    ('half_of_3', 3, '1/2', 2),
    ('half_of_5', 5, '1/2', 2),
    ('half_of_7', 7, 0.5, 4),
    ('tenth_of_25', 25, '0.1', 2),
    ('tenth_of_35', 35, fractions.Fraction(1, 10), 4),
    # 0.7 is seven tenths: 31.5 goes to 32, where 0.7 * 45 = 31.499... does not.
    ('float_of_45', 45, 0.7, 32),
    ('tiny', 9, 1e-9, 0),
    ('all', 9, 1, 9),
  )
  def test_discloses_the_rounded_number(self, num_edges, rho, expected):
    found = _disclosed(_private(num_edges), rho, 3)
    self.assertLen(found, expected)

  @hypothesis.given(
    st.integers(0, 30),
    st.fractions(0, 1).filter(bool),
    st.fractions(0, 1).filter(bool),
    st.integers(0, 2**32 - 1),
  )
  def test_is_a_nested_subset(self, num_edges, one, other, seed):
    private = _private(num_edges)
    small = _disclosed(private, min(one, other), seed)
    large = _disclosed(private, max(one, other), seed)
    whole = {tuple(pair) for pair in private.graph.pairs.tolist()}
    self.assertLessEqual(small, large)
    self.assertLessEqual(large, whole)
    self.assertLen(small, round(min(one, other) * num_edges))

  def test_one_is_the_graph(self):
    private = _private(9)
    result = snapshot.simulate_snapshot(private, rho=1, seed=5)
    self.assertEqual(result.graph.num_nodes, 10)
    for name in ('pairs', 'indptr', 'indices', 'degree'):
      np.testing.assert_array_equal(
        getattr(result.graph, name), getattr(private.graph, name), strict=True
      )

  def test_is_marked_as_simulated(self):
    result = snapshot.simulate_snapshot(_private(4), rho=1, seed=0)
    self.assertIsInstance(result, graph_lib.Snapshot)
    self.assertEqual(result.origin, 'simulated')

  def test_equal_fractions_disclose_the_same_edges(self):
    private = _private(40)
    found = [
      _disclosed(private, rho, 1)
      for rho in (0.1, '0.1', '1/10', fractions.Fraction(1, 10))
    ]
    self.assertTrue(all(edges == found[0] for edges in found))

  def test_seeds_do_not_depend_on_their_order(self):
    private = _private(40)
    forth = [_disclosed(private, '1/2', seed) for seed in range(4)]
    back = [_disclosed(private, '1/2', seed) for seed in reversed(range(4))]
    self.assertEqual(forth, back[::-1])
    self.assertLen({frozenset(edges) for edges in forth}, 4)

  def test_storage_order_does_not_matter(self):
    private = _private(20)
    graph, _ = graph_lib.from_pairs(21, private.graph.pairs[::-1, ::-1])
    self.assertEqual(
      _disclosed(graph_lib.PrivateGraph(graph), '1/2', 2),
      _disclosed(private, '1/2', 2),
    )

  def test_edges_are_equally_likely(self):
    # Alpha 1e-6; disclosing the first stored edge always would score 18,000.
    private = _private(10)
    count = np.zeros(10)
    for seed in range(2000):
      ((low, _),) = _disclosed(private, '1/10', seed)
      count[low] += 1
    statistic = ((count - 200) ** 2 / 200).sum()
    self.assertLess(statistic, stats.chi2.isf(1e-6, df=9))

  @parameterized.parameters(0, 1.5, float('nan'), 'x', True, -0.5, '0', None)
  def test_refuses_rho(self, rho):
    with self.assertRaisesRegex(ValueError, '^rho must be .*, got '):
      snapshot.simulate_snapshot(_private(4), rho=rho, seed=0)

  @parameterized.parameters(-1, 2**32, True, 1.0, '1', None)
  def test_refuses_seed(self, seed):
    with self.assertRaisesRegex(ValueError, f'^seed must be .* got {seed!r}'):
      snapshot.simulate_snapshot(_private(4), rho=1, seed=seed)
