"""Small tables and settings that several tests share."""

import numpy as np

from privjax import erm
from privjax import prng

LOGISTIC = erm.losses.LOGISTIC
HINGE = erm.losses.huber_hinge(0.5)
LOSSES = (('logistic', LOGISTIC), ('huber_hinge', HINGE))


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
