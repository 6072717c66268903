"""Checks of rule sets, mining and point estimates that mutants go through."""

import numpy as np
from sklearn import tree

from privjax.rules import items as items_lib
from privjax.rules import mining
from privjax.rules import rule_set
from tests.rules import rule_list_cases


def stump_disagreements(matches_fn):
  """Returns how many probes near thresholds leave the tree's own branch."""
  rng = np.random.default_rng(0)
  disagreements = 0
  for _ in range(20):
    x = rng.random((30, 1)) * 10
    stump = tree.DecisionTreeClassifier(max_depth=1, random_state=0)
    stump.fit(x, x[:, 0] > 5 * rng.random())
    if stump.tree_.node_count == 1:
      continue
    threshold = stump.tree_.threshold[0]
    rules = rule_set.make(
      [[-np.inf], [threshold]],
      [[threshold], [np.inf]],
      [1, -1],
      names=('x',),
      default=-1,
      ordered=False,
    )
    offsets = np.arange(-5, 6)[:, None] * 1e-9
    rounded = np.array([[float(np.float32(threshold))], [threshold]])
    probes = np.concatenate([threshold * (1 + offsets), rounded])
    left = stump.apply(probes) == stump.tree_.children_left[0]
    expected = np.stack([left, ~left], axis=1)
    disagreements += np.sum(matches_fn(rules, probes) != expected)
  return disagreements


def voting_set(default=1):
  """Returns three rules over two columns that vote, and rows of every kind."""
  rules = rule_set.make(
    [[0.5, -np.inf], [-np.inf, 0.5], [-np.inf, 0.5]],
    np.full((3, 2), np.inf),
    [1, -1, 1],
    names=('a', 'b'),
    default=default,
    ordered=False,
    weight=[2.0, 3.0, 1.0],
  )
  rows = np.array([[0, 0], [1, 0], [0, 1], [1, 1]])
  return rules, rows


def expected_votes(default=1):
  """No match; +2; -3 + 1; +2 - 3 + 1 = 0, a tie."""
  return np.array([default, 1, -1, default])


def improbable_list():
  """Returns a list whose probabilities lie between .1 and .5."""
  return rule_set.make(
    [[0.5]],
    [[np.inf]],
    [-1],
    names=('a',),
    default=-1,
    ordered=True,
    probability=[0.2],
    default_probability=0.3,
  )


def predicts_correctly(predict_fn):
  """Whether votes, ties and probabilities below 1/2 come out right."""
  for default in (-1, 1):
    rules, rows = voting_set(default)
    if np.any(predict_fn(rules, rows) != expected_votes(default)):
      return False
  even = rule_set.make(
    [], [], [], names=('a',), default=1, ordered=True, default_probability=0.5
  )
  if predict_fn(even, np.zeros((1, 1))) != 1:
    return False
  return np.all(predict_fn(improbable_list(), np.array([[0], [1]])) == -1)


def mining_table():
  """Returns cells and items with repeated rows, duplicates and one feature.

  Items a0 and a1 are of one feature and yet hold together, 'copy' equals a0,
  'all' holds everywhere, and 'rare' holds in 1 of 20 rows, which is alone in
  its cell.
  """
  items = items_lib.Items(
    names=('a0', 'a1', 'copy', 'all', 'b', 'rare'),
    features=('a', 'a', 'copy', 'all', 'b', 'rare'),
  )
  distinct = np.array(
    [
      [1, 1, 1, 1, 0, 0],
      [1, 0, 1, 1, 1, 0],
      [0, 1, 0, 1, 1, 0],
      [0, 0, 0, 1, 0, 1],
    ]
  )
  binary = np.repeat(distinct, [7, 6, 6, 1], axis=0)
  return mining.compress(binary, np.ones(20), items), items


def mines_correctly(mine_fn):
  """Whether exactly the right antecedents come out, at supports 1/20 and 2/20.

  a0 and 'copy' are one antecedent, as are b, what is common to b and 'all', and
  so on; a0 with a1 would be the first row's cell.
  """
  cells, items = mining_table()
  with_rare = mine_fn(cells, items, min_support=0.05, max_items=2)
  without = mine_fn(cells, items, min_support=0.1, max_items=2)
  expected = ((0,), (1,), (4,), (0, 4), (1, 2), (1, 4))
  return (
    without.items == expected
    and with_rare.items == (*expected[:3], (5,), *expected[3:])
    and with_rare.supports == (13, 13, 12, 1, 6, 7, 6)
  )


def estimates_correctly(point_estimate_fn):
  """Whether only lists near both means are candidates."""
  problem = rule_list_cases.CASES['three'].problem  # Of widths 1, 1, 2.
  values = {(): 9.0, (0, 1, 2): 8.0, (2,): 7.0, (0,): 5.0, (1,): 6.0}
  found = point_estimate_fn(problem, values, mean_length=1, mean_width=1)
  return found == (1,)
