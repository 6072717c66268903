"""What is public about a release, and its digests.

Everything here is fixed before the mechanism runs and may be handed to anyone:
with it, and a certificate, `verify_certificate` recomputes the support.
"""

import dataclasses
import hashlib
import io
import pathlib
from typing import Any

from flax import traverse_util
import numpy as np
import scipy.sparse

from privjax import _validate
from privjax import counterfactual
from privjax import graphs
from privjax import models
from privjax.release import ledger_records

Capacity = counterfactual.NeighborCapacity | graphs.Capacity


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class PublicObjects:
  """The public side of all releases about one graph.

  Attributes:
    snapshot: the disclosed graph.
    features: `[N, F]` float32 CSR features.
    model: the frozen classifier; its parameters are public.
    first_layer: `[F, H]` kernel that ranks candidate features: the model's own
      first layer, if it has one.
    config: settings of the mechanism.
    capacity: public sizes of a scored neighborhood.
  """

  snapshot: graphs.Snapshot
  features: scipy.sparse.csr_array
  model: models.NodeModel
  first_layer: np.ndarray
  config: counterfactual.PrivCFSConfig
  capacity: Capacity

  def __post_init__(self):
    num_nodes = self.snapshot.graph.num_nodes
    _validate.shape((num_nodes, None), features=self.features)
    _validate.finite(features=self.features)
    _validate.canonical(features=self.features)
    num_features = self.features.shape[1]
    _validate.shape((num_features, None), first_layer=self.first_layer)
    _validate.finite(first_layer=self.first_layer)

  def arrays(self) -> dict[str, dict[str, np.ndarray]]:
    """Returns the arrays of snapshot, features, backbone and first layer."""
    params = traverse_util.flatten_dict(dict(self.model.params), sep='/')
    return {
      'snapshot': {
        'num_nodes': np.array(self.snapshot.graph.num_nodes),
        'pairs': self.snapshot.graph.pairs,
      },
      'features': {
        'data': self.features.data,
        'indices': self.features.indices.astype(np.int64),
        'indptr': self.features.indptr.astype(np.int64),
        'shape': np.array(self.features.shape),
      },
      'backbone': {name: np.asarray(params[name]) for name in params},
      'first_layer': {'kernel': np.asarray(self.first_layer)},
    }

  def digests(self) -> dict[str, str]:
    """Returns the sha256 of each group of arrays."""
    return {name: array_digest(group) for name, group in self.arrays().items()}

  def save(self, path: pathlib.Path) -> None:
    """Writes the arrays for a verifier, as `<group>.<name>` in one npz."""
    flat: dict[str, Any] = {
      f'{group}.{name}': array
      for group, arrays in self.arrays().items()
      for name, array in arrays.items()
    }
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **flat)
    path.write_bytes(buffer.getvalue())


def array_digest(arrays: dict[str, np.ndarray]) -> str:
  """Hashes named arrays: dtype, shape and little-endian bytes, by name."""
  digest = hashlib.sha256()
  for name in sorted(arrays):
    array = np.asarray(arrays[name])
    array = np.ascontiguousarray(array, array.dtype.newbyteorder('<'))
    header = [name, array.dtype.str, list(arrays[name].shape)]
    digest.update(ledger_records.canonical_json(header).encode() + b'\n')
    digest.update(array.tobytes())
  return digest.hexdigest()


def support_digest(support: counterfactual.CandidateSet) -> str:
  """Hashes the support: the deletable pairs and maskable features, by subset.

  It covers every candidate, in order, through the two factors of the product.
  """
  universe = support.universe
  content = [
    universe.target,
    [
      universe.pairs[row].tolist()
      for row in support.edge_subsets[support.edge_valid]
    ],
    [
      universe.features[row].tolist()
      for row in support.feature_subsets[support.feature_valid]
    ],
  ]
  text = ledger_records.canonical_json(content)
  return hashlib.sha256(text.encode()).hexdigest()
