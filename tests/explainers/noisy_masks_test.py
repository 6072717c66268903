"""PrivCF-out, PrivCF-SGD and randomized response: what is drawn."""

import dataclasses
import itertools
import math

from absl.testing import parameterized
import jax
import numpy as np
from scipy import stats

from privjax import explainers
from privjax import prng
from privjax.explainers import field_batch
from privjax.explainers import mask_optimization
from privjax.explainers import masked_field
from privjax.explainers import privcf_out
from privjax.explainers import privcf_sgd
from privjax.explainers import randomized_response
from tests import statistics
from tests.counterfactual import cases
from tests.explainers import checks
from tests.explainers import deletion_test

_SIZE = 30_000
_SPACE = explainers.OperationSpace(
  target=0,
  pairs=np.zeros((0, 2), np.int64),
  features=np.arange(_SIZE),
  is_public=True,
)

_SGD = privcf_sgd.SgdConfig(noise_std=2.0, num_steps=5)


def _constant(value):
  flat = np.full(_SIZE, value)
  return field_batch.split(flat, _SPACE)


class PrivCFOutTest(parameterized.TestCase):
  def test_law(self):
    """A logit x is deleted with probability Phi(-x / sigma)."""
    search = explainers.Search(
      keep=_constant(True), valid=np.True_, logits=_constant(0.4)
    )
    released = privcf_out.perturb(prng.key(0), search, _SPACE, scale=0.606)
    law = deletion_test.triple_law(stats.norm.cdf(-0.4 / 0.606))
    counts = deletion_test.triple_counts(~released.feature)
    self.assertFalse(statistics.chi_square_rejects(counts, law))
    half = deletion_test.triple_law(stats.norm.cdf(-0.4 / 0.303))
    self.assertGreater(
      statistics.chi_square_power(law, half, num_draws=_SIZE // 3), 0.999
    )

  def test_release_perturbs_the_last_logits(self):
    case = cases.random_case(5, density=0.25)
    space = checks.space_of(case)
    about = checks.about(case)
    config = explainers.MaskConfig(num_steps=60)
    (found,) = explainers.search(*about, [space], config=config)
    # At a budget this large the noise moves nothing.
    (released,) = privcf_out.release(
      prng.key(0), *about, [space], epsilon=10**9, config=config
    )
    np.testing.assert_array_equal(released.edge, found.logits.edge > 0)
    np.testing.assert_array_equal(released.feature, found.logits.feature > 0)


class PrivatizeTest(parameterized.TestCase):
  def _run(self, gradient, clip_norm=1.0, noise_std=0.0):
    edge, feature = np.split(np.asarray(gradient, float), [2])
    noisy = privcf_sgd.privatize(
      prng.key(0),
      field_batch.Masks(edge, feature),
      clip_norm=clip_norm,
      noise_std=noise_std,
    )
    return np.concatenate(noisy)

  def test_clips_both_parts_together(self):
    np.testing.assert_allclose(
      self._run([3, 0, 4, 0]), [0.6, 0, 0.8, 0], atol=1e-15
    )

  def test_leaves_a_short_gradient(self):
    short = [0.1, -0.2, 0.3, 0]
    np.testing.assert_array_equal(self._run(short), short)

  def test_zero_and_non_finite(self):
    np.testing.assert_array_equal(self._run([0, 0, 0]), [0, 0, 0])
    np.testing.assert_allclose(
      self._run([np.nan, np.inf, 5]), [0, 0, 1], atol=1e-15
    )

  @parameterized.parameters((1.0, False), (2 / 3, True), (3 / 2, True))
  def test_noise_has_the_stated_scale(self, factor, rejected):
    """The chi-square law of the sum of squares, two-sided."""
    noise = self._run(np.zeros(4000), noise_std=9.02)
    statistic = (noise**2).sum() / (factor * 9.02) ** 2
    low, high = stats.chi2.ppf(
      [statistics.ALPHA / 2, 1 - statistics.ALPHA / 2], 4000
    )
    self.assertEqual(not low < statistic < high, rejected)


class DescendTest(parameterized.TestCase):
  def test_release_is_steps_of_privatize(self):
    """The release, step by step, with the same keys."""
    case = cases.random_case(5, density=0.25)
    space = checks.space_of(case)
    model, graph, features = checks.about(case)
    key = prng.key(7)
    (released,) = privcf_sgd.release(
      key, model, graph, features, [space], config=_SGD
    )
    of_rows, fields = masked_field.build_all(model, graph, features, [space])
    params, apply_fn = of_rows.params, of_rows.apply_fn
    ((_, field),) = field_batch.batches(fields, 1)
    clean = field_batch.clean_logits(apply_fn, params, field)
    gradient = jax.jit(
      lambda x: jax.grad(mask_optimization.objective, has_aux=True)(
        x, apply_fn, params, field, clean, 1e-3
      )[0]
    )
    logits = mask_optimization.start(field, 1.0)
    stream = prng.stream(key, 'privcf_sgd', space.target, 0)
    for step in range(_SGD.num_steps):
      noisy = privcf_sgd.privatize(
        jax.random.fold_in(stream, step),
        jax.tree.map(lambda x: x[0], gradient(logits)),
        clip_norm=1.0,
        noise_std=_SGD.noise_std,
      )
      logits = jax.tree.map(lambda x, g: x - 0.1 * g[None], logits, noisy)
    keep = mask_optimization.binarize(field, logits)
    expected = field_batch.crop(jax.tree.map(lambda x: x[0], keep), space)
    jax.tree.map(np.testing.assert_array_equal, released, expected)

  def test_draws_differ_and_batches_do_not_matter(self):
    case = cases.random_case(5, density=0.25)
    spaces = [
      checks.space_of(case._replace(target=target)) for target in range(4)
    ]
    # Noise that deletes a good part, so that equal masks mean equal noise.
    config = dataclasses.replace(_SGD, noise_std=20.0)
    run = lambda **kwargs: privcf_sgd.release(
      prng.key(7), *checks.about(case), spaces, config=config, **kwargs
    )
    first = run()
    jax.tree.map(np.testing.assert_array_equal, first, run(batch_size=1))
    flat = lambda masks: np.concatenate([np.concatenate(m) for m in masks])
    self.assertTrue((flat(first) != flat(run(draw=1))).any())

  def test_one_noise_is_not_used_for_two_releases(self):
    case = cases.random_case(5, density=0.25)
    spaces = [checks.space_of(case), checks.public_space_of(case)]
    masks = [checks.random_masks(space, 0)[0] for space in spaces]
    about, key = checks.about(case), prng.key(0)
    for release in (
      lambda: privcf_sgd.release(key, *about, spaces, config=_SGD),
      lambda: privcf_out.release(key, *about, spaces),
      lambda: randomized_response.release(key, masks, spaces, epsilon=1),
    ):
      with self.assertRaisesRegex(ValueError, '^spaces must be of distinct'):
        release()

  def test_noise_free_descent_is_refused(self):
    config = privcf_sgd.SgdConfig(noise_std=1.0)
    with self.assertRaisesRegex(ValueError, '^noise_std must'):
      dataclasses.replace(config, noise_std=0.0)


class RandomizedResponseTest(parameterized.TestCase):
  def test_flip_probability(self):
    chance = randomized_response.flip_probability(epsilon=8, num_operations=4)
    self.assertAlmostEqual(chance, 1 / (1 + math.e**2), delta=1e-15)
    log_odds = math.log((1 - chance) / chance)
    self.assertAlmostEqual(4 * log_odds, 8, delta=1e-12)

  @parameterized.parameters(1, 2, 5)
  def test_loss_is_the_budget_exactly(self, num_bits):
    found = checks.response_violations(
      randomized_response.log_likelihood, epsilon=2, num_bits=num_bits
    )
    self.assertEqual(found, [])

  def test_law_of_draws(self):
    epsilon = 2 * _SIZE
    (released,) = randomized_response.release(
      prng.key(2), [_constant(True)], [_SPACE], epsilon=epsilon
    )
    law = deletion_test.triple_law(1 / (1 + math.e**2))
    counts = deletion_test.triple_counts(~released.feature)
    self.assertFalse(statistics.chi_square_rejects(counts, law))
    wrong = deletion_test.triple_law(math.exp(-2))
    self.assertGreater(
      statistics.chi_square_power(law, wrong, num_draws=_SIZE // 3), 0.99
    )

  def test_likelihood_is_the_law_of_the_patterns(self):
    keep = np.array([True, False, True])
    law = [
      math.exp(
        randomized_response.log_likelihood(np.array(bits), keep, epsilon=3)
      )
      for bits in itertools.product([True, False], repeat=3)
    ]
    chance = 1 / (1 + math.e)
    self.assertAlmostEqual(sum(law), 1, delta=1e-14)
    self.assertAlmostEqual(max(law), (1 - chance) ** 3, delta=1e-14)

  def test_empty_space(self):
    space = dataclasses.replace(_SPACE, features=np.zeros(0, np.int64))
    mask = field_batch.Masks(np.zeros(0, bool), np.zeros(0, bool))
    (released,) = randomized_response.release(
      prng.key(0), [mask], [space], epsilon=1
    )
    self.assertEqual(len(released.edge) + len(released.feature), 0)

  @parameterized.parameters(0, -1, float('inf'))
  def test_refuses(self, epsilon):
    with self.assertRaisesRegex(ValueError, '^epsilon must'):
      randomized_response.release(
        prng.key(0), [_constant(True)], [_SPACE], epsilon=epsilon
      )
