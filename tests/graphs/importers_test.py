"""Tests of the importers, on stand-ins with the attributes that they read."""

import io
import pathlib
import tempfile
import traceback
import types
import warnings

from absl.testing import parameterized
import hypothesis
from hypothesis import strategies as st
import jax.numpy as jnp
import jraph
import numpy as np
import pytest
import scipy.sparse

from privjax import graphs
from privjax.graphs import importers

_SPARSE = ('bsr', 'coo', 'csc', 'csr', 'dia', 'dok', 'lil')


class _Tensor:
  """Behaves like a torch tensor that requires gradients."""

  def __init__(self, array):
    self._array = np.asarray(array)
    self.shape = self._array.shape

  def detach(self):
    return types.SimpleNamespace(
      cpu=lambda: types.SimpleNamespace(numpy=lambda: self._array)
    )

  def __array__(self, *args, **kwargs):
    raise RuntimeError('detach me first')


class _Data:
  """Behaves like PyG's Data: it guesses N from the edges if it has to."""

  def __init__(self, **stored):
    self._stored = stored

  def to_dict(self):
    return dict(self._stored)

  def __getattr__(self, name):
    try:
      return self._stored[name]
    except KeyError:
      raise AttributeError(name) from None

  @property
  def num_nodes(self):
    return self._stored.get('num_nodes', int(self.edge_index.max()) + 1)


def _nx(nodes, edges):
  return types.SimpleNamespace(nodes=nodes, edges=edges)


def _jraph(rows=((0, 1), (1, 0), (2, 2)), num_nodes=4, **changes):
  rows = np.array(rows, int).reshape(-1, 2)
  fields = {
    'nodes': None,
    'edges': None,
    'senders': rows[:, 0],
    'receivers': rows[:, 1],
    'n_node': jnp.array([num_nodes]),
    'n_edge': jnp.array([len(rows)]),
    'globals': None,
  }
  return jraph.GraphsTuple(**fields | changes)


def _both(rows):
  """Returns `[2, 2E]`: both directions of every row, as PyG stores them."""
  rows = np.array(rows)
  return np.concatenate([rows, rows[:, ::-1]]).T


class ImportersTestCase(parameterized.TestCase):
  def setUp(self):
    super().setUp()
    self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))

  def assert_imports(self, imported, node_ids, pairs, counts):
    self.assertIsInstance(imported, importers.ImportedGraph)
    self.assertIsInstance(imported.node_ids, tuple)
    self.assertEqual(imported.node_ids, tuple(node_ids))
    self.assertEqual(imported.graph.num_nodes, len(node_ids))
    self.assertEqual(imported.graph.pairs.tolist(), pairs)
    self.assertIsInstance(imported.counts, graphs.CanonicalCounts)
    self.assertEqual(imported.counts, counts)

  def write(self, content):
    path = self.folder / 'edges.csv'
    if isinstance(content, str):
      content = content.encode()
    path.write_bytes(content)
    return path


