"""Sparse samplers against exact laws of the vector written out."""

import collections
import itertools

from absl.testing import parameterized
import numpy as np
from scipy import stats

from privjax import prng
from privjax.mechanisms import sparse_noise
from tests import statistics
from tests.oracles import placement as oracle

_ONES = np.array([0, 3, 6])
_SIZE = 9
_WRONG_SCALES = (2 / 3, 3 / 2)


def _rng(*names):
  return prng.generator(0, 'sparse_noise_test', *names)


def _retained(rng, count, noise, scale, num_draws):
  """Counts how many ones are among the kept, over draws."""
  counts = np.zeros(count + 1, int)
  for _ in range(num_draws):
    kept = sparse_noise.top(rng, _ONES, _SIZE, count, noise=noise, scale=scale)
    counts[np.isin(kept, _ONES).sum()] += 1
  return counts


class FlipTest(parameterized.TestCase):
  @parameterized.parameters((0.8, 0.3), (0.5, 0.7))
  def test_law_over_all_outputs(self, keep, false):
    rng, counts = _rng('flip'), collections.Counter()
    ones = np.array([1, 4])
    for _ in range(8000):
      out = sparse_noise.flip(rng, ones, 5, keep_prob=keep, false_prob=false)
      counts[tuple(np.isin(np.arange(5), out).astype(int))] += 1
    law = oracle.channel_law((0, 1, 0, 0, 1), keep, false)
    found = np.array([counts[output] for output in law])
    right = np.array(list(law.values()))
    wrong = oracle.channel_law((0, 1, 0, 0, 1), keep, false + 0.05)
    self.assertFalse(statistics.chi_square_rejects(found, right))
    self.assertTrue(
      statistics.chi_square_rejects(found, np.array(list(wrong.values())))
    )

  def test_extremes(self):
    ones = np.array([1, 4])
    call = lambda keep, false: sparse_noise.flip(
      _rng(), ones, 5, keep_prob=keep, false_prob=false
    ).tolist()
    self.assertEqual(call(1, 0), [1, 4])
    self.assertEqual(call(0, 1), [0, 2, 3])
    self.assertEqual(call(1, 1), [0, 1, 2, 3, 4])
    self.assertEqual(call(0, 0), [])

  def test_long_vectors(self):
    ones = np.array([0, 2**61 - 1])
    found = sparse_noise.flip(
      _rng(), ones, 2**61, keep_prob=1.0, false_prob=1e-16
    )
    self.assertBetween(len(found), 150, 320)
    self.assertTrue((np.diff(found) > 0).all())
    self.assertEqual((found[0], found[-1]), (0, 2**61 - 1))

  def test_what_does_not_fit(self):
    with self.assertRaisesRegex(
      sparse_noise.OutputTooLargeError, r'11\.5 entries .* limit of 11'
    ) as caught:
      sparse_noise.flip(
        _rng(), _ONES, 23, keep_prob=0.5, false_prob=0.5, max_ones=11
      )
    self.assertEqual(
      (caught.exception.expected, caught.exception.limit), (11.5, 11)
    )


class TopTest(parameterized.TestCase):
  @parameterized.product(
    noise=sparse_noise.NOISES, count=(2, 3, 5), scale=(0.4, 1.5)
  )
  def test_retained_ones(self, noise, count, scale):
    counts = _retained(_rng(noise, count), count, noise, scale, 2000)
    law = np.array(oracle.retained_law(3, 6, count, noise, scale))
    possible = law * 2000 > 5
    self.assertGreater(law[possible].sum(), 0.99)
    merged = _merge(law, possible)
    self.assertFalse(
      statistics.chi_square_rejects(_merge(counts, possible), merged)
    )

  @parameterized.product(
    noise=sparse_noise.NOISES, count=(3,), factor=_WRONG_SCALES
  )
  def test_another_scale_is_rejected(self, noise, count, factor):
    counts = _retained(_rng(noise), count, noise, 0.6 * factor, 4000)
    law = np.array(oracle.retained_law(3, 6, count, noise, 0.6))
    possible = law * 4000 > 5
    self.assertTrue(
      statistics.chi_square_rejects(
        _merge(counts, possible), _merge(law, possible)
      )
    )

  @parameterized.parameters(*sparse_noise.NOISES)
  def test_positions_are_exchangeable(self, noise):
    rng, seen = _rng('positions', noise), np.zeros(_SIZE, int)
    for _ in range(2000):
      seen[sparse_noise.top(rng, _ONES, _SIZE, 3, noise=noise, scale=1.0)] += 1
    zeros = np.setdiff1d(np.arange(_SIZE), _ONES)
    # Counts of a set are less spread than independent ones: no false alarm.
    for group in (zeros, _ONES):
      law = np.full(len(group), 1 / len(group))
      self.assertFalse(statistics.chi_square_rejects(seen[group], law))
    self.assertGreater(seen[_ONES].min(), seen[zeros].max())

  @parameterized.parameters(*sparse_noise.NOISES)
  def test_extremes(self, noise):
    call = lambda count, ones=_ONES: sparse_noise.top(
      _rng(), ones, _SIZE, count, noise=noise, scale=1e-3
    ).tolist()
    self.assertEqual(call(0), [])
    self.assertEqual(call(3), [0, 3, 6])
    self.assertEqual(call(_SIZE), list(range(_SIZE)))
    self.assertLen(call(2), 2)
    self.assertLen(call(4, np.zeros(0, np.int64)), 4)
    self.assertLen(call(4, np.arange(_SIZE)), 4)

  def test_tiny_noise_keeps_all_ones_of_a_long_vector(self):
    ones = np.array([5, 2**60])
    found = sparse_noise.top(
      _rng(), ones, 2**61, 3, noise='gaussian', scale=0.05
    )
    self.assertLen(found, 3)
    self.assertTrue(np.isin(ones, found).all())

  def test_refuses(self):
    call = lambda **changed: sparse_noise.top(
      _rng(),
      _ONES,
      _SIZE,
      **{'count': 3, 'noise': 'gaussian', 'scale': 1.0} | changed,
    )
    for changed, words in (
      ({'count': -1}, 'count'),
      ({'count': 10}, 'count'),
      ({'noise': 'cauchy'}, 'noise'),
      ({'scale': 0.0}, 'scale'),
    ):
      with self.assertRaisesRegex(ValueError, words):
        call(**changed)
    with self.assertRaises(sparse_noise.OutputTooLargeError):
      call(max_ones=2)


