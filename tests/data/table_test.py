"""Tests of reading raw columns into tables, and of what is refused."""

import dataclasses

from absl.testing import parameterized
import numpy as np
import pandas as pd

from privjax.data import table as table_lib
from tests.data import table_cases

_SCHEMA = table_cases.SCHEMA


class FromRawTest(parameterized.TestCase):
  def test_reads_levels_numbers_bands_and_labels(self):
    table = table_cases.table()
    self.assertEqual(table.name, 'toy')
    self.assertEqual(table.num_rows, 4)
    self.assertEqual(
      {name: values.tolist() for name, values in table.columns.items()},
      {
        'color': [2, 0, 0, 1],
        'age': [10.0, 12.0, 12.5, 20.0],
        'debt': [-1.5, 0.0, 0.5, -0.5],
        # A number equal to a cut is below it.
        'score': [0, 1, 1, 2],
      },
    )
    self.assertEqual(table.labels.tolist(), [-1, 1, -1, -1])
    self.assertEqual(table.sensitive.tolist(), [0, 1, 1, 2])

  def test_reads_numeric_arrays(self):
    table = table_cases.table(
      age=np.array([10, 12, 13, 20], np.int32), score=[3, 3.01, 5.5, 1e300]
    )
    self.assertEqual(table.columns['age'].tolist(), [10, 12, 13, 20])
    self.assertEqual(table.sensitive.tolist(), [0, 1, 1, 2])

  @parameterized.named_parameters(
    (
      'unknown_levels',
      {'color': ['red', 'pink', 'Red', '']},
      "^column 'color': 3 values are not among its 3 public levels",
    ),
    (
      'unknown_class',
      {'late': ['no', 'yes', '1', 'no']},
      "^label 'late': 1 values are not among its 2 public levels",
    ),
    (
      'out_of_bounds',
      {'age': ['9.999', '20.001', '15', '-7777']},
      r"^column 'age': 3 values are not in the public bounds \[10.0, 20.0\]",
    ),
    (
      'nan',
      {'age': ['nan', '12', '12', '12']},
      "^column 'age': 1 values are not finite numbers",
    ),
    (
      'nan_in_an_array',
      {'age': [np.nan, 12, np.nan, 12]},
      "^column 'age': 2 values are not finite numbers",
    ),
    (
      'infinite_is_not_clipped',
      {'debt': ['inf', '0', '-Infinity', '1e999']},
      "^column 'debt': 3 values are not finite numbers",
    ),
    (
      'not_a_number',
      {'age': ['12', 'twelve', '1_2', '0x1f']},
      "^column 'age': 3 values are not finite numbers",
    ),
    (
      'band_of_a_nan',
      {'score': ['1', 'nan', '1', '1']},
      "^column 'score': 1 values are not finite numbers",
    ),
    (
      'boolean',
      {'age': [True] * 4},
      "^column 'age' must hold text or real numbers, got bool",
    ),
    (
      'length',
      {'age': ['12'] * 3},
      r"^column 'age' must have shape \(4,\), got \(3,\)",
    ),
    (
      'matrix',
      {'age': [[12.0]] * 4},
      r"^column 'age' must have shape \(4,\), got \(4, 1\)",
    ),
  )
  def test_refuses(self, changes, message):
    schema = dataclasses.replace(_SCHEMA, missing=())
    with self.assertRaisesRegex(ValueError, message) as caught:
      table_cases.table(schema, **changes)
    # The message is of the column, never of a row.
    for text in ('pink', '7777', 'twelve', 'secret'):
      self.assertNotIn(text, str(caught.exception))

  @parameterized.parameters(object, np.dtypes.StringDType())
  def test_reads_texts_of_any_type_alike(self, dtype):
    changes = {
      'color': ['red ', ' ? ', '', 'blue'],
      'age': [' 10', '?', '11 ', '12'],
    }
    raw = table_cases.raw(**changes)
    expected = table_lib.from_raw(table_cases.DROPPING, raw)
    other = {name: values.astype(dtype) for name, values in raw.items()}
    table = table_lib.from_raw(table_cases.DROPPING, other)
    self.assertEqual(table.counts, expected.counts)
    self.assertEqual(table.counts.missing, {'color': 2, 'age': 1})
    for name, values in expected.columns.items():
      np.testing.assert_array_equal(table.columns[name], values, strict=True)

  @parameterized.parameters(None, np.nan, pd.NA, pd.NaT)
  def test_absent_objects_among_texts_are_missing(self, absent):
    color = np.array(['red', absent, 'blue', ' green'], object)
    raw = table_cases.raw() | {'color': color}
    table = table_lib.from_raw(table_cases.DROPPING, raw)
    self.assertEqual(table.columns['color'].tolist(), [0, 2, 1])
    self.assertEqual(table.counts.missing, {'color': 1})
    with self.assertRaisesRegex(ValueError, "missing in column 'color': 1"):
      table_lib.from_raw(_SCHEMA, raw)
    no_mark = dataclasses.replace(_SCHEMA, missing=())
    with self.assertRaisesRegex(ValueError, "'color': 1 values are missing"):
      table_lib.from_raw(no_mark, raw)

  def test_reads_a_data_frame(self):
    frame = pd.DataFrame(table_cases.raw(age=[10, 12, 13, 20]))
    expected = table_cases.table(age=[10, 12, 13, 20])
    for raw in (frame, frame.astype(object)):
      table = table_lib.from_raw(_SCHEMA, raw)
      self.assertEqual(table.counts, expected.counts)
      for name, values in expected.columns.items():
        np.testing.assert_array_equal(table.columns[name], values)

  @parameterized.parameters(
    ('age', [10, '12', 13, 20], 'got 3 values of another kind'),
    ('age', [10, None, 13, 20], 'got 3 values of another kind'),
    ('age', [True, True, True, True], 'got 4 values of another kind'),
    ('age', [np.True_, '1', '2', '3'], 'got 1 values of another kind'),
    ('age', [10.0, np.nan, 13, 20], '1 values are not finite numbers'),
    ('color', [b'red', 'red', 'red', 'red'], 'got 1 values of another kind'),
    ('color', [['secret'], 'red', 'red', 'red'], 'got 1 values of another'),
  )
  def test_refuses_other_objects(self, name, values, message):
    column = np.empty(4, object)
    column[:] = values
    raw = table_cases.raw() | {name: column}
    with self.assertRaisesRegex(
      ValueError, f"^column '{name}'.*{message}"
    ) as caught:
      table_lib.from_raw(_SCHEMA, raw)
    self.assertNotIn('secret', str(caught.exception))

  def test_refuses_an_absent_column(self):
    raw = table_cases.raw()
    del raw['age'], raw['late']
    with self.assertRaisesRegex(ValueError, r"\['age', 'late'\].* are absent"):
      table_lib.from_raw(_SCHEMA, raw)

  def test_a_column_may_have_any_name(self):
    column = dataclasses.replace(_SCHEMA.columns[1], name='expected')
    schema = dataclasses.replace(_SCHEMA, columns=(column, _SCHEMA.columns[3]))
    table = table_cases.table(schema, expected=['10'] * 4)
    self.assertEqual(table.columns['expected'].tolist(), [10] * 4)

  def test_missing_is_an_error_that_counts(self):
    changes = {'color': ['red', '?', ' ', 'red'], 'late': ['no', '', '', 'no']}
    with self.assertRaisesRegex(
      ValueError, "missing in column 'color': 2, 'late': 2"
    ):
      table_cases.table(**changes)

  def test_drops_and_counts_missing(self):
    table = table_cases.table(
      table_cases.DROPPING,
      color=['red', '?', '', 'blue'],
      age=['10', '?', '11', '12'],
    )
    self.assertEqual(table.columns['color'].tolist(), [0, 2])
    self.assertEqual(table.labels.tolist(), [-1, -1])
    self.assertEqual(table.counts.num_missing, 2)
    self.assertEqual(table.counts.missing, {'color': 2, 'age': 1})
    self.assertIn('2 with a missing value (color 2, age 1)', str(table.counts))

  def test_no_row_left(self):
    with self.assertRaisesRegex(ValueError, 'columns must have a row'):
      table_cases.table(table_cases.DROPPING, color=['?'] * 4)
    with self.assertRaisesRegex(ValueError, 'columns must have a row'):
      table_lib.from_raw(
        _SCHEMA, {name: np.array([]) for name in table_cases.raw()}
      )

  def test_clips_where_the_schema_says_so_and_counts(self):
    table = table_cases.table(debt=['-1.6', '0.5', '7', '-1e300'])
    self.assertEqual(table.columns['debt'].tolist(), [-1.5, 0.5, 0.5, -1.5])
    self.assertEqual(table.counts.clipped, {'debt': 3})
    self.assertEndsWith(str(table.counts), '; 3 values clipped (debt 3)')

  def test_filter_comes_first(self):
    keep = np.array([True, False, True, True])
    raw = table_cases.raw(
      color=['red', 'pink', '?', 'blue'], debt=['0', '9', '9', '9']
    )
    table = table_lib.from_raw(table_cases.DROPPING, raw, keep=keep)
    self.assertEqual(table.columns['color'].tolist(), [0, 2])
    self.assertEqual(
      table.counts,
      table_lib.TableCounts(
        num_read=4,
        num_filtered=1,
        num_missing=1,
        num_left_out=0,
        num_rows=2,
        missing={'color': 1},
        clipped={'debt': 1},
      ),
    )
    with self.assertRaisesRegex(ValueError, r'keep must have shape \(4,\)'):
      table_lib.from_raw(table_cases.DROPPING, raw, keep=keep[:3])

  def test_balanced(self):
    tables = [
      table_lib.from_raw(_SCHEMA, table_cases.raw(), balanced_seed=seed)
      for seed in (0, 0, 1, 2, 3, 4)
    ]
    for table in tables:
      self.assertCountEqual(table.labels.tolist(), [-1, 1])
      # The one row of class +1 is the one of age 12.
      np.testing.assert_array_equal(
        table.labels == 1, table.columns['age'] == 12
      )
      self.assertEqual(table.counts.num_left_out, 2)
    ages = [sorted(table.columns['age'].tolist()) for table in tables]
    self.assertEqual(ages[0], ages[1])
    self.assertGreater(len(set(map(tuple, ages))), 1)
    with self.assertRaisesRegex(ValueError, 'both classes'):
      table_lib.from_raw(
        _SCHEMA, table_cases.raw(late=['no'] * 4), balanced_seed=0
      )

  def test_one_class_is_a_table(self):
    table = table_cases.table(late=['no'] * 4)
    self.assertEqual(table.labels.tolist(), [-1] * 4)

  def test_leaves_its_input_alone(self):
    raw = table_cases.raw(debt=[9.0, 0, 0, 0])
    before = {name: values.copy() for name, values in raw.items()}
    table_lib.from_raw(_SCHEMA, raw)
    for name, values in raw.items():
      np.testing.assert_array_equal(values, before[name])


