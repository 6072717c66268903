"""Named wrong versions of the private choice of Lambda, as patches.

`PRIVACY` and `EXACTNESS` map a name to a function that returns the patch to
enter. Which test must find it stands in `tests/erm/tuning_test.py`.
"""

import dataclasses
import fractions
from unittest import mock

import numpy as np

from privjax.erm import objective
from privjax.erm import tuning
from privjax.mechanisms import exact

_split_rows = tuning.split_rows
_tune = tuning.tune
_select = tuning.select


def _split(change):
  """Patches the parts of the split."""
  return mock.patch.object(
    tuning, 'split_rows', lambda *args, **kw: change(_split_rows(*args, **kw))
  )


def _sorted_rows(order_fn):
  """Sorts the rows, so that positions depend on what stands in them."""

  def tune(features, labels, **settings):
    order = order_fn(features, labels)
    return _tune(features[order], labels[order], **settings)

  return mock.patch.object(tuning, 'tune', tune)


def sensitivity_halved():
  """Exponent epsilon z: the factor 2 is missing."""
  return mock.patch.object(tuning, 'SENSITIVITY', fractions.Fraction(1, 2))


def selection_without_noise():
  """The smallest number of errors wins."""
  best = lambda errors, **_: exact.Draw(int(np.argmin(errors)), True, 0)
  return mock.patch.object(tuning, 'select', best)


def split_by_label():
  """Parts are cut from rows in the order of their labels."""
  return _sorted_rows(lambda x, y: np.argsort(y, kind='stable'))


def split_by_feature():
  """Parts are cut from rows in the order of a feature."""
  return _sorted_rows(lambda x, y: np.argsort(x[:, 0], kind='stable'))


def overlapping_training_parts():
  """Each training part takes a row of the next one as well."""

  def overlap(parts):
    training = parts[:-1]
    following = training[1:] + training[:1]
    pairs = zip(training, following)
    return [np.append(a, b[0]) for a, b in pairs] + parts[-1:]

  return _split(overlap)


def validation_rows_in_training():
  """The first model trains on a validation row."""
  return _split(lambda parts: [np.append(parts[0], parts[-1][0]), *parts[1:]])


def selection_on_a_training_part():
  """Errors are counted on the first training part."""
  return _split(lambda parts: [*parts[:-1], parts[0]])


def selection_on_all_rows():
  """Errors are counted on the whole table."""
  return _split(lambda parts: [*parts[:-1], np.sort(np.concatenate(parts))])


def uncharged_second_fit():
  """The chosen Lambda is fitted anew to all rows, and nothing is paid."""

  def tune(features, labels, **settings):
    tuned = _tune(features, labels, **settings)
    model = objective.fit(
      features,
      labels,
      config=settings['config'],
      epsilon=settings['epsilon'],
    )
    return dataclasses.replace(tuned, model=model)

  return mock.patch.object(tuning, 'tune', tune)


def one_noise_for_all_parts():
  """Every fit and the selection read the same bits."""
  return mock.patch.object(tuning, '_stream', lambda key, *names: key)


def errors_preferred():
  """Utility is the number of errors."""
  flipped = lambda errors, *, num_rows, **settings: _select(
    num_rows - np.asarray(errors), num_rows=num_rows, **settings
  )
  return mock.patch.object(tuning, 'select', flipped)


def another_value_reported():
  """The model is the chosen one, the Lambda beside it is not."""

  def tune(features, labels, *, regularizations, **settings):
    tuned = _tune(features, labels, regularizations=regularizations, **settings)
    place = list(regularizations).index(tuned.regularization)
    return dataclasses.replace(tuned, regularization=regularizations[place - 1])

  return mock.patch.object(tuning, 'tune', tune)


PRIVACY = {
  function.__name__: function
  for function in (
    sensitivity_halved,
    selection_without_noise,
    split_by_label,
    split_by_feature,
    overlapping_training_parts,
    validation_rows_in_training,
    selection_on_a_training_part,
    selection_on_all_rows,
    uncharged_second_fit,
    one_noise_for_all_parts,
  )
}
EXACTNESS = {
  function.__name__: function
  for function in (errors_preferred, another_value_reported)
}
