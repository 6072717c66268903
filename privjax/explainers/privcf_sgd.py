"""PrivCF-SGD: mask optimization with clipped, noisy gradients.

T steps of `logits -= lr * (clip(g, C) + N(0, sigma^2 I))` on the loss of
`mask_optimization`; the last iterate, binarized, is the release. No iterate is
checked for validity, since the check would read the private graph.

Sensitivity. A sum of clipped gradients, one per record, changes by at most C
when a record is added or removed. This gradient is no such sum: an edge enters
the loss through the whole forward pass, so a neighboring graph may turn any
clipped gradient into any other, also into its opposite:

  sup ||clip(g) - clip(g')||_2 = 2 C.

With noise multiplier z = sigma / (2 C) a step is a Gaussian mechanism of
sensitivity 1, T adaptive steps compose in Renyi differential privacy, and the
binarized iterate is post-processing. dp-accounting (extra `experiments`) does
the sum; at epsilon 8, delta 1e-5, T = 50 it asks for sigma = 9.02 C, beside a
gradient of norm at most C: the logits are a random walk that ends about equally
often on both sides of zero.

All of this bounds the *values* of the mask only. Over a receptive field, the
list of edges that the mask is about is itself private: then `guarantee` claims
nothing. Over a public universe of pairs the complete release is covered.

>>> SgdConfig(noise_std=9.02).noise_multiplier
4.51

References:
  Abadi et al. (2016), "Deep learning with differential privacy".
  Mironov (2017), "Renyi differential privacy", Prop. 1, 3 and 7.
"""

from collections.abc import Sequence
import dataclasses
import fractions
import functools
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse

from privjax import _validate
from privjax import graphs
from privjax import prng
from privjax import types
from privjax.explainers import exact_model
from privjax.explainers import field_batch
from privjax.explainers import guarantees
from privjax.explainers import mask_optimization
from privjax.explainers import masked_field
from privjax.explainers import operation_space
from privjax.models import node_model

Rational = int | str | fractions.Fraction

_THEOREM = (
  'Mironov (2017), Renyi DP of T Gaussian steps with sensitivity 2 * clip norm'
)
_EPSILON_UNITS = 10**6


@dataclasses.dataclass(frozen=True, kw_only=True)
class SgdConfig:
  """Public settings of a release; `noise_std` usually from `calibrate`.

  Attributes:
    noise_std: sigma per coordinate and step, in units of the gradient.
    num_steps: T.
    learning_rate: of plain gradient descent.
    clip_norm: C.
    size_weight: price of one deleted element in the loss.
    initial_logit: where every logit starts.
  """

  noise_std: float
  num_steps: int = 50
  learning_rate: float = 0.1
  clip_norm: float = 1.0
  size_weight: float = 1e-3
  initial_logit: float = 1.0

  def __post_init__(self):
    _validate.positive(noise_std=self.noise_std)
    _validate.integer(1, num_steps=self.num_steps)
    _validate.positive(learning_rate=self.learning_rate)
    _validate.positive(clip_norm=self.clip_norm)
    _validate.positive(size_weight=self.size_weight)
    _validate.finite(initial_logit=self.initial_logit)

  @property
  def sensitivity(self) -> float:
    """Twice the clip norm: any clipped gradient may become any other."""
    return 2 * self.clip_norm

  @property
  def noise_multiplier(self) -> float:
    """The noise per unit of sensitivity, z."""
    return self.noise_std / self.sensitivity


def calibrate(
  *, epsilon: Rational, delta: Rational, num_steps: int = 50, **settings
) -> SgdConfig:
  """Returns settings with the least noise for a budget.

  Args:
    epsilon: budget of one release, at least 1e-6; `accounted_epsilon` of the
      result is at most this.
    delta: in (0, 1).
    num_steps: T.
    **settings: the rest of `SgdConfig`.

  Raises:
    ImportError: without dp-accounting.
    ValueError: on a bad value.
  """
  # Down to what `accounted_epsilon` can say: it rounds up.
  units = math.floor(_validate.rational(epsilon=epsilon) * _EPSILON_UNITS)
  if not units:
    raise ValueError(f'epsilon must be at least 1e-6, got {epsilon!r}')
  chance = _delta(delta)
  _validate.integer(1, num_steps=num_steps)
  library, rdp = _accounting()

  def event(multiplier):
    step = library.GaussianDpEvent(multiplier)
    return library.SelfComposedDpEvent(step, num_steps)

  multiplier = library.calibrate_dp_mechanism(
    rdp.RdpAccountant, event, units / _EPSILON_UNITS, float(chance)
  )
  unit = SgdConfig(noise_std=1.0, num_steps=num_steps, **settings)
  return dataclasses.replace(unit, noise_std=multiplier * unit.sensitivity)


def accounted_epsilon(
  config: SgdConfig, *, delta: Rational
) -> fractions.Fraction:
  """Returns the epsilon of the noisy gradients, rounded up to 1e-6.

  Args:
    config: public settings.
    delta: in (0, 1).

  Raises:
    ImportError: without dp-accounting.
  """
  library, rdp = _accounting()
  accountant = rdp.RdpAccountant()
  accountant.compose(
    library.GaussianDpEvent(config.noise_multiplier), config.num_steps
  )
  epsilon = float(accountant.get_epsilon(float(_delta(delta))))
  units = max(math.ceil(epsilon * _EPSILON_UNITS), 1)
  return fractions.Fraction(units, _EPSILON_UNITS)


