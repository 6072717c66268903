"""Public schemas as JSON files.

>>> from privjax.data import schema as schema_lib
>>> schema = schema_lib.Schema(
...   name='loans',
...   columns=(
...     schema_lib.NominalColumn(name='grade', levels=('good', 'bad')),
...     schema_lib.NumericColumn(name='age', lower=18, upper=100),
...   ),
...   label=schema_lib.LabelColumn(name='paid', negative='no', positive='yes'),
...   sensitive='grade',
... )
>>> from_json(to_json(schema)) == schema
True

A file holds an object with the attributes of `Schema` as keys; those with a
default may be left out. A column is an object with those of `NominalColumn` or
`NumericColumn` and a `kind`, 'nominal' or 'numeric'. Everything is public.
"""

import dataclasses
import json
import os
import pathlib
from typing import Any

from privjax import _validate
from privjax.data import schema as schema_lib

_KINDS = {
  'nominal': schema_lib.NominalColumn,
  'numeric': schema_lib.NumericColumn,
}


def to_json(schema: schema_lib.Schema) -> str:
  """Returns a schema as JSON text, the same for equal schemas."""
  plain = dataclasses.asdict(schema)
  for column, entry in zip(schema.columns, plain['columns']):
    (entry['kind'],) = (k for k, t in _KINDS.items() if isinstance(column, t))
    for key in {'lower', 'upper'} & set(entry):
      entry[key] = _plain(entry[key])
    entry['cuts'] = [_plain(cut) for cut in entry['cuts']]
  return json.dumps(plain, indent=2, sort_keys=True) + '\n'


def from_json(text: str) -> schema_lib.Schema:
  """Reads the schema that `to_json` writes.

  Args:
    text: a JSON object.

  Raises:
    ValueError: if the text is not JSON, a key is unknown, repeated or missing,
      or a value breaks a rule of the records.
  """
  entry = json.loads(text, object_pairs_hook=_no_repeats)
  entry = _object('schema', entry)
  columns = entry.get('columns')
  if not isinstance(columns, list):
    raise ValueError('columns must be a list of objects')
  label = _object('label', entry.get('label'))
  entry['columns'] = tuple(_column(column) for column in columns)
  entry['label'] = _build(schema_lib.LabelColumn, 'label', label)
  return _build(schema_lib.Schema, 'schema', entry)


def read_json(path: str | os.PathLike) -> schema_lib.Schema:
  """Reads a schema from a JSON file, see `from_json`."""
  # A byte order mark, which spreadsheets write, is not part of the text.
  return from_json(pathlib.Path(path).read_text(encoding='utf-8-sig'))


def _plain(number: float) -> float:
  return float(number) + 0.0  # Not -0.0, which equals 0.0 but prints otherwise.


def _no_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
  """Refuses what `json` would read as the last of two values."""
  entry = dict(pairs)
  if len(entry) < len(pairs):
    raise ValueError(
      f'a JSON object has a key twice, its keys: {sorted(entry)}'
    )
  return entry


def _object(where: str, entry: Any) -> dict[str, Any]:
  if not isinstance(entry, dict):
    raise ValueError(f'{where} must be a JSON object')
  return dict(entry)


def _column(entry: Any) -> schema_lib.Column:
  entry = _object('column', entry)
  kind = entry.pop('kind', None)
  _validate.one_of(tuple(_KINDS), kind=kind)
  return _build(_KINDS[kind], 'column', entry)


def _build(record: type, where: str, entry: dict[str, Any]) -> Any:
  """Builds a record from a JSON object, lists as tuples."""
  fields = dataclasses.fields(record)
  needed = {f.name for f in fields if f.default is dataclasses.MISSING}
  unknown = set(entry) - {field.name for field in fields}
  if unknown or needed - set(entry):
    raise ValueError(
      f'{where} has unknown keys {sorted(unknown)} and lacks '
      f'{sorted(needed - set(entry))}'
    )
  values = {
    key: tuple(value) if isinstance(value, list) else value
    for key, value in entry.items()
  }
  return record(**values)
