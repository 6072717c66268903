"""An exact self-test of objective perturbation, without sampling.

The output has a density, so for neighbors D, D' and any weights w

  log p(w; D) / p(w; D')  =  norm part  +  determinant part
  norm part         log density of the noise B(w; D) minus that of B(w; D')
  determinant part  log det H(w; D) - log det H(w; D')

with B and H as in `erm.calibration.calibrate`. The proof bounds the first by
eps' and the second by eps - eps'. Each is checked against its own bound: their
sum alone would let a mechanism with twice too little noise pass, as long as the
other part leaves room. (D, D', w) are searched at random, at the corners that
make one part large, and by hill climbing from the worst ones found.

>>> from privjax.erm import losses
>>> config = erm_config.ErmConfig(
...   loss=losses.huber_hinge(), regularization=0.1, row_norm=2.0,
...   classes=(0, 1), excess='clip',
... )
>>> subject = library_subject(config, 1, num_rows=5)
>>> report = search(subject, num_features=2, num_triples=2000, seed=0)
>>> report.passed, 0.9 < report.max_norm_part / report.norm_bound <= 1
(True, True)

The data are made up, so everything here is public.
"""

from collections.abc import Callable
import dataclasses
import fractions
from typing import NamedTuple

import jax
import numpy as np

from privjax import _validate
from privjax import prng
from privjax.erm import calibration as calibration_lib
from privjax.erm import config as erm_config
from privjax.erm import losses

Fraction = fractions.Fraction

# Far above the rounding of a log density, far below any violation of interest.
_TOLERANCE = 1e-9
_BATCH = 5000
_CLIMBS = 10
_KEPT = 40


@dataclasses.dataclass(frozen=True, kw_only=True)
class Subject:
  """A mechanism as it is carried out, with the bounds that it claims.

  Attributes:
    rows_fn: (features `[N, m]`, labels `[N]` of -1 and +1) -> `[N, d]` the rows
      that the objective sees, times labels.
    loss: the loss.
    num_rows: n.
    penalty_fn: d -> `[d]` coefficients of w_j^2 / 2.
    noise_scale: scale of the noise's norm.
    noise_shape_fn: d -> shape k of the norm's Gamma law; d in the theorem.
    norm_bound: claimed bound on the norm part, eps'.
    determinant_bound: claimed bound on the determinant part, eps - eps'.
    row_norm: declared bound on a row of features; the search goes beyond it.
  """

  rows_fn: Callable[[np.ndarray, np.ndarray], np.ndarray]
  loss: losses.Loss
  num_rows: int
  penalty_fn: Callable[[int], np.ndarray]
  noise_scale: float
  noise_shape_fn: Callable[[int], int]
  norm_bound: float
  determinant_bound: float
  row_norm: float


class Triples(NamedTuple):
  """Neighbors and weights; the neighbors differ in row 0 only.

  Attributes:
    features: `[T, n + 1, m]`: row 0 of D, rows 1 to n - 1 of both, row 0 of D'.
    labels: `[T, n + 1]`, -1 or +1.
    weights: `[T, d]`, for the rows that the objective sees.
  """

  features: np.ndarray
  labels: np.ndarray
  weights: np.ndarray


@dataclasses.dataclass(frozen=True, kw_only=True)
class DensityReport:
  """What a search found.

  Attributes:
    num_triples: how many (D, D', w) were evaluated.
    max_norm_part: largest absolute norm part.
    norm_bound: its bound, eps'.
    max_determinant_part: largest absolute determinant part.
    determinant_bound: its bound, eps - eps'.
    max_total: largest absolute log density ratio.
    epsilon: the sum of both bounds.
    worst_norm: the triple of `max_norm_part`, on a leading axis of 1.
    worst_determinant: the triple of `max_determinant_part`.
  """

  num_triples: int
  max_norm_part: float
  norm_bound: float
  max_determinant_part: float
  determinant_bound: float
  max_total: float
  epsilon: float
  worst_norm: Triples
  worst_determinant: Triples

  @property
  def violations(self) -> tuple[str, ...]:
    """Which of 'norm', 'determinant', 'total' exceed their bounds."""
    parts = {
      'norm': (self.max_norm_part, self.norm_bound),
      'determinant': (self.max_determinant_part, self.determinant_bound),
      'total': (self.max_total, self.epsilon),
    }
    return tuple(
      name
      for name, (found, bound) in parts.items()
      if found > bound + _TOLERANCE
    )

  @property
  def passed(self) -> bool:
    """Whether no bound is exceeded."""
    return not self.violations


