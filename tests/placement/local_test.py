"""Fields drawn alone; their joint law is checked in `mutants_test`."""

from absl.testing import parameterized
import numpy as np
from scipy import stats

from privjax import graphs
from privjax import prng
from privjax.mechanisms import sparse_noise
from privjax.placement import edge_rand
from privjax.placement import local
from tests import statistics
from tests.placement import cases


def _rng(*names):
  return prng.generator(0, 'local_test', *names)


class SampleFieldTest(parameterized.TestCase):
  @parameterized.product(seed=(0, 1, 2), target=(0, 4), num_hops=(0, 1, 2, 3))
  def test_without_noise_it_is_the_field(self, seed, target, num_hops):
    graph = cases.random_private(seed).graph
    found = local.sample_field(
      _rng(), graph, target, num_hops=num_hops, keep_prob=1.0, false_prob=0.0
    )
    expected = graphs.extract_receptive_field(graph, target, num_hops=num_hops)
    self.assertEqual(found.target_index, expected.target_index)
    for a, b in (
      (found.node_ids, expected.node_ids),
      (found.boundary_degree, expected.boundary_degree),
      (found.graph.senders, expected.graph.senders),
      (found.graph.receivers, expected.graph.receivers),
      (found.graph.edges['mask'], expected.graph.edges['mask']),
    ):
      np.testing.assert_array_equal(a, b)

  def test_degree_of_the_target_is_a_sum_of_binomials(self):
    graph, rng = cases.random_private(0).graph, _rng('degree')
    node = int(graph.degree.argmax())
    degrees = [
      local.sample_field(
        rng, graph, node, num_hops=0, keep_prob=0.8, false_prob=0.2
      ).boundary_degree[0]
      for _ in range(2000)
    ]
    own = int(graph.degree[node])
    others = graph.num_nodes - 1 - own
    law = np.convolve(
      stats.binom.pmf(np.arange(own + 1), own, 0.8),
      stats.binom.pmf(np.arange(others + 1), others, 0.2),
    )
    often = law * 2000 > 6
    counts = np.bincount(degrees, minlength=len(law))
    rest = lambda values: np.append(values[often], values[~often].sum())
    probs, found = rest(law), rest(counts)
    if probs[-1] * 2000 < 6:
      probs, found = probs[:-1] / probs[:-1].sum(), found[:-1]
    self.assertFalse(statistics.chi_square_rejects(found, probs))

  def test_the_cost_does_not_grow_with_the_graph(self):
    private = cases.private(10**6, cases.PATH)
    field = edge_rand.sample_field(private, 1, epsilon=16, num_hops=2, seed=0)
    self.assertLess(len(field.node_ids), 1000)
    self.assertIn(1, field.node_ids)

  def test_what_does_not_fit_says_how_large(self):
    private = cases.private(10**6, cases.PATH)
    with self.assertRaises(sparse_noise.OutputTooLargeError) as caught:
      edge_rand.sample_field(
        private, 1, epsilon=1, num_hops=2, seed=0, max_edges=10**5
      )
    self.assertAlmostEqual(caught.exception.expected, 268_943, delta=5)

  @parameterized.parameters(
    (-1, 2, 'target'), (10, 2, 'target'), (0, -1, 'num')
  )
  def test_refuses(self, target, num_hops, words):
    with self.assertRaisesRegex(ValueError, words):
      local.sample_field(
        _rng(),
        cases.random_private(0).graph,
        target,
        num_hops=num_hops,
        keep_prob=1.0,
        false_prob=0.0,
      )
