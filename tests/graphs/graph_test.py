"""Tests of the canonical graph and its wrappers."""

from absl.testing import parameterized
import hypothesis
from hypothesis import strategies as st
import numpy as np

from privjax.graphs import graph as graph_lib

_ARRAYS = ('pairs', 'indptr', 'indices', 'degree')


@st.composite
def _raw_pairs(draw):
  """Draws N and rows with both orientations, repeats and self-loops."""
  num_nodes = draw(st.integers(1, 8))
  node = st.integers(0, num_nodes - 1)
  return num_nodes, draw(st.lists(st.tuples(node, node), max_size=20))


def _edges(rows):
  """Returns the set of edges of raw rows, each as (low, high)."""
  return {(min(row), max(row)) for row in rows if row[0] != row[1]}


def _path():
  return graph_lib.from_pairs(4, [[0, 1], [1, 2], [2, 3]])[0]


class GraphTestCase(parameterized.TestCase):
  def assert_same_graph(self, one, other):
    self.assertEqual(one.num_nodes, other.num_nodes)
    for name in _ARRAYS:
      found, expected = getattr(one, name), getattr(other, name)
      np.testing.assert_array_equal(found, expected, name, strict=True)


class FromPairsTest(GraphTestCase):
  @parameterized.named_parameters(
    ('forward', [[1, 3]], (0, 0)),
    ('backward', [[3, 1]], (0, 0)),
    ('both_directions', [[1, 3], [3, 1]], (0, 1)),
    ('three_times', [[1, 3], [1, 3], [3, 1]], (0, 2)),
    ('self_loop', [[1, 3], [2, 2]], (1, 0)),
    ('self_loop_twice', [[2, 2], [1, 3], [2, 2], [0, 0]], (3, 0)),
  )
  def test_is_one_edge(self, rows, counts):
    graph, found = graph_lib.from_pairs(4, rows)
    self.assertEqual(graph.pairs.tolist(), [[1, 3]])
    self.assertEqual(graph.degree.tolist(), [0, 1, 0, 1])
    self.assertEqual(found, counts)

  @parameterized.named_parameters(
    ('list', []),
    ('no_rows', np.zeros((0, 2), np.int64)),
    ('only_loops', [[0, 0], [1, 1]]),
  )
  def test_has_no_edge(self, rows):
    graph, _ = graph_lib.from_pairs(3, rows)
    self.assertEqual(graph.pairs.shape, (0, 2))
    self.assertEqual(graph.num_edges, 0)
    self.assertEqual(graph.degree.tolist(), [0, 0, 0])
    self.assertEqual(graph.neighbors(2).tolist(), [])
    self.assertFalse(graph.has_pairs([[0, 1], [1, 2]]).any())

  @parameterized.named_parameters(
    ('id_n', [[0, 4]], r'pairs .* \[0, 4\), got 1 ids outside'),
    ('negative', [[-1, 5], [0, 1]], r'pairs .* got 2 ids outside'),
    ('huge', np.array([[0, 2**63]], np.uint64), r'pairs .* got 1 ids outside'),
    ('float', [[0.0, 1.0]], 'pairs .* integer node ids, got float64'),
    ('bool', [[False, True]], 'pairs .* integer node ids, got bool'),
    ('flat', [0, 1], r"pairs .* shape \('any', 2\), got \(2,\)"),
    ('triples', [[0, 1, 2]], r"pairs .* shape \('any', 2\), got \(1, 3\)"),
    ('transposed', np.zeros((2, 5), int), r'pairs .* got \(2, 5\)'),
  )
  def test_refuses_pairs(self, rows, message):
    with self.assertRaisesRegex(ValueError, f'^{message}'):
      graph_lib.from_pairs(4, rows)

  @parameterized.parameters(0, -1, 2.0, True, None)
  def test_refuses_num_nodes(self, num_nodes):
    with self.assertRaisesRegex(ValueError, '^num_nodes .* >= 1, got'):
      graph_lib.from_pairs(num_nodes, [])

  @parameterized.parameters(np.uint8, np.int32, np.uint64)
  def test_any_integer_type_means_the_same(self, dtype):
    rows = np.array([[2, 0], [1, 2]], dtype)
    self.assert_same_graph(
      graph_lib.from_pairs(300, rows)[0],
      graph_lib.from_pairs(300, rows.tolist())[0],
    )

  def test_leaves_its_argument_alone(self):
    rows = np.array([[3, 1], [0, 2]])
    graph_lib.from_pairs(4, rows)
    self.assertEqual(rows.tolist(), [[3, 1], [0, 2]])

  @hypothesis.given(_raw_pairs())
  def test_keeps_the_edge_set_and_counts_the_rest(self, raw):
    num_nodes, rows = raw
    graph, counts = graph_lib.from_pairs(num_nodes, rows)
    self.assertEqual(
      [tuple(pair) for pair in graph.pairs.tolist()], sorted(_edges(rows))
    )
    self.assertEqual(counts.self_loops, sum(i == j for i, j in rows))
    self.assertEqual(
      counts.duplicates, len(rows) - counts.self_loops - graph.num_edges
    )

  @hypothesis.given(_raw_pairs())
  def test_neighbor_lists_are_csr(self, raw):
    num_nodes, rows = raw
    graph, _ = graph_lib.from_pairs(num_nodes, rows)
    for name in _ARRAYS:
      self.assertEqual(getattr(graph, name).dtype, np.int64, name)
    self.assertEqual(graph.indptr[0], 0)
    self.assertEqual(graph.indptr[-1], 2 * graph.num_edges)
    self.assertEqual(np.diff(graph.indptr).tolist(), graph.degree.tolist())
    edges = _edges(rows)
    for node in range(num_nodes):
      others = {sum(edge) - node for edge in edges if node in edge}
      self.assertEqual(graph.neighbors(node).tolist(), sorted(others))

  @hypothesis.given(_raw_pairs(), st.data())
  def test_storage_order_does_not_matter(self, raw, data):
    num_nodes, rows = raw
    shuffled = [
      row[::-1] if data.draw(st.booleans()) else row
      for row in data.draw(st.permutations(rows))
    ]
    graph, counts = graph_lib.from_pairs(num_nodes, rows)
    other, other_counts = graph_lib.from_pairs(num_nodes, shuffled)
    self.assert_same_graph(graph, other)
    self.assertEqual(counts, other_counts)


