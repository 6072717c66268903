"""Host-side argument checks whose errors name the argument and the value.

Every function takes exactly one keyword argument, so that the name in the
message is the caller's name for it:

>>> positive(epsilon=0)
Traceback (most recent call last):
  ...
ValueError: epsilon must be a finite number > 0, got 0
"""

from collections.abc import Collection
import fractions
import math
import numbers

import numpy as np

MAX_SEED = 2**32  # `jax.random.key` silently wraps above this without x64.


def _single(kwargs):
  (item,) = kwargs.items()
  return item


def _is_number(value) -> bool:
  """Returns whether the value is real and finite, also as a float."""
  is_bool = isinstance(value, (bool, np.bool_))
  if is_bool or not isinstance(value, numbers.Real):
    return False
  try:
    return math.isfinite(value)
  except OverflowError:
    return False


def positive(**kwargs) -> None:
  """Checks that the value is a finite real number > 0, also as a float."""
  name, value = _single(kwargs)
  if not _is_number(value) or float(value) <= 0:
    raise ValueError(f'{name} must be a finite number > 0, got {value!r}')


def integer(minimum: int, maximum: int | None = None, **kwargs) -> None:
  """Checks that the value is an integer in [minimum, maximum]."""
  name, value = _single(kwargs)
  is_integer = isinstance(value, numbers.Integral) and not isinstance(
    value, (bool, np.bool_)
  )
  if (
    not is_integer
    or int(value) < minimum
    or (maximum is not None and int(value) > maximum)
  ):
    bound = f'>= {minimum}' if maximum is None else f'in [{minimum}, {maximum}]'
    raise ValueError(f'{name} must be an integer {bound}, got {value!r}')


def seed(**kwargs) -> None:
  """Checks that the value is an integer in [0, 2**32)."""
  integer(0, MAX_SEED - 1, **kwargs)


def fraction_of_one(**kwargs) -> None:
  """Checks that the value is a number in (0, 1]."""
  name, value = _single(kwargs)
  if not _is_number(value) or not 0 < value <= 1:
    raise ValueError(f'{name} must be in (0, 1], got {value!r}')


def one_of(choices: Collection, **kwargs) -> None:
  """Checks that the value is one of `choices`."""
  name, value = _single(kwargs)
  # By type too: True == 1, and an array compares to an array.
  if not any(type(value) is type(c) and value == c for c in choices):
    listed = ', '.join(repr(choice) for choice in choices)
    raise ValueError(f'{name} must be one of {listed}, got {value!r}')


def finite(**kwargs) -> None:
  """Checks that an array (dense or SciPy sparse) has only finite entries."""
  name, value = _single(kwargs)
  entries = np.asarray(
    getattr(value, 'data', value) if _sparse(value) else value
  )
  if entries.dtype.kind not in 'biuf':
    raise ValueError(f'{name} must hold real numbers, got {entries.dtype}')
  bad = int(np.size(entries) - np.count_nonzero(np.isfinite(entries)))
  if bad:
    raise ValueError(
      f'{name} must be finite, got {bad} NaN or infinite entries'
    )


def canonical(**kwargs) -> None:
  """Checks that a SciPy CSR array has sorted indices and no duplicates."""
  name, value = _single(kwargs)
  if getattr(value, 'format', None) != 'csr' or not value.has_canonical_format:
    raise ValueError(
      f'{name} must be a SciPy CSR array with sorted indices and no duplicates '
      '(see sum_duplicates)'
    )


def _sparse(value) -> bool:
  return hasattr(value, 'tocsr')


def shape(expected: tuple[int | None, ...], **kwargs) -> None:
  """Checks an array's shape; `None` allows any size on that axis."""
  name, value = _single(kwargs)
  actual = tuple(np.shape(value)) if not _sparse(value) else value.shape
  matches = len(actual) == len(expected) and all(
    want is None or want == got for want, got in zip(expected, actual)
  )
  if not matches:
    wanted = tuple('any' if size is None else size for size in expected)
    raise ValueError(f'{name} must have shape {wanted}, got {actual}')


def rational(**kwargs) -> fractions.Fraction:
  """Returns the value of a string, int or Fraction > 0 as an exact Fraction.

  Floats are accepted and read by their shortest decimal form, so that `0.1`
  and `'0.1'` mean one tenth and not the nearest binary fraction.
  """
  name, value = _single(kwargs)
  text = str(value) if isinstance(value, (float, np.floating)) else value
  try:
    if isinstance(value, (bool, np.bool_)):
      raise ValueError
    result = fractions.Fraction(text)
  except (ValueError, TypeError, ZeroDivisionError, OverflowError):
    raise ValueError(
      f'{name} must be a finite number > 0 (an int, a Fraction or a string '
      f'such as "0.5" or "1/3"), got {value!r}'
    ) from None
  # A Fraction of NumPy integers would keep them, and their overflow.
  result = fractions.Fraction(int(result.numerator), int(result.denominator))
  if result <= 0:
    raise ValueError(f'{name} must be a finite number > 0, got {value!r}')
  return result
