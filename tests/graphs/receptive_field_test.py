"""Tests of receptive fields, against a breadth-first search."""

from absl.testing import parameterized
import hypothesis
from hypothesis import strategies as st
import jax
import numpy as np

from privjax import models
from privjax import prng
from privjax.graphs import graph as graph_lib
from privjax.graphs import message_graph
from privjax.graphs import receptive_field

_NUM_NODES = 9
_NODE = st.integers(0, _NUM_NODES - 1)
_ROWS = st.lists(st.tuples(_NODE, _NODE), max_size=14)


def _adjacency(rows):
  """Returns {node: set of neighbors}."""
  adjacency = {node: set() for node in range(_NUM_NODES)}
  for i, j in rows:
    if i != j:
      adjacency[i].add(j)
      adjacency[j].add(i)
  return adjacency


def _ball(adjacency, target, num_hops):
  """Returns the nodes within `num_hops`, by breadth-first search."""
  distance, queue = {target: 0}, [target]
  for node in queue:
    for neighbor in sorted(adjacency[node]):
      if neighbor not in distance:
        distance[neighbor] = distance[node] + 1
        queue.append(neighbor)
  return sorted(node for node, far in distance.items() if far <= num_hops)


def _path(num_nodes=5):
  nodes = np.arange(num_nodes - 1)
  return graph_lib.from_pairs(num_nodes, np.stack([nodes, nodes + 1], 1))[0]


