"""Tables of private rows under a public schema.

>>> import numpy as np
>>> from privjax.data import schema as schema_lib
>>> schema = schema_lib.Schema(
...   name='loans',
...   columns=(schema_lib.NominalColumn(name='grade', levels=('A', 'B')),),
...   label=schema_lib.LabelColumn(name='paid', negative='n', positive='y'),
...   sensitive='grade',
...   drop_missing=True,
... )
>>> raw = {'grade': np.array(['A', '', 'B']), 'paid': np.array(['y', 'y', 'n'])}
>>> table = from_raw(schema, raw)
>>> table.columns['grade'].tolist(), table.labels.tolist()
([0, 1], [1, -1])
>>> print(table.counts)
3 read, 0 filtered, 1 with a missing value (grade 1), 0 left out, 2 kept

Under `REPLACE_ONE_ROW` the rows are the private input. The number of rows kept
and, for a balanced set, of each class are treated as public.
"""

from collections.abc import Mapping
import dataclasses
import numbers

import numpy as np

from privjax import _validate
from privjax.data import draws
from privjax.data import schema as schema_lib
from privjax.data import table_columns


@dataclasses.dataclass(frozen=True, kw_only=True)
class TableCounts:
  """What became of the rows of a source. Not for release.

  Attributes:
    num_read: rows of the source.
    num_filtered: rows dropped by the loader's documented rule.
    num_missing: further rows dropped for a missing value.
    num_left_out: further rows that the balanced draw left out.
    num_rows: rows kept.
    missing: missing values by column, over the rows that passed the filter.
    clipped: clipped values by column that clips, over the rows kept.
  """

  num_read: int
  num_filtered: int
  num_missing: int
  num_left_out: int
  num_rows: int
  missing: Mapping[str, int]
  clipped: Mapping[str, int]

  def __str__(self) -> str:
    text = (
      f'{self.num_read} read, {self.num_filtered} filtered, '
      f'{self.num_missing} with a missing value{_listed(self.missing)}, '
      f'{self.num_left_out} left out, {self.num_rows} kept'
    )
    if self.clipped:
      total = sum(self.clipped.values())
      text += f'; {total} values clipped{_listed(self.clipped)}'
    return text


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class Table:
  """Private rows that keep to a public schema (arrays are not modified).

  Attributes:
    schema: the public schema.
    columns: for each feature `[n]` int64 codes of levels or `[n]` float64
      numbers within the bounds.
    labels: `[n]` int64 in {-1, +1}.
    counts: what became of the rows of the source.

  Raises:
    ValueError: naming the column or field that breaks one of these rules.
  """

  schema: schema_lib.Schema
  columns: Mapping[str, np.ndarray]
  labels: np.ndarray
  counts: TableCounts

  def __post_init__(self):
    num_rows = table_columns.check(self.schema, self.columns)
    _validate.shape((num_rows,), labels=self.labels)
    if self.labels.dtype != np.int64:
      raise ValueError(f'labels must be int64, got {self.labels.dtype}')
    other = np.count_nonzero(np.abs(self.labels) != 1)
    if other:
      raise ValueError(f'labels must be -1 or +1, got {other} others')

  @property
  def name(self) -> str:
    """The name of the schema."""
    return self.schema.name

  @property
  def num_rows(self) -> int:
    """The number of rows n."""
    return len(self.labels)

  @property
  def sensitive(self) -> np.ndarray:
    """The `[n]` int64 codes of the sensitive column."""
    return self.columns[self.schema.sensitive]


