"""64-bit code scopes its precision: turning x64 off changes no bit of it."""

from absl.testing import parameterized
import jax
import numpy as np
import scipy.sparse

from privjax import counterfactual
from privjax import graphs
from privjax import mechanisms
from privjax import models
from privjax import prng


def _problem():
  """Returns (model, graph, features, candidates) with float32 parameters."""
  rng = prng.generator(0, 'precision_test')
  graph, _ = graphs.from_pairs(10, rng.integers(0, 10, (18, 2)))
  features = scipy.sparse.csr_array(rng.random((10, 6), np.float32))
  draw = lambda *shape: rng.normal(size=shape).astype(np.float32)
  params = {
    'hidden': {'kernel': draw(6, 5), 'bias': draw(5)},
    'output': {'kernel': draw(5, 3), 'bias': draw(3)},
  }
  universe = counterfactual.build_universe(
    graphs.Snapshot(graph, 'external'),
    features,
    params['hidden']['kernel'],
    int(np.argmax(graph.degree)),
    num_pairs=3,
    num_features=2,
    num_hops=2,
  )
  candidates = counterfactual.enumerate_candidates(
    universe, max_edges=1, max_features=1
  )
  return (
    models.gcn.model(params),
    graphs.PrivateGraph(graph),
    features,
    candidates,
  )


def _margins():
  logits = prng.generator(1, 'precision_test').normal(size=(20, 3))
  return counterfactual.margins(logits)


def _draws():
  weights = prng.generator(2, 'precision_test').random((2, 1000))
  probs = weights / weights.sum(axis=1, keepdims=True)
  return mechanisms.simulate(
    prng.key(3), [('a',), ('b',)], probs, num_draws=100
  )


def _is_float32_exact(values):
  return values.astype(np.float32).astype(np.float64) == values


class PrecisionTest(parameterized.TestCase):
  def _on_and_off(self, function):
    """Returns the result with x64 on and with x64 off."""
    self.assertTrue(jax.config.jax_enable_x64)
    on = function()
    with jax.enable_x64(False):
      self.assertEqual(jax.numpy.ones(1, float).dtype, np.float32)
      off = function()
      self.assertEqual(jax.numpy.ones(1, float).dtype, np.float32)
    return on, off

  @parameterized.named_parameters(
    ('factored', counterfactual.evaluate_factored),
    ('full_graph', counterfactual.evaluate_full_graph),
    ('subgraph', counterfactual.evaluate_subgraph),
  )
  def test_evaluator(self, evaluate):
    on, off = self._on_and_off(lambda: evaluate(*_problem()))
    self.assertEqual(off.gap.dtype, np.float64)
    # A float32 computation would leave only float32 values.
    self.assertFalse(_is_float32_exact(off.gap).any())
    for found, expected in zip(off, on):
      np.testing.assert_array_equal(found, expected, strict=True)

  def test_margins(self):
    on, off = self._on_and_off(_margins)
    self.assertEqual(off.dtype, np.float64)
    self.assertFalse(_is_float32_exact(off).any())
    np.testing.assert_array_equal(off, on, strict=True)

  def test_simulated_draws(self):
    on, off = self._on_and_off(_draws)
    np.testing.assert_array_equal(off, on, strict=True)

  def test_check_locality(self):
    model, graph, features, _ = _problem()
    model = model._replace(apply_fn=jax.jit(model.apply_fn))
    with jax.enable_x64(False):
      models.check_locality(
        model, graph.graph, features, np.array([0]), tolerance=1e-14
      )
