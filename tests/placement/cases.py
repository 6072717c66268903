"""Small worlds for the placements."""

import numpy as np
import scipy.sparse

from privjax import graphs
from privjax import models
from privjax import prng
from privjax import types
from privjax.placement import noisy_graph

NUM_NODES = 10
NUM_FEATURES = 6
PATH = ((0, 1), (1, 2), (2, 3))
NO_CLAIM = types.PrivacyGuarantee(
  epsilon=None,
  relation=types.NeighboringRelation.ADD_REMOVE_ONE_EDGE,
  theorem='NOT PROVEN: a test',
)


def private(num_nodes, pairs) -> graphs.PrivateGraph:
  """Returns a private graph."""
  return graphs.PrivateGraph(graphs.from_pairs(num_nodes, list(pairs))[0])


def random_private(seed, num_nodes=NUM_NODES, num_pairs=14):
  """Returns a random private graph."""
  rng = prng.generator(seed, 'placement cases')
  return private(num_nodes, rng.integers(0, num_nodes, (num_pairs, 2)))


def features(seed=0, num_nodes=NUM_NODES) -> scipy.sparse.csr_array:
  """Returns random features."""
  rng = prng.generator(seed, 'placement features')
  return scipy.sparse.csr_array(rng.normal(size=(num_nodes, NUM_FEATURES)))


def model(seed=0) -> models.NodeModel:
  """Returns a GCN with random parameters and three classes."""
  rng = prng.generator(seed, 'placement model')
  return models.gcn.model(
    {
      'hidden': {
        'kernel': rng.normal(size=(NUM_FEATURES, 5)),
        'bias': rng.normal(size=5) / 4,
      },
      'output': {
        'kernel': rng.normal(size=(5, 3)),
        'bias': rng.normal(size=3) / 4,
      },
    }
  )


def noisy(graph: graphs.Graph, weights=None) -> noisy_graph.NoisyGraph:
  """Returns a graph as if a placement had drawn it."""
  return noisy_graph.NoisyGraph(
    graph=graph, weights=weights, guarantee=NO_CLAIM
  )


def dense_logits(params, adjacency, x) -> np.ndarray:
  """Returns the logits of the GCN on a weighted adjacency, by its formula."""
  total = adjacency + np.eye(len(adjacency))
  scale = 1 / np.sqrt(total.sum(axis=1))
  normalized = scale[:, None] * total * scale[None, :]
  hidden = normalized @ x @ params['hidden']['kernel']
  hidden = np.maximum(hidden + params['hidden']['bias'][None, :], 0)
  output = normalized @ hidden @ params['output']['kernel']
  return output + params['output']['bias'][None, :]


def adjacency(graph: noisy_graph.NoisyGraph) -> np.ndarray:
  """Returns the `[N, N]` weighted adjacency."""
  dense = np.zeros((graph.graph.num_nodes,) * 2)
  weights = graph.weights
  for row, (i, j) in enumerate(graph.graph.pairs):
    dense[i, j] = dense[j, i] = 1 if weights is None else weights[row]
  return dense
