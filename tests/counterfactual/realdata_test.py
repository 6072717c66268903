"""The evaluators on the real citation graphs."""

import functools
import os

from absl.testing import parameterized
import jax
import numpy as np
import pytest
import scipy.sparse

from experiments import worlds
from privjax import counterfactual
from privjax import data
from privjax import graphs
from privjax import models
from privjax.data import sources

_DATA_DIR = os.environ.get(sources.DATA_DIR_VARIABLE)
_NUM_WORDS = 100  # The reference multiplies dense features for each candidate.


@functools.lru_cache
def _load(name):
  """Returns the graph, its features (the most common words) and a backbone."""
  dataset = data.planetoid.load(name, _DATA_DIR)
  counts = np.asarray(dataset.features.sum(axis=0)).ravel()
  words = np.sort(np.argsort(-counts, kind='stable')[:_NUM_WORDS])
  features = scipy.sparse.csr_array(dataset.features[:, words])
  init = functools.partial(
    models.gcn.init,
    num_features=_NUM_WORDS,
    num_hidden=16,
    num_classes=dataset.num_classes,
  )
  params = jax.jit(init)(jax.random.key(np.uint32(0)))
  return dataset.graph, features, models.gcn.model(params)


def _targets(graph):
  """The hub, a node of degree 1 and one with triangles at its feet."""
  degree = graph.graph.degree
  hub = int(degree.argmax())
  leaf = int(np.flatnonzero(degree == 1)[0])
  near = graph.graph.neighbors(hub)
  adjacent = [len(np.intersect1d(graph.graph.neighbors(u), near)) for u in near]
  return {'hub': hub, 'leaf': leaf, 'triangle': int(near[np.argmax(adjacent)])}


@pytest.mark.realdata
@pytest.mark.skipif(
  not _DATA_DIR,
  reason=f'needs the Planetoid files: set {sources.DATA_DIR_VARIABLE}',
)
class RealDataTest(parameterized.TestCase):
  def _assert_agree(self, result, expected):
    np.testing.assert_array_equal(result.label, expected.label)
    np.testing.assert_array_equal(result.flips, expected.flips)
    np.testing.assert_array_equal(
      result.existing_edges, expected.existing_edges
    )
    np.testing.assert_allclose(result.gap, expected.gap, rtol=0, atol=1e-12)

  def test_three_evaluators_on_the_hub_of_cora(self):
    self._check_three('cora', 'hub', max_edges=1)

  @parameterized.product(
    name=('cora', 'citeseer'), kind=('hub', 'leaf', 'triangle')
  )
  @pytest.mark.slow
  def test_three_evaluators(self, name, kind):
    self._check_three(name, kind, max_edges=2)

  def _check_three(self, name, kind, *, max_edges):
    graph, features, model = _load(name)
    config = counterfactual.PrivCFSConfig(
      num_pairs=3,
      max_edges=max_edges,
      num_features=2,
      max_features=1,
      num_hops=2,
    )
    target = _targets(graph)[kind]
    candidates = counterfactual.support(
      graphs.simulate_snapshot(graph, rho='0.7', seed=0),
      features,
      model.params['hidden']['kernel'],
      target,
      config,
    )
    args = (model, graph, features, candidates)
    expected = counterfactual.evaluate_full_graph(*args)
    self._assert_agree(counterfactual.evaluate_factored(*args), expected)
    self._assert_agree(counterfactual.evaluate_subgraph(*args), expected)

  @parameterized.parameters(('cora', 2025), ('citeseer', 2361))
  @pytest.mark.slow
  def test_the_whole_support_with_a_committed_backbone(self, name, target):
    world = worlds.load(name, 0, _DATA_DIR)
    graph, features = world.dataset.graph, world.dataset.features
    candidates = counterfactual.support(
      graphs.Snapshot(graph.graph, 'simulated'),
      features,
      world.model.params['hidden']['kernel'],
      target,
    )
    args = (world.model, graph, features, candidates)
    factored = counterfactual.evaluate_factored(*args)
    self.assertEqual(candidates.support_size, 23_621)
    self.assertGreater(factored.flips.sum(), 0)
    self._assert_agree(factored, counterfactual.evaluate_subgraph(*args))

  @parameterized.parameters('cora', 'citeseer')
  @pytest.mark.slow
  def test_the_whole_support_of_random_weights(self, name):
    graph, features, model = _load(name)
    candidates = counterfactual.support(
      graphs.Snapshot(graph.graph, 'simulated'),
      features,
      model.params['hidden']['kernel'],
      _targets(graph)['triangle'],
      counterfactual.PrivCFSConfig(num_features=6),
    )
    args = (model, graph, features, candidates)
    self._assert_agree(
      counterfactual.evaluate_factored(*args),
      counterfactual.evaluate_subgraph(*args),
    )
