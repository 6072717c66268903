"""scikit-learn estimators: a thin shell around `objective.fit`.

>>> import numpy as np
>>> features, labels = np.array([[1.0], [-1.0], [0.5]]), np.array([1, 0, 1])
>>> estimator = PrivateLogisticRegression(
...   epsilon=2, row_norm=1.0, classes=(0, 1), regularization=0.1
... )
>>> estimator.fit(features, labels).guarantee_.unit
'row'

What scikit-learn's own linear models read off the data must be declared here:
the classes and the norm bound of a row. As in scikit-learn, whose scorers rely
on it, `classes_` is sorted and its larger value is the positive class, in
whatever order the two are declared. `cross_val_score` and grid searches fit
many times, and each fit costs its epsilon: the models of k folds and m settings
cost m (k - 1) epsilon together if the folds depend on positions only; folds
stratified by private labels, and all scores on private rows, are NOT COVERED
(see `tuning.cross_validation_guarantee`). `tune='private'` chooses Lambda
within the epsilon of one `fit`.
"""

import dataclasses
from typing import Any

import numpy as np
from sklearn import base
from sklearn.utils import validation

from privjax import _validate
from privjax import prng
from privjax.erm import config as config_lib
from privjax.erm import losses
from privjax.erm import model as model_lib
from privjax.erm import objective
from privjax.erm import tuning

_TUNINGS = (None, 'private')


class _PrivateLinearClassifier(base.ClassifierMixin, base.BaseEstimator):
  """What the two estimators share."""

  def __init__(
    self,
    *,
    epsilon: Any = 1,
    regularization: Any = 1e-2,
    row_norm: Any = None,
    classes: Any = None,
    intercept: Any = None,
    excess: Any = 'raise',
    calibration: Any = 'tight',
    mode: Any = 'exact-argmin',
    tune: Any = None,
    regularization_grid: Any = None,
    random_state: int | None = None,
  ):
    self.epsilon = epsilon
    self.regularization = regularization
    self.row_norm = row_norm
    self.classes = classes
    self.intercept = intercept
    self.excess = excess
    self.calibration = calibration
    self.mode = mode
    self.tune = tune
    self.regularization_grid = regularization_grid
    self.random_state = random_state

  def _fit(self, X, y, loss: losses.Loss):
    if self.classes is None:
      raise ValueError(
        'classes must be declared, as (negative label, positive label): '
        'reading them off y would depend on private labels'
      )
    config = config_lib.ErmConfig(
      loss=loss,
      regularization=self.regularization,
      row_norm=self.row_norm,
      classes=tuple(self.classes),
      intercept=self.intercept,
      excess=self.excess,
    )
    ordered = tuple(sorted(config.classes))
    config = dataclasses.replace(config, classes=ordered)
    self._check_tuning()
    checked = _checked_entries(
      lambda: validation.check_X_y(X, y, dtype='float64'), X=X, y=y
    )
    # Names and number of columns; its errors hold nothing else.
    validation.validate_data(self, X, skip_check_array=True)
    released = self._released(*checked, config)
    self.model_ = released.model
    self.regularization_ = released.regularization
    self.classes_ = np.asarray(config.classes)
    self.coef_ = self.model_.weights[None, :]
    self.intercept_ = np.array([self.model_.intercept])
    self.guarantee_ = self.model_.guarantee
    self.certified_ = self.model_.certified
    return self

  def _released(self, X, y, config) -> tuning.TunedModel:
    settings: dict[str, Any] = dict(
      config=config,
      epsilon=self.epsilon,
      calibration=self.calibration,
      mode=self.mode,
      key=self._key(),
    )
    if self.tune is not None:
      grid = self.regularization_grid
      return tuning.tune(X, y, regularizations=grid, **settings)
    return tuning.TunedModel(
      model=objective.fit(X, y, **settings),
      regularization=float(config.regularization),
    )

  def _check_tuning(self):
    _validate.one_of(_TUNINGS, tune=self.tune)
    if (self.tune is None) != (self.regularization_grid is None):
      raise ValueError(
        "regularization_grid must be given with tune='private' and only then, "
        f'got {self.regularization_grid!r} with tune={self.tune!r}'
      )

  def _key(self):
    if self.random_state is None:
      return None
    _validate.seed(random_state=self.random_state)
    return prng.stream(prng.key(self.random_state), 'estimator')

  def _checked(self, X) -> tuple[model_lib.LinearModel, np.ndarray]:
    validation.check_is_fitted(self, 'model_')
    checked = _checked_entries(
      lambda: validation.check_array(X, dtype='float64'), X=X
    )
    validation.validate_data(self, X, skip_check_array=True, reset=False)
    return self.model_, checked

  def __sklearn_tags__(self):
    tags = super().__sklearn_tags__()
    tags.classifier_tags.multi_class = False
    return tags

  def decision_function(self, X) -> np.ndarray:
    """Returns `[n]` scores; positive means classes_[1]."""
    return model_lib.decision_function(*self._checked(X))

  def predict(self, X) -> np.ndarray:
    """Returns `[n]` labels."""
    return model_lib.predict(*self._checked(X))