class FromPygTest(ImportersTestCase):
  @parameterized.named_parameters(
    ('one_direction', [[0, 1], [3, 1]], [[0, 1], [1, 3]], (0, 0)),
    ('both_directions', [[0, 1], [1, 0]], [[0, 1]], (0, 1)),
    ('repeated', [[0, 1], [0, 1], [1, 0]], [[0, 1]], (0, 2)),
    ('self_loop', [[2, 2], [0, 1]], [[0, 1]], (1, 0)),
    ('empty', np.zeros((0, 2), int), [], (0, 0)),
    ('only_loops', [[2, 2]], [], (1, 0)),
  )
  def test_counts_what_it_drops(self, rows, pairs, counts):
    edge_index = np.array(rows).T
    for data in (
      _Data(edge_index=_Tensor(edge_index), x=_Tensor(np.zeros((5, 2)))),
      _Data(edge_index=edge_index, num_nodes=5),
      types.SimpleNamespace(edge_index=jnp.array(edge_index), num_nodes=5),
    ):
      # Node 4 is isolated, and 2 as well in most cases.
      self.assert_imports(importers.from_pyg(data), range(5), pairs, counts)

  def test_takes_num_nodes_as_an_argument(self):
    data = _Data(edge_index=_both([[0, 1]]))
    imported = importers.from_pyg(data, num_nodes=3)
    self.assert_imports(imported, range(3), [[0, 1]], (0, 1))

  def test_never_guesses_num_nodes(self):
    data = _Data(edge_index=_both([[0, 1]]))
    self.assertEqual(data.num_nodes, 2)
    with self.assertRaisesRegex(ValueError, '^num_nodes must be known, .*{}$'):
      importers.from_pyg(data)

  @parameterized.parameters(
    ({'num_nodes': 4}, {}), ({}, {'num_nodes': 4}), ({}, {'num_nodes': 6})
  )
  def test_refuses_two_numbers_of_nodes(self, stored, argument):
    data = _Data(edge_index=_both([[0, 1]]), x=np.zeros((5, 1)), **stored)
    with self.assertRaisesRegex(ValueError, '^num_nodes .* the same from'):
      importers.from_pyg(data, **argument)

  @parameterized.parameters(0, -1, 2.0, True, '3')
  def test_refuses_num_nodes(self, num_nodes):
    data = _Data(edge_index=_both([[0, 1]]))
    with self.assertRaisesRegex(ValueError, '^num_nodes must be an integer'):
      importers.from_pyg(data, num_nodes=num_nodes)

  @parameterized.parameters(None, 3)
  def test_refuses_data_without_edges(self, num_nodes):
    with self.assertRaisesRegex(ValueError, '^data must have edge_index, got'):
      importers.from_pyg(types.SimpleNamespace(), num_nodes=num_nodes)

  @parameterized.named_parameters(
    ('transposed', np.zeros((3, 2), int), r"shape \(2, 'any'\), got \(3, 2\)"),
    ('float', np.zeros((2, 3)), 'integer node ids, got float64'),
    ('outside', [[0, 5], [0, 4]], r'in \[0, 5\), got 1 ids outside'),
    ('negative', [[0, -1], [0, -1]], r'in \[0, 5\), got 2 ids outside'),
  )
  def test_refuses_edge_index(self, edge_index, message):
    data = _Data(edge_index=np.array(edge_index), num_nodes=5)
    with self.assertRaisesRegex(ValueError, f'^edge_index must .*{message}'):
      importers.from_pyg(data)


class FromNetworkxTest(ImportersTestCase):
  def test_keeps_node_order_and_ids(self):
    nodes = ['b', (1, 2), None, 'a', 7]
    edges = [('a', 'b'), (7, (1, 2))]
    imported = importers.from_networkx(_nx(nodes, edges))
    self.assert_imports(imported, nodes, [[0, 3], [1, 4]], (0, 0))

  @parameterized.named_parameters(
    ('directed', [('a', 'b'), ('b', 'a')], (0, 1)),
    ('multigraph', [('a', 'b', 0), ('a', 'b', 1), ('b', 'a', 0)], (0, 2)),
    ('self_loop', [('c', 'c'), ('a', 'b')], (1, 0)),
  )
  def test_counts_what_it_drops(self, edges, counts):
    imported = importers.from_networkx(_nx(['a', 'b', 'c', 'd'], edges))
    self.assert_imports(imported, 'abcd', [[0, 1]], counts)

  def test_keeps_the_indices(self):
    # As edges that were added in this order leave them.
    imported = importers.from_networkx(_nx([2, 1, 0], [(2, 1), (1, 0)]))
    self.assert_imports(imported, [0, 1, 2], [[0, 1], [1, 2]], (0, 0))

  @parameterized.named_parameters(
    ('from_one', [2, 1]), ('gap', [2, 0]), ('bool', [True, False])
  )
  def test_other_numbers_keep_their_order(self, nodes):
    imported = importers.from_networkx(_nx(nodes, [nodes]))
    self.assert_imports(imported, nodes, [[0, 1]], (0, 0))

  def test_takes_an_order(self):
    graph = _nx(['b', 'a', 'c'], [('a', 'b')])
    imported = importers.from_networkx(graph, node_ids=['a', 'c', 'b'])
    self.assert_imports(imported, 'acb', [[0, 2]], (0, 0))

  def test_has_no_edge(self):
    imported = importers.from_networkx(_nx(['a', 'b'], []))
    self.assert_imports(imported, 'ab', [], (0, 0))

  @parameterized.parameters(
    (['a', 'b'], 'must be the nodes of the graph, got 1 ids'),
    (['a', 'b', 'd'], 'must be the nodes of the graph, got 2 ids'),
    (['a', 'b', 'c', 'a'], 'must name every node once, got 1 repeats'),
  )
  def test_refuses_node_ids(self, node_ids, message):
    with self.assertRaisesRegex(ValueError, f'^node_ids {message}'):
      importers.from_networkx(_nx(['a', 'b', 'c'], []), node_ids=node_ids)

  def test_refuses_unknown_ends(self):
    with self.assertRaisesRegex(ValueError, r'^graph\.edges .* got 3 ends'):
      importers.from_networkx(_nx([5], [(5, 6), (7, 8)]))

  @parameterized.parameters(
    (types.SimpleNamespace(nodes=[1]), 'graph must have edges'),
    (types.SimpleNamespace(edges=[]), 'graph must have nodes'),
    (_nx([], []), 'graph must have at least one node'),
  )
  def test_refuses(self, graph, message):
    with self.assertRaisesRegex(ValueError, f'^{message}'):
      importers.from_networkx(graph)


