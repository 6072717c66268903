"""Random vectors for mechanisms that perturb a vector, simulated or certified.

The norm law: density proportional to exp(-|b| / scale) on R^d, that is a
uniform direction and a norm from Gamma(d, scale). It is a scale mixture of
normal laws, which needs neither a gamma sampler nor a normalized direction:

  b = scale |h| g,   g in R^d and h in R^(d+1) independent standard normal.

(Given h, b is normal with variance scale^2 |h|^2; the mixing law of |h|^2, a
chi-square with d + 1 degrees of freedom, is the one whose mixture is
exp(-|b| / scale), since both have characteristic function
(1 + scale^2 |t|^2)^(-(d+1)/2).)

`simulate` draws in float64 from a key and certifies nothing. `draw` reads
random bits, extends each number until its error is below a stated bound, and
returns integers; `discrete_laplace` is exact.

>>> from privjax.mechanisms import entropy
>>> noise = draw(3, source=entropy.seeded(0, 'doc'))
>>> noise.certified, len(noise.units)
(False, 3)
>>> discrete_laplace(3, scale=1, source=entropy.seeded(0, 'doc'))
[0, 1, 0]
"""

from collections.abc import Sequence
import decimal
import fractions
import functools
import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from privjax import _validate
from privjax import prng
from privjax import types
from privjax.mechanisms import entropy
from privjax.mechanisms import intervals
from privjax.mechanisms import inversion

Fraction = fractions.Fraction

# A drawn coordinate is an integer multiple of 2^-UNIT_BITS.
UNIT_BITS = 80
# The distance of a drawn vector from the real one that it stands for.
MAX_ERROR = Fraction(1, 2**72)

_FIRST_BITS = 192
_FIRST_RADIUS_BITS = 96
_DIGITS_PER_BIT = math.log10(2)


class VectorDraw(NamedTuple):
  """A draw of the norm law at scale 1. Secret: it never leaves a mechanism.

  Attributes:
    units: d integers; coordinate j is units[j] * 2^-UNIT_BITS.
    certified: whether the bits came from the operating system.
  """

  units: tuple[int, ...]
  certified: bool

  def as_float64(self) -> np.ndarray:
    """Returns `[d]` float64: each coordinate correctly rounded.

    Rounding is half to even at relative distance 2^-53, so the law of the
    result is discrete: a guarantee that rests on these numbers is one in real
    arithmetic, unless their error is paid for separately.
    """
    return np.array([unit / 2**UNIT_BITS for unit in self.units])


def simulate(
  key: types.KeyArray,
  names: Sequence[tuple[prng.Name, ...]],
  *,
  dimension: int,
) -> np.ndarray:
  """Draws one vector of the norm law at scale 1 per name: never a release.

  Args:
    key: root key; folded by name, not consumed.
    names: one stream name per vector, L of them.
    dimension: d >= 1.

  Returns:
    `[L, d]` float64. A vector depends on its own name only.
  """
  _validate.integer(1, dimension=dimension)
  words = np.stack([prng.words(*name) for name in names])
  with jax.enable_x64(True):
    return np.asarray(_simulated(key, words, dimension))


@functools.partial(jax.jit, static_argnames='dimension')
def _simulated(key, words, dimension):
  def one(word):
    normal = jax.random.normal(
      prng.fold(key, word), (2 * dimension + 1,), dtype=np.float64
    )
    return jnp.linalg.norm(normal[dimension:]) * normal[:dimension]

  return jax.vmap(one)(words)


def bit_source(key: types.KeyArray | None) -> entropy.BitSource:
  """Returns the bits of the operating system, or a replay's that a key names.

  Args:
    key: consumed; `None` is the operating system, the only certified source.
  """
  if key is None:
    return entropy.os_entropy()
  first, second = (int(word) for word in jax.random.bits(key, (2,), np.uint32))
  return entropy.seeded(first, 'vector_noise', second)


