"""Named wrong versions of the explainers, and what must catch each of them.

*Exactness* mutants judge an intervention by something else than the exact
model; *privacy* mutants claim more than their noise buys.
"""

import dataclasses
import functools
import math
from unittest import mock

import jax
import jax.numpy as jnp
import numpy as np

from privjax import explainers
from privjax.counterfactual import evaluation
from privjax.explainers import field_batch
from privjax.explainers import mask_optimization
from privjax.explainers import masked_field
from privjax.explainers import privcf_sgd
from privjax.explainers import randomized_response
from tests.explainers import checks


def _with_fields(change):
  """Patches what is built: changed fields go through the library's code."""
  build = masked_field.build

  def changed(*args, **kwargs):
    return change(build(*args, **kwargs))

  return mock.patch.object(masked_field, 'build', changed)


def deletion_in_one_direction():
  """Only the message from the lower to the higher id is removed."""

  def change(field):
    upward = field.field.graph.senders < field.field.graph.receivers
    none = len(field.exists)
    return field._replace(edge_pair=np.where(upward, field.edge_pair, none))

  return _with_fields(change)


def degrees_not_lowered():
  """The edge goes, both degrees stay."""
  return _with_fields(
    lambda field: field._replace(ends=np.full_like(field.ends, len(field.rows)))
  )


def one_degree_lowered():
  """Only the lower end loses a degree."""

  def change(field):
    ends = field.ends.copy()
    ends[1] = len(field.rows)
    return field._replace(ends=ends)

  return _with_fields(change)


def missing_pairs_are_deleted():
  """A named pair that is no edge lowers degrees."""
  return _with_fields(
    lambda field: field._replace(exists=np.ones_like(field.exists))
  )


def truncated_boundary_degrees():
  """Degrees are recounted inside the field."""

  def change(field):
    inner = field.field
    mask = inner.graph.edges['mask']
    degree = np.bincount(
      inner.graph.receivers, mask, minlength=len(inner.node_ids)
    ).astype(np.int64)
    return field._replace(field=inner._replace(boundary_degree=degree))

  return _with_fields(change)


EXACTNESS = {
  function.__name__: function
  for function in (
    deletion_in_one_direction,
    degrees_not_lowered,
    one_degree_lowered,
    missing_pairs_are_deleted,
    truncated_boundary_degrees,
  )
}


def validity_of_soft_masks():
  """An iterate is called valid if its *soft* masks flip."""

  def objective(logits, apply_fn, params, batch, clean, size_weight):
    soft = mask_optimization.soften(batch, logits)
    keep = mask_optimization.binarize(batch, logits)
    new = field_batch.logits(apply_fn, params, batch, *soft)
    both = jnp.stack([clean, new], 1)[:, :, None]
    decided = jax.vmap(evaluation.decide)(both)
    flipped = decided.label[:, 1, 0] != decided.label[:, 0, 0]
    chosen = decided.runner_up_label[:, None]
    pull = -jnp.take_along_axis(jax.nn.log_softmax(new), chosen, axis=1)[:, 0]
    size = (1 - soft.edge).sum() + (1 - soft.feature).sum()
    loss = jnp.where(flipped, 0.0, pull).sum() + size_weight * size
    return loss, (flipped, keep)

  return mock.patch.object(mask_optimization, 'objective', objective)


def degrees_of_the_clean_graph_in_the_search():
  """Soft masks leave the degrees alone (Lucic et al., 2022)."""
  return degrees_not_lowered()


SEARCH = {
  function.__name__: function
  for function in (
    validity_of_soft_masks,
    degrees_of_the_clean_graph_in_the_search,
  )
}

DELTA = '1e-5'


def _claim(config) -> float:
  return float(privcf_sgd.accounted_epsilon(config, delta=DELTA))


def _subject(privatize, config, claimed=None) -> checks.SgdSubject:
  epsilon = _claim(config if claimed is None else claimed)
  return checks.SgdSubject(privatize, config, epsilon, float(DELTA))


