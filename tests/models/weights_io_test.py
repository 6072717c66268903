"""Tests of weights trained elsewhere: names, orientation, files, logits."""

import itertools
import json
import pathlib
import pickle
import struct
import sys
import tempfile

from absl.testing import parameterized
import jax
import numpy as np
import pytest
from safetensors import numpy as safetensors_numpy
import scipy.sparse

from privjax import graphs
from privjax import prng
from privjax.models import gcn
from privjax.models import params_io
from privjax.models import weights_io
from tests.models import state_dict_test
from tests.oracles import gcn as oracle

_ROWS = [[0, 1], [1, 2], [2, 0], [2, 3]]
# What the files of a library call kernel 1, bias 1, kernel 2 and bias 2, and
# which way round they store a kernel.
_NAMINGS = {
  'ours': ('hidden/kernel hidden/bias output/kernel output/bias', 'in_out'),
  'pyg_1': ('conv1.weight conv1.bias conv2.weight conv2.bias', 'in_out'),
  'pyg_2': (
    'conv1.lin.weight conv1.bias conv2.lin.weight conv2.bias',
    'out_in',
  ),
  'pyg_basic': (
    'convs.0.lin.weight convs.0.bias convs.1.lin.weight convs.1.bias',
    'out_in',
  ),
  'parallel': (
    'module.conv1.lin.weight module.conv1.bias '
    'module.conv2.lin.weight module.conv2.bias',
    'out_in',
  ),
  'flax': ('GCN_9/kernel GCN_9/bias GCN_10/kernel GCN_10/bias', 'in_out'),
  'linear': ('fc1.weight fc1.bias fc2.weight fc2.bias', 'out_in'),
  'sequential': ('0.weight 0.bias 3.weight 3.bias', 'out_in'),
  'letters': ('W1 b1 W2 b2', 'in_out'),
}
_STATED = ('ours', 'pyg_1', 'pyg_2', 'pyg_basic', 'parallel', 'flax')
_NOT_STATED = tuple(sorted(set(_NAMINGS) - set(_STATED)))


def _params(num_features=3, num_hidden=4, num_classes=2, dtype=np.float64):
  rng = prng.generator(0, 'weights_io_test')
  draw = lambda *shape: rng.normal(size=shape).astype(dtype)
  return {
    'hidden': {
      'kernel': draw(num_features, num_hidden),
      'bias': draw(num_hidden),
    },
    'output': {
      'kernel': draw(num_hidden, num_classes),
      'bias': draw(num_classes),
    },
  }


def _square(sizes=(3, 3, 2)):
  return _params(*sizes)


def _stored(params, naming, orientation=None):
  """Returns the arrays as the library of that naming stores them."""
  names, usual = _NAMINGS[naming]
  is_transposed = (orientation or usual) == 'out_in'
  arrays = [
    params[layer][part].T.copy()
    if part == 'kernel' and is_transposed
    else params[layer][part]
    for layer in ('hidden', 'output')
    for part in ('kernel', 'bias')
  ]
  return dict(zip(names.split(), arrays))


class _Tensor:
  """Behaves like a torch tensor on an accelerator, in a graph of gradients."""

  def __init__(self, array, steps=('detach', 'cpu')):
    self._array, self._steps = array, steps

  def _after(self, step):
    assert self._steps[0] == step
    return type(self)(self._array, self._steps[1:])

  def detach(self):
    return self._after('detach')

  def cpu(self):
    return self._after('cpu')

  def numpy(self):
    assert not self._steps
    return self._array

  def __array__(self, *args, **kwargs):
    raise TypeError('detach me first')


class _Odd(_Tensor):
  def numpy(self):
    raise TypeError('Got unsupported ScalarType BFloat16')


class WeightsTestCase(parameterized.TestCase):
  def setUp(self):
    super().setUp()
    self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))

  def assert_same(self, found, expected):
    self.assertEqual(jax.tree.structure(found), jax.tree.structure(expected))
    for (path, one), other in zip(
      jax.tree_util.tree_leaves_with_path(found), jax.tree.leaves(expected)
    ):
      np.testing.assert_array_equal(one, other, str(path), strict=True)
      self.assertTrue(one.dtype.isnative)

  def assert_refuses(self, message, source, error=ValueError, **kwargs):
    with self.assertRaisesRegex(error, message):
      weights_io.load_gcn_weights(source, **kwargs)


