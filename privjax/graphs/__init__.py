"""Canonical undirected graphs, public snapshots and receptive fields."""

from privjax.graphs.graph import CanonicalCounts
from privjax.graphs.graph import from_pairs
from privjax.graphs.graph import Graph
from privjax.graphs.graph import PrivateGraph
from privjax.graphs.graph import Snapshot
from privjax.graphs.graph import subgraph_of_edges
from privjax.graphs.graph import toggle_pair
from privjax.graphs.importers import from_edge_list
from privjax.graphs.importers import from_jraph
from privjax.graphs.importers import from_networkx
from privjax.graphs.importers import from_npz
from privjax.graphs.importers import from_pyg
from privjax.graphs.importers import from_scipy
from privjax.graphs.importers import ImportedGraph
from privjax.graphs.importers import save_npz
from privjax.graphs.message_graph import to_message_graph
from privjax.graphs.receptive_field import Capacity
from privjax.graphs.receptive_field import extract_receptive_field
from privjax.graphs.receptive_field import field_features
from privjax.graphs.receptive_field import neighbor_lists
from privjax.graphs.receptive_field import ReceptiveField
from privjax.graphs.snapshot import simulate_snapshot

__all__ = (
  'CanonicalCounts',
  'Capacity',
  'Graph',
  'ImportedGraph',
  'PrivateGraph',
  'ReceptiveField',
  'Snapshot',
  'extract_receptive_field',
  'field_features',
  'from_edge_list',
  'from_jraph',
  'from_networkx',
  'from_npz',
  'from_pairs',
  'from_pyg',
  'from_scipy',
  'neighbor_lists',
  'save_npz',
  'simulate_snapshot',
  'subgraph_of_edges',
  'to_message_graph',
  'toggle_pair',
)