def library_subject(
  config: erm_config.ErmConfig,
  epsilon: int | str | Fraction,
  *,
  num_rows: int,
  calibration: calibration_lib.Rule = 'tight',
) -> Subject:
  """Returns `erm.objective.fit` as a subject.

  Args:
    config: with excess='clip', so that every table is in the domain.
    epsilon: exact, > 0.
    num_rows: n.
    calibration: 'tight' or 'paper'.
  """
  _validate.one_of(('clip',), excess=config.excess)
  numbers = calibration_lib.calibrate(
    epsilon,
    loss=config.loss,
    num_rows=num_rows,
    regularization=config.regularization,
    calibration=calibration,
  )
  signed_config = dataclasses.replace(config, classes=(-1, 1))
  return Subject(
    rows_fn=lambda x, y: erm_config.unit_rows(x, y, signed_config).signed,
    loss=config.loss,
    num_rows=num_rows,
    penalty_fn=lambda d: np.full(d, numbers.regularization),
    noise_scale=numbers.noise_scale,
    noise_shape_fn=lambda d: d,
    norm_bound=numbers.noise_epsilon,
    determinant_bound=numbers.slack,
    row_norm=config.row_norm,
  )


def parts(subject: Subject, triples: Triples) -> tuple[np.ndarray, np.ndarray]:
  """Returns the norm part and the determinant part of each triple, `[T]`.

  They may be infinite or NaN for a subject whose density is 0 or undefined.
  """
  num_triples, _, num_features = triples.features.shape
  rows = subject.rows_fn(
    triples.features.reshape(-1, num_features), triples.labels.ravel()
  ).reshape(num_triples, subject.num_rows + 1, -1)
  margins = np.einsum('tnd,td->tn', rows, triples.weights)
  with jax.enable_x64(True):
    first = np.asarray(subject.loss.first(margins))
    second = np.asarray(subject.loss.second(margins))
  n, dimension = subject.num_rows, rows.shape[2]
  penalty = n * subject.penalty_fn(dimension)
  excess_shape = subject.noise_shape_fn(dimension) - dimension

  def log_densities(used):
    here = rows[:, used]
    pull = np.einsum('tn,tnd->td', first[:, used], here)
    norms = np.linalg.norm(penalty * triples.weights + pull, axis=1)
    with np.errstate(divide='ignore'):
      log_norms = np.log(norms)
    noise = -norms / subject.noise_scale
    if excess_shape:
      noise = noise + excess_shape * log_norms
    hessian = np.einsum('tn,tnd,tne->tde', second[:, used], here, here)
    _, log_det = np.linalg.slogdet(hessian + np.diag(penalty))
    return noise, log_det

  with np.errstate(invalid='ignore'):
    ours = log_densities(slice(0, n))
    theirs = log_densities(slice(1, n + 1))
    return ours[0] - theirs[0], ours[1] - theirs[1]


