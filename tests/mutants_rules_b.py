"""Named wrong versions of IT, alpha-violation and inversion attacks.

All are about exactness: none of these stages is private, so there is nothing
here for a privacy check. `tests/rules/mutants_b_test.py` must catch each.
"""

import dataclasses
import math

import numpy as np

from privjax.rules import bayes_attack
from privjax.rules import forest_rules
from privjax.rules import inversion
from privjax.rules import rule_set
from privjax.rules import selection
from privjax.rules import sensitive
from privjax.rules import violation

_STATUS = violation.Status


def status_of(
  rules,
  attribute,
  x,
  labels,
  alpha,
  *,
  residual=True,
  with_class=True,
  prior_of_the_open=False,
  by_level=False,
  two_sided=True,
  zero_keeps=False,
  undefined_violates=False,
  s_free_by_value=True,
):
  """The statuses, by floats; with no change it is the library's."""
  codes = sensitive.codes(attribute, rules.names, x)
  admits = sensitive.admitted(rules, attribute)
  public = sensitive.public_matches(rules, attribute, x)
  applies = rule_set.matches(rules, x)
  result = []
  for rule in range(rules.num_rules):
    is_open = np.ones(len(x), bool)
    if rules.ordered and residual:
      is_open = ~applies[:, :rule].any(axis=1)
    condition = public[:, rule] & is_open
    if with_class:
      condition &= labels == rules.consequent[rule]
    everyone = is_open if prior_of_the_open else np.ones(len(x), bool)
    sets = [admits[rule]]
    if by_level:
      sets = [level for level in np.eye(3, dtype=bool) if admits[rule] @ level]
    if admits[rule].all() and s_free_by_value:
      result.append(_STATUS.S_FREE)
      continue
    logs = []
    for levels in sets:
      joint = np.count_nonzero(condition & levels[codes])
      prior = np.count_nonzero(everyone & levels[codes])
      if condition.any() and prior:
        ratio = joint * everyone.sum() / (condition.sum() * prior)
        logs.append(math.log(ratio) if ratio else -math.inf)
    if not logs:
      missing = _STATUS.VIOLATES if undefined_violates else _STATUS.UNDEFINED
      result.append(missing)
      continue
    if zero_keeps:
      logs = [0.0 if log == -math.inf else log for log in logs]
    size = max(abs(log) if two_sided else log for log in logs)
    result.append(_STATUS.VIOLATES if size >= alpha else _STATUS.KEEPS)
  return tuple(result)


def _status(**change):
  return lambda *args: status_of(*args, **change)


STATUSES = {
  'lists_scored_as_sets': _status(residual=False),
  'class_not_in_the_condition': _status(with_class=False),
  'prior_of_the_rows_that_are_left': _status(prior_of_the_open=True),
  'largest_single_level': _status(by_level=True),
  'small_ratios_do_not_count': _status(two_sided=False),
  'zero_numerator_keeps': _status(zero_keeps=True),
  'undefined_violates': _status(undefined_violates=True),
  'rules_without_s_are_scored': _status(s_free_by_value=False),
}


def equality_does_not_count(scores, *, alpha):
  """A strict inequality."""
  return violation.statuses(scores, alpha=math.nextafter(alpha, math.inf))


def quotient_rounded_first(scores, *, alpha):
  """The log of a rounded quotient of rounded shares."""
  share = scores.joint / scores.conditioned
  ratio = share / (scores.in_set / scores.num_rows)
  return violation.statuses(
    scores._replace(log_ratio=np.log(ratio)), alpha=alpha
  )


EQUALITIES = {
  'equality_does_not_count': equality_does_not_count,
  'quotient_rounded_first': quotient_rounded_first,
}


def _kept(scores, num_kept, worst=False):
  order = np.argsort(np.abs(scores.log_ratio), kind='stable')
  order = order[::-1] if worst else order
  return sorted(order[:num_kept].tolist())


# (scores of rules that all violate, rate) -> positions kept.
PRUNINGS = {
  'floor_of_a_float': lambda s, r: _kept(s, math.floor(r * len(s.s_free))),
  'ceiling': lambda s, r: _kept(s, math.ceil(r * len(s.s_free))),
  'keeps_the_most_violating': lambda s, r: _kept(
    s, round(r * len(s.s_free)), True
  ),
  'rate_is_what_is_pruned': lambda s, r: _kept(
    s, round((1 - r) * len(s.s_free))
  ),
}


def class_not_compared(rules, attribute, x, labels):
  """Votes of every rule that applies."""
  both = [
    inversion.rule_scores(rules, attribute, x, label * np.ones(len(x)))
    for label in (-1, 1)
  ]
  if rules.ordered:
    return inversion.rule_scores(rules, attribute, x, labels)
  return both[0] + both[1]


def lists_attacked_as_sets(rules, attribute, x, labels):
  """Every rule of a list votes."""
  rules = dataclasses.replace(
    rules, ordered=False, weight=np.ones(rules.num_rules)
  )
  return inversion.rule_scores(rules, attribute, x, labels)


