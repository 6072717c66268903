from absl.testing import parameterized
import numpy as np

from privjax.data import breast_cancer
from privjax.data import encoding
from privjax.rules import items as items_lib


class ItemsTest(parameterized.TestCase):
  def test_every_row_holds_one_item_of_each_feature(self):
    table = breast_cancer.load()
    items = items_lib.from_schema(table.schema)
    codes = encoding.bin_codes(table.schema, table.columns)
    binary = items_lib.indicators(items, codes)
    self.assertEqual(binary.shape, (len(codes), sum(table.schema.num_bins)))
    for position, column in enumerate(table.schema.columns):
      names = items_lib.of_features(items, [column.name])
      self.assertEqual(
        names, tuple(f'{column.name}: {b}' for b in column.bin_names)
      )
      block = binary[:, [items.names.index(name) for name in names]]
      np.testing.assert_array_equal(block.sum(axis=1), 1)
      np.testing.assert_array_equal(
        np.argmax(block, axis=1), codes[:, position]
      )

  @parameterized.parameters(
    (np.array([[0]]), 'shape'),
    (np.array([[0, 2]]), 'bins'),
    (np.array([[-1, 0]]), 'bins'),
    (np.array([[0.0, 1.0]]), 'integers'),
  )
  def test_refuses_codes(self, codes, message):
    items = items_lib.Items(names=('a', 'b', 'c'), features=('x', 'x', 'y'))
    with self.assertRaisesRegex(ValueError, message):
      items_lib.indicators(items, codes)

  def test_refuses_items_of_a_feature_that_are_apart(self):
    items = items_lib.Items(names=('a', 'b', 'c'), features=('x', 'y', 'x'))
    with self.assertRaisesRegex(ValueError, 'side by side'):
      items_lib.indicators(items, np.array([[1, 0]]))

  def test_refuses_items(self):
    with self.assertRaisesRegex(ValueError, 'names'):
      items_lib.Items(names=('a', 'a'), features=('x', 'y'))
    with self.assertRaisesRegex(ValueError, 'features'):
      items_lib.Items(names=('a',), features=())
    items = items_lib.Items(names=('a',), features=('x',))
    with self.assertRaisesRegex(ValueError, 'feature'):
      items_lib.of_features(items, ['y'])