class RecordTest(parameterized.TestCase):
  @parameterized.named_parameters(
    ('code_high', 'color', [0, 1, 2, 3], np.int64, "'color': 1 values .*2]"),
    ('code_low', 'color', [-1, 1, -1, 0], np.int64, "'color': 2 values"),
    ('code_type', 'color', [0, 1, 2, 0], np.int32, 'must be int64, got int32'),
    ('outside', 'age', [9, 10, 20, 21], np.float64, "'age': 2 values"),
    ('nan', 'age', [np.nan, 10, 20, 20], np.float64, "'age': 1 values"),
    ('type', 'age', [10] * 4, np.float32, 'must be float64, got float32'),
    ('unclipped', 'debt', [9] * 4, np.float64, "'debt': 4 values"),
    ('length', 'age', [10] * 5, np.float64, "'age' must have shape"),
  )
  def test_columns_are_checked(self, name, values, dtype, message):
    table = table_cases.table()
    columns = {**table.columns, name: np.array(values, dtype)}
    with self.assertRaisesRegex(ValueError, message):
      dataclasses.replace(table, columns=columns)

  def test_columns_are_those_of_the_schema(self):
    table = table_cases.table()
    some = dict(table.columns)
    extra = {**some, 'late': some['age']}
    del some['age']
    for columns in (some, extra):
      with self.assertRaisesRegex(ValueError, 'columns must be'):
        dataclasses.replace(table, columns=columns)

  @parameterized.parameters(
    ([0, 1, -1, 2], np.int64, 'labels must be -1 or [+]1, got 2 others'),
    ([1, 1, 1, 1], np.float64, 'labels must be int64'),
    ([1, 1, 1], np.int64, 'labels must have shape'),
  )
  def test_labels_are_checked(self, labels, dtype, message):
    with self.assertRaisesRegex(ValueError, message):
      dataclasses.replace(table_cases.table(), labels=np.array(labels, dtype))
