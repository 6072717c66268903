"""Graphs of other libraries and of files, as canonical undirected graphs.

Nothing is imported from those libraries: an importer reads the attributes that
it names. Every importer makes an undirected simple graph without weights. A
direction is dropped (u -> v is the edge {u, v}), so is every edge or node
attribute. Self-loops and repeats are dropped and counted: a source that stores
both directions of its M edges has M duplicates.

Node i is `node_ids[i]`. Original ids that are the integers 0..N-1 stay as they
are; the others keep the order of the object's node list (NetworkX) or are
sorted (edge list).

Under `ADD_REMOVE_ONE_EDGE` the node set and its order are public and the edges
are private. So no number of nodes is read off the edges, `counts` is not for
release, and no error shows an edge.

>>> import types
>>> data = types.SimpleNamespace(
...   edge_index=np.array([[0, 1, 1, 2], [1, 0, 1, 1]]), num_nodes=4
... )
>>> imported = from_pyg(data)
>>> imported.graph.pairs.tolist(), imported.graph.degree.tolist()
([[0, 1], [1, 2]], [1, 2, 1, 0])
>>> imported.counts
CanonicalCounts(self_loops=1, duplicates=1)
"""

from collections.abc import Hashable, Mapping, Sequence
import csv
import io
import numbers
import os
import pathlib
from typing import Any, Literal, NamedTuple

import numpy as np
import scipy.sparse

from privjax import _validate
from privjax import types
from privjax.graphs import graph as graph_lib


class ImportedGraph(NamedTuple):
  """A graph beside what the source called its nodes.

  Attributes:
    graph: on nodes 0..N-1. Wrap it as a `PrivateGraph` or a `Snapshot`.
    node_ids: N original ids; node i of `graph` is `node_ids[i]`.
    counts: the self-loops and repeats dropped. They depend on the private
      edges: not for release.
  """

  graph: graph_lib.Graph
  node_ids: tuple[Hashable, ...]
  counts: graph_lib.CanonicalCounts


def from_pyg(data: Any, *, num_nodes: int | None = None) -> ImportedGraph:
  """Reads a PyTorch Geometric `Data`, or anything with its attributes.

  Args:
    data: `edge_index` `[2, E]` integers (tensor or array), and `x` with N rows
      or a stored `num_nodes`. Other attributes are not read.
    num_nodes: N, if `data` has neither.

  Returns:
    The graph; its `node_ids` are 0..N-1.

  Raises:
    ValueError: if `edge_index` is missing or malformed, or if N is missing or
      stated twice with different values. (PyG would then guess N from the
      private edges, and lose isolated nodes.)
  """
  if getattr(data, 'edge_index', None) is None:
    raise ValueError(
      f'data must have edge_index, got a {type(data).__name__} without one '
      '(PyG keeps it unless ToSparseTensor ran; of a HeteroData pass one '
      'homogeneous graph)'
    )
  stated = {
    'num_nodes': num_nodes,
    'data.num_nodes': _stored_num_nodes(data),
    'data.x': None if getattr(data, 'x', None) is None else data.x.shape[0],
  }
  stated = {key: value for key, value in stated.items() if value is not None}
  for key, value in stated.items():
    _validate.integer(1, **{key: value})
  if len(set(stated.values())) != 1:
    raise ValueError(
      'num_nodes must be known, and the same from data.x, data.num_nodes and '
      f'the argument, got {stated}'
    )
  size = next(iter(stated.values()))
  edge_index = as_array(data.edge_index, 'edge_index')
  _validate.shape((2, None), edge_index=edge_index)
  return _imported(range(int(size)), edge_index.T, 'edge_index')


