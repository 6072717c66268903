"""Small problems, fast and oracle side by side.

Every problem has the same public sizes, so that each jitted stage is compiled
once for the whole folder.
"""

import hashlib
import itertools
from typing import NamedTuple

import hypothesis.strategies as st
import numpy as np
import scipy.sparse

from privjax import counterfactual
from privjax import graphs
from privjax import models
from privjax.counterfactual import factored
from tests.oracles import counterfactual as oracle

NUM_NODES = 8
NUM_FEATURES = 6
NUM_HIDDEN = 5
NUM_CLASSES = 3
# Pads every receptive field to the whole of the largest possible graph.
NEIGHBORS = factored.NeighborCapacity(NUM_NODES, NUM_NODES)
CAPACITY = graphs.Capacity(
  num_nodes=NUM_NODES, num_edges=NUM_NODES * (NUM_NODES - 1)
)
ALL_PAIRS = tuple(itertools.combinations(range(NUM_NODES), 2))
CONFIG = counterfactual.PrivCFSConfig(
  num_pairs=5, max_edges=2, num_features=4, max_features=2
)
TWO_HOP = counterfactual.PrivCFSConfig(
  num_pairs=5, max_edges=2, num_features=4, max_features=2, num_hops=2
)


class Case(NamedTuple):
  """One problem: public objects, the private graph and a target."""

  params: dict
  private: graphs.PrivateGraph
  snapshot: graphs.Snapshot
  features: scipy.sparse.csr_array
  target: int

  @property
  def model(self) -> models.NodeModel:
    """The frozen backbone."""
    return models.gcn.model(self.params)

  @property
  def edges(self) -> set:
    """The private graph, for the oracle."""
    return oracle.edge_set(self.private.graph.pairs)

  def support(self, config=CONFIG) -> counterfactual.CandidateSet:
    """The support by the fast code."""
    kernel = self.params['hidden']['kernel']
    return counterfactual.support(
      self.snapshot, self.features, kernel, self.target, config
    )

  def subsets(self, config=CONFIG) -> tuple[list, list]:
    """The support by the oracle: edge subsets and feature subsets."""
    snapshot = oracle.edge_set(self.snapshot.graph.pairs)
    pairs = oracle.universe_pairs(
      snapshot, self.target, config.num_pairs, config.num_hops
    )
    dims = oracle.universe_features(
      self.features.toarray(),
      self.params['hidden']['kernel'],
      self.target,
      config.num_features,
      config.feature_masks == 'inert',
    )
    return (
      oracle.subsets([frozenset(pair) for pair in pairs], config.max_edges),
      oracle.subsets(dims, config.max_features),
    )

  def scores(self, config=CONFIG) -> oracle.Scores:
    """The evaluation by the oracle."""
    return oracle.evaluate(
      self.params,
      self.edges,
      self.features.toarray(),
      self.target,
      *self.subsets(config),
      inert=config.feature_masks == 'inert',
    )


def private_graph(pairs, num_nodes: int = NUM_NODES) -> graphs.PrivateGraph:
  """Returns the private graph on `pairs`."""
  pairs = np.array(list(pairs), np.int64).reshape(-1, 2)
  return graphs.PrivateGraph(graphs.from_pairs(num_nodes, pairs)[0])


def snapshot_of(pairs, num_nodes: int = NUM_NODES) -> graphs.Snapshot:
  """Returns the external snapshot on `pairs`."""
  return graphs.Snapshot(private_graph(pairs, num_nodes).graph, 'external')


def random_params(rng, num_features=NUM_FEATURES) -> dict:
  """Returns Gaussian float64 parameters; logits of ties are improbable."""
  return {
    'hidden': {
      'kernel': rng.normal(size=(num_features, NUM_HIDDEN)),
      'bias': 0.1 * rng.normal(size=NUM_HIDDEN),
    },
    'output': {
      'kernel': rng.normal(size=(NUM_HIDDEN, NUM_CLASSES)),
      'bias': 0.1 * rng.normal(size=NUM_CLASSES),
    },
  }


def random_features(rng) -> scipy.sparse.csr_array:
  """Returns about two thirds nonzero features, of both signs."""
  dense = rng.normal(size=(NUM_NODES, NUM_FEATURES))
  keep = rng.random(size=dense.shape) < 2 / 3
  return scipy.sparse.csr_array(dense * keep)


def make(pairs, *, target=0, seed=0, snapshot=None, features=None) -> Case:
  """Returns the case of a given private graph (and snapshot, if it differs)."""
  rng = np.random.default_rng(seed)
  params = random_params(rng)
  drawn = random_features(rng)
  return Case(
    params=params,
    private=private_graph(pairs),
    snapshot=snapshot_of(pairs if snapshot is None else snapshot),
    features=drawn if features is None else features,
    target=target,
  )


def random_case(seed: int, *, density=0.4, disclosed=0.8) -> Case:
  """Returns a random graph whose snapshot is mostly, not wholly, right."""
  rng = np.random.default_rng([seed, 7])
  edge = rng.random(len(ALL_PAIRS)) < density
  shown = np.where(edge, rng.random(len(edge)) < disclosed, False)
  shown |= rng.random(len(edge)) < 0.1
  pairs = np.array(ALL_PAIRS)
  return make(
    pairs[edge],
    snapshot=pairs[shown],
    target=int(rng.integers(NUM_NODES)),
    seed=seed,
  )


@st.composite
def any_case(draw) -> Case:
  """Draws any pair of graphs, any target, and Gaussian weights by seed."""
  bits = st.lists(
    st.booleans(), min_size=len(ALL_PAIRS), max_size=len(ALL_PAIRS)
  )
  select = lambda keep: list(itertools.compress(ALL_PAIRS, keep))
  return make(
    select(draw(bits)),
    snapshot=select(draw(bits)),
    target=draw(st.integers(0, NUM_NODES - 1)),
    seed=draw(st.integers(0, 2**32 - 1)),
  )


def digest(candidates: counterfactual.CandidateSet) -> str:
  """Returns the SHA-256 of everything that the support is made of."""
  universe = candidates.universe
  result = hashlib.sha256(repr(universe.target).encode())
  for array in (
    universe.pairs,
    universe.pair_valid,
    universe.features,
    universe.feature_valid,
    candidates.edge_subsets,
    candidates.feature_subsets,
    candidates.edge_valid,
    candidates.feature_valid,
  ):
    result.update(repr((array.shape, array.dtype.str)).encode())
    result.update(np.ascontiguousarray(array).tobytes())
  return result.hexdigest()


def valid_rows(array: np.ndarray, candidates) -> np.ndarray:
  """Returns `array` (`[A, B]`) without its padded rows and columns."""
  return array[np.ix_(candidates.edge_valid, candidates.feature_valid)]


def named(candidates: counterfactual.CandidateSet) -> tuple[list, list]:
  """Returns the valid subsets as sets of edges and of feature ids, in order."""
  universe = candidates.universe
  pairs = [frozenset(map(int, pair)) for pair in universe.pairs]
  dims = [int(dim) for dim in universe.features]
  choose = lambda items, rows, valid: [
    frozenset(itertools.compress(items, row)) for row in rows[valid]
  ]
  return (
    choose(pairs, candidates.edge_subsets, candidates.edge_valid),
    choose(dims, candidates.feature_subsets, candidates.feature_valid),
  )


def csr(rows) -> scipy.sparse.csr_array:
  """Returns dense rows as a float64 CSR array."""
  return scipy.sparse.csr_array(np.asarray(rows, np.float64))