def search(
  subject: Subject, *, num_features: int, num_triples: int, seed: int
) -> DensityReport:
  """Looks for the largest parts of the log density ratio.

  Args:
    subject: the mechanism under test.
    num_features: m.
    num_triples: about how many triples to evaluate; half of them are made up,
      half are steps of the hill climbing.
    seed: of the search, in [0, 2^32).

  Returns:
    The report. Passing is no proof; failing is one.
  """
  _validate.integer(1, num_features=num_features)
  _validate.integer(20 * _KEPT, num_triples=num_triples)
  rng = prng.generator(seed, 'density_ratio')
  made_up = [
    _made_up(subject, min(_BATCH, num_triples // 2 - start), num_features, rng)
    for start in range(0, num_triples // 2, _BATCH)
  ]
  found = [_scored(subject, triples) for triples in made_up]
  per_climb = num_triples // 2 // (2 * _CLIMBS)
  for climb in range(_CLIMBS):
    for part in (0, 1):
      best = _best(found, part, _KEPT)
      moved = _moved(best, per_climb, 0.5**climb, rng)
      found.append(_scored(subject, moved))
    # Only the top of what was seen is needed from here on.
    found = [_merge(found)]
  return _report(subject, found[0], num_triples)


class _Scored(NamedTuple):
  triples: Triples
  scores: np.ndarray  # [T, 3]: absolute norm, determinant and total.


def _scored(subject, triples) -> _Scored:
  norm, determinant = parts(subject, triples)
  scores = np.abs(np.stack([norm, determinant, norm + determinant], axis=1))
  # An undefined density ratio is no bound at all.
  return _Scored(triples, np.where(np.isnan(scores), np.inf, scores))


def _take(triples: Triples, index) -> Triples:
  return Triples(*(leaf[index] for leaf in triples))


def _best(found: list[_Scored], part: int, count: int) -> Triples:
  merged = _merge(found)
  return _take(merged.triples, np.argsort(-merged.scores[:, part])[:count])


def _merge(found: list[_Scored]) -> _Scored:
  """Keeps the best of each part."""
  triples = Triples(*map(np.concatenate, zip(*(s.triples for s in found))))
  scores = np.concatenate([s.scores for s in found])
  index = np.unique(np.argsort(-scores, axis=0, kind='stable')[:_KEPT])
  return _Scored(_take(triples, index), scores[index])


def _report(subject, best: _Scored, num_triples) -> DensityReport:
  worst = np.argmax(best.scores, axis=0)
  top = best.scores.max(axis=0)
  return DensityReport(
    num_triples=num_triples,
    max_norm_part=float(top[0]),
    norm_bound=subject.norm_bound,
    max_determinant_part=float(top[1]),
    determinant_bound=subject.determinant_bound,
    max_total=float(top[2]),
    epsilon=subject.norm_bound + subject.determinant_bound,
    worst_norm=_take(best.triples, worst[:1]),
    worst_determinant=_take(best.triples, worst[1:2]),
  )


def _made_up(subject, count: int, num_features: int, rng) -> Triples:
  """Draws triples; each corner is taken with some probability of its own."""
  shape = (count, subject.num_rows + 1, num_features)
  features = rng.normal(size=shape)
  features /= np.linalg.norm(features, axis=2, keepdims=True)
  # From the origin to three times the declared norm.
  features *= (
    subject.row_norm
    * rng.choice([0.0, 0.5, 1.0, 1.0, 2.0, 3.0], size=shape[:2])[:, :, None]
  )
  sometimes = lambda probability: rng.random(count) < probability
  features[sometimes(0.5), 1:-1] = 0.0  # Nothing but the replaced row.
  features[sometimes(0.3), -1] = 0.0
  opposite = sometimes(0.3)
  features[opposite, -1] = features[opposite, 0]
  labels = np.where(rng.random(shape[:2]) < 0.5, -1.0, 1.0)
  labels[opposite, -1] = -labels[opposite, 0]
  rows = subject.rows_fn(features.reshape(-1, num_features), labels.ravel())
  rows = rows.reshape(*shape[:2], -1)
  return Triples(features, labels, _weights(rows[:, 0], rng))


def _weights(replaced: np.ndarray, rng) -> np.ndarray:
  """Draws weights: at random, at the origin, or along the replaced row."""
  weights = rng.normal(size=replaced.shape)
  size = 10.0 ** rng.uniform(-12, 3, size=(len(weights), 1))
  weights *= size
  square = np.square(replaced).sum(axis=1, keepdims=True)
  # The margin where the curvature is largest, or nearly so.
  margin = rng.choice([0.0, 0.5, 1.0, 1.4], size=(len(weights), 1))
  along = replaced * margin / np.where(square > 0, square, 1.0)
  # Beside the replaced row: its margin is what it was, the noise is not.
  beside = (
    along
    + weights
    - replaced
    * (
      (weights * replaced).sum(axis=1, keepdims=True)
      / np.where(square > 0, square, 1.0)
    )
  )
  kind = rng.integers(0, 4, size=len(weights))[:, None]
  weights = np.where(kind == 1, along, weights)
  weights = np.where(kind == 2, beside, weights)
  return np.where(kind == 3, replaced * size, weights)


def _moved(best: Triples, count: int, step: float, rng) -> Triples:
  """Perturbs triples by relative steps; labels stay."""
  index = rng.integers(0, len(best.weights), size=count)
  features, labels, weights = _take(best, index)
  jitter = lambda array: (
    array * (1 + step * rng.normal(size=array.shape))
    + step * 1e-3 * rng.normal(size=array.shape)
  )
  move_rows = (rng.random(count) < 0.5)[:, None, None]
  move_weights = ~move_rows[:, :, 0] | (rng.random(count) < 0.5)[:, None]
  return Triples(
    np.where(move_rows, jitter(features), features),
    labels,
    np.where(move_weights, jitter(weights), weights),
  )
