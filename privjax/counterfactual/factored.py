"""Default evaluator: the exact factored form of a two-layer GCN.

Write `Z = X W1`, `r_x = 1 / sqrt(degree_x + 1)` after deletion, and let u run
over the target's neighbors and the target v itself. Then (Kipf & Welling,
2017, eq. 9, at one node)

  logits(a, b) = sum_u w[a,u] relu(P[a,u] + c[a,u] z_v(b) + b1) W2 + b2,

where the edge subset a fixes `w = c = r_u r_v` (0 for a deleted neighbor) and
`P`, and the feature subset b fixes `z_v(b) = Z_v - sum_d x_vd W1[d]`. So the
work is `A x B x (degree + 1) x H`, and nothing is recomputed per candidate.

`P` is a sum over the neighbors w of u. Deletions change it through the degrees
of few *public* nodes, the endpoints of the candidate pairs (a deleted (v, w)
lowers the degree of w, which u sees if u and w are adjacent: the triangle
correction). So the sum is taken once per neighbor, on the host in float64 and
in ascending node order, and corrected per edge subset.
"""

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse

from privjax import _validate
from privjax import graphs
from privjax import types
from privjax.counterfactual import candidates as candidates_lib
from privjax.counterfactual import evaluation
from privjax.models import gcn
from privjax.models import node_model

# Neighbor slots are padded up to one of these, so few shapes are compiled.
BUCKETS = (4, 12, 40, 180)
CHUNK_SIZE = 10


class NeighborCapacity(NamedTuple):
  """Public sizes of a scored neighborhood.

  A target with more neighbors than `neighbors`, or a neighbor with more than
  `second` of its own, is scored on its lowest ids: any score in range keeps the
  guarantee, and "valid" then speaks of the truncated model. Degrees, and which
  named pairs exist, are still those of the whole graph.

  Attributes:
    neighbors: slots for the neighbors of the target.
    second: slots for the neighbors of each of them.
  """

  neighbors: int
  second: int


class FactoredInputs(NamedTuple):
  """What the jitted stage reads; U neighbor slots, Q = 2 k_E endpoint slots.

  Private; not for release. Shapes depend on k_E, A, B and the capacity U only.

  Attributes:
    slot_valid: `[U]` bool, real neighbors of the target.
    slot_degree: `[U]` float, degree + 1 before deletion (1 on padding).
    slot_z: `[U, H]` rows of Z.
    slot_sum: `[U, H]`, sum of `r_w Z_w` over the neighbors w != v of the slot.
    node_degree: `[Q]` float, degree + 1 of the endpoints (1 on padding).
    node_z: `[Q, H]` rows of Z.
    adjacent: `[U, Q]` bool, which slots and endpoints are adjacent.
    target_degree: `[]` float, degree + 1.
    cuts_slot: `[U, k_E]` bool, the pair is {target, slot}.
    cuts_node: `[U, Q, k_E]` bool, the pair is {slot, endpoint}.
    on_slot: `[U, k_E]` bool, the pair touches the slot.
    on_node: `[Q, k_E]` bool, the pair touches the endpoint.
    on_target: `[k_E]` bool, the pair touches the target.
    deleted: `[A', k_E]` bool, existing pairs that the row deletes.
    keep: `[B', k_F]` bool, candidate features that the column keeps.
    feature_z: `[k_F, H]`, what each candidate feature adds to the target's Z.
    rest_z: `[H]`, what its other features add.
  """

  slot_valid: types.Array
  slot_degree: types.Array
  slot_z: types.Array
  slot_sum: types.Array
  node_degree: types.Array
  node_z: types.Array
  adjacent: types.Array
  target_degree: types.Array
  cuts_slot: types.Array
  cuts_node: types.Array
  on_slot: types.Array
  on_node: types.Array
  on_target: types.Array
  deleted: types.Array
  keep: types.Array
  feature_z: types.Array
  rest_z: types.Array


