"""The norm law and the discrete Laplace law, right ones and wrong ones.

Every statistical test rejects a right sampler with probability 1e-6, and states
its power against the wrong scales 2/3 and 3/2 and against Gamma(d - 1).
"""

import fractions
import functools
import math
from unittest import mock

from absl.testing import parameterized
import numpy as np
from scipy import stats

from privjax import prng
from privjax.mechanisms import entropy
from privjax.mechanisms import vector_noise
from tests import mutants_erm
from tests import statistics

Fraction = fractions.Fraction

_DIMENSION = 3
_NUM_BINS = 20
_EDGES = stats.gamma(_DIMENSION).ppf(np.linspace(0, 1, _NUM_BINS + 1))
_EVEN = np.full(_NUM_BINS, 1 / _NUM_BINS)
_NUM_DRAWS = {'simulate': 20_000, 'draw': 500}


@functools.cache
def _draws(sampler):
  count = _NUM_DRAWS[sampler]
  if sampler == 'simulate':
    names = [('norm law', index) for index in range(count)]
    return vector_noise.simulate(prng.key(0), names, dimension=_DIMENSION)
  source = entropy.seeded(0, 'norm law')
  return np.stack(
    [
      vector_noise.draw(_DIMENSION, source=source).as_float64()
      for _ in range(count)
    ]
  )


def _norm_law_rejects(draws):
  norms = np.linalg.norm(draws, axis=1)
  counts = np.histogram(norms, _EDGES)[0]
  return statistics.chi_square_rejects(counts, _EVEN)


def _power(law, num_draws):
  mutant = np.diff(law.cdf(_EDGES))
  return statistics.chi_square_power(_EVEN, mutant, num_draws=num_draws)


class NormLawTest(parameterized.TestCase):
  @parameterized.parameters('simulate', 'draw')
  def test_the_norm(self, sampler):
    self.assertFalse(_norm_law_rejects(_draws(sampler)))

  @parameterized.product(
    sampler=('simulate', 'draw'), factor=(Fraction(2, 3), Fraction(3, 2))
  )
  def test_a_wrong_scale_is_rejected(self, sampler, factor):
    self.assertTrue(_norm_law_rejects(float(factor) * _draws(sampler)))
    law = stats.gamma(_DIMENSION, scale=float(factor))
    self.assertGreater(_power(law, _NUM_DRAWS[sampler]), 0.9999)

  @parameterized.parameters('simulate', 'draw')
  def test_a_lower_shape_is_rejected(self, sampler):
    draws = _draws(sampler)
    mutant = mutants_erm.lower_shape_draws(
      draws, len(draws), _DIMENSION, prng.generator(0, 'lower shape')
    )
    self.assertTrue(_norm_law_rejects(mutant))
    law = stats.gamma(_DIMENSION - 1)
    self.assertGreater(_power(law, len(draws)), 0.9999)

  @parameterized.parameters('simulate', 'draw')
  def test_the_direction(self, sampler):
    """In three dimensions a coordinate of a direction is uniform."""
    draws = _draws(sampler)
    directions = draws / np.linalg.norm(draws, axis=1, keepdims=True)
    for coordinate in directions.T:
      counts = np.histogram(coordinate, _NUM_BINS, (-1, 1))[0]
      self.assertFalse(statistics.chi_square_rejects(counts, _EVEN))
    # The absolute values of independent normals are no direction.
    folded = np.histogram(np.abs(directions[:, 0]), _NUM_BINS, (-1, 1))[0]
    self.assertTrue(statistics.chi_square_rejects(folded, _EVEN))

  def test_one_dimension(self):
    names = [('dimension', index) for index in range(5000)]
    draws = vector_noise.simulate(prng.key(1), names, dimension=1)
    edges = stats.gamma(1).ppf(np.linspace(0, 1, _NUM_BINS + 1))
    counts = np.histogram(np.linalg.norm(draws, axis=1), edges)[0]
    self.assertFalse(statistics.chi_square_rejects(counts, _EVEN))

  def test_a_vector_depends_on_its_name_alone(self):
    names = [('a', index) for index in range(4)]
    whole = vector_noise.simulate(prng.key(0), names, dimension=2)
    part = vector_noise.simulate(prng.key(0), names[2:], dimension=2)
    np.testing.assert_array_equal(whole[2:], part)


