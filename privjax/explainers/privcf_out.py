"""PrivCF-out: Gaussian noise on the final mask logits. A heuristic.

Mask optimization runs on the clean graph; its last logits get independent
Gaussian noise with

  sigma = sqrt(2 ln(1.25 / delta)) / epsilon

(.606 at epsilon 8, delta 1e-5): the classic calibration for a sensitivity of 1
*per entry*. PrivCFS, App. A, shows that this does not certify the release:

* it is a budget per entry, and one edge may move every logit;
* nothing bounds a logit's change by 1: logits are unclipped and the search may
  end in another basin (the paper measures about 20 times the assumed bound);
* the calibration is proven for epsilon < 1 only (Dwork & Roth, 2014, Thm 3.22).

So `guarantee` claims nothing, whatever the operation space:

>>> round(noise_std(epsilon='8', delta='1e-5'), 3)
0.606
>>> guarantee().certified
False

The graph is private; epsilon and delta are advertised, not spent.
"""

from collections.abc import Sequence
import fractions
import math

import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse

from privjax import _validate
from privjax import graphs
from privjax import prng
from privjax import types
from privjax.explainers import field_batch
from privjax.explainers import guarantees
from privjax.explainers import mask_optimization
from privjax.explainers import operation_space
from privjax.models import node_model

Rational = int | str | fractions.Fraction

_SEARCH = mask_optimization.MaskConfig()


def noise_std(*, epsilon: Rational, delta: Rational) -> float:
  """Returns sqrt(2 ln(1.25 / delta)) / epsilon.

  Raises:
    ValueError: if epsilon is not > 0 or delta not in [1e-300, 1).
  """
  budget = _validate.rational(epsilon=epsilon)
  chance = _validate.rational(delta=delta)
  if not 1e-300 <= chance < 1:
    raise ValueError(f'delta must be in [1e-300, 1), got {delta!r}')
  return math.sqrt(2 * math.log(1.25 / chance)) / float(budget)


def release(
  key: types.KeyArray,
  model: node_model.NodeModel,
  graph: graphs.Graph,
  features: scipy.sparse.csr_array,
  spaces: Sequence[operation_space.OperationSpace],
  *,
  epsilon: Rational = 8,
  delta: Rational = '1e-5',
  config: mask_optimization.MaskConfig = _SEARCH,
) -> list[field_batch.Masks]:
  """Returns the keep masks that PrivCF-out would release, one per space.

  Args:
    key: root key; only folded, by target.
    model: the frozen classifier.
    graph: the private graph.
    features: `[N, F]` public features.
    spaces: a target with the elements that may be masked, each; distinct
      targets.
    epsilon: advertised budget per entry.
    delta: advertised, in (0, 1).
    config: of the search.

  Formal guarantees:
    None; see `guarantee`.
  """
  operation_space.check_one_space_each(spaces)
  scale = noise_std(epsilon=epsilon, delta=delta)
  found = mask_optimization.search(
    model, graph, features, spaces, config=config
  )
  return [
    perturb(key, one, space, scale=scale) for one, space in zip(found, spaces)
  ]


def perturb(
  key: types.KeyArray,
  found: mask_optimization.Search,
  space: operation_space.OperationSpace,
  *,
  scale: float,
  draw: int = 0,
) -> field_batch.Masks:
  """Returns one draw of noisy logits, binarized: kept iff > 0.

  Args:
    key: root key; only folded, by target and draw.
    found: a search over `space`.
    space: what may be named.
    scale: standard deviation per entry.
    draw: names the draw.
  """
  logits = np.concatenate([found.logits.edge, found.logits.feature])
  stream = prng.stream(key, 'privcf_out', space.target, draw)
  size = field_batch.bucket(len(logits))
  with jax.enable_x64(True):
    noise = np.asarray(jax.random.normal(stream, (size,), jnp.float64))
  return field_batch.split(logits + scale * noise[: len(logits)] > 0, space)


def guarantee() -> guarantees.ReleaseGuarantee:
  """Returns the statement about one release: none, and why."""
  return guarantees.uncertified(
    'heuristic: the noise is scaled to one entry, and a release has many',
    'no bound on how far one edge moves a logit is known',
    'the classic Gaussian calibration is proven for epsilon < 1 only',
  )
