"""Named wrong versions of the exact samplers, as patches.

`MUTANTS` maps a name to a function that returns the patch to enter. Which check
of `tests/mechanisms/sampling_checks.py` must find it stands in
`tests/mechanisms/sampling_mutants_test.py`.
"""

import bisect
import fractions
import math
import random
from unittest import mock

import numpy as np

from privjax.mechanisms import entropy
from privjax.mechanisms import exact
from privjax.mechanisms import grouping
from privjax.mechanisms import intervals
from privjax.mechanisms import inversion
from privjax.mechanisms import permute_and_flip
from tests.mechanisms import sampling_checks

_scale = grouping.scale
_group = grouping.group
_fixed_point = intervals.fixed_point
_boundaries = exact._boundaries
_digits = permute_and_flip._digits

# name -> (module, text, what stands there instead): floating point that a draw
# need not show.
SOURCE_MUTANTS = {
  'scale': (
    'grouping',
    'return Fraction(exact, 2 * bound * int(denominator))',
    'ratio = float(exact / (2 * bound)); return Fraction(ratio) / denominator',
  ),
  'true division': ('intervals', '>> work) // order', '>> work) / order'),
  'literal': ('exact', '_GUARD_BITS = 16', '_GUARD_BITS = 16.0'),
  'power': (
    'intervals',
    'total = term = 1 << work',
    'total = term = 2**work',
  ),
  'floating function': ('intervals', 'math.isqrt', 'math.sqrt'),
  'weighted bincount': ('grouping', 'np.add.at', 'np.add.reduce'),
  'mean': ('grouping', 'inside = grouped.level', 'inside = grouped.mean()'),
  'another module': (
    'inversion',
    'outcome = bisect.bisect_left',
    'import random; outcome = random.choice',
  ),
}


def missing_factor_two():
  """Exponent epsilon u / sensitivity."""
  return mock.patch.object(grouping, 'scale', lambda *args: 2 * _scale(*args))


def understated_sensitivity():
  """Half of the sensitivity that the caller states."""
  return mock.patch.object(
    grouping,
    'scale',
    lambda epsilon, sensitivity, denominator: _scale(
      epsilon, fractions.Fraction(sensitivity) / 2, denominator
    ),
  )


def float_level_weights():
  """exp in float64: zero below e^-745, and wrong in the 54th bit."""

  def boundaries(grouped, scale, precision):
    top = max(grouped.levels)
    terms = [
      total * math.exp(float(scale) * (level - top))
      for level, total in zip(grouped.levels, grouped.totals)
    ]
    sums = np.cumsum(terms)
    ends = [int(value / sums[-1] * 2**53) << precision for value in sums]
    ends = [end >> 53 for end in ends]
    return inversion.Boundaries(ends, ends, precision)

  return mock.patch.object(exact, '_boundaries', boundaries)


def float_hidden_in_the_scale():
  """A rational that goes through a float on its way, off by one part in 2^53.

  Compiled under the name of the library's file, as an edit of it would be.
  """
  text = sampling_checks.edited(*SOURCE_MUTANTS['scale'])
  path = grouping.__file__
  names = dict(vars(grouping))
  exec(compile(text, path, 'exec'), names)
  return mock.patch.object(grouping, 'scale', names['scale'])


def uniform_within_a_level():
  """Every candidate of the level, as if it had weight one."""

  def member(grouped, level, rank):
    inside = np.flatnonzero(grouped.level == level)
    return int(inside[rank % len(inside)])

  return mock.patch.object(grouping, 'member', member)


def weights_ignored():
  """The base measure never reaches the law."""
  return mock.patch.object(
    grouping,
    'group',
    lambda utility, levels, weights=None: _group(utility, levels),
  )


def boundaries_rounded_inward():
  """Lower ends rounded up and upper ends down."""

  def boundaries(*args):
    low, high, precision = _boundaries(*args)
    return inversion.Boundaries(high, low, precision)

  return mock.patch.object(exact, '_boundaries', boundaries)


def enclosure_rounded_inward():
  """The last cut of an enclosure narrows it."""

  def fixed_point(interval, anchor):
    low, high = _fixed_point(interval, anchor)
    return (low + 1, high - 1) if high - low == 1 else (low, high)

  return mock.patch.object(intervals, 'fixed_point', fixed_point)