class DrawTest(parameterized.TestCase):
  def test_refined_numbers_stay_within_their_radius(self):
    source = entropy.seeded(0, 'refined')
    for _ in range(20):
      pair = vector_noise._Pair(source)
      coarse = pair.normals(96)
      fine = pair.normals(400)
      for a, b in zip(coarse, fine):
        self.assertLess(abs(Fraction(a) - Fraction(b)), Fraction(1, 2**96))

  def test_more_bits_give_the_same_vector(self):
    """A prefix of the bits decides the vector up to the stated error."""

    class Longer:
      """Ends each coordinate's first 192 bits with bits of another stream."""

      def __init__(self):
        self.head = entropy.seeded(0, 'head')
        self.tail = entropy.seeded(0, 'tail')

      def bits(self, count):
        extra = count - 192
        return self.head.bits(192) << extra | self.tail.bits(extra)

    plain = vector_noise.draw(4, source=entropy.seeded(0, 'head'))
    with mock.patch.object(vector_noise, '_FIRST_BITS', 400):
      longer = vector_noise.draw(4, source=Longer())
    other = vector_noise.draw(4, source=entropy.seeded(0, 'other'))
    bound = 2 * vector_noise.error_bound(4) * 2**vector_noise.UNIT_BITS
    distance = lambda a, b: math.dist(a.units, b.units)
    self.assertLess(distance(plain, longer), bound)
    self.assertGreater(distance(plain, other), bound)

  def test_a_point_at_the_center_reads_more_bits(self):
    # Both coordinates in the cell next to 0: no direction yet.
    center = '1' + '0' * 191
    rest = bin(entropy.seeded(0, 'rest').bits(1 << 14) | 1 << (1 << 14))[3:]
    source = entropy.injected(center * 2 + rest)
    noise = vector_noise.draw(1, source=source)
    self.assertNotEqual(noise.units[0], 0)

  def test_certified_bits(self):
    noise = vector_noise.draw(2)
    self.assertTrue(noise.certified)
    self.assertFalse(
      vector_noise.draw(2, source=entropy.seeded(0, 'a')).certified
    )
    source = vector_noise.bit_source(prng.key(0))
    self.assertFalse(vector_noise.draw(2, source=source).certified)
    again = vector_noise.bit_source(prng.key(0))
    self.assertEqual(
      again.bits(64), vector_noise.bit_source(prng.key(0)).bits(64)
    )
    self.assertNotEqual(
      again.bits(64), vector_noise.bit_source(prng.key(1)).bits(64)
    )

  def test_conversion_is_correctly_rounded(self):
    noise = vector_noise.VectorDraw((1 << 80, -3 << 78, (1 << 80) + 1), False)
    np.testing.assert_array_equal(noise.as_float64(), [1, -0.75, 1])

  @parameterized.parameters(0, -1, 1.5)
  def test_bad_dimension(self, dimension):
    with self.assertRaisesRegex(ValueError, 'dimension'):
      vector_noise.draw(dimension)
    with self.assertRaisesRegex(ValueError, 'dimension'):
      vector_noise.simulate(prng.key(0), [('a',)], dimension=dimension)


class DiscreteLaplaceTest(parameterized.TestCase):
  @parameterized.parameters('1/2', 1, '7/3')
  def test_the_law(self, scale):
    source = entropy.seeded(0, 'laplace', str(scale))
    draws = vector_noise.discrete_laplace(2500, scale=scale, source=source)
    limit = 2 if scale == '1/2' else 4

    def law(s):
      ratio = math.exp(-1 / s)
      mass = lambda k: (1 - ratio) / (1 + ratio) * ratio ** abs(k)
      inner = [mass(k) for k in range(-limit, limit + 1)]
      return np.array([(1 - sum(inner)) / 2, *inner, (1 - sum(inner)) / 2])

    clipped = np.clip(draws, -limit - 1, limit + 1) + limit + 1
    counts = np.bincount(clipped, minlength=2 * limit + 3)
    right = law(float(Fraction(scale)))
    self.assertFalse(statistics.chi_square_rejects(counts, right))
    for factor in (2 / 3, 3 / 2):
      wrong = law(factor * float(Fraction(scale)))
      power = statistics.chi_square_power(right, wrong, num_draws=2500)
      self.assertGreater(power, 0.999)

  def test_no_draws(self):
    self.assertEqual(vector_noise.discrete_laplace(0, scale=1), [])

  @parameterized.parameters(0, -1, float('inf'))
  def test_bad_scale(self, scale):
    with self.assertRaisesRegex(ValueError, 'scale'):
      vector_noise.discrete_laplace(1, scale=scale)
