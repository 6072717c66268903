"""Which edges a method may delete and which features it may mask.

Two spaces matter. The *receptive field* holds everything that the prediction
depends on: all edges with an end at most k hops from the target (an edge that
leaves the field changes a degree in it), and the target's nonzero features. It
is read off the private graph, so naming its elements, or just their number,
already leaks edges: no mechanism on top of it certifies its complete release. A
*public universe* is a list of pairs fixed before the private graph is read; a
pair of it may or may not be an edge.

"Features" are those of the target only, as in PrivCFS eq. 1 (S_F masks "the
feature dimensions of node v"); features of other nodes are never touched.

>>> import numpy as np, scipy.sparse
>>> path, _ = graphs.from_pairs(4, [[0, 1], [1, 2], [2, 3]])
>>> x = scipy.sparse.csr_array(np.eye(4))
>>> space = receptive_field_space(path, x, 0, num_hops=2)
>>> space.pairs.tolist(), space.features.tolist(), space.is_public
([[0, 1], [1, 2], [2, 3]], [0], False)
"""

from collections.abc import Sequence
import dataclasses

import numpy as np
import scipy.sparse

from privjax import _validate
from privjax import counterfactual
from privjax import graphs
from privjax import types
from privjax.counterfactual import evaluation
from privjax.explainers import intervention as intervention_lib


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class OperationSpace:
  """The elements that an intervention may name.

  Attributes:
    target: node id v, public.
    pairs: `[P, 2]` int64 pairs i < j, distinct, in a fixed order.
    features: `[Q]` int64 feature ids of the target, distinct.
    is_public: whether the pairs were fixed independently of the private graph.
      Guarantees follow this flag; only `public_space` sets it.
  """

  target: int
  pairs: np.ndarray
  features: np.ndarray
  is_public: bool = False

  @property
  def num_operations(self) -> int:
    """Returns k = P + Q; public only if the space is."""
    return len(self.pairs) + len(self.features)

  @property
  def currency(self) -> intervention_lib.Currency:
    """What the size of an intervention in this space counts."""
    index = bool(len(self.pairs)) + 2 * bool(len(self.features))
    return intervention_lib.CURRENCIES[index]

  def intervention(
    self, edge_keep: types.Array, feature_keep: types.Array
  ) -> intervention_lib.Intervention:
    """Returns what two bool masks (`[P]` and `[Q]`, True = keep) do."""
    pairs = sorted(map(tuple, self.pairs[~edge_keep].tolist()))
    features = sorted(self.features[~feature_keep].tolist())
    return intervention_lib.Intervention(
      target=self.target,
      pairs=tuple(pairs),
      features=tuple(features),
    )


def receptive_field_space(
  graph: graphs.Graph,
  features: scipy.sparse.csr_array,
  target: int,
  *,
  num_hops: int,
  edges: bool = True,
  feature_masks: bool = True,
) -> OperationSpace:
  """Returns the target's receptive field as an operation space. Private.

  Args:
    graph: the graph that is explained.
    features: `[N, F]` public features.
    target: node id.
    num_hops: radius, the model's `num_hops`.
    edges: whether the edges that touch the field may be deleted.
    feature_masks: whether the target's nonzero features may be masked.

  Raises:
    ValueError: if the target is not in the graph.
  """
  field = graphs.extract_receptive_field(graph, target, num_hops=num_hops)
  ball = field.node_ids
  far, lengths = graphs.neighbor_lists(graph, ball)
  pairs = np.sort(np.stack([np.repeat(ball, lengths), far], axis=1), axis=1)
  pairs = np.unique(pairs, axis=0)
  row = evaluation.target_row(features, target)
  return OperationSpace(
    target=int(target),
    pairs=pairs if edges else pairs[:0],
    features=np.flatnonzero(row) if feature_masks else np.zeros(0, np.int64),
  )


def public_space(
  universe: counterfactual.Universe,
  *,
  edges: bool = True,
  feature_masks: bool = True,
) -> OperationSpace:
  """Returns a release's public universe as an operation space (Table 7).

  Args:
    universe: from `counterfactual.build_universe`, whose arguments are public.
    edges: whether its pairs may be deleted.
    feature_masks: whether its features may be masked.
  """
  pairs = np.sort(universe.pairs[universe.pair_valid], axis=1)
  dims = universe.features[universe.feature_valid]
  return OperationSpace(
    target=universe.target,
    pairs=pairs if edges else pairs[:0],
    features=dims if feature_masks else dims[:0],
    is_public=True,
  )


def named_by(cut: intervention_lib.Intervention) -> OperationSpace:
  """Returns the space of just the elements that an intervention names."""
  return OperationSpace(
    target=cut.target,
    pairs=np.array(cut.pairs, np.int64).reshape(-1, 2),
    features=np.array(cut.features, np.int64),
  )


def check_space(graph: graphs.Graph, space: OperationSpace) -> None:
  """Raises `ValueError` if the space does not fit the graph, or itself."""
  _validate.integer(0, graph.num_nodes - 1, target=space.target)
  _validate.shape((None, 2), pairs=space.pairs)
  if (space.pairs[:, 0] >= space.pairs[:, 1]).any():
    raise ValueError('pairs must be i < j, got one that is not: sort each row')
  for name, rows in (('pairs', space.pairs), ('features', space.features)):
    if len(np.unique(rows, axis=0)) < len(rows):
      raise ValueError(f'{name} must be distinct, got one of them twice')


def check_one_space_each(spaces: Sequence[OperationSpace]) -> None:
  """Raises `ValueError` if two spaces have one target.

  Noise is named by target and draw: two releases of a target in one call would
  share theirs, and nothing composes.
  """
  targets = [space.target for space in spaces]
  if len(set(targets)) < len(targets):
    raise ValueError(
      'spaces must be of distinct targets, got one of them twice: release it '
      'again with another draw'
    )
