"""Tests of the rules of public schemas and of their JSON form."""

import dataclasses
import json
import pathlib
import tempfile

from absl.testing import parameterized
import hypothesis
from hypothesis import strategies as st

from privjax.data import schema as schema_lib
from privjax.data import schema_json
from privjax.data import table_registry
from tests.data import table_cases

_SCHEMA = table_cases.SCHEMA
_nominal = schema_lib.NominalColumn
_numeric = schema_lib.NumericColumn


class RulesTest(parameterized.TestCase):
  @parameterized.parameters(
    ({'name': ' a'}, 'column name must be text without outer spaces'),
    ({'name': ''}, 'column name must not be empty'),
    ({'name': 3}, 'column name must be text'),
    ({'levels': ('x',)}, "column 'a': levels must be two or more"),
    ({'levels': ('x', 'x')}, r"levels must be distinct, got \['x'\]"),
    ({'levels': 'xy'}, 'levels must be a tuple'),
    ({'levels': ('x', 'y ')}, 'levels must be text'),
    ({'levels': ('x', 1)}, 'levels must be text'),
    ({'cuts': (1, 2)}, 'cuts must be one fewer than the 2 levels, got 2'),
    ({'cuts': (float('nan'),)}, 'cuts must be a finite number'),
    ({'cuts': [1]}, 'cuts must be a tuple'),
  )
  def test_nominal(self, changes, message):
    good = {'name': 'a', 'levels': ('x', 'y')}
    _nominal(**good)
    with self.assertRaisesRegex(ValueError, message):
      _nominal(**(good | changes))

  @parameterized.parameters(
    ({'lower': 5}, 'upper must exceed lower'),
    ({'lower': 6}, r'got \[6, 5\]'),
    ({'upper': float('inf')}, 'upper must be a finite number'),
    ({'upper': 10**400}, 'upper must be a finite number'),
    ({'lower': float('nan')}, 'lower must be a finite number'),
    ({'lower': False}, 'lower must be a finite number'),
    ({'lower': '0'}, 'lower must be a finite number'),
    ({'lower': -1e308, 'upper': 1e308}, 'exceed lower by a finite number'),
    ({'clip': 1}, "column 'a': clip must be True or False"),
    ({'cuts': (2, 2)}, 'cuts must increase'),
    ({'cuts': (3, 2)}, 'cuts must increase'),
    ({'cuts': (-1,)}, r'within \[0, 5\)'),
    ({'cuts': (5,)}, r'within \[0, 5\)'),
  )
  def test_numeric(self, changes, message):
    good = {'name': 'a', 'lower': 0, 'upper': 5, 'cuts': (0, 4.9)}
    _numeric(**good)
    with self.assertRaisesRegex(ValueError, message):
      _numeric(**(good | changes))

  @parameterized.parameters(
    ({'columns': ()}, 'columns must be one or more'),
    ({'columns': list(_SCHEMA.columns)}, 'columns must be a tuple'),
    ({'columns': ('color',)}, 'columns must be NominalColumn or Num.*str'),
    ({'columns': _SCHEMA.columns * 2}, 'column names must be distinct'),
    ({'label': 'late'}, 'label must be a LabelColumn'),
    ({'sensitive': 'age'}, "sensitive must be one of 'color', 'score'"),
    ({'missing': ('red',)}, r"missing must differ .*\['red'\]"),
    ({'missing': ('no', '?')}, r"missing must differ .*\['no'\]"),
    ({'missing': ('?', '?')}, 'missing must be distinct'),
    ({'missing': '?'}, 'missing must be a tuple'),
    ({'drop_missing': 0}, 'drop_missing must be True or False'),
    ({'name': ''}, 'schema name must not be empty'),
  )
  def test_schema(self, changes, message):
    with self.assertRaisesRegex(ValueError, message):
      dataclasses.replace(_SCHEMA, **changes)

  def test_label(self):
    label = _SCHEMA.label
    with self.assertRaisesRegex(ValueError, 'label classes must be distinct'):
      dataclasses.replace(label, positive='no')
    with self.assertRaisesRegex(ValueError, 'column names must be distinct'):
      dataclasses.replace(
        _SCHEMA, label=dataclasses.replace(label, name='color')
      )

  def test_a_level_behind_cuts_may_look_missing(self):
    banded = _nominal(name='score', levels=('?', 'x'), cuts=(1,))
    schema = dataclasses.replace(_SCHEMA, columns=(banded,))
    self.assertEqual(schema.sensitive_levels, ('?', 'x'))

  def test_derived_names(self):
    self.assertEqual(_SCHEMA.names, ('color', 'age', 'debt', 'score'))
    self.assertEqual(_SCHEMA.num_bins, (3, 3, 1, 3))
    self.assertEqual(_SCHEMA.sensitive_levels, ('low', 'mid', 'high'))
    self.assertEqual(
      [column.bin_names for column in _SCHEMA.columns[1:3]],
      [('<= 12', '(12, 15]', '> 15'), ('any',)],
    )
    one = _numeric(name='a', lower=0, upper=1, cuts=(0.1 + 0.2,))
    self.assertEqual(
      one.bin_names, ('<= 0.30000000000000004', '> 0.30000000000000004')
    )

  def test_cannot_be_changed(self):
    with self.assertRaises(dataclasses.FrozenInstanceError):
      _SCHEMA.sensitive = 'color'  # pyright: ignore


