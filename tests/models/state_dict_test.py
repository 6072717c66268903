"""Tests of the reader of PyTorch files, on archives written byte by byte."""

import os
import pathlib
import pickle
import struct
import tarfile
import tempfile
import zipfile

from absl.testing import parameterized
import numpy as np
import pytest

from privjax.models import state_dict

_KINDS = {
  np.dtype(np.float16): 'HalfStorage',
  np.dtype(np.float32): 'FloatStorage',
  np.dtype(np.float64): 'DoubleStorage',
  np.dtype(np.int64): 'LongStorage',
  np.dtype(np.bool_): 'BoolStorage',
}
_ORDERED_DICT = b'ccollections\nOrderedDict\n)R'


def text(value):
  content = value.encode()
  return b'X' + struct.pack('<I', len(content)) + content


def number(value):
  return b'J' + struct.pack('<i', value)


def items(*values):
  """Returns the opcodes of a tuple."""
  return b'(' + b''.join(values) + b't'


def numbers(values):
  return items(*map(number, values))


def name(module, attribute):
  return f'c{module}\n{attribute}\n'.encode()


def tensor(
  key, kind, numel, size, stride, offset=b'J\0\0\0\0', extra=(), storage=None
):
  """Returns the opcodes of a tensor; sizes and offset are opcodes as well."""
  if storage is None:
    storage = (
      items(
        text('storage'),
        name('torch', kind),
        text(key),
        text('cpu'),
        number(numel),
      )
      + b'Q'
    )
  arguments = (storage, offset, size, stride, b'\x89', _ORDERED_DICT, *extra)
  return name('torch._utils', '_rebuild_tensor_v2') + items(*arguments) + b'R'


def dictionary(entries):
  """Returns a whole pickle of a dictionary."""
  body = b''.join(text(key) + value for key, value in entries.items())
  return b'\x80\x02}(' + body + b'u.'


def write(path, data, storages, *, byteorder=b'little', **options):
  """Writes an archive as torch.save lays it out."""
  with zipfile.ZipFile(path, 'w', **options) as archive:
    archive.writestr('model/data.pkl', data)
    if byteorder is not None:
      archive.writestr('model/byteorder', byteorder)
    for key, content in storages.items():
      archive.writestr(f'model/data/{key}', content)
    archive.writestr('model/version', b'3\n')
  return path


