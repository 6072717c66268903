"""Tests of encoded rows: their norm, one-hot blocks and bins."""

import fractions
import math

from absl.testing import parameterized
import hypothesis
from hypothesis import strategies as st
import numpy as np

from privjax.data import encoding
from privjax.data import schema as schema_lib
from tests.data import table_cases

_SCHEMA = table_cases.SCHEMA


class EncodeTest(parameterized.TestCase):
  def test_by_hand(self):
    table = table_cases.table()
    expected = np.array(
      [
        [0, 0, 1, 0, 0, 1, 0, 0],
        [1, 0, 0, 0.2, 0.75, 0, 1, 0],
        [1, 0, 0, 0.25, 1, 0, 1, 0],
        [0, 1, 0, 1, 0.5, 0, 0, 1],
      ]
    )
    rows = encoding.encode(table.schema, table.columns)
    np.testing.assert_allclose(rows, expected / math.sqrt(4), rtol=1e-15)
    rows = encoding.encode(table.schema, table.columns, intercept=True)
    np.testing.assert_allclose(
      rows, np.c_[expected, np.ones(4)] / math.sqrt(5), rtol=1e-15
    )

  def test_names(self):
    names = (
      'color=red',
      'color=green',
      'color=blue',
      'age',
      'debt',
      'score=low',
      'score=mid',
      'score=high',
    )
    self.assertEqual(encoding.feature_names(_SCHEMA), names)
    self.assertEqual(
      encoding.feature_names(_SCHEMA, intercept=True), (*names, 'intercept')
    )

  def test_bins(self):
    table = table_cases.table()
    codes = encoding.bin_codes(table.schema, table.columns)
    self.assertEqual(codes.dtype, np.int64)
    self.assertEqual(
      codes.tolist(), [[2, 0, 0, 0], [0, 0, 0, 1], [0, 1, 0, 1], [1, 2, 0, 2]]
    )

  @parameterized.parameters(encoding.encode, encoding.bin_codes)
  def test_refuses_what_the_schema_does_not_allow(self, function):
    columns = table_cases.table().columns
    for bad in (
      {'age': np.full(4, 21.0)},
      {'age': np.full(4, np.nan)},
      {'color': np.full(4, 3)},
    ):
      with self.assertRaisesRegex(ValueError, '4 values'):
        function(_SCHEMA, {**columns, **bad})

  def test_changing_the_sensitive_level_changes_its_block_only(self):
    columns = table_cases.table().columns
    rows = encoding.encode(_SCHEMA, columns)
    other = encoding.encode(
      _SCHEMA, {**columns, 'score': (columns['score'] + 1) % 3}
    )
    self.assertEqual(
      (rows != other).any(axis=0).tolist(), [False] * 5 + [True] * 3
    )


def _is_unit(row) -> bool:
  """Whether |row| <= 1 in exact arithmetic."""
  return sum(fractions.Fraction(entry) ** 2 for entry in row.tolist()) <= 1


@st.composite
def _rows(draw):
  """Draws a schema and one row, often at the bounds."""
  columns, row = [], {}
  for i in range(draw(st.integers(0, 11))):
    lower = draw(st.floats(-1e6, 1e6))
    upper = lower + draw(st.floats(1e-3, 1e6))
    value = draw(st.just(upper) | st.just(lower) | st.floats(lower, upper))
    columns.append(
      schema_lib.NumericColumn(name=f'n{i}', lower=lower, upper=upper)
    )
    row[f'n{i}'] = np.array([value])
  columns.append(schema_lib.NominalColumn(name='s', levels=('a', 'b', 'c')))
  row['s'] = np.array([draw(st.integers(0, 2))])
  schema = schema_lib.Schema(
    name='drawn',
    columns=tuple(columns),
    label=schema_lib.LabelColumn(name='y', negative='0', positive='1'),
    sensitive='s',
  )
  return schema, row


class NormTest(parameterized.TestCase):
  @hypothesis.given(_rows(), st.booleans())
  def test_norm_is_at_most_one_exactly(self, drawn, intercept):
    schema, columns = drawn
    (row,) = encoding.encode(schema, columns, intercept=intercept)
    self.assertTrue(_is_unit(row))
    self.assertLen(
      encoding.feature_names(schema, intercept=intercept), len(row)
    )

  @parameterized.product(num_features=(1, 2, 3, 5, 6, 7, 12, 30))
  def test_the_bound_is_reached(self, num_features):
    """A row at every upper bound has norm 1, and no more."""
    columns = tuple(
      schema_lib.NumericColumn(name=f'n{i}', lower=0, upper=3)
      for i in range(num_features)
    ) + (schema_lib.NominalColumn(name='s', levels=('a', 'b')),)
    schema = schema_lib.Schema(
      name='full',
      columns=columns,
      label=schema_lib.LabelColumn(name='y', negative='0', positive='1'),
      sensitive='s',
    )
    values = {f'n{i}': np.array([3.0]) for i in range(num_features)}
    values['s'] = np.array([1])
    for intercept in (False, True):
      (row,) = encoding.encode(schema, values, intercept=intercept)
      self.assertTrue(_is_unit(row))
      self.assertAlmostEqual(np.linalg.norm(row), 1, delta=1e-15)

  def test_a_plain_division_would_exceed_one(self):
    """The exact scale is needed: 1/sqrt(m) rounds up for some m."""
    exceeds = [
      m
      for m in range(1, 100)
      if m * fractions.Fraction(1 / math.sqrt(m)) ** 2 > 1
    ]
    self.assertNotEmpty(exceeds)
    for m in exceeds:
      self.assertLess(encoding.unit_scale(m), 1 / math.sqrt(m))

  @parameterized.parameters(*range(1, 40))
  def test_scale_is_the_largest(self, m):
    scale = encoding.unit_scale(m)
    self.assertLessEqual(m * fractions.Fraction(scale) ** 2, 1)
    above = fractions.Fraction(math.nextafter(scale, 2))
    self.assertGreater(m * above**2, 1)
