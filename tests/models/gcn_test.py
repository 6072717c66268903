"""Tests of the GCN, against a dense float64 implementation in NumPy."""

import copy

from absl.testing import parameterized
import hypothesis
from hypothesis import strategies as st
import jax
import numpy as np

from privjax import graphs
from privjax import prng
from privjax.models import gcn

_NUM_NODES = 6
_NODE = st.integers(0, _NUM_NODES - 1)
_SIZES = {'num_features': 50, 'num_hidden': 30, 'num_classes': 20}


def _dense_logits(params, num_nodes, rows, features):
  """Returns `A relu(A X W1 + b1) W2 + b2` with a dense normalized A."""
  a = np.eye(num_nodes)
  for i, j in rows:
    a[i, j] = a[j, i] = 1
  root = np.sqrt(a.sum(axis=1))
  a = a / root[:, None] / root[None, :]
  hidden, output = (
    {name: np.asarray(array, np.float64) for name, array in layer.items()}
    for layer in (params['hidden'], params['output'])
  )
  x = np.maximum(a @ features @ hidden['kernel'] + hidden['bias'], 0)
  return a @ x @ output['kernel'] + output['bias']


def _random_params(seed=0):
  """Returns float64 parameters whose biases are not zero."""
  rng = prng.generator(seed, 'gcn_test')
  return {
    'hidden': {'kernel': rng.normal(size=(3, 4)), 'bias': rng.normal(size=4)},
    'output': {'kernel': rng.normal(size=(4, 2)), 'bias': rng.normal(size=2)},
  }


def _features():
  return prng.generator(0, 'gcn_test', 'x').normal(size=(_NUM_NODES, 3))


def _message_graph(rows, num_edges=None, features=None):
  """Returns the graph of `rows`, its edges padded to `num_edges`."""
  graph, _ = graphs.from_pairs(_NUM_NODES, rows)
  features = _features() if features is None else features
  graph = graphs.to_message_graph(graph, features)
  if num_edges is None:
    return graph
  pad = (0, num_edges - len(graph.senders))
  last = dict(constant_values=_NUM_NODES - 1)
  return graph._replace(
    senders=np.pad(graph.senders, pad, **last),
    receivers=np.pad(graph.receivers, pad, **last),
    edges={'mask': np.pad(graph.edges['mask'], pad)},
  )


class ApplyTest(parameterized.TestCase):
  def setUp(self):
    super().setUp()
    self.apply = jax.jit(gcn.apply)

  def test_path_graph(self):
    path, _ = graphs.from_pairs(4, [[0, 1], [1, 2], [2, 3]])
    features = np.array([[0.0], [0.0], [1.0], [0.0]])
    ones = {'kernel': np.ones((1, 1)), 'bias': np.zeros(1)}
    logits = self.apply(
      {'hidden': ones, 'output': ones}, graphs.to_message_graph(path, features)
    )
    self.assertAlmostEqual(float(logits[0, 0]), 0.1360827635, places=10)
    self.assertAlmostEqual(float(logits[0, 0]), 1 / (3 * 6**0.5), places=14)

  @hypothesis.given(st.lists(st.tuples(_NODE, _NODE), max_size=15))
  def test_agrees_with_dense_matrices(self, rows):
    params = _random_params()
    # Two of the 32 edges, at least, are padding: one shape for all examples.
    logits = self.apply(params, _message_graph(rows, num_edges=32))
    expected = _dense_logits(params, _NUM_NODES, rows, _features())
    np.testing.assert_allclose(logits, expected, rtol=1e-12, atol=1e-13)
    self.assertEqual(logits.dtype, np.float64)

  @parameterized.named_parameters(
    ('no_edge', []),
    ('isolated_node', [[0, 1], [1, 2]]),
    ('star', [[0, node] for node in range(1, _NUM_NODES)]),
    ('complete', [[i, j] for i in range(_NUM_NODES) for j in range(i)]),
  )
  def test_agrees_without_padding(self, rows):
    params = _random_params(1)
    logits = self.apply(params, _message_graph(rows))
    expected = _dense_logits(params, _NUM_NODES, rows, _features())
    np.testing.assert_allclose(logits, expected, rtol=1e-12, atol=1e-13)

  def test_masked_edge_is_a_deleted_edge(self):
    rows = [[0, 1], [1, 2], [2, 3], [0, 2], [4, 5]]
    graph = _message_graph(rows)
    gone = {0, 2}
    pairs = zip(graph.senders.tolist(), graph.receivers.tolist())
    mask = np.array([0.0 if set(pair) == gone else 1.0 for pair in pairs])
    self.assertEqual(mask.sum(), 8)
    degree = graph.nodes['degree'] - np.isin(np.arange(_NUM_NODES), list(gone))
    masked = graph._replace(
      nodes={**graph.nodes, 'degree': degree}, edges={'mask': mask}
    )
    np.testing.assert_allclose(
      self.apply(_random_params(), masked),
      self.apply(_random_params(), _message_graph(rows[:3] + rows[4:])),
      rtol=0,
      atol=1e-14,
    )

  def test_masked_edges_do_nothing(self):
    # Their senders may then be anything at all, even hugely different nodes.
    graph = _message_graph([[0, 1], [2, 3]], num_edges=10)
    other = graph.senders.copy()
    other[4:] = np.arange(6)
    features = _features()
    features[5] = 1e30
    found, expected = (
      self.apply(
        _random_params(),
        graph._replace(
          senders=senders, nodes={**graph.nodes, 'features': features}
        ),
      )
      for senders in (other, graph.senders)
    )
    np.testing.assert_array_equal(found, expected)

  def test_reads_the_degree_from_the_nodes(self):
    graph = _message_graph([[0, 1], [1, 2]])
    more = {**graph.nodes, 'degree': graph.nodes['degree'] + 1}
    before = self.apply(_random_params(), graph)
    after = self.apply(_random_params(), graph._replace(nodes=more))
    self.assertTrue((np.abs(before - after) > 1e-6).all())

  @parameterized.parameters(
    (np.float32, np.float32, np.float32),
    (np.float32, np.float64, np.float64),
    (np.float64, np.float32, np.float64),
  )
  def test_dtype_is_the_wider_one(self, params_dtype, features_dtype, expected):
    params = jax.tree.map(lambda x: x.astype(params_dtype), _random_params())
    features = _features().astype(features_dtype)
    graph = _message_graph([[0, 1]], features=features)
    self.assertEqual(self.apply(params, graph).dtype, expected)

  def test_storage_order_does_not_matter(self):
    rows = [[0, 1], [3, 1], [1, 2], [2, 0], [5, 1]]
    np.testing.assert_array_equal(
      self.apply(_random_params(), _message_graph(rows)),
      self.apply(_random_params(), _message_graph(np.array(rows)[::-1, ::-1])),
    )


