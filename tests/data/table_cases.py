"""A small schema and its raw columns, for the tests of tables."""

import dataclasses

import numpy as np

from privjax.data import schema as schema_lib
from privjax.data import table as table_lib

SCHEMA = schema_lib.Schema(
  name='toy',
  columns=(
    schema_lib.NominalColumn(name='color', levels=('red', 'green', 'blue')),
    schema_lib.NumericColumn(name='age', lower=10, upper=20, cuts=(12, 15)),
    schema_lib.NumericColumn(name='debt', lower=-1.5, upper=0.5, clip=True),
    schema_lib.NominalColumn(
      name='score', levels=('low', 'mid', 'high'), cuts=(3, 5.5)
    ),
  ),
  label=schema_lib.LabelColumn(name='late', negative='no', positive='yes'),
  sensitive='score',
  missing=('', '?'),
)
DROPPING = dataclasses.replace(SCHEMA, drop_missing=True)


def raw(**changes):
  """Returns four rows; `changes` replace columns."""
  columns = {
    'color': ['blue', ' red', 'red ', 'green'],
    'age': ['10', '12', '12.5', '20'],
    'debt': ['-1.5', '0', '0.5', '-0.5'],
    'score': ['3', '3.01', '5.5', '6'],
    'late': ['no', 'yes', 'no', 'no'],
    'other': ['secret'] * 4,
  }
  return {k: np.array(v) for k, v in (columns | changes).items()}


def table(schema=SCHEMA, **changes):
  """Returns the table of `raw`."""
  return table_lib.from_raw(schema, raw(**changes))
