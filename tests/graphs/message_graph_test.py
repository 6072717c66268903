"""Tests of the message-graph contract."""

from absl.testing import parameterized
import hypothesis
from hypothesis import strategies as st
import numpy as np

from privjax.graphs import graph as graph_lib
from privjax.graphs import message_graph

_NODE = st.integers(0, 6)


class ToMessageGraphTest(parameterized.TestCase):
  def test_path(self):
    path, _ = graph_lib.from_pairs(4, [[2, 1], [0, 1]])
    features = np.arange(8.0).reshape(4, 2)
    graph = message_graph.to_message_graph(path, features)
    self.assertEqual(graph.senders.tolist(), [1, 0, 2, 1])
    self.assertEqual(graph.receivers.tolist(), [0, 1, 1, 2])
    self.assertEqual(graph.nodes['degree'].tolist(), [1, 2, 1, 0])
    np.testing.assert_array_equal(graph.nodes['features'], features)
    self.assertEqual(graph.edges['mask'].tolist(), [1.0] * 4)
    self.assertEqual(graph.n_node.tolist(), [4])
    self.assertEqual(graph.n_edge.tolist(), [4])

  def test_no_edges(self):
    empty, _ = graph_lib.from_pairs(2, [])
    graph = message_graph.to_message_graph(empty, np.ones((2, 3)))
    self.assertEqual(graph.senders.shape, (0,))
    self.assertEqual(graph.receivers.shape, (0,))
    self.assertEqual(graph.edges['mask'].shape, (0,))
    self.assertEqual(graph.n_edge.tolist(), [0])

  @hypothesis.given(st.lists(st.tuples(_NODE, _NODE), max_size=20))
  def test_contract(self, rows):
    inner, _ = graph_lib.from_pairs(7, rows)
    graph = message_graph.to_message_graph(inner, np.ones((7, 1)))
    found = list(zip(graph.receivers.tolist(), graph.senders.tolist()))
    directed = {(i, j) for i, j in rows if i != j}
    directed |= {(j, i) for i, j in directed}
    # Sorted by receiver, then sender, both directions, no loops, no repeats.
    self.assertEqual(found, sorted(directed))
    self.assertEqual(
      graph.nodes['degree'].tolist(),
      [sum(receiver == node for receiver, _ in directed) for node in range(7)],
    )
    self.assertEqual(graph.edges['mask'].tolist(), [1.0] * len(directed))
