"""Reads the tensors of a PyTorch `state_dict` file without PyTorch.

`torch.save(model.state_dict(), path)` writes a zip archive: a pickle that
describes the tensors, and one file of raw bytes per storage. Unpickling calls
whatever a file names, so this reader knows a fixed list of names: ordered
dictionaries, the two functions that rebuild tensors and parameters, and the
storage types below. What it returns for them has no attribute that a pickle
could set.

>>> import pathlib, pickle, tempfile
>>> with tempfile.TemporaryDirectory() as folder:
...   path = pathlib.Path(folder, 'model.pt')
...   _ = path.write_bytes(pickle.dumps([1, 2]))
...   load(path)
Traceback (most recent call last):
  ...
ValueError: path must be a zip archive of torch.save, got a bare pickle or ...
"""

import collections
from collections.abc import Callable
import io
import math
import os
import pathlib
import pickle
import pickletools
from typing import Any, Literal, NamedTuple, TypeAlias
import zipfile

import numpy as np

_STORAGES = {
  'BoolStorage': np.bool_,
  'ByteStorage': np.uint8,
  'CharStorage': np.int8,
  'DoubleStorage': np.float64,
  'FloatStorage': np.float32,
  'HalfStorage': np.float16,
  'IntStorage': np.int32,
  'LongStorage': np.int64,
  'ShortStorage': np.int16,
}
_ByteOrder: TypeAlias = Literal['<', '>']
_BYTE_ORDERS: dict[bytes, _ByteOrder] = {b'little': '<', b'big': '>'}
_SAVE_AGAIN = 'save it again with torch.save(model.state_dict(), path)'


def load(path: str | os.PathLike) -> dict[str, np.ndarray]:
  """Returns the tensors of a file as arrays, in the order of the file.

  Args:
    path: a file of `torch.save(model.state_dict(), path)`, torch >= 1.6.

  Returns:
    Name -> array in C order and native byte order, of the tensor's own dtype.
    On which device a tensor lay does not matter.

  Raises:
    FileNotFoundError: if there is no such file.
    ValueError: if the file is not such an archive, is truncated or damaged, or
      describes a tensor that does not lie within its storage.
    pickle.UnpicklingError: if the file names anything but the names above (the
      message says what): a whole model, other tensor types, other code.
  """
  content = pathlib.Path(path).read_bytes()
  archive = _open(content, path)
  with archive:
    folder = _folder(archive, path)
    read = lambda name: _read(archive, f'{folder}/{name}', path)
    order: _ByteOrder = '<'
    if f'{folder}/byteorder' in archive.namelist():
      found = read('byteorder')
      if found not in _BYTE_ORDERS:
        raise ValueError(f'byteorder must be little or big, got {found!r}')
      order = _BYTE_ORDERS[found]
    return _tensors(_unpickle(read('data.pkl'), order, read))


class _StorageType(NamedTuple):
  name: str


class _Storage(NamedTuple):
  """The bytes of one storage and how to read them."""

  dtype: np.dtype
  content: bytes


class _Tensor(NamedTuple):
  """A strided view of a storage, checked to lie within it."""

  storage: _Storage
  offset: int
  size: tuple[int, ...]
  stride: tuple[int, ...]


class _RebuildTensor:
  """Stands for `torch._utils._rebuild_tensor_v2`.

  An instance without slots: a pickle can set attributes of functions.
  """

  __slots__ = ()

  def __call__(
    self, storage, offset, size, stride, requires_grad, hooks, metadata=None
  ) -> _Tensor:
    if not isinstance(storage, _Storage):
      raise ValueError('a tensor must have a storage')
    sizes = size if isinstance(size, tuple) else None
    strides = stride if isinstance(stride, tuple) else None
    if (
      sizes is None
      or strides is None
      or len(sizes) != len(strides)
      or not all(_is_count(value) for value in (offset, *sizes, *strides))
    ):
      raise ValueError(
        'a tensor must have sizes, strides and an offset of integers >= 0, got '
        f'{size!r}, {stride!r} and {offset!r}'
      )
    numel = len(storage.content) // storage.dtype.itemsize
    count = math.prod(sizes)
    last = offset + sum((n - 1) * step for n, step in zip(sizes, strides))
    # More elements than the storage has would be a view that repeats some: a
    # few bytes could then ask for any amount of memory.
    if count > numel or (count and last >= numel) or offset > numel:
      raise ValueError(
        f'a tensor must lie within its storage of {numel} elements, got size '
        f'{sizes}, stride {strides}, offset {offset}'
      )
    if metadata:
      raise ValueError(f'a tensor must be plain, got metadata {metadata!r}')
    del requires_grad, hooks
    return _Tensor(storage, offset, sizes, strides)


class _RebuildParameter:
  """Stands for `torch._utils._rebuild_parameter`."""

  __slots__ = ()

  def __call__(self, tensor, requires_grad, hooks) -> _Tensor:
    if not isinstance(tensor, _Tensor):
      raise ValueError('a parameter must hold a tensor')
    del requires_grad, hooks
    return tensor


_ALLOWED: dict[tuple[str, str], Any] = {
  ('collections', 'OrderedDict'): collections.OrderedDict,
  ('torch._utils', '_rebuild_parameter'): _RebuildParameter(),
  ('torch._utils', '_rebuild_tensor_v2'): _RebuildTensor(),
  **{('torch', name): _StorageType(name) for name in _STORAGES},
}


