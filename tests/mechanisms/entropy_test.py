"""Bit sources: order, replay, exhaustion, and what fails closed."""

import inspect
import os
from unittest import mock

from absl.testing import parameterized
import hypothesis
import hypothesis.strategies as st

from privjax.mechanisms import entropy
from privjax.mechanisms import exact
from privjax.mechanisms import permute_and_flip


class OrderTest(parameterized.TestCase):
  @hypothesis.given(
    counts=st.lists(st.integers(0, 300), max_size=8), seed=st.integers(0, 99)
  )
  def test_how_bits_are_asked_for_does_not_matter(self, counts, seed):
    total = sum(counts)
    together = entropy.seeded(seed, 'order').bits(total)
    source = entropy.seeded(seed, 'order')
    joined = 0
    for count in counts:
      joined = joined << count | source.bits(count)
    self.assertEqual(joined, together)

  def test_first_bit_is_most_significant(self):
    source = entropy.injected('1000110')
    self.assertEqual(source.bits(4), 0b1000)
    self.assertEqual(source.bits(0), 0)
    self.assertEqual(source.bits(3), 0b110)
    with self.assertRaisesRegex(entropy.BitsExhaustedError, 'only 7 bits'):
      source.bits(1)

  @parameterized.parameters('012', ' 1', [[0, 1]], None)
  def test_injected_text(self, text):
    with self.assertRaisesRegex(ValueError, 'text must hold only 0 and 1'):
      entropy.injected(text)


class SeededTest(parameterized.TestCase):
  def test_known_bits(self):
    """SHA-256 of big-endian words: the same on any machine."""
    source = entropy.seeded(7, 'replay', 3)
    self.assertEqual(f'{source.bits(64):016x}', 'fa169d991280adc8')

  def test_seed_and_names_matter(self):
    first = [
      entropy.seeded(seed, *names).bits(128)
      for seed, names in ((1, ('a',)), (2, ('a',)), (1, ('b',)), (1, ()))
    ]
    self.assertLen(set(first), 4)
    self.assertEqual(first[0], entropy.seeded(1, 'a').bits(128))

  def test_blocks_differ(self):
    source = entropy.seeded(0)
    self.assertLen({source.bits(256) for _ in range(4)}, 4)

  @parameterized.parameters(-1, 2**32, 1.0, True, None)
  def test_seed_is_checked(self, seed):
    with self.assertRaisesRegex(ValueError, 'seed must be an integer'):
      entropy.seeded(seed)


class OsEntropyTest(parameterized.TestCase):
  def test_reads_the_operating_system(self):
    self.assertIs(entropy._urandom, os.urandom)
    # Equal with probability 2^-256.
    self.assertNotEqual(
      entropy.os_entropy().bits(256), entropy.os_entropy().bits(256)
    )

  def test_reads_lazily_and_only_what_the_hook_gives(self):
    blocks = [bytes([index] * 32) for index in range(3)]
    hook = mock.Mock(side_effect=blocks)
    with mock.patch.object(entropy, '_urandom', hook):
      source = entropy.os_entropy()
      self.assertEqual(hook.call_count, 0)
      self.assertEqual(source.bits(250), 0)
      self.assertEqual(hook.call_count, 1)
      self.assertEqual(source.bits(14), 1)
      self.assertEqual(hook.call_count, 2)

  def test_the_hook_freezes_a_certified_draw(self):
    utility, settings = [0, 1, 1], dict(levels=(0, 1), epsilon=1, sensitivity=1)
    with mock.patch.object(entropy, '_urandom', lambda count: b'\x5a' * count):
      draws = [exact.sample(utility, **settings) for _ in range(3)]
    self.assertLen(set(draws), 1)
    self.assertTrue(draws[0].certified)
    same = entropy.injected(f'{0x5A:08b}' * 8)
    self.assertEqual(
      draws[0].index, exact.sample(utility, **settings, source=same).index
    )

  def test_failure_after_some_bits(self):
    """The second block fails: no bit of the first is used for a draw."""
    hook = mock.Mock(side_effect=[b'\xaa' * 32, OSError('gone')])
    with mock.patch.object(entropy, '_urandom', hook):
      source = entropy.os_entropy()
      self.assertEqual(source.bits(3), 0b101)
      with self.assertRaisesRegex(entropy.EntropyError, 'nothing was drawn'):
        source.bits(256)

  @parameterized.parameters(exact.sample, permute_and_flip.sample)
  def test_the_hook_is_no_parameter(self, sample):
    source = inspect.signature(sample).parameters['source']
    self.assertIsNone(source.default)
    names = set(inspect.signature(sample).parameters)
    self.assertEmpty(names & {'seed', 'key', 'rng', 'urandom', 'certified'})
    self.assertEmpty(inspect.signature(entropy.os_entropy).parameters)
