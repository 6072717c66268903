"""Bayes attackers on S: what a release adds to what a population tells.

They score level w of a target with public features p and label y = f(x) by

  P(S = w | P = p) * P(f = y | signal at S = w)

The first factor is knowledge of the population. The signal is what the attacker
can compute of a row; four of them make a ladder, each with more to look at:

1. none: the score is P(S | P), and y is not used;
2. the attacker's own surrogate classifier: no release;
3. the surrogate and the released rules together (`join`): where no rule
   applies the release is silent, and the surrogate's word is left;
4. the classifier itself: white box.

What the release adds is the third less the second. Pruning that moves an attack
on rules alone (`inversion`) may hardly move the third.

>>> public, codes = np.array([[0], [0], [0], [1]]), np.array([0, 0, 1, 1])
>>> known = population(public, codes, 2)
>>> given_public = conditional(known, np.array([[0], [1]]))
>>> given_public.round(2).tolist()
[[0.62, 0.38], [0.25, 0.75]]
>>> table = likelihood(np.array([0, 0, 1, 1]), np.array([-1, -1, 1, 1]), 2)
>>> table.tolist()
[[0.75, 0.25], [0.25, 0.75]]
>>> scores = bayes_scores(
...   given_public, signals=np.array([[0, 1], [0, 1]]), labels=np.array([1, 1]),
...   likelihoods=table)
>>> scores.argmax(axis=1).tolist()
[1, 1]

**Knowledge** of the attacker: `Population`, a likelihood table over population
rows with f's label, a target's public features and y. **Data** that only the
evaluation reads: the targets' levels (`inversion.evaluate`). Experiments use
training rows for the population, and these are private: every result is NOT
COVERED by an epsilon.
"""

import dataclasses
from typing import NamedTuple

import numpy as np

from privjax import _validate
from privjax.rules import rule_set
from privjax.rules import sensitive

NUM_RELEASE_SIGNALS = 3


class Population(NamedTuple):
  """The joint law of public features and S that an attacker knows.

  Attributes:
    cells: `[M, m]` int64, the distinct public features, sorted.
    counts: `[M, L]` int64 rows per cell and level.
  """

  cells: np.ndarray
  counts: np.ndarray

  @property
  def prior(self) -> np.ndarray:
    """`[L]` int64 rows per level."""
    return self.counts.sum(axis=0)


def population(
  public: np.ndarray, codes: np.ndarray, num_levels: int
) -> Population:
  """Counts the rows of a population.

  Args:
    public: `[N, m]` integers, N >= 1: public features as bins, without S.
    codes: `[N]` levels of S in [0, L).
    num_levels: L >= 2.

  Raises:
    ValueError: on an argument of another shape, type or range.
  """
  public, codes = _integers(public=public), _integers(codes=codes)
  _validate.integer(2, num_levels=num_levels)
  _validate.shape((None, None), public=public)
  _validate.shape((len(public),), codes=codes)
  if not len(codes):
    raise ValueError('codes must hold a row, got none')
  _check_range('codes', codes, num_levels)
  cells, inverse = np.unique(public, axis=0, return_inverse=True)
  counts = np.zeros((len(cells), num_levels), np.int64)
  np.add.at(counts, (inverse.ravel(), codes), 1)
  return Population(cells.astype(np.int64), counts)


def conditional(known: Population, public: np.ndarray) -> np.ndarray:
  """Returns P(S | P) of targets, `[n, L]` float64.

  One pseudo-row per cell, spread as the prior, makes every level of the
  population possible everywhere; an unseen cell has the prior.

  Args:
    known: the population.
    public: `[n, m]` integers, the targets' public features.
  """
  public = _integers(public=public)
  _validate.shape((None, known.cells.shape[1]), public=public)
  rows = {tuple(cell): row for row, cell in enumerate(known.cells.tolist())}
  # The last row, of zeros, is that of unseen cells.
  counts = np.pad(known.counts, ((0, 1), (0, 0)))
  index = [rows.get(tuple(cell), len(rows)) for cell in public.tolist()]
  smoothed = counts + known.prior / known.prior.sum()
  return (smoothed / smoothed.sum(axis=1, keepdims=True))[index]


def likelihood(
  signals: np.ndarray, labels: np.ndarray, num_signals: int
) -> np.ndarray:
  """Returns P(f = -1 or +1 | signal) over a population, `[K, 2]` float64.

  Each count starts at one, so that no label is impossible.

  Args:
    signals: `[N]` integers in [0, K), of rows with their own level.
    labels: `[N]` in {-1, +1}: f of these rows.
    num_signals: K >= 1.
  """
  signals, labels = _integers(signals=signals), np.asarray(labels)
  _validate.integer(1, num_signals=num_signals)
  _validate.shape((None,), signals=signals)
  _check_range('signals', signals, num_signals)
  _check_labels(labels, len(signals))
  counts = np.ones((num_signals, 2))
  np.add.at(counts, (signals, (labels > 0).astype(np.int64)), 1)
  return counts / counts.sum(axis=1, keepdims=True)


