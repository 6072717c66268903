"""What PrivCFS needs to know about a frozen node classifier."""

from collections.abc import Callable
from typing import NamedTuple

import jraph

from privjax import types


class NodeModel(NamedTuple):
  """A frozen, public node classifier.

  Attributes:
    apply_fn: `(params, graph) -> logits [n, K]`, pure and jit-able, on the
      graph contract of `graphs.message_graph`. A node's logits may depend only
      on nodes at most `num_hops` edges away (no global layers), on degrees only
      through `nodes['degree']`, and on an edge only if its mask is 1.
      `models.check_locality` tests this on a graph of yours.
    params: the parameters, a plain dictionary of arrays.
    num_hops: radius of the receptive field.
  """

  apply_fn: Callable[[types.Params, jraph.GraphsTuple], types.Array]
  params: types.Params
  num_hops: int
