"""Checks of the private choice of Lambda that return what they find wrong.

`joint_privacy` needs no sampling: with a fit that is randomized response, the
law of everything that `tuning.tune` releases is a finite sum, enumerated over
all outcomes of all fits and of the selection, on every table of four rows.
"""

from collections.abc import Iterable, Iterator
import itertools
import math
from unittest import mock

import jax
import numpy as np
from scipy import special

from privjax import erm
from privjax import prng
from privjax.erm import objective
from privjax.erm import tuning
from privjax.mechanisms import entropy
from privjax.mechanisms import exact
from privjax.mechanisms import vector_noise
from tests.erm import cases
from tests.mechanisms import sampling_checks
from tests.oracles import exact_sampling as oracle

EPSILON = 1
SLACK = 1e-9  # Rounding of float64 sums of a few dozen terms.
_GRID = (1.0, 0.1, 0.01)
_ROW_KINDS = tuple(itertools.product((-1.0, 1.0), (0, 1)))


_MODELS = {
  sign: erm.LinearModel(
    weights=np.array([float(sign)]),
    intercept=0.0,
    classes=(0, 1),
    residual_bound=0.0,
    certified=True,
    guarantee=objective.guarantee(EPSILON),
  )
  for sign in (-1, 1)
}


class _Scripted:
  """Fits by randomized response and selects, both as a script says.

  Attributes:
    num_fits: how many were asked for.
    probability: of the script so far, on the rows it was run on.
  """

  def __init__(self, signs: Iterable[int], index: int):
    self._signs = iter(signs)
    self._index = index
    self.num_fits = 0
    self.probability = 1.0

  def fit(self, features, labels, *, config, epsilon, **_):
    """Is epsilon-DP: the sign of the rows' correlation, flipped by a coin."""
    del config
    truth = 1 if features[:, 0] @ (2 * labels - 1) > 0 else -1
    sign = next(self._signs)
    self.num_fits += 1
    self.probability *= special.expit(float(epsilon) * sign * truth)
    return _MODELS[sign]

  def sample(self, utility, *, levels, epsilon, sensitivity, source):
    """Stands in for `exact.sample`, whose law has tests of its own."""
    del source
    assert set(utility.tolist()) <= set(levels)
    law = special.softmax(utility * float(epsilon) / (2 * float(sensitivity)))
    self.probability *= law[self._index]
    return exact.Draw(self._index, True, 0)


def _tuned(rows, scripted: _Scripted) -> tuple[float, float]:
  """Returns what is released: Lambda, and the sign of the model."""
  with (
    mock.patch.object(objective, 'fit', scripted.fit),
    mock.patch.object(exact, 'sample', scripted.sample),
  ):
    tuned = tuning.tune(
      np.array([[x] for x, _ in rows]),
      np.array([y for _, y in rows]),
      config=cases.config(),
      regularizations=_GRID,
      epsilon=EPSILON,
    )
  return tuned.regularization, float(tuned.model.weights[0])


def _release_law(rows, num_fits: int) -> dict:
  law = {}
  scripts = itertools.product(
    itertools.product((-1, 1), repeat=num_fits), range(len(_GRID))
  )
  for signs, index in scripts:
    scripted = _Scripted(signs, index)
    outcome = _tuned(rows, scripted)
    law[outcome] = law.get(outcome, 0.0) + scripted.probability
  return law


def log_ratios() -> Iterator[float]:
  """Yields the largest log ratio of the release's laws, per pair of tables.

  All tables of four rows (three parts to train on, one to validate), all rows
  replaced, all outcomes.
  """
  num_rows = len(_GRID) + 1
  rehearsal = _Scripted(itertools.repeat(1), 0)
  _tuned(_ROW_KINDS[:num_rows], rehearsal)
  laws = {}
  for rows in itertools.product(_ROW_KINDS, repeat=num_rows):
    laws[rows] = _release_law(rows, rehearsal.num_fits)
    for position, kind in itertools.product(range(num_rows), _ROW_KINDS):
      other = (*rows[:position], kind, *rows[position + 1 :])
      if other != rows and other in laws:
        yield _log_ratio(laws[rows], laws[other])


def _log_ratio(law: dict, other: dict) -> float:
  if set(law) != set(other):
    return math.inf
  return max(abs(math.log(law[key] / other[key])) for key in law)


def joint_privacy() -> list[str]:
  """What is released is epsilon-DP together: stops at the first violation."""
  for ratio in log_ratios():
    if ratio > EPSILON + SLACK:
      return [f'log ratio {ratio} above {EPSILON}']
  return []


