"""Metropolis-Hastings over rule lists (Letham et al. 2015, Sec. 2.5).

One step moves a rule, adds an unused antecedent or cuts a rule; the kinds that
are possible at the current length are equally likely.

>>> kind_probabilities(0, 5), kind_probabilities(1, 5)
((0.0, 1.0, 0.0), (0.0, 0.5, 0.5))
>>> proposed, log_ratio = propose((3, 1), 5, (0.1, 0.9, 0.0))
>>> proposed, log_ratio
((1, 3), 0.0)

Uniform numbers are arguments, so a step is a pure function of them.
"""

from collections.abc import Sequence
import math
from typing import NamedTuple

import jax
import numpy as np

from privjax import types
from privjax.rules import rule_list_posterior as posterior

RuleList = posterior.RuleList


class Chain(NamedTuple):
  """What a chain visited. Not for release.

  Attributes:
    states: the T lists after each step.
    log_posterior: `[T]` float64, theirs.
    num_accepted: proposals that were accepted.
  """

  states: list[RuleList]
  log_posterior: np.ndarray
  num_accepted: int


def kind_probabilities(
  length: int, num_antecedents: int
) -> tuple[float, float, float]:
  """Returns the probabilities of (move, add, cut) at a list of `length` rules.

  A move needs two rules, an addition an unused antecedent, a cut one rule.
  """
  possible = (length >= 2, length < num_antecedents, length >= 1)
  share = 1 / sum(possible)
  move, add, cut = (share if kind else 0.0 for kind in possible)
  return move, add, cut


def propose(
  rule_list: RuleList, num_antecedents: int, step: Sequence[float]
) -> tuple[RuleList, float]:
  """Proposes a list.

  With m rules, a move takes one of m rules to one of the m - 1 other places,
  an addition one of |A| - m antecedents to one of m + 1 places, and a cut one
  of m rules away; each uniformly.

  Args:
    rule_list: the current list.
    num_antecedents: |A| >= 1.
    step: three uniform numbers in [0, 1).

  Returns:
    The proposal and log q(current | proposal) / q(proposal | current).
  """
  length = len(rule_list)
  kind, first, second = step
  move, add, _ = kind_probabilities(length, num_antecedents)
  if kind < move:
    return _moved(rule_list, int(first * length), int(second * (length - 1)))
  if kind < move + add:
    number = int(first * (num_antecedents - length))
    place = int(second * (length + 1))
    return _added(rule_list, num_antecedents, number, place)
  return _cut(rule_list, num_antecedents, int(first * length))


def accepts(log_ratio: float, uniform: float) -> bool:
  """Whether a step of log Metropolis-Hastings ratio `log_ratio` is taken."""
  return log_ratio >= 0 or uniform < math.exp(log_ratio)


def run(
  problem: posterior.Problem,
  start: RuleList,
  steps: np.ndarray,
  cache: dict[RuleList, float],
) -> Chain:
  """Runs one chain.

  Args:
    problem: of at least one antecedent.
    start: the first list, not counted as visited.
    steps: `[T, 4]` float64 in [0, 1), the uniform numbers of each step.
    cache: log posteriors by list. Filled, and shared by chains; what it holds
      changes no result.
  """
  current, states, accepted = start, [], 0
  value = _cached(problem, current, cache)
  values = []
  for kind, first, second, threshold in steps.tolist():
    proposal, log_ratio = propose(
      current, problem.num_antecedents, (kind, first, second)
    )
    proposed_value = _cached(problem, proposal, cache)
    if accepts(proposed_value - value + log_ratio, threshold):
      current, value = proposal, proposed_value
      accepted += 1
    states.append(current)
    values.append(value)
  return Chain(states, np.array(values), accepted)


def draw_start(problem: posterior.Problem, key: types.KeyArray) -> RuleList:
  """Draws a list: its length from the prior, its rules uniformly.

  Args:
    problem: of at least one antecedent.
    key: consumed.
  """
  first, *others = uniforms(key, (problem.num_antecedents + 1,))
  cumulative = np.cumsum(np.exp(problem.log_length))
  length = int(np.searchsorted(cumulative[:-1], first, side='right'))
  order = np.argsort(others, kind='stable')
  return tuple(order[:length].tolist())


def uniforms(key: types.KeyArray, shape: tuple[int, ...]) -> np.ndarray:
  """Returns float64 numbers in [0, 1) on the host; consumes the key.

  NumPy's Philox, seeded by the key: JAX would compile for every shape, and the
  number of antecedents differs between folds.
  """
  words = np.asarray(jax.random.key_data(key)).tolist()
  bits = np.random.Philox(np.random.SeedSequence(words))
  return np.random.Generator(bits).random(shape)


def _moved(rule_list, source, target) -> tuple[RuleList, float]:
  rest = rule_list[:source] + rule_list[source + 1 :]
  # The m - 1 places of the others: `target` counts past its own.
  place = target + (target >= source)
  moved = (*rest[:place], rule_list[source], *rest[place:])
  return moved, 0.0


def _added(rule_list, num_antecedents, number, place):
  antecedent = number
  for used in sorted(rule_list):
    antecedent += used <= antecedent
  length = len(rule_list)
  _, add, _ = kind_probabilities(length, num_antecedents)
  _, _, cut_back = kind_probabilities(length + 1, num_antecedents)
  # There: add / ((|A| - m) (m + 1)); back: cut_back / (m + 1).
  log_ratio = math.log(cut_back / add * (num_antecedents - length))
  return (*rule_list[:place], antecedent, *rule_list[place:]), log_ratio


def _cut(rule_list, num_antecedents, source):
  length = len(rule_list)
  _, _, cut = kind_probabilities(length, num_antecedents)
  _, add_back, _ = kind_probabilities(length - 1, num_antecedents)
  # There: cut / m; back: add_back / ((|A| - (m - 1)) m).
  log_ratio = math.log(add_back / cut / (num_antecedents - length + 1))
  return rule_list[:source] + rule_list[source + 1 :], log_ratio


def _cached(problem, rule_list, cache) -> float:
  value = cache.get(rule_list)
  if value is None:
    value = posterior.log_posterior(problem, rule_list)
    cache[rule_list] = value
  return value
