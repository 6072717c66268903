"""Backbone parameters as npz files, identified by their sha256."""

import hashlib
import io
import pathlib
from typing import Any

from flax import traverse_util
import numpy as np

from privjax import types


def save(path: pathlib.Path, params: types.Params) -> str:
  """Writes parameters as float arrays named 'layer/name'; returns the sha256.

  The bytes depend on the arrays and on zlib's version only.
  """
  flat = traverse_util.flatten_dict(params, sep='/')
  arrays: dict[str, Any] = {k: np.asarray(flat[k]) for k in sorted(flat)}
  buffer = io.BytesIO()
  np.savez_compressed(buffer, **arrays)
  content = buffer.getvalue()
  partial = path.with_suffix('.partial')
  partial.write_bytes(content)
  partial.replace(path)
  return hashlib.sha256(content).hexdigest()


def load(path: pathlib.Path, *, sha256: str | None = None) -> types.Params:
  """Reads parameters, without unpickling, and checks their digest.

  Args:
    path: a file written by `save`.
    sha256: expected digest of the file; `None` skips the check.

  Raises:
    FileNotFoundError: if there is no such file.
    ValueError: if the digest differs or the file is not a parameter file.
  """
  content = pathlib.Path(path).read_bytes()
  found = hashlib.sha256(content).hexdigest()
  if sha256 is not None and found != sha256:
    raise ValueError(
      f'path must have sha256 {sha256}, but {path} has {found}: restore the '
      'file or train the backbone again'
    )
  try:
    with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
      flat = {name: arrays[name] for name in arrays.files}
  except Exception as error:
    raise ValueError(f'path must be a parameter file, got {path}') from error
  return traverse_util.unflatten_dict(flat, sep='/')