class NamesTest(WeightsTestCase):
  @parameterized.parameters(*_NAMINGS)
  def test_gives_the_same_params(self, naming):
    stored = _stored(_params(), naming)
    for order in itertools.permutations(stored):
      found = weights_io.load_gcn_weights(
        {name: stored[name] for name in order}
      )
      self.assert_same(found, _params())

  def test_pyg_1_and_2_give_the_same_logits(self):
    graph = graphs.from_pairs(5, _ROWS)[0]
    features = prng.generator(1, 'weights_io_test').normal(size=(5, 3))
    message_graph = graphs.to_message_graph(graph, features)
    one, two = (
      gcn.apply(
        weights_io.load_gcn_weights(_stored(_square(), naming)), message_graph
      )
      for naming in ('pyg_1', 'pyg_2')
    )
    np.testing.assert_array_equal(one, two)
    adjacency = oracle.adjacency_matrix(5, set(map(frozenset, _ROWS)))
    expected = oracle.logits(_square(), adjacency, features)
    np.testing.assert_allclose(one, expected, rtol=0, atol=1e-12)

  @parameterized.parameters(np.float32, np.float64)
  def test_keeps_the_dtype(self, dtype):
    stored = _stored(_params(dtype=dtype), 'pyg_2')
    self.assert_same(weights_io.load_gcn_weights(stored), _params(dtype=dtype))

  def test_reads_nested_mappings_and_other_byte_orders(self):
    params = _params()
    swapped = jax.tree.map(lambda x: x.astype('>f8'), params)
    self.assert_same(weights_io.load_gcn_weights(swapped), params)

  def test_reads_tensors(self):
    stored = _stored(_params(), 'pyg_2')
    tensors = {name: _Tensor(array) for name, array in stored.items()}
    self.assert_same(weights_io.load_gcn_weights(tensors), _params())

  @parameterized.named_parameters(
    ('empty', {}),
    ('one_layer', {'conv1.weight': (3, 4), 'conv1.bias': (4,)}),
    ('no_bias', {'conv1.weight': (3, 4), 'conv2.weight': (4, 2)}),
    (
      'two_kernels',
      {
        'conv1.weight': (3, 4),
        'conv1.lin.weight': (4, 3),
        'conv2.weight': (4, 2),
        'conv2.lin.weight': (2, 4),
      },
    ),
    ('unknown', {'conv1.gamma': (3,), 'conv1.beta': (3,)}),
  )
  def test_refuses_other_contents(self, shapes):
    self.assert_refuses(
      'a kernel and a bias for each of two layers and nothing else',
      {name: np.zeros(shape) for name, shape in shapes.items()},
    )

  @parameterized.parameters('norm1.weight', 'conv3.lin.weight', 'epoch')
  def test_refuses_a_tensor_more(self, name):
    stored = _stored(_params(), 'pyg_2')
    self.assert_refuses(f'nothing else .*{name}', {**stored, name: np.zeros(4)})

  @parameterized.parameters(
    ('encoder', 'decoder'),
    ('conv_in', 'conv_out'),
    ('conv1', 'gcn2'),
    ('a1_1', 'a2_2'),
    ('conv1', 'conv01'),
  )
  def test_refuses_layers_without_an_order(self, first, second):
    stored = _stored(_params(), 'pyg_2')
    renamed = {
      name.replace('conv1', first).replace('conv2', second): array
      for name, array in stored.items()
    }
    self.assert_refuses('source must number its layers', renamed)

  def test_refuses_two_namings_at_once(self):
    stored = _stored(_square(), 'pyg_1')
    stored['conv2.lin.weight'] = stored.pop('conv2.weight')
    self.assert_refuses(
      "must name both kernels alike.*got 'conv1.weight' and 'conv2.lin.weight'",
      stored,
    )


