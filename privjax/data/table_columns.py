"""Columns of a table, read from text and checked against the public schema.

A nominal column becomes `[n]` int64 codes, the positions of its levels; a
numeric column becomes `[n]` float64 numbers within its bounds.

The rows are private input. A value that the schema does not allow raises a
`ValueError` that names the column and how many values are wrong, never one of
them; it is meant for whoever holds the data, and is not for release.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from privjax.data import schema as schema_lib


def parse(
  schema: schema_lib.Schema, raw: Mapping[str, np.ndarray]
) -> tuple[dict[str, np.ndarray], dict[str, int]]:
  """Reads the columns of a table without missing values.

  Args:
    schema: the public schema.
    raw: for each feature `[n]` texts, or real numbers where the schema wants
      numbers; other keys are ignored.

  Returns:
    The columns, and how many values of each column with `clip` were clipped.

  Raises:
    ValueError: if a level is unknown, or a value is not a finite number or
      outside bounds that do not clip.
  """
  columns, clipped = {}, {}
  for column in schema.columns:
    values = raw[column.name]
    if isinstance(column, schema_lib.NominalColumn):
      columns[column.name] = _codes(column, values)
      continue
    numbers = _numbers(column.name, values)
    if column.clip:
      bounded = np.clip(numbers, float(column.lower), float(column.upper))
      clipped[column.name] = int(np.count_nonzero(bounded != numbers))
      numbers = bounded
    columns[column.name] = numbers
  check(schema, columns)
  return columns, clipped


def labels(label: schema_lib.LabelColumn, values: np.ndarray) -> np.ndarray:
  """Returns `[n]` int64 labels in {-1, +1}.

  Raises:
    ValueError: if a value is neither of the two public classes.
  """
  pair = (label.negative, label.positive)
  return 2 * _positions(f'label {label.name!r}', pair, values) - 1


def check(schema: schema_lib.Schema, columns: Mapping[str, np.ndarray]) -> int:
  """Checks columns against the schema and returns the number of rows.

  Args:
    schema: the public schema.
    columns: for each feature, and nothing else, `[n]` int64 codes or `[n]`
      float64 numbers.

  Raises:
    ValueError: naming the column that breaks a rule and how often, or if there
      is no row.
  """
  if set(columns) != set(schema.names):
    raise ValueError(
      f'columns must be {sorted(schema.names)}, got {sorted(columns)}'
    )
  num_rows = np.size(columns[schema.names[0]])
  if not num_rows:
    raise ValueError('columns must have a row, got none')
  for column in schema.columns:
    values = columns[column.name]
    check_length(column.name, values, num_rows)
    _check_values(column, values)
  return num_rows


def check_length(name: str, values: np.ndarray, num_rows: int) -> None:
  """Checks that a column is a vector of `num_rows` values."""
  if np.shape(values) != (num_rows,):
    raise ValueError(
      f'column {name!r} must have shape {(num_rows,)}, got {np.shape(values)}'
    )


def _check_values(column: schema_lib.Column, values: np.ndarray) -> None:
  if isinstance(column, schema_lib.NominalColumn):
    expected, lower, upper = np.int64, 0, len(column.levels) - 1
  else:
    expected = np.float64
    lower, upper = float(column.lower), float(column.upper)
  if values.dtype != expected:
    raise ValueError(
      f'column {column.name!r} must be {expected.__name__}, got {values.dtype}'
    )
  # Not `values < lower`, which is False for NaN.
  outside = np.count_nonzero(~((values >= lower) & (values <= upper)))
  if outside:
    raise ValueError(
      f'column {column.name!r}: {outside} values are not in the public bounds '
      f'[{lower}, {upper}]. Correct them, drop their rows by a public rule, or '
      'widen the bounds or let them clip in the schema.'
    )


def _codes(column: schema_lib.NominalColumn, values: np.ndarray) -> np.ndarray:
  if column.cuts:
    return bin_index(column.cuts, _numbers(column.name, values))
  return _positions(f'column {column.name!r}', column.levels, values)


def bin_index(cuts: tuple[float, ...], numbers: np.ndarray) -> np.ndarray:
  """Returns the `[n]` int64 number of cuts that each number exceeds."""
  return np.searchsorted(np.array(cuts, np.float64), numbers).astype(np.int64)


def _positions(
  where: str, levels: tuple[str, ...], values: np.ndarray
) -> np.ndarray:
  position = {level: i for i, level in enumerate(levels)}
  found = np.array([position.get(v, -1) for v in values.tolist()], np.int64)
  unknown = np.count_nonzero(found < 0)
  if unknown:
    raise ValueError(
      f'{where}: {unknown} values are not among its {len(levels)} public '
      'levels. Correct them, drop their rows by a public rule, or extend the '
      'schema.'
    )
  return found


def _numbers(name: str, values: np.ndarray) -> np.ndarray:
  if values.dtype.kind == 'U':
    numbers = np.array([_number(v) for v in values.tolist()], np.float64)
  elif values.dtype.kind in 'iuf':
    numbers = values.astype(np.float64)
  else:
    raise ValueError(
      f'column {name!r} must hold text or real numbers, got {values.dtype}'
    )
  bad = np.count_nonzero(~np.isfinite(numbers))
  if bad:
    raise ValueError(f'column {name!r}: {bad} values are not finite numbers')
  return numbers


def _number(text: Any) -> float:
  # `float` reads '1_000', which is no number in a data file.
  try:
    return np.nan if '_' in text else float(text)
  except ValueError:
    return np.nan