_NAMES = (
  st.text('ab1 "\\\n\u00e9\u2028', min_size=1, max_size=4)
  .map(str.strip)
  .filter(bool)
)
_FINITE = st.floats(-1e9, 1e9)


@st.composite
def _schemas(draw):
  names = draw(st.lists(_NAMES, min_size=4, max_size=4, unique=True))
  levels = draw(st.lists(_NAMES, min_size=2, max_size=4, unique=True))
  few = len(levels) - 1
  cuts = draw(
    st.just(())
    | st.lists(_FINITE, min_size=few, max_size=few, unique=True).map(
      lambda c: tuple(sorted(c))
    )
  )
  lower = draw(_FINITE)
  return schema_lib.Schema(
    name=draw(_NAMES),
    columns=(
      _numeric(
        name=names[0],
        lower=lower,
        upper=lower + 1,
        clip=draw(st.booleans()),
        cuts=(lower,),
      ),
      _nominal(name=names[1], levels=tuple(levels), cuts=cuts),
    ),
    label=schema_lib.LabelColumn(
      name=names[2], negative=names[2], positive=names[3]
    ),
    sensitive=names[1],
    missing=(),
    drop_missing=draw(st.booleans()),
  )


class JsonTest(parameterized.TestCase):
  @hypothesis.settings(max_examples=40)
  @hypothesis.given(_schemas())
  def test_round_trip(self, schema):
    text = schema_json.to_json(schema)
    self.assertEqual(schema_json.from_json(text), schema)
    self.assertEqual(schema_json.to_json(schema_json.from_json(text)), text)

  @parameterized.parameters(*table_registry.TABLES)
  def test_round_trip_of_the_known_tables(self, name):
    schema = table_registry.SCHEMAS[name]
    self.assertEqual(schema_json.from_json(schema_json.to_json(schema)), schema)

  @parameterized.parameters('utf-8', 'utf-8-sig')
  def test_round_trip_of_a_file(self, encoding):
    """With a byte order mark or without."""
    folder = self.enter_context(tempfile.TemporaryDirectory())
    path = pathlib.Path(folder) / 'schema.json'
    path.write_text(schema_json.to_json(_SCHEMA), encoding=encoding)
    self.assertEqual(schema_json.read_json(path), _SCHEMA)

  def test_equal_schemas_have_equal_text(self):
    age = dataclasses.replace(
      _SCHEMA.columns[1], lower=10.0, upper=20.0, cuts=(12.0, 15.0)
    )
    same = dataclasses.replace(
      _SCHEMA, columns=(_SCHEMA.columns[0], age, *_SCHEMA.columns[2:])
    )
    self.assertEqual(schema_json.to_json(same), schema_json.to_json(_SCHEMA))
    zeros = [
      dataclasses.replace(
        _SCHEMA,
        columns=(
          _numeric(name='z', lower=zero, upper=1, cuts=(zero,)),
          _SCHEMA.columns[3],
        ),
      )
      for zero in (0, 0.0, -0.0)
    ]
    self.assertLen({schema_json.to_json(schema) for schema in zeros}, 1)

  def test_defaults_may_be_left_out(self):
    entry = json.loads(schema_json.to_json(_SCHEMA))
    del entry['missing'], entry['drop_missing']
    for column in entry['columns']:
      column.pop('clip', None)
    schema = schema_json.from_json(json.dumps(entry))
    self.assertEqual((schema.missing, schema.drop_missing), (('',), False))
    self.assertFalse(schema.columns[2].clip)

  @parameterized.parameters(
    (lambda e: e.pop('sensitive'), r"schema .*lacks \['sensitive'\]"),
    (lambda e: e.update(extra=1), r"schema has unknown keys \['extra'\]"),
    (lambda e: e.pop('columns'), 'columns must be a list'),
    (lambda e: e.pop('label'), 'label must be a JSON object'),
    (lambda e: e['label'].pop('negative'), r"label .*lacks \['negative'\]"),
    (lambda e: e['columns'].append(3), 'column must be a JSON object'),
    (
      lambda e: e['columns'][0].update(kind='text'),
      "kind must be one of 'nominal', 'numeric', got 'text'",
    ),
    (lambda e: e['columns'][0].pop('kind'), 'kind must be one of .* None'),
    (lambda e: e['columns'][0].update(clip=True), r"keys \['clip'\]"),
    (lambda e: e['columns'][1].update(upper=float('nan')), 'upper must be'),
    (lambda e: e['columns'][1].update(cuts=[[1]]), 'cuts must be a finite'),
    (lambda e: e['columns'][1].update(cuts='1'), 'cuts must be a tuple'),
    (lambda e: e['columns'][0].update(levels=[['a'], 'b']), 'levels must be'),
    (lambda e: e.update(missing=None), 'missing must be a tuple'),
  )
  def test_refuses(self, change, message):
    entry = json.loads(schema_json.to_json(_SCHEMA))
    change(entry)
    with self.assertRaisesRegex(ValueError, message):
      schema_json.from_json(json.dumps(entry))

  @parameterized.parameters('', '[]', '{"name": "a", "name": "b"}', '{"a"')
  def test_refuses_text(self, text):
    with self.assertRaises(ValueError):
      schema_json.from_json(text)

  def test_refuses_a_repeated_key(self):
    text = schema_json.to_json(_SCHEMA).replace(
      '"upper": 20.0', '"upper": 20.0, "upper": 30.0'
    )
    with self.assertRaisesRegex(ValueError, 'a key twice'):
      schema_json.from_json(text)