def taylor_without_remainder():
  """The truncated series is taken for the function, one term early."""

  def taylor(y, work):
    total = term = 1 << work
    for order in range(1, 4):
      term = (term * y >> work) // order
      total += -term if order % 2 else term
    return total, 0

  return mock.patch.object(intervals, '_taylor', taylor)


def decided_by_the_first_point():
  """A level is taken as soon as the interval's lower end lies in it."""

  def certain(boundaries, prefix, num_bits):
    begin = prefix << boundaries.precision - num_bits
    return bisect.bisect_right(boundaries.low, begin)

  return mock.patch.object(inversion, '_certain_outcome', certain)


def tie_at_a_boundary_rejected():
  """An interval that ends exactly at a boundary counts as crossing it.

  The law stays; one more bit is read, again and again, and on the string of
  ones no number of bits decides.
  """

  def uniform_below(count, source):
    num_bits = (count - 1).bit_length()
    prefix = source.bits(num_bits)
    while prefix * count >> num_bits != (prefix + 1) * count >> num_bits:
      prefix = prefix << 1 | source.bits(1)
      num_bits += 1
    return prefix * count >> num_bits, num_bits

  return mock.patch.object(inversion, 'uniform_below', uniform_below)


def rejection_off_by_one():
  """Draws that should be rejected, equal to the count, become the last."""

  def uniform_below(count, source):
    num_bits = count.bit_length()
    while True:
      value = source.bits(num_bits)
      if value <= count:
        return min(value, count - 1), num_bits

  return mock.patch.object(inversion, 'uniform_below', uniform_below)


def modulo_bias():
  """Too large an integer wraps around."""

  def uniform_below(count, source):
    num_bits = (count - 1).bit_length()
    return source.bits(num_bits) % count, num_bits

  return mock.patch.object(inversion, 'uniform_below', uniform_below)


def seeded_marked_certified():
  """Any source certifies."""
  return mock.patch.object(entropy, 'is_certified', lambda source: True)


def subclass_marked_certified():
  """A class that derives from the certified source certifies."""
  return mock.patch.object(
    entropy,
    'is_certified',
    lambda source: isinstance(source, entropy.OsEntropy),
  )


def fallback_to_random():
  """Without the operating system's bits, Python's generator stands in."""

  def read():
    try:
      return entropy._urandom(32)
    except (OSError, NotImplementedError):
      return random.Random(0).randbytes(32)

  return mock.patch.object(entropy, '_read_os', read)


def short_read_accepted():
  """Fewer bytes than asked for are used as they are."""

  def read():
    try:
      return entropy._urandom(32)
    except (OSError, NotImplementedError) as error:
      raise entropy.EntropyError('no bits') from error

  return mock.patch.object(entropy, '_read_os', read)


def coin_misses_a_digit():
  """Coins compare with the digits of their probability from the second on."""

  def digits(exponent):
    result = _digits(exponent)
    next(result)
    return result

  return mock.patch.object(permute_and_flip, '_digits', digits)


def coins_with_replacement():
  """Candidates may be visited again: the exponential mechanism's law."""
  return mock.patch.object(permute_and_flip, 'sample', exact.sample)


def first_accepted_by_index():
  """The lowest level whose coin comes up wins, instead of a random one."""

  def uniform_below(count, source):
    del count, source
    return 0, 0

  return mock.patch.object(inversion, 'uniform_below', uniform_below)


MUTANTS = {
  function.__name__: function
  for function in (
    missing_factor_two,
    understated_sensitivity,
    float_level_weights,
    float_hidden_in_the_scale,
    uniform_within_a_level,
    weights_ignored,
    boundaries_rounded_inward,
    enclosure_rounded_inward,
    taylor_without_remainder,
    decided_by_the_first_point,
    tie_at_a_boundary_rejected,
    rejection_off_by_one,
    modulo_bias,
    seeded_marked_certified,
    subclass_marked_certified,
    fallback_to_random,
    short_read_accepted,
    coin_misses_a_digit,
    coins_with_replacement,
    first_accepted_by_index,
  )
}
