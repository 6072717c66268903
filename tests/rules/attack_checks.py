"""Checks that the library passes and every mutant of it must fail.

Each returns the number of cases in which a subject is not what it should be.
"""

import math

import numpy as np

from privjax.rules import forest_rules
from privjax.rules import inversion
from privjax.rules import rule_set
from privjax.rules import sensitive
from privjax.rules import violation
from tests.oracles import rules_attack as oracle
from tests.rules import attack_cases
from tests.rules import selection_cases

_SCORE = attack_cases.SCORE
_PRIOR = np.array([2, 6, 3])


def status_errors(status_fn) -> int:
  """Statuses that differ from exact fractions."""
  errors = 0
  for rules, x, labels in attack_cases.CASES:
    found = status_fn(rules, _SCORE, x, labels, 0.5)
    for rule in range(rules.num_rules):
      exact = oracle.ratio(rules, rule, _SCORE, x, labels)
      errors += found[rule].value != oracle.status(exact, 0.5)
  return errors


def equality_errors(statuses_fn) -> int:
  """Ratios k, written in several ways, that keep alpha = log k."""
  errors = 0
  for k in range(2, 40):
    for n, d in ((7, 1), (13, 3), (49, 7), (99, 11)):
      # The condition holds for d n rows, n of them in A; all of A is n rows
      # of d n k.
      scores = violation.Scores(
        s_free=np.zeros(1, bool),
        joint=np.array([n]),
        conditioned=np.array([d * n]),
        in_set=np.array([n]),
        num_rows=d * n * k,
        coverage=np.array([n]),
        log_ratio=np.array([violation._log(d * n * n * k, d * n * n)]),
      )
      status = statuses_fn(scores, alpha=math.log(k))
      errors += status != (violation.Status.VIOLATES,)
  return errors


def pruning_errors(kept_fn) -> int:
  """Choices of violating rules to keep, of rates that floats misjudge."""
  errors = 0
  ratios = np.concatenate([np.arange(50, 100), -np.arange(1, 51)]) * 1.0
  scores = violation.Scores(
    *(np.zeros(100, int) for _ in range(4)), 1, np.zeros(100, int), ratios
  )
  by_size = np.argsort(np.abs(ratios), kind='stable')
  for rate, num_kept in ((0.29, 29), (0.575, 57), (0.58, 58), (0.0, 0)):
    expected = sorted(by_size[:num_kept].tolist())
    errors += kept_fn(scores, rate) != expected
  return errors


def library_kept(scores, rate) -> list[int]:
  """Returns the rules that the library keeps, for `pruning_errors`."""
  rules = rule_set.make(
    np.full((100, 1), -np.inf), np.full((100, 1), np.inf), np.ones(100, int),
    names=('S',), default=1, ordered=False,
  )  # fmt: skip
  pruned = violation.prune(rules, scores, alpha=0.5, privacy_rate=rate)
  return np.flatnonzero(pruned.kept).tolist()


def score_errors(scores_fn) -> int:
  """Scores of targets that differ from loops over rules."""
  errors = 0
  for rules, x, labels in attack_cases.CASES:
    exact = oracle.inversion_scores(rules, _SCORE, x, labels)
    errors += np.count_nonzero(scores_fn(rules, _SCORE, x, labels) != exact)
  return errors


def guess_errors(guess_fn) -> int:
  """Guesses that differ from loops over levels."""
  errors = 0
  for rules, x, labels in attack_cases.CASES:
    scores = inversion.rule_scores(rules, _SCORE, x, labels)
    exact = [oracle.guess(row, _PRIOR) for row in scores.tolist()]
    errors += np.count_nonzero(guess_fn(scores, _PRIOR) != exact)
  return errors


def selection_errors(select_fn) -> int:
  """Selections that are not the best of all subsets, or not covering."""
  errors = 0
  for problem in selection_cases.PROBLEMS:
    if not len(problem.consequent):
      continue
    found = select_fn(problem)
    best = oracle.best_objective(problem)
    errors += found is None or oracle.objective(problem, found.chosen) != best
  return errors


def box_errors(boxes_fn) -> int:
  """Rows, some next to a threshold, that land in another leaf than a tree's."""
  generator = np.random.Generator(np.random.Philox(3))
  x = generator.normal(size=(200, 3))
  labels = np.where(x[:, 0] * x[:, 1] > 0, 1, -1)
  errors = 0
  for tree in forest_rules.forest(x, labels, seed=0, num_trees=5, max_depth=4):
    nodes = tree.tree_
    inner = np.flatnonzero(nodes.children_left >= 0)
    probes = np.repeat(x[: len(inner)], 3, axis=0)
    for row, node in enumerate(np.repeat(inner, 3)):
      probes[row, nodes.feature[node]] = nodes.threshold[node] * (
        1 + (row % 3 - 1) * 3e-9
      )
    lower, upper = boxes_fn(nodes)
    rows = np.concatenate([x, probes]).astype(np.float32).astype(float)
    applies = ((rows[:, None] > lower) & (rows[:, None] <= upper)).all(axis=2)
    leaves = np.flatnonzero(nodes.children_left < 0)
    is_trees = leaves == tree.apply(rows)[:, None]
    errors += np.count_nonzero((applies != is_trees).any(axis=1))
  return errors


def signal_errors(signals_fn) -> int:
  """Signals of a release that differ from loops over rules."""
  errors = 0
  for rules, x, _ in attack_cases.CASES:
    found = signals_fn(rules, _SCORE, x)
    for level in range(3):
      rows = sensitive.with_level(_SCORE, rules.names, x, level)
      for row, target in enumerate(rows):
        errors += found[row, level] != _signal(rules, target)
  return errors


def _signal(rules, target) -> int:
  """What rules say of a row: 0 for nothing, else 1 or 2 for a class."""
  votes = [
    rules.consequent[rule] * (1 if rules.ordered else rules.weight[rule])
    for rule in range(rules.num_rules)
    if oracle.meets(rules, rule, target, range(len(target)))
  ]
  vote = sum(votes[:1] if rules.ordered else votes)
  return 0 if vote == 0 else (2 if vote > 0 else 1)