def from_raw(
  schema: schema_lib.Schema,
  raw: Mapping[str, np.ndarray],
  *,
  keep: np.ndarray | None = None,
  balanced_seed: int | None = None,
) -> Table:
  """Builds a table from the columns of a file.

  Rows go in this order: those that `keep` excludes, those with a missing value
  where the schema drops them, those that the balanced draw leaves out. What is
  left must keep to the schema.

  Args:
    schema: the public schema.
    raw: for each feature and the label `[N]` texts (outer spaces are ignored)
      or, for features that are numbers, real numbers; other keys are ignored.
      Among texts, None, NaN and pandas' NA stand for a missing value.
    keep: `[N]` bool, the rows that a documented public rule keeps, or None.
    balanced_seed: the seed of `draws.balanced_index`, or None to keep all.

  Raises:
    ValueError: if a column is absent or of another length; or, naming the
      column and the number of values, if values are missing (where the schema
      does not drop them), unknown, not finite or outside bounds.
  """
  columns = _checked_raw(schema, raw)
  num_read = len(columns[schema.label.name])
  if keep is None:
    keep = np.ones(num_read, bool)
  _validate.shape((num_read,), keep=keep)
  columns = _rows(columns, np.flatnonzero(keep))
  missing, complete = _missing(schema, columns)
  columns = _rows(columns, complete)
  labels = table_columns.labels(schema.label, columns[schema.label.name])
  index = np.arange(len(labels))
  if balanced_seed is not None:
    index = draws.balanced_index(labels, balanced_seed)
  parsed, clipped = table_columns.parse(schema, _rows(columns, index))
  num_kept = int(np.count_nonzero(keep))
  return Table(
    schema=schema,
    columns=parsed,
    labels=labels[index],
    counts=TableCounts(
      num_read=num_read,
      num_filtered=num_read - num_kept,
      num_missing=num_kept - len(complete),
      num_left_out=len(complete) - len(index),
      num_rows=len(index),
      missing=missing,
      clipped=clipped,
    ),
  )


def _checked_raw(
  schema: schema_lib.Schema, raw: Mapping[str, np.ndarray]
) -> dict[str, np.ndarray]:
  """Returns the columns that the schema names, texts without outer spaces."""
  names = (*schema.names, schema.label.name)
  absent = [name for name in names if name not in raw]
  if absent:
    raise ValueError(f'columns {absent} of the schema are absent')
  columns = {name: np.asarray(raw[name]) for name in names}
  num_rows = np.size(columns[schema.label.name])
  for name, values in columns.items():
    table_columns.check_length(name, values, num_rows)
    if values.dtype.kind in 'UTO':
      columns[name] = _plain(schema, name, values.tolist())
  return columns


def _plain(schema: schema_lib.Schema, name: str, values: list) -> np.ndarray:
  """Returns texts without outer spaces, or numbers, of Python objects."""
  is_text = [isinstance(value, str) for value in values]
  is_number = [
    isinstance(value, numbers.Real) and not isinstance(value, bool)
    for value in values
  ]
  if values and all(is_number):
    return np.array([float(value) for value in values])
  absent = [not text and _is_absent(v) for text, v in zip(is_text, values)]
  other = len(values) - sum(is_text) - sum(absent)
  if other:
    raise ValueError(
      f'column {name!r} must hold texts or real numbers, got {other} values of '
      'another kind, or numbers among texts or missing values'
    )
  if any(absent) and not schema.missing:
    raise ValueError(
      f'column {name!r}: {sum(absent)} values are missing, and the schema has '
      'no text for them (missing)'
    )
  return np.array(
    [v.strip() if t else schema.missing[0] for t, v in zip(is_text, values)],
    np.str_,
  )


def _is_absent(value) -> bool:
  differs = value != value  # True of NaN, and NA of pandas' NA.
  if isinstance(differs, (bool, np.bool_)):
    return value is None or bool(differs)
  return differs is value


def _missing(
  schema: schema_lib.Schema, columns: Mapping[str, np.ndarray]
) -> tuple[dict[str, int], np.ndarray]:
  """Returns the missing values by column and the rows that have none."""
  num_rows = len(columns[schema.label.name])
  is_missing = np.zeros(num_rows, bool)
  counts = {}
  for name, values in columns.items():
    if values.dtype.kind != 'U':
      continue
    here = np.isin(values, np.array(schema.missing, np.str_))
    is_missing |= here
    if here.any():
      counts[name] = int(np.count_nonzero(here))
  if counts and not schema.drop_missing:
    listed = ', '.join(f'{name!r}: {n}' for name, n in counts.items())
    raise ValueError(
      f'values are missing in column {listed}. Fill them in, or let the schema '
      'drop their rows (drop_missing).'
    )
  return counts, np.flatnonzero(~is_missing)


def _rows(
  columns: Mapping[str, np.ndarray], index: np.ndarray
) -> dict[str, np.ndarray]:
  return {name: values[index] for name, values in columns.items()}


def _listed(counts: Mapping[str, int]) -> str:
  listed = ', '.join(f'{name} {n}' for name, n in counts.items() if n)
  return f' ({listed})' if listed else ''
