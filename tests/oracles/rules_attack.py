"""Slow loops for what rules say about S: one row, one rule, one level a time.

Nothing here calls the library but for the fields of a `RuleSet`.
"""

import fractions
import itertools
import math

import numpy as np

Fraction = fractions.Fraction


def meets(rules, rule, row, columns) -> bool:
  """Whether a row meets a rule's conditions on some columns."""
  for column in columns:
    value = float(np.float32(row[column]))
    if not rules.lower[rule, column] < value <= rules.upper[rule, column]:
      return False
  return True


def split(rules, attribute) -> tuple[list[int], list[int]]:
  """Returns the sensitive columns, in the attribute's order, and the others."""
  private = [rules.names.index(name) for name in attribute.columns]
  public = [c for c in range(len(rules.names)) if c not in private]
  return private, public


def admitted_set(rules, rule, attribute) -> set[int]:
  """Returns the levels that meet a rule's conditions on S."""
  private, _ = split(rules, attribute)
  levels = set()
  for level, values in enumerate(attribute.levels.tolist()):
    row = np.zeros(len(rules.names))
    row[private] = values
    if meets(rules, rule, row, private):
      levels.add(level)
  return levels


def level_of(rules, attribute, row) -> int:
  """Returns the level of a row."""
  private, _ = split(rules, attribute)
  return attribute.levels.tolist().index([float(row[c]) for c in private])


def ratio(rules, rule, attribute, x, labels):
  """Returns the exact ratio of a rule: 's_free', 'undefined' or a Fraction."""
  _, public = split(rules, attribute)
  levels = admitted_set(rules, rule, attribute)
  if len(levels) == len(attribute.levels):
    return 's_free'
  everywhere = range(len(rules.names))
  inside = conditioned = joint = 0
  for row, label in zip(x, labels):
    is_inside = level_of(rules, attribute, row) in levels
    inside += is_inside
    taken = rules.ordered and any(
      meets(rules, earlier, row, everywhere) for earlier in range(rule)
    )
    if (
      not taken
      and meets(rules, rule, row, public)
      and label == rules.consequent[rule]
    ):
      conditioned += 1
      joint += is_inside
  if not conditioned or not inside:
    return 'undefined'
  return Fraction(joint, conditioned) / Fraction(inside, len(x))


def status(exact, alpha) -> str:
  """Returns the status of a rule, for an alpha that no log ratio equals."""
  if isinstance(exact, str):
    return exact
  if exact == 0:
    return 'violates'
  return 'violates' if abs(math.log(exact)) >= alpha else 'keeps'


def inversion_scores(rules, attribute, x, labels) -> list[list[float]]:
  """Returns the attack's score of every level of every target."""
  private, _ = split(rules, attribute)
  everywhere = range(len(rules.names))
  result = []
  for row, label in zip(x, labels):
    scores = []
    for values in attribute.levels:
      guessed = np.array(row, float)
      guessed[private] = values
      applying = [
        rule
        for rule in range(len(rules.consequent))
        if meets(rules, rule, guessed, everywhere)
      ]
      if rules.ordered:
        said = rules.consequent[applying[0]] if applying else rules.default
        scores.append(float(said == label))
      else:
        scores.append(
          sum(
            float(rules.weight[rule])
            for rule in applying
            if rules.consequent[rule] == label
          )
        )
    result.append(scores)
  return result


def guess(scores, prior) -> int:
  """Returns the level of the largest score, of those the most frequent."""
  tied = [w for w, score in enumerate(scores) if score == max(scores)]
  return max(tied, key=lambda level: (prior[level], -level))


def best_objective(problem) -> Fraction | None:
  """Returns the best objective of a selection, over all subsets of rules."""
  num_rules = len(problem.consequent)
  best = None
  for size in range(num_rules + 1):
    for chosen in itertools.combinations(range(num_rules), size):
      value = objective(problem, chosen)
      if value is not None and (best is None or value > best):
        best = value
  return best


def objective(problem, chosen) -> Fraction | None:
  """Returns the objective of a choice, `None` where it does not cover."""
  right = 0
  for row, counts in zip(problem.applies.tolist(), problem.counts.tolist()):
    covering = [rule for rule in chosen if row[rule]]
    if len(covering) < min(problem.coverage, sum(row)):
      return None
    votes = sum(
      int(problem.consequent[rule] * problem.weight[rule]) for rule in covering
    )
    says = problem.default if votes == 0 else (1 if votes > 0 else -1)
    right += counts[1] if says > 0 else counts[0]
  return right - Fraction(len(chosen), 2)