def bayes_scores(
  given_public: np.ndarray,
  *,
  signals: np.ndarray,
  labels: np.ndarray,
  likelihoods: np.ndarray,
) -> np.ndarray:
  """Returns the scores `[n, L]` float64, for `inversion.evaluate`.

  The first attacker needs none: its scores are `given_public`.

  Args:
    given_public: `[n, L]` P(S | P), see `conditional`.
    signals: `[n, L]` integers in [0, K): of a target with each level in turn.
    labels: `[n]` in {-1, +1}: f(x), given to the attacker.
    likelihoods: `[K, 2]`, see `likelihood`.
  """
  signals, labels = _integers(signals=signals), np.asarray(labels)
  _validate.shape((None, None), given_public=given_public)
  _validate.shape(np.shape(given_public), signals=signals)
  _validate.shape((None, 2), likelihoods=likelihoods)
  _check_range('signals', signals, len(likelihoods))
  _check_labels(labels, len(signals))
  return given_public * likelihoods[signals, (labels > 0)[:, None].astype(int)]


def classifier_signals(predictions: np.ndarray) -> np.ndarray:
  """Returns the signals, 0 or 1, of classes in {-1, +1} of any shape."""
  predictions = np.asarray(predictions)
  if np.any(np.abs(predictions) != 1):
    raise ValueError('predictions must be -1 or +1')
  return (predictions > 0).astype(np.int64)


def release_signals(
  rules: rule_set.RuleSet,
  attribute: sensitive.SensitiveAttribute,
  x: np.ndarray,
) -> np.ndarray:
  """Returns what released rules say of targets with each level, `[n, L]`.

  0 where no rule applies or the vote is tied, so that the default stands; else
  1 for class -1 and 2 for class +1.

  Args:
    rules: a set or a list over C columns.
    attribute: the sensitive attribute, among these columns.
    x: `[n, C]` targets; their sensitive columns are not read.
  """
  signals = []
  for level in range(attribute.num_levels):
    rows = sensitive.with_level(attribute, rules.names, x, level)
    signals.append(_spoken(rules, rows))
  return np.stack(signals, axis=1)


def join(first: np.ndarray, second: np.ndarray, num_second: int) -> np.ndarray:
  """Returns one signal for a pair: K = (number of first) * `num_second`."""
  first, second = _integers(first=first), _integers(second=second)
  _check_range('second', second, num_second)
  return first * num_second + second


def own(signals: np.ndarray, codes: np.ndarray) -> np.ndarray:
  """Returns the signals `[n]` of rows with their own level, of `[n, L]`."""
  signals, codes = _integers(signals=signals), _integers(codes=codes)
  _validate.shape((len(codes), None), signals=signals)
  _check_range('codes', codes, signals.shape[1])
  return signals[np.arange(len(codes)), codes]


def _spoken(rules: rule_set.RuleSet, rows: np.ndarray) -> np.ndarray:
  """Whether a rule set speaks of rows, and for which class: 0, 1 or 2."""
  if rules.ordered:
    classes = np.append(rules.consequent, 0)
    said = classes[rule_set.first_match(rules, rows)]
  else:
    # At 1/2 the default decides: where two defaults agree, rules have spoken.
    votes = [
      rule_set.predict(
        dataclasses.replace(
          rules,
          default=np.asarray(default),
          default_probability=np.asarray(0.5),
        ),
        rows,
      )
      for default in (-1, 1)
    ]
    said = np.sign(votes[0] + votes[1])
  return np.array([1, 0, 2])[said + 1]


def _integers(**kwargs) -> np.ndarray:
  ((name, value),) = kwargs.items()
  value = np.asarray(value)
  if value.dtype.kind not in 'iu':
    raise ValueError(f'{name} must be integers, got {value.dtype}')
  return value


def _check_range(name: str, values: np.ndarray, size: int) -> None:
  if np.any((values < 0) | (values >= size)):
    raise ValueError(f'{name} must be in [0, {size})')


def _check_labels(labels: np.ndarray, num_rows: int) -> None:
  _validate.shape((num_rows,), labels=labels)
  if np.any(np.abs(labels) != 1):
    raise ValueError('labels must be -1 or +1')
