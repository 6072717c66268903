"""Output perturbation: noise added to the minimizer.

  w = argmin J(w) + eta,   density of eta proportional to
                           exp(-n Lambda epsilon |eta| / 2)

Chaudhuri, Monteleoni & Sarwate (2011), Algorithm 1. A companion to compare
with: objective perturbation is usually more accurate.

>>> import numpy as np
>>> from privjax.erm import losses
>>> config = config_lib.ErmConfig(
...   loss=losses.LOGISTIC, regularization=0.1, row_norm=2.0, classes=(0, 1)
... )
>>> model = fit(np.array([[2.0], [-1.0]]), [1, 0], config=config, epsilon=1)
>>> model.certified, model.guarantee.unit
(True, 'row')
"""

import fractions

import numpy as np

from privjax import _validate
from privjax import types
from privjax.erm import calibration
from privjax.erm import config as config_lib
from privjax.erm import model as model_lib
from privjax.erm import single
from privjax.mechanisms import vector_noise

Fraction = fractions.Fraction


def sensitivity(num_rows: int, regularization: float) -> float:
  """Returns the bound 2 / (n Lambda) on the change of the minimizer.

  For rows of norm <= 1, |loss'| <= 1 and one row replaced: the gradients of the
  two objectives differ by at most 2 / n anywhere, and J is Lambda-strongly
  convex. Rounded up.
  """
  _validate.integer(1, num_rows=num_rows)
  _validate.positive(regularization=regularization)
  return 2 / (num_rows * regularization) * (1 + 2.0**-50)


def fit(
  features: types.Array,
  labels: types.Array,
  *,
  config: config_lib.ErmConfig,
  epsilon: int | str | Fraction,
  key: types.KeyArray | None = None,
) -> model_lib.LinearModel:
  """Fits a linear model to a private table by output perturbation.

  Args:
    features: `[n, m]` real, private.
    labels: `[n]`, private, each in `config.classes`.
    config: public settings, the norm bound among them.
    epsilon: exact, in [2^-40, 10^4].
    key: consumed; makes a replay, which is not certified. `None` reads the
      operating system's random bits.

  Raises:
    ValueError: on anything out of range or not finite; nothing was fitted.
    single.ConvergenceError: if the solver missed its tolerance.

  Formal guarantees:
    epsilon-DP, delta = 0, under REPLACE_ONE_ROW, ASSUMING the exact minimizer
    and noise in real arithmetic: the minimizer moves by at most
    `sensitivity(n, Lambda)` =: s, and exp(-epsilon |eta| / s) changes by a
    factor of at most e^epsilon when eta moves by s. n, m and the config are
    public. Edge cases are those of `objective.fit`; there is no 'certified-
    inexact' mode.
  """
  epsilon = calibration.check_epsilon(epsilon)
  rows = config_lib.unit_rows(features, labels, config)
  weights, distance = single.solve(
    rows.signed,
    np.zeros(rows.dimension),
    loss=config.loss,
    regularization=config.regularization,
  )
  noise = vector_noise.draw(rows.dimension, source=vector_noise.bit_source(key))
  scale = sensitivity(rows.num_rows, config.regularization) / float(epsilon)
  return model_lib.from_unit_weights(
    weights + scale * noise.as_float64(),
    divisor=rows.divisor,
    intercept=config.intercept,
    classes=config.classes,
    residual_bound=distance,
    certified=noise.certified,
    guarantee=types.PrivacyGuarantee(
      epsilon=epsilon,
      relation=types.NeighboringRelation.REPLACE_ONE_ROW,
      theorem=(
        'output perturbation (Chaudhuri et al., 2011, Algorithm 1); ASSUMES '
        'the exact minimizer and noise in real arithmetic'
      ),
    ),
  )
