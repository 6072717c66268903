"""Public schemas of tables: what may be said of a row without reading one.

A schema fixes the columns with their levels or bounds, the bins that rules are
written in, the pair of classes and the sensitive column. It is an input that
someone wrote down; nothing in it is inferred from rows.

>>> schema = Schema(
...   name='loans',
...   columns=(
...     NominalColumn(name='grade', levels=('good', 'bad')),
...     NumericColumn(name='age', lower=18, upper=100, cuts=(25, 45)),
...   ),
...   label=LabelColumn(name='paid', negative='no', positive='yes'),
...   sensitive='grade',
... )
>>> schema.columns[1].bin_names
('<= 25', '(25, 45]', '> 45')

Everything here is public; `schema_json` reads and writes it. Bin k of cuts
c_1 < ... < c_K holds the numbers that exceed exactly k of the cuts.
"""

from collections.abc import Collection
import dataclasses
import math
import sys
from typing import Any

from privjax import _validate


@dataclasses.dataclass(frozen=True, kw_only=True)
class NominalColumn:
  """A column with finitely many public levels, one-hot for a classifier.

  Attributes:
    name: the column's name.
    levels: at least two distinct levels.
    cuts: empty; or increasing numbers, one fewer than levels, where the file
      holds numbers and a level is the bin that the number falls in.
  """

  name: str
  levels: tuple[str, ...]
  cuts: tuple[float, ...] = ()

  def __post_init__(self):
    _check_text('column name', self.name)
    where = f'column {self.name!r}: '
    _check_texts(f'{where}levels', self.levels)
    if len(self.levels) < 2:
      raise ValueError(f'{where}levels must be two or more')
    _check_cuts(where, self.cuts, -math.inf, math.inf)
    if self.cuts and len(self.cuts) != len(self.levels) - 1:
      raise ValueError(
        f'{where}cuts must be one fewer than the {len(self.levels)} levels, '
        f'got {len(self.cuts)}'
      )

  @property
  def bin_names(self) -> tuple[str, ...]:
    """The names of the bins that rules use: the levels."""
    return self.levels


@dataclasses.dataclass(frozen=True, kw_only=True)
class NumericColumn:
  """A column of numbers between public bounds.

  Attributes:
    name: the column's name.
    lower: the least value allowed.
    upper: the greatest value allowed, > lower.
    clip: whether a value outside is moved to the nearer bound and counted,
      rather than being an error.
    cuts: increasing numbers in [lower, upper) that separate the bins of rules;
      none means one bin.
  """

  name: str
  lower: float
  upper: float
  clip: bool = False
  cuts: tuple[float, ...] = ()

  def __post_init__(self):
    _check_text('column name', self.name)
    where = f'column {self.name!r}: '
    _check_number(f'{where}lower', self.lower)
    _check_number(f'{where}upper', self.upper)
    width = float(self.upper) - float(self.lower)
    if not 0 < width < math.inf:
      raise ValueError(
        f'{where}upper must exceed lower by a finite number, got '
        f'[{self.lower}, {self.upper}]'
      )
    _check_bool(f'{where}clip', self.clip)
    _check_cuts(where, self.cuts, self.lower, self.upper)

  @property
  def bin_names(self) -> tuple[str, ...]:
    """The names of the bins that rules use."""
    if not self.cuts:
      return ('any',)
    # The shortest exact text, so that distinct cuts have distinct names.
    cuts = [repr(float(cut)).removesuffix('.0') for cut in self.cuts]
    between = [f'({low}, {high}]' for low, high in zip(cuts, cuts[1:])]
    return (f'<= {cuts[0]}', *between, f'> {cuts[-1]}')


Column = NominalColumn | NumericColumn


@dataclasses.dataclass(frozen=True, kw_only=True)
class LabelColumn:
  """The column to predict, with its public pair of classes.

  Attributes:
    name: the column's name.
    negative: the text of class -1.
    positive: the text of class +1.
  """

  name: str
  negative: str
  positive: str

  def __post_init__(self):
    _check_text('label name', self.name)
    _check_texts('label classes', (self.negative, self.positive))


