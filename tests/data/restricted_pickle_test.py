"""Tests of the restricted unpickler."""

import collections
import fractions
import os
import pickle

from absl.testing import parameterized
import numpy as np
import scipy.sparse

from privjax.data import restricted_pickle

# What Python 2 wrote for numpy.array([3, 5], 'int32'): old module names, byte
# strings, and 0 and 1 where NumPy now wants booleans.
_PYTHON2_ARRAY = (
  b'cnumpy.core.multiarray\n_reconstruct\n(cnumpy\nndarray\n(I0\ntS"b"\ntR'
  b'(I1\n(I2\ntcnumpy\ndtype\n(S"i4"\nI0\nI1\ntR(I3\nS"<"\nNNNI-1\nI-1\nI0\ntb'
  b'I00\nS"\\x03\\x00\\x00\\x00\\x05\\x00\\x00\\x00"\ntb.'
)


class _Caller:
  """Pickles to a call of `function` on `args`."""

  def __init__(self, function, *args):
    self._call = function, args

  def __reduce__(self):
    return self._call


class LoadsTest(parameterized.TestCase):
  @parameterized.parameters(0, 2, 4)
  def test_reads_containers_of_any_protocol(self, protocol):
    value = collections.defaultdict(list, {1: [2, 3]})
    result = restricted_pickle.loads(pickle.dumps(value, protocol))
    self.assertEqual(result, value)
    self.assertIs(result.default_factory, list)

  def test_reads_object_arrays(self):
    array = np.array([[1, 'two'], [[3], None]], dtype=object)
    result = restricted_pickle.loads(pickle.dumps(array))
    self.assertEqual(result.tolist(), array.tolist())

  def test_reads_python_2_arrays(self):
    result = restricted_pickle.loads(_PYTHON2_ARRAY)
    self.assertEqual(result.dtype, np.int32)
    self.assertEqual(result.tolist(), [3, 5])

  @parameterized.parameters('._csr', '.csr')
  def test_reads_csr_matrices_under_both_names(self, module):
    matrix = scipy.sparse.csr_matrix(np.eye(3, 4, 1, dtype=np.float32))
    # Protocol 3 spells module names as text that a test can replace.
    data = pickle.dumps(matrix, 3)
    self.assertIn(b'scipy.sparse._csr\n', data)
    data = data.replace(b'._csr\n', f'{module}\n'.encode())
    result = restricted_pickle.loads(data)
    np.testing.assert_array_equal(result.toarray(), matrix.toarray())
    self.assertEqual(result.dtype, np.float32)

  @parameterized.named_parameters(
    ('system', _Caller(os.system, 'false'), 'system'),
    ('eval', _Caller(eval, '1'), 'builtins.eval'),
    ('getattr', _Caller(getattr, 1, 'real'), 'builtins.getattr'),
    ('numpy_load', _Caller(np.load, 'x'), 'numpy.load'),
    ('fraction', fractions.Fraction(1, 2), 'fractions.Fraction'),
    ('ordered', collections.OrderedDict(), 'collections.OrderedDict'),
    ('coo', scipy.sparse.coo_matrix((1, 1)), 'coo_matrix'),
    ('hidden_in_array', np.array([fractions.Fraction(1)]), 'Fraction'),
  )
  def test_refuses_and_names(self, value, name):
    with self.assertRaisesRegex(pickle.UnpicklingError, f'refused.*{name}'):
      restricted_pickle.loads(pickle.dumps(value))

  @parameterized.parameters(0, 1, 10, -1)
  def test_refuses_truncated_data(self, end):
    data = pickle.dumps(np.arange(9))[:end]
    with self.assertRaisesRegex(pickle.UnpicklingError, 'truncated'):
      restricted_pickle.loads(data)
