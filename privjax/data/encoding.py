"""What classifiers and rules see of a table: rows of norm at most 1, and bins.

>>> import numpy as np
>>> from privjax.data import breast_cancer
>>> table = breast_cancer.load()
>>> rows = encode(table.schema, table.columns)
>>> rows.shape, bool((np.linalg.norm(rows, axis=1) <= 1).all())
((569, 13), True)

The schema is public, the columns are private. The results describe the same
private rows and are not for release.
"""

from collections.abc import Mapping
import fractions
import math

import numpy as np

from privjax.data import schema as schema_lib
from privjax.data import table_columns


def encode(
  schema: schema_lib.Schema,
  columns: Mapping[str, np.ndarray],
  *,
  intercept: bool = False,
) -> np.ndarray:
  """Encodes rows for a linear classifier.

  A nominal feature becomes one 0/1 entry per level, a numeric feature v one
  entry (v - lower) / (upper - lower); all are divided by sqrt(m), with m the
  number of features. With an intercept, which a private classifier penalizes
  like any weight, an entry 1 is appended and the divisor is sqrt(m + 1).

  Formal guarantees: every row x has |x|_2 <= 1, whatever the rows are. The
  columns are checked, so a nominal feature has exactly one entry 1 and a
  numeric one an entry in [0, 1] (rounding is monotone: v <= upper gives
  v - lower <= upper - lower as floats, and a quotient of at most 1). Each
  feature thus adds at most 1 to the square of the norm, and the intercept 1:
  at most the squared divisor in all. The bound holds for the returned floats,
  in exact arithmetic: the division multiplies by the largest float s with
  m s**2 <= 1 (see `unit_scale`), and s times a number in [0, 1] rounds to at
  most s. It uses the public schema alone.

  Args:
    schema: the public schema.
    columns: the private columns, as in `Table.columns`.
    intercept: whether to append the intercept's entry.

  Returns:
    `[n, d]` float64; `feature_names` names the d entries.

  Raises:
    ValueError: if a column breaks the schema, see `table_columns.check`.
  """
  num_rows = table_columns.check(schema, columns)
  blocks = [_block(column, columns[column.name]) for column in schema.columns]
  if intercept:
    blocks.append(np.ones((num_rows, 1)))
  return np.concatenate(blocks, axis=1) * unit_scale(len(blocks))


def feature_names(
  schema: schema_lib.Schema, *, intercept: bool = False
) -> tuple[str, ...]:
  """Returns the d names of the entries of an encoded row."""
  names = []
  for column in schema.columns:
    if isinstance(column, schema_lib.NominalColumn):
      names += [f'{column.name}={level}' for level in column.levels]
    else:
      names.append(column.name)
  return (*names, 'intercept') if intercept else tuple(names)


def bin_codes(
  schema: schema_lib.Schema, columns: Mapping[str, np.ndarray]
) -> np.ndarray:
  """Encodes rows for rules.

  Returns:
    `[n, m]` int64: the position of each feature's bin in its `bin_names`, in
    the order of the features.

  Raises:
    ValueError: if a column breaks the schema, see `table_columns.check`.
  """
  table_columns.check(schema, columns)
  return np.stack(
    [
      columns[column.name]
      if isinstance(column, schema_lib.NominalColumn)
      else table_columns.bin_index(column.cuts, columns[column.name])
      for column in schema.columns
    ],
    axis=1,
  )


def unit_scale(num_parts: int) -> float:
  """Returns the largest float s with num_parts * s**2 <= 1, exactly."""
  scale = 1 / math.sqrt(num_parts)
  while num_parts * fractions.Fraction(scale) ** 2 > 1:
    scale = math.nextafter(scale, 0)
  while num_parts * fractions.Fraction(math.nextafter(scale, 2)) ** 2 <= 1:
    scale = math.nextafter(scale, 2)
  return scale


def _block(column: schema_lib.Column, values: np.ndarray) -> np.ndarray:
  if isinstance(column, schema_lib.NominalColumn):
    levels = np.arange(len(column.levels))
    return (values[:, None] == levels[None, :]).astype(np.float64)
  lower, upper = float(column.lower), float(column.upper)
  return ((values - lower) / (upper - lower))[:, None]