class InitTest(parameterized.TestCase):
  def test_shapes_and_values(self):
    params = gcn.init(prng.key(0), **_SIZES)
    shapes = jax.tree.map(np.shape, params)
    self.assertEqual(
      shapes,
      {
        'hidden': {'kernel': (50, 30), 'bias': (30,)},
        'output': {'kernel': (30, 20), 'bias': (20,)},
      },
    )
    for layer, fan in (('hidden', 50 + 30), ('output', 30 + 20)):
      for array in params[layer].values():
        self.assertEqual(array.dtype, np.float32)
      self.assertFalse(np.any(params[layer]['bias']))
      kernel = np.abs(params[layer]['kernel'])
      bound = np.sqrt(6 / fan)
      self.assertLessEqual(kernel.max(), bound)
      # 600 uniform draws all below 0.95 of the bound: 4e-14.
      self.assertGreater(kernel.max(), 0.95 * bound)

  def test_is_determined_by_the_key(self):
    one, same, other = (
      gcn.init(prng.key(seed), **_SIZES) for seed in (3, 3, 4)
    )
    jax.tree.map(np.testing.assert_array_equal, one, same)
    for layer in ('hidden', 'output'):
      self.assertFalse(
        np.array_equal(one[layer]['kernel'], other[layer]['kernel'])
      )

  @parameterized.named_parameters(
    ('features', 'num_features', 0),
    ('hidden', 'num_hidden', 0),
    ('classes', 'num_classes', 1),
    ('float', 'num_hidden', 4.0),
    ('bool', 'num_features', True),
  )
  def test_refuses(self, name, value):
    with self.assertRaisesRegex(ValueError, f'^{name} must .* got {value}'):
      gcn.init(prng.key(0), **{**_SIZES, name: value})


class ModelTest(parameterized.TestCase):
  def test_wraps_parameters(self):
    params = _random_params()
    model = gcn.model(params)
    self.assertIs(model.params, params)
    self.assertIs(model.apply_fn, gcn.apply)
    self.assertEqual(model.num_hops, 2)

  def test_accepts_fresh_parameters(self):
    gcn.model(gcn.init(prng.key(0), **_SIZES))

  @parameterized.parameters(
    ('hidden', 'kernel'),
    ('hidden', 'bias'),
    ('output', 'kernel'),
    ('output', 'bias'),
  )
  def test_refuses_a_missing_parameter(self, layer, name):
    params = _random_params()
    del params[layer][name]
    with self.assertRaisesRegex(ValueError, f'params must .* {layer}/{name}'):
      gcn.model(params)

  @parameterized.parameters('hidden', 'output')
  def test_refuses_a_missing_layer(self, layer):
    params = _random_params()
    del params[layer]
    with self.assertRaisesRegex(ValueError, f'params must hold {layer}/kernel'):
      gcn.model(params)

  @parameterized.named_parameters(
    ('hidden_kernel_1d', 'hidden', 'kernel', (12,)),
    ('hidden_bias', 'hidden', 'bias', (3,)),
    ('hidden_bias_row', 'hidden', 'bias', (1, 4)),
    ('output_transposed', 'output', 'kernel', (2, 4)),
    ('output_bias', 'output', 'bias', (4,)),
  )
  def test_refuses_a_shape(self, layer, name, shape):
    params = _random_params()
    params[layer][name] = np.ones(shape)
    with self.assertRaisesRegex(ValueError, f'^{layer}_{name} must have shape'):
      gcn.model(params)

  @parameterized.product(
    layer=('hidden', 'output'),
    name=('kernel', 'bias'),
    value=(np.nan, np.inf, -np.inf),
  )
  def test_refuses_values_that_are_not_finite(self, layer, name, value):
    params = copy.deepcopy(_random_params())
    params[layer][name].flat[1] = value
    with self.assertRaisesRegex(ValueError, f'^{layer}_{name} must .* got 1 '):
      gcn.model(params)