class ExtractReceptiveFieldTest(parameterized.TestCase):
  @hypothesis.given(_ROWS, _NODE, st.integers(0, 3))
  def test_agrees_with_breadth_first_search(self, rows, target, num_hops):
    adjacency = _adjacency(rows)
    ball = _ball(adjacency, target, num_hops)
    graph, _ = graph_lib.from_pairs(_NUM_NODES, rows)
    field = receptive_field.extract_receptive_field(
      graph, target, num_hops=num_hops
    )
    self.assertEqual(field.node_ids.tolist(), ball)
    self.assertEqual(field.node_ids[field.target_index], target)
    self.assertEqual(
      field.boundary_degree.tolist(), [len(adjacency[node]) for node in ball]
    )
    receivers = field.node_ids[field.graph.receivers].tolist()
    senders = field.node_ids[field.graph.senders].tolist()
    expected = [
      (node, neighbor)
      for node in ball
      for neighbor in sorted(adjacency[node].intersection(ball))
    ]
    self.assertEqual(list(zip(receivers, senders)), expected)
    self.assertEqual(field.graph.edges['mask'].tolist(), [1.0] * len(expected))

  @hypothesis.given(_ROWS, _NODE, st.integers(0, 3), st.integers(0, 4))
  def test_padding_is_inert_and_keeps_receivers_sorted(
    self, rows, target, num_hops, extra
  ):
    graph, _ = graph_lib.from_pairs(_NUM_NODES, rows)
    exact = receptive_field.extract_receptive_field(
      graph, target, num_hops=num_hops
    )
    nodes, edges = len(exact.node_ids), len(exact.graph.senders)
    padded = receptive_field.extract_receptive_field(
      graph,
      target,
      num_hops=num_hops,
      capacity=receptive_field.Capacity(nodes + extra, edges + 3),
    )
    self.assertEqual(padded.target_index, exact.target_index)
    for name, value in (('node_ids', -1), ('boundary_degree', 0)):
      np.testing.assert_array_equal(
        getattr(padded, name),
        np.concatenate([getattr(exact, name), [value] * extra]),
      )
    for name in ('senders', 'receivers'):
      np.testing.assert_array_equal(
        getattr(padded.graph, name)[:edges], getattr(exact.graph, name)
      )
      self.assertEqual(
        getattr(padded.graph, name)[edges:].tolist(), [nodes + extra - 1] * 3
      )
    self.assertEqual(
      padded.graph.edges['mask'].tolist(), [1.0] * edges + [0.0] * 3
    )
    self.assertTrue((np.diff(padded.graph.receivers) >= 0).all())
    self.assertEqual(padded.graph.n_node.tolist(), [nodes + extra])
    self.assertEqual(padded.graph.n_edge.tolist(), [edges + 3])

  @parameterized.named_parameters(
    ('0_hops', 0, [2], [2]),
    ('1_hop', 1, [1, 2, 3], [2, 2, 2]),
    ('2_hops', 2, [0, 1, 2, 3, 4], [1, 2, 2, 2, 1]),
    ('3_hops', 3, [0, 1, 2, 3, 4], [1, 2, 2, 2, 1]),
  )
  def test_middle_of_a_path(self, num_hops, node_ids, degree):
    field = receptive_field.extract_receptive_field(
      _path(), 2, num_hops=num_hops
    )
    self.assertEqual(field.node_ids.tolist(), node_ids)
    self.assertEqual(field.boundary_degree.tolist(), degree)
    self.assertLen(field.graph.senders, 2 * (len(node_ids) - 1))

  @parameterized.parameters(0, 1, 2, 3)
  def test_isolated_node(self, num_hops):
    graph, _ = graph_lib.from_pairs(3, [[0, 2]])
    field = receptive_field.extract_receptive_field(
      graph, np.int32(1), num_hops=num_hops
    )
    self.assertEqual(field.node_ids.tolist(), [1])
    self.assertEqual(field.node_ids.dtype, np.int64)
    self.assertEqual(field.boundary_degree.tolist(), [0])
    self.assertEqual(field.graph.senders.shape, (0,))

  def test_the_exact_size_fits(self):
    field = receptive_field.extract_receptive_field(
      _path(), 2, num_hops=1, capacity=receptive_field.Capacity(3, 4)
    )
    self.assertEqual(field.node_ids.tolist(), [1, 2, 3])

  @parameterized.parameters((2, 40), (40, 3), (0, 0))
  def test_refuses_a_small_capacity(self, *size):
    capacity = receptive_field.Capacity(*size)
    with self.assertRaisesRegex(ValueError, '^capacity must cover .* got Cap'):
      receptive_field.extract_receptive_field(
        _path(), 2, num_hops=1, capacity=capacity
      )

  @parameterized.named_parameters(
    ('target_high', 'target', 5),
    ('target_negative', 'target', -1),
    ('target_bool', 'target', True),
    ('hops_negative', 'num_hops', -1),
    ('hops_float', 'num_hops', 2.0),
  )
  def test_refuses(self, name, value):
    arguments = {'target': 0, 'num_hops': 1, name: value}
    with self.assertRaisesRegex(ValueError, f'^{name} must .* got {value}'):
      receptive_field.extract_receptive_field(_path(), **arguments)

  @parameterized.parameters(0, 1)
  def test_determines_the_logits_of_every_node(self, seed):
    rng = prng.generator(seed, 'receptive_field_test')
    graph, _ = graph_lib.from_pairs(14, rng.integers(0, 14, (16, 2)))
    features = rng.normal(size=(14, 3))
    draw = lambda *shape: rng.normal(size=shape)
    params = {
      'hidden': {'kernel': draw(3, 4), 'bias': draw(4)},
      'output': {'kernel': draw(4, 3), 'bias': draw(3)},
    }
    forward = jax.jit(models.gcn.apply)
    whole = forward(params, message_graph.to_message_graph(graph, features))
    capacity = receptive_field.Capacity(15, 34)
    for node in range(14):
      field = receptive_field.extract_receptive_field(
        graph, node, num_hops=2, capacity=capacity
      )
      rows = features[field.node_ids] * (field.node_ids >= 0)[:, None]
      nodes = {'features': rows, 'degree': field.boundary_degree}
      logits = forward(params, field.graph._replace(nodes=nodes))
      np.testing.assert_allclose(
        logits[field.target_index], whole[node], rtol=0, atol=1e-14
      )


class NeighborListsTest(parameterized.TestCase):
  @parameterized.named_parameters(
    ('one', [1], [0, 2], [2]),
    ('unsorted', [3, 0], [2, 4, 1], [2, 1]),
    ('repeated', [4, 4], [3, 3], [1, 1]),
    ('isolated_between', [0, 5, 1], [1, 0, 2], [1, 0, 2]),
    ('all_isolated', [5, 5], [], [0, 0]),
    ('none', [], [], []),
  )
  def test_concatenates(self, nodes, expected, lengths):
    graph, _ = graph_lib.from_pairs(6, _path().pairs)
    found, counts = receptive_field.neighbor_lists(
      graph, np.array(nodes, np.int64)
    )
    self.assertEqual(found.tolist(), expected)
    self.assertEqual(counts.tolist(), lengths)
