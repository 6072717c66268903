"""LapGraph: its budget, the law of the count and of the kept pairs."""

import fractions

from absl.testing import parameterized
import numpy as np

from privjax import prng
from privjax.mechanisms import sparse_noise
from privjax.placement import lap_graph
from tests.placement import cases
from tests.placement import checks

Fraction = fractions.Fraction


def _draw(epsilon, share='1/4'):
  return lambda private, seed: lap_graph.privatize(
    private, epsilon=epsilon, seed=seed, count_share=share
  )


class LapGraphTest(parameterized.TestCase):
  @parameterized.parameters(('8', '1/100'), ('1/3', '1/2'))
  def test_the_split_sums_to_epsilon(self, epsilon, share):
    parts = lap_graph.split_budget(epsilon, share)
    self.assertEqual(sum(parts), Fraction(epsilon))
    self.assertEqual(parts[0], Fraction(share) * Fraction(epsilon))
    self.assertEqual(lap_graph.guarantee(epsilon).epsilon, Fraction(epsilon))
    self.assertEqual(lap_graph.guarantee(epsilon).delta, 0)

  def test_the_default_share_is_one_percent(self):
    self.assertEqual(lap_graph.split_budget(8)[0], Fraction(8, 100))

  def test_count_follows_its_laplace(self):
    self.assertTrue(checks.count_follows(_draw('1'), 4.0))

  @parameterized.parameters('2/3', '3/2')
  def test_another_scale_of_the_count_is_rejected(self, factor):
    epsilon = str(Fraction(factor))
    self.assertFalse(checks.count_follows(_draw(epsilon), 4.0))

  def test_the_count_is_clipped(self):
    rng = prng.generator(0, 'lap_graph_test')
    found = {
      lap_graph.noisy_count(rng, 1, 3, Fraction(1, 100)) for _ in range(200)
    }
    self.assertEqual({min(found), max(found)}, {0, 3})

  def test_the_pairs_get_the_rest_of_the_budget(self):
    # Of 1,000 edges among 4,950 pairs, as many stay as the best of all noises
    # at scale 1 / (0.75 epsilon) keep; see `sparse_noise_test` for the law.
    pairs = [(i, j) for i in range(100) for j in range(i + 1, 100)][:1000]
    private = cases.private(100, pairs)
    kept = _draw('4')(private, 0).graph.has_pairs(private.graph.pairs).sum()
    rng = prng.generator(1, 'lap_graph_test')
    dense = rng.laplace(scale=1 / 3, size=4950)
    dense[:1000] += 1
    expected = (np.argsort(-dense)[:1000] < 1000).sum()
    self.assertAlmostEqual(kept, expected, delta=60)

  def test_large_epsilon_changes_nothing(self):
    private = cases.random_private(0)
    found = _draw(10**6)(private, 0).graph
    np.testing.assert_array_equal(found.pairs, private.graph.pairs)

  def test_what_does_not_fit(self):
    with self.assertRaises(sparse_noise.OutputTooLargeError):
      lap_graph.privatize(
        cases.random_private(0), epsilon=100, seed=0, max_edges=2
      )

  @parameterized.parameters(0, 1, '3/2', -1)
  def test_refuses_share(self, share):
    with self.assertRaisesRegex(ValueError, 'count_share'):
      lap_graph.split_budget(1, share)
