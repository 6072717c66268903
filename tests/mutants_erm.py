"""Named wrong versions of objective perturbation, and how each is guilty.

Each makes a `density_ratio.Subject` of a mechanism that is not private, but for
`noise_reused_across_folds`, which is about two releases together. The tests in
`tests/erm/mutants_test.py` must catch every one of them.
"""

import dataclasses

import numpy as np

from privjax import erm
from privjax.audit import density_ratio


def _config(loss, row_norm, intercept=None):
  return erm.ErmConfig(
    loss=loss,
    regularization=0.1,
    row_norm=row_norm,
    classes=(0, 1),
    intercept=intercept,
    excess='clip',
  )


def library(loss, calibration, row_norm=2.0, intercept=None):
  """What the mutants are made from."""
  return density_ratio.library_subject(
    _config(loss, row_norm, intercept),
    1,
    num_rows=5,
    calibration=calibration,
  )


def doubled_noise_epsilon(loss, calibration):
  """The noise of 2 eps', as if one row moved the gradient by 1 and not 2."""
  subject = library(loss, calibration)
  return dataclasses.replace(subject, noise_scale=subject.noise_scale / 2)


def missing_slack(loss, calibration):
  """All of epsilon goes into the noise, nothing into the determinants."""
  subject = library(loss, calibration)
  epsilon = subject.norm_bound + subject.determinant_bound
  return dataclasses.replace(
    subject,
    noise_scale=2 / epsilon,
    norm_bound=epsilon,
    determinant_bound=0.0,
  )


def unclipped_rows(loss, calibration):
  """Rows of norm up to 2 where 1 was declared."""
  subject = library(loss, calibration, row_norm=2.0)
  unit = subject.rows_fn
  return dataclasses.replace(subject, rows_fn=lambda x, y: 2 * unit(x, y))


def unpenalized_intercept(loss, calibration):
  """The last weight, the intercept's, is left out of the regularizer."""
  subject = library(loss, calibration, intercept=1.0)
  correct = subject.penalty_fn
  return dataclasses.replace(
    subject, penalty_fn=lambda d: correct(d) * (np.arange(d) < d - 1)
  )


def curvature_linear_in_the_norm(loss, calibration):
  """No unit rows, and c q in the place of c q^2 at the norm bound q."""
  q = 10.0
  subject = library(loss, calibration, row_norm=q)
  numbers = erm.calibrate(
    1,
    loss=dataclasses.replace(loss, curvature=loss.curvature * q),
    num_rows=subject.num_rows,
    regularization=0.1,
    calibration=calibration,
  )
  unit = subject.rows_fn
  return dataclasses.replace(
    subject,
    rows_fn=lambda x, y: unit(x, y) * q,
    penalty_fn=lambda d: np.full(d, numbers.regularization),
    noise_scale=numbers.noise_scale * q,
    norm_bound=numbers.noise_epsilon,
    determinant_bound=numbers.slack,
  )


def gamma_of_lower_shape(loss, calibration):
  """The norm of the noise from Gamma(d - 1)."""
  subject = library(loss, calibration)
  return dataclasses.replace(subject, noise_shape_fn=lambda d: d - 1)


def lower_shape_draws(draws, num_draws, dimension, rng):
  """Noise vectors of the same directions, with norms from Gamma(d - 1)."""
  norms = np.linalg.norm(draws, axis=1, keepdims=True)
  lower = rng.gamma(dimension - 1, size=(num_draws, 1))
  return draws / norms * lower


def noise_reused_across_folds(key, cells, *, dimension, **_):
  """One vector for all folds of a cell."""
  return erm.cell_noise(key, cells, dimension=dimension, noise='shared')


SUBJECTS = {
  'doubled_noise_epsilon': doubled_noise_epsilon,
  'missing_slack': missing_slack,
  'unclipped_rows': unclipped_rows,
  'unpenalized_intercept': unpenalized_intercept,
  'curvature_linear_in_the_norm': curvature_linear_in_the_norm,
  'gamma_of_lower_shape': gamma_of_lower_shape,
}
