"""Tests of reading CSV files, alone and with a schema file."""

import pathlib
import tempfile

from absl.testing import parameterized

from privjax.data import csv_table
from privjax.data import schema_json
from tests.data import table_cases

_TEXT = 'a,b,a\n1, x ,3\n\n4,"y,z",6\n'


class ReadColumnsTest(parameterized.TestCase):
  def _write(self, content, encoding='utf-8'):
    folder = self.enter_context(tempfile.TemporaryDirectory())
    path = pathlib.Path(folder) / 't.csv'
    path.write_bytes(content.encode(encoding))
    return path

  def test_reads_and_strips(self):
    raw = csv_table.read_columns(self._write(_TEXT), ['b'])
    self.assertEqual({k: v.tolist() for k, v in raw.items()}, _B)

  def test_byte_order_mark_and_line_ends(self):
    path = self._write('b\r\nx\r\n', 'utf-8-sig')
    self.assertEqual(csv_table.read_columns(path, ['b'])['b'].tolist(), ['x'])

  def test_repeated_name(self):
    path = self._write(_TEXT)
    with self.assertRaisesRegex(ValueError, "column 'a' is 2 times"):
      csv_table.read_columns(path, ['a'])
    raw = csv_table.read_columns(path, ['a'], first_of_repeated=True)
    self.assertEqual(raw['a'].tolist(), ['1', '4'])

  def test_given_header(self):
    path = self._write('1,2\n3,4\n')
    raw = csv_table.read_columns(path, ['q'], header=('p', 'q'))
    self.assertEqual(raw['q'].tolist(), ['2', '4'])

  @parameterized.parameters(
    ('a,b\n1,2\n3\n', 'line 3 has 1 fields, expected 2'),
    ('a,b\n1,2,9\n', 'line 2 has 3 fields, expected 2'),
    ('a,c\n1,2\n', "column 'b' is not in the header"),
    ('', "column 'b' is not in the header"),
    ('a,b\n1,"2\n', 'line 2: '),
  )
  def test_refuses(self, content, message):
    with self.assertRaisesRegex(ValueError, message):
      csv_table.read_columns(self._write(content), ['b'])

  def test_refuses_another_encoding_without_quoting_it(self):
    path = self._write('a,b\n1,\xe9\n', 'latin-1')
    with self.assertRaisesRegex(ValueError, 'must be UTF-8') as caught:
      csv_table.read_columns(path, ['b'])
    self.assertNotIsInstance(caught.exception, UnicodeDecodeError)


class LoadTest(parameterized.TestCase):
  def _write_toy(self):
    raw = table_cases.raw()
    lines = [','.join(raw), *map(','.join, zip(*raw.values()))]
    folder = pathlib.Path(self.enter_context(tempfile.TemporaryDirectory()))
    (folder / 't.csv').write_text('\n'.join(lines))
    (folder / 't.json').write_text(schema_json.to_json(table_cases.SCHEMA))
    return folder / 't.csv', folder / 't.json'

  def test_any_csv_and_schema(self):
    table = csv_table.load(*self._write_toy())
    expected = table_cases.table()
    self.assertEqual(table.schema, expected.schema)
    self.assertEqual(table.counts, expected.counts)
    self.assertEqual(table.labels.tolist(), expected.labels.tolist())
    for name, values in expected.columns.items():
      self.assertEqual(table.columns[name].tolist(), values.tolist())

  def test_balanced(self):
    table = csv_table.load(*self._write_toy(), balanced_seed=1)
    self.assertEqual(table.counts.num_left_out, 2)


_B = {'b': ['x', 'y,z']}
