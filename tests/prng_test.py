"""Tests of named streams."""

import fractions

from absl.testing import parameterized
import jax
import numpy as np

from privjax import prng

Fraction = fractions.Fraction
_NAMES = ('release', 'cora', 3, Fraction(1, 2))
_WORDS = [1275992672, 349134384]


def _bits(key):
  return jax.random.key_data(key).tolist()


class KeyTest(parameterized.TestCase):
  @parameterized.parameters(0, 7, 2**32 - 1, np.int64(7), np.uint32(7))
  def test_is_a_typed_key_of_the_seed(self, seed):
    key = prng.key(seed)
    self.assertTrue(jax.numpy.issubdtype(key.dtype, jax.dtypes.prng_key))
    self.assertEqual(_bits(key), [0, int(seed)])

  @parameterized.parameters(-1, 2**32, 2**40, True, False, 1.0, '1', None)
  def test_refuses_seed(self, seed):
    with self.assertRaisesRegex(ValueError, f'^seed must .* got {seed!r}'):
      prng.key(seed)


class WordsTest(parameterized.TestCase):
  def test_is_pinned(self):
    # The first 8 bytes of the sha256 of [["text", "release"],
    # ["text", "cora"], ["number", "3/1"], ["number", "1/2"]].
    words = prng.words(*_NAMES)
    self.assertEqual(words.tolist(), _WORDS)
    self.assertEqual(words.dtype, np.uint32)
    self.assertEqual(prng.words('a').tolist(), [3471939591, 417632746])

  @parameterized.parameters(
    (Fraction(1, 2), Fraction('0.5')),
    (Fraction(2, 4), Fraction('1/2')),
    (3, Fraction(3)),
    (3, np.int64(3)),
  )
  def test_equal_numbers_are_one_name(self, one, other):
    self.assertEqual(prng.words(one).tolist(), prng.words(other).tolist())

  def test_different_names_differ(self):
    names = [
      (),
      ('a',),
      ('b',),
      ('a', 'b'),
      ('b', 'a'),
      ('ab',),
      ('a', ''),
      ('a, b',),
      ('a", "b',),
      ('1',),
      ('1/1',),
      (1,),
      (-1,),
      (11,),
      (1, 1),
      (Fraction(1, 2),),
      (Fraction(2, 1),),
      (1, 2),
      ('number', '1/1'),
    ]
    found = {tuple(prng.words(*name).tolist()) for name in names}
    self.assertLen(found, len(names))

  @parameterized.parameters(
    0.5, 1.0, True, False, None, b'a', (('a',),), np.float64(1), np.bool_(True)
  )
  def test_refuses(self, name):
    with self.assertRaisesRegex(TypeError, '^name must be a str, int or Frac'):
      prng.words('ok', name)


class StreamTest(parameterized.TestCase):
  def test_folds_the_two_words(self):
    root = prng.key(7)
    expected = jax.random.fold_in(
      jax.random.fold_in(root, np.uint32(_WORDS[0])), np.uint32(_WORDS[1])
    )
    self.assertEqual(_bits(prng.stream(root, *_NAMES)), _bits(expected))

  def test_names_and_roots_differ(self):
    keys = [
      prng.stream(prng.key(seed), *names)
      for seed in (7, 8)
      for names in (('a',), ('b',), ('a', 1), (1, 'a'))
    ]
    self.assertLen({tuple(_bits(key)) for key in keys}, 8)

  def test_root_names_any_number_of_streams(self):
    root = prng.key(0)
    before = _bits(prng.stream(root, 'a'))
    jax.random.uniform(prng.stream(root, 'b'))
    self.assertEqual(_bits(prng.stream(root, 'a')), before)

  def test_nested_streams_are_not_joined_names(self):
    nested = prng.stream(prng.stream(prng.key(0), 'a'), 'b')
    self.assertNotEqual(
      _bits(nested), _bits(prng.stream(prng.key(0), 'a', 'b'))
    )

  def test_fold_is_the_same_under_jit_and_vmap(self):
    root = prng.key(7)
    names = [('a', i) for i in range(5)]
    words = np.stack([prng.words(*name) for name in names])
    mapped = jax.jit(jax.vmap(prng.fold, in_axes=(None, 0)))(root, words)
    self.assertEqual(
      _bits(mapped), [_bits(prng.stream(root, *name)) for name in names]
    )


class GeneratorTest(parameterized.TestCase):
  def test_is_pinned(self):
    # Raw Philox words: NumPy may change how it turns them into variates.
    rng = prng.generator(7, 'targets')
    self.assertIsInstance(rng.bit_generator, np.random.Philox)
    self.assertEqual(
      rng.bit_generator.random_raw(3).tolist(),
      [738364344150856894, 15695947190578661509, 1780203817870449040],
    )

  def test_equal_names_are_one_stream(self):
    one = prng.generator(7, 'a', Fraction(1, 2)).random(4)
    same = prng.generator(7, 'a', Fraction('0.5')).random(4)
    np.testing.assert_array_equal(one, same)

  def test_names_and_seeds_differ(self):
    found = {
      prng.generator(seed, *names).random()
      for seed in (0, 1, 2**32 - 1)
      for names in ((), ('a',), ('b',), ('a', 'b'))
    }
    self.assertLen(found, 12)

  @parameterized.parameters(-1, 2**32, True, 1.0, None)
  def test_refuses_seed(self, seed):
    with self.assertRaisesRegex(ValueError, f'^seed must .* got {seed!r}'):
      prng.generator(seed, 'a')

  def test_refuses_a_float_name(self):
    with self.assertRaisesRegex(TypeError, '^name must .* got 0.5'):
      prng.generator(0, 0.5)
