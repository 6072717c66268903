"""Choosing Lambda: privately, at no further cost, or as papers often do.

`tune` is the parameter tuning of Chaudhuri, Monteleoni & Sarwate (2011),
Section 6, Algorithm 3. The rows are split by a public rule into m + 1 disjoint
parts; part i trains a model with Lambda_i, the last part counts the errors z_i
of each model, and one model is released with

  P(i) proportional to exp(-epsilon z_i / 2).

The grid, n and the split are public; the rows are private.

>>> import numpy as np
>>> from privjax.erm import losses
>>> config = config_lib.ErmConfig(
...   loss=losses.LOGISTIC, regularization=1.0, row_norm=1.0, classes=(0, 1)
... )
>>> labels = np.arange(60) % 2
>>> features = 0.8 * labels[:, None] - 0.4
>>> grid = (1.0, 0.1)
>>> tuned = tune(
...   features, labels, config=config, regularizations=grid, epsilon='1/2'
... )
>>> tuned.regularization in grid, str(tuned.model.guarantee.epsilon)
(True, '1/2')

`best_on_test` is the choice that many tables report, NOT COVERED by any
guarantee; `cross_validation_guarantee` says what a grid search costs.
"""

from collections.abc import Sequence
import dataclasses
import fractions

import numpy as np

from privjax import _validate
from privjax import prng
from privjax import types
from privjax.erm import calibration as calibration_lib
from privjax.erm import config as config_lib
from privjax.erm import model as model_lib
from privjax.erm import objective
from privjax.mechanisms import entropy
from privjax.mechanisms import exact
from privjax.mechanisms import grouping
from privjax.mechanisms import vector_noise

Fraction = fractions.Fraction

# One replaced row changes the number of errors of a fixed model by at most 1.
SENSITIVITY = 1

_SOURCE = (
  'parameter tuning on disjoint parts (Chaudhuri et al., 2011, Algorithm 3), '
  f'selection by error counts of sensitivity {SENSITIVITY}; each part: '
)


@dataclasses.dataclass(frozen=True, kw_only=True)
class TunedModel:
  """A model and the Lambda that it was chosen with.

  Attributes:
    model: its guarantee covers weights, intercept and `regularization`
      together.
    regularization: the chosen value of the grid.
  """

  model: model_lib.LinearModel
  regularization: float


def guarantee(
  epsilon: int | str | Fraction,
  *,
  calibration: calibration_lib.Rule = 'tight',
  mode: objective.Mode = 'exact-argmin',
) -> types.PrivacyGuarantee:
  """Returns the statement that one `tune` at `epsilon` satisfies.

  Args:
    epsilon: exact total cost, > 0.
    calibration: of every fit, 'paper' or 'tight'.
    mode: of every fit, 'exact-argmin' or 'certified-inexact'.
  """
  grouping.scale(epsilon, SENSITIVITY, 1)  # Refuses what cannot be sampled.
  fitted = objective.guarantee(epsilon, calibration=calibration, mode=mode)
  return dataclasses.replace(fitted, theorem=_SOURCE + fitted.theorem)


def split_rows(
  num_rows: int, num_parts: int, *, seed: int = 0
) -> list[np.ndarray]:
  """Splits row positions into disjoint parts, from public numbers alone.

  Args:
    num_rows: n >= num_parts.
    num_parts: >= 1.
    seed: of the public permutation, so that an order of the table (by label,
      say) does not become the split.

  Returns:
    `num_parts` int64 arrays that hold every position once; their sizes differ
    by at most 1.

  Raises:
    ValueError: if an argument is out of range.
  """
  _validate.integer(1, num_parts=num_parts)
  _validate.integer(num_parts, num_rows=num_rows)
  order = prng.permutation(num_rows, seed, 'tuning_split')
  return np.array_split(order, num_parts)


def count_errors(
  model: model_lib.LinearModel, features: types.Array, labels: types.Array
) -> int:
  """Counts private rows whose label the model misses. Not for release.

  Sensitivity: whether a row is missed depends on that row and the model alone,
  so for a fixed model the count changes by at most 1 under REPLACE_ONE_ROW.

  Args:
    model: the model.
    features: `[n, m]` real, private.
    labels: `[n]`, private, each one of `model.classes`.
  """
  positive = np.asarray(labels) == model.classes[1]
  scores = model_lib.decision_function(model, features)
  return int(np.count_nonzero((scores > 0) != positive))