def draw(
  dimension: int, *, source: entropy.BitSource | None = None
) -> VectorDraw:
  """Draws the norm law at scale 1 within a sure error.

  Args:
    dimension: d >= 1, public.
    source: bits for a replay, consumed. `None` reads the operating system, and
      only then is the draw certified.

  Returns:
    The draw.

  Raises:
    ValueError: if dimension is not an integer >= 1.
    entropy.EntropyError: if the operating system gives no bits.

  Formal guarantees:
    There is a random vector b with exactly the norm law at scale 1 (for
    independent uniform bits) and |result - b| <= MAX_ERROR for *every* string
    of bits: each normal number is a point of the polar method whose infinitely
    many bits are read only as far as needed, and whose acceptance is decided
    for the real point. What is read depends on the noise alone.

    Edge cases: a point next to the circle, to its center or to a tie reads more
    bits, and never falls back on a rounded answer.
  """
  _validate.integer(1, dimension=dimension)
  source = entropy.os_entropy() if source is None else source
  pairs = [_Pair(source) for _ in range(dimension + 1)]
  radius_bits = _FIRST_RADIUS_BITS
  while True:
    context = _context(radius_bits)
    normals = [g for pair in pairs for g in pair.normals(radius_bits)]
    g, h = normals[:dimension], normals[dimension : 2 * dimension + 1]
    lengths = [_norm(values, context) for values in (g, h)]
    # |h||g - g'| + (| |h| - |h'| |) |g'|, with sqrt(d) radius for each vector;
    # the doubling covers the rounding of this line and of the product below.
    spread = context.multiply(
      context.add(context.add(*lengths), 1),
      context.sqrt(decimal.Decimal(dimension + 1)),
    )
    error = 2 * Fraction(spread) / 2**radius_bits
    error += Fraction(dimension, 2**UNIT_BITS)
    if error <= max(MAX_ERROR, Fraction(2 * dimension, 2**UNIT_BITS)):
      break
    radius_bits *= 2
  scaled = [context.multiply(value, lengths[1]) for value in g]
  units = tuple(math.floor(Fraction(value) * 2**UNIT_BITS) for value in scaled)
  return VectorDraw(units, entropy.is_certified(source))


def error_bound(dimension: int) -> Fraction:
  """Returns the sure bound on |draw - b| in d dimensions: MAX_ERROR or above.

  It exceeds MAX_ERROR only for more than 128 coordinates, each of which is
  rounded to a multiple of 2^-UNIT_BITS.
  """
  _validate.integer(1, dimension=dimension)
  return max(MAX_ERROR, Fraction(2 * dimension, 2**UNIT_BITS))


def discrete_laplace(
  count: int,
  *,
  scale: int | str | Fraction,
  source: entropy.BitSource | None = None,
) -> list[int]:
  """Draws independent integers k with P(k) proportional to exp(-|k| / scale).

  Args:
    count: how many, >= 0.
    scale: exact, > 0.
    source: bits for a replay, consumed; `None` reads the operating system.

  Formal guarantees:
    Added to a vector of `count` integers whose L1 norm changes by at most s
    between neighbors, with scale = s / epsilon: epsilon-DP, delta = 0, for
    independent uniform bits. The law is exact: only integers are used
    (Canonne, Kamath & Steinke, 2020, Algorithm 2).
  """
  _validate.integer(0, count=count)
  scale = _validate.rational(scale=scale)
  source = entropy.os_entropy() if source is None else source
  return [_one_laplace(scale, source) for _ in range(count)]


def _one_laplace(scale: Fraction, source: entropy.BitSource) -> int:
  t, s = scale.numerator, scale.denominator
  while True:
    low, _ = inversion.uniform_below(t, source)
    if not _bernoulli_exp(Fraction(low, t), source):
      continue
    high = 0
    while _bernoulli_exp(Fraction(1), source):
      high += 1
    magnitude = (low + t * high) // s
    negative = source.bits(1)
    if magnitude or not negative:
      return -magnitude if negative else magnitude