def guarantee(
  config: SgdConfig, *, delta: Rational, space_is_public: bool
) -> guarantees.ReleaseGuarantee:
  """Returns the statement about one release.

  Args:
    config: public settings; epsilon follows from them.
    delta: in (0, 1).
    space_is_public: `OperationSpace.is_public` of the release.

  Formal guarantees:
    One edge added or removed, (epsilon, delta), for a public operation space;
    it conditions on the target, the features and the model being public. For a
    private space nothing is claimed. k releases compose.
  """
  return guarantees.certified(
    epsilon=accounted_epsilon(config, delta=delta),
    delta=_delta(delta),
    theorem=_THEOREM,
    space_is_public=space_is_public,
  )


def release(
  key: types.KeyArray,
  model: node_model.NodeModel,
  graph: graphs.Graph,
  features: scipy.sparse.csr_array,
  spaces: Sequence[operation_space.OperationSpace],
  *,
  config: SgdConfig,
  draw: int = 0,
  batch_size: int = exact_model.BATCH_SIZE,
) -> list[field_batch.Masks]:
  """Draws the keep masks of one release per space.

  Args:
    key: root key; only folded, by target and draw.
    model: the frozen, public classifier.
    graph: the private graph.
    features: `[N, F]` public features.
    spaces: a target with the elements that may be masked, each; distinct
      targets.
    config: public settings.
    draw: names the draw.
    batch_size: most targets per call; changes no result.

  Formal guarantees:
    See `guarantee`. Shapes and time follow the private neighborhood and are
    not covered.
  """
  operation_space.check_one_space_each(spaces)
  of_rows, fields = masked_field.build_all(model, graph, features, spaces)
  keys = [
    np.asarray(
      jax.random.key_data(prng.stream(key, 'privcf_sgd', space.target, draw))
    )
    for space in spaces
  ]
  batched = functools.partial(
    descend_batch, of_rows.params, apply_fn=of_rows.apply_fn, config=config
  )
  found = exact_model.run(batched, fields, batch_size, keys)
  return [field_batch.crop(one, s) for one, s in zip(found, spaces)]


@functools.partial(jax.jit, static_argnames=('apply_fn', 'config'))
def descend_batch(params, batch, key_data, *, apply_fn, config: SgdConfig):
  """Runs `descend` from key data `[T, 2]`."""
  keys = jax.vmap(jax.random.wrap_key_data)(key_data)
  return descend(keys, apply_fn, params, batch, config)


def descend(
  keys: types.KeyArray, apply_fn, params, batch, config: SgdConfig
) -> field_batch.Masks:
  """Runs T noisy steps per target; returns the binarized last iterates.

  Args:
    keys: one per target; only folded, by step.
    apply_fn: the model of `masked_field.build_all`.
    params: its parameters.
    batch: the targets' fields.
    config: public settings, static.
  """
  clean = field_batch.clean_logits(apply_fn, params, batch)
  gradient = jax.grad(mask_optimization.objective, has_aux=True)
  noisy_of = functools.partial(
    privatize, clip_norm=config.clip_norm, noise_std=config.noise_std
  )

  def step(logits, index):
    slope, _ = gradient(
      logits, apply_fn, params, batch, clean, config.size_weight
    )
    step_keys = jax.vmap(lambda key: jax.random.fold_in(key, index))(keys)
    noisy = jax.vmap(noisy_of)(step_keys, slope)
    update = lambda x, g: x - config.learning_rate * g
    return jax.tree.map(update, logits, noisy), None

  start = mask_optimization.start(batch, config.initial_logit)
  logits, _ = jax.lax.scan(step, start, jnp.arange(config.num_steps))
  return mask_optimization.binarize(batch, logits)


def privatize(
  key: types.KeyArray,
  gradient: field_batch.Masks,
  *,
  clip_norm: float,
  noise_std: float,
) -> field_batch.Masks:
  """Returns one target's jointly clipped gradient plus Gaussian noise.

  An entry's noise depends on the key and its place, not on how far the masks
  are padded.

  Args:
    key: consumed.
    gradient: edges and features; an entry that is not finite counts as 0.
    clip_norm: C, the largest norm of both together.
    noise_std: standard deviation per entry.

  Formal guarantees:
    For any two gradients the means differ by at most 2 C in the L2 norm.
  """
  finite = jax.tree.map(
    lambda part: jnp.where(jnp.isfinite(part), part, 0.0), gradient
  )
  norm = jnp.sqrt(sum(jnp.square(part).sum() for part in finite))
  scale = jnp.minimum(1.0, clip_norm / jnp.maximum(norm, 1e-300))

  def noisy(index, part):
    # Of threefry's partitionable kind: a longer draw begins like a shorter one.
    with jax.threefry_partitionable(True):
      own = jax.random.fold_in(key, index)
      noise = jax.random.normal(own, part.shape, part.dtype)
    return scale * part + noise_std * noise

  return field_batch.Masks(*(noisy(*item) for item in enumerate(finite)))


def _delta(delta: Rational) -> fractions.Fraction:
  chance = _validate.rational(delta=delta)
  if not 1e-300 <= chance < 1:
    raise ValueError(f'delta must be in [1e-300, 1), got {delta!r}')
  return chance


def _accounting() -> tuple[Any, Any]:
  """Imports dp-accounting, an extra."""
  try:
    import dp_accounting
    from dp_accounting import rdp
  except ImportError as error:
    raise ImportError(
      'the Renyi accounting of PrivCF-SGD needs the extra `experiments`: '
      'pip install "privjax[experiments]"'
    ) from error
  return dp_accounting, rdp
