"""Objective perturbation: a private linear model from a perturbed objective.

Chaudhuri, Monteleoni & Sarwate (2011), Algorithm 2, with the calibration rules
and the proof of `calibration.calibrate`. Two modes differ in what they assume
about arithmetic; see `fit`.

>>> from privjax import prng
>>> from privjax.erm import losses
>>> config = config_lib.ErmConfig(
...   loss=losses.LOGISTIC, regularization=0.1, row_norm=2.0, classes=(0, 1)
... )
>>> features, labels = np.array([[2.0], [-1.0], [0.5]]), np.array([1, 0, 0])
>>> model = fit(features, labels, config=config, epsilon=1)
>>> model.certified, str(model.guarantee.epsilon)
(True, '1')
>>> replay = fit(features, labels, config=config, epsilon=1, key=prng.key(0))
>>> replay.certified
False
"""

import fractions
from typing import Literal

import numpy as np

from privjax import _validate
from privjax import types
from privjax.erm import calibration as calibration_lib
from privjax.erm import certified
from privjax.erm import config as config_lib
from privjax.erm import model as model_lib
from privjax.erm import single
from privjax.mechanisms import entropy
from privjax.mechanisms import vector_noise

Fraction = fractions.Fraction
Mode = Literal['exact-argmin', 'certified-inexact']
MODES = ('exact-argmin', 'certified-inexact')

# The part of epsilon that 'certified-inexact' pays for finite arithmetic.
ROUNDING_SHARE = Fraction(1, 100)

_SOURCE = 'objective perturbation (Chaudhuri et al., 2011, Algorithm 2), '


def guarantee(
  epsilon: int | str | Fraction | None,
  *,
  calibration: calibration_lib.Rule = 'tight',
  mode: Mode = 'exact-argmin',
) -> types.PrivacyGuarantee:
  """Returns the statement that one fit at `epsilon` satisfies.

  Args:
    epsilon: exact, in [2^-40, 10^4], or `None` for the non-private limit: no
      bound is claimed.
    calibration: 'paper' or 'tight'.
    mode: 'exact-argmin' or 'certified-inexact'.
  """
  _validate.one_of(calibration_lib.RULES, calibration=calibration)
  _validate.one_of(MODES, mode=mode)
  if epsilon is None:
    theorem = 'none: empirical risk minimization without noise'
  elif mode == 'exact-argmin':
    theorem = (
      _SOURCE + f"'{calibration}' calibration; ASSUMES the exact minimizer and "
      'noise in real arithmetic'
    )
  else:
    theorem = (
      _SOURCE + f"'{calibration}' calibration; inexactness paid by exact "
      'discrete Laplace noise'
    )
  return types.PrivacyGuarantee(
    epsilon=(
      None if epsilon is None else calibration_lib.check_epsilon(epsilon)
    ),
    relation=types.NeighboringRelation.REPLACE_ONE_ROW,
    theorem=theorem,
  )


