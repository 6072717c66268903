"""Instance-based transparency (IT): a small set of forest rules that votes.

"Robust Transparency Against Model Inversion Attacks", Sec. 3.2 and 6.3: leaf
paths of a random forest on a classifier's labels; those that err more than
beta = 1 - P(majority class) are dropped; of the rest, few are selected that
agree with the classifier and cover every row lambda = 2 times.

This is a **reconstruction**: the original optimization is not public. Ours is
the integer program of `selection`.

>>> x = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]] * 9)
>>> labels = np.where(x.sum(axis=1) > 0, 1, -1)
>>> fit = explain(x, labels, names=('a', 'b'), seed=0)
>>> bool((rule_set.predict(fit.rules, x) == labels).all()), fit.status
(True, 'optimal')

The rows and labels are private, and nothing here is a mechanism: forest,
classes, coverage and selection read the rows, so the rules are NOT COVERED by
an epsilon even where the labels are those of a private classifier. On rows that
are public or released themselves, they are post-processing.
"""

from typing import Literal, NamedTuple

import numpy as np

from privjax import _validate
from privjax.rules import forest_rules
from privjax.rules import rule_set
from privjax.rules import selection

Weighting = Literal['uniform', 'paper']
WEIGHTINGS = ('uniform', 'paper')


class Explanation(NamedTuple):
  """Rules and how they were found. Not for release.

  Attributes:
    rules: an unordered `RuleSet`, the default the labels' majority (-1 in a
      tie). A probability is the share of +1 among the training rows that the
      rule covers; the default's is that among all.
    num_candidates: distinct rules that passed beta.
    num_cells: distinct (row, label) pairs.
    agreement: training rows on which the vote is the label.
    status: of the selection, see `selection.Selection`.
  """

  rules: rule_set.RuleSet
  num_candidates: int
  num_cells: int
  agreement: int
  status: selection.Status


def explain(
  x: np.ndarray,
  labels: np.ndarray,
  *,
  names: tuple[str, ...],
  seed: int,
  num_trees: int = 10,
  max_depth: int = 5,
  coverage: int = 2,
  weighting: Weighting = 'uniform',
  node_limit: int = 10_000,
) -> Explanation:
  """Explains labels by forest rules. NOT COVERED by any epsilon.

  The forest sees the rows, the selection their distinct (row, label) cells.
  Constant labels, and labels that no rule explains at least as well as the
  majority class does, give an empty rule set: its default.

  Args:
    x: `[n, C]` finite private numbers, one-hot bins or others; n >= 1.
    labels: `[n]` in {-1, +1}, the classifier's.
    names: of the C columns.
    seed: public seed of the forest, in [0, 2**32).
    num_trees: >= 1.
    max_depth: >= 1.
    coverage: lambda >= 0, the rules that must cover a row, if there are so
      many.
    weighting: votes of a rule: 'uniform' is 1; 'paper' is eq. 1, the training
      rows that it covers and whose label it predicts.
    node_limit: of the integer program, >= 0; 0 for the greedy cover alone.

  Raises:
    ValueError: naming the argument that breaks one of these rules.
  """
  x, labels = _checked(x, labels, names)
  _validate.seed(seed=seed)
  _validate.integer(1, num_trees=num_trees)
  _validate.integer(1, max_depth=max_depth)
  _validate.integer(0, coverage=coverage)
  _validate.one_of(WEIGHTINGS, weighting=weighting)
  found = forest_rules.candidates(
    x, labels, names=names, seed=seed, num_trees=num_trees, max_depth=max_depth
  )
  # Eq. 1: the argmax over classes is at the rule's own.
  weight = found.covered.max(axis=1, initial=0)
  if weighting == 'uniform':
    weight = np.ones_like(weight)
  selected = selection.select(
    selection.Problem(
      applies=found.applies,
      counts=found.counts,
      consequent=found.consequent,
      weight=weight,
      lengths=found.lengths,
      default=forest_rules.majority(found.counts.sum(axis=0)),
      coverage=coverage,
    ),
    node_limit=node_limit,
  )
  return Explanation(
    rules=_rules(found, weight, selected.chosen, names),
    num_candidates=len(found.consequent),
    num_cells=int(np.count_nonzero(found.counts)),
    agreement=selected.agreement,
    status=selected.status,
  )


def _rules(found, weight, chosen, names) -> rule_set.RuleSet:
  """Returns the chosen candidates with their probabilities and a default."""
  totals = found.counts.sum(axis=0)
  covered = found.covered[chosen]
  return rule_set.make(
    found.lower[chosen],
    found.upper[chosen],
    found.consequent[chosen],
    names=names,
    default=forest_rules.majority(totals),
    ordered=False,
    probability=covered[:, 1] / covered.sum(axis=1),
    weight=weight[chosen],
    default_probability=totals[1] / totals.sum(),
  )


def _checked(x, labels, names) -> tuple[np.ndarray, np.ndarray]:
  x, labels = np.asarray(x), np.asarray(labels)
  _validate.shape((None, len(names)), x=x)
  _validate.finite(x=x)
  _validate.shape((len(x),), labels=labels)
  if not len(x):
    raise ValueError('x must hold a row, got none')
  other = np.count_nonzero((labels != -1) & (labels != 1))
  if other:
    raise ValueError(f'labels must be -1 or +1, got {other} others')
  return x, labels
