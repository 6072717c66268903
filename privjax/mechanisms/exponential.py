"""The exponential mechanism's exact law (McSherry & Talwar, 2007).

  P(S) = mu(S) exp(epsilon u(S) / (2 sensitivity)) / normalizer

over a public support, with an optional public base measure mu. The law is
returned in float64 log space and never sampled here for a release: tables,
audits and tests read it; `simulate` draws from it with a seed and marks
nothing as certified.

>>> from fractions import Fraction
>>> p = probabilities(log_law(np.array([0, 1]), epsilon=1, sensitivity=1))
>>> [f'{value:.10f}' for value in p]
['0.3775406688', '0.6224593312']
"""

import fractions
import functools

import jax
import numpy as np
from scipy import special

from privjax import _validate
from privjax import prng
from privjax import types

_MAX_SCALE = 10**6


def log_law(
  utility: types.Array,
  *,
  epsilon: int | str | fractions.Fraction,
  sensitivity: int | str | fractions.Fraction,
  denominator: int = 1,
  valid: types.Array | None = None,
  log_base_measure: types.Array | None = None,
) -> np.ndarray:
  """Returns the log probability of every candidate, float64.

  Args:
    utility: integer utilities in units of 1 / denominator, any non-empty shape.
      The only private argument.
    epsilon: exact privacy parameter > 0.
    sensitivity: exact bound on the change of the utility between neighbors.
    denominator: public D >= 1.
    valid: same shape, bool; the public support. `None` means all.
    log_base_measure: same shape, float; natural log of the public, unnormalized
      base measure, finite on the support. `None` means uniform.

  Returns:
    Log probabilities with the shape of `utility`; -inf exactly off the support,
    finite on it (however small the probability).

  Formal guarantees:
    If `utility` changes by at most `sensitivity` between neighbors and every
    other argument is public, one draw from this law is epsilon-DP with delta 0
    (McSherry & Talwar, 2007, Theorem 6), for whatever relation the sensitivity
    is stated. The base measure cancels in the ratio.

  Raises:
    ValueError: on an empty, non-integer or mis-shaped array, an empty support,
      or epsilon or sensitivity that is not a finite number > 0.
  """
  utility = np.asarray(utility)
  if utility.size == 0 or not np.issubdtype(utility.dtype, np.integer):
    raise ValueError(
      'utility must be a non-empty integer array, got shape '
      f'{utility.shape} and dtype {utility.dtype}'
    )
  _validate.integer(1, denominator=denominator)
  epsilon = _validate.rational(epsilon=epsilon)
  sensitivity = _validate.rational(sensitivity=sensitivity)
  scale = epsilon / (2 * sensitivity * denominator)
  if scale > _MAX_SCALE:
    raise ValueError(
      'epsilon must be at most 2e6 times sensitivity times denominator, got '
      f'{epsilon}'
    )
  logits = utility * float(scale)
  if log_base_measure is not None:
    _validate.shape(utility.shape, log_base_measure=log_base_measure)
    logits = logits + np.asarray(log_base_measure, np.float64)
  if valid is not None:
    _validate.shape(utility.shape, valid=valid)
    logits = np.where(valid, logits, -np.inf)
  on_support = logits if valid is None else logits[np.asarray(valid, bool)]
  if on_support.size == 0 or not np.isfinite(on_support).all():
    raise ValueError(
      'valid must name at least one candidate and log_base_measure must be '
      'finite on it'
    )
  return logits - special.logsumexp(logits)


def probabilities(log_probs: types.Array) -> np.ndarray:
  """Returns the law as probabilities, float64."""
  return np.exp(log_probs)


def simulate(
  key: types.KeyArray,
  names: list[tuple[prng.Name, ...]],
  probs: types.Array,
  *,
  num_draws: int,
) -> np.ndarray:
  """Draws candidates from laws by inverse CDF, seeded: never a release.

  Args:
    key: root key; folded by name, not consumed.
    names: one stream name per law, L of them.
    probs: `[L, C]` float64 laws over the flattened support.
    num_draws: draws per law.

  Returns:
    `[L, num_draws]` int64 flat candidate indices. A law's draws depend on its
    own name only.
  """
  _validate.shape((len(names), None), probs=probs)
  words = np.stack([prng.words(*name) for name in names])
  with jax.enable_x64(True):
    uniforms = np.asarray(_uniforms(key, words, num_draws))
  draws = []
  for uniform, law in zip(uniforms, np.asarray(probs)):
    cumulative = np.cumsum(law)
    # Scaling by the last entry keeps a draw inside the support.
    draws.append(
      np.searchsorted(cumulative, uniform * cumulative[-1], side='right')
    )
  return np.stack(draws)


@functools.partial(jax.jit, static_argnames='num_draws')
def _uniforms(key, words, num_draws):
  draw = lambda w: jax.random.uniform(
    prng.fold(key, w), (num_draws,), dtype=np.float64
  )
  return jax.vmap(draw)(words)
