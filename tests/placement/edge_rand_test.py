"""EdgeRand: exact privacy by enumeration, and its draws."""

import fractions
import itertools

from absl.testing import parameterized
import numpy as np

from privjax.mechanisms import randomized_response
from privjax.mechanisms import sparse_noise
from privjax.placement import edge_rand
from tests.oracles import placement as oracle
from tests.placement import cases
from tests.placement import checks


def _draw(epsilon):
  return lambda private, seed: edge_rand.privatize(
    private, epsilon=epsilon, seed=seed
  )


class PrivacyTest(parameterized.TestCase):
  @parameterized.product(num_nodes=(3, 4), epsilon=('1/2', '2'))
  def test_the_law_is_exactly_epsilon_dp(self, num_nodes, epsilon):
    wrong = randomized_response.flip_probability(epsilon)
    size = num_nodes * (num_nodes - 1) // 2
    # By symmetry graphs of one size have one worst ratio: all are tried at 3.
    every = itertools.product((0, 1), repeat=size)
    some = every if num_nodes == 3 else itertools.islice(every, 0, None, 9)
    for bits in some:
      worst = oracle.worst_log_ratio(bits, 1 - wrong, wrong)
      self.assertAlmostEqual(worst, float(fractions.Fraction(epsilon)), 10)

  @parameterized.parameters(
    (3, [(0, 1)]), (3, [(0, 1), (0, 2), (1, 2)]), (3, []), (4, [(0, 3)])
  )
  def test_draws_follow_the_law(self, num_nodes, edges):
    wrong = randomized_response.flip_probability('3/2')
    private = cases.private(num_nodes, edges)
    self.assertTrue(
      checks.follows_channel(_draw('3/2'), private, 1 - wrong, wrong)
    )

  @parameterized.parameters('1', '9/4')  # 2/3 and 3/2 of epsilon.
  def test_another_epsilon_is_rejected(self, epsilon):
    wrong = randomized_response.flip_probability('3/2')
    private = cases.private(3, [(0, 1)])
    self.assertFalse(
      checks.follows_channel(_draw(epsilon), private, 1 - wrong, wrong)
    )

  def test_guarantee(self):
    found = edge_rand.guarantee('1/2')
    self.assertEqual(
      (found.epsilon, found.delta), (fractions.Fraction(1, 2), 0)
    )
    self.assertEqual(found.unit, 'edge')


class DrawTest(parameterized.TestCase):
  def test_the_first_and_the_last_pair_vary(self):
    private = cases.private(6, [(0, 1)])
    graphs = [_draw(1)(private, seed).graph for seed in range(60)]
    for pair in ([0, 1], [4, 5]):
      seen = {bool(graph.has_pairs([pair])[0]) for graph in graphs}
      self.assertEqual(seen, {False, True})

  def test_is_seeded_and_reads_epsilon_by_value(self):
    private = cases.random_private(0)
    draw = lambda epsilon, seed: _draw(epsilon)(private, seed).graph.pairs
    np.testing.assert_array_equal(draw('1/2', 3), draw('0.5', 3))
    self.assertTrue(
      any(
        not np.array_equal(draw('1/2', 3), draw('1/2', seed)) for seed in (4, 5)
      )
    )

  def test_large_epsilon_changes_nothing(self):
    private = cases.random_private(0)
    found = _draw(700)(private, 0).graph
    np.testing.assert_array_equal(found.pairs, private.graph.pairs)

  def test_a_million_nodes(self):
    private = cases.private(10**6, [(0, 1), (5, 999_999)])
    found = _draw(24)(private, 0).graph
    self.assertBetween(found.num_edges, 12, 38)  # 18.9 expected false ones.
    self.assertTrue(found.has_pairs(private.graph.pairs).all())

  def test_what_does_not_fit_says_how_large(self):
    private = cases.private(10**6, [(0, 1)])
    with self.assertRaises(sparse_noise.OutputTooLargeError) as caught:
      _draw(1)(private, 0)
    expected = 10**12 / 2 / (1 + np.e)
    self.assertAlmostEqual(caught.exception.expected / expected, 1, 5)

  @parameterized.parameters(0, -1, float('nan'), 'x', True)
  def test_refuses_epsilon(self, epsilon):
    with self.assertRaisesRegex(ValueError, 'epsilon'):
      _draw(epsilon)(cases.random_private(0), 0)
