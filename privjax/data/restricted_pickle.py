"""Reads array pickles without letting them choose what code runs.

Unpickling calls whatever a file names. This reader knows a fixed list: NumPy
arrays and dtypes, SciPy CSR matrices, `list` and `defaultdict`, under their
Python 2 and Python 3 names.

>>> import os, pickle
>>> loads(pickle.dumps([1, 2]))
[1, 2]
>>> loads(pickle.dumps(os.getcwd))
Traceback (most recent call last):
  ...
_pickle.UnpicklingError: refused to unpickle posix.getcwd

Names map to the objects directly: importing the old modules that the files
name (`scipy.sparse.csr`, `numpy.core.multiarray`) emits deprecation warnings.
"""

import collections
import io
import pickle
from typing import Any

import numpy as np
import scipy.sparse

# What an array's own pickle names, without reaching into NumPy's modules.
_RECONSTRUCT = np.empty(0).__reduce__()[0]

_ALLOWED = {
  ('__builtin__', 'list'): list,
  ('builtins', 'list'): list,
  ('collections', 'defaultdict'): collections.defaultdict,
  ('numpy', 'dtype'): np.dtype,
  ('numpy', 'ndarray'): np.ndarray,
  ('numpy._core.multiarray', '_reconstruct'): _RECONSTRUCT,
  ('numpy.core.multiarray', '_reconstruct'): _RECONSTRUCT,
  ('scipy.sparse._csr', 'csr_matrix'): scipy.sparse.csr_matrix,
  ('scipy.sparse.csr', 'csr_matrix'): scipy.sparse.csr_matrix,
}


def loads(data: bytes) -> Any:
  """Returns the object that a pickle holds.

  Args:
    data: the pickle, of Python 2 (its strings read as latin-1) or Python 3.

  Raises:
    pickle.UnpicklingError: if the pickle names anything but the classes above
      (the message says what), or is not a whole pickle.
  """
  try:
    return _Unpickler(io.BytesIO(data), encoding='latin1').load()
  except EOFError as error:
    raise pickle.UnpicklingError('pickle data was truncated') from error


class _Unpickler(pickle.Unpickler):
  """Finds only what `_ALLOWED` lists."""

  def find_class(self, module: str, name: str) -> Any:
    """Returns the object of an allowed name."""
    if (module, name) not in _ALLOWED:
      raise pickle.UnpicklingError(f'refused to unpickle {module}.{name}')
    return _ALLOWED[module, name]
