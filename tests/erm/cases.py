"""Small tables and settings that several tests share."""

import functools
from unittest import mock

import numpy as np

from privjax import erm
from privjax import prng
from tests.oracles import erm as oracle

LOGISTIC = erm.losses.LOGISTIC
HINGE = erm.losses.huber_hinge(0.5)
# Its parabola is longer than the margins of many rows, and 1 / (2 h) is not h.
WIDE_HINGE = erm.losses.huber_hinge(2.0)
LOSSES = (
  ('logistic', LOGISTIC),
  ('huber_hinge', HINGE),
  ('wide_hinge', WIDE_HINGE),
)
_ORACLE_LOSS = oracle.loss


def table(num_rows=60, num_features=4, seed=0):
  """Returns features of norm <= 1 and labels in {0, 1}, not separable."""
  rng = prng.generator(seed, 'erm_table')
  features = rng.normal(size=(num_rows, num_features))
  features /= np.linalg.norm(features, axis=1, keepdims=True)
  features *= rng.random((num_rows, 1))
  score = features[:, 0] + 0.3 * rng.normal(size=num_rows)
  return features, (score > 0).astype(int)


def config(loss=LOGISTIC, **changes):
  """Returns settings for `table`."""
  settings = dict(regularization=0.01, row_norm=1.0, classes=(0, 1))
  return erm.ErmConfig(loss=loss, **(settings | changes))


def objective(loss, *args):
  """Returns the oracle's (value, gradient, Hessian) for a loss."""
  with _smoothing(loss):
    return oracle.objective(loss.name, *args)


def minimize(loss, *args):
  """Returns the oracle's minimizer for a loss."""
  with _smoothing(loss):
    return oracle.minimize(loss.name, *args)


def _smoothing(loss):
  """Hands the loss's h on to the oracle, which assumes 1/2."""
  with_own = functools.partial(_ORACLE_LOSS, smoothing=loss.smoothing)
  return mock.patch.object(oracle, 'loss', with_own)
