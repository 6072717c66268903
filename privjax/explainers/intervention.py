"""What an explainer returns, and what it does to a graph.

An intervention S deletes undirected edges anywhere in the graph and masks
features of the target (PrivCFS, eq. 1). It is applied exactly: an edge goes in
both directions and both ends lose a degree.

>>> import numpy as np, scipy.sparse
>>> path, _ = graphs.from_pairs(3, [[0, 1], [1, 2]])
>>> x = scipy.sparse.csr_array(np.ones((3, 2)))
>>> cut = Intervention(target=0, pairs=((1, 2),), features=(1,))
>>> edited, masked = apply_intervention(path, x, cut)
>>> edited.degree.tolist(), masked.toarray()[0].tolist()
([1, 1, 0], [1.0, 0.0])

The target, its features and the model are public. The graph is private, and so
are an explanation's labels and its validity.
"""

import dataclasses
from typing import Literal, NamedTuple

import numpy as np
import scipy.sparse

from privjax import _validate
from privjax import graphs

CURRENCIES = ('nothing', 'edges', 'features', 'edges+features')
Currency = Literal['nothing', 'edges', 'features', 'edges+features']


@dataclasses.dataclass(frozen=True, kw_only=True)
class Intervention:
  """A set of deletions and masks, in canonical order.

  Attributes:
    target: node id v.
    pairs: deleted undirected pairs (i, j), i < j, ascending. A pair that is no
      edge of the graph is named and does nothing.
    features: masked feature ids of the target, ascending.
  """

  target: int
  pairs: tuple[tuple[int, int], ...] = ()
  features: tuple[int, ...] = ()

  def __post_init__(self):
    _validate.integer(0, target=self.target)
    pairs = tuple(sorted({tuple(pair) for pair in self.pairs}))
    if self.pairs != pairs or any(i < 0 or i >= j for i, j in pairs):
      raise ValueError(
        f'pairs must be ascending (i, j) with 0 <= i < j, got {self.pairs!r}'
      )
    ids = tuple(sorted(set(self.features)))
    if self.features != ids or any(dim < 0 for dim in ids):
      raise ValueError(
        f'features must be ascending ids >= 0, got {self.features!r}'
      )

  @property
  def num_edges(self) -> int:
    """The number of pairs that are named."""
    return len(self.pairs)

  @property
  def num_features(self) -> int:
    """The number of features that are named."""
    return len(self.features)

  @property
  def size(self) -> int:
    """The number of elements that are named, pairs and features alike."""
    return self.num_edges + self.num_features


@dataclasses.dataclass(frozen=True, kw_only=True)
class Explanation:
  """What one method found for one target. All but a release is private.

  Attributes:
    intervention: what is deleted and masked; empty if nothing was found.
    valid: whether the exact model changes its prediction, on the graph that
      the explanation was checked on.
    currency: what `intervention.size` may count; sizes in different currencies
      are not comparable.
    num_steps: optimizer steps, deletions or candidates tried.
    original_label: the prediction with no intervention.
    new_label: the prediction after it.
  """

  intervention: Intervention
  valid: bool
  currency: Currency
  num_steps: int
  original_label: int
  new_label: int


class Labels(NamedTuple):
  """The exact model's answers about some interventions. Private.

  Attributes:
    original: `[B]` int64, the prediction with no intervention.
    runner_up: `[B]` int64, the second best class with no intervention.
    new: `[B]` int64, the prediction after it.
    gap: `[B]` float64, the original label's logit minus the best other one
      after the intervention.
  """

  original: np.ndarray
  runner_up: np.ndarray
  new: np.ndarray
  gap: np.ndarray


def apply_intervention(
  graph: graphs.Graph,
  features: scipy.sparse.csr_array,
  intervention: Intervention,
) -> tuple[graphs.Graph, scipy.sparse.csr_array]:
  """Returns the edited graph and features, by surgery.

  Args:
    graph: any graph that holds the target; private edges reach the result.
    features: `[N, F]` features; not modified.
    intervention: its pairs need not be edges.

  Raises:
    ValueError: if a node or feature id is not one of the graph's.
  """
  _validate.shape((graph.num_nodes, None), features=features)
  _validate.canonical(features=features)
  check_ids(graph, features, intervention)
  codes = {i * graph.num_nodes + j for i, j in intervention.pairs}
  own = graph.pairs @ np.array([graph.num_nodes, 1])
  keep = ~np.isin(own, np.array(sorted(codes), np.int64))
  masked = features.copy()
  row = slice(*features.indptr[intervention.target :][:2])
  hidden = np.isin(features.indices[row], intervention.features)
  masked.data[row] = np.where(hidden, 0, masked.data[row])
  return graphs.subgraph_of_edges(graph, keep), masked


def check_ids(
  graph: graphs.Graph,
  features: scipy.sparse.csr_array,
  intervention: Intervention,
) -> None:
  """Raises `ValueError` on an id that the graph or the features do not have."""
  most = graph.num_nodes - 1
  _validate.integer(0, most, target=intervention.target)
  for pair in intervention.pairs:
    _validate.integer(0, most, pairs=pair[1])
  for dim in intervention.features:
    _validate.integer(0, features.shape[1] - 1, features=dim)