def _bernoulli_exp(x: Fraction, source: entropy.BitSource) -> bool:
  """Returns True with probability exactly exp(-x)."""

  def enclose(precision):
    low, high = intervals.fixed_point(
      intervals.exp_neg(x, precision), -precision
    )
    one = 1 << precision
    return inversion.Boundaries([low, one], [min(high, one), one], precision)

  return inversion.choose(enclose, source)[0] == 0


class _Pair:
  """Two normal numbers of the polar method, refined on demand.

  The point is ((a + r) / 2^n, (b + s) / 2^n), with a, b even integers and r, s
  in [0, 2) not read yet; it is uniform on the open unit disc.
  """

  def __init__(self, source: entropy.BitSource):
    self._source = source
    while not self._try():
      pass

  def _try(self) -> bool:
    self._num_bits, self._corners = 0, [-1, -1]
    while True:
      self._extend(_FIRST_BITS)
      low, high = self._square_bounds()
      one = 1 << 2 * self._num_bits
      if high < one:
        return True
      if low >= one:
        return False

  def _extend(self, count: int) -> None:
    """Reads `count` further bits of both coordinates."""
    for axis, corner in enumerate(self._corners):
      bits = self._source.bits(count)
      # The cell [corner, corner + 2) is cut into 2^count cells of width 2.
      self._corners[axis] = (corner << count) + 2 * bits
    self._num_bits += count

  def _sides(self) -> list[tuple[int, int]]:
    """Returns bounds of |coordinate|, in units of 2^-num_bits."""
    # A cell never holds both signs: 0 is always a corner once a bit is read.
    return [(a, a + 2) if a >= 0 else (-a - 2, -a) for a in self._corners]

  def _square_bounds(self) -> tuple[int, int]:
    (a, b), (c, d) = self._sides()
    return a * a + c * c, b * b + d * d

  def normals(self, radius_bits: int) -> list[decimal.Decimal]:
    """Returns both numbers, each within 2^-radius_bits of the real one."""
    while True:
      found = self._enclosed(radius_bits)
      if found is not None:
        return found
      self._extend(_FIRST_BITS)

  def _enclosed(self, radius_bits: int) -> list[decimal.Decimal] | None:
    low, high = self._square_bounds()
    if not low:
      return None
    context = _context(self._num_bits + radius_bits)
    square = decimal.Decimal(1 << 2 * self._num_bits)
    unit = context.divide(1, 1 << self._num_bits)
    # Decreasing in the squared radius.
    factors = [
      _polar_factor(context.divide(decimal.Decimal(value), square), context)
      for value in (high, low)
    ]
    results = []
    for corner, side in zip(self._corners, self._sides()):
      ends = [
        context.multiply(context.multiply(decimal.Decimal(length), unit), f)
        for length, f in zip(side, factors)
      ]
      # Half of the radius is left for rounding, which is far smaller.
      if Fraction(ends[1]) - Fraction(ends[0]) > Fraction(1, 2**radius_bits):
        return None
      middle = context.divide(context.add(*ends), 2)
      results.append(middle if corner >= 0 else -middle)
    return results


def _polar_factor(square: decimal.Decimal, context) -> decimal.Decimal:
  """Returns sqrt(-2 ln(s) / s) for s in (0, 1)."""
  return context.sqrt(
    context.divide(context.multiply(-2, context.ln(square)), square)
  )


def _norm(values, context) -> decimal.Decimal:
  total = decimal.Decimal(0)
  for value in values:
    total = context.fma(value, value, total)
  return context.sqrt(total)


def _context(num_bits: int) -> decimal.Context:
  """A context whose operations round correctly, well below 2^-num_bits."""
  return decimal.Context(
    prec=int(2 * num_bits * _DIGITS_PER_BIT) + 30,
    Emin=-(10**9),
    Emax=10**9,
    traps=[decimal.InvalidOperation, decimal.DivisionByZero, decimal.Overflow],
  )