def select(
  errors: Sequence[int],
  *,
  num_rows: int,
  epsilon: int | str | Fraction,
  source: entropy.BitSource | None = None,
) -> exact.Draw:
  """Draws i with probability proportional to exp(-epsilon errors[i] / 2).

  Args:
    errors: one count in [0, num_rows] per model; the only private argument.
    num_rows: the number of validation rows, public. The draw takes time in
      proportion to it.
    epsilon: exact, in [2^-40, 10^4].
    source: bits for a replay, consumed. `None` reads the operating system, and
      only then is the draw certified.

  Returns:
    The draw; its index is what the guarantee is about.

  Formal guarantees:
    For models that do not depend on the validation rows, the index is
    epsilon-DP, delta = 0, under REPLACE_ONE_ROW of a validation row:
    `mechanisms.exact.sample` with utility -errors, whose sensitivity is
    `SENSITIVITY` = 1 (see `count_errors`). All counts may change at once and
    in opposite directions, so the factor 2 cannot be spared.
  """
  return exact.sample(
    -np.asarray(errors),
    levels=range(-num_rows, 1),
    epsilon=epsilon,
    sensitivity=SENSITIVITY,
    source=source,
  )


def tune(
  features: types.Array,
  labels: types.Array,
  *,
  config: config_lib.ErmConfig,
  regularizations: Sequence[float],
  epsilon: int | str | Fraction,
  calibration: calibration_lib.Rule = 'tight',
  mode: objective.Mode = 'exact-argmin',
  split_seed: int = 0,
  key: types.KeyArray | None = None,
) -> TunedModel:
  """Chooses Lambda on private rows and releases the model fitted with it.

  Args:
    features: `[n, m]` real, private.
    labels: `[n]`, private, each in `config.classes`.
    config: public settings; its `regularization` plays no part, the grid does.
    regularizations: public grid of m distinct values > 0, which one chose
      without looking at the rows.
    epsilon: exact total cost, > 0. Every fit and the selection use it whole.
    calibration: of every fit, 'tight' (default) or 'paper'.
    mode: of every fit, 'exact-argmin' or 'certified-inexact'.
    split_seed: public, in [0, 2**32); see `split_rows`.
    key: consumed; makes a replay, which is not certified. `None` reads the
      operating system's random bits.

  Returns:
    The chosen model. It was fitted to about n / (m + 1) rows.

  Raises:
    ValueError: on anything out of range or not finite; nothing was fitted.
    single.ConvergenceError: as in `objective.fit`; nothing is released.

  Formal guarantees:
    Weights, intercept and `regularization` together are epsilon-DP with
    delta = 0. Relation REPLACE_ONE_ROW, unit one row; n, m, the grid, the
    split, the config and epsilon are public. Proof: the split reads positions
    only, so neighboring tables D and D' differ in one row of one part. The fits
    use independent noise. Write w for all m models, v for the validation rows.

    1. The row is in training part i. By the guarantee of `objective.fit` at
       epsilon, the law of model i changes by a factor of at most e^epsilon; the
       other models have the same law and are independent of it, and so the
       joint law of w changes by at most e^epsilon. v is the same, so what is
       released is one random function of w: post-processing.
    2. The row is in the validation part. w has the same law. For each w the
       index is epsilon-DP (see `select`), and averaging over w keeps the
       factor e^epsilon.

    So the two stages cost the larger of their epsilons, not the sum: the parts
    are disjoint. A model fitted anew to all rows with the chosen Lambda would
    cost another epsilon. What `objective.fit` assumes in a mode is assumed
    here, and named in the guarantee.

    | input                             | behavior                           |
    |-----------------------------------|------------------------------------|
    | grid empty, a value repeated      | ValueError                         |
    | a value 0, negative, inf, NaN     | ValueError                         |
    | one value                         | allowed; half of the rows is spent |
    | n below m + 1: a part has no row  | ValueError                         |
    | epsilon `None`                    | ValueError: no law to select by    |
    | epsilon not in [2^-40, 10^4]      | ValueError                         |
    | table: NaN, other labels, ...     | as in `objective.fit`              |

    Not covered: running time; with excess='raise' the refusal of a table that
    breaks the declared bound; the error counts, which are not returned.
  """
  stated = guarantee(epsilon, calibration=calibration, mode=mode)
  grid = _grid(regularizations)
  features, labels = np.asarray(features), np.asarray(labels)
  # For its refusals: a later part must not fail when others have been fitted.
  num_rows = config_lib.unit_rows(features, labels, config).num_rows
  if num_rows <= len(grid):
    raise ValueError(
      f'features must have at least {len(grid) + 1} rows, one for each of the '
      f'{len(grid)} regularizations and one to validate on, got {num_rows}. '
      'Nothing was fitted'
    )
  *training, held = split_rows(num_rows, len(grid) + 1, seed=split_seed)
  models = _fit_each(
    [(features[part], labels[part]) for part in training],
    grid,
    config=config,
    key=key,
    epsilon=stated.epsilon,
    calibration=calibration,
    mode=mode,
  )
  draw = select(
    [count_errors(model, features[held], labels[held]) for model in models],
    num_rows=len(held),
    epsilon=epsilon,
    source=vector_noise.bit_source(_stream(key, 'selection')),
  )
  chosen = models[draw.index]
  certified = draw.certified and all(model.certified for model in models)
  return TunedModel(
    model=dataclasses.replace(chosen, certified=certified, guarantee=stated),
    regularization=grid[draw.index],
  )