@dataclasses.dataclass(frozen=True, kw_only=True)
class Schema:
  """What is public about a table.

  Attributes:
    name: the table's name.
    columns: the features, m >= 1 of them, with distinct names.
    label: the label column, not one of the features.
    sensitive: the name of a nominal feature.
    missing: the texts that stand for a missing value.
    drop_missing: whether a row with a missing value is dropped and counted,
      rather than being an error.
  """

  name: str
  columns: tuple[Column, ...]
  label: LabelColumn
  sensitive: str
  missing: tuple[str, ...] = ('',)
  drop_missing: bool = False

  def __post_init__(self):
    _check_text('schema name', self.name)
    _check_kinds(self.columns, self.label)
    names = [column.name for column in self.columns]
    _check_texts('column names', (*names, self.label.name))
    if not names:
      raise ValueError('columns must be one or more')
    nominal = [c.name for c in self.columns if isinstance(c, NominalColumn)]
    _validate.one_of(nominal, sensitive=self.sensitive)
    _check_texts('missing', self.missing, allow_empty=True)
    _check_bool('drop_missing', self.drop_missing)
    values = {self.label.negative, self.label.positive}
    for column in self.columns:
      if isinstance(column, NominalColumn) and not column.cuts:
        values.update(column.levels)
    if both := values & set(self.missing):
      raise ValueError(
        f'missing must differ from levels and classes, got {sorted(both)}'
      )

  @property
  def names(self) -> tuple[str, ...]:
    """The names of the features, in order."""
    return tuple(column.name for column in self.columns)

  @property
  def num_bins(self) -> tuple[int, ...]:
    """The number of bins of each feature, in order."""
    return tuple(len(column.bin_names) for column in self.columns)

  @property
  def sensitive_levels(self) -> tuple[str, ...]:
    """The levels of the sensitive column."""
    return self.columns[self.names.index(self.sensitive)].bin_names


def _check_kinds(columns: Any, label: Any) -> None:
  if not isinstance(columns, tuple):
    raise ValueError(f'columns must be a tuple, got {type(columns).__name__}')
  for column in columns:
    if not isinstance(column, (NominalColumn, NumericColumn)):
      raise ValueError(
        'columns must be NominalColumn or NumericColumn, got '
        f'{type(column).__name__}'
      )
  if not isinstance(label, LabelColumn):
    raise ValueError(f'label must be a LabelColumn, got {type(label).__name__}')


def _check_text(where: str, value: Any, allow_empty: bool = False) -> None:
  # Texts are stripped when a file is read, so one with spaces never matches.
  if not isinstance(value, str) or value != value.strip():
    raise ValueError(
      f'{where} must be text without outer spaces, got {value!r}'
    )
  if not value and not allow_empty:
    raise ValueError(f'{where} must not be empty')


def _check_texts(
  where: str, values: Collection, allow_empty: bool = False
) -> None:
  if not isinstance(values, tuple):
    raise ValueError(f'{where} must be a tuple, got {type(values).__name__}')
  for value in values:
    _check_text(where, value, allow_empty)
  repeated = sorted({value for value in values if values.count(value) > 1})
  if repeated:
    raise ValueError(f'{where} must be distinct, got {repeated} twice')


def _check_bool(where: str, value: Any) -> None:
  if not isinstance(value, bool):
    raise ValueError(f'{where} must be True or False, got {value!r}')


def _check_number(where: str, value: Any) -> None:
  is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
  limit = sys.float_info.max  # Some ints exceed it; NaN and inf fail as well.
  if not is_number or not -limit <= value <= limit:
    raise ValueError(f'{where} must be a finite number, got {value!r}')


def _check_cuts(where: str, cuts: Any, lower: float, upper: float) -> None:
  if not isinstance(cuts, tuple):
    raise ValueError(f'{where}cuts must be a tuple, got {type(cuts).__name__}')
  for cut in cuts:
    _check_number(f'{where}cuts', cut)
  increasing = all(a < b for a, b in zip(cuts, cuts[1:]))
  if not increasing or not all(lower <= cut < upper for cut in cuts):
    raise ValueError(
      f'{where}cuts must increase within [{lower}, {upper}), got {cuts}'
    )