class OrientationTest(WeightsTestCase):
  @parameterized.product(
    naming=_NOT_STATED, sizes=[(3, 3, 2), (4, 2, 2), (3, 3, 3)]
  )
  def test_asks_if_square(self, naming, sizes):
    stored = _stored(_params(*sizes), naming)
    self.assert_refuses(
      r"^orientation must be given: \['.*'\] is square .*, and its name does "
      r"not say\. Does the model compute X W \(pass orientation='in_out'\) or "
      r".*\(pass orientation='out_in'\)\?$",
      stored,
      num_features=sizes[0],
      num_classes=sizes[2],
    )

  @parameterized.product(naming=_NOT_STATED, orientation=['in_out', 'out_in'])
  def test_takes_the_answer(self, naming, orientation):
    params = _params(3, 3, 3)
    found = weights_io.load_gcn_weights(
      _stored(params, naming, orientation), orientation=orientation
    )
    self.assert_same(found, params)

  @parameterized.parameters(*_STATED)
  def test_believes_a_name(self, naming):
    params = _params(3, 3, 3)
    found = weights_io.load_gcn_weights(_stored(params, naming))
    self.assert_same(found, params)

  @parameterized.product(naming=_NOT_STATED, orientation=['in_out', 'out_in'])
  def test_reads_shapes_either_way(self, naming, orientation):
    stored = _stored(_params(), naming, orientation)
    self.assert_same(weights_io.load_gcn_weights(stored), _params())

  @parameterized.product(naming=_STATED, sizes=[(3, 4, 2), (3, 3, 2)])
  def test_refuses_shapes_that_contradict_the_name(self, naming, sizes):
    _, usual = _NAMINGS[naming]
    actual = 'out_in' if usual == 'in_out' else 'in_out'
    stored = _stored(_params(*sizes), naming, actual)
    self.assert_refuses(
      f'says {usual}, but .* fit only {actual}; .* pass orientation={actual!r}',
      stored,
    )
    found = weights_io.load_gcn_weights(stored, orientation=actual)
    self.assert_same(found, _params(*sizes))

  @parameterized.parameters(*_NAMINGS)
  def test_refuses_shapes_that_contradict_the_argument(self, naming):
    _, usual = _NAMINGS[naming]
    wrong = 'out_in' if usual == 'in_out' else 'in_out'
    self.assert_refuses(
      f'orientation says {wrong}, but .* fit only {usual}',
      _stored(_params(), naming),
      orientation=wrong,
    )

  def test_the_argument_overrules_a_name(self):
    params = _params(3, 3, 3)
    stored = _stored(params, 'pyg_1', 'out_in')
    found = weights_io.load_gcn_weights(stored, orientation='out_in')
    self.assert_same(found, params)

  @parameterized.parameters('in', 'IN_OUT', True, 0)
  def test_refuses_another_orientation(self, orientation):
    self.assert_refuses(
      "^orientation must be one of 'in_out', 'out_in', got",
      _stored(_params(), 'pyg_1'),
      orientation=orientation,
    )


class ShapesTest(WeightsTestCase):
  @parameterized.parameters(
    {'num_features': 4}, {'num_features': 2}, {'num_classes': 3}
  )
  def test_refuses_another_size(self, **sizes):
    ((name, size),) = sizes.items()
    self.assert_refuses(
      f'with .*{name} {size}.* got ', _stored(_params(), 'pyg_1'), **sizes
    )

  def test_accepts_the_right_sizes(self):
    found = weights_io.load_gcn_weights(
      _stored(_params(), 'linear'), num_features=3, num_classes=2
    )
    self.assert_same(found, _params())

  @parameterized.parameters(
    {'num_features': 0}, {'num_classes': -1}, {'num_features': 3.0}
  )
  def test_refuses_a_size(self, **sizes):
    ((name, _),) = sizes.items()
    self.assert_refuses(
      f'^{name} must be an integer', _stored(_params(), 'pyg_1'), **sizes
    )

  @parameterized.parameters(
    ('conv1.weight', (3, 5)),
    ('conv1.bias', (3,)),
    ('conv2.weight', (3, 2)),
    ('conv2.weight', (2, 4)),
    ('conv2.bias', (4,)),
  )
  def test_refuses_layers_that_do_not_fit(self, name, shape):
    stored = _stored(_params(), 'pyg_1')
    stored[name] = np.zeros(shape)
    self.assert_refuses(r'kernels \[F, H\] and \[H, K\], or both', stored)

  @parameterized.parameters(('conv1.weight', (3,)), ('conv2.bias', (1, 2)))
  def test_refuses_another_rank(self, name, shape):
    stored = _stored(_params(), 'pyg_1')
    stored[name] = np.zeros(shape)
    self.assert_refuses(f'^{name} must have shape', stored)

  @parameterized.parameters(np.float16, np.int32, np.complex64, object)
  def test_refuses_another_dtype(self, dtype):
    stored = _stored(_params(), 'pyg_1')
    stored['conv2.bias'] = np.zeros(2, dtype)
    self.assert_refuses("float32 or float64, got .* in 'conv2.bias'", stored)

  def test_refuses_a_tensor_that_numpy_cannot_hold(self):
    stored = _stored(_params(), 'pyg_1')
    stored['conv2.bias'] = _Odd(None)
    self.assert_refuses('^conv2.bias must convert .*BFloat16', stored)

  @parameterized.parameters(np.nan, np.inf)
  def test_refuses_values(self, value):
    stored = _stored(_params(), 'pyg_1')
    stored['conv1.weight'][0, 1] = value
    self.assert_refuses('^hidden_kernel must be finite, got 1', stored)

  def test_refuses_one_class(self):
    self.assert_refuses(
      'num_classes must be an integer >= 2',
      _stored(_params(3, 4, 1), 'pyg_1'),
    )