class ClippedTest(parameterized.TestCase):
  def _values(self, scale):
    """Returns 5,000 entries of ones and of zeros, written out."""
    ones = np.arange(0, 10_000, 2)
    index, value = sparse_noise.clipped(
      _rng('clipped'), ones, 10_000, scale=scale
    )
    dense = np.zeros(10_000)
    dense[index] = value
    return dense[0::2], dense[1::2]

  def _rejects(self, values, bit, scale):
    """Compares with clip(bit + noise) on bins that hold both atoms."""
    edges = np.linspace(0, 1, 9)
    cells = np.digitize(values, edges[1:-1]) + 1
    cells[values == 0], cells[values == 1] = 0, 9
    cdf = stats.norm(bit, scale).cdf(edges)
    law = np.diff(np.concatenate([[0], cdf, [1]]))
    counts = np.bincount(cells, minlength=10)
    return statistics.chi_square_rejects(counts, law)

  @parameterized.parameters(0.6, 0.86, 2.0)
  def test_law(self, scale):
    for bit, values in zip((1, 0), self._values(scale)):
      self.assertFalse(self._rejects(values, bit, scale))

  @parameterized.product(scale=(0.6, 0.86), factor=_WRONG_SCALES)
  def test_another_scale_is_rejected(self, scale, factor):
    for bit, values in zip((1, 0), self._values(scale * factor)):
      self.assertTrue(self._rejects(values, bit, scale))

  def test_what_does_not_fit(self):
    with self.assertRaises(sparse_noise.OutputTooLargeError) as caught:
      sparse_noise.clipped(_rng(), _ONES, 10**9, scale=1.0)
    self.assertAlmostEqual(caught.exception.expected, 5e8, delta=10)


class ZerosTest(parameterized.TestCase):
  @parameterized.parameters(*range(7))
  def test_sets_are_uniform(self, count):
    rng, seen = _rng('zeros'), collections.Counter()
    for _ in range(3000):
      found = sparse_noise.some_zeros(rng, _ONES, _SIZE, count)
      seen[tuple(found.tolist())] += 1
    zeros = np.setdiff1d(np.arange(_SIZE), _ONES).tolist()
    sets = list(itertools.combinations(zeros, count))
    self.assertLessEqual(set(seen), set(sets))
    counts = np.array([seen[s] for s in sets])
    if len(sets) > 1:
      law = np.full(len(sets), 1 / len(sets))
      self.assertFalse(statistics.chi_square_rejects(counts, law))

  @parameterized.parameters(([],), ([0],), ([0, 1, 2],), ([2, 5, 6],), ([9],))
  def test_unrank(self, excluded):
    excluded = np.array(excluded, np.int64)
    expected = np.setdiff1d(np.arange(20), excluded)
    found = sparse_noise.unrank(np.arange(len(expected)), excluded)
    self.assertEqual(found.tolist(), expected.tolist())

  @parameterized.named_parameters(
    ('descending', [3, 1], 9),
    ('twice', [1, 1], 9),
    ('negative', [-1, 1], 9),
    ('beyond', [1, 9], 9),
    ('size', [1], 2**61 + 1),
  )
  def test_refuses(self, ones, size):
    with self.assertRaisesRegex(ValueError, 'ones|size'):
      sparse_noise.flip(
        _rng(), np.array(ones, np.int64), size, keep_prob=1.0, false_prob=0.0
      )


def _merge(values, kept):
  """Sums what is not kept into the first bin that is."""
  merged = values[kept].astype(float)
  merged[0] += values[~kept].sum()
  return merged