def from_networkx(
  graph: Any, *, node_ids: Sequence[Hashable] | None = None
) -> ImportedGraph:
  """Reads a NetworkX graph, directed or not, with parallel edges or not.

  NetworkX lists nodes as they were added: where edges brought them in, that
  order depends on the edges. Integers 0..N-1 are immune; for other ids pass
  `node_ids`, or add the nodes before the edges.

  Args:
    graph: `nodes` iterates hashable ids, `edges` tuples that start with two of
      them (a multigraph adds a key).
    node_ids: every node once, in the order wanted; `None` keeps integers
      0..N-1 as they are, and otherwise the order of `graph.nodes`.

  Raises:
    ValueError: if an attribute is missing, there is no node, or `node_ids` is
      not the node set.
  """
  for name in ('nodes', 'edges'):
    if not hasattr(graph, name):
      raise ValueError(f'graph must have {name}, got {type(graph).__name__}')
  nodes = _distinct(graph.nodes)
  if node_ids is None:
    order = sorted(nodes) if _are_indices(nodes) else nodes
  else:
    order = _distinct(node_ids)
    num_missing = len(set(nodes) ^ set(order))
    if num_missing:
      raise ValueError(
        'node_ids must be the nodes of the graph, got '
        f'{num_missing} ids in only one of the two'
      )
  if not order:
    raise ValueError('graph must have at least one node, got 0')
  return _relabeled(order, [edge[:2] for edge in graph.edges], 'graph.edges')


def from_scipy(matrix: Any) -> ImportedGraph:
  """Reads an adjacency matrix: a nonzero entry (i, j) is the edge {i, j}.

  Args:
    matrix: `[N, N]`, SciPy sparse or dense, finite. Entries stored twice are
      summed first, as SciPy does, and zeros dropped: `counts` is about nonzero
      entries. Need not be symmetric.

  Returns:
    The graph; its `node_ids` are 0..N-1.

  Raises:
    ValueError: if the matrix is not square, not finite or not of numbers.
  """
  if not scipy.sparse.issparse(matrix):
    matrix = as_array(matrix, 'matrix')
  _validate.shape((None, None), matrix=matrix)
  num_nodes, num_columns = matrix.shape
  if num_nodes != num_columns or not num_nodes:
    raise ValueError(
      f'matrix must be square and not empty, got {num_nodes, num_columns}'
    )
  if matrix.dtype.kind not in 'biuf':
    raise ValueError(f'matrix must hold real numbers, got {matrix.dtype}')
  entries = scipy.sparse.coo_array(matrix)
  _validate.finite(matrix=entries)
  # float64: repeated entries of a small integer type could sum to zero.
  entries = entries.astype(np.float64).tocsr()
  pairs = np.stack(entries.nonzero(), axis=1)
  return _imported(range(num_nodes), pairs, 'matrix')


def from_npz(path: str | os.PathLike) -> ImportedGraph:
  """Reads a graph file of `save_npz`, or a matrix of `scipy.sparse.save_npz`.

  Args:
    path: an npz file with `pairs` `[P, 2]` and `num_nodes`, or with a SciPy
      matrix. Nothing is unpickled.

  Returns:
    The graph; its `node_ids` are 0..N-1.

  Raises:
    FileNotFoundError: if there is no such file.
    ValueError: if the file is neither, holds pickled objects, or its pairs or
      matrix are malformed.
  """
  content = pathlib.Path(path).read_bytes()
  try:
    with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
      own = {k: arrays[k] for k in ('pairs', 'num_nodes') if k in arrays}
    if len(own) < 2:
      matrix = scipy.sparse.load_npz(io.BytesIO(content))
      if hasattr(matrix, 'check_format'):
        matrix.check_format(full_check=True)
  # A damaged file fails in many ways; none may show what it holds.
  except Exception as error:
    raise ValueError(
      'path must be an npz file with pairs and num_nodes, or of '
      'scipy.sparse.save_npz, without pickled objects, got '
      f'{path} ({type(error).__name__})'
    ) from None
  if len(own) < 2:
    return from_scipy(matrix)
  _validate.shape((), num_nodes=own['num_nodes'])
  num_nodes = own['num_nodes'][()]
  _validate.integer(1, num_nodes=num_nodes)
  return _imported(range(int(num_nodes)), own['pairs'], 'pairs')