def save(path, arrays, **options):
  """Writes arrays as `torch.save` writes a dictionary of tensors."""
  order = '>' if options.get('byteorder') == b'big' else '<'
  entries, storages = {}, {}
  for i, (key, array) in enumerate(arrays.items()):
    strides = [step // array.itemsize for step in array.strides]
    entries[key] = tensor(
      str(i),
      _KINDS[array.dtype],
      array.size,
      numbers(array.shape),
      numbers(strides),
    )
    stored = array.astype(array.dtype.newbyteorder(order))
    storages[str(i)] = stored.tobytes(order='A')
  return write(path, dictionary(entries), storages, **options)


def _arrays():
  return {
    'conv1.bias': np.array([0.5, -1.25], np.float32),
    'conv1.weight': np.arange(6, dtype=np.float64).reshape(3, 2),
    'transposed': np.arange(6, dtype=np.float32).reshape(2, 3).T,
    'steps': np.array(7),
    'half': np.array([1.5], np.float16),
    'mask': np.array([True, False]),
    'empty': np.zeros((0, 3), np.float32),
  }


class StateDictTestCase(parameterized.TestCase):
  def setUp(self):
    super().setUp()
    folder = self.enterContext(tempfile.TemporaryDirectory())
    self.path = pathlib.Path(folder, 'model.pt')

  def write_tensor(self, *args, **kwargs):
    """Writes a file with one tensor, its storage 0, 1, ... as float32."""
    numel = args[2]
    content = np.arange(numel, dtype='<f4').tobytes()
    data = dictionary({'a': tensor(*args, **kwargs)})
    write(self.path, data, {'0': content})

  def assert_loads(self, expected):
    found = state_dict.load(self.path)
    self.assertEqual(list(found), list(expected))
    for key, array in expected.items():
      np.testing.assert_array_equal(found[key], array, key, strict=True)
      self.assertTrue(found[key].flags.c_contiguous)
      self.assertTrue(found[key].flags.writeable)

  def assert_refuses(self, message, error=ValueError):
    with self.assertRaisesRegex(error, message):
      state_dict.load(self.path)


class LoadTest(StateDictTestCase):
  @parameterized.parameters(b'little', b'big', None)
  def test_reads_either_byte_order(self, byteorder):
    save(self.path, _arrays(), byteorder=byteorder)
    self.assert_loads(_arrays())

  def test_reads_an_offset_view_of_a_shared_storage(self):
    whole = tensor('0', 'FloatStorage', 12, numbers([3, 4]), numbers([4, 1]))
    view = tensor(
      '0', 'FloatStorage', 12, numbers([2, 2]), numbers([4, 2]), number(4)
    )
    content = np.arange(12, dtype='<f4')
    data = dictionary({'whole': whole, 'view': view})
    write(self.path, data, {'0': content.tobytes()})
    table = content.reshape(3, 4).astype(np.float32)
    self.assert_loads({'whole': table, 'view': table[1:, ::2]})

  def test_reads_what_a_module_returns(self):
    # An ordered dictionary whose attribute `_metadata` is set.
    entry = tensor('0', 'FloatStorage', 1, numbers([1]), numbers([1]))
    data = (
      b'\x80\x02' + _ORDERED_DICT + b'(' + text('a') + entry + b'u'
      b'}' + text('_metadata') + _ORDERED_DICT + b'sb.'
    )
    write(self.path, data, {'0': bytes(4)})
    self.assert_loads({'a': np.zeros(1, np.float32)})

  def test_attributes_of_the_dictionary_are_not_used(self):
    entry = tensor('0', 'FloatStorage', 1, numbers([1]), numbers([1]))
    data = (
      b'\x80\x02' + _ORDERED_DICT + b'(' + text('a') + entry + b'u}'
      b'('
      + text('items')
      + b'ccollections\nOrderedDict\n'
      + text('keys')
      + b'ccollections\nOrderedDict\nub.'
    )
    write(self.path, data, {'0': bytes(4)})
    self.assert_loads({'a': np.zeros(1, np.float32)})

  def test_reads_parameters(self):
    entry = tensor('0', 'FloatStorage', 1, numbers([1]), numbers([1]))
    parameter = (
      name('torch._utils', '_rebuild_parameter')
      + items(entry, b'\x88', _ORDERED_DICT)
      + b'R'
    )
    write(self.path, dictionary({'a': parameter}), {'0': bytes(4)})
    self.assert_loads({'a': np.zeros(1, np.float32)})

  def test_no_such_file(self):
    with self.assertRaises(FileNotFoundError):
      state_dict.load(self.path)


class NamesTest(StateDictTestCase):
  @parameterized.parameters(
    ('builtins', 'eval'),
    ('builtins', 'getattr'),
    ('__main__', 'Net'),
    ('collections', 'defaultdict'),
    ('torch_geometric.nn.conv.gcn_conv', 'GCNConv'),
    ('torch', 'BFloat16Storage'),
    ('torch._utils', '_rebuild_sparse_tensor'),
    ('torch._tensor', '_rebuild_from_type_v2'),
    ('torch.storage', '_load_from_bytes'),
  )
  def test_refuses_and_names(self, module, attribute):
    value = name(module, attribute) + b')R'
    write(self.path, dictionary({'a': value}), {})
    self.assert_refuses(
      rf'^refused to unpickle {module}\.{attribute}: .*state_dict\(\)',
      pickle.UnpicklingError,
    )

  def test_runs_nothing(self):
    victim = self.path.with_name('victim')
    victim.mkdir()
    call = name(os.rmdir.__module__, 'rmdir') + items(text(str(victim))) + b'R'
    data = dictionary({'a': call})
    write(self.path, data, {})
    self.assert_refuses(
      f'refused to unpickle {os.rmdir.__module__}.rmdir', pickle.UnpicklingError
    )
    self.assertTrue(victim.exists())
    pickle.loads(data)  # The same bytes do run without the restriction.
    self.assertFalse(victim.exists())

  @parameterized.parameters(
    'torch._utils _rebuild_tensor_v2',
    'torch._utils _rebuild_parameter',
    'torch FloatStorage',
    'collections OrderedDict',
  )
  def test_cannot_change_what_a_name_stands_for(self, dotted):
    # As an entry of `__dict__`, and as an attribute.
    change = b'}' + text('__call__') + b'Ns'
    for state in (change, b'N' + change + b'\x86'):
      value = name(*dotted.split()) + state + b'b'
      write(self.path, dictionary({'a': value}), {})
      self.assert_refuses('', (pickle.UnpicklingError, ValueError))
    save(self.path, _arrays())
    self.assert_loads(_arrays())

  @parameterized.named_parameters(
    ('too_few', name('torch._utils', '_rebuild_tensor_v2') + b')R'),
    ('not_callable', name('torch', 'FloatStorage') + b')R'),
    ('parameter', name('torch._utils', '_rebuild_parameter') + b'(NNNtR'),
    ('unhashable_key', b'}}Ns'),
  )
  def test_refuses_wrong_use_of_a_name(self, value):
    write(self.path, dictionary({'a': value}), {})
    self.assert_refuses('', (pickle.UnpicklingError, ValueError))

  def test_refuses_a_huge_memo(self):
    data = b'\x80\x02}r' + struct.pack('<I', 2**31 - 1) + b'.'
    write(self.path, data, {})
    self.assert_refuses('memo index must be small, got 2147483647')


class TensorTest(StateDictTestCase):
  @parameterized.named_parameters(
    ('too_long', [3], [1], 0),
    ('too_far', [2], [2], 0),
    ('offset', [2], [1], 1),
    ('offset_of_empty', [0], [1], 3),
    ('scalar', [], [], 2),
    # Two elements may be seen twice, but not as five.
    ('repeated', [5], [0], 0),
    ('huge', [2**31 - 1, 2**31 - 1], [0, 0], 0),
  )
  def test_refuses_outside_its_storage(self, size, stride, offset):
    self.write_tensor(
      '0', 'FloatStorage', 2, numbers(size), numbers(stride), number(offset)
    )
    self.assert_refuses('within its storage of 2 elements, got size')

  @parameterized.named_parameters(
    ('negative_size', numbers([-1]), numbers([1]), number(0)),
    ('negative_stride', numbers([2]), numbers([-1]), number(1)),
    ('negative_offset', numbers([1]), numbers([1]), number(-1)),
    ('bool', items(b'\x88'), numbers([1]), number(0)),
    ('missing_stride', numbers([1]), numbers([]), number(0)),
    ('no_tuple', number(1), numbers([1]), number(0)),
    ('none', numbers([1]), b'N', number(0)),
  )
  def test_refuses_sizes(self, size, stride, offset):
    self.write_tensor('0', 'FloatStorage', 2, size, stride, offset)
    self.assert_refuses('sizes, strides and an offset of integers >= 0, got')

  def test_refuses_conjugate_and_negative_views(self):
    one = numbers([1])
    extra = (b'}' + text('neg') + b'\x88s',)
    self.write_tensor('0', 'FloatStorage', 2, one, one, extra=extra)
    self.assert_refuses("must be plain, got metadata {'neg': True}")

  def test_refuses_another_storage(self):
    one = numbers([1])
    self.write_tensor('0', 'FloatStorage', 2, one, one, storage=b'N')
    self.assert_refuses('a tensor must have a storage')

  @parameterized.parameters(
    (b'NQ', 'id must be of a storage'),
    (numbers([1, 2, 3, 4, 5]) + b'Q', 'id must be of a storage'),
    (
      items(text('storage'), b'N', text('0'), text('cpu'), number(2)) + b'Q',
      'a type and a key',
    ),
  )
  def test_refuses_persistent_ids(self, storage, message):
    one = numbers([1])
    self.write_tensor('0', 'FloatStorage', 2, one, one, storage=storage)
    self.assert_refuses(message)

  @parameterized.parameters(('FloatStorage', 3), ('DoubleStorage', 2))
  def test_refuses_another_number_of_bytes(self, kind, numel):
    entry = tensor('0', kind, numel, numbers([1]), numbers([1]))
    write(self.path, dictionary({'a': entry}), {'0': bytes(8)})
    self.assert_refuses(f'storage 0 must have {numel} elements .* got 8 bytes')


class ArchiveTest(StateDictTestCase):
  def test_refuses_truncated_files(self):
    content = save(self.path, _arrays()).read_bytes()
    for end in (2, 40, len(content) // 2, len(content) - 1):
      self.path.write_bytes(content[:end])
      self.assert_refuses('^path must be .* truncated or damaged archive')

  def test_refuses_a_truncated_pickle(self):
    data = dictionary({})
    write(self.path, data[:-1], {})
    self.assert_refuses('', (pickle.UnpicklingError, ValueError))

  def test_refuses_damaged_bytes(self):
    array = np.full(4, 1.25, np.float32)
    content = save(self.path, {'a': array}).read_bytes()
    self.assertEqual(content.count(array.tobytes()), 1)
    self.path.write_bytes(content.replace(array.tobytes(), b'\1' * 16))
    self.assert_refuses('intact model/data/0, but BadZipFile')

  def test_refuses_a_missing_storage(self):
    entry = tensor('0', 'FloatStorage', 1, numbers([1]), numbers([1]))
    write(self.path, dictionary({'a': entry}), {'1': bytes(4)})
    self.assert_refuses('intact model/data/0, but it is missing')

  def test_refuses_compression(self):
    arrays = {'a': np.zeros(9999, np.float32)}
    save(self.path, arrays, compression=zipfile.ZIP_DEFLATED)
    self.assert_refuses('but it is compressed')

  def test_refuses_a_byte_order(self):
    save(self.path, _arrays(), byteorder=b'middle')
    self.assert_refuses("byteorder must be little or big, got b'middle'")

  def test_refuses_the_format_before_1_6(self):
    self.path.write_bytes(pickle.dumps(0x1950A86A20F9469CFC6C, 2) + b'...')
    self.assert_refuses('before torch 1.6: save it again')

  def test_refuses_the_tar_format(self):
    with tarfile.open(self.path, 'w') as archive:
      archive.addfile(tarfile.TarInfo('storages'))
    self.assert_refuses('the tar format of old torch')

  def test_refuses_something_else(self):
    self.path.write_text('weights')
    self.assert_refuses('got something else')

  @parameterized.parameters(0, 2)
  def test_refuses_another_number_of_pickles(self, count):
    with zipfile.ZipFile(self.path, 'w') as archive:
      archive.writestr('x.npy', b'')
      for i in range(count):
        archive.writestr(f'{i}/data.pkl', b'')
    self.assert_refuses(f'one data.pkl, got {count}')

  def test_refuses_torchscript(self):
    with zipfile.ZipFile(self.path, 'w') as archive:
      for file in ('data.pkl', 'constants.pkl'):
        archive.writestr(f'model/{file}', b'')
    self.assert_refuses('got a TorchScript module')

  @parameterized.named_parameters(
    ('checkpoint', dictionary({'model': b'}', 'epoch': number(3)})),
    ('number', dictionary({'model': number(3), 'epoch': b'N'})),
  )
  def test_refuses_other_entries(self, data):
    write(self.path, data, {})
    self.assert_refuses(r"a checkpoint\?\): \['model', 'epoch'\]: save it")

  def test_refuses_other_keys(self):
    entry = tensor('0', 'FloatStorage', 1, numbers([1]), numbers([1]))
    data = b'\x80\x02}' + number(5) + entry + b's.'
    write(self.path, data, {'0': bytes(4)})
    self.assert_refuses(r'not .*: \[5\]')

  def test_refuses_a_bare_tensor(self):
    entry = tensor('0', 'FloatStorage', 1, numbers([1]), numbers([1]))
    write(self.path, b'\x80\x02' + entry + b'.', {'0': bytes(4)})
    self.assert_refuses('must hold a state_dict, got a Tensor')


@pytest.mark.peers
class TorchTest(StateDictTestCase):
  @parameterized.parameters(2, 4)
  def test_reads_what_torch_writes(self, protocol):
    import torch

    arrays = _arrays()
    tensors = {key: torch.tensor(array) for key, array in arrays.items()}
    tensors['transposed'] = tensors['transposed'].t().contiguous().t()
    tensors['view'] = torch.arange(12.0).reshape(3, 4)[1:, ::2]
    arrays['view'] = np.array([[4, 6], [8, 10]], np.float32)
    torch.save(tensors, self.path, pickle_protocol=protocol)
    self.assert_loads(arrays)

  @parameterized.parameters(False, True)
  def test_reads_a_module(self, keep_vars):
    import torch

    module = torch.nn.BatchNorm1d(3)
    torch.save(module.state_dict(keep_vars=keep_vars), self.path)
    self.assert_loads(
      {
        key: value.detach().numpy()
        for key, value in module.state_dict().items()
      }
    )

  def test_refuses_what_torch_writes(self):
    import torch

    module = torch.nn.Linear(2, 3)
    torch.save(module, self.path)
    self.assert_refuses(
      'torch.nn.modules.linear.Linear', pickle.UnpicklingError
    )
    weights = module.state_dict()
    torch.save(weights, self.path, _use_new_zipfile_serialization=False)
    self.assert_refuses('before torch 1.6')
    torch.save({'model': weights, 'epoch': 3}, self.path)
    self.assert_refuses('a checkpoint')
    torch.save(module.bfloat16().state_dict(), self.path)
    self.assert_refuses('torch.BFloat16Storage', pickle.UnpicklingError)
