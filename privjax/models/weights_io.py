"""Weights of a two-layer GCN trained elsewhere, on the layout of `models.gcn`.

Files and libraries disagree on names and on orientation: PyTorch Geometric
names a kernel `conv1.weight`, `[in, out]`, up to 1.7 and `conv1.lin.weight`,
`[out, in]`, since 2.0. A kernel read the wrong way round still multiplies if it
is square, so nothing is guessed:

* `orientation`, if given, decides; else names that state it (table below);
  else the shapes, if neither kernel is square; else a `ValueError` asks.
* The shapes must fit in any case: the biases say H and K, and `num_features`
  and `num_classes`, if given, F and K.

| names | kernel |
|---|---|
| `hidden/kernel`, `output/kernel` (ours), any `kernel` (flax) | in_out |
| `conv1.weight`, `convs.0.weight` (PyG 1.x) | in_out |
| `conv1.lin.weight`, `convs.0.lin.weight` (PyG 2.x) | out_in |
| `gc1.weight`, `fc1.weight`, `W1`, ... | not stated |

>>> import numpy as np
>>> weights = {'conv1.bias': np.zeros(2), 'conv1.lin.weight': np.ones((2, 5))}
>>> weights |= {'conv2.bias': np.zeros(3), 'conv2.lin.weight': np.ones((3, 2))}
>>> params = load_gcn_weights(weights)
>>> params['hidden']['kernel'].shape, params['output']['kernel'].shape
((5, 2), (2, 3))

Weights are public. `check_logits` then compares with logits that the other
library computed: orientation, normalization and self-loops show there.
"""

from collections.abc import Mapping
import os
import pathlib
import re
from typing import Any, Literal, NamedTuple

from flax import traverse_util
import jax
import numpy as np
import scipy.sparse

from privjax import _validate
from privjax import graphs
from privjax import types
from privjax.graphs import importers
from privjax.models import gcn
from privjax.models import node_model
from privjax.models import params_io
from privjax.models import state_dict

Orientation = Literal['in_out', 'out_in']

_ORIENTATIONS = ('in_out', 'out_in')
_NAME = re.compile(
  r'(?:(?P<layer>.+?)[./_])?(?P<role>lin[./]weight|weight|kernel|w|bias|b)'
  r'_?(?P<number>\d*)',
  re.IGNORECASE,
)
_PYG_LAYER = re.compile(r'(?:.*[./])?(?:conv|convs\.)\d+')


class _Layer(NamedTuple):
  """One layer as stored, and the orientation that its names state."""

  kernel_name: str
  kernel: np.ndarray
  bias: np.ndarray
  stated: str | None


def load_gcn_weights(
  source: str | os.PathLike | Mapping[str, Any],
  *,
  num_features: int | None = None,
  num_classes: int | None = None,
  orientation: Orientation | None = None,
) -> types.Params:
  """Returns parameters of `models.gcn` from a file or a mapping.

  Args:
    source: a file (.npz; .safetensors; .pt, .pth or .bin of
      `torch.save(model.state_dict(), ...)`), or names to arrays or tensors,
      nested or not. It must hold two kernels and two biases, float32 or
      float64, and nothing else, under names that number the layers (or
      `hidden` and `output`). Of a model without biases, add zeros.
    num_features: F, to check.
    num_classes: K, to check.
    orientation: of both kernels: 'in_out' if the model computes `X W`, 'out_in'
      if it computes `X W^T` (torch.nn.Linear). `None` asks names and shapes.

  Returns:
    `{'hidden': {'kernel': [F, H], 'bias': [H]}, 'output': ...}` with the dtypes
    stored.

  Raises:
    FileNotFoundError: if there is no such file.
    ImportError: if safetensors is not installed (extra `io`).
    ValueError: if the names or shapes are not of a two-layer GCN, disagree, or
      leave the orientation open; or if a value is not finite.
    pickle.UnpicklingError: if a PyTorch file holds more than tensors.
  """
  for name, size in (('features', num_features), ('classes', num_classes)):
    if size is not None:
      _validate.integer(1, **{f'num_{name}': size})
  if orientation is not None:
    _validate.one_of(_ORIENTATIONS, orientation=orientation)
  layers = _layers(_arrays(source))
  fitting = _fitting(layers, num_features, num_classes)
  chosen = orientation or _stated(layers) or _from_shapes(layers, fitting)
  if chosen not in fitting:
    reason = 'orientation' if orientation else f'{layers[0].kernel_name!r}'
    raise ValueError(
      f'source must have shapes that fit its orientation: {reason} says '
      f'{chosen}, but {_shapes(layers)} fit only {fitting[0]}; if the shapes '
      f'are right, pass orientation={fitting[0]!r}'
    )
  params = {
    name: {
      'kernel': _oriented(layer.kernel, chosen),
      'bias': layer.bias,
    }
    for name, layer in zip(('hidden', 'output'), layers)
  }
  return gcn.model(params).params


