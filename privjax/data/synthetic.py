"""The embedded data set: a synthetic citation graph that needs no file.

It stands in for Cora, at its scale, where there is no network. A node has a
hidden topic. Citations follow a degree-corrected stochastic block model on the
topics (Karrer and Newman, 2011) and some wedges are closed; words lean on the
topic; the label is the topic but for one node in ten, which no model can know.

>>> dataset = citation_graph()
>>> dataset.graph.graph.num_nodes, dataset.graph.graph.num_edges
(2708, 5293)

The bits are the same on every machine: draws come from `Generator.random`
alone, and the rest is integers, sorting and correctly rounded arithmetic.
"""

import numpy as np
import scipy.sparse

from privjax import prng
from privjax.data import node_dataset
from privjax.graphs import graph as graph_lib

_TOPIC_SIZES = (780, 460, 420, 350, 300, 218, 180)  # Sum 2,708.
_NUM_NODES = sum(_TOPIC_SIZES)
_NUM_CLASSES = len(_TOPIC_SIZES)
_FILED_ELSEWHERE = 0.1
_NUM_CITATIONS = 4100
_NUM_CLOSURES = 2150
_SAME_TOPIC = 0.96
_NUM_WORDS = 1433
_NUM_WORD_SLOTS = 24
_WORD_USED = 0.78
_TOPICAL = 0.22
_NUM_TRAIN_PER_CLASS = 20
_NUM_VAL = 500
_NUM_TEST = 1000


def citation_graph(seed: int = 0) -> node_dataset.NodeDataset:
  """Builds the synthetic citation graph.

  Args:
    seed: in [0, 2**32); 0 is the data set called 'embedded'.

  Returns:
    A data set of 2,708 nodes in 7 classes, with 0/1 words as features. Its
    split is Planetoid's: 20 nodes per class train, 500 validate, 1,000 test.

  Raises:
    ValueError: if `seed` is out of range.
  """
  rng = prng.generator(seed, 'citation_graph')
  topic = _topics(rng)
  labels = _labels(rng, topic)
  graph, counts = graph_lib.from_pairs(_NUM_NODES, _pairs(rng, topic))
  train, val, test = _split(rng, labels)
  return node_dataset.NodeDataset(
    name='embedded',
    graph=graph_lib.PrivateGraph(graph),
    features=_words(rng, topic),
    labels=labels,
    num_classes=_NUM_CLASSES,
    train_index=train,
    val_index=val,
    test_index=test,
    counts=counts,
  )


def _below(rng: np.random.Generator, bound: np.ndarray) -> np.ndarray:
  """Draws one integer in [0, bound) per entry; bounds are far below 2**53."""
  return (rng.random(len(bound)) * bound).astype(np.int64)


def _permutation(rng: np.random.Generator, size: int) -> np.ndarray:
  # Not `Generator.permutation`, whose stream NumPy may change (NEP 19).
  return np.argsort(rng.random(size), kind='stable')


def _topics(rng: np.random.Generator) -> np.ndarray:
  by_topic = np.repeat(np.arange(_NUM_CLASSES), _TOPIC_SIZES)
  return by_topic[_permutation(rng, _NUM_NODES)]


def _labels(rng: np.random.Generator, topic: np.ndarray) -> np.ndarray:
  """Files each node under its topic, or now and then under another."""
  elsewhere = rng.random(_NUM_NODES) < _FILED_ELSEWHERE
  shift = 1 + _below(rng, np.full(_NUM_NODES, _NUM_CLASSES - 1))
  return (topic + elsewhere * shift) % _NUM_CLASSES


class _Urn:
  """Weighted items in groups: drawn from one group, or from all."""

  def __init__(self, rng: np.random.Generator, group: np.ndarray):
    # P(weight > w) falls as w**-1.6, up to a cap, which gives a few hubs.
    # Nested roots, since `sqrt`, unlike `**`, rounds alike on every machine.
    uniform = 1 - rng.random(len(group))
    root = np.sqrt(uniform * np.sqrt(np.sqrt(uniform)))
    weight = np.minimum(8 / root, 512).astype(np.int64)
    order = np.argsort(group, kind='stable')
    self._balls = np.repeat(order, weight[order])
    self._size = np.zeros(_NUM_CLASSES, np.int64)
    np.add.at(self._size, group, weight)
    self._start = np.cumsum(self._size) - self._size

  def draw(
    self, rng: np.random.Generator, group: np.ndarray, from_group: np.ndarray
  ) -> np.ndarray:
    """Draws one item per entry: from its group, or where False from all."""
    start = np.where(from_group, self._start[group], 0)
    size = np.where(from_group, self._size[group], len(self._balls))
    return self._balls[start + _below(rng, size)]


def _pairs(rng: np.random.Generator, topic: np.ndarray) -> np.ndarray:
  """Draws citations, then closes wedges; `[P, 2]` with repeats and loops."""
  urn = _Urn(rng, topic)
  # Every node cites once, so that none is isolated; hubs cite more.
  num_extra = _NUM_CITATIONS - _NUM_NODES
  extra = urn.draw(
    rng, np.zeros(num_extra, np.int64), np.zeros(num_extra, bool)
  )
  citing = np.concatenate([np.arange(_NUM_NODES), extra])
  same_topic = rng.random(len(citing)) < _SAME_TOPIC
  cited = urn.draw(rng, topic[citing], same_topic)
  cited = np.where(cited == citing, (citing + 1) % _NUM_NODES, cited)
  citations = np.stack([citing, cited], axis=1)
  return np.concatenate([citations, _closures(rng, citations)])


def _closures(rng: np.random.Generator, citations: np.ndarray) -> np.ndarray:
  """Joins the ends of random wedges; one that folds back is a loop."""
  graph, _ = graph_lib.from_pairs(_NUM_NODES, citations)
  edge = _below(rng, np.full(_NUM_CLOSURES, graph.num_edges))
  end, middle = graph.pairs[edge].T
  slot = graph.indptr[middle] + _below(rng, graph.degree[middle])
  return np.stack([end, graph.indices[slot]], axis=1)


def _words(
  rng: np.random.Generator, topic: np.ndarray
) -> scipy.sparse.csr_array:
  """Draws each node's words, some of them from the words of its topic."""
  urn = _Urn(rng, np.arange(_NUM_WORDS) % _NUM_CLASSES)
  node = np.repeat(np.arange(_NUM_NODES), _NUM_WORD_SLOTS)
  node = node[rng.random(len(node)) < _WORD_USED]
  topical = rng.random(len(node)) < _TOPICAL
  word = urn.draw(rng, topic[node], topical)
  cells = np.unique(node * _NUM_WORDS + word)
  return node_dataset.canonical_features(
    scipy.sparse.coo_array(
      (np.ones(len(cells)), (cells // _NUM_WORDS, cells % _NUM_WORDS)),
      shape=(_NUM_NODES, _NUM_WORDS),
    )
  )


def _split(
  rng: np.random.Generator, labels: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
  order = _permutation(rng, _NUM_NODES)
  train = np.concatenate(
    [
      order[labels[order] == label][:_NUM_TRAIN_PER_CLASS]
      for label in range(_NUM_CLASSES)
    ]
  )
  rest = order[~np.isin(order, train)]
  return train, rest[:_NUM_VAL], rest[_NUM_VAL : _NUM_VAL + _NUM_TEST]
