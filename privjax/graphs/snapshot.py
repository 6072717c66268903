"""Simulated public snapshots: a nested random fraction of the edges.

This *simulates* an external disclosure (PrivCFS, Sec. 3.3). The snapshot is a
function of the private graph, so it is marked `origin='simulated'` and nothing
built on it can be certified.
"""

import fractions

from privjax import _validate
from privjax import prng
from privjax.graphs import graph as graph_lib


def simulate_snapshot(
  private: graph_lib.PrivateGraph,
  *,
  rho: float | str | fractions.Fraction,
  seed: int,
) -> graph_lib.Snapshot:
  """Discloses the first round(rho * M) edges of one permutation per seed.

  Snapshots of one seed are nested: a larger `rho` discloses a superset.

  Args:
    private: the private graph. Its edges reach the result: not for release.
    rho: disclosed fraction, in (0, 1]; halves round to even.
    seed: in [0, 2**32).

  Returns:
    A `Snapshot` with `origin='simulated'`.
  """
  fraction = _validate.rational(rho=rho)
  if fraction > 1:
    raise ValueError(f'rho must be in (0, 1], got {rho!r}')
  if not isinstance(private, graph_lib.PrivateGraph):
    raise TypeError(
      f'private must be a PrivateGraph, got {type(private).__name__}'
    )
  graph = private.graph
  order = prng.permutation(graph.num_edges, seed, 'snapshot')
  disclosed = round(fraction * graph.num_edges)
  return graph_lib.Snapshot(
    graph_lib.subgraph_of_edges(graph, order[:disclosed]), 'simulated'
  )