class FromScipyTest(ImportersTestCase):
  @parameterized.parameters(*_SPARSE)
  def test_reads_any_format(self, kind):
    dense = np.zeros((4, 4))
    dense[0, 1] = dense[1, 0] = dense[3, 1] = -0.5
    dense[2, 2] = 1
    for matrix in (
      getattr(scipy.sparse, f'{kind}_array')(dense),
      getattr(scipy.sparse, f'{kind}_matrix')(dense),
    ):
      imported = importers.from_scipy(matrix)
      self.assert_imports(imported, range(4), [[0, 1], [1, 3]], (1, 1))

  @parameterized.parameters(bool, np.uint8, np.int64, np.float32)
  def test_reads_dense(self, dtype):
    dense = np.zeros((3, 3), dtype)
    dense[2, 0] = 1
    for matrix in (dense, _Tensor(dense), dense.tolist()):
      imported = importers.from_scipy(matrix)
      self.assert_imports(imported, range(3), [[0, 2]], (0, 0))

  @parameterized.named_parameters(
    ('explicit_zero', [0.0], [0], [1], []),
    ('canceled', [1.0, -1.0], [0, 0], [1, 1], []),
    ('repeated', [1.0, 1.0], [0, 0], [1, 1], [[0, 1]]),
    ('wrapped', np.ones(256, np.uint8), [0] * 256, [1] * 256, [[0, 1]]),
  )
  def test_sums_stored_entries(self, data, rows, columns, pairs):
    matrix = scipy.sparse.coo_array((data, (rows, columns)), (3, 3))
    stored = matrix.nnz
    imported = importers.from_scipy(matrix)
    self.assert_imports(imported, range(3), pairs, (0, 0))
    self.assertEqual(matrix.nnz, stored)

  def test_has_no_edge(self):
    imported = importers.from_scipy(scipy.sparse.csr_array((3, 3)))
    self.assert_imports(imported, range(3), [], (0, 0))

  @parameterized.named_parameters(
    ('wide', np.zeros((2, 3)), r'square and not empty, got \(2, 3\)'),
    ('empty', np.zeros((0, 0)), r'square and not empty, got \(0, 0\)'),
    ('flat', np.zeros(4), r"shape \('any', 'any'\), got \(4,\)"),
    ('nan', np.array([[np.nan]]), 'finite, got 1'),
    ('object', np.array([[None]]), 'real numbers, got object'),
    ('text', np.array([['a']]), 'real numbers, got <U1'),
    ('sparse', scipy.sparse.csr_array((2, 3)), r'square .* \(2, 3\)'),
    (
      'infinite',
      scipy.sparse.lil_array(np.array([[0, np.inf], [0, 0]])),
      'finite, got 1',
    ),
  )
  def test_refuses(self, matrix, message):
    with self.assertRaisesRegex(ValueError, f'^matrix must .*{message}'):
      importers.from_scipy(matrix)


