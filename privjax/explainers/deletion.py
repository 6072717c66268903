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
from privjax.explainers import guarantees
from privjax.explainers import intervention as intervention_lib
from privjax.explainers import mask_optimization
from privjax.explainers import masked_field
from privjax.explainers import operation_space
from privjax.models import node_model

_CHUNK = 64


def random_masks(
  key: types.KeyArray,
  spaces: Sequence[operation_space.OperationSpace],
  *,
  probability: float = 0.5,
  draw: int = 0,
) -> list[masked_field.Masks]:
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
    size = masked_field.bucket(space.num_operations)
    uniform = np.asarray(jax.random.uniform(stream, (size,), jnp.float32))
    keep = uniform[: space.num_operations] >= probability
    masks.append(masked_field.split(keep, space))
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
    batch_size: targets per vmapped call.
  """
  _validate.integer(1, max_size=max_size)
  inputs = masked_field.input_rows(model, features)
  fields = [
    masked_field.build(model, graph, features, space, inputs)
    for space in spaces
  ]
  batched = functools.partial(
    _greedy_batch, inputs.params, apply_fn=model.apply_fn, max_size=max_size
  )
  found = exact_model.run(batched, fields, batch_size)
  masks = [masked_field.crop(m, s) for m, s in zip(found, spaces)]
  steps = [int((~m.edge).sum() + (~m.feature).sum()) for m in masks]
  return exact_model.judge(
    model, graph, features, spaces, masks, num_steps=steps
  )


@functools.partial(jax.jit, static_argnames=('apply_fn', 'max_size'))
def _greedy_batch(params, masked, *, apply_fn, max_size):
  one = functools.partial(_greedy_one, apply_fn, params, max_size=max_size)
  return jax.vmap(one)(masked)


def _greedy_one(apply_fn, params, masked, *, max_size):
  """Returns the keep masks of one target."""
  valid = jnp.concatenate([masked.pair_valid, masked.feature_valid])
  num_pairs = len(masked.pair_valid)
  halves = lambda keep: masked_field.Masks(keep[:num_pairs], keep[num_pairs:])
  clean = mask_optimization.clean_logits(apply_fn, params, masked)

  def gap(keep):
    return mask_optimization.decide(
      apply_fn, params, masked, halves(keep), clean
    ).gap[1, 0]

  def step(carry, _):
    keep, done = carry
    gaps = jax.lax.map(
      lambda index: gap(keep.at[index].set(False)),
      jnp.arange(len(valid)),
      batch_size=_CHUNK,
    )
    gaps = jnp.where(valid & keep, gaps, jnp.inf)
    best = jnp.argmin(gaps)
    done = done | ~jnp.isfinite(gaps[best])
    keep = keep.at[best].set(jnp.where(done, keep[best], False))
    flipped = mask_optimization.flips(
      apply_fn, params, masked, halves(keep), clean
    )
    return (keep, done | flipped), None

  start = (jnp.ones(len(valid), bool), jnp.asarray(False))
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
