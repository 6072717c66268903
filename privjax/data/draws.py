"""Seeded public draws of rows: balanced sets and stratified folds.

The seed is public, so anyone can repeat the draw on the same labels. The draws
read the labels of private rows, though: a guarantee starts from the table and
the folds that result, and holds between neighbors that share them.
"""

import numpy as np

from privjax import _validate
from privjax import prng


def balanced_index(labels: np.ndarray, seed: int) -> np.ndarray:
  """Draws as many rows of the larger class as the smaller one has.

  The class sizes are treated as public.

  Args:
    labels: `[n]` integers in {-1, +1}.
    seed: in [0, 2**32).

  Returns:
    The `[2 k]` int64 rows kept, increasing, where k is the smaller size.

  Raises:
    ValueError: if a label is another, only one class is there, or `seed` is
      out of range.
  """
  classes = _class_rows(labels)
  size = min(len(rows) for rows in classes.values())
  if not size:
    raise ValueError('labels must hold both classes to be balanced, got one')
  kept = [
    rows[prng.permutation(len(rows), seed, 'balanced', label)[:size]]
    for label, rows in classes.items()
  ]
  return np.sort(np.concatenate(kept))


def stratified_folds(
  labels: np.ndarray, num_folds: int, seed: int
) -> np.ndarray:
  """Deals the rows of each class to folds, in a random order.

  The sizes of the folds depend only on n and `num_folds` and differ by at most
  one, as do the numbers of rows of a class in them; so the number of training
  rows is public. Which rows share a fold does depend on the labels: the folds
  are of an evaluation, and not for release.

  Args:
    labels: `[n]` integers in {-1, +1}. One class may be absent.
    num_folds: in [2, n].
    seed: in [0, 2**32).

  Returns:
    The fold of each row, `[n]` int64 in [0, num_folds). The rows of a class,
    in their order, get the same folds however the classes are interleaved.

  Raises:
    ValueError: if an argument is out of range.
  """
  classes = _class_rows(labels)
  _validate.integer(2, len(labels), num_folds=num_folds)
  folds = np.empty(len(labels), np.int64)
  dealt = 0
  for label, rows in classes.items():
    order = prng.permutation(len(rows), seed, 'folds', label)
    # The next class goes on where this one stops, for folds of even sizes.
    folds[rows[order]] = (dealt + np.arange(len(rows))) % num_folds
    dealt += len(rows)
  return folds


def _class_rows(labels: np.ndarray) -> dict[int, np.ndarray]:
  """Returns the rows of each class, after a check of the labels."""
  labels = np.asarray(labels)
  _validate.shape((None,), labels=labels)
  other = np.count_nonzero((labels != -1) & (labels != 1))
  if other:
    raise ValueError(f'labels must be -1 or +1, got {other} others')
  return {label: np.flatnonzero(labels == label) for label in (-1, 1)}