class NpzTest(ImportersTestCase):
  def test_round_trip(self):
    for rows in ([], [[0, 1], [3, 1]]):
      graph, _ = graphs.from_pairs(5, rows)
      path = self.folder / 'graph.npz'
      importers.save_npz(path, graph)
      imported = importers.from_npz(str(path))
      pairs = graph.pairs.tolist()
      self.assert_imports(imported, range(5), pairs, (0, 0))
      self.assertEqual(list(self.folder.iterdir()), [path])

  @parameterized.parameters('csr', 'csc', 'coo', 'bsr', 'dia')
  def test_reads_scipy(self, kind):
    dense = np.diag([1.0, 1.0], 1)
    path = self.folder / 'matrix.npz'
    matrix = getattr(scipy.sparse, f'{kind}_array')(dense)
    scipy.sparse.save_npz(path, matrix)
    imported = importers.from_npz(path)
    self.assert_imports(imported, range(3), [[0, 1], [1, 2]], (0, 0))

  def test_counts_what_it_drops(self):
    path = self.folder / 'graph.npz'
    np.savez(path, pairs=[[1, 0], [0, 1], [2, 2]], num_nodes=np.uint8(4))
    imported = importers.from_npz(path)
    self.assert_imports(imported, range(4), [[0, 1]], (1, 1))

  @parameterized.named_parameters(
    ('no_num_nodes', {'pairs': [[0, 1]]}, 'path must be an npz file'),
    (
      'objects',
      {'pairs': np.array([[0, 1]], object), 'num_nodes': 3},
      'path must be .* without pickled objects, got .*ValueError',
    ),
    ('vector', {'pairs': [[0, 1]], 'num_nodes': [3]}, 'num_nodes must have'),
    ('float', {'pairs': [[0, 1]], 'num_nodes': 3.0}, 'num_nodes must be an'),
    ('flat', {'pairs': [0, 1], 'num_nodes': 3}, 'pairs must have shape'),
    ('outside', {'pairs': [[0, 3]], 'num_nodes': 3}, 'pairs .* 1 ids outside'),
    (
      'column_outside',
      {
        'format': np.array('csr'),
        'shape': np.array([2, 2]),
        'data': np.ones(1),
        'indices': np.array([7]),
        'indptr': np.array([0, 1, 1]),
      },
      'path must be an npz file',
    ),
    (
      'pointer_outside',
      {
        'format': np.array('csr'),
        'shape': np.array([2, 2]),
        'data': np.ones(1),
        'indices': np.array([1]),
        'indptr': np.array([0, 10**6, 1]),
      },
      'path must be an npz file',
    ),
  )
  def test_refuses(self, arrays, message):
    path = self.folder / 'graph.npz'
    np.savez(path, **arrays)
    with self.assertRaisesRegex(ValueError, f'^{message}'):
      importers.from_npz(path)

  def test_refuses_other_files(self):
    buffer = io.BytesIO()
    np.save(buffer, np.zeros((2, 2)))
    pickled = np.array([[0, 1]]).dumps()
    importers.save_npz(self.folder / 'a.npz', graphs.from_pairs(9, [[0, 8]])[0])
    truncated = (self.folder / 'a.npz').read_bytes()[:-30]
    for content in (b'', b'text', pickled, buffer.getvalue(), truncated):
      path = self.write(content)
      with self.assertRaisesRegex(ValueError, '^path must be an npz file'):
        importers.from_npz(path)

  def test_no_such_file(self):
    with self.assertRaises(FileNotFoundError):
      importers.from_npz(self.folder / 'nothing.npz')

  def test_saves_only_graphs(self):
    private = graphs.PrivateGraph(graphs.from_pairs(2, [])[0])
    with self.assertRaisesRegex(TypeError, '^graph .* got PrivateGraph'):
      importers.save_npz(self.folder / 'graph.npz', private)
    self.assertEqual(list(self.folder.iterdir()), [])


