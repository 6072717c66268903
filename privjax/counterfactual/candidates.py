"""The support: every way to delete few pairs and mask few features.

The support is a product, `edge subsets x feature subsets`, and is stored as
its two factors: 79 x 299 = 23,621 candidates at the paper's settings.

>>> len(subsets(12, 2)), len(subsets(12, 3))
(79, 299)
"""

import functools
import itertools

import flax.struct
import numpy as np

from privjax import _validate
from privjax.counterfactual import universe as universe_lib


@flax.struct.dataclass
class CandidateSet:
  """The support of a release, as the product of two lists of subsets.

  Candidate (a, b) deletes the pairs of `edge_subsets[a]` and masks the
  features of `feature_subsets[b]`; (0, 0) is the empty set. Rows are ordered
  by size, then lexicographically. Rows that name padding are not `valid`:
  shapes stay fixed, and they never enter a law, whatever an evaluator says of
  them.

  Attributes:
    universe: what the subsets index into.
    edge_subsets: `[A, k_E]` bool.
    feature_subsets: `[B, k_F]` bool.
    edge_sizes: `[A]` int64, number of pairs named.
    feature_sizes: `[B]` int64, number of features named.
    edge_valid: `[A]` bool.
    feature_valid: `[B]` bool.
    max_edges: k_E^max, static.
    max_features: k_F^max, static.
  """

  universe: universe_lib.Universe
  edge_subsets: np.ndarray
  feature_subsets: np.ndarray
  edge_sizes: np.ndarray
  feature_sizes: np.ndarray
  edge_valid: np.ndarray
  feature_valid: np.ndarray
  max_edges: int = flax.struct.field(pytree_node=False)
  max_features: int = flax.struct.field(pytree_node=False)

  @property
  def k_max(self) -> int:
    """The largest number of elements that a candidate may name."""
    return self.max_edges + self.max_features

  @property
  def valid(self) -> np.ndarray:
    """`[A, B]` bool: which candidates are in the support."""
    return self.edge_valid[:, None] & self.feature_valid[None, :]

  @property
  def sizes(self) -> np.ndarray:
    """`[A, B]` int64: the number of elements that each candidate names."""
    return self.edge_sizes[:, None] + self.feature_sizes[None, :]

  @property
  def support_size(self) -> int:
    """The number of valid candidates; public."""
    return int(self.edge_valid.sum()) * int(self.feature_valid.sum())


def enumerate_candidates(
  universe: universe_lib.Universe, *, max_edges: int = 2, max_features: int = 3
) -> CandidateSet:
  """Enumerates the support over a universe. Public in, public out.

  Args:
    universe: the padded public universe.
    max_edges: k_E^max >= 0, most pairs deleted by one candidate.
    max_features: k_F^max >= 0, most features masked by one candidate.

  Raises:
    ValueError: if k_max = max_edges + max_features < 1.
  """
  _validate.integer(0, max_edges=max_edges)
  _validate.integer(0, max_features=max_features)
  _validate.integer(1, k_max=max_edges + max_features)
  edge_subsets = subsets(len(universe.pairs), max_edges)
  feature_subsets = subsets(len(universe.features), max_features)
  return CandidateSet(
    universe=universe,
    edge_subsets=edge_subsets,
    feature_subsets=feature_subsets,
    edge_sizes=edge_subsets.sum(axis=1),
    feature_sizes=feature_subsets.sum(axis=1),
    edge_valid=~np.any(edge_subsets & ~universe.pair_valid, axis=1),
    feature_valid=~np.any(feature_subsets & ~universe.feature_valid, axis=1),
    max_edges=max_edges,
    max_features=max_features,
  )


@functools.lru_cache(maxsize=32)
def subsets(num_elements: int, max_size: int) -> np.ndarray:
  """Returns `[S, num_elements]` bool, all subsets of at most `max_size`.

  The array is shared between calls and read-only.
  """
  rows = [
    combination
    for size in range(min(max_size, num_elements) + 1)
    for combination in itertools.combinations(range(num_elements), size)
  ]
  result = np.zeros((len(rows), num_elements), bool)
  for index, row in enumerate(rows):
    result[index, list(row)] = True
  result.setflags(write=False)
  return result