def save_npz(path: str | os.PathLike, graph: graph_lib.Graph) -> None:
  """Writes `pairs` and `num_nodes` as npz, whole or not at all.

  The file holds the edges: not for release.
  """
  if not isinstance(graph, graph_lib.Graph):
    raise TypeError(f'graph must be a Graph, got {type(graph).__name__}')
  buffer = io.BytesIO()
  np.savez_compressed(buffer, pairs=graph.pairs, num_nodes=graph.num_nodes)
  path = pathlib.Path(path)
  partial = path.with_name(f'{path.name}.partial')
  partial.write_bytes(buffer.getvalue())
  partial.replace(path)


def from_jraph(graphs_tuple: Any) -> ImportedGraph:
  """Reads a `jraph.GraphsTuple` that holds one graph, without padding.

  Args:
    graphs_tuple: `senders` and `receivers` `[E]` integers, `n_node` and
      `n_edge` `[1]`. `edges['mask']`, if there is one, must be all ones: a
      masked edge is deleted or padding.

  Returns:
    The graph; its `node_ids` are 0..N-1.

  Raises:
    ValueError: if there is another number of graphs (padding is a graph), or a
      field is malformed.
  """
  for name in ('senders', 'receivers', 'n_node', 'n_edge'):
    if getattr(graphs_tuple, name, None) is None:
      kind = type(graphs_tuple).__name__
      raise ValueError(f'graphs_tuple must have {name}, got a {kind} without')
  num_nodes = as_array(graphs_tuple.n_node, 'n_node')
  num_edges = as_array(graphs_tuple.n_edge, 'n_edge')
  if num_nodes.shape != (1,) or num_edges.shape != (1,):
    raise ValueError(
      'graphs_tuple must hold one graph (unpad or unbatch it first), got '
      f'n_node of shape {num_nodes.shape}'
    )
  _validate.integer(1, n_node=num_nodes[0])
  senders = as_array(graphs_tuple.senders, 'senders')
  _validate.shape((int(num_edges[0]),), senders=senders)
  receivers = as_array(graphs_tuple.receivers, 'receivers')
  _validate.shape(senders.shape, receivers=receivers)
  edges = getattr(graphs_tuple, 'edges', None)
  if isinstance(edges, Mapping) and 'mask' in edges:
    num_masked = int(np.count_nonzero(as_array(edges['mask'], 'mask') != 1))
    if num_masked:
      raise ValueError(
        "graphs_tuple.edges['mask'] must be all ones (drop masked edges "
        f'first), got {num_masked} other entries'
      )
  for name, ids in (('senders', senders), ('receivers', receivers)):
    _check_ids(int(num_nodes[0]), name, ids)
  # int64: signed and unsigned ids would meet as floats.
  pairs = np.stack([senders, receivers], axis=1, dtype=np.int64)
  return _imported(range(int(num_nodes[0])), pairs, 'senders and receivers')


def from_edge_list(
  path: str | os.PathLike,
  *,
  header: bool = False,
  id_type: Literal['int', 'str'] = 'int',
  node_ids: Sequence[Hashable] | None = None,
) -> ImportedGraph:
  """Reads a csv file with one edge a row, in two columns.

  An edge list names no isolated node. Without `node_ids` a node is what some
  edge mentions, so that the node set, taken to be public, depends on the
  private edges: pass `node_ids` for a graph that is to be private.

  Args:
    path: UTF-8, separated by commas. Spaces around an id and blank lines are
      ignored.
    header: whether the first row names the columns.
    id_type: 'int' reads decimal integers (not `01` or `+1`); 'str' takes ids
      as they are.
    node_ids: every node once, in the order wanted; `None` takes the ids in the
      file, sorted.

  Raises:
    FileNotFoundError: if there is no such file.
    ValueError: if a row has another number of columns, an id is not of
      `id_type`, is empty or is not in `node_ids`, or there is no node.
  """
  _validate.one_of((True, False), header=header)
  _validate.one_of(('int', 'str'), id_type=id_type)
  rows = _csv_rows(path)[header:]
  num_bad = sum(len(row) != 2 for row in rows)
  if num_bad:
    raise ValueError(
      f'path must have two columns, got {num_bad} rows with another number'
    )
  rows = [[field.strip() for field in row] for row in rows]
  is_bad = (lambda text: not text) if id_type == 'str' else _is_not_integer
  num_bad = sum(is_bad(field) for row in rows for field in row)
  if num_bad:
    raise ValueError(
      f'path must hold ids of id_type {id_type!r}, got {num_bad} fields that '
      "are not (a header needs header=True, names need id_type='str')"
    )
  convert = int if id_type == 'int' else str
  edges = [(convert(first), convert(second)) for first, second in rows]
  if node_ids is None:
    order = sorted({node for edge in edges for node in edge})
  else:
    order = _distinct(node_ids)
  if not order:
    raise ValueError('node_ids must name the nodes of a file without edges')
  return _relabeled(order, edges, 'path')