class FromJraphTest(ImportersTestCase):
  def test_counts_what_it_drops(self):
    imported = importers.from_jraph(_jraph())
    self.assert_imports(imported, range(4), [[0, 1]], (1, 1))

  def test_has_no_edge(self):
    imported = importers.from_jraph(_jraph(rows=()))
    self.assert_imports(imported, range(4), [], (0, 0))

  def test_reads_what_the_models_read(self):
    graph, _ = graphs.from_pairs(4, [[0, 1], [3, 1]])
    message_graph = graphs.to_message_graph(graph, np.zeros((4, 2)))
    imported = importers.from_jraph(message_graph)
    self.assert_imports(imported, range(4), [[0, 1], [1, 3]], (0, 2))

  def test_reads_ids_of_two_types(self):
    imported = importers.from_jraph(
      _jraph(
        senders=np.array([0, 1, 3], np.uint64),
        receivers=np.array([1, 2, 2], np.int64),
      )
    )
    self.assert_imports(imported, range(4), [[0, 1], [1, 2], [2, 3]], (0, 0))

  def test_refuses_padding(self):
    padded = jraph.pad_with_graphs(_jraph(), n_node=6, n_edge=5)
    with self.assertRaisesRegex(ValueError, r'one graph .*shape \(2,\)'):
      importers.from_jraph(padded)

  def test_refuses_masked_edges(self):
    with self.assertRaisesRegex(ValueError, 'all ones .* got 2 other entries'):
      importers.from_jraph(_jraph(edges={'mask': np.array([1, 0, 0.5])}))

  @parameterized.named_parameters(
    ('no_senders', {'senders': None}, 'graphs_tuple must have senders'),
    ('n_edge', {'n_edge': np.array([2])}, r'senders .* \(2,\), got \(3,\)'),
    ('receivers', {'receivers': np.array([1])}, r'receivers .* got \(1,\)'),
    ('float', {'senders': np.zeros(3)}, 'senders .* integer node ids'),
    (
      'outside',
      {'receivers': np.array([0, 4, -1])},
      r'receivers .* \[0, 4\), got 2',
    ),
    ('no_node', {'n_node': np.array([0])}, 'n_node must be an integer >= 1'),
    ('scalar', {'n_node': np.array(4)}, r'graphs_tuple .* of shape \(\)'),
  )
  def test_refuses(self, changes, message):
    with self.assertRaisesRegex(ValueError, f'^{message}'):
      importers.from_jraph(_jraph(**changes))