def evaluate_factored(
  model: node_model.NodeModel,
  graph: graphs.PrivateGraph | graphs.Snapshot,
  features: scipy.sparse.csr_array,
  candidates: candidates_lib.CandidateSet,
  *,
  feature_masks: evaluation.FeatureMasks = 'effective',
  capacity: NeighborCapacity | None = None,
  chunk_size: int = CHUNK_SIZE,
  projected: np.ndarray | None = None,
  dtype: type = np.float64,
) -> evaluation.CandidateEvaluation:
  """Scores every candidate of a two-layer GCN through the factored form.

  Reads private edges; the result is not for release.

  Args:
    model: a `models.gcn` backbone.
    graph: the graph to score on (a `Snapshot` for public-only explanations).
    features: `[N, F]` public features.
    candidates: the support; any pairs (one-hop, two-hop or elsewhere).
    feature_masks: 'effective' or 'inert'.
    capacity: public sizes, for a release; `None` takes sizes that fit, which
      depend on the private neighborhood (experiments).
    chunk_size: edge subsets per step; the peak is about
      `chunk_size * B * H` plus `A * B * K` numbers. The default keeps a step of
      a usual support in the processor's cache.
    projected: `[N, H]` float64 `project(model, features)`, if at hand.
    dtype: float64 decides exactly enough for anything that is reported;
      float32 is for speed measurements and may move ties at 1e-6.

  Returns:
    The evaluation of all A x B candidates.

  Raises:
    ValueError: if `model` is not a two-layer GCN, or on a bad value or shape.
  """
  if model.apply_fn is not gcn.apply:
    raise ValueError(
      'model must be a models.gcn backbone; use evaluate_subgraph for others'
    )
  _validate.integer(1, chunk_size=chunk_size)
  num_features = model.params['hidden']['kernel'].shape[0]
  _validate.shape((None, num_features), features=features)
  plan = evaluation.plan(graph, features, candidates, feature_masks)
  inputs = prepare(
    model,
    features,
    candidates,
    plan,
    capacity=capacity,
    projected=projected,
  )
  with jax.enable_x64(dtype == np.float64):
    cast = lambda x: x.astype(dtype, copy=False) if x.dtype.kind == 'f' else x
    inputs = FactoredInputs(*map(cast, inputs))
    params = jax.tree.map(cast, _used(model.params))
    decision = _decide_all(params, inputs, chunk_size=chunk_size)
    return evaluation.finish(decision, plan, candidates)


def project(
  model: node_model.NodeModel, features: scipy.sparse.csr_array
) -> np.ndarray:
  """Returns the public projection `Z = X W1`, `[N, H]` float64."""
  return features @ np.asarray(model.params['hidden']['kernel'], np.float64)


def prepare(
  model: node_model.NodeModel,
  features: scipy.sparse.csr_array,
  candidates: candidates_lib.CandidateSet,
  plan: evaluation.Plan,
  *,
  capacity: NeighborCapacity | None = None,
  projected: np.ndarray | None = None,
) -> FactoredInputs:
  """Gathers and pads what the jitted stage reads, on the host in float64."""
  universe, graph = candidates.universe, plan.graph
  target = universe.target
  z = project(model, features) if projected is None else projected
  capacity = _fitting(graph, target) if capacity is None else capacity
  slots, valid = graph.padded_neighbors(target, capacity.neighbors)
  second, second_valid = graph.padded_neighbors(slots, capacity.second)
  second_valid &= valid[:, None] & (second != target)
  nodes, node_valid = _endpoints(universe)
  return FactoredInputs(
    slot_valid=valid,
    slot_degree=np.where(valid, graph.degree[slots] + 1.0, 1.0),
    slot_z=z[slots] * valid[:, None],
    slot_sum=_neighbor_sums(graph, z, second, second_valid),
    node_degree=np.where(node_valid, graph.degree[nodes] + 1.0, 1.0),
    node_z=z[nodes] * node_valid[:, None],
    target_degree=np.asarray(graph.degree[target] + 1.0),
    deleted=plan.deleted,
    adjacent=_adjacent(second, second_valid, nodes, node_valid),
    keep=plan.keep,
    **_target_parts(model, features, universe),
    **_incidence(universe, (slots, valid), (nodes, node_valid)),
  )