class FilesTest(WeightsTestCase):
  @parameterized.product(
    suffix=['npz', 'safetensors', 'pt', 'pth', 'bin'],
    naming=['ours', 'pyg_1', 'pyg_2'],
  )
  def test_reads(self, suffix, naming):
    params = _params(dtype=np.float32)
    stored = _stored(params, naming)
    path = self.folder / f'model.{suffix}'
    if suffix == 'npz':
      np.savez(path, **stored)
    elif suffix == 'safetensors':
      safetensors_numpy.save_file(stored, path)
    else:
      state_dict_test.save(path, stored)
    self.assert_same(weights_io.load_gcn_weights(path), params)
    self.assert_same(weights_io.load_gcn_weights(str(path)), params)

  def test_reads_what_params_io_writes(self):
    path = self.folder / 'params.npz'
    params_io.save(path, _params())
    self.assert_same(weights_io.load_gcn_weights(path), _params())

  @parameterized.parameters('npz', 'safetensors', 'pt')
  def test_no_such_file(self, suffix):
    self.assert_refuses(
      'nothing', self.folder / f'nothing.{suffix}', FileNotFoundError
    )

  @parameterized.parameters('model.pkl', 'model', 'model.h5')
  def test_refuses_another_suffix(self, name):
    self.assert_refuses(
      f'must end in .npz, .* got .*{name}', self.folder / name
    )

  @parameterized.parameters('npz', 'safetensors', 'pt')
  def test_refuses_pickles(self, suffix):
    path = self.folder / f'model.{suffix}'
    path.write_bytes(pickle.dumps(_stored(_params(), 'pyg_1')))
    self.assert_refuses('must be a', path)

  def test_refuses_object_arrays(self):
    path = self.folder / 'model.npz'
    stored = _stored(_params(), 'pyg_1')
    np.savez(path, **{**stored, 'conv2.bias': np.array([0.0, 1.0], object)})
    self.assert_refuses('must be a parameter file', path)

  def test_refuses_a_pickled_module(self):
    path = self.folder / 'model.pt'
    whole = b'\x80\x02' + state_dict_test.name('__main__', 'Net') + b')R.'
    state_dict_test.write(path, whole, {})
    self.assert_refuses(
      'refused to unpickle __main__.Net', path, pickle.UnpicklingError
    )

  def test_refuses_safetensors_of_other_types(self):
    header = {'a': {'dtype': 'BF16', 'shape': [1], 'data_offsets': [0, 2]}}
    content = json.dumps(header).encode()
    path = self.folder / 'model.safetensors'
    path.write_bytes(struct.pack('<Q', len(content)) + content + bytes(2))
    self.assert_refuses('a safetensors file of float32 or float64, got', path)

  def test_names_the_extra(self):
    path = self.folder / 'model.safetensors'
    safetensors_numpy.save_file(_stored(_params(), 'pyg_1'), path)
    with pytest.MonkeyPatch.context() as patch:
      patch.setitem(sys.modules, 'safetensors', None)
      self.assert_refuses(r'"privjax\[io\]"', path, ImportError)