class FromEdgeListTest(ImportersTestCase):
  def test_keeps_the_indices(self):
    path = self.write('2,0\n0,1\n1,0\n10,10\n')
    imported = importers.from_edge_list(path, node_ids=range(11))
    self.assert_imports(imported, range(11), [[0, 1], [0, 2]], (1, 1))

  @parameterized.named_parameters(
    ('int', 'int', [2, 10, 30], [[0, 1], [1, 2]]),
    ('str', 'str', ['10', '2', '30'], [[0, 1], [0, 2]]),
  )
  def test_sorts_ids_by_type(self, id_type, node_ids, pairs):
    for content in ('30,10\n10,2\n', '2,10\n10,30'):
      imported = importers.from_edge_list(self.write(content), id_type=id_type)
      self.assert_imports(imported, node_ids, pairs, (0, 0))

  def test_reads_names(self):
    content = '\ufeff"Smith, J.",b\r\n\r\n b , "Smith, J."\r\nb,b\r\n'
    imported = importers.from_edge_list(self.write(content), id_type='str')
    self.assert_imports(imported, ['Smith, J.', 'b'], [[0, 1]], (1, 1))

  def test_a_header_is_an_argument(self):
    path = self.write('source,target\n0,1\n')
    imported = importers.from_edge_list(path, header=True)
    self.assert_imports(imported, [0, 1], [[0, 1]], (0, 0))
    with self.assertRaisesRegex(
      ValueError, "'int', got 2 fields .*header=True"
    ):
      importers.from_edge_list(path)
    named = importers.from_edge_list(path, id_type='str')
    self.assertEqual(named.node_ids, ('0', '1', 'source', 'target'))

  def test_keeps_isolated_nodes_and_order(self):
    path = self.write('b,a\n')
    imported = importers.from_edge_list(
      path, id_type='str', node_ids=['c', 'b', 'd', 'a']
    )
    self.assert_imports(imported, 'cbda', [[1, 3]], (0, 0))

  @parameterized.parameters(('', False), ('a,b\n', True))
  def test_has_no_edge(self, content, header):
    path = self.write(content)
    imported = importers.from_edge_list(path, header=header, node_ids=[4, 2])
    self.assert_imports(imported, [4, 2], [], (0, 0))
    with self.assertRaisesRegex(ValueError, '^node_ids must name the nodes'):
      importers.from_edge_list(path, header=header)

  @parameterized.named_parameters(
    ('three_columns', '0,1,2\n0,1\n', 'two columns, got 1 rows'),
    ('one_column', '0 1\n1 2\n', 'two columns, got 2 rows'),
    ('zero', '00,1\n', "id_type 'int', got 1 fields"),
    ('sign', '+1,-0\n', "id_type 'int', got 2 fields"),
    ('underscore', '1_0,1\n', "id_type 'int', got 1 fields"),
    ('float', '1.0,1\n', "id_type 'int', got 1 fields"),
    ('missing', '1,\n', "id_type 'int', got 1 fields"),
    ('long', '1,' + '9' * 5000, "id_type 'int', got 1 fields"),
    ('quote', '1,"2', 'a csv file in UTF-8'),
    ('encoding', b'\xff\xfe,1\n', 'a csv file in UTF-8'),
  )
  def test_refuses(self, content, message):
    with self.assertRaisesRegex(ValueError, f'^path must .*{message}'):
      importers.from_edge_list(self.write(content))

  def test_refuses_an_empty_name(self):
    path = self.write('a, \n')
    with self.assertRaisesRegex(ValueError, "id_type 'str', got 1 fields"):
      importers.from_edge_list(path, id_type='str')

  @parameterized.parameters(
    ({'node_ids': [0]}, 'path must join known nodes, got 1 ends'),
    ({'node_ids': ['0', '1']}, 'path must join known nodes, got 2 ends'),
    ({'node_ids': [0, 1, 0]}, 'node_ids must name every node once'),
    ({'header': 1}, 'header must be one of'),
    ({'header': 'yes'}, 'header must be one of'),
    ({'id_type': 'auto'}, "id_type must be one of 'int', 'str'"),
  )
  def test_refuses_arguments(self, arguments, message):
    path = self.write('0,1\n')
    with self.assertRaisesRegex(ValueError, f'^{message}'):
      importers.from_edge_list(path, **arguments)

  def test_no_such_file(self):
    with self.assertRaises(FileNotFoundError):
      importers.from_edge_list(self.folder / 'nothing.csv')


class PropertyTest(ImportersTestCase):
  @hypothesis.given(
    st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), max_size=12)
  )
  def test_all_agree(self, rows):
    expected, counts = graphs.from_pairs(6, rows)
    edge_index = np.array(rows, int).reshape(-1, 2).T
    names = 'abcdef'
    content = ''.join(f'{names[i]},{names[j]}\n' for i, j in rows)
    dense = np.zeros((6, 6))
    dense[tuple(edge_index)] = 1
    pairs = expected.pairs.tolist()
    for imported, node_ids in (
      (importers.from_pyg(_Data(edge_index=edge_index, num_nodes=6)), range(6)),
      (importers.from_networkx(_nx(range(6), rows)), range(6)),
      (
        importers.from_edge_list(
          self.write(content), id_type='str', node_ids=names
        ),
        names,
      ),
    ):
      self.assert_imports(imported, node_ids, pairs, counts)
    self.assertEqual(importers.from_scipy(dense).graph.pairs.tolist(), pairs)