def best_on_test(
  features: types.Array,
  labels: types.Array,
  test_features: types.Array,
  test_labels: types.Array,
  *,
  config: config_lib.ErmConfig,
  regularizations: Sequence[float],
  epsilon: int | str | Fraction | None,
  calibration: calibration_lib.Rule = 'tight',
  mode: objective.Mode = 'exact-argmin',
  key: types.KeyArray | None = None,
) -> TunedModel:
  """Fits every Lambda and keeps what does best on private test rows.

  For comparison only: it is what a table reports that shows the best of several
  values. Arguments and errors are those of `tune`, but for `test_features`
  `[t, m]` and `test_labels` `[t]`; `epsilon` may be `None`, and any number of
  rows will do. Ties go to the earlier value.

  Formal guarantees:
    None: NOT COVERED. The m fits cost m epsilon on the training rows, and the
    maximum over test rows, taken without noise, has no bound at any epsilon.
    The guarantee of the result says so and it is never certified.
  """
  grid = _grid(regularizations)
  config_lib.unit_rows(test_features, test_labels, config)
  models = _fit_each(
    [(features, labels)] * len(grid),
    grid,
    config=config,
    key=key,
    epsilon=epsilon,
    calibration=calibration,
    mode=mode,
  )
  errors = [count_errors(model, test_features, test_labels) for model in models]
  best = int(np.argmin(errors))
  stated = types.PrivacyGuarantee(
    epsilon=None,
    relation=types.NeighboringRelation.REPLACE_ONE_ROW,
    theorem=(
      f'NOT COVERED: the best of {len(grid)} fits on test rows, chosen '
      'without noise'
    ),
  )
  return TunedModel(
    model=dataclasses.replace(models[best], certified=False, guarantee=stated),
    regularization=grid[best],
  )


def cross_validation_guarantee(
  epsilon: int | str | Fraction,
  *,
  num_folds: int,
  num_values: int = 1,
  calibration: calibration_lib.Rule = 'tight',
  mode: objective.Mode = 'exact-argmin',
) -> types.PrivacyGuarantee:
  """Returns what it costs to release all models of a cross-validation.

  Args:
    epsilon: exact cost of one fit, > 0.
    num_folds: k >= 2.
    num_values: how many settings are tried, each on all folds.
    calibration: of every fit.
    mode: of every fit.

  Formal guarantees:
    num_values (k - 1) epsilon-DP under REPLACE_ONE_ROW, for folds that depend
    on positions only: a row is in the training sets of k - 1 of the k folds,
    whose fits compose sequentially; its own fold's model does not see it.

    Not covered: the *scores*, which read the held-out rows without noise, and a
    choice made by them. Folds stratified by private labels: a changed label can
    move other rows between folds, and the bound is not theirs.
  """
  _validate.integer(2, num_folds=num_folds)
  _validate.integer(1, num_values=num_values)
  one_fit = _validate.rational(epsilon=epsilon)
  fitted = objective.guarantee(one_fit, calibration=calibration, mode=mode)
  return dataclasses.replace(
    fitted,
    epsilon=int(num_values) * (int(num_folds) - 1) * one_fit,
    theorem=(
      f'sequential composition: a row trains {num_folds - 1} of {num_folds} '
      f'models, {num_values} times; scores NOT COVERED; each fit: '
      + fitted.theorem
    ),
  )


def _grid(regularizations: Sequence[float]) -> tuple[float, ...]:
  if np.ndim(regularizations) != 1 or not len(regularizations):
    raise ValueError(
      'regularizations must be a sequence of at least one value, got '
      f'{regularizations!r}'
    )
  for value in regularizations:
    _validate.positive(regularizations=value)
  grid = tuple(float(value) for value in regularizations)
  if len(set(grid)) < len(grid):
    raise ValueError(f'regularizations must be distinct, got {grid}')
  return grid


def _fit_each(tables, grid, *, config, key, **settings):
  """Fits each Lambda to its own table, with noise of its own."""
  return [
    objective.fit(
      features,
      labels,
      config=dataclasses.replace(config, regularization=value),
      key=_stream(key, 'part', index),
      **settings,
    )
    for index, ((features, labels), value) in enumerate(zip(tables, grid))
  ]


def _stream(
  key: types.KeyArray | None, *names: prng.Name
) -> types.KeyArray | None:
  return None if key is None else prng.stream(key, *names)
