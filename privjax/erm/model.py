"""A fitted linear model and its predictions.

>>> import fractions
>>> model = LinearModel(
...   weights=np.array([2.0]), intercept=-1.0, classes=('no', 'yes'),
...   residual_bound=0.0, certified=False, guarantee=types.PrivacyGuarantee(
...     epsilon=None, relation=types.NeighboringRelation.REPLACE_ONE_ROW,
...     theorem='none'))
>>> predict(model, np.array([[0.0], [1.0]])).tolist()
['no', 'yes']
>>> probabilities(model, np.array([[0.5]])).tolist()
[[0.5, 0.5]]
"""

import dataclasses
from typing import Any

import numpy as np
from scipy import special

from privjax import _validate
from privjax import types


@dataclasses.dataclass(frozen=True, kw_only=True)
class LinearModel:
  """A linear classifier: the label is classes[1] where w.x + intercept > 0.

  Attributes:
    weights: `[m]` float64, for features in their own units.
    intercept: float; 0 without an intercept.
    classes: (negative label, positive label); public.
    residual_bound: bound on the distance of the computed minimizer from the
      exact one, for rows scaled to unit norm. In mode 'certified-inexact' a
      public constant; in the others measured on private rows, not for release.
    certified: whether the noise came from the operating system.
    guarantee: what releasing weights and intercept costs.
  """

  weights: np.ndarray
  intercept: float
  classes: tuple[Any, Any]
  # Not shown: in most modes it was measured on private rows.
  residual_bound: float = dataclasses.field(repr=False)
  certified: bool
  guarantee: types.PrivacyGuarantee


def decision_function(model: LinearModel, features: types.Array) -> np.ndarray:
  """Returns `[n]` float64 scores w.x + intercept.

  Args:
    model: the model.
    features: `[n, m]` real, in the units of the fit.

  Raises:
    ValueError: on features of another width, or NaN or infinite entries.
  """
  features = np.asarray(features)
  _validate.shape((None, len(model.weights)), features=features)
  _validate.finite(features=features)
  return features @ model.weights + model.intercept


def probabilities(model: LinearModel, features: types.Array) -> np.ndarray:
  """Returns `[n, 2]` logistic probabilities of (classes[0], classes[1]).

  They are the model's own for the logistic loss; for a hinge they are only a
  monotone score.
  """
  scores = decision_function(model, features)
  return np.stack([special.expit(-scores), special.expit(scores)], axis=1)


def predict(model: LinearModel, features: types.Array) -> np.ndarray:
  """Returns `[n]` labels; a score of exactly 0 is classes[0]."""
  positive = decision_function(model, features) > 0
  return np.asarray(model.classes)[positive.astype(np.int64)]


def from_unit_weights(
  unit_weights: np.ndarray,
  *,
  divisor: float,
  intercept: float | None,
  classes: tuple[Any, Any],
  residual_bound: float,
  certified: bool,
  guarantee: types.PrivacyGuarantee,
) -> LinearModel:
  """Undoes the scaling to unit rows: w.(x / divisor) = (w / divisor).x.

  Args:
    unit_weights: `[d]` weights for unit rows, the intercept's last if any.
    divisor: public, from `config.unit_rows`.
    intercept: value of the constant column, or `None`.
    classes: as in `LinearModel`.
    residual_bound: as in `LinearModel`.
    certified: as in `LinearModel`.
    guarantee: as in `LinearModel`.
  """
  scaled = np.asarray(unit_weights) / divisor
  weights = scaled if intercept is None else scaled[:-1]
  return LinearModel(
    weights=weights,
    intercept=0.0 if intercept is None else float(scaled[-1] * intercept),
    classes=tuple(classes),
    residual_bound=float(residual_bound),
    certified=certified,
    guarantee=guarantee,
  )