def score(params: types.Params, inputs: FactoredInputs, chunk_size: int):
  """Returns logits `[A', B', K]`; pure, jit- and vmap-able.

  Args:
    params: `models.gcn` parameters, in the dtype of `inputs`.
    inputs: from `prepare`.
    chunk_size: edge subsets per step, static.
  """
  hidden, output = params['hidden'], params['output']
  z_masked = _masked(inputs)

  def one(deleted):
    p, c, w = _first_stage(inputs, deleted, hidden['bias'])
    total = _aggregate(p, c, w, z_masked)
    highest = jax.lax.Precision.HIGHEST
    logits = jnp.matmul(total, output['kernel'], precision=highest)
    return logits + output['bias'][None, :]

  num_rows = len(inputs.deleted)
  if num_rows <= chunk_size:
    return jax.vmap(one)(inputs.deleted)
  # Whole chunks only: the rest would be compiled a second time.
  padded = jnp.pad(inputs.deleted, ((0, -num_rows % chunk_size), (0, 0)))
  return jax.lax.map(one, padded, batch_size=chunk_size)[:num_rows]


@functools.partial(jax.jit, static_argnames='chunk_size')
def _decide_all(params, inputs, *, chunk_size):
  return evaluation.decide(score(params, inputs, chunk_size))


def _masked(inputs: FactoredInputs):
  """Returns `[B', H]`: the target's row of Z without the masked features.

  A sum over what is kept: subtracting what is masked would leave roundings
  where the exact value is 0, and so decide exact ties.
  """
  kept = jnp.where(inputs.keep[:, :, None], inputs.feature_z[None], 0)
  return inputs.rest_z[None, :] + kept.sum(axis=1)


def _first_stage(inputs: FactoredInputs, deleted, bias):
  """Returns P `[U+1, H]`, c `[U+1]` and w `[U+1]` of one edge subset."""
  gone = lambda x: x & jnp.expand_dims(deleted, range(x.ndim - 1))
  count = lambda touched: gone(touched).sum(axis=-1)
  scale = lambda degree, lost: 1 / jnp.sqrt(degree - lost)
  r_target = scale(inputs.target_degree, count(inputs.on_target))
  r_slot = scale(inputs.slot_degree, count(inputs.on_slot))
  r_node = scale(inputs.node_degree, count(inputs.on_node))
  still = inputs.adjacent & ~gone(inputs.cuts_node).any(axis=-1)
  # What the deletions change in each neighbor's sum: exactly 0 where no degree
  # changed and no edge went, so deleting a non-edge is a bit-exact no-op.
  change = (
    still * r_node[None, :]
    - inputs.adjacent * scale(inputs.node_degree, 0)[None, :]
  )
  corrected = inputs.slot_sum + jnp.matmul(
    change, inputs.node_z, precision=jax.lax.Precision.HIGHEST
  )
  alive = inputs.slot_valid & ~gone(inputs.cuts_slot).any(axis=-1)
  slot_p = r_slot[:, None] * (corrected + r_slot[:, None] * inputs.slot_z)
  own_p = r_target * ((alive * r_slot)[:, None] * inputs.slot_z).sum(axis=0)
  p = jnp.concatenate([slot_p, own_p[None, :]]) + bias[None, :]
  c = r_target * jnp.append(r_slot, r_target)
  return p, c, c * jnp.append(alive, True)


