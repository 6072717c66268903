"""Tests of training, against gradients and Adam written out in NumPy."""

import functools

from absl.testing import parameterized
import jax
import numpy as np

from privjax import graphs
from privjax import prng
from privjax.models import gcn
from privjax.models import training

_BLOCK = 6
_LABELS = np.repeat([0, 1], _BLOCK)
_TRAIN = np.array([0, 1, 6, 7])
_LONG = {'num_steps': 60, 'learning_rate': 0.05}


def _two_blocks():
  """Returns two cliques joined by one edge, with uninformative features."""
  pairs = [
    [start + i, start + j]
    for start in (0, _BLOCK)
    for i in range(_BLOCK)
    for j in range(i)
  ]
  graph, _ = graphs.from_pairs(2 * _BLOCK, [*pairs, [_BLOCK - 1, _BLOCK]])
  features = prng.generator(0, 'training_test').normal(size=(2 * _BLOCK, 5))
  return graph, graphs.to_message_graph(graph, features)


def _train(seed=0, **config):
  return training.train(
    prng.key(seed),
    _two_blocks()[1],
    _LABELS,
    _TRAIN,
    num_classes=2,
    config=training.TrainingConfig(num_hidden=4, **config),
  )


# Tests that need no second run share one: every run compiles.
_train_once = functools.cache(_train)


def _init(seed=0):
  return gcn.init(
    prng.stream(prng.key(seed), 'init'),
    num_features=5,
    num_hidden=4,
    num_classes=2,
  )


def _float64(params):
  return jax.tree.map(lambda x: np.asarray(x, np.float64), params)


def _normalized_adjacency(graph):
  a = np.eye(graph.num_nodes)
  a[graph.pairs[:, 0], graph.pairs[:, 1]] = 1
  a[graph.pairs[:, 1], graph.pairs[:, 0]] = 1
  root = np.sqrt(a.sum(axis=1))
  return a / root[:, None] / root[None, :]


def _loss_and_gradient(params, a, x):
  """Returns the mean cross entropy and its gradient, by the chain rule."""
  hidden, output = params['hidden'], params['output']
  before = a @ x @ hidden['kernel'] + hidden['bias']
  h = np.maximum(before, 0)
  logits = a @ h @ output['kernel'] + output['bias']
  log_p = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
  loss = -log_p[_TRAIN, _LABELS[_TRAIN]].mean()
  error = np.zeros_like(logits)
  error[_TRAIN] = np.exp(log_p[_TRAIN]) - np.eye(2)[_LABELS[_TRAIN]]
  error /= len(_TRAIN)
  back = (a @ error @ output['kernel'].T) * (before > 0)
  return loss, {
    'hidden': {'kernel': x.T @ a @ back, 'bias': back.sum(axis=0)},
    'output': {'kernel': h.T @ a @ error, 'bias': error.sum(axis=0)},
  }


def _adam_update(step, learning_rate, p, m, v):
  m, v = m / (1 - 0.9**step), v / (1 - 0.999**step)
  return p - learning_rate * m / (np.sqrt(v) + 1e-8)


def _adam(params, a, x, *, num_steps, learning_rate, l2, l2_layers=('hidden',)):
  """Returns the parameters after Adam steps (Kingma and Ba, 2015, alg. 1)."""
  zeros = jax.tree.map(np.zeros_like, params)
  m, v = zeros, zeros
  for step in range(1, num_steps + 1):
    gradient = _loss_and_gradient(params, a, x)[1]
    for layer in l2_layers:
      gradient[layer] = jax.tree.map(
        lambda g, p: g + l2 * p, gradient[layer], params[layer]
      )
    m = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, m, gradient)
    v = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g**2, v, gradient)
    update = functools.partial(_adam_update, step, learning_rate)
    params = jax.tree.map(update, params, m, v)
  return params


class TrainTest(parameterized.TestCase):
  @parameterized.parameters(1, 2)
  def test_steps_agree_with_numpy(self, num_steps):
    graph, message_graph = _two_blocks()
    a, x = _normalized_adjacency(graph), message_graph.nodes['features']
    config = dict(num_steps=num_steps, learning_rate=0.1, l2=0.5)
    found = _float64(_train(3, **config))
    start = _float64(_init(3))
    agree = functools.partial(np.testing.assert_allclose, rtol=0, atol=1e-6)
    jax.tree.map(agree, found, _adam(start, a, x, **config))
    # The check would see L2 that also acts on the second layer, or nowhere.
    for layers in (('hidden', 'output'), ()):
      other = _adam(start, a, x, l2_layers=layers, **config)
      with self.assertRaises(AssertionError):
        jax.tree.map(agree, found, other)

  def test_is_reproducible_bit_for_bit(self):
    one, same = _train(**_LONG), _train_once(**_LONG)
    jax.tree.map(np.testing.assert_array_equal, one, same)

  def test_separates_two_blocks(self):
    graph, message_graph = _two_blocks()
    a, x = _normalized_adjacency(graph), message_graph.nodes['features']
    trained = _train_once(**_LONG)
    self.assertGreater(_loss_and_gradient(_float64(_init()), a, x)[0], 0.5)
    self.assertLess(_loss_and_gradient(_float64(trained), a, x)[0], 0.1)
    predicted = np.argmax(jax.jit(gcn.apply)(trained, message_graph), axis=1)
    self.assertEqual(predicted.tolist(), _LABELS.tolist())

  def test_returns_float32_that_a_model_accepts(self):
    params = _train_once(**_LONG)
    for array in jax.tree.leaves(params):
      self.assertEqual(array.dtype, np.float32)
    gcn.model(params)

  def test_defaults_are_the_papers(self):
    config = training.TrainingConfig()
    self.assertEqual(
      (config.num_hidden, config.num_steps, config.learning_rate, config.l2),
      (32, 200, 0.01, 5e-4),
    )
