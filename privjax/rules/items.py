"""Items: one 0/1 column for every bin of every feature.

Rule lists are mined from items; an antecedent is a set of items of different
features, such as 'age: <= 25' and 'sex: Male'.

>>> from privjax.data import schema as schema_lib
>>> schema = schema_lib.Schema(
...   name='loans',
...   columns=(
...     schema_lib.NominalColumn(name='grade', levels=('A', 'B')),
...     schema_lib.NumericColumn(name='age', lower=18, upper=100, cuts=(25,)),
...   ),
...   label=schema_lib.LabelColumn(name='paid', negative='n', positive='y'),
...   sensitive='grade',
... )
>>> items = from_schema(schema)
>>> items.names
('grade: A', 'grade: B', 'age: <= 25', 'age: > 25')
>>> indicators(items, np.array([[1, 0]])).tolist()
[[False, True, True, False]]

The schema and the items are public; codes and indicators are private rows.
"""

from collections.abc import Sequence
import dataclasses

import numpy as np

from privjax import _validate
from privjax import types
from privjax.data import schema as schema_lib


@dataclasses.dataclass(frozen=True, kw_only=True)
class Items:
  """What C binary columns stand for. Public.

  Attributes:
    names: C distinct names.
    features: the name of the feature that each item belongs to. Two items of
      one feature never stand in the same antecedent.
  """

  names: tuple[str, ...]
  features: tuple[str, ...]

  def __post_init__(self):
    if len(set(self.names)) < len(self.names):
      raise ValueError(f'names must be distinct, got {self.names}')
    if len(self.features) != len(self.names):
      raise ValueError(
        f'features must be one for each of the {len(self.names)} names, got '
        f'{len(self.features)}'
      )


def from_schema(schema: schema_lib.Schema) -> Items:
  """Returns the items 'feature: bin' of a schema, bins within features."""
  pairs = [
    (column.name, bin_name)
    for column in schema.columns
    for bin_name in column.bin_names
  ]
  return Items(
    names=tuple(f'{feature}: {bin_name}' for feature, bin_name in pairs),
    features=tuple(feature for feature, _ in pairs),
  )


def indicators(items: Items, codes: types.Array) -> np.ndarray:
  """Returns `[n, C]` bool: which items hold in which rows.

  Args:
    items: from `from_schema`: the items of a feature stand side by side.
    codes: `[n, m]` integers, the position of each row's bin of each feature, as
      from `encoding.bin_codes`.

  Raises:
    ValueError: on another number of features, items of a feature that are
      apart, or a code that is no bin.
  """
  features = tuple(dict.fromkeys(items.features))
  sizes = np.array([items.features.count(feature) for feature in features])
  if items.features != tuple(np.repeat(features, sizes).tolist()):
    raise ValueError(
      f'items of a feature must stand side by side, got {items.features}'
    )
  codes = np.asarray(codes)
  _validate.shape((None, len(features)), codes=codes)
  if codes.dtype.kind not in 'iu':
    raise ValueError(f'codes must be integers, got {codes.dtype}')
  if np.any((codes < 0) | (codes >= sizes[None, :])):
    raise ValueError(
      f'codes must be below the numbers of bins {sizes.tolist()} and >= 0'
    )
  result = np.zeros((len(codes), len(items.names)), bool)
  columns = codes + (np.cumsum(sizes) - sizes)[None, :]
  np.put_along_axis(result, columns, True, axis=1)
  return result


def of_features(items: Items, features: Sequence[str]) -> tuple[str, ...]:
  """Returns the names of the items of some features, for `rule_set.uses`.

  Raises:
    ValueError: on a feature without items.
  """
  for feature in features:
    _validate.one_of(items.features, feature=feature)
  pairs = zip(items.names, items.features)
  return tuple(name for name, feature in pairs if feature in features)
