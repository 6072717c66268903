"""The public universe of a target: which pairs and features may be touched.

PrivCFS, Sec. 3.3, eqs. 5-7. Every argument here is public, so the support of a
release cannot depend on the private edges: the signature is the proof (Lemma
1), and a test checks that no private type can reach these functions.
"""

from typing import Literal, NamedTuple

import numpy as np
import scipy.sparse

from privjax import _validate
from privjax import graphs
from privjax import types


class Universe(NamedTuple):
  """Public ingredients of the support, padded to fixed public sizes.

  Attributes:
    target: node id v, int.
    pairs: `[k_E, 2]` int64 node pairs; padding is (v, v).
    pair_valid: `[k_E]` bool, False on padding.
    features: `[k_F]` int64 feature ids; padding is 0.
    feature_valid: `[k_F]` bool, False on padding.
  """

  target: int
  pairs: np.ndarray
  pair_valid: np.ndarray
  features: np.ndarray
  feature_valid: np.ndarray


def build_universe(
  snapshot: graphs.Snapshot,
  features: scipy.sparse.csr_array,
  first_layer: types.Array,
  target: int,
  *,
  num_pairs: int = 12,
  num_features: int = 12,
  num_hops: Literal[1, 2] = 1,
  fill_features: bool = False,
) -> Universe:
  """Builds the universe of `target` from public objects alone.

  Args:
    snapshot: the public graph.
    features: `[N, F]` public features.
    first_layer: `[F, H]` public kernel of the frozen backbone's first layer.
    target: node id in [0, N).
    num_pairs: k_E >= 0, at most this many candidate pairs.
    num_features: k_F >= 0, at most this many candidate features.
    num_hops: 1 takes pairs (v, u) with u a snapshot neighbor of v; 2 appends
      pairs (u, w) between those and their snapshot neighbors.
    fill_features: pads the features to `num_features` with zero-valued
      dimensions, as the reproduction of the published tables needs.

  Returns:
    The padded `Universe`; empty (all padding) for an isolated target.

  Raises:
    TypeError: if `snapshot` is not a `Snapshot`.
    ValueError: on a bad value or shape.
  """
  if not isinstance(snapshot, graphs.Snapshot):
    raise TypeError(
      'snapshot must be a graphs.Snapshot (a public disclosure), got '
      f'{type(snapshot).__name__}'
    )
  _validate.integer(0, snapshot.graph.num_nodes - 1, target=target)
  _validate.integer(0, num_pairs=num_pairs)
  _validate.integer(0, num_features=num_features)
  _validate.one_of((1, 2), num_hops=num_hops)
  _validate.shape((snapshot.graph.num_nodes, None), features=features)
  _validate.shape((features.shape[1], None), first_layer=first_layer)
  _validate.finite(features=features)
  _validate.canonical(features=features)
  _validate.finite(first_layer=first_layer)
  pairs = _candidate_pairs(snapshot.graph, target, num_hops)[:num_pairs]
  dims = _candidate_features(features, first_layer, target)[:num_features]
  if fill_features:
    dims = _fill(dims, features, target, num_features)
  return Universe(
    target=int(target),
    pairs=_pad(pairs, num_pairs, target),
    pair_valid=np.arange(num_pairs) < len(pairs),
    features=_pad(dims, num_features, 0),
    feature_valid=np.arange(num_features) < len(dims),
  )


def _candidate_pairs(graph: graphs.Graph, target: int, num_hops: int):
  """Returns `[P, 2]` pairs in the order that truncation keeps."""
  near = graph.neighbors(target)
  pairs = [(target, int(u)) for u in near]
  if num_hops == 2:
    seen = set(pairs)
    for u in map(int, near):
      for w in map(int, graph.neighbors(u)):
        pair = (min(u, w), max(u, w))
        if w != target and pair not in seen:
          seen.add(pair)
          pairs.append((u, w))
  return np.array(pairs, dtype=np.int64).reshape(-1, 2)


def _candidate_features(features, first_layer, target) -> np.ndarray:
  """Ranks the nonzero features of `target` by abs(x_vd) * norm2(W1[d]).

  Squares are compared, in exact rational arithmetic on the stored floats: the
  support (and its digest) must be the same on every machine.
  """
  start, stop = features.indptr[target], features.indptr[target + 1]
  dims, values = features.indices[start:stop], features.data[start:stop]
  rows = _as_integers(np.asarray(first_layer)[dims])
  norms = (rows * rows).sum(axis=1)
  influences = _as_integers(values) ** 2 * norms
  ranked = sorted(
    (-influence, int(dim))
    for influence, dim, value in zip(influences, dims, values)
    if value != 0
  )
  return np.array([dim for _, dim in ranked], dtype=np.int64)


def _as_integers(values: np.ndarray) -> np.ndarray:
  """Returns exact Python ints, `values * 2**s` for one common shift s."""
  mantissa, exponent = np.frexp(values.astype(np.float64))
  whole = np.ldexp(mantissa, 53).astype(np.int64).astype(object)
  shift = exponent.astype(np.int64)
  return whole << (shift - shift.min(initial=0)).astype(object)


def _fill(dims, features, target, num_features) -> np.ndarray:
  """Appends the lowest zero-valued feature ids up to `num_features`."""
  row = features[[target]].toarray()[0]
  zero = np.flatnonzero(row == 0)
  return np.concatenate([dims, zero[: max(num_features - len(dims), 0)]])


def _pad(rows: np.ndarray, size: int, value: int) -> np.ndarray:
  padded = np.full((size, *rows.shape[1:]), value, np.int64)
  padded[: len(rows)] = rows
  return padded
