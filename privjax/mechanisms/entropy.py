"""Where random bits come from: the operating system, or an explicit replay.

A certified release reads the operating system's generator and nothing else.
A replay or a test passes another source on purpose; what it draws is never
certified.

>>> source = injected('1011')
>>> source.bits(1), source.bits(3)
(1, 3)

Sources are objects with a position, the exception to the library's rule of no
state: a bit that was read must not be read again.
"""

from collections.abc import Callable
import hashlib
import os
from typing import Protocol

from privjax import _validate
from privjax import prng

# Tests freeze a whole release by replacing this name: the call to the operating
# system itself, so that everything above it runs as it does for a user. It is
# never a parameter.
_urandom = os.urandom

# One read serves nearly every draw, so the number of calls tells nothing.
_BLOCK_BYTES = 32


class EntropyError(RuntimeError):
  """The operating system gave no random bits. Nothing was drawn."""


class BitsExhaustedError(RuntimeError):
  """An injected source was asked for more bits than it holds."""


class BitSource(Protocol):
  """What the exact samplers read."""

  def bits(self, count: int) -> int:
    """Returns the next `count` >= 0 bits, the first one most significant."""
    ...


class _Blocks:
  """Bits of blocks of `_BLOCK_BYTES` bytes, read when they are needed."""

  def __init__(self, read_block: Callable[[], bytes]):
    self._read_block = read_block
    self._held = 0
    self._num_held = 0

  def bits(self, count: int) -> int:
    """Returns the next `count` >= 0 bits, the first one most significant."""
    num_blocks = max(-(-(count - self._num_held) // (8 * _BLOCK_BYTES)), 0)
    blocks = b''.join(self._read_block() for _ in range(num_blocks))
    self._held = self._held << 8 * len(blocks) | int.from_bytes(blocks, 'big')
    self._num_held += 8 * len(blocks)
    self._num_held -= count
    result = self._held >> self._num_held
    self._held &= (1 << self._num_held) - 1
    return result


class OsEntropy(_Blocks):
  """Bits of the operating system: the only source of a certified draw."""

  def __init__(self):
    super().__init__(_read_os)


class SeededBits(_Blocks):
  """Bits that are a function of a seed: for replays, never certified."""


class InjectedBits:
  """Bits given one by one: for tests, never certified."""

  def __init__(self, text: str):
    self._text = text
    self._position = 0

  def bits(self, count: int) -> int:
    """Returns the next `count` bits.

    Raises:
      BitsExhaustedError: if fewer are left.
    """
    end = self._position + count
    if end > len(self._text):
      raise BitsExhaustedError(f'only {len(self._text)} bits were injected')
    chosen = self._text[self._position : end]
    self._position = end
    return int(chosen, 2) if chosen else 0


def os_entropy() -> OsEntropy:
  """Returns a source that reads the operating system when it needs to.

  Formal guarantees: the guarantee of a draw assumes that these bits are
  independent and uniform. If the operating system gives none, `bits` raises
  `EntropyError`; no other generator ever stands in.
  """
  return OsEntropy()


def seeded(seed: int, *names: prng.Name) -> SeededBits:
  """Returns the replayable bits called `names` under a seed.

  They are SHA-256 of the seed, the names and a counter, so they are the same on
  every machine. A draw from them is a simulation: `is_certified` is False.

  Args:
    seed: in [0, 2**32).
    *names: as in `prng.words`.
  """
  _validate.seed(seed=seed)
  words = [seed, *(int(word) for word in prng.words(*names))]
  prefix = b''.join(word.to_bytes(4, 'big') for word in words)
  counter = 0

  def read_block() -> bytes:
    nonlocal counter
    counter += 1
    return hashlib.sha256(prefix + counter.to_bytes(8, 'big')).digest()

  return SeededBits(read_block)


def injected(text: str) -> InjectedBits:
  """Returns a source of exactly the bits in a string of zeros and ones.

  Raises:
    ValueError: if the string holds anything else.
  """
  if not isinstance(text, str) or set(text) - {'0', '1'}:
    raise ValueError(f'text must hold only 0 and 1, got {text!r}')
  return InjectedBits(text)


def is_certified(source: BitSource) -> bool:
  """Returns whether a source is the operating system's generator.

  It compares the type itself, so that no other class can claim to be it.
  """
  return type(source) is OsEntropy


def _read_os() -> bytes:
  try:
    block = _urandom(_BLOCK_BYTES)
  except (OSError, NotImplementedError) as error:
    raise EntropyError(
      'the operating system gave no random bits; nothing was drawn'
    ) from error
  if len(block) != _BLOCK_BYTES:
    raise EntropyError(
      'the operating system gave too few random bits; nothing was drawn'
    )
  return block