def check_logits(
  model: node_model.NodeModel,
  graph: graphs.Graph,
  features: types.Array | scipy.sparse.csr_array,
  expected: types.Array,
  *,
  tolerance: float,
) -> None:
  """Compares the model's logits with those of the library it came from.

  Computed in float64. The outcome depends on the edges of `graph`: on a private
  graph it is not for release.

  Args:
    model: the imported model.
    graph: the graph that `expected` was computed on.
    features: `[N, F]`, dense or SciPy sparse.
    expected: `[N, K]` logits, before any softmax.
    tolerance: largest accepted absolute difference, > 0: if `expected` is
      float32, the rounding of its own computation (try 1e-5 of the largest).

  Raises:
    ValueError: if a logit differs by more; says by how much at most, and how
      many labels change.
  """
  _validate.positive(tolerance=tolerance)
  expected = importers.as_array(expected, 'expected')
  _validate.finite(expected=expected)
  if isinstance(features, scipy.sparse.sparray | scipy.sparse.spmatrix):
    features = features.toarray()
  features = importers.as_array(features, 'features')
  _validate.finite(features=features)
  _validate.shape((graph.num_nodes, None), features=features)
  with jax.enable_x64(True):
    message_graph = graphs.to_message_graph(graph, features.astype(np.float64))
    found = np.asarray(model.apply_fn(model.params, message_graph))
  if expected.shape != found.shape:
    raise ValueError(
      f'expected must have shape {found.shape}, got {expected.shape}'
    )
  difference = np.abs(found - expected).max()
  # Not `>`: a NaN must fail.
  if not difference <= tolerance:
    changed = np.argmax(found, axis=1) != np.argmax(expected, axis=1)
    raise ValueError(
      f'model must give the expected logits within {tolerance}: they differ by '
      f'up to {difference:.3g}, and {np.count_nonzero(changed)} of '
      f'{graph.num_nodes} labels change'
    )


def _arrays(source: Any) -> dict[str, np.ndarray]:
  """Returns names to arrays in native byte order, whatever the source."""
  flat = source if isinstance(source, Mapping) else _read(pathlib.Path(source))
  flat = traverse_util.flatten_dict(dict(flat), sep='/')
  arrays = {}
  for name, value in flat.items():
    array = importers.as_array(value, name)
    native = array.dtype.newbyteorder('=')
    if native not in (np.float32, np.float64):
      raise ValueError(
        f'source must hold float32 or float64, got {array.dtype} in {name!r}: '
        'convert it first'
      )
    arrays[name] = array.astype(native)
  return arrays


def _read(path: pathlib.Path) -> Mapping[str, Any]:
  """Reads a file by its suffix."""
  if path.suffix == '.npz':
    return params_io.load(path)
  if path.suffix == '.safetensors':
    return _read_safetensors(path)
  if path.suffix in ('.pt', '.pth', '.bin'):
    return state_dict.load(path)
  raise ValueError(
    f'source must end in .npz, .safetensors, .pt, .pth or .bin, got {path}'
  )


def _read_safetensors(path: pathlib.Path) -> Mapping[str, Any]:
  try:
    import safetensors
    import safetensors.numpy
  except ImportError as error:
    raise ImportError(
      'reading .safetensors needs the extra `io`: pip install "privjax[io]"'
    ) from error
  content = path.read_bytes()
  try:
    return safetensors.numpy.load(content)
  # KeyError, TypeError: a type that NumPy does not have.
  except (safetensors.SafetensorError, KeyError, TypeError) as error:
    raise ValueError(
      f'source must be a safetensors file of float32 or float64, got {path} '
      f'({type(error).__name__}: {error})'
    ) from error


