"""Weighted graphs against dense matrices."""

from absl.testing import parameterized
import jax
import numpy as np

from privjax import prng
from privjax.placement import noisy_graph
from tests.placement import cases


def _weighted(seed):
  graph = cases.random_private(seed).graph
  rng = prng.generator(seed, 'noisy_graph_test')
  return cases.noisy(graph, rng.uniform(0.1, 1, graph.num_edges))


class NoisyGraphTest(parameterized.TestCase):
  @parameterized.parameters(*range(3))
  def test_weights_and_degrees(self, seed):
    for noisy in (_weighted(seed), cases.noisy(_weighted(seed).graph)):
      dense = cases.adjacency(noisy)
      np.testing.assert_allclose(noisy.degree, dense.sum(axis=1))
      every = np.argwhere(np.ones_like(dense))
      every = every[every[:, 0] != every[:, 1]]
      np.testing.assert_array_equal(
        noisy.weight_of(every), dense[every[:, 0], every[:, 1]]
      )

  @parameterized.parameters(*range(3))
  def test_gcn_reads_the_weighted_adjacency(self, seed):
    noisy, x, model = _weighted(seed), cases.features(seed), cases.model(seed)
    graph = noisy_graph.to_message_graph(noisy, x.toarray())
    found = jax.jit(model.apply_fn)(model.params, graph)
    expected = cases.dense_logits(
      model.params, cases.adjacency(noisy), x.toarray()
    )
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)

  def test_no_edges(self):
    noisy = cases.noisy(cases.private(3, []).graph)
    self.assertEqual(noisy.weight_of(np.array([[0, 1]])).tolist(), [0])

  def test_is_never_certified(self):
    self.assertFalse(_weighted(0).certified)

  def test_counts_retained_edges(self):
    private = cases.private(5, [(0, 1), (1, 2), (3, 4)])
    noisy = cases.noisy(cases.private(5, [(1, 2), (2, 3), (3, 4)]).graph)
    self.assertEqual(noisy_graph.retained_edges(private, noisy), 2)

  @parameterized.parameters(([0.5],), ([0.5, 0.0],), ([0.5, np.inf],))
  def test_refuses_weights(self, weights):
    with self.assertRaisesRegex(ValueError, 'weights'):
      cases.noisy(cases.private(3, [(0, 1), (1, 2)]).graph, np.array(weights))