def as_array(value: Any, name: str) -> np.ndarray:
  """Returns an array on the host; of a torch tensor, its detached copy.

  Raises:
    ValueError: naming `name`, if NumPy cannot hold the value (torch bfloat16).
  """
  if hasattr(value, 'detach'):
    try:
      value = value.detach().cpu().numpy()
    except (RuntimeError, TypeError) as error:
      raise ValueError(f'{name} must convert to NumPy: {error}') from error
  return np.asarray(value)


def _stored_num_nodes(data: Any) -> Any:
  """Returns `num_nodes` as stored; the property of PyG may guess it."""
  if callable(getattr(data, 'to_dict', None)):
    return data.to_dict().get('num_nodes')
  return getattr(data, 'num_nodes', None)


def _csv_rows(path: str | os.PathLike) -> list[list[str]]:
  """Returns the rows that are not blank; a bad file shows nothing it holds."""
  content = pathlib.Path(path).read_bytes()
  try:
    lines = io.StringIO(content.decode('utf-8-sig'), newline='')
    reader = csv.reader(lines, skipinitialspace=True, strict=True)
    return [row for row in reader if row]
  except (UnicodeDecodeError, csv.Error) as error:
    raise ValueError(
      f'path must be a csv file in UTF-8, got {path} ({type(error).__name__})'
    ) from None


def _is_not_integer(text: str) -> bool:
  try:
    return str(int(text)) != text
  except ValueError:
    return True


def _are_indices(nodes: list) -> bool:
  """Whether the ids are the integers 0..N-1, in any order."""
  return all(
    isinstance(node, numbers.Integral) and not isinstance(node, bool)
    for node in nodes
  ) and set(nodes) == set(range(len(nodes)))


def _distinct(node_ids: Sequence[Hashable]) -> list:
  order = list(node_ids)
  num_repeats = len(order) - len(set(order))
  if num_repeats:
    raise ValueError(
      f'node_ids must name every node once, got {num_repeats} repeats'
    )
  return order


def _relabeled(order: list, edges: list, name: str) -> ImportedGraph:
  """Builds the graph of edges between ids of any type."""
  index = {node: i for i, node in enumerate(order)}
  pairs = [[index.get(node, -1) for node in edge] for edge in edges]
  num_unknown = sum(row.count(-1) for row in pairs)
  if num_unknown:
    raise ValueError(
      f'{name} must join known nodes, got {num_unknown} ends that are not in '
      'the list of nodes'
    )
  return _imported(order, np.array(pairs, np.int64).reshape(-1, 2), name)


def _imported(
  node_ids: Sequence[Hashable], pairs: types.Array, name: str
) -> ImportedGraph:
  """Builds the graph of pairs of indices; errors call them `name`."""
  _validate.shape((None, 2), **{name: pairs})
  if pairs.size:
    _check_ids(len(node_ids), name, pairs)
  graph, counts = graph_lib.from_pairs(len(node_ids), pairs)
  return ImportedGraph(graph, tuple(node_ids), counts)


def _check_ids(num_nodes: int, name: str, ids: types.Array) -> None:
  """Checks before ids of two types meet in one array, and names the culprit."""
  if ids.size and not np.issubdtype(ids.dtype, np.integer):
    raise ValueError(f'{name} must hold integer node ids, got {ids.dtype}')
  num_outside = int(np.count_nonzero((ids < 0) | (ids >= num_nodes)))
  if num_outside:
    raise ValueError(
      f'{name} must hold node ids in [0, {num_nodes}), got {num_outside} ids '
      'outside'
    )
