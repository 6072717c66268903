"""Two-layer graph convolutional network (Kipf & Welling, 2017, eq. 9).

`logits = A relu(A X W1 + b1) W2 + b2` with
`A = (D + I)^-1/2 (E + I) (D + I)^-1/2`, on the graph contract of
`graphs.message_graph`. Parameters are a plain dictionary:
`{'hidden': {'kernel': [F, H], 'bias': [H]}, 'output': {'kernel': [H, K],
'bias': [K]}}`.

>>> import numpy as np
>>> from privjax import graphs
>>> path, _ = graphs.from_pairs(4, [[0, 1], [1, 2], [2, 3]])
>>> x = np.array([[0.0], [0.0], [1.0], [0.0]])
>>> graph = graphs.to_message_graph(path, x)
>>> ones = {'kernel': np.ones((1, 1)), 'bias': np.zeros(1)}
>>> logits = apply({'hidden': ones, 'output': ones}, graph)
>>> bool(abs(logits[0, 0] - 1 / (3 * 6**0.5)) < 1e-6)
True
"""

from typing import Any

from flax import linen as nn
import jax
import jax.numpy as jnp
import jraph
import numpy as np

from privjax import _validate
from privjax import types
from privjax.models import node_model

NUM_HOPS = 2


class _GraphConvolution(nn.Module):
  """`A (x W) + b` with masked edges (jraph's own layer has no edge mask)."""

  features: int
  project: bool = True  # Whether x is still to be multiplied by W.

  @nn.compact
  def __call__(self, graph: jraph.GraphsTuple, x: jax.Array) -> jax.Array:
    shape = (x.shape[-1], self.features)
    # float32 by name: the default would follow x64, and the draws with it.
    if self.project:
      kernel = self.param(
        'kernel', nn.initializers.glorot_uniform(), shape, jnp.float32
      )
      # HIGHEST: accelerators may otherwise multiply in TF32: labels move.
      x = jnp.matmul(x, kernel, precision=jax.lax.Precision.HIGHEST)
    bias = self.param('bias', nn.initializers.zeros, shape[1:], jnp.float32)
    nodes, edges, receivers = _fields(graph)
    scale = 1 / jnp.sqrt(nodes['degree'] + 1.0).astype(x.dtype)[:, None]
    messages = (scale * x)[graph.senders] * edges['mask'][:, None]
    total = jraph.segment_sum(
      messages.astype(x.dtype),
      receivers,
      num_segments=x.shape[0],
      indices_are_sorted=True,
    )
    return scale * (total + scale * x) + bias[None, :]


def _fields(graph: jraph.GraphsTuple) -> tuple[Any, Any, Any]:
  """Returns nodes, edges and receivers; jraph types them as opaque trees."""
  return graph.nodes, graph.edges, graph.receivers


class _GCN(nn.Module):
  """Two graph convolutions with a relu between them."""

  num_hidden: int
  num_classes: int
  project: bool = True

  @nn.compact
  def __call__(self, graph: jraph.GraphsTuple) -> jax.Array:
    x = jnp.asarray(_fields(graph)[0]['features'])
    hidden = _GraphConvolution(self.num_hidden, self.project, name='hidden')
    x = nn.relu(hidden(graph, x))
    return _GraphConvolution(self.num_classes, name='output')(graph, x)


def init(
  key: types.KeyArray, *, num_features: int, num_hidden: int, num_classes: int
) -> types.Params:
  """Returns float32 parameters: Glorot-uniform kernels, zero biases.

  Args:
    key: consumed.
    num_features: F >= 1.
    num_hidden: H >= 1.
    num_classes: K >= 2.
  """
  _validate.integer(1, num_features=num_features)
  _validate.integer(1, num_hidden=num_hidden)
  _validate.integer(2, num_classes=num_classes)
  empty = jraph.GraphsTuple(
    nodes={
      'features': jnp.zeros((1, num_features), jnp.float32),
      'degree': jnp.zeros(1, jnp.int32),
    },
    edges={'mask': jnp.zeros(0, jnp.float32)},
    senders=jnp.zeros(0, jnp.int32),
    receivers=jnp.zeros(0, jnp.int32),
    n_node=jnp.ones(1, jnp.int32),
    n_edge=jnp.zeros(1, jnp.int32),
    globals=None,
  )
  variables: Any = _GCN(num_hidden, num_classes).init(key, empty)
  return variables['params']


def apply(params: types.Params, graph: jraph.GraphsTuple) -> jax.Array:
  """Returns logits `[n, K]`, in the wider dtype of parameters and features."""
  num_hidden, num_classes = np.shape(params['output']['kernel'])
  network: Any = _GCN(num_hidden, num_classes)
  return network.apply({'params': params}, graph)


def apply_projected(
  params: types.Params, graph: jraph.GraphsTuple
) -> jax.Array:
  """Returns `apply` on features that are already `X W1`, `[n, H]`.

  The first layer is linear in a node's features: on sparse ones the product is
  best made once. `params` need no hidden kernel.
  """
  num_hidden, num_classes = np.shape(params['output']['kernel'])
  network: Any = _GCN(num_hidden, num_classes, project=False)
  return network.apply({'params': params}, graph)


def model(params: types.Params) -> node_model.NodeModel:
  """Wraps checked parameters as a `NodeModel`.

  Raises:
    ValueError: if a parameter is missing, has another shape or is not finite.
  """
  for layer in ('hidden', 'output'):
    for name in ('kernel', 'bias'):
      if name not in params.get(layer, {}):
        raise ValueError(f'params must hold {layer}/{name}, got {list(params)}')
      _validate.finite(**{f'{layer}_{name}': params[layer][name]})
  hidden, output = params['hidden'], params['output']
  _validate.shape((None, None), hidden_kernel=hidden['kernel'])
  num_hidden = np.shape(hidden['kernel'])[1]
  _validate.shape((num_hidden,), hidden_bias=hidden['bias'])
  _validate.shape((num_hidden, None), output_kernel=output['kernel'])
  num_classes = np.shape(output['kernel'])[1]
  _validate.shape((num_classes,), output_bias=output['bias'])
  _validate.integer(2, num_classes=num_classes)
  return node_model.NodeModel(apply, params, NUM_HOPS)
