import itertools

from absl.testing import parameterized
import hypothesis
from hypothesis import strategies as st
import numpy as np

from privjax.rules import items as items_lib
from privjax.rules import mining
from tests.rules import rule_set_cases

_ITEMS = items_lib.Items(names=tuple('abcde'), features=tuple('vvxyz'))


def _enumerated(binary, items, least, max_items):
  """Returns {columns: rows} of the frequent itemsets of distinct features."""
  found = {}
  for size in range(1, max_items + 1):
    for columns in itertools.combinations(range(len(items.names)), size):
      mask = binary[:, list(columns)].all(axis=1)
      if len({items.features[c] for c in columns}) == size:
        if mask.sum() >= least:
          found[columns] = mask
  return found


class MiningTest(parameterized.TestCase):
  @hypothesis.given(
    st.integers(0, 10**6),
    st.sampled_from([1, 2, 3]),
    st.sampled_from([1, 3, 6]),
  )
  def test_equals_enumeration_over_rows(self, seed, max_items, least):
    rng = np.random.default_rng(seed)
    binary = rng.integers(0, 2, (20, 5))
    cells = mining.compress(binary, rng.choice([-1, 1], 20), _ITEMS)
    mined = mining.mine(
      cells, _ITEMS, min_support=least / 20, max_items=max_items
    )
    frequent = _enumerated(binary, _ITEMS, least, max_items)
    self.assertEqual(mined.num_duplicates, len(frequent) - len(mined.items))
    self.assertEqual(
      list(mined.items), sorted(mined.items, key=lambda c: (len(c), c))
    )
    masks = [frequent[columns] for columns in mined.items]
    self.assertEqual(list(mined.supports), [int(m.sum()) for m in masks])
    # What is kept has every extent but the default's, once.
    texts = [mask.tobytes() for mask in masks]
    everything = {m.tobytes() for m in frequent.values() if not m.all()}
    self.assertEqual(set(texts), everything)
    self.assertLen(texts, len(everything))

  def test_a_hand_made_table(self):
    self.assertTrue(rule_set_cases.mines_correctly(mining.mine))

  @hypothesis.given(st.integers(0, 10**6))
  def test_cells_are_the_rows(self, seed):
    rng = np.random.default_rng(seed)
    binary = rng.integers(0, 2, (30, 5))
    labels = rng.choice([-1, 1], 30)
    cells = mining.compress(binary, labels, _ITEMS)
    rows = sorted((*row, label) for row, label in zip(binary.tolist(), labels))
    spread = [
      (*map(int, row), label)
      for row, counts in zip(cells.binary, cells.counts)
      for label, count in zip((-1, 1), counts)
      for _ in range(count)
    ]
    self.assertEqual(sorted(spread), rows)
    self.assertLen(np.unique(binary, axis=0), len(cells.binary))

  @hypothesis.given(st.lists(st.booleans(), max_size=70))
  def test_bits_round_trip(self, flags):
    mask = np.array(flags, bool)
    bits = mining.to_bits(mask)
    self.assertEqual(bits, sum(1 << i for i, flag in enumerate(flags) if flag))
    np.testing.assert_array_equal(mining.from_bits(bits, len(flags)), mask)

  def test_decimal_supports_are_exact(self):
    # .07 * 100 is 7.000000000000001 in floats.
    binary = np.arange(100)[:, None] < np.full((1, 1), 7)
    items = items_lib.Items(names=('a',), features=('a',))
    cells = mining.compress(binary, np.ones(100), items)
    self.assertEqual(mining.mine(cells, items, min_support=0.07).supports, (7,))

  @parameterized.parameters(
    (np.zeros((0, 5)), np.ones(0), 'binary'),
    (np.zeros((3, 4)), np.ones(3), 'binary'),
    (np.full((3, 5), 2), np.ones(3), 'binary'),
    (np.full((3, 5), np.nan), np.ones(3), 'binary'),
    (np.zeros((3, 5)), np.zeros(3), 'labels'),
    (np.zeros((3, 5)), np.ones(2), 'labels'),
  )
  def test_refuses_rows(self, binary, labels, name):
    with self.assertRaisesRegex(ValueError, name):
      mining.compress(binary, labels, _ITEMS)

  @parameterized.parameters(
    {'min_support': 0}, {'min_support': 1.1}, {'max_items': 0}
  )
  def test_refuses_arguments(self, **arguments):
    cells = mining.compress(np.zeros((3, 5)), np.ones(3), _ITEMS)
    with self.assertRaisesRegex(ValueError, next(iter(arguments))):
      mining.mine(cells, _ITEMS, **arguments)
