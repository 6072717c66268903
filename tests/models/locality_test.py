"""Tests of `check_locality`: it passes good models and fails mutants."""

from absl.testing import parameterized
import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse

from privjax import graphs
from privjax import prng
from privjax.models import gcn
from privjax.models import locality
from privjax.models import node_model

_NUM_NODES = 9
_RADIUS = 'logits must depend on num_hops'
_EDGE = 'an edge must act only through'


def _graph():
  """Returns a path of 8 nodes with one chord, and an isolated node."""
  nodes = np.arange(7)
  path = np.stack([nodes, nodes + 1], axis=1).tolist()
  return graphs.from_pairs(_NUM_NODES, [*path, [1, 3]])[0]


def _features(dtype=np.float64):
  rng = prng.generator(0, 'locality_test')
  return scipy.sparse.csr_array(rng.normal(size=(_NUM_NODES, 3)).astype(dtype))


def _gcn():
  rng = prng.generator(0, 'locality_test', 'params')
  draw = lambda *shape: rng.normal(size=shape).astype(np.float32)
  params = {
    'hidden': {'kernel': draw(3, 4), 'bias': draw(4)},
    'output': {'kernel': draw(4, 2), 'bias': draw(2)},
  }
  return gcn.model(params)._replace(apply_fn=jax.jit(gcn.apply))


def _sum_over_edges(values, graph):
  return jax.ops.segment_sum(
    values, graph.receivers, num_segments=graph.nodes['features'].shape[0]
  )


def _mean_pooling(params, graph):
  logits = gcn.apply(params, graph)
  return logits + logits.mean(axis=0, keepdims=True)


def _recounted_degrees(params, graph):
  degree = _sum_over_edges(graph.edges['mask'], graph)
  nodes = {**graph.nodes, 'degree': degree}
  return gcn.apply(params, graph._replace(nodes=nodes))


def _ignored_mask(params, graph):
  mask = jnp.ones_like(graph.edges['mask'])
  return gcn.apply(params, graph._replace(edges={'mask': mask}))


def _not_finite(params, graph):
  return gcn.apply(params, graph) * jnp.nan


def _one_hop_mean(params, graph):
  """Returns the mean of the neighbors' features, a local model of one hop."""
  del params
  x = jnp.asarray(graph.nodes['features'])
  total = _sum_over_edges(
    x[graph.senders] * graph.edges['mask'][:, None], graph
  )
  return total / jnp.maximum(graph.nodes['degree'], 1)[:, None]


class CheckLocalityTest(parameterized.TestCase):
  def _check(self, model, nodes=range(_NUM_NODES), features=None, **options):
    features = _features() if features is None else features
    locality.check_locality(
      model, _graph(), features, np.array(nodes), **options
    )

  def test_passes_a_gcn(self):
    self._check(_gcn(), [0, 3, 8])

  def test_passes_a_gcn_with_the_features_of_a_data_set(self):
    # Float32 parameters and features are exact in float64, where it compares.
    self._check(
      _gcn(), [0, 3, 8], features=_features(np.float32), tolerance=1e-14
    )

  def test_passes_a_gcn_with_hops_to_spare(self):
    self._check(_gcn()._replace(num_hops=3), nodes=[0, 4])

  def test_passes_another_local_model(self):
    self._check(node_model.NodeModel(jax.jit(_one_hop_mean), {}, 1))

  @parameterized.named_parameters(
    ('mean_pooling', _mean_pooling, _RADIUS),
    ('recounted_degrees', _recounted_degrees, _RADIUS),
    ('ignored_mask', _ignored_mask, _EDGE),
    ('not_finite', _not_finite, _RADIUS),
  )
  def test_fails(self, apply_fn, clause):
    with self.assertRaisesRegex(ValueError, f'local at node 0: {clause}'):
      self._check(_gcn()._replace(apply_fn=jax.jit(apply_fn)))

  @parameterized.parameters(0, 1)
  def test_fails_understated_hops(self, num_hops):
    with self.assertRaisesRegex(ValueError, f'local at node 0: {_RADIUS}'):
      self._check(_gcn()._replace(num_hops=num_hops))

  def test_fails_the_one_hop_model_at_zero_hops(self):
    with self.assertRaisesRegex(ValueError, f'local at node 0: {_RADIUS}'):
      self._check(node_model.NodeModel(jax.jit(_one_hop_mean), {}, 0))

  def test_names_the_first_node_that_fails(self):
    # The isolated node 8 is exact at any radius; node 5 is not.
    with self.assertRaisesRegex(ValueError, 'local at node 5: '):
      self._check(_gcn()._replace(num_hops=0), nodes=[8, 5, 4])
