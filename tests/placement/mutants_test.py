"""Every mutant is caught, and what it was made from passes the same check."""

import fractions

from absl.testing import parameterized

from privjax import models
from privjax import prng
from privjax.mechanisms import gaussian as calibration
from privjax.placement import edge_rand
from privjax.placement import gaussian
from privjax.placement import lap_graph
from privjax.placement import local
from privjax.placement import model_level
from privjax.placement import noisy_graph
from tests import mutants_placement as mutants
from tests.placement import checks

_ONE = fractions.Fraction(1)


def _edge_rand(private, seed):
  return edge_rand.privatize(private, epsilon=1, seed=seed)


def _lap_graph(private, seed):
  return lap_graph.privatize(private, epsilon=1, seed=seed, count_share='1/4')


def _fair(private, seed):
  config = gaussian.GaussianConfig(epsilon=1, delta='1e-5', count_share='1/4')
  return gaussian.privatize(private, config, seed=seed)


def _train(private, noisy, features, labels, index):
  del private
  seen = noisy_graph.NoisyGraph(
    graph=noisy.graph, guarantee=edge_rand.guarantee(1)
  )
  return model_level.train_backbone(
    prng.key(0),
    seen,
    features,
    labels,
    index,
    num_classes=3,
    config=models.TrainingConfig(num_steps=2),
  )


def _budget_holds(config) -> bool:
  """Whether what is spent on pairs and count stays within the claim."""
  stated = config.guarantee
  left = stated.epsilon - config.count_epsilon
  needed = calibration.exact_delta(config.sigma, epsilon=left)
  return needed <= float(stated.delta)


class PrivacyTest(parameterized.TestCase):
  @parameterized.parameters(*sorted(mutants.EDGE_RAND))
  def test_edge_rand_mutant_breaks_epsilon(self, name):
    mutant = mutants.EDGE_RAND[name]
    self.assertNotEmpty(
      checks.violates(lambda p, seed: mutant(p, _ONE, seed), 1.0)
    )

  @parameterized.parameters(*sorted(mutants.PRIVATE_COUNTS))
  def test_private_count_breaks_epsilon(self, name):
    mutant = mutants.PRIVATE_COUNTS[name]
    found = checks.violates(lambda p, seed: mutant(p, _ONE, seed), 1.0, 1e-5)
    self.assertIn('at least two edges', found)

  @parameterized.named_parameters(
    ('edge_rand', _edge_rand), ('lap_graph', _lap_graph), ('fair', _fair)
  )
  def test_library_keeps_epsilon(self, draw):
    self.assertEmpty(checks.violates(draw, 1.0, 1e-5))

  def test_paper_top_breaks_any_epsilon(self):
    config = gaussian.GaussianConfig(epsilon=1, delta='1e-5', arm='paper')
    draw = lambda p, seed: gaussian.privatize(p, config, seed=seed)
    self.assertIn('at least two edges', checks.violates(draw, 3.0))
    self.assertIsNone(config.guarantee.epsilon)

  def test_count_at_full_epsilon_is_caught(self):
    mutant = lambda p, seed: mutants.count_at_full_epsilon(p, _ONE, seed)
    self.assertFalse(checks.count_follows(mutant, 4.0))
    self.assertTrue(checks.count_follows(_lap_graph, 4.0))

  @parameterized.parameters(*sorted(mutants.GAUSSIAN))
  def test_gaussian_mutant_has_too_little_noise(self, name):
    sigma = calibration.analytic_sigma(8, delta='1e-5')
    self.assertFalse(checks.noise_follows(mutants.GAUSSIAN[name], sigma))

  def test_library_has_the_noise(self):
    sigma = calibration.analytic_sigma(8, delta='1e-5')
    config = gaussian.GaussianConfig(epsilon=8, delta='1e-5', keep='threshold')
    draw = lambda p, seed: gaussian.privatize(p, config, seed=seed)
    self.assertTrue(checks.noise_follows(draw, sigma))

  def test_classic_for_every_epsilon_is_caught(self):
    settings = dict(epsilon=16, delta='1e-5', keep='threshold')
    mutant = mutants.ClassicIsAlwaysProven(arm='paper', **settings)
    self.assertFalse(_budget_holds(mutant))
    self.assertTrue(_budget_holds(gaussian.GaussianConfig(**settings)))

  def test_free_count_is_caught(self):
    settings = dict(epsilon=8, delta='1e-5')
    self.assertFalse(_budget_holds(mutants.CountIsFree(**settings)))
    self.assertTrue(_budget_holds(gaussian.GaussianConfig(**settings)))

  def test_training_on_the_private_graph_is_caught(self):
    self.assertFalse(
      checks.ignores_private_edges(mutants.trains_on_the_private_graph)
    )
    self.assertTrue(checks.ignores_private_edges(_train))

  def test_private_rim_degrees_are_caught(self):
    self.assertFalse(checks.follows_field_law(mutants.private_rim_degrees))


class ExactnessTest(parameterized.TestCase):
  @parameterized.parameters(
    'induced_degrees', 'no_pairs_on_the_rim', 'rows_drawn_twice'
  )
  def test_field_mutant_is_caught(self, name):
    self.assertFalse(checks.follows_field_law(mutants.FIELDS[name]))

  def test_library_field_passes(self):
    self.assertTrue(checks.follows_field_law(local.sample_field))
