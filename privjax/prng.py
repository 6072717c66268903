"""Named streams of random keys: the only place where names become entropy.

A run has one root key. Everything random derives from it by *name*, never by
splitting in order, so that a cell's draws do not depend on the grid, batch,
shard or order around it:

>>> root = key(7)
>>> a = stream(root, 'release', 'cora', 3, Fraction(1, 2))
>>> b = stream(root, 'release', 'cora', 3, Fraction('0.5'))
>>> bool((jax.random.key_data(a) == jax.random.key_data(b)).all())
True

These keys simulate. They never draw a certified release: threefry is not
cryptographic and floating-point noise has no full support.
"""

from collections.abc import Sequence
from fractions import Fraction
import hashlib
import json

import jax
import numpy as np

from privjax import _validate
from privjax import types

Name = str | int | Fraction


def key(seed: int) -> types.KeyArray:
  """Returns the typed root key of a run; `seed` must be in [0, 2**32)."""
  _validate.seed(seed=seed)
  return jax.random.key(np.uint32(seed))


def words(*names: Name) -> np.ndarray:
  """Returns the `[2]` uint32 words that a sequence of names hashes to.

  Args:
    *names: strings, ints or Fractions. A Fraction is read by value, so equal
      epsilons name one stream however they were written. Floats are refused:
      convert them to a Fraction, whose meaning does not depend on rounding.
  """
  encoded = [_encode(name) for name in names]
  digest = hashlib.sha256(json.dumps(encoded).encode()).digest()
  return np.frombuffer(digest[:8], dtype='<u4').astype(np.uint32)


def fold(root: types.KeyArray, folded_words: types.Array) -> types.KeyArray:
  """Folds the `[2]` words of a name into a key; pure, jit- and vmap-able."""
  return jax.random.fold_in(
    jax.random.fold_in(root, folded_words[0]), folded_words[1]
  )


def stream(root: types.KeyArray, *names: Name) -> types.KeyArray:
  """Returns the key of the stream called `names` under `root`.

  `root` is only ever folded, not consumed: it may name any number of streams.
  """
  return fold(root, words(*names))


def generator(seed: int, *names: Name) -> np.random.Generator:
  """Returns a NumPy generator for host-side *public* draws, by name.

  Used where data is prepared on the host (target draws, snapshots, synthetic
  graphs). Philox is counter based: its stream does not depend on the machine.
  """
  _validate.seed(seed=seed)
  entropy: Sequence[int] = [seed, *(int(word) for word in words(*names))]
  return np.random.Generator(np.random.Philox(np.random.SeedSequence(entropy)))


def permutation(size: int, seed: int, *names: Name) -> np.ndarray:
  """Returns a permutation of range(size), by name, for public host draws.

  It sorts uniform numbers: NumPy may change the stream behind its own
  `Generator.permutation`, and with it every snapshot and target.
  """
  uniforms = generator(seed, *names).random(size)
  return np.argsort(uniforms, kind='stable')


def _encode(name: Name) -> list[str]:
  if isinstance(name, (bool, np.bool_)):
    raise TypeError(f'name must be a str, int or Fraction, got {name!r}')
  if isinstance(name, str):
    return ['text', name]
  if isinstance(name, (int, np.integer)):
    return ['number', f'{int(name)}/1']
  if isinstance(name, Fraction):
    return ['number', f'{name.numerator}/{name.denominator}']
  raise TypeError(f'name must be a str, int or Fraction, got {name!r}')