class HasPairsTest(parameterized.TestCase):
  @hypothesis.given(_raw_pairs())
  def test_agrees_with_a_set(self, raw):
    num_nodes, rows = raw
    graph, _ = graph_lib.from_pairs(num_nodes, rows)
    grid = np.moveaxis(np.indices((num_nodes, num_nodes)), 0, -1)
    edges = _edges(rows)
    expected = [
      [(min(i, j), max(i, j)) in edges for j in range(num_nodes)]
      for i in range(num_nodes)
    ]
    self.assertEqual(graph.has_pairs(grid).tolist(), expected)

  def test_keeps_leading_axes(self):
    graph = _path()
    self.assertEqual(graph.has_pairs([2, 1]).shape, ())
    self.assertTrue(graph.has_pairs([2, 1]))
    self.assertEqual(graph.has_pairs(np.zeros((0, 2), int)).shape, (0,))
    self.assertEqual(graph.has_pairs(np.zeros((3, 1, 2), int)).shape, (3, 1))


class TogglePairTest(GraphTestCase):
  @parameterized.parameters((0, 1), (1, 0))
  def test_removes_an_edge_from_both_ends(self, *pair):
    edited = graph_lib.toggle_pair(_path(), pair)
    self.assertEqual(edited.pairs.tolist(), [[1, 2], [2, 3]])
    self.assertEqual(edited.degree.tolist(), [0, 1, 2, 1])

  def test_adds_an_edge_to_both_ends(self):
    edited = graph_lib.toggle_pair(_path(), (3, 0))
    self.assertEqual(edited.pairs.tolist(), [[0, 1], [0, 3], [1, 2], [2, 3]])
    self.assertEqual(edited.degree.tolist(), [2, 2, 2, 2])

  @hypothesis.given(_raw_pairs(), st.data())
  def test_changes_one_pair_and_undoes_itself(self, raw, data):
    num_nodes, rows = raw
    hypothesis.assume(num_nodes > 1)
    node = st.integers(0, num_nodes - 1)
    pair = data.draw(st.lists(node, min_size=2, max_size=2, unique=True))
    graph, _ = graph_lib.from_pairs(num_nodes, rows)
    once = graph_lib.toggle_pair(graph, pair)
    expected = _edges(rows) ^ _edges([tuple(pair)])
    self.assert_same_graph(
      once, graph_lib.from_pairs(num_nodes, sorted(expected))[0]
    )
    self.assert_same_graph(graph_lib.toggle_pair(once, pair[::-1]), graph)

  def test_leaves_its_argument_alone(self):
    graph = _path()
    graph_lib.toggle_pair(graph, (0, 1))
    self.assert_same_graph(graph, _path())

  @parameterized.parameters((1, 1), (0, 4), (-1, 2), (4, 5))
  def test_refuses(self, *pair):
    with self.assertRaisesRegex(ValueError, r'^pair must .* got \('):
      graph_lib.toggle_pair(_path(), pair)


class SubgraphOfEdgesTest(GraphTestCase):
  @parameterized.named_parameters(
    ('some', [2, 0], [[0, 1], [2, 3]]),
    ('all', [1, 2, 0], [[0, 1], [1, 2], [2, 3]]),
    ('none', np.zeros(0, int), []),
    ('mask', np.array([False, True, False]), [[1, 2]]),
  )
  def test_keeps_nodes_and_named_edges(self, edge_index, expected):
    self.assert_same_graph(
      graph_lib.subgraph_of_edges(_path(), edge_index),
      graph_lib.from_pairs(4, expected)[0],
    )


class SnapshotTest(parameterized.TestCase):
  @parameterized.parameters('external', 'simulated')
  def test_keeps_its_origin(self, origin):
    self.assertEqual(graph_lib.Snapshot(_path(), origin).origin, origin)

  @parameterized.parameters('private', '', None, True)
  def test_refuses_another_origin(self, origin):
    with self.assertRaisesRegex(
      ValueError, "^origin .*'external', 'simulated'"
    ):
      graph_lib.Snapshot(_path(), origin)

  def test_is_not_a_private_graph(self):
    self.assertNotIsInstance(
      graph_lib.Snapshot(_path(), 'external'), graph_lib.PrivateGraph
    )
