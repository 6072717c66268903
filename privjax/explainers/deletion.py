"""Random and greedy deletion, and the smallest counterfactual of a support.

Random deletion names each element of an operation space independently with a
fixed probability: it reads nothing but the space. Greedy deletion takes, one
after the other, the element whose loss lowers the original label's gap most,
and stops at the first flip. The smallest counterfactual is read off the
enumerated support of a release (PrivCFS, Sec. 3.5): no method that is confined
to the support finds a smaller one.

>>> random_guarantee(space_is_public=True).label
'0 (public)'

The graph is private and so is what depends on it: the greedy and the smallest
explanation, every label, and a receptive field as operation space.
"""

from collections.abc import Sequence
import functools

import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse

from privjax import _validate
from privjax import counterfactual
from privjax import graphs
from privjax import prng
from privjax import types
from privjax.explainers import exact_model
from privjax.explainers import field_batch
from privjax.explainers import guarantees
from privjax.explainers import intervention as intervention_lib
from privjax.explainers import mask_optimization
from privjax.explainers import masked_field
from privjax.explainers import operation_space
from privjax.models import node_model


def random_masks(
  key: types.KeyArray,
  spaces: Sequence[operation_space.OperationSpace],
  *,
  probability: float = 0.5,
  draw: int = 0,
) -> list[field_batch.Masks]:
  """Draws one mask per space; each element is named with `probability`.

  Args:
    key: root key; only folded, by target and draw.
    spaces: what may be named.
    probability: in (0, 1].
    draw: names the draw.

  Formal guarantees:
    `random_guarantee`: over a public space the masks read nothing private.
  """
  _validate.fraction_of_one(probability=probability)
  masks = []
  for space in spaces:
    stream = prng.stream(key, 'random_deletion', space.target, draw)
    size = field_batch.bucket(space.num_operations)
    uniform = np.asarray(jax.random.uniform(stream, (size,), jnp.float32))
    keep = uniform[: space.num_operations] >= probability
    masks.append(field_batch.split(keep, space))
  return masks


def random_guarantee(*, space_is_public: bool) -> guarantees.ReleaseGuarantee:
  """Returns the statement about releasing random masks."""
  if space_is_public:
    return guarantees.public_input()
  return guarantees.uncertified(guarantees.PRIVATE_SPACE)


def greedy(
  model: node_model.NodeModel,
  graph: graphs.Graph,
  features: scipy.sparse.csr_array,
  spaces: Sequence[operation_space.OperationSpace],
  *,
  max_size: int = 10,
  batch_size: int = exact_model.BATCH_SIZE,
) -> list[intervention_lib.Explanation]:
  """Explains every target by greedy deletion. Private, not for release.

  Args:
    model: the frozen classifier.
    graph: the graph to explain.
    features: `[N, F]` public features.
    spaces: a target with the elements that may be named, each.
    max_size: the most elements named; what does not flip by then is returned
      as it is, not valid.
    batch_size: most targets per call.
  """
  _validate.integer(1, max_size=max_size)
  of_rows, fields = masked_field.build_all(model, graph, features, spaces)
  batched = functools.partial(
    _greedy_batch, of_rows.params, apply_fn=of_rows.apply_fn, max_size=max_size
  )
  found = exact_model.run(batched, fields, batch_size)
  masks = [field_batch.crop(m, s) for m, s in zip(found, spaces)]
  steps = [int((~m.edge).sum() + (~m.feature).sum()) for m in masks]
  return exact_model.judge(
    model, graph, features, spaces, masks, num_steps=steps
  )


@functools.partial(jax.jit, static_argnames=('apply_fn', 'max_size'))
def _greedy_batch(params, batch, *, apply_fn, max_size):
  """Returns the keep masks of a batch, `[T, P]` and `[T, Q]`."""
  valid = jnp.concatenate([batch.pair_valid, batch.feature_valid], axis=1)
  num_pairs = batch.pair_valid.shape[1]
  targets = jnp.arange(len(valid))
  clean = field_batch.clean_logits(apply_fn, params, batch)

  def halves(keep):
    return field_batch.Masks(keep[:, :num_pairs], keep[:, num_pairs:])

  def gap_without(keep, index):
    fewer = halves(keep.at[:, index].set(False))
    decided = field_batch.decide(apply_fn, params, batch, fewer, clean)
    return decided.gap[:, 1, 0]

  def step(carry, _):
    keep, done = carry
    gaps = jax.lax.map(
      functools.partial(gap_without, keep), jnp.arange(valid.shape[1])
    ).T
    gaps = jnp.where(valid & keep, gaps, jnp.inf)
    best = jnp.argmin(gaps, axis=1)
    done = done | ~jnp.isfinite(gaps[targets, best])
    keep = keep.at[targets, best].set(done & keep[targets, best])
    flipped = field_batch.flips(apply_fn, params, batch, halves(keep), clean)
    return (keep, done | flipped), None

  start = (jnp.ones(valid.shape, bool), jnp.zeros(len(valid), bool))
  (keep, _), _ = jax.lax.scan(step, start, None, length=max_size)
  return halves(keep)


def greedy_guarantee() -> guarantees.ReleaseGuarantee:
  """Returns the statement about releasing a greedy explanation: none."""
  return mask_optimization.guarantee()


def minimal_counterfactual(
  scored: counterfactual.CandidateEvaluation,
  candidates: counterfactual.CandidateSet,
) -> intervention_lib.Explanation:
  """Returns the smallest candidate of the support that flips. Private.

  Among equals the lowest index wins; if none flips, the empty one, not valid.

  Args:
    scored: the support, scored on the graph that is explained.
    candidates: the support.
  """
  space = operation_space.public_space(
    candidates.universe,
    edges=candidates.max_edges > 0,
    feature_masks=candidates.max_features > 0,
  )
  flips = scored.flips & candidates.valid
  size = np.where(flips, candidates.sizes, candidates.k_max + 1)
  a, b = np.unravel_index(int(np.argmin(size)), size.shape)
  if not flips[a, b]:
    a, b = 0, 0
  universe = candidates.universe
  pairs = np.sort(universe.pairs[candidates.edge_subsets[a]], axis=1)
  dims = universe.features[candidates.feature_subsets[b]]
  return intervention_lib.Explanation(
    intervention=intervention_lib.Intervention(
      target=universe.target,
      pairs=tuple(sorted(map(tuple, pairs.tolist()))),
      features=tuple(sorted(dims.tolist())),
    ),
    valid=bool(flips[a, b]),
    currency=space.currency,
    num_steps=candidates.support_size,
    original_label=int(scored.label[0, 0]),
    new_label=int(scored.label[a, b]),
  )


def minimal_guarantee() -> guarantees.ReleaseGuarantee:
  """Returns the statement about releasing the smallest candidate: none."""
  return mask_optimization.guarantee()