def _checked_entries(check, **arrays):
  """Returns `check()`, whose errors may quote entries of the arrays."""
  try:
    return check()
  except (TypeError, ValueError):
    pass
  # Out here, so that the new error does not hold the old one as its context.
  described = ', '.join(
    f'{name} of shape {getattr(array, "shape", "unknown")}'
    for name, array in arrays.items()
  )
  raise ValueError(
    'X must be a dense finite real [n, m] matrix, and y of a fit [n] labels, '
    f'got {described}. Nothing was fitted or predicted'
  )


class PrivateLogisticRegression(_PrivateLinearClassifier):
  """Logistic regression by objective perturbation.

  Args:
    epsilon: exact cost of one `fit` (an int, a Fraction or a string; a float is
      read by its decimal form); `None` fits without noise and without claim.
    regularization: Lambda > 0, for rows scaled to unit norm; not used with
      tune='private'.
    row_norm: declared bound on the norm of every row; required, public.
    classes: the two labels in any order, both texts or both numbers; required,
      public. The larger one is positive.
    intercept: value of a constant column, penalized like the others, or `None`.
    excess: 'raise' or 'clip' for rows longer than row_norm.
    calibration: 'tight' or 'paper'.
    mode: 'exact-argmin' or 'certified-inexact'.
    tune: 'private' chooses Lambda from the grid at no further cost, each value
      on a part of the rows (see `tuning.tune`); `None` takes `regularization`.
    regularization_grid: values > 0, public; required with tune='private'.
    random_state: a seed in [0, 2^32) for a replay, which repeats its noise in
      *every* fit and is never certified; `None` reads the operating system.

  Attributes: `coef_`, `intercept_`, `classes_`, `n_features_in_` and
  `feature_names_in_` as in scikit-learn; `guarantee_` and `certified_` as in
  `LinearModel`; `model_`, the `LinearModel`; `regularization_`, the Lambda of
  the fit.

  For release are `coef_`, `intercept_`, `regularization_` and what is public or
  derived from them: `classes_`, `guarantee_`, predictions for public rows. Not
  for release is the estimator as a whole, as a pickle say: `model_` holds
  `residual_bound`, which was measured on private rows.

  Errors name shapes and counts, never an entry of X or y.

  Formal guarantees: those of `objective.fit`, or of `tuning.tune` with
  tune='private', per call of `fit`, if every argument was chosen without
  looking at the private rows.
  """

  def fit(self, X, y):
    """Fits the model to private rows."""
    return self._fit(X, y, losses.LOGISTIC)

  def predict_proba(self, X) -> np.ndarray:
    """Returns `[n, 2]` probabilities of `classes_`."""
    return model_lib.probabilities(*self._checked(X))


class PrivateSVM(_PrivateLinearClassifier):
  """A linear SVM with a smoothed hinge, by objective perturbation.

  Args, attributes and formal guarantees are those of
  `PrivateLogisticRegression`, with one more argument,

    smoothing: h > 0, half the width of the hinge's smoothed kink.
  """

  def __init__(
    self,
    *,
    epsilon: Any = 1,
    regularization: Any = 1e-2,
    row_norm: Any = None,
    classes: Any = None,
    intercept: Any = None,
    excess: Any = 'raise',
    calibration: Any = 'tight',
    mode: Any = 'exact-argmin',
    tune: Any = None,
    regularization_grid: Any = None,
    random_state: int | None = None,
    smoothing: float = 0.5,
  ):
    super().__init__(
      epsilon=epsilon,
      regularization=regularization,
      row_norm=row_norm,
      classes=classes,
      intercept=intercept,
      excess=excess,
      calibration=calibration,
      mode=mode,
      tune=tune,
      regularization_grid=regularization_grid,
      random_state=random_state,
    )
    self.smoothing = smoothing

  def fit(self, X, y):
    """Fits the model to private rows."""
    return self._fit(X, y, losses.huber_hinge(self.smoothing))
