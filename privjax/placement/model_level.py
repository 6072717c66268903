"""Model-level placement: a backbone whose training never saw the edges.

The backbone is trained, and predicts, on a graph that a graph-level mechanism
drew (DPGCN with LapGraph or EdgeRand: Wu et al., 2022). Parameters and
predictions are then post-processing of one noisy graph, and its guarantee is
theirs: there is nothing else to account for, however many steps are taken and
however many predictions follow.

>>> from privjax import graphs
>>> from privjax import prng
>>> from privjax.placement import edge_rand
>>> path, _ = graphs.from_pairs(4, [[0, 1], [1, 2], [2, 3]])
>>> noisy = edge_rand.privatize(graphs.PrivateGraph(path), epsilon=2, seed=0)
>>> backbone = train_backbone(
...   prng.key(0), noisy, scipy.sparse.csr_array(np.eye(4, dtype=np.float32)),
...   np.array([0, 0, 1, 1]), np.array([0, 3]), num_classes=2,
...   config=models.TrainingConfig(num_steps=1),
... )
>>> backbone.guarantee.epsilon
Fraction(2, 1)

Features, labels, the split and the key are public; the private edges enter
through the noisy graph alone, which is why no function here takes a
`PrivateGraph`. To predict on the private edges with this backbone is another
release, which this guarantee does not cover.
"""

from typing import NamedTuple

import numpy as np
import scipy.sparse

from privjax import models
from privjax import types
from privjax.placement import noisy_graph

_DEFAULT = models.TrainingConfig()


class PrivateBackbone(NamedTuple):
  """A backbone and the graph that it was trained on and predicts on.

  Attributes:
    model: the trained classifier.
    noisy: the noisy graph.
  """

  model: models.NodeModel
  noisy: noisy_graph.NoisyGraph

  @property
  def guarantee(self) -> types.PrivacyGuarantee:
    """What the parameters, with all predictions on `noisy`, satisfy."""
    return self.noisy.guarantee

  @property
  def certified(self) -> bool:
    """False: the noisy graph is a seeded simulation."""
    return self.noisy.certified


def train_backbone(
  key: types.KeyArray,
  noisy: noisy_graph.NoisyGraph,
  features: scipy.sparse.csr_array,
  labels: types.Array,
  train_index: types.Array,
  *,
  num_classes: int,
  config: models.TrainingConfig = _DEFAULT,
) -> PrivateBackbone:
  """Trains a GCN on the noisy graph.

  Args:
    key: names the initialization; folded, not consumed.
    noisy: the noisy graph, with a guarantee that names an epsilon.
    features: `[N, F]` public features.
    labels: `[N]` public classes in [0, K).
    train_index: `[T]` public ids of the training nodes.
    num_classes: K >= 2.
    config: hyperparameters.

  Raises:
    ValueError: if the noisy graph's guarantee claims no epsilon.

  Formal guarantees:
    That of the noisy graph, unchanged: post-processing (Dwork & Roth, 2014,
    Proposition 2.1). Choosing hyperparameters by accuracy on the private graph
    would not be covered.
  """
  if noisy.guarantee.epsilon is None:
    raise ValueError(
      'noisy must have a guarantee that names an epsilon, got '
      f'{noisy.guarantee.theorem!r}'
    )
  dense = features.toarray().astype(np.float32)
  params = models.train(
    key,
    noisy_graph.to_message_graph(noisy, dense),
    np.asarray(labels),
    np.asarray(train_index),
    num_classes=num_classes,
    config=config,
  )
  return PrivateBackbone(models.gcn.model(params), noisy)