@functools.cache
def _config() -> privcf_sgd.SgdConfig:
  return privcf_sgd.calibrate(epsilon=2, delta=DELTA)


def library_sgd():
  """What the mutants are made from."""
  return _subject(privcf_sgd.privatize, _config())


def no_clipping():
  """The gradient enters as it is."""

  def privatize(key, gradient, *, clip_norm, noise_std):
    del clip_norm
    flat = jnp.concatenate([gradient.edge, gradient.feature])
    noisy = flat + noise_std * jax.random.normal(key, flat.shape, flat.dtype)
    return field_batch.Masks(
      noisy[: len(gradient.edge)], noisy[len(gradient.edge) :]
    )

  return _subject(privatize, _config())


def edges_and_features_clipped_apart():
  """Each half has norm C, both together sqrt(2) C."""

  def privatize(key, gradient, *, clip_norm, noise_std):
    parts = []
    for index, part in enumerate(gradient):
      norm = jnp.maximum(jnp.sqrt((part**2).sum()), 1e-300)
      noise = jax.random.normal(jax.random.fold_in(key, index), part.shape)
      scale = jnp.minimum(1.0, clip_norm / norm)
      parts.append(part * scale + noise_std * noise)
    return field_batch.Masks(*parts)

  return _subject(privatize, _config())


def one_noise_for_edges_and_features():
  """Both parts are perturbed with the same draw."""

  def privatize(key, gradient, *, clip_norm, noise_std):
    halves = [
      privcf_sgd.privatize(key, part, clip_norm=clip_norm, noise_std=noise_std)
      for part in (gradient, jax.tree.map(jnp.zeros_like, gradient))
    ]
    clipped = halves[0].feature - halves[1].feature
    return field_batch.Masks(halves[0].edge, clipped + halves[1].edge)

  return _subject(privatize, _config())


def halved_noise():
  """Half of the noise that was accounted."""
  config = _config()
  less = dataclasses.replace(config, noise_std=config.noise_std / 2)
  return _subject(privcf_sgd.privatize, less, claimed=config)


def sensitivity_of_a_sum():
  """Sensitivity C, as if the gradient were a sum over edges."""
  config = _config()
  # The noise multiplier would be sigma / C instead of sigma / (2 C).
  claimed = dataclasses.replace(config, noise_std=2 * config.noise_std)
  return _subject(privcf_sgd.privatize, config, claimed=claimed)


def one_step_accounted():
  """The noise of one step pays for all of them."""
  config = _config()
  claimed = dataclasses.replace(config, num_steps=1)
  return _subject(privcf_sgd.privatize, config, claimed=claimed)


SGD_PRIVACY = {
  function.__name__: function
  for function in (
    no_clipping,
    edges_and_features_clipped_apart,
    one_noise_for_edges_and_features,
    halved_noise,
    sensitivity_of_a_sum,
    one_step_accounted,
  )
}


def _likelihood(probability_of):
  """Returns the likelihood of independent flips at another probability."""

  def log_likelihood(released, keep, *, epsilon):
    chance = probability_of(float(epsilon), len(keep))
    flipped = int(np.count_nonzero(released != keep))
    same = len(keep) - flipped
    return flipped * math.log(chance) + same * math.log1p(-chance)

  return log_likelihood


RESPONSE_PRIVACY = {
  # Every bit gets the whole budget.
  'budget_per_bit': _likelihood(lambda e, k: 1 / (1 + math.exp(e))),
  # The probability of keeping is exp(-epsilon), not 1 / (1 + exp(epsilon)).
  'wrong_flip_probability': _likelihood(lambda e, k: math.exp(-e / k) / 2.5),
  'half_the_flips': _likelihood(lambda e, k: 0.5 / (1 + math.exp(e / k))),
}
UNMUTATED_RESPONSE = randomized_response.log_likelihood
LIBRARY_CONFIG = explainers.MaskConfig(num_steps=60)
