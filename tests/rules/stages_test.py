"""Tests of the labels of stages."""

import fractions

from absl.testing import parameterized

from privjax.rules import stages


class LabelsTest(parameterized.TestCase):
  @parameterized.parameters(
    (1, 'dp(1)'),
    ('1.0', 'dp(1)'),
    (0.1, 'dp(1/10)'),
    (fractions.Fraction(1, 3), 'dp(1/3)'),
  )
  def test_dp_is_exact(self, epsilon, label):
    self.assertEqual(stages.dp(epsilon), label)

  @parameterized.parameters(0, -1, 'none', float('inf'))
  def test_bad_epsilon(self, epsilon):
    with self.assertRaisesRegex(ValueError, 'epsilon'):
      stages.dp(epsilon)

  def test_only_the_classifier_is_covered(self):
    private, public = stages.pipeline('5'), stages.pipeline(None)
    self.assertEqual(private.pop('classifier'), 'dp(5)')
    self.assertEqual(set(private.values()), {stages.NOT_COVERED})
    self.assertEqual(set(public.values()), {stages.NOT_COVERED})
