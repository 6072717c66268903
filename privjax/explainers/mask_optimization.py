"""Counterfactuals by gradient descent on masks (CF-GNNExplainer), batched.

One logit per undirected pair and per feature of the target, `m = sigmoid`,
starting at 1; Adam minimizes

  1[not yet flipped] * cross_entropy(f(m), runner-up) + size_weight * sum(1 - m)

where f is the exact model under soft masks (see `masked_field`) and "flipped"
is judged on the *binarized* masks, kept iff m > .5, as every iterate is. The
answer is the smallest binarized iterate that changes the prediction.

Lucic et al. (2022), "CF-GNNExplainer", eqs. 4-7; PrivCFS, Sec. 4.4. Deviations
from the former: masks are symmetric by construction, degrees follow the masks,
features of the target may be masked as well, the target class is the runner-up.

The result is a function of private edges, without noise: not for release. The
features, the model and the target are public.

>>> guarantee().label
'none'
"""

from collections.abc import Sequence
import dataclasses
import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
import scipy.sparse

from privjax import _validate
from privjax import graphs
from privjax import types
from privjax.counterfactual import evaluation
from privjax.explainers import exact_model
from privjax.explainers import guarantees
from privjax.explainers import intervention as intervention_lib
from privjax.explainers import masked_field
from privjax.explainers import operation_space
from privjax.models import node_model


@dataclasses.dataclass(frozen=True, kw_only=True)
class MaskConfig:
  """Public settings of the search; the defaults are the paper's.

  Attributes:
    num_steps: Adam steps.
    learning_rate: Adam's.
    size_weight: price of one deleted element in the loss.
    initial_logit: where every logit starts.
  """

  num_steps: int = 200
  learning_rate: float = 0.1
  size_weight: float = 1e-3
  initial_logit: float = 1.0

  def __post_init__(self):
    _validate.integer(1, num_steps=self.num_steps)
    _validate.positive(learning_rate=self.learning_rate)
    _validate.positive(size_weight=self.size_weight)
    _validate.finite(initial_logit=self.initial_logit)


class Search(NamedTuple):
  """What one search found. Private, not for release.

  Attributes:
    keep: bool masks of the smallest valid iterate; all True if there is none.
    valid: `[]` bool, whether an iterate flipped.
    logits: logits of the last iterate, which need not be the smallest one.
  """

  keep: masked_field.Masks
  valid: types.Array
  logits: masked_field.Masks


def soften(
  masked: masked_field.MaskedField, logits: masked_field.Masks
) -> masked_field.Masks:
  """Returns sigmoid masks, 1 on padding."""
  return masked_field.Masks(
    jnp.where(masked.pair_valid, jax.nn.sigmoid(logits.edge), 1.0),
    jnp.where(masked.feature_valid, jax.nn.sigmoid(logits.feature), 1.0),
  )


def binarize(
  masked: masked_field.MaskedField, logits: masked_field.Masks
) -> masked_field.Masks:
  """Returns bool masks: kept iff sigmoid > .5, and on padding."""
  return masked_field.Masks(
    (logits.edge > 0) | ~masked.pair_valid,
    (logits.feature > 0) | ~masked.feature_valid,
  )


def decide(
  apply_fn, params, masked, keep: masked_field.Masks, clean
) -> evaluation.Decision:
  """Returns the decisions before and after binary masks, `[2, 1]` each."""
  new = masked_field.logits(
    apply_fn, params, masked, *map(masked_field.binary, keep)
  )
  return evaluation.decide(jnp.stack([clean, new])[:, None])


def flips(
  apply_fn, params, masked, keep: masked_field.Masks, clean
) -> jax.Array:
  """Returns whether binary masks change the label, given clean logits `[K]`."""
  label = decide(apply_fn, params, masked, keep, clean).label
  return label[1, 0] != label[0, 0]


def objective(
  logits: masked_field.Masks,
  apply_fn,
  params,
  masked,
  clean,
  size_weight: float,
) -> tuple[jax.Array, tuple[jax.Array, masked_field.Masks]]:
  """Returns the loss, whether the binarized masks flip, and those masks."""
  soft, keep = soften(masked, logits), binarize(masked, logits)
  flipped = flips(apply_fn, params, masked, keep, clean)
  runner_up = evaluation.decide(clean[None, None]).runner_up_label
  new = masked_field.logits(apply_fn, params, masked, *soft)
  pull = -jax.nn.log_softmax(new)[runner_up]
  size = (1 - soft.edge).sum() + (1 - soft.feature).sum()
  loss = jnp.where(flipped, 0.0, pull) + size_weight * size
  return loss, (flipped, keep)


def clean_logits(apply_fn, params, masked) -> jax.Array:
  """Returns the target's logits with no intervention, `[K]`."""
  return masked_field.logits(
    apply_fn, params, masked, *masked_field.keep_all(masked)
  )


def start(
  masked: masked_field.MaskedField, initial_logit: float
) -> masked_field.Masks:
  """Returns the first iterate."""
  ones = masked_field.keep_all(masked)
  return masked_field.Masks(*(initial_logit * x for x in ones))