def selection_log_ratio(num_values: int = 5, num_rows: int = 2) -> float:
  """Returns the largest log ratio over all replaced validation rows.

  For fixed models a row is a vector of bits, one per model; the replaced row
  and the sum of the others take all their values.
  """
  bits = np.array(list(itertools.product((0, 1), repeat=num_values)))
  errors = bits[:, None] + (num_rows - 1) * bits  # [replaced row, others, m]
  laws = np.stack(
    [[_selection_law(e, num_rows) for e in row] for row in errors]
  )
  logs = np.log(laws)
  return float(np.abs(logs[:, None] - logs[None]).max())


def _selection_law(errors, num_rows) -> np.ndarray:
  """Reads the law off what `tuning.select` asks the sampler for."""
  with mock.patch.object(exact, 'sample') as sample:
    tuning.select(errors, num_rows=num_rows, epsilon=EPSILON)
  (utility,), settings = sample.call_args
  scale = float(settings['epsilon']) / (2 * float(settings['sensitivity']))
  return special.softmax(utility * scale)


def selection_privacy() -> list[str]:
  """The index is epsilon-DP for fixed models."""
  ratio = selection_log_ratio()
  return [f'log ratio {ratio}'] if ratio > EPSILON + SLACK else []


def selection_law() -> list[str]:
  """Decision trees of the draws against exp(-epsilon z / 2), exactly."""
  violations = []
  for errors, num_rows in (
    ([0, 1], 1),
    ([3, 0, 2], 3),
    ([2, 2, 5, 1], 9),
    ([4], 4),
    ([0, 40], 40),
  ):
    found = sampling_checks.tree(
      lambda source, errors=errors, num_rows=num_rows: tuning.select(
        errors, num_rows=num_rows, epsilon='3/2', source=source
      ),
      13,
    )
    law = oracle.law([-z for z in errors], oracle.Fraction(3, 4))
    violations += [
      f'{errors}: {text}'
      for text in sampling_checks.tree_violations(
        found, law, most_undecided=oracle.Fraction(1, 50)
      )
    ]
  return violations


def independent_streams() -> list[str]:
  """In a replay, no two fits and no fit and the selection share a key."""
  features, labels = cases.table(20)
  keys = []

  def recorded(key):
    keys.append(tuple(jax.random.key_data(key).tolist()))
    return entropy.seeded(0, len(keys))

  with mock.patch.object(vector_noise, 'bit_source', recorded):
    tuning.tune(
      features,
      labels,
      config=cases.config(),
      regularizations=_GRID,
      epsilon=EPSILON,
      key=prng.key(0),
    )
  if len(keys) == len(set(keys)) == len(_GRID) + 1:
    return []
  return [f'{len(set(keys))} different keys in {len(keys)} uses']


def chosen_model() -> list[str]:
  """With little noise, the released model is the one that errs least.

  It is compared with fits on the same parts, made one by one.
  """
  violations = []
  for seed in range(5):
    features, labels = cases.table(40, seed=seed)
    labels[: 20 * (seed % 2)] ^= (
      1  # Of some tables half of the labels is wrong.
    )
    grid = (10.0, 1e-2, 1e-4)
    tuned = tuning.tune(
      features,
      labels,
      config=cases.config(),
      regularizations=grid,
      epsilon=1000,
      split_seed=seed,
      key=prng.key(seed),
    )
    order = prng.permutation(40, seed, 'tuning_split')
    parts = order[:10], order[10:20], order[20:30], order[30:]
    errors, models = [], []
    for index, value in enumerate(grid):
      model = objective.fit(
        features[parts[index]],
        labels[parts[index]],
        config=cases.config(regularization=value),
        epsilon=1000,
        key=prng.stream(prng.key(seed), 'part', index),
      )
      wrong = erm.predict(model, features[parts[3]]) != labels[parts[3]]
      errors.append(int(wrong.sum()))
      models.append(model)
    index = grid.index(tuned.regularization)
    if errors[index] != min(errors):
      violations.append(f'{errors[index]} errors where {errors} are possible')
    if (tuned.model.weights != models[index].weights).any():
      violations.append(f'not the model of {tuned.regularization}')
  return violations


CHECKS = {
  function.__name__: function
  for function in (
    joint_privacy,
    selection_privacy,
    selection_law,
    independent_streams,
    chosen_model,
  )
}
