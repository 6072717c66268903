"""The backbone of a noisy graph; see `mutants_test` for its privacy."""

import dataclasses

from absl.testing import parameterized
import numpy as np

from privjax import models
from privjax import prng
from privjax.placement import edge_rand
from privjax.placement import model_level
from privjax.placement import noisy_graph
from tests.placement import cases


def _train(noisy, steps=2):
  return model_level.train_backbone(
    prng.key(0),
    noisy,
    cases.features(),
    np.arange(cases.NUM_NODES) % 3,
    np.arange(6),
    num_classes=3,
    config=models.TrainingConfig(num_steps=steps),
  )


class TrainBackboneTest(parameterized.TestCase):
  def test_is_training_on_the_noisy_graph(self):
    noisy = edge_rand.privatize(cases.random_private(0), epsilon=2, seed=0)
    found = _train(noisy)
    x = cases.features().toarray().astype(np.float32)
    expected = models.train(
      prng.key(0),
      noisy_graph.to_message_graph(noisy, x),
      np.arange(cases.NUM_NODES) % 3,
      np.arange(6),
      num_classes=3,
      config=models.TrainingConfig(num_steps=2),
    )
    np.testing.assert_array_equal(
      found.model.params['output']['kernel'], expected['output']['kernel']
    )
    self.assertEqual(found.guarantee, edge_rand.guarantee(2))
    self.assertFalse(found.certified)

  def test_weights_matter(self):
    graph = cases.random_private(0).graph
    claim = edge_rand.guarantee(1)
    plain = noisy_graph.NoisyGraph(graph=graph, guarantee=claim)
    halved = dataclasses.replace(plain, weights=np.full(graph.num_edges, 0.5))
    kernels = [
      _train(g).model.params['hidden']['kernel'] for g in (plain, halved)
    ]
    self.assertFalse(np.array_equal(*kernels))

  def test_refuses_a_graph_without_a_claim(self):
    with self.assertRaisesRegex(ValueError, 'noisy must .* got .NOT PROVEN'):
      _train(cases.noisy(cases.random_private(0).graph))