def fit(
  features: types.Array,
  labels: types.Array,
  *,
  config: config_lib.ErmConfig,
  epsilon: int | str | Fraction | None,
  calibration: calibration_lib.Rule = 'tight',
  mode: Mode = 'exact-argmin',
  key: types.KeyArray | None = None,
) -> model_lib.LinearModel:
  """Fits a linear model to a private table by objective perturbation.

  Args:
    features: `[n, m]` real, private.
    labels: `[n]`, private, each in `config.classes`.
    config: public settings, the norm bound among them.
    epsilon: exact total cost, in [2^-40, 10^4]; `None` is the non-private
      limit.
    calibration: 'tight' (default) or 'paper'.
    mode: 'exact-argmin' or 'certified-inexact'.
    key: consumed; makes a replay, which is not certified. `None` reads the
      operating system's random bits.

  Returns:
    The model. `weights` and `intercept` are what the guarantee is about;
    `residual_bound` may be released in 'certified-inexact' only.

  Raises:
    ValueError: on anything out of range or not finite; nothing was fitted.
    single.ConvergenceError: in 'exact-argmin', if the solver missed its
      tolerance; nothing is released.

  Formal guarantees:
    Relation REPLACE_ONE_ROW, unit one row (its features and label); n, m, the
    config and epsilon are public. Both modes are epsilon-DP with delta = 0:

    'exact-argmin': by the theorem proved in `calibration.calibrate`, ASSUMING
    that the solver returned the exact minimizer and that the noise is a real
    vector. In truth the minimizer is off by at most `residual_bound`, which
    counts the rounding of the solver and not that of the noise or of the rows;
    no theorem covers that.

    'certified-inexact': without this assumption. epsilon is split into
    (1 - ROUNDING_SHARE) epsilon for the ideal mechanism and the rest for the
    distance to it; see `certified.release` for the proof.

    | input                             | behavior                           |
    |-----------------------------------|------------------------------------|
    | epsilon outside [2^-40, 10^4]     | ValueError (in 'certified-inexact' |
    |                                   | also if 0.99 epsilon is)           |
    | epsilon `None`                    | no noise; guarantee.epsilon `None` |
    | (c + mu) / mu above 2^40 in       | ValueError, by public numbers      |
    | 'certified-inexact', mu = Lambda  | alone, before a row is read        |
    | + Delta                           |                                    |
    | row_norm missing, 0, inf, NaN     | ValueError                         |
    | a row longer than row_norm        | ValueError, or clipped             |
    | all-zero rows or columns          | fitted like any other              |
    | n = 1, or one class in the labels | fitted: n and classes are public   |
    | label outside classes, NaN entry  | ValueError                         |

    Not covered: running time, and with excess='raise' the refusal of a table
    that breaks the declared bound. Several fits cost the sum of their epsilons,
    the overlapping training folds of a cross-validation included; see
    `tuning.cross_validation_guarantee`.
  """
  _validate.one_of(MODES, mode=mode)
  stated = guarantee(epsilon, calibration=calibration, mode=mode)
  _validate.shape((None, None), features=features)
  # What public numbers refuse is refused before a row is read.
  num_rows = np.shape(features)[0]
  total = stated.epsilon
  numbers = _numbers(total, num_rows, config, calibration, mode)
  rows = config_lib.unit_rows(features, labels, config)
  source = vector_noise.bit_source(key)
  certified_draw = numbers is not None and entropy.is_certified(source)
  if total is None or numbers is None:
    weights, distance = single.solve(
      rows.signed,
      np.zeros(rows.dimension),
      loss=config.loss,
      regularization=config.regularization,
    )
  elif mode == 'exact-argmin':
    noise = vector_noise.draw(rows.dimension, source=source).as_float64()
    weights, distance = single.solve(
      rows.signed,
      noise * numbers.noise_scale / rows.num_rows,
      loss=config.loss,
      regularization=numbers.regularization,
    )
  else:
    weights, distance = certified.release(
      rows.signed,
      numbers,
      total - numbers.epsilon,
      loss=config.loss,
      source=source,
    )
  return model_lib.from_unit_weights(
    weights,
    divisor=rows.divisor,
    intercept=config.intercept,
    classes=config.classes,
    residual_bound=distance,
    certified=certified_draw,
    guarantee=stated,
  )


def _numbers(
  epsilon, num_rows, config, rule, mode
) -> calibration_lib.Calibration | None:
  """Returns the calibration of the ideal mechanism; `None` for no noise."""
  if epsilon is None:
    return None
  inexact = mode == 'certified-inexact'
  numbers = calibration_lib.calibrate(
    epsilon * (1 - ROUNDING_SHARE) if inexact else epsilon,
    loss=config.loss,
    num_rows=num_rows,
    regularization=config.regularization,
    calibration=rule,
  )
  if inexact:
    certified.check(numbers, loss=config.loss)
  return numbers