class CheckLogitsTest(WeightsTestCase):
  def setUp(self):
    super().setUp()
    self.graph = graphs.from_pairs(5, _ROWS)[0]
    self.features = prng.generator(1, 'weights_io_test').normal(size=(5, 3))
    adjacency = oracle.adjacency_matrix(5, set(map(frozenset, _ROWS)))
    self.expected = oracle.logits(_square(), adjacency, self.features)

  def check(self, params=None, **changes):
    arguments = {
      'features': self.features,
      'expected': self.expected,
      'tolerance': 1e-12,
    } | changes
    weights_io.check_logits(
      gcn.model(params or _square()), self.graph, **arguments
    )

  def test_accepts_the_right_weights(self):
    self.check()
    self.check(features=scipy.sparse.csr_array(self.features))
    self.check(features=_Tensor(self.features), expected=_Tensor(self.expected))

  def test_works_without_x64(self):
    with jax.enable_x64(False):
      self.check()

  def test_catches_a_transposed_kernel(self):
    stored = _stored(_square(), 'letters')
    stored = {
      name: array.T if name == 'W1' else array for name, array in stored.items()
    }
    params = weights_io.load_gcn_weights(stored, orientation='in_out')
    adjacency = oracle.adjacency_matrix(5, set(map(frozenset, _ROWS)))
    found = oracle.logits(params, adjacency, self.features)
    largest = np.abs(found - self.expected).max()
    changed = (found.argmax(axis=1) != self.expected.argmax(axis=1)).sum()
    self.assertGreater(largest, 0.1)
    with self.assertRaisesRegex(
      ValueError,
      f'by up to {largest:.3g}, and {changed} of 5 labels change',
    ):
      self.check(params, tolerance=0.1)

  def test_catches_a_missing_edge(self):
    self.graph = graphs.from_pairs(5, _ROWS[:-1])[0]
    with self.assertRaisesRegex(ValueError, '^model must give the expected'):
      self.check(tolerance=1e-3)

  def test_counts_the_labels_that_change(self):
    expected = self.expected.copy()
    expected[[1, 4]] = -expected[[1, 4]]
    with self.assertRaisesRegex(ValueError, 'and 2 of 5 labels change'):
      self.check(expected=expected)

  def test_tolerates_what_it_says(self):
    expected = self.expected.copy()
    expected[3, 1] += 0.5
    self.check(expected=expected, tolerance=0.501)
    with self.assertRaisesRegex(ValueError, 'within 0.499: .* up to 0.5, and'):
      self.check(expected=expected, tolerance=0.499)

  @parameterized.named_parameters(
    ('nan', {'expected': np.full((5, 2), np.nan)}, 'expected must be finite'),
    ('shape', {'expected': np.zeros((2, 5))}, r'expected .* \(5, 2\), got'),
    ('row', {'expected': np.zeros((1, 2))}, r'expected .* got \(1, 2\)'),
    ('features', {'features': np.zeros((4, 3))}, r'features must have shape'),
    ('tolerance', {'tolerance': 0}, 'tolerance must be a finite number > 0'),
  )
  def test_refuses(self, changes, message):
    with self.assertRaisesRegex(ValueError, f'^{message}'):
      self.check(**changes)


@pytest.mark.peers
class PygTest(WeightsTestCase):
  @parameterized.parameters((7, 5, 3), (4, 4, 4))
  def test_gives_the_logits_of_pyg(self, *sizes):
    import torch
    from torch_geometric import nn

    torch.manual_seed(0)
    model = nn.GCN(sizes[0], sizes[1], num_layers=2, out_channels=sizes[2])
    for layer in model.convs:
      torch.nn.init.normal_(layer.bias)
    edges = torch.tensor(_ROWS).t()
    edges = torch.cat([edges, edges.flip(0)], dim=1)
    features = torch.randn(5, sizes[0])
    path = self.folder / 'model.pt'
    torch.save(model.state_dict(), path)
    for source in (path, model.state_dict()):
      weights_io.check_logits(
        gcn.model(weights_io.load_gcn_weights(source)),
        graphs.from_pairs(5, _ROWS)[0],
        features,
        model.eval()(features, edges),
        tolerance=1e-5,
      )
