"""Tests of the candidate rules: leaf paths agree with the trees themselves."""

from absl.testing import parameterized
import numpy as np

from privjax.rules import forest_rules
from privjax.rules import rule_io
from privjax.rules import rule_set

_INF = np.inf


def _rows(seed, num_rows=300, num_columns=4):
  generator = np.random.Generator(np.random.Philox(seed))
  x = generator.normal(size=(num_rows, num_columns))
  x[:, 1] = np.round(x[:, 1], 1)
  noise = generator.normal(size=num_rows)
  labels = np.where(x[:, 0] * x[:, 1] + 0.3 * noise > 0, 1, -1)
  return x, labels


def _names(x):
  return tuple(f'c{i}' for i in range(x.shape[1]))


def _leaves(tree) -> np.ndarray:
  return np.flatnonzero(tree.children_left < 0)


def _paths(trees, names):
  """Returns one rule set per tree, all leaves of class +1."""
  sets = []
  for tree in trees:
    lower, upper = forest_rules.leaf_boxes(tree.tree_)
    sets.append(
      rule_set.make(
        lower, upper, np.ones(len(lower)),
        names=names, default=1, ordered=False,
      )
    )  # fmt: skip
  return sets


def _probes(tree, x, generator):
  """Returns rows next to each threshold: threshold * (1 +- k 1e-9)."""
  rows = []
  for node in np.flatnonzero(tree.children_left >= 0):
    column, threshold = tree.feature[node], tree.threshold[node]
    for k in (-3, -1, 0, 1, 3):
      row = x[generator.integers(len(x))].copy()
      row[column] = threshold * (1 + k * 1e-9)
      rows.append(row)
  return np.array(rows)


class LeafBoxesTest(parameterized.TestCase):
  @parameterized.parameters(1, 3, 6)
  def test_exactly_one_leaf_applies_and_it_is_the_trees(self, depth):
    x, labels = _rows(depth)
    trees = forest_rules.forest(x, labels, seed=1, num_trees=5, max_depth=depth)
    other, _ = _rows(99)
    for tree, paths in zip(trees, _paths(trees, _names(x))):
      for rows in (x, other):
        applies = rule_set.matches(paths, rows)
        self.assertTrue(np.all(applies.sum(axis=1) == 1))
        np.testing.assert_array_equal(
          _leaves(tree.tree_)[np.argmax(applies, axis=1)], tree.apply(rows)
        )

  def test_near_thresholds_rules_round_as_trees_do(self):
    x, labels = _rows(0)
    generator = np.random.Generator(np.random.Philox(7))
    trees = forest_rules.forest(x, labels, seed=0, num_trees=10, max_depth=5)
    num_differ = 0
    for tree, paths in zip(trees, _paths(trees, _names(x))):
      probes = _probes(tree.tree_, x, generator)
      leaves = tree.apply(probes)
      for rules in (paths, rule_io.from_json(rule_io.to_json(paths))):
        applies = rule_set.matches(rules, probes)
        np.testing.assert_array_equal(
          _leaves(tree.tree_)[np.argmax(applies, axis=1)], leaves
        )
      inside = (probes[:, None] > paths.lower) & (
        probes[:, None] <= paths.upper
      )
      exact = np.argmax(inside.all(axis=2), axis=1)
      num_differ += np.count_nonzero(_leaves(tree.tree_)[exact] != leaves)
    # The probes tell: comparing doubles would differ from the trees.
    self.assertGreater(num_differ, 20)

  def test_the_forest_is_that_of_its_seed(self):
    x, labels = _rows(3)
    fits = [
      forest_rules.forest(x, labels, seed=seed, num_trees=3, max_depth=3)
      for seed in (5, 5, 6)
    ]
    boxes = [
      np.concatenate([forest_rules.leaf_boxes(t.tree_)[0] for t in trees])
      for trees in fits
    ]
    np.testing.assert_array_equal(boxes[0], boxes[1])
    self.assertFalse(np.array_equal(boxes[0], boxes[2]))


class CandidatesTest(parameterized.TestCase):
  def _found(self, x, labels, seed=0, max_depth=4):
    return forest_rules.candidates(
      x, labels, names=_names(x), seed=seed, num_trees=6, max_depth=max_depth
    )

  @parameterized.parameters(0, 1, 2)
  def test_equal_a_slow_filter_of_the_paths(self, seed):
    x, labels = _rows(seed, num_rows=120)
    x = np.round(x)  # Many rows alike, so that extensions repeat.
    labels[:20] = -1
    trees = forest_rules.forest(x, labels, seed=seed, num_trees=6, max_depth=4)
    minority = min(np.mean(labels == 1), np.mean(labels == -1))
    best = {}
    index = 0
    for paths in _paths(trees, _names(x)):
      for rule in range(paths.num_rules):
        bounds = (paths.lower[rule].tolist(), paths.upper[rule].tolist())
        covered = rule_set.matches(paths, x)[:, rule]
        positive = np.mean(labels[covered] == 1)
        label = 1 if positive > 0.5 else -1
        length = sum(low > -_INF or high < _INF for low, high in zip(*bounds))
        if min(positive, 1 - positive) <= minority + 1e-12:
          key = (covered.tobytes(), label)
          best[key] = min(best.get(key, (99,)), (length, index, bounds, label))
        index += 1
    slow = sorted(best.values(), key=lambda item: item[1])
    found = self._found(x, labels, seed=seed)
    self.assertLess(len(slow), index)
    self.assertEqual(found.lower.tolist(), [item[2][0] for item in slow])
    self.assertEqual(found.upper.tolist(), [item[2][1] for item in slow])
    self.assertEqual(found.consequent.tolist(), [item[3] for item in slow])
    self.assertEqual(found.lengths.tolist(), [item[0] for item in slow])

  def test_covered_counts_rows(self):
    x, labels = _rows(4)
    x = np.round(x)
    found = self._found(x, labels)
    rules = rule_set.make(
      found.lower, found.upper, found.consequent,
      names=_names(x), default=1, ordered=False,
    )  # fmt: skip
    applies = rule_set.matches(rules, x)
    for column, label in ((0, -1), (1, 1)):
      np.testing.assert_array_equal(
        found.covered[:, column], applies[labels == label].sum(axis=0)
      )

  def test_equality_with_beta_is_kept(self):
    # Both leaves err on 1 of 4 rows, the majority class on 2 of 8. Not every
    # bootstrap makes a tree split.
    x = np.repeat([[0.0], [1.0]], 4, axis=0)
    labels = np.array([1, 1, 1, -1, 1, 1, 1, -1])
    found = [self._found(x, labels, seed=seed) for seed in range(20)]
    self.assertTrue(any(len(f.consequent) == 2 for f in found))

  @parameterized.parameters(-1, 1)
  def test_constant_labels_leave_no_candidate(self, label):
    x, _ = _rows(0)
    found = self._found(x, np.full(len(x), label))
    self.assertEqual(found.lower.shape, (0, 4))
    self.assertEqual(found.applies.shape[1], 0)

  def test_cells_hold_every_row_once(self):
    x = np.array([[1.0, 2], [0, 0], [1, 2], [1, 2], [0, 0]])
    unique, counts = forest_rules.cells(x, np.array([1, -1, -1, 1, -1]))
    self.assertEqual(unique.tolist(), [[0, 0], [1, 2]])
    self.assertEqual(counts.tolist(), [[2, 0], [1, 2]])

  def test_majority(self):
    for counts, label in (((2, 1), -1), ((1, 2), 1), ((2, 2), -1)):
      self.assertEqual(forest_rules.majority(np.array(counts)), label)
