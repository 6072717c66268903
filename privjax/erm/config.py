"""The public side of a fit: what is declared and never read off the data.

>>> config = ErmConfig(
...   loss=losses.LOGISTIC, regularization=0.01, row_norm=1.0, classes=(0, 1)
... )
>>> rows = unit_rows(np.array([[0.6], [-1.0]]), [1, 0], config)
>>> rows.signed.round(6).tolist(), rows.num_rows
([[0.6], [1.0]], 2)
"""

import dataclasses
import math
from typing import Any, Literal, NamedTuple

import numpy as np

from privjax import _validate
from privjax import types
from privjax.erm import losses

EXCESS = ('raise', 'clip')
_SCALARS = (str, bytes, bool, int, float, np.generic)


@dataclasses.dataclass(frozen=True, kw_only=True)
class ErmConfig:
  """Public settings of a linear model.

  Attributes:
    loss: `losses.LOGISTIC` or `losses.huber_hinge(h)`, nothing else: what the
      privacy proof needs of a loss was shown for these.
    regularization: Lambda > 0, for rows scaled to unit norm.
    row_norm: q >= 1e-300, declared bound on the Euclidean norm of every row of
      features. There is no default: reading it off the data would leak.
    classes: (negative label, positive label), two different texts or two
      different numbers. Labels that do not occur in the data are fine.
    intercept: value > 0 of the constant column that is appended, or `None` for
      no intercept. The column is part of the row: its weight is penalized and
      perturbed like the others, and the norm bound is sqrt(q^2 + intercept^2),
      at most 1e300.
    excess: what to do with a row longer than q: 'raise' or 'clip' to q. A
      refusal depends on the data, so 'raise' holds its guarantee among tables
      that satisfy the bound; 'clip' holds it for all.
  """

  loss: losses.Loss
  regularization: float
  row_norm: float
  classes: tuple[Any, Any]
  intercept: float | None = None
  excess: Literal['raise', 'clip'] = 'raise'

  def __post_init__(self):
    losses.check_own(self.loss)
    _validate.positive(regularization=self.regularization)
    _validate.positive(row_norm=self.row_norm)
    if self.intercept is not None:
      _validate.positive(intercept=self.intercept)
    # Below, numbers next to the smallest float have no relative precision;
    # above, the divisor overflows.
    if not 1e-300 <= float(self.row_norm) <= self.bound <= 1e300:
      raise ValueError(
        'row_norm and intercept must give a norm bound in [1e-300, 1e300], got '
        f'row_norm = {self.row_norm!r}, intercept = {self.intercept!r}'
      )
    _validate.one_of(EXCESS, excess=self.excess)
    if not _is_pair(self.classes):
      raise ValueError(
        'classes must be the pair (negative label, positive label) of two '
        'different public values, both texts or both numbers, got '
        f'{self.classes!r}'
      )

  @property
  def bound(self) -> float:
    """The norm bound of a row with its intercept column."""
    return math.hypot(self.row_norm, self.intercept or 0.0)


class UnitRows(NamedTuple):
  """Rows of norm at most 1, each multiplied by its label. Private.

  Attributes:
    signed: `[n, d]` float64, y_i x_i / divisor, intercept column last.
    divisor: public; the norm bound, larger by a hair that covers rounding.
  """

  signed: np.ndarray
  divisor: float

  @property
  def num_rows(self) -> int:
    """The number of rows n; public."""
    return self.signed.shape[0]

  @property
  def dimension(self) -> int:
    """The number of weights d, the intercept's included; public."""
    return self.signed.shape[1]


def unit_rows(
  features: types.Array, labels: types.Array, config: ErmConfig
) -> UnitRows:
  """Checks a private table and scales its rows into the unit ball.

  Args:
    features: `[n, m]` real, private; n >= 1 and m >= 1 are public.
    labels: `[n]`, private, each one of `config.classes`.
    config: public settings.

  Returns:
    Rows whose norm is at most 1, not only up to rounding: that is what turns a
    bound q on |x| into the constant c of the proof (and not c q^2).

  Raises:
    ValueError: on an empty or mis-shaped table, NaN or infinite entries, a
      label outside the classes, or, with excess='raise', a row longer than q.
      The message depends on the data; nothing was fitted.
  """
  features = np.asarray(features)
  _validate.shape((None, None), features=features)
  if features.size == 0:
    raise ValueError(f'features must not be empty, got shape {features.shape}')
  _validate.finite(features=features)
  signs = _signs(labels, len(features), config.classes)
  with np.errstate(over='ignore'):  # Of wider floats; refused in a moment.
    features = features.astype(np.float64)
  _validate.finite(features=features)
  num_features = features.shape[1]
  slack = (num_features + 8) * 2.0**-52
  features = _bounded(features, config, slack)
  if config.intercept is not None:
    constant = np.full((len(features), 1), float(config.intercept))
    features = np.concatenate([features, constant], axis=1)
  divisor = config.bound * (1 + 4 * slack)
  return UnitRows(signs[:, None] * (features / divisor), divisor)


def _bounded(
  features: np.ndarray, config: ErmConfig, slack: float
) -> np.ndarray:
  """Returns rows of norm at most q (1 + 2 slack)."""
  # Scaled first, so that no square over- or underflows.
  largest = np.abs(features).max(axis=1, initial=0.0, keepdims=True)
  largest = np.where(largest > 0, largest, 1.0)
  shape = features / largest
  # At least 1, but for zero rows.
  shape_norms = np.maximum(np.linalg.norm(shape, axis=1, keepdims=True), 1.0)
  with np.errstate(over='ignore'):  # An infinite norm is too long, rightly.
    norms = largest * shape_norms
  long = norms > config.row_norm * (1 + slack)
  if not long.any():
    return features
  if config.excess == 'raise':
    raise ValueError(
      f'features must have rows of norm at most row_norm = {config.row_norm}, '
      f'got {int(long.sum())} longer ones: declare a larger public bound, '
      "rescale, or pass excess='clip'. Nothing was fitted"
    )
  return np.where(long, shape / shape_norms * config.row_norm, features)


def _is_pair(classes) -> bool:
  """Whether predictions, an array of both values, can give them back."""
  if not isinstance(classes, (tuple, list)) or len(classes) != 2:
    return False
  if not all(isinstance(value, _SCALARS) for value in classes):
    return False
  both = np.asarray(classes)
  # (0, 'no') is not given back: it becomes ('0', 'no').
  return both.tolist() == list(classes) and bool(both[0] != both[1])


def _signs(labels: types.Array, num_rows: int, classes) -> np.ndarray:
  """Returns `[n]` float64: -1 for classes[0], +1 for classes[1]."""
  labels = np.asarray(labels)
  _validate.shape((num_rows,), labels=labels)
  negative, positive = (_equal(labels, value) for value in classes)
  unknown = int(num_rows - np.count_nonzero(negative | positive))
  if unknown:
    raise ValueError(
      f'labels must be in classes {tuple(classes)!r}, got {unknown} others. '
      'Nothing was fitted'
    )
  return np.where(positive, 1.0, -1.0)


def _equal(labels: np.ndarray, value) -> np.ndarray:
  """Returns `[n]` bool; a label that compares to nothing is not equal."""
  if labels.dtype.kind not in 'OT':
    return labels == value
  # What compares to pandas' NA is NA, which has no truth value.
  equal = [label == value for label in labels.tolist()]
  return np.array([isinstance(e, (bool, np.bool_)) and bool(e) for e in equal])