def _layers(arrays: dict[str, np.ndarray]) -> list[_Layer]:
  """Groups two kernels and two biases into the first and the second layer."""
  found: dict[str, dict[str, str]] = {}
  for name in arrays:
    match = _NAME.fullmatch(name)
    if match:
      layer = f'{match["layer"] or ""}{match["number"]}'
      role = 'bias' if match['role'].lower() in ('b', 'bias') else 'kernel'
      found.setdefault(layer, {})[role] = name
  num_named = sum(map(len, found.values()))
  if len(found) != 2 or not num_named == len(arrays) == 4:
    raise ValueError(
      'source must hold a kernel and a bias for each of two layers and nothing '
      f'else (of a model without biases, add zeros), got {sorted(arrays)}'
    )
  return [
    _layer(layer, arrays, **found[layer]) for layer in _in_order(list(found))
  ]


def _in_order(layers: list[str]) -> list[str]:
  """Sorts two names by the number in which alone they differ."""
  if set(layers) == {'hidden', 'output'}:
    return ['hidden', 'output']
  parts = [re.split(r'([0-9]+)', layer) for layer in layers]
  differing = [pair for pair in zip(*parts) if pair[0] != pair[1]]
  numbers = {}
  if len(parts[0]) == len(parts[1]) and len(differing) == 1:
    numbers = {
      int(text): layer
      for text, layer in zip(differing[0], layers)
      if text.isdecimal()
    }
  if len(numbers) != 2:
    raise ValueError(
      'source must number its layers, or call them hidden and output (which is '
      f'the first?), got {sorted(layers)}'
    )
  return [numbers[number] for number in sorted(numbers)]


def _layer(
  layer: str, arrays: dict[str, np.ndarray], *, kernel: str, bias: str
) -> _Layer:
  """Returns one layer and what the name of its kernel states."""
  _validate.shape((None, None), **{kernel: arrays[kernel]})
  _validate.shape((None,), **{bias: arrays[bias]})
  stated = None
  if kernel.lower().endswith('kernel'):
    stated = 'in_out'
  elif re.search(r'[./]lin[./]weight$', kernel):
    stated = 'out_in'
  elif kernel.endswith('weight') and _PYG_LAYER.fullmatch(layer):
    stated = 'in_out'
  return _Layer(kernel, arrays[kernel], arrays[bias], stated)


def _stated(layers: list[_Layer]) -> str | None:
  """Returns the orientation that the names of both kernels state."""
  first, second = layers
  if first.stated != second.stated:
    raise ValueError(
      'source must name both kernels alike, or orientation must be given, got '
      f'{first.kernel_name!r} and {second.kernel_name!r}'
    )
  return first.stated


def _oriented(kernel: np.ndarray, orientation: str) -> np.ndarray:
  """Returns a kernel as [in, out]."""
  return np.ascontiguousarray(kernel if orientation == 'in_out' else kernel.T)


def _fitting(
  layers: list[_Layer], num_features: int | None, num_classes: int | None
) -> list[str]:
  """Returns the orientations that the shapes allow, at least one."""
  first, second = layers
  num_hidden, num_outputs = len(first.bias), len(second.bias)
  fitting = []
  for orientation in _ORIENTATIONS:
    num_inputs, width = _oriented(first.kernel, orientation).shape
    if (
      width == num_hidden
      and _oriented(second.kernel, orientation).shape == (width, num_outputs)
      and num_features in (None, num_inputs)
      and num_classes in (None, num_outputs)
    ):
      fitting.append(orientation)
  if not fitting:
    raise ValueError(
      'source must have kernels [F, H] and [H, K], or both transposed, and '
      f'biases [H] and [K], with num_features {num_features} and num_classes '
      f'{num_classes} if given, got {_shapes(layers)}'
    )
  return fitting


def _from_shapes(layers: list[_Layer], fitting: list[str]) -> str:
  """Returns the one orientation that fits, if every kernel tells it."""
  square = [
    layer.kernel_name
    for layer in layers
    if layer.kernel.shape[0] == layer.kernel.shape[1]
  ]
  if square:
    raise ValueError(
      f'orientation must be given: {square} is square ({_shapes(layers)}), and '
      'its name does not say. Does the model compute X W (pass orientation='
      "'in_out') or X W^T, as torch.nn.Linear does (pass orientation='out_in')?"
    )
  return fitting[0]


def _shapes(layers: list[_Layer]) -> str:
  return ', '.join(
    f'{layer.kernel_name} {layer.kernel.shape} with bias {layer.bias.shape}'
    for layer in layers
  )