def default_says_nothing(rules, attribute, x, labels):
  """A list scores 0 where its default decides."""
  scores = inversion.rule_scores(rules, attribute, x, labels)
  if rules.ordered:
    silent = bayes_attack.release_signals(rules, attribute, x) == 0
    scores = np.where(silent, 0.0, scores)
  return scores


def weights_left_out(rules, attribute, x, labels):
  """One vote per rule, in place of its weight."""
  rules = dataclasses.replace(rules, weight=np.ones(rules.num_rules))
  return inversion.rule_scores(rules, attribute, x, labels)


def peeks_at_the_level(rules, attribute, x, labels):
  """Only rules that apply to the target with its own level."""
  scores = inversion.rule_scores(rules, attribute, x, labels)
  own = np.eye(attribute.num_levels)[sensitive.codes(attribute, rules.names, x)]
  return scores * own


SCORES = {
  'class_not_compared': class_not_compared,
  'lists_attacked_as_sets': lists_attacked_as_sets,
  'default_says_nothing': default_says_nothing,
  'weights_left_out': weights_left_out,
  'peeks_at_the_level': peeks_at_the_level,
}


def ties_to_the_first(scores, prior):
  """The first of the tied levels."""
  del prior
  return np.argmax(scores, axis=1)


def no_match_guesses_the_first(scores, prior):
  """The prior breaks ties only between levels that score."""
  guesses = inversion.guess(scores, prior)
  return np.where(scores.max(axis=1) == 0, 0, guesses)


def prior_times_score(scores, prior):
  """The prior weighs every level, tied or not."""
  return np.argmax((scores + 1e-9) * prior, axis=1)


GUESSES = {
  'ties_to_the_first': ties_to_the_first,
  'no_match_guesses_the_first': no_match_guesses_the_first,
  'prior_times_score': prior_times_score,
}


def _by_constraints(change):
  """Solves the program after a change of its matrix and right-hand side."""

  def solve(problem):
    build = selection._constraints
    selection._constraints = lambda *args: change(problem, *build(*args))
    try:
      return selection._solve(selection.merged(problem), 1000)
    finally:
      selection._constraints = build

  return solve


def _ties_are_right(problem, matrix, least):
  num_cells = matrix.shape[1] - len(problem.consequent)
  least = least.copy()
  # One vote less is asked of every cell.
  least[:num_cells] -= 1
  return matrix, least


def _without_coverage(problem, matrix, least):
  num_cells = matrix.shape[1] - len(problem.consequent)
  return matrix[:num_cells], least[:num_cells]


def believes_the_solver(problem):
  """Rounds whatever the solver says, without its coverage constraints."""
  verify = selection.verified
  selection.verified = lambda problem, z, claimed: np.flatnonzero(z > 0.5)
  try:
    return _by_constraints(_without_coverage)(problem)
  finally:
    selection.verified = verify


def no_penalty(problem):
  """The number of rules costs nothing."""
  penalty = selection.PENALTY
  selection.PENALTY = 0 * penalty
  try:
    return selection.select(problem)
  finally:
    selection.PENALTY = penalty


def greedy_alone(problem):
  """No program."""
  return selection.select(problem, node_limit=0)


SELECTIONS = {
  'ties_are_right': _by_constraints(_ties_are_right),
  'no_coverage': _by_constraints(_without_coverage),
  'believes_the_solver': believes_the_solver,
  'no_penalty': no_penalty,
  'greedy_alone': greedy_alone,
}


def sides_swapped(tree):
  """The left child gets the lower bound."""
  lower, upper = forest_rules.leaf_boxes(tree)
  return -upper, -lower


def threshold_not_shared(tree):
  """Bounds of inner nodes are lost: a leaf has its parent's condition alone."""
  lower, upper = forest_rules.leaf_boxes(tree)
  for leaf, node in enumerate(np.flatnonzero(tree.children_left < 0)):
    is_parent = (tree.children_left == node) | (tree.children_right == node)
    column = tree.feature[is_parent]
    other = np.setdiff1d(np.arange(tree.n_features), column)
    lower[leaf, other], upper[leaf, other] = -np.inf, np.inf
  return lower, upper


def threshold_in_float32(tree):
  """Thresholds are rounded, as rows are."""
  return tuple(
    np.float32(bounds).astype(float) for bounds in forest_rules.leaf_boxes(tree)
  )


BOXES = {
  'sides_swapped': sides_swapped,
  'threshold_not_shared': threshold_not_shared,
  'threshold_in_float32': threshold_in_float32,
}


def default_is_a_signal(rules, attribute, x):
  """The release speaks for its default where no rule applies."""
  signals = bayes_attack.release_signals(rules, attribute, x)
  return np.where(signals == 0, 2 if rules.default > 0 else 1, signals)


def signals_of_the_set(rules, attribute, x):
  """The order of a list is lost."""
  rules = dataclasses.replace(
    rules, ordered=False, weight=np.ones(rules.num_rules)
  )
  return bayes_attack.release_signals(rules, attribute, x)


SIGNALS = {
  'default_is_a_signal': default_is_a_signal,
  'signals_of_the_set': signals_of_the_set,
}