class PrivacyTest(ImportersTestCase):
  """No error may show an edge: 8888 stands for the end of one."""

  def _calls(self):
    edge_index = np.array([[0, 1], [8888, 0]])
    fields = _jraph(edge_index.T, num_nodes=3)
    sparse = scipy.sparse.csr_array(([1.0], ([0], [1])), (2, 2))
    sparse.indices[0] = 8888
    npz = self.folder / 'matrix.npz'
    scipy.sparse.save_npz(npz, sparse)
    own = self.folder / 'graph.npz'
    np.savez(own, pairs=edge_index.T, num_nodes=3)
    csv = lambda content, **options: (
      lambda: importers.from_edge_list(self.write(content), **options)
    )
    data = _Data(edge_index=edge_index, num_nodes=3)
    return {
      'pyg': lambda: importers.from_pyg(data),
      'pyg_float': lambda: importers.from_pyg(
        _Data(edge_index=edge_index + 0.5, num_nodes=3)
      ),
      'networkx': lambda: importers.from_networkx(_nx([0, 1], [(0, 8888)])),
      'jraph': lambda: importers.from_jraph(fields),
      'npz': lambda: importers.from_npz(own),
      'npz_scipy': lambda: importers.from_npz(npz),
      'csv_ids': csv('0,8888x\n'),
      'csv_nodes': csv('0,8888\n', node_ids=[0, 1]),
      'csv_columns': csv('0,8888,1\n'),
      'csv_encoding': csv(b'0,8888\xff\n'),
      'csv_quote': csv('0,"8888'),
    }

  def test_errors_show_no_edge(self):
    for name, call in self._calls().items():
      with self.subTest(name):
        with self.assertRaises(ValueError) as caught:
          call()
        shown = ''.join(traceback.format_exception_only(caught.exception))
        self.assertNotIn('8888', shown)
        # Nor what `raise ... from error` would print above it.
        self.assertIsNone(caught.exception.__cause__)
        self.assertTrue(
          caught.exception.__suppress_context__
          or caught.exception.__context__ is None
        )


@pytest.mark.peers
class PeersTest(ImportersTestCase):
  def test_reads_pyg(self):
    import torch
    from torch_geometric import data as pyg_data

    edge_index = torch.tensor([[0, 1, 2, 2], [1, 0, 2, 3]])
    for data in (
      pyg_data.Data(edge_index=edge_index, num_nodes=6),
      pyg_data.Data(
        edge_index=edge_index, x=torch.zeros(6, 2, requires_grad=True)
      ),
    ):
      imported = importers.from_pyg(data)
      self.assert_imports(imported, range(6), [[0, 1], [2, 3]], (1, 1))
    with self.assertRaisesRegex(ValueError, 'num_nodes must be known'):
      importers.from_pyg(pyg_data.Data(edge_index=edge_index))
    with self.assertRaisesRegex(ValueError, 'must have edge_index'):
      importers.from_pyg(pyg_data.HeteroData())

  def test_reads_networkx(self):
    networkx = pytest.importorskip('networkx')
    edges = [('b', 'a'), ('a', 'b'), ('a', 'b'), ('c', 'c')]
    for kind, repeats in (
      (networkx.Graph, 0),
      (networkx.DiGraph, 1),
      (networkx.MultiGraph, 2),
      (networkx.MultiDiGraph, 2),
    ):
      graph = kind(edges)
      graph.add_node('z')
      imported = importers.from_networkx(graph)
      self.assert_imports(imported, 'bacz', [[0, 1]], (1, repeats))
    with warnings.catch_warnings():
      warnings.simplefilter('ignore')
      matrix = networkx.to_scipy_sparse_array(networkx.path_graph(3))
    imported = importers.from_scipy(matrix)
    self.assert_imports(imported, range(3), [[0, 1], [1, 2]], (0, 2))