class _Unpickler(pickle.Unpickler):
  """Finds only what `_ALLOWED` lists, and storages of the same archive."""

  def __init__(
    self, data: bytes, byte_order: _ByteOrder, read: Callable[[str], bytes]
  ):
    super().__init__(io.BytesIO(data))
    self._byte_order: _ByteOrder = byte_order
    self._read = read
    self._contents: dict[str, bytes] = {}

  def find_class(self, module: str, name: str) -> Any:
    """Returns the stand-in of an allowed name."""
    if (module, name) not in _ALLOWED:
      raise pickle.UnpicklingError(
        f'refused to unpickle {module}.{name}: a state_dict holds nothing but '
        f'dense tensors of real numbers that NumPy knows; {_SAVE_AGAIN}'
      )
    return _ALLOWED[module, name]

  def persistent_load(self, pid: Any) -> _Storage:
    """Returns the storage that the pickle refers to."""
    is_storage = isinstance(pid, tuple) and len(pid) == 5
    if not is_storage or pid[0] != 'storage':
      raise ValueError('a persistent id must be of a storage')
    _, kind, key, _, numel = pid
    if not isinstance(kind, _StorageType) or not isinstance(key, str):
      raise ValueError('a storage must have a type and a key')
    if key not in self._contents:
      self._contents[key] = self._read(f'data/{key}')
    content = self._contents[key]
    dtype = np.dtype(_STORAGES[kind.name]).newbyteorder(self._byte_order)
    if not _is_count(numel) or numel * dtype.itemsize != len(content):
      raise ValueError(
        f'storage {key} must have {numel!r} elements of {dtype.itemsize} '
        f'bytes, got {len(content)} bytes'
      )
    return _Storage(dtype, content)


def _unpickle(
  data: bytes, byte_order: _ByteOrder, read: Callable[[str], bytes]
) -> Any:
  try:
    for opcode, argument, _ in pickletools.genops(data):
      # The memo is an array: one large index would fill the memory.
      if opcode.name.endswith('PUT') and int(argument or 0) > len(data):
        raise ValueError(f'a memo index must be small, got {argument}')
    return _Unpickler(data, byte_order, read).load()
  except (ValueError, pickle.UnpicklingError):
    raise
  # An allowed name called with other arguments, a damaged pickle, ...
  except Exception as error:
    raise pickle.UnpicklingError(
      f'data.pkl is not of a state_dict ({type(error).__name__}: {error})'
    ) from error


def _tensors(value: Any) -> dict[str, np.ndarray]:
  """Copies the tensors out of their storages."""
  if not isinstance(value, dict):
    kind = type(value).__name__.strip('_')
    raise ValueError(
      f'path must hold a state_dict, got a {kind}: {_SAVE_AGAIN}'
    )
  # Not `value.items`: a pickle can set attributes of an ordered dictionary.
  entries = list(dict.items(value))
  others = [
    key
    for key, entry in entries
    if not (isinstance(key, str) and isinstance(entry, _Tensor))
  ]
  if others:
    raise ValueError(
      'path must hold a state_dict, names to tensors, but these are not '
      f'(a checkpoint?): {others[:5]!r}: {_SAVE_AGAIN}'
    )
  return {name: _array(tensor) for name, tensor in entries}


def _array(tensor: _Tensor) -> np.ndarray:
  dtype = tensor.storage.dtype
  native = dtype.newbyteorder('=')
  if 0 in tensor.size:
    return np.zeros(tensor.size, native)
  view = np.ndarray(
    tensor.size,
    dtype,
    buffer=tensor.storage.content,
    offset=tensor.offset * dtype.itemsize,
    strides=[step * dtype.itemsize for step in tensor.stride],
  )
  return view.astype(native, order='C')


def _is_count(value: Any) -> bool:
  return type(value) is int and value >= 0


def _open(content: bytes, path: str | os.PathLike) -> zipfile.ZipFile:
  try:
    return zipfile.ZipFile(io.BytesIO(content))
  except zipfile.BadZipFile:
    if content[:2] == b'PK':
      found = 'a truncated or damaged archive'
    elif content[257:262] == b'ustar':
      found = f'the tar format of old torch: {_SAVE_AGAIN}'
    elif content[:1] == b'\x80':
      found = f'a bare pickle or the format before torch 1.6: {_SAVE_AGAIN}'
    else:
      found = 'something else'
    raise ValueError(
      f'path must be a zip archive of torch.save, got {found} ({path})'
    ) from None


def _folder(archive: zipfile.ZipFile, path: str | os.PathLike) -> str:
  """Returns the archive's one folder, which holds its data.pkl."""
  names = archive.namelist()
  if any(name.endswith('/constants.pkl') for name in names):
    raise ValueError(
      f'path must hold a state_dict, got a TorchScript module ({path}): '
      f'{_SAVE_AGAIN}'
    )
  folders = [
    name.removesuffix('/data.pkl')
    for name in names
    if name.endswith('/data.pkl')
  ]
  if len(folders) != 1:
    raise ValueError(
      'path must be a zip archive of torch.save with one data.pkl, got '
      f'{len(folders)} ({path})'
    )
  return folders[0]


def _read(
  archive: zipfile.ZipFile, name: str, path: str | os.PathLike
) -> bytes:
  try:
    info = archive.getinfo(name)
    # Then no file is larger than the archive.
    if info.compress_type == zipfile.ZIP_STORED:
      return archive.read(info)
    problem = 'it is compressed, which torch.save never does'
  except KeyError:
    problem = 'it is missing'
  except (zipfile.BadZipFile, EOFError, OSError, RuntimeError) as error:
    problem = f'{type(error).__name__}: {error}'
  raise ValueError(f'path must hold an intact {name}, but {problem} ({path})')