def _aggregate(p, c, w, z_masked):
  """Returns `sum_u w_u relu(p_u + c_u z)`, `[B, H]`.

  A loop over u keeps the accumulator in cache; the broadcast form, which
  materializes `[A, U, B, H]`, was measured 15 times slower. Few terms are
  unrolled into one fused kernel.
  """

  def add(total, row):
    p_u, c_u, w_u = row
    return total + w_u * jax.nn.relu(p_u[None, :] + c_u * z_masked), None

  unroll = evaluation.unroll_few(len(p))
  start = jnp.zeros_like(z_masked)
  return jax.lax.scan(add, start, (p, c, w), unroll=unroll)[0]


def _fitting(graph: graphs.Graph, target: int) -> NeighborCapacity:
  """Returns sizes that truncate nothing; few values of the first one."""
  degree = int(graph.degree[target])
  fitting = [bucket for bucket in BUCKETS if bucket >= degree]
  neighbors = fitting[0] if fitting else 1 << (degree - 1).bit_length()
  widest = graph.degree[graph.neighbors(target)].max(initial=1)
  return NeighborCapacity(neighbors, int(widest))


def _incidence(universe, slots, nodes) -> dict[str, np.ndarray]:
  """Returns which pairs are, and touch, which slots and endpoints."""
  (slots, slot_valid), (nodes, node_valid) = slots, nodes
  first, second = universe.pairs.T
  touches = lambda ids: (ids[..., None] == first) | (ids[..., None] == second)
  on_slot = touches(slots) & slot_valid[:, None]
  on_node = touches(nodes) & node_valid[:, None]
  on_target = touches(np.array(universe.target)) & universe.pair_valid
  distinct = slots[:, None] != nodes[None, :]
  valid = slot_valid[:, None] & node_valid[None, :] & distinct
  return {
    'cuts_slot': on_slot & on_target,
    'cuts_node': on_slot[:, None] & on_node[None] & valid[..., None],
    'on_slot': on_slot,
    'on_node': on_node,
    'on_target': on_target,
  }


def _endpoints(universe) -> tuple[np.ndarray, np.ndarray]:
  """Returns the distinct endpoints but the target, padded to `[2 k_E]`."""
  nodes = np.unique(universe.pairs[universe.pair_valid])
  nodes = nodes[nodes != universe.target]
  size = 2 * len(universe.pairs)
  padded = np.zeros(size, np.int64)
  padded[: len(nodes)] = nodes
  return padded, np.arange(size) < len(nodes)


def _neighbor_sums(graph, z, second, valid) -> np.ndarray:
  """Returns `[U, H]`: sums of `r_w Z_w` over the neighbors w of each slot."""
  r = valid / np.sqrt(graph.degree[second] + 1.0)
  # A sparse product adds one neighbor after the other, ascending: the order of
  # the sum, and so its rounding, is a function of the graph and not of padding.
  rows = np.arange(len(second) + 1) * second.shape[1]
  shape = (len(second), len(z))
  return scipy.sparse.csr_array((r.ravel(), second.ravel(), rows), shape) @ z


def _adjacent(second, second_valid, nodes, node_valid) -> np.ndarray:
  """Returns `[U, Q]`: whether the endpoint is among the slot's neighbors."""
  same = (second[..., None] == nodes) & second_valid[..., None]
  return same.any(axis=1) & node_valid


def _target_parts(model, features, universe) -> dict[str, np.ndarray]:
  """Returns what candidate features, and the others, add to the target's Z."""
  row = evaluation.target_row(features, universe.target)
  kernel = np.asarray(model.params['hidden']['kernel'])
  rows_of = lambda dims: kernel[dims].astype(np.float64)
  dims = universe.features
  part = np.where(universe.feature_valid, row[dims], 0)[:, None] * rows_of(dims)
  row[dims[universe.feature_valid]] = 0
  rest = np.flatnonzero(row)
  return {'feature_z': part, 'rest_z': row[rest] @ rows_of(rest)}


def _used(params: types.Params) -> types.Params:
  """Returns what `score` reads, on the host; the wide kernel stays behind."""
  hidden = {'bias': params['hidden']['bias']}
  return jax.tree.map(
    np.asarray, {'hidden': hidden, 'output': params['output']}
  )
