"""The certification column follows from the mechanism, not from a string."""

import fractions
import sys
from unittest import mock

from absl.testing import parameterized

from privjax import explainers
from privjax import types
from privjax.explainers import guarantees
from privjax.explainers import privcf_out
from privjax.explainers import privcf_sgd
from privjax.explainers import randomized_response

_SGD = privcf_sgd.SgdConfig(noise_std=9.02)


class GuaranteesTest(parameterized.TestCase):
  @parameterized.named_parameters(
    ('mask', explainers.guarantee()),
    ('greedy', explainers.greedy_guarantee()),
    ('minimal', explainers.minimal_guarantee()),
    ('out', privcf_out.guarantee()),
    ('random private', explainers.random_guarantee(space_is_public=False)),
    (
      'sgd private',
      privcf_sgd.guarantee(_SGD, delta='1e-5', space_is_public=False),
    ),
    (
      'response private',
      randomized_response.guarantee(epsilon=8, space_is_public=False),
    ),
  )
  def test_claims_nothing_and_says_why(self, stated):
    self.assertFalse(stated.certified)
    self.assertIsNone(stated.privacy.epsilon)
    self.assertEqual(stated.label, 'none')
    with self.assertRaisesRegex(ValueError, 'no guarantee: NOT COVERED: .+'):
      stated.require()

  @parameterized.named_parameters(
    (
      'sgd',
      privcf_sgd.guarantee(_SGD, delta='1e-5', space_is_public=True),
      # 7.997891, rounded up.
      '(7.9979, 1e-05)',
    ),
    (
      'response',
      randomized_response.guarantee(epsilon='1/2', space_is_public=True),
      'pure 0.5',
    ),
  )
  def test_covers_a_public_space(self, stated, label):
    self.assertTrue(stated.certified)
    self.assertEqual(stated.label, label)
    relation = types.NeighboringRelation.ADD_REMOVE_ONE_EDGE
    self.assertEqual(stated.require().relation, relation)
    self.assertIn('floating point', ' '.join(stated.not_covered))

  def test_random_deletion_of_a_public_space_is_free(self):
    stated = explainers.random_guarantee(space_is_public=True)
    self.assertTrue(stated.certified)
    self.assertEqual(stated.label, '0 (public)')

  def test_what_reads_public_inputs_has_nothing_to_account_for(self):
    with self.assertRaisesRegex(
      ValueError, '^nothing to account for: .*public'
    ):
      guarantees.public_input().require()

  @parameterized.parameters('8.0000004', '1/3', '7.997891', '123456789/1000')
  def test_a_label_never_understates(self, epsilon):
    for delta in ('0', '1/30000'):
      stated = guarantees.certified(
        epsilon=fractions.Fraction(epsilon),
        delta=fractions.Fraction(delta),
        theorem='an example',
        space_is_public=True,
      )
      shown = stated.label.removeprefix('pure ').strip('()').split(', ')
      for text, exact in zip(shown, (epsilon, delta)):
        exact = fractions.Fraction(exact)
        over = fractions.Fraction(text) - exact
        self.assertBetween(over, 0, exact / 10**5)

  def test_a_claim_of_nothing_needs_a_reason(self):
    with self.assertRaisesRegex(ValueError, '^not_covered must'):
      guarantees.uncertified()


class NoiseTest(parameterized.TestCase):
  def test_classic_calibration(self):
    std = privcf_out.noise_std(epsilon=8, delta='1e-5')
    self.assertAlmostEqual(std, 0.6056006578, delta=1e-9)

  @parameterized.parameters(
    (dict(epsilon=0, delta='1e-5'), 'epsilon'),
    (dict(epsilon=8, delta=0), 'delta'),
    (dict(epsilon=8, delta=1), 'delta'),
    (dict(epsilon=8, delta='1e-400'), 'delta'),
  )
  def test_refuses(self, settings, name):
    for function in (privcf_out.noise_std, privcf_sgd.calibrate):
      with self.assertRaisesRegex(ValueError, f'^{name} must'):
        function(**settings)


class SgdAccountingTest(parameterized.TestCase):
  @parameterized.parameters(1, 2.5)
  def test_calibration_spends_the_budget(self, clip_norm):
    config = privcf_sgd.calibrate(epsilon=8, delta='1e-5', clip_norm=clip_norm)
    self.assertEqual(config.sensitivity, 2 * clip_norm)
    self.assertAlmostEqual(config.noise_multiplier, 4.509, delta=1e-3)
    epsilon = privcf_sgd.accounted_epsilon(config, delta='1e-5')
    self.assertIsInstance(epsilon, fractions.Fraction)
    self.assertLessEqual(epsilon, 8)
    self.assertGreater(epsilon, fractions.Fraction(7999, 1000))

  @parameterized.parameters('1/3', '2/3', '22/7')
  def test_what_is_accounted_fits_the_budget(self, epsilon):
    config = privcf_sgd.calibrate(epsilon=epsilon, delta='1e-5')
    spent = privcf_sgd.accounted_epsilon(config, delta='1e-5')
    budget = fractions.Fraction(epsilon)
    self.assertBetween(spent, budget - fractions.Fraction(1, 10**5), budget)

  def test_a_budget_below_the_resolution_is_refused(self):
    with self.assertRaisesRegex(ValueError, '^epsilon must be at least 1e-6'):
      privcf_sgd.calibrate(epsilon='9e-7', delta='1e-5')

  def test_without_the_extra(self):
    with mock.patch.dict(sys.modules, {'dp_accounting': None}):
      with self.assertRaisesRegex(ImportError, r'privjax\[experiments\]'):
        privcf_sgd.calibrate(epsilon=8, delta='1e-5')

  @parameterized.parameters(
    'noise_std', 'learning_rate', 'clip_norm', 'size_weight', 'num_steps'
  )
  def test_config_refuses(self, name):
    with self.assertRaisesRegex(ValueError, f'^{name} must'):
      privcf_sgd.SgdConfig(**({'noise_std': 1.0} | {name: 0}))
