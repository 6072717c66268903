"""Randomized response on the bits of a mask, one per element.

The keep mask of mask optimization is a function of the whole private graph: one
edge may change all of its k bits. So every bit is flipped independently with

  p = 1 / (1 + exp(epsilon / k)),

which is (epsilon / k)-DP per bit and pure epsilon-DP for the mask, if the list
of the k elements is public (Warner, 1965; Dwork & Roth, 2014, Thm 3.14).
Spending epsilon on each bit would be k epsilon in all.

>>> f'{flip_probability(epsilon=8, num_operations=24):.3f}'
'0.417'
>>> guarantee(epsilon=8, space_is_public=True).label
'pure 8'

The graph is private; epsilon, the space (if public) and the model are public.
"""

from collections.abc import Sequence
import fractions
import math

import jax
import jax.numpy as jnp
import numpy as np

from privjax import _validate
from privjax import prng
from privjax import types
from privjax.explainers import field_batch
from privjax.explainers import guarantees
from privjax.explainers import operation_space

Rational = int | str | fractions.Fraction

_THEOREM = 'Warner (1965); Dwork & Roth (2014), Theorem 3.14, over k bits'


def flip_probability(*, epsilon: Rational, num_operations: int) -> float:
  """Returns 1 / (1 + exp(epsilon / k)) for k = num_operations >= 1."""
  budget = _validate.rational(epsilon=epsilon)
  _validate.integer(1, num_operations=num_operations)
  loss = math.exp(-float(budget / num_operations))
  return loss / (1 + loss)


def release(
  key: types.KeyArray,
  masks: Sequence[field_batch.Masks],
  spaces: Sequence[operation_space.OperationSpace],
  *,
  epsilon: Rational,
  draw: int = 0,
) -> list[field_batch.Masks]:
  """Draws one noisy mask per space.

  Args:
    key: root key; only folded, by target and draw.
    masks: private keep masks, such as `mask_optimization.Search.keep`; any
      function of the graph will do.
    spaces: what the bits are about, of distinct targets.
    epsilon: budget of each complete release, > 0.
    draw: names the draw.

  Formal guarantees:
    See `guarantee`. An empty space releases nothing.
  """
  operation_space.check_one_space_each(spaces)
  _validate.rational(epsilon=epsilon)
  released = []
  for mask, space in zip(masks, spaces):
    keep = np.concatenate([mask.edge, mask.feature])
    if len(keep):
      stream = prng.stream(key, 'randomized_response', space.target, draw)
      chance = flip_probability(epsilon=epsilon, num_operations=len(keep))
      size = field_batch.bucket(len(keep))
      with jax.enable_x64(True):
        uniform = jax.random.uniform(stream, (size,), jnp.float64)
      keep = keep ^ (np.asarray(uniform)[: len(keep)] < chance)
    released.append(field_batch.split(keep, space))
  return released


def log_likelihood(
  released: np.ndarray, keep: np.ndarray, *, epsilon: Rational
) -> float:
  """Returns the exact log probability of a released mask, for audits.

  Args:
    released: `[k]` bool, what was released.
    keep: `[k]` bool, the private mask.
    epsilon: budget of the release.
  """
  chance = flip_probability(epsilon=epsilon, num_operations=len(keep))
  flipped = int(np.count_nonzero(released != keep))
  same = len(keep) - flipped
  return flipped * math.log(chance) + same * math.log1p(-chance)


def guarantee(
  *, epsilon: Rational, space_is_public: bool
) -> guarantees.ReleaseGuarantee:
  """Returns the statement about one release.

  Args:
    epsilon: budget of the release.
    space_is_public: `OperationSpace.is_public` of the release.

  Formal guarantees:
    One edge added or removed, pure epsilon, for a public operation space; k
    releases cost k epsilon. For a private space nothing is claimed.
  """
  return guarantees.certified(
    epsilon=_validate.rational(epsilon=epsilon),
    delta=fractions.Fraction(0),
    theorem=_THEOREM,
    space_is_public=space_is_public,
  )
