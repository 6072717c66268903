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

from typing import Any

import jraph
import numpy as np

from privjax import types
from privjax.graphs import graph as graph_lib


def to_message_graph(
  graph: graph_lib.Graph, features: types.Array
) -> jraph.GraphsTuple:
  """Returns the whole graph with its features, `[N, F]` dense."""
  receivers = np.repeat(np.arange(graph.num_nodes), graph.degree)
  return graphs_tuple(
    num_nodes=graph.num_nodes,
    nodes={'features': np.asarray(features), 'degree': graph.degree},
    edges={'mask': np.ones(len(receivers))},
    senders=graph.indices,
    receivers=receivers,
  )


def graphs_tuple(num_nodes: int, **fields: Any) -> jraph.GraphsTuple:
  """Packs one graph's arrays; the rest of the fields follow from them."""
  return jraph.GraphsTuple(
    n_node=np.array([num_nodes]),  # pyright: ignore[reportArgumentType]
    n_edge=np.array([len(fields['senders'])]),  # pyright: ignore[reportArgumentType]
    globals=None,
    **fields,
  )
