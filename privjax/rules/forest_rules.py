"""Candidate rules: the leaf paths of a random forest, as boxes.

A path becomes one interval per column, `lower < float32(x) <= upper`, with the
thresholds of scikit-learn's trees unchanged: a tree goes left where the float32
of x is at most its float64 threshold, and so does the rule.

>>> x = np.array([[0.0], [1.0], [2.0], [3.0]] * 5)
>>> trees = forest(x, np.where(x[:, 0] > 1, 1, -1), seed=0, num_trees=1,
...                max_depth=1)
>>> lower, upper = leaf_boxes(trees[0].tree_)
>>> lower.tolist(), upper.tolist()
([[-inf], [1.5]], [[1.5], [inf]])

The forest is fitted on private rows: NOT COVERED by any epsilon, however the
labels were made. Its seed is public.
"""

from typing import Any, NamedTuple

import numpy as np
from sklearn import ensemble

from privjax import _validate
from privjax.rules import rule_set


class Candidates(NamedTuple):
  """Distinct rules and what they do to the cells. Not for release.

  Attributes:
    lower: `[R, C]` float64, exclusive.
    upper: `[R, C]` float64, inclusive.
    consequent: `[R]` int64 in {-1, +1}, the majority of the rows covered.
    applies: `[U, R]` bool, whether a rule covers a distinct row.
    counts: `[U, 2]` int64, rows of class -1 and +1 that equal a distinct row.
  """

  lower: np.ndarray
  upper: np.ndarray
  consequent: np.ndarray
  applies: np.ndarray
  counts: np.ndarray

  @property
  def covered(self) -> np.ndarray:
    """`[R, 2]` int64: rows of class -1 and +1 that a rule covers."""
    return self.applies.T.astype(np.int64) @ self.counts

  @property
  def lengths(self) -> np.ndarray:
    """`[R]` int64: the number of columns that a rule bounds."""
    return ((self.lower > -np.inf) | (self.upper < np.inf)).sum(axis=1)


def forest(
  x: np.ndarray,
  labels: np.ndarray,
  *,
  seed: int,
  num_trees: int,
  max_depth: int,
) -> list[Any]:
  """Fits a random forest on rows; scikit-learn's defaults but for the size.

  It sees rows and not weighted cells: a bootstrap of cells is another law.

  Args:
    x: `[n, C]` finite numbers.
    labels: `[n]` in {-1, +1}.
    seed: public, in [0, 2**32).
    num_trees: >= 1.
    max_depth: >= 1.

  Returns:
    The fitted trees.
  """
  model = ensemble.RandomForestClassifier(
    n_estimators=num_trees, max_depth=max_depth, random_state=seed
  )
  return list(model.fit(x, labels).estimators_)


def leaf_boxes(tree: Any) -> tuple[np.ndarray, np.ndarray]:
  """Returns the bounds of a fitted tree's leaves, by increasing node id.

  Args:
    tree: `tree_` of a scikit-learn decision tree on C columns.

  Returns:
    `[leaves, C]` float64 exclusive lower and inclusive upper bounds.
  """
  num_nodes = tree.node_count
  lower = np.full((num_nodes, tree.n_features), -np.inf)
  upper = np.full((num_nodes, tree.n_features), np.inf)
  # A child's id exceeds its parent's: one pass reaches every node.
  for node in range(num_nodes):
    left, right = tree.children_left[node], tree.children_right[node]
    if left < 0:
      continue
    column, threshold = tree.feature[node], tree.threshold[node]
    for child in (left, right):
      lower[child], upper[child] = lower[node], upper[node]
    upper[left, column] = min(upper[node, column], threshold)
    lower[right, column] = max(lower[node, column], threshold)
  is_leaf = tree.children_left < 0
  return lower[is_leaf], upper[is_leaf]


def candidates(
  x: np.ndarray,
  labels: np.ndarray,
  *,
  names: tuple[str, ...],
  seed: int,
  num_trees: int,
  max_depth: int,
) -> Candidates:
  """Returns the leaf paths that err no more than the majority class does.

  A path without a condition is left out: the default says as much. Of rules of
  one class that cover the same training rows, the one with the fewest bounded
  columns stays, then the first.

  Args:
    x: `[n, C]` finite numbers.
    labels: `[n]` in {-1, +1}, the classifier's.
    names: of the C columns.
    seed: public seed of the forest.
    num_trees: >= 1.
    max_depth: >= 1.
  """
  trees = forest(x, labels, seed=seed, num_trees=num_trees, max_depth=max_depth)
  boxes = [leaf_boxes(tree.tree_) for tree in trees]
  lower, upper = (np.concatenate(bounds) for bounds in zip(*boxes))
  bounded = ((lower > -np.inf) | (upper < np.inf)).any(axis=1)
  lower, upper = lower[bounded], upper[bounded]
  unique, counts = cells(x, labels)
  paths = rule_set.make(
    lower, upper, np.ones(len(lower)), names=names, default=1, ordered=False
  )
  applies = rule_set.matches(paths, unique)
  covered = applies.T.astype(np.int64) @ counts
  totals = counts.sum(axis=0)
  # A tie passes beta only where the classes tie as a whole: -1, as `majority`.
  consequent = np.where(covered[:, 1] > covered[:, 0], 1, -1)
  # Exact: wrong / covered <= minority / n, without the divisions.
  accurate = covered.min(axis=1) * totals.sum() <= (
    totals.min() * covered.sum(axis=1)
  )
  found = Candidates(lower, upper, consequent, applies, counts)
  keep = _first_distinct(found, np.flatnonzero(accurate))
  return Candidates(
    lower[keep], upper[keep], consequent[keep], applies[:, keep], counts
  )


def majority(counts: np.ndarray) -> int:
  """Returns the class with more rows of `[2]` counts; -1 where they tie."""
  return 1 if counts[1] > counts[0] else -1


def cells(x: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
  """Compresses rows to the distinct ones; with the label, these are cells.

  Returns:
    `[U, C]` distinct rows and `[U, 2]` int64 numbers of rows of class -1, +1.
  """
  _validate.shape((None, None), x=x)
  unique, inverse = np.unique(x, axis=0, return_inverse=True)
  inverse = inverse.ravel()
  counts = [
    np.bincount(inverse[labels == label], minlength=len(unique))
    for label in (-1, 1)
  ]
  return unique, np.stack(counts, axis=1)


def _first_distinct(found: Candidates, index: np.ndarray) -> np.ndarray:
  """Returns those of `index`, increasing, that no better rule repeats."""
  order = index[np.argsort(found.lengths[index], kind='stable')]
  first = {}
  for rule in order.tolist():
    key = (found.applies[:, rule].tobytes(), int(found.consequent[rule]))
    first.setdefault(key, rule)
  return np.sort(np.array(list(first.values()), np.int64))
