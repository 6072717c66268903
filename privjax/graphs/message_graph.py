"""The jraph form of a graph that every node model reads.

Contract for `nodes` and `edges` of the `jraph.GraphsTuple`:

* `nodes['features']` `[n, F]`: feature rows.
* `nodes['degree']` `[n]`: number of neighbors *in the whole graph, after
  deletions*. On an extracted receptive field a boundary node has neighbors
  that are not in the field, so the degree cannot be recounted from the edges.
* `edges['mask']` `[e]`: 1.0 keep, 0.0 deleted or padding.
* `senders`, `receivers` `[e]`: both directions of every edge, no self-loops
  (a model that wants them adds its own), sorted by receiver, then sender, so
  that sums do not depend on storage order.
"""

import jraph
import numpy as np

from privjax import types
from privjax.graphs import graph as graph_lib


def to_message_graph(
  graph: graph_lib.Graph, features: types.Array
) -> jraph.GraphsTuple:
  """Returns the whole graph with its features, `[N, F]` dense."""
  receivers = np.repeat(np.arange(graph.num_nodes), graph.degree)
  return build(
    features=np.asarray(features),
    degree=graph.degree,
    senders=graph.indices,
    receivers=receivers,
    mask=np.ones(len(receivers)),
  )


def build(
  *,
  features: types.Array,
  degree: types.Array,
  senders: types.Array,
  receivers: types.Array,
  mask: types.Array,
) -> jraph.GraphsTuple:
  """Packs arrays into the contract above; pure, jit- and vmap-able."""
  return jraph.GraphsTuple(
    nodes={'features': features, 'degree': degree},
    edges={'mask': mask},
    senders=senders,
    receivers=receivers,
    n_node=np.array([features.shape[-2]]),
    n_edge=np.array([np.shape(senders)[-1]]),
    globals=None,
  )
