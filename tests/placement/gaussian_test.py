"""The Gaussian adjacency: noise, claims and post-processing."""

import fractions

from absl.testing import parameterized
import numpy as np

from privjax.mechanisms import gaussian as calibration
from privjax.mechanisms import sparse_noise
from privjax.placement import gaussian
from tests.oracles import placement as oracle
from tests.placement import cases
from tests.placement import checks

Fraction = fractions.Fraction


def _config(**changed):
  return gaussian.GaussianConfig(**{'epsilon': '8', 'delta': '1e-5'} | changed)


def _draw(config):
  return lambda private, seed: gaussian.privatize(private, config, seed=seed)


class GuaranteeTest(parameterized.TestCase):
  def test_noise(self):
    self.assertAlmostEqual(_config(arm='paper').sigma, 0.8564, 4)
    self.assertAlmostEqual(_config(num_kept=5).sigma, 0.6002, 4)
    self.assertGreater(_config().sigma, _config(num_kept=5).sigma)

  def test_paper_top_claims_nothing(self):
    found = _config(arm='paper').guarantee
    self.assertIsNone(found.epsilon)
    self.assertStartsWith(found.theorem, 'NOT PROVEN')

  @parameterized.parameters('threshold', 'clip')
  def test_paper_elsewhere_claims_what_the_noise_gives(self, keep):
    found = _config(arm='paper', keep=keep).guarantee
    self.assertEqual((found.epsilon, found.delta), (8, Fraction(1, 10**5)))
    self.assertIn('classic calibration is not proven', found.theorem)
    # At epsilon 50 even sqrt(2) times the classic sigma is too little.
    found = _config(arm='paper', keep=keep, epsilon=50).guarantee
    self.assertIsNone(found.epsilon)
    self.assertStartsWith(found.theorem, 'NOT PROVEN')

  @parameterized.product(
    keep=gaussian.KEEPS, epsilon=('1/2', '8', '50'), num_kept=(None, 7)
  )
  def test_fair_stays_within_its_budget(self, keep, epsilon, num_kept):
    num_kept = num_kept if keep == 'top' else None
    config = _config(keep=keep, epsilon=epsilon, num_kept=num_kept)
    left = Fraction(epsilon) - config.count_epsilon
    self.assertLessEqual(
      calibration.exact_delta(config.sigma, epsilon=left), 1e-5
    )
    pays = keep == 'top' and num_kept is None
    self.assertEqual(config.count_epsilon > 0, pays)
    self.assertEqual(config.guarantee.epsilon, Fraction(epsilon))
    self.assertEqual('number of edges' in config.guarantee.theorem, pays)

  @parameterized.named_parameters(
    ('epsilon', {'epsilon': 0}, 'epsilon'),
    ('large_epsilon', {'epsilon': 1001}, 'epsilon'),
    ('delta', {'delta': 1}, 'delta'),
    ('arm', {'arm': 'mine'}, 'arm'),
    ('keep', {'keep': 'all'}, 'keep'),
    ('share', {'count_share': 1}, 'count_share'),
    ('num_kept', {'num_kept': -1}, 'num_kept'),
    ('num_kept_of_paper', {'num_kept': 1, 'arm': 'paper'}, 'num_kept'),
    ('num_kept_of_clip', {'num_kept': 1, 'keep': 'clip'}, 'num_kept'),
  )
  def test_refuses(self, changed, words):
    with self.assertRaisesRegex(ValueError, words):
      _config(**changed)


class DrawTest(parameterized.TestCase):
  @parameterized.parameters('paper', 'fair')
  def test_threshold_follows_its_sigma(self, arm):
    config = _config(arm=arm, keep='threshold')
    self.assertTrue(checks.noise_follows(_draw(config), config.sigma))
    for factor in (2 / 3, 3 / 2):
      self.assertFalse(
        checks.noise_follows(_draw(config), factor * config.sigma)
      )

  def test_clip_weights_half_of_all_pairs(self):
    private = cases.private(60, oracle.all_pairs(60)[:300])
    noisy = _draw(_config(keep='clip'))(private, 0)
    kept = noisy.graph.has_pairs(private.graph.pairs).sum()
    self.assertBetween(kept, 260, 300)  # P(1 + noise > 0) = .952
    self.assertBetween(noisy.graph.num_edges - kept, 638, 832)
    self.assertBetween(noisy.weights.min(), 0, 0.05)
    self.assertEqual(noisy.weights.max(), 1)
    is_edge = private.graph.has_pairs(noisy.graph.pairs)
    self.assertGreater(
      noisy.weights[is_edge].mean(), noisy.weights[~is_edge].mean() + 0.2
    )

  def test_which_number_of_edges_is_kept(self):
    private = cases.random_private(0)
    count = lambda config, seed=0: _draw(config)(private, seed).graph.num_edges
    self.assertEqual(count(_config(arm='paper')), private.graph.num_edges)
    self.assertEqual(count(_config(num_kept=7)), 7)
    noisy = {count(_config(), seed) for seed in range(8)}
    self.assertGreater(len(noisy), 2)
    with self.assertRaisesRegex(ValueError, 'count'):
      count(_config(num_kept=1000))

  def test_top_follows_its_sigma(self):
    private = cases.private(4, [(0, 1), (2, 3)])
    config = _config(epsilon=2, num_kept=2, delta='1/10')
    counts = np.zeros(3, int)
    for seed in range(1500):
      graph = _draw(config)(private, seed).graph
      counts[graph.has_pairs(private.graph.pairs).sum()] += 1
    rejects = lambda sigma: checks.statistics.chi_square_rejects(
      counts, np.array(oracle.retained_law(2, 4, 2, 'gaussian', sigma))
    )
    self.assertFalse(rejects(config.sigma))
    self.assertTrue(rejects(config.sigma * 2 / 3))
    self.assertTrue(rejects(config.sigma * 3 / 2))

  @parameterized.parameters('threshold', 'clip')
  def test_what_does_not_fit_says_how_large(self, keep):
    private = cases.private(10**5, [(0, 1)])
    with self.assertRaises(sparse_noise.OutputTooLargeError) as caught:
      _draw(_config(keep=keep))(private, 0)
    self.assertBetween(caught.exception.expected, 9e8, 2.6e9)

  def test_top_fits_where_the_pairs_do_not(self):
    private = cases.private(10**6, [(0, 1), (3, 999_999)])
    graph = _draw(_config(num_kept=50))(private, 0).graph
    self.assertEqual(graph.num_edges, 50)


class FieldTest(parameterized.TestCase):
  @parameterized.parameters('top', 'clip')
  def test_only_the_threshold_is_local(self, keep):
    with self.assertRaisesRegex(ValueError, 'keep'):
      gaussian.sample_field(
        cases.random_private(0), 0, _config(keep=keep), num_hops=2, seed=0
      )

  def test_threshold_draws_a_field(self):
    field = gaussian.sample_field(
      cases.random_private(0),
      3,
      _config(keep='threshold'),
      num_hops=1,
      seed=0,
    )
    self.assertEqual(field.node_ids[field.target_index], 3)
