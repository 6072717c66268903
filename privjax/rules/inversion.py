"""Model inversion: guessing S from rules, public features and f(x).

"Robust Transparency Against Model Inversion Attacks", Sec. 5, eqs. 5-7. Every
level w of S gets a score; the guess is the largest one, and of tied levels the
one with the largest prior. No rule that applies ties them all.

* A rule set: the votes of the rules that apply at S = w and whose class is
  f(x). The denominator of eq. 6 is the same for all w.
* A rule list: 1 if it predicts f(x) at S = w.
* The classifier itself ("none"): 1 if f(x with S = w) = f(x).

>>> from privjax.rules import rule_set
>>> rules = rule_set.make(
...   [[-np.inf, -np.inf, 0.5]], [[0.5, np.inf, np.inf]], [1],
...   names=('P', 'S=0', 'S=1'), default=-1, ordered=False)
>>> attribute = sensitive.one_hot(('S=0', 'S=1'))
>>> x = np.array([[0.0, 1, 0], [0.0, 0, 1], [1.0, 1, 0]])
>>> scores = rule_scores(rules, attribute, x, np.array([1, 1, -1]))
>>> scores.tolist()
[[0.0, 1.0], [0.0, 1.0], [0.0, 0.0]]
>>> outcome = evaluate(scores, np.array([0, 1, 0]), prior=np.array([5, 3]))
>>> outcome.attack_success, outcome.marginal
(0.6666666666666666, 0.6666666666666666)

The attacker **knows** the rules (or queries the classifier), a target's public
features, f(x), and the prior of S. The **data** are the targets' true levels,
which only the evaluation reads. Its results are NOT COVERED by an epsilon.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from privjax import _validate
from privjax import prng
from privjax.rules import rule_set
from privjax.rules import sensitive

# Scores closer than this part of the largest tie, so that the order in which
# weights are summed decides nothing.
_TIE = 1e-12


class Outcome(NamedTuple):
  """An attack on n targets beside the guess of the prior. Not for release.

  Attributes:
    guess: `[n]` int64 levels.
    is_right: `[n]` bool, eq. 5: the guess is the target's level.
    is_marginal_right: `[n]` bool, the same for the level of largest prior.
  """

  guess: np.ndarray
  is_right: np.ndarray
  is_marginal_right: np.ndarray

  @property
  def attack_success(self) -> float:
    """Eq. 7: the share of targets whose level is guessed."""
    return float(np.mean(self.is_right))

  @property
  def marginal(self) -> float:
    """The share that the level of largest prior guesses; print it beside."""
    return float(np.mean(self.is_marginal_right))


class Intervals(NamedTuple):
  """Percentile bootstrap intervals over targets: pairs (lower, upper).

  Attributes:
    attack_success: of eq. 7.
    marginal: of the marginal.
    excess: of their difference, on the same resampled targets.
    level: the nominal coverage of each.
    num_resamples: B.
  """

  attack_success: tuple[float, float]
  marginal: tuple[float, float]
  excess: tuple[float, float]
  level: float
  num_resamples: int


def prior_counts(codes: np.ndarray, num_levels: int) -> np.ndarray:
  """Returns `[L]` int64 training rows per level; an unseen one has 0.

  Args:
    codes: `[n]` levels of the training rows, in [0, L).
    num_levels: L >= 2.
  """
  _validate.integer(2, num_levels=num_levels)
  codes = _checked_codes(codes, num_levels)
  return np.bincount(codes, minlength=num_levels).astype(np.int64)


def rule_scores(
  rules: rule_set.RuleSet,
  attribute: sensitive.SensitiveAttribute,
  x: np.ndarray,
  labels: np.ndarray,
) -> np.ndarray:
  """Scores every level of S by rules (eq. 6, or the list's prediction).

  Args:
    rules: R rules over C columns. None gives equal scores.
    attribute: the sensitive attribute, among these columns.
    x: `[n, C]` targets; their sensitive columns are not read.
    labels: `[n]` in {-1, +1}: f(x), given to the attacker. (It is not the true
      class.)

  Returns:
    `[n, L]` float64.

  Raises:
    ValueError: on an unknown sensitive column, or a wrong shape or label.
  """
  labels = _checked_labels(labels, len(np.asarray(x)))
  admits = sensitive.admitted(rules, attribute)
  public = sensitive.public_matches(rules, attribute, x)
  if not rules.ordered:
    agrees = public & (labels[:, None] == rules.consequent)
    return (agrees * rules.weight) @ admits.astype(np.float64)
  # A list decides by the first rule that applies; position R is the default.
  classes = np.append(rules.consequent, rules.default)
  scores = np.empty((len(labels), attribute.num_levels))
  for level in range(attribute.num_levels):
    applies = np.pad(
      public & admits[:, level], ((0, 0), (0, 1)), constant_values=True
    )
    scores[:, level] = classes[np.argmax(applies, axis=1)] == labels
  return scores


def classifier_scores(
  predictions: np.ndarray, labels: np.ndarray
) -> np.ndarray:
  """Scores every level of S by a classifier: `[n, L]` float64 in {0, 1}.

  Args:
    predictions: `[n, L]` in {-1, +1}: the class of a target with S = w, see
      `level_predictions`.
    labels: `[n]` in {-1, +1}: f(x), given to the attacker.
  """
  predictions = np.asarray(predictions)
  _validate.shape((None, None), predictions=predictions)
  labels = _checked_labels(labels, len(predictions))
  if np.any(np.abs(predictions) != 1):
    raise ValueError('predictions must be -1 or +1')
  return (predictions == labels[:, None]).astype(np.float64)


def level_predictions(
  predict_fn: Callable[[np.ndarray], np.ndarray],
  attribute: sensitive.SensitiveAttribute,
  names: tuple[str, ...],
  x: np.ndarray,
) -> np.ndarray:
  """Returns `[n, L]` int64 classes of targets with each level in turn.

  Args:
    predict_fn: maps `[n, C]` rows to `[n]` classes in {-1, +1}.
    attribute: the sensitive attribute.
    names: of the C columns.
    x: `[n, C]` targets; their sensitive columns are not read.

  Raises:
    ValueError: if `predict_fn` gives another shape or other classes.
  """
  predictions = []
  for level in range(attribute.num_levels):
    rows = sensitive.with_level(attribute, names, x, level)
    classes = np.asarray(predict_fn(rows))
    _validate.shape((len(rows),), predictions=classes)
    # Before the cast, which would make classes of margins such as 1.7.
    if np.any(np.abs(classes.astype(np.float64)) != 1):
      raise ValueError('predictions must be -1 or +1')
    predictions.append(classes.astype(np.int64))
  return np.stack(predictions, axis=1)


def guess(scores: np.ndarray, prior: np.ndarray) -> np.ndarray:
  """Returns the level of the largest score; ties by prior, then the first.

  Args:
    scores: `[n, L]` finite and >= 0.
    prior: `[L]` finite and >= 0, counts or shares over training rows. A level
      unseen in training has 0, and is guessed only where it scores alone.

  Returns:
    `[n]` int64.
  """
  scores, prior = np.asarray(scores), np.asarray(prior)
  _validate.shape((len(prior),), prior=prior)
  _validate.shape((None, len(prior)), scores=scores)
  for name, value in (('scores', scores), ('prior', prior)):
    _validate.finite(**{name: value})
    if np.any(value < 0):
      raise ValueError(f'{name} must be >= 0, got {value.min()}')
  largest = scores.max(axis=1, keepdims=True)
  is_tied = scores >= largest * (1 - _TIE)
  return np.argmax(np.where(is_tied, prior, -1), axis=1)


def evaluate(
  scores: np.ndarray, codes: np.ndarray, *, prior: np.ndarray
) -> Outcome:
  """Compares the guesses with the truth (eqs. 5 and 7). NOT COVERED.

  Args:
    scores: `[n, L]`, n >= 1, of an attacker.
    codes: `[n]` int64 in [0, L), the targets' private levels.
    prior: `[L]` as in `guess`; of training rows, not of the targets.
  """
  guesses = guess(scores, prior)
  codes = _checked_codes(codes, len(prior))
  _validate.shape((len(guesses),), codes=codes)
  if not len(codes):
    raise ValueError('codes must hold a target, got none')
  return Outcome(guesses, guesses == codes, codes == np.argmax(prior))


def intervals(
  outcome: Outcome,
  *,
  seed: int,
  level: float = 0.95,
  num_resamples: int = 1000,
) -> Intervals:
  """Returns percentile bootstrap intervals over the targets. NOT COVERED.

  The rules and the classifier are held fixed: other training rows, noise or
  forests would spread more.

  Args:
    outcome: on n targets.
    seed: public, in [0, 2**32).
    level: in (0, 1], the coverage aimed at.
    num_resamples: B >= 1.
  """
  _validate.fraction_of_one(level=level)
  _validate.integer(1, num_resamples=num_resamples)
  generator = prng.generator(seed, 'bootstrap')
  hits = np.stack([outcome.is_right, outcome.is_marginal_right], axis=1)
  num_targets = len(hits)
  means = np.empty((num_resamples, 2))
  for resample in range(num_resamples):
    # `random` and not `integers`: NumPy may change the stream behind those.
    index = (generator.random(num_targets) * num_targets).astype(np.int64)
    means[resample] = hits[index].mean(axis=0)
  tails = [(1 - level) / 2, (1 + level) / 2]
  ends = lambda values: tuple(np.quantile(values, tails).tolist())
  return Intervals(
    attack_success=ends(means[:, 0]),
    marginal=ends(means[:, 1]),
    excess=ends(means[:, 0] - means[:, 1]),
    level=level,
    num_resamples=num_resamples,
  )


def _checked_labels(labels, num_rows: int) -> np.ndarray:
  labels = np.asarray(labels)
  _validate.shape((num_rows,), labels=labels)
  if np.any(np.abs(labels) != 1):
    raise ValueError('labels must be -1 or +1')
  return labels


def _checked_codes(codes, num_levels: int) -> np.ndarray:
  codes = np.asarray(codes)
  _validate.shape((None,), codes=codes)
  if codes.dtype.kind not in 'iu':
    raise ValueError(f'codes must be integers, got {codes.dtype}')
  if np.any((codes < 0) | (codes >= num_levels)):
    raise ValueError(f'codes must be in [0, {num_levels})')
  return codes