def optimize(apply_fn, params, masked, config: MaskConfig) -> Search:
  """Runs one search; pure, jit- and vmap-able.

  Args:
    apply_fn: the model.
    params: `masked_field.InputRows.params`.
    masked: one target's field.
    config: public settings, static.
  """
  optimizer = optax.adam(config.learning_rate)
  clean = clean_logits(apply_fn, params, masked)
  gradient = jax.grad(objective, has_aux=True)

  def step(carry, _):
    logits, state, best, best_size, _ = carry
    slope, (flipped, keep) = gradient(
      logits, apply_fn, params, masked, clean, config.size_weight
    )
    size = (~keep.edge).sum() + (~keep.feature).sum()
    better = flipped & (size < best_size)
    best_size = jnp.where(better, size, best_size)
    best = jax.tree.map(
      lambda new, old: jnp.where(better, new, old), keep, best
    )
    updates, state = optimizer.update(slope, state)
    following = optax.apply_updates(logits, updates)
    return (following, state, best, best_size, logits), None

  most = jnp.iinfo(jnp.int64).max
  logits = start(masked, config.initial_logit)
  nothing = jax.tree.map(lambda x: jnp.ones(x.shape, bool), logits)
  carry = (logits, optimizer.init(logits), nothing, jnp.asarray(most), logits)
  # One more step than there are updates: the last iterate is judged as well.
  carry, _ = jax.lax.scan(step, carry, None, length=config.num_steps + 1)
  return Search(keep=carry[2], valid=carry[3] < most, logits=carry[4])


@functools.partial(jax.jit, static_argnames=('apply_fn', 'config'))
def optimize_batch(params, masked, *, apply_fn, config: MaskConfig) -> Search:
  """Runs `optimize` on a stack of targets."""
  return jax.vmap(lambda one: optimize(apply_fn, params, one, config))(masked)


def search(
  model: node_model.NodeModel,
  graph: graphs.Graph,
  features: scipy.sparse.csr_array,
  spaces: Sequence[operation_space.OperationSpace],
  *,
  config: MaskConfig = MaskConfig(),
  batch_size: int = exact_model.BATCH_SIZE,
) -> list[Search]:
  """Searches every space (one target each), masks cut to the space's sizes.

  Args:
    model: the frozen classifier.
    graph: the graph to explain; a private one, a noisy release or a snapshot.
    features: `[N, F]` public features.
    spaces: a target with the elements that may be masked, each.
    config: public settings.
    batch_size: targets per vmapped call; changes no result.
  """
  inputs = masked_field.input_rows(model, features)
  fields = [
    masked_field.build(model, graph, features, space, inputs)
    for space in spaces
  ]
  batched = functools.partial(
    optimize_batch, inputs.params, apply_fn=model.apply_fn, config=config
  )
  found = exact_model.run(batched, fields, batch_size)
  return [
    Search(
      masked_field.crop(one.keep, space),
      one.valid,
      masked_field.crop(one.logits, space),
    )
    for one, space in zip(found, spaces)
  ]


def explain(
  model: node_model.NodeModel,
  graph: graphs.Graph,
  features: scipy.sparse.csr_array,
  spaces: Sequence[operation_space.OperationSpace],
  *,
  config: MaskConfig = MaskConfig(),
  batch_size: int = exact_model.BATCH_SIZE,
) -> list[intervention_lib.Explanation]:
  """Explains every target by mask optimization; see `search` for arguments.

  Returns:
    One explanation per space; an empty one, not valid, where no iterate
    changed the prediction.
  """
  found = search(
    model, graph, features, spaces, config=config, batch_size=batch_size
  )
  masks = [one.keep for one in found]
  return exact_model.judge(
    model, graph, features, spaces, masks, num_steps=config.num_steps
  )


def find_interventions(
  model: node_model.NodeModel,
  graph: graphs.Graph,
  features: scipy.sparse.csr_array,
  targets: Sequence[int] | np.ndarray,
  *,
  edges: bool = True,
  feature_masks: bool = True,
  config: MaskConfig = MaskConfig(),
) -> list[intervention_lib.Intervention | None]:
  """Returns what explains each target's prediction *on this graph*, or None.

  For the diagnosis of graph-level placement the graph is a noisy one: check
  the result on the clean graph with `exact_model.predict`.

  Args:
    model: the frozen classifier.
    graph: any graph.
    features: `[N, F]` public features.
    targets: node ids.
    edges: whether edges may be deleted.
    feature_masks: whether the target's features may be masked.
    config: public settings.
  """
  spaces = [
    operation_space.receptive_field_space(
      graph,
      features,
      int(target),
      num_hops=model.num_hops,
      edges=edges,
      feature_masks=feature_masks,
    )
    for target in targets
  ]
  found = search(model, graph, features, spaces, config=config)
  return [
    space.intervention(*one.keep) if one.valid else None
    for one, space in zip(found, spaces)
  ]


def find_intervention(
  model: node_model.NodeModel,
  graph: graphs.Graph,
  features: scipy.sparse.csr_array,
  target: int,
) -> intervention_lib.Intervention | None:
  """Returns what explains one target's prediction on this graph, or None."""
  return find_interventions(model, graph, features, [target])[0]


def guarantee() -> guarantees.ReleaseGuarantee:
  """Returns the statement about releasing an explanation: there is none."""
  return guarantees.uncertified(
    'the explanation is a function of the private edges, without noise'
  )
