"""One target's receptive field in a noisy graph that is never drawn whole.

Where noise acts on every pair independently (EdgeRand, Gaussian noise with a
threshold), the ball around a target follows from the pairs at its inner nodes:
those are drawn, then the pairs among the nodes on its rim, then for each node
of the rim only *how many* neighbors it has outside, which its degree counts.
The cost grows with the ball, not with the graph.

This does not work where keeping one pair depends on all others: top-M and
LapGraph. Their outputs are as large as the graph itself, so draw them whole.

>>> from privjax import prng
>>> path, _ = graphs.from_pairs(10**6, [[0, 1], [1, 2], [2, 3]])
>>> field = sample_field(
...   prng.generator(0, 'doctest'), path, 0,
...   num_hops=2, keep_prob=1.0, false_prob=0.0,
... )
>>> field.node_ids.tolist(), field.boundary_degree.tolist()
([0, 1, 2], [1, 2, 2])

The edges are private, and so is the field; probabilities are public.
"""

import numpy as np

from privjax import _validate
from privjax import graphs
from privjax.mechanisms import sparse_noise
from privjax.placement import pairs as pairs_lib


class _Channel:
  """Draws parts of the noisy graph; no pair may be drawn twice."""

  def __init__(self, rng, graph, keep_prob, false_prob, max_edges):
    self._rng = rng
    self._graph = graph
    self._probs = {'keep_prob': keep_prob, 'false_prob': false_prob}
    self._max_edges = max_edges
    self._num_drawn = 0

  def check_rows(self, nodes: np.ndarray) -> None:
    """Checks that the noisy neighbors of `nodes` fit, in expectation."""
    keep, false = self._probs.values()
    own = self._graph.degree[nodes].sum()
    zeros = len(nodes) * (self._graph.num_nodes - 1) - own
    expected = self._num_drawn + own * keep + zeros * false
    sparse_noise.check_fits(expected, self._max_edges)

  def _flip(self, ones: np.ndarray, size: int) -> np.ndarray:
    drawn = sparse_noise.flip(
      self._rng,
      ones,
      size,
      max_ones=self._max_edges - self._num_drawn,
      **self._probs,
    )
    self._num_drawn += len(drawn)
    return drawn

  def row(self, node: int, done: np.ndarray) -> np.ndarray:
    """Returns the noisy neighbors of `node` outside `done`, `[D, 2]` pairs."""
    excluded = np.union1d(done, node)
    own = np.setdiff1d(self._graph.neighbors(node), done)
    ranks = own - np.searchsorted(excluded, own)
    drawn = self._flip(ranks, self._graph.num_nodes - len(excluded))
    found = sparse_noise.unrank(drawn, excluded)
    return np.stack([np.full(len(found), node), found], axis=1)

  def among(self, nodes: np.ndarray) -> np.ndarray:
    """Returns the noisy pairs among ascending `nodes`, `[D, 2]`."""
    if len(nodes) < 2:
      return np.zeros((0, 2), np.int64)
    neighbors, lengths = graphs.neighbor_lists(self._graph, nodes)
    first = np.repeat(nodes, lengths)
    own = np.isin(neighbors, nodes) & (first < neighbors)
    local = np.searchsorted(nodes, np.stack([first[own], neighbors[own]], 1))
    index = np.sort(pairs_lib.index_of(local, len(nodes)))
    drawn = self._flip(index, pairs_lib.num_pairs(len(nodes)))
    return nodes[pairs_lib.pair_at(drawn, len(nodes))]

  def num_outside(self, nodes: np.ndarray, ball: np.ndarray) -> np.ndarray:
    """Returns how many noisy neighbors outside `ball` each node has."""
    neighbors, lengths = graphs.neighbor_lists(self._graph, nodes)
    owner = np.repeat(np.arange(len(nodes)), lengths)
    own = np.bincount(owner[~np.isin(neighbors, ball)], minlength=len(nodes))
    zeros = self._graph.num_nodes - len(ball) - own
    kept = self._rng.binomial(own, self._probs['keep_prob'])
    return kept + self._rng.binomial(zeros, self._probs['false_prob'])


def sample_field(
  rng: np.random.Generator,
  graph: graphs.Graph,
  target: int,
  *,
  num_hops: int,
  keep_prob: float,
  false_prob: float,
  max_edges: int = sparse_noise.MAX_ONES,
) -> graphs.ReceptiveField:
  """Draws the receptive field of `target` in a noisy graph.

  Args:
    rng: advanced.
    graph: the private graph.
    target: node id.
    num_hops: radius, >= 0.
    keep_prob: probability that an edge stays.
    false_prob: probability that another pair becomes an edge.
    max_edges: the largest expected number of drawn edges.

  Returns:
    A field with the joint law (nodes, edges, degrees) of
    `graphs.extract_receptive_field` on the whole noisy graph; not padded.

  Raises:
    sparse_noise.OutputTooLargeError: with the expected count.
  """
  _validate.integer(0, graph.num_nodes - 1, target=target)
  _validate.integer(0, num_hops=num_hops)
  channel = _Channel(rng, graph, keep_prob, false_prob, max_edges)
  ball = rim = np.array([target], np.int64)
  done = np.zeros(0, np.int64)
  drawn = [np.zeros((0, 2), np.int64)]
  for _ in range(num_hops):
    channel.check_rows(rim)
    found = [np.zeros((0, 2), np.int64)]
    for node in rim:
      found.append(channel.row(int(node), done))
      done = np.union1d(done, node)
    rim = np.setdiff1d(np.concatenate(found)[:, 1], ball)
    ball = np.union1d(ball, rim)
    drawn += found
  drawn.append(channel.among(rim))
  degree = np.zeros(len(ball), np.int64)
  degree[np.searchsorted(ball, rim)] = channel.num_outside(rim, ball)
  inside = np.searchsorted(ball, np.concatenate(drawn))
  return _as_field(ball, inside, degree, target, num_hops)


def _as_field(ball, inside, num_outside, target, num_hops):
  """Relabels the ball's graph by node ids, with degrees of the whole graph."""
  small, _ = graphs.from_pairs(len(ball), inside)
  field = graphs.extract_receptive_field(
    small, int(np.searchsorted(ball, target)), num_hops=num_hops
  )
  return field._replace(
    node_ids=ball[field.node_ids],
    boundary_degree=field.boundary_degree + num_outside[field.node_ids],
  )
