"""Counterfactuals by gradient descent on masks (CF-GNNExplainer), batched.

One logit per undirected pair and per feature of the target, `m = sigmoid`,
starting at 1; Adam minimizes

  1[not yet flipped] * cross_entropy(f(m), runner-up) + size_weight * sum(1 - m)

where f is the exact model under soft masks (see `field_batch`) and "flipped"
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
from privjax.explainers import field_batch
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

  keep: field_batch.Masks
  valid: types.Array
  logits: field_batch.Masks


def soften(
  batch: field_batch.FieldBatch, logits: field_batch.Masks
) -> field_batch.Masks:
  """Returns sigmoid masks, 1 on padding."""
  return field_batch.Masks(
    jnp.where(batch.pair_valid, jax.nn.sigmoid(logits.edge), 1.0),
    jnp.where(batch.feature_valid, jax.nn.sigmoid(logits.feature), 1.0),
  )


def binarize(
  batch: field_batch.FieldBatch, logits: field_batch.Masks
) -> field_batch.Masks:
  """Returns bool masks: kept iff sigmoid > .5, and on padding."""
  return field_batch.Masks(
    (logits.edge > 0) | ~batch.pair_valid,
    (logits.feature > 0) | ~batch.feature_valid,
  )


def objective(
  logits: field_batch.Masks,
  apply_fn,
  params,
  batch,
  clean,
  size_weight: float,
) -> tuple[jax.Array, tuple[jax.Array, field_batch.Masks]]:
  """Returns the sum of the targets' losses, which flip, and binary masks.

  A target's loss depends on no mask of another one, so the gradient of the sum
  holds each target's own.
  """
  soft, keep = soften(batch, logits), binarize(batch, logits)
  flipped = field_batch.flips(apply_fn, params, batch, keep, clean)
  before = jax.vmap(evaluation.decide)(clean[:, None, None])
  new = field_batch.logits(apply_fn, params, batch, *soft)
  chosen = before.runner_up_label[:, None]
  pull = -jnp.take_along_axis(jax.nn.log_softmax(new), chosen, axis=1)[:, 0]
  size = (1 - soft.edge).sum() + (1 - soft.feature).sum()
  loss = jnp.where(flipped, 0.0, pull).sum() + size_weight * size
  return loss, (flipped, keep)


def start(
  batch: field_batch.FieldBatch, initial_logit: float
) -> field_batch.Masks:
  """Returns the first iterate."""
  ones = field_batch.keep_all(batch)
  return field_batch.Masks(*(initial_logit * x for x in ones))


def optimize(apply_fn, params, batch, config: MaskConfig) -> Search:
  """Runs the searches of a batch side by side; pure and jit-able.

  Args:
    apply_fn: the model of `masked_field.build_all`.
    params: its parameters.
    batch: the targets' fields.
    config: public settings, static.

  Returns:
    Searches with a leading axis T.
  """
  optimizer = optax.adam(config.learning_rate)
  clean = field_batch.clean_logits(apply_fn, params, batch)
  gradient = jax.grad(objective, has_aux=True)

  def step(carry, _):
    logits, state, best, best_size, _ = carry
    slope, (flipped, keep) = gradient(
      logits, apply_fn, params, batch, clean, config.size_weight
    )
    # A model that is not finite somewhere moves no mask.
    slope = jax.tree.map(lambda x: jnp.where(jnp.isfinite(x), x, 0.0), slope)
    size = (~keep.edge).sum(1) + (~keep.feature).sum(1)
    better = flipped & (size < best_size)
    best_size = jnp.where(better, size, best_size)
    best = jax.tree.map(
      lambda new, old: jnp.where(better[:, None], new, old), keep, best
    )
    updates, state = optimizer.update(slope, state)
    following = optax.apply_updates(logits, updates)
    return (following, state, best, best_size, logits), None

  most = jnp.iinfo(jnp.int64).max
  logits = start(batch, config.initial_logit)
  nothing = jax.tree.map(lambda x: jnp.ones(x.shape, bool), logits)
  sizes = jnp.full(len(clean), most)
  carry = (logits, optimizer.init(logits), nothing, sizes, logits)
  # One more step than there are updates: the last iterate is judged as well.
  carry, _ = jax.lax.scan(step, carry, None, length=config.num_steps + 1)
  return Search(keep=carry[2], valid=carry[3] < most, logits=carry[4])


@functools.partial(jax.jit, static_argnames=('apply_fn', 'config'))
def optimize_batch(params, batch, *, apply_fn, config: MaskConfig) -> Search:
  """Compiles `optimize`."""
  return optimize(apply_fn, params, batch, config)


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
    batch_size: most targets per call; changes no result.
  """
  of_rows, fields = masked_field.build_all(model, graph, features, spaces)
  batched = functools.partial(
    optimize_batch, of_rows.params, apply_fn=of_rows.apply_fn, config=config
  )
  found = exact_model.run(batched, fields, batch_size)
  return [
    Search(
      field_batch.crop(one.keep, space),
      one.valid,
      field_batch.crop(one.logits, space),
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
