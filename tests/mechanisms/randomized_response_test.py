"""The law of randomized response, by enumeration."""

import math

from absl.testing import parameterized

from privjax.mechanisms import randomized_response
from tests.oracles import placement as oracle


class RandomizedResponseTest(parameterized.TestCase):
  @parameterized.parameters(('1/2', 0.5), ('1', 1), ('8', 8), ('40', 40))
  def test_flip_probability(self, epsilon, value):
    wrong = randomized_response.flip_probability(epsilon)
    self.assertAlmostEqual(wrong * (1 + math.exp(value)), 1, 12)

  @parameterized.parameters('1/2', '3')
  def test_law_agrees_with_enumeration(self, epsilon):
    bits = (1, 0, 0, 1)
    wrong = randomized_response.flip_probability(epsilon)
    for output, chance in oracle.channel_law(bits, 1 - wrong, wrong).items():
      flipped = sum(a != b for a, b in zip(bits, output))
      found = randomized_response.log_probability(flipped, 4, epsilon=epsilon)
      self.assertAlmostEqual(found, math.log(chance), 12)

  @parameterized.parameters('0', -1, float('nan'))
  def test_refuses_epsilon(self, epsilon):
    with self.assertRaisesRegex(ValueError, 'epsilon'):
      randomized_response.flip_probability(epsilon)

  @parameterized.parameters((-1, 3), (4, 3), (0.5, 3))
  def test_refuses_counts(self, num_flipped, num_bits):
    with self.assertRaisesRegex(ValueError, 'num_flipped'):
      randomized_response.log_probability(num_flipped, num_bits, epsilon=1)
