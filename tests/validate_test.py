"""Tests of the argument checks."""

import fractions
import re

from absl.testing import parameterized
import numpy as np
import scipy.sparse

from privjax import _validate

Fraction = fractions.Fraction
_NOT_NUMBERS = (True, np.True_, float('nan'), '1', None, 1j, ([1],))


class ValidateTest(parameterized.TestCase):
  def _refuses(self, check, value, bound, *arguments):
    """Asserts an error that names the argument, the bound and the value."""
    message = f'size must be {bound}, got {value!r}'
    with self.assertRaisesRegex(ValueError, f'^{re.escape(message)}$'):
      check(*arguments, size=value)

  @parameterized.parameters(
    1, 1e-300, 5e-324, Fraction(1, 3), np.float32(2), np.int8(1), 10**308
  )
  def test_positive_accepts(self, value):
    _validate.positive(size=value)

  @parameterized.parameters(
    0,
    -1,
    0.0,
    -0.0,
    float('inf'),
    10**400,
    -(10**400),
    Fraction(0),
    Fraction(1, 10**400),
    *_NOT_NUMBERS,
  )
  def test_positive_refuses(self, value):
    self._refuses(_validate.positive, value, 'a finite number > 0')

  @parameterized.parameters(2, 3, 4, np.int64(3), np.uint8(4))
  def test_integer_accepts(self, value):
    _validate.integer(2, 4, size=value)

  def test_integer_accepts_any_above_the_minimum(self):
    _validate.integer(2, size=10**400)

  @parameterized.parameters(
    1, 5, -3, 3.0, Fraction(3), float('inf'), *_NOT_NUMBERS
  )
  def test_integer_refuses(self, value):
    self._refuses(_validate.integer, value, 'an integer in [2, 4]', 2, 4)

  @parameterized.parameters(1, -3, 3.0, *_NOT_NUMBERS)
  def test_integer_refuses_below(self, value):
    self._refuses(_validate.integer, value, 'an integer >= 2', 2)

  @parameterized.parameters(0, 2**32 - 1, np.uint32(2**32 - 1))
  def test_seed_accepts(self, value):
    _validate.seed(size=value)

  @parameterized.parameters(-1, 2**32, 0.0, *_NOT_NUMBERS)
  def test_seed_refuses(self, value):
    self._refuses(_validate.seed, value, 'an integer in [0, 4294967295]')

  @parameterized.parameters(1, 1.0, 5e-324, Fraction(1, 3), np.float32(0.5))
  def test_fraction_of_one_accepts(self, value):
    _validate.fraction_of_one(size=value)

  @parameterized.parameters(
    0, -0.5, 1.0000001, 10**400, float('inf'), *_NOT_NUMBERS
  )
  def test_fraction_of_one_refuses(self, value):
    self._refuses(_validate.fraction_of_one, value, 'in (0, 1]')

  @parameterized.parameters('a', 2)
  def test_one_of_accepts(self, value):
    _validate.one_of(('a', 2), size=value)

  @parameterized.parameters('b', '', 'a ', 3, None)
  def test_one_of_refuses(self, value):
    self._refuses(_validate.one_of, value, "one of 'a', 2", ('a', 2))

  @parameterized.named_parameters(
    ('scalar', 1.0),
    ('ints', [[1, 2]]),
    ('empty', np.zeros((0, 3))),
    ('largest', np.array([np.finfo(float).max])),
    ('sparse', scipy.sparse.csr_array(np.eye(3))),
    ('empty_sparse', scipy.sparse.csr_array((3, 3))),
  )
  def test_finite_accepts(self, value):
    _validate.finite(size=value)

  @parameterized.named_parameters(
    ('nan', np.nan, 1),
    ('infinities', [[np.inf, 1.0], [-np.inf, np.nan]], 3),
    ('float32', np.array([np.inf], np.float32), 1),
    ('sparse', scipy.sparse.csr_array([[0, np.nan], [np.inf, 0]]), 2),
    ('coordinates', scipy.sparse.coo_array([[0, np.nan], [1, 0]]), 1),
  )
  def test_finite_refuses(self, value, count):
    message = f'^size must be finite, got {count} NaN or infinite entries$'
    with self.assertRaisesRegex(ValueError, message):
      _validate.finite(size=value)

  @parameterized.named_parameters(
    ('scalar', 1.0, ()),
    ('list', [[1, 2, 3]], (1, 3)),
    ('any', np.zeros((0, 3)), (None, 3)),
    ('sparse', scipy.sparse.csr_array((4, 3)), (None, 3)),
  )
  def test_shape_accepts(self, value, expected):
    _validate.shape(expected, size=value)

  @parameterized.named_parameters(
    ('scalar', 1.0, '()'),
    ('flat', np.zeros(3), '(3,)'),
    ('long', np.zeros((2, 4)), '(2, 4)'),
    ('deep', np.zeros((1, 2, 3)), '(1, 2, 3)'),
    ('sparse', scipy.sparse.csr_array((3, 2)), '(3, 2)'),
  )
  def test_shape_refuses(self, value, got):
    message = re.escape(f"size must have shape ('any', 3), got {got}")
    with self.assertRaisesRegex(ValueError, f'^{message}$'):
      _validate.shape((None, 3), size=value)

  @parameterized.parameters(
    (1, 1),
    ('0.1', Fraction(1, 10)),
    (0.1, Fraction(1, 10)),
    (np.float64(0.1), Fraction(1, 10)),
    ('1/3', Fraction(1, 3)),
    ('1e-3', Fraction(1, 1000)),
    (1e-3, Fraction(1, 1000)),
    (5e-324, Fraction(5, 10**324)),
    (Fraction(2, 7), Fraction(2, 7)),
    (np.int64(3), 3),
    (10**400, 10**400),
  )
  def test_rational_is_exact(self, value, expected):
    result = _validate.rational(size=value)
    self.assertIsInstance(result, Fraction)
    self.assertEqual(result, expected)

  @parameterized.parameters(
    *('x', '', '1/0', 'nan', 'inf', '1 2', float('inf'), -float('inf')),
    *(True, np.True_, float('nan'), None, 1j, ([1],)),
  )
  def test_rational_refuses_what_is_no_number(self, value):
    bound = (
      'a finite number > 0 (an int, a Fraction or a string such as "0.5" or '
      '"1/3")'
    )
    self._refuses(_validate.rational, value, bound)

  @parameterized.parameters(0, -1, 0.0, -0.0, '0', '-1/3', Fraction(-1, 2))
  def test_rational_refuses_what_is_not_positive(self, value):
    self._refuses(_validate.rational, value, 'a finite number > 0')

  @parameterized.named_parameters(('none', {}), ('two', {'one': 1, 'other': 2}))
  def test_takes_exactly_one_argument(self, arguments):
    with self.assertRaises(ValueError):
      _validate.positive(**arguments)
