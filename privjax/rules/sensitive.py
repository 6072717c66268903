"""The sensitive attribute S of a rule set: its columns, its levels, its part.

>>> from privjax.rules import rule_set
>>> score = one_hot(('score=low', 'score=high'))
>>> names = ('age', 'score=low', 'score=high')
>>> rules = rule_set.make(
...   [[30.0, -np.inf, 0.5], [-np.inf, 0.5, -np.inf], [-np.inf] * 3],
...   [[np.inf] * 3] * 3, [1, -1, 1], names=names, default=1, ordered=False)
>>> admitted(rules, score).tolist()
[[False, True], [True, False], [True, True]]
>>> rows = np.array([[40.0, 1, 0], [20.0, 0, 1]])
>>> public_matches(rules, score, rows).tolist()
[[True, True, True], [False, True, True]]
>>> codes(score, names, rows).tolist()
[0, 1]

Names and levels are public, rows are private: what is computed from them is
not for release.
"""

from collections.abc import Sequence
import dataclasses

import numpy as np

from privjax import _validate
from privjax.rules import rule_set


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class SensitiveAttribute:
  """A group of columns that encodes one attribute with L levels.

  Attributes:
    columns: the names of the K columns.
    levels: `[L, K]` float64, what each level writes in these columns; L >= 2
      distinct rows.
  """

  columns: tuple[str, ...]
  levels: np.ndarray

  def __post_init__(self):
    if not self.columns or len({*self.columns}) < len(self.columns):
      raise ValueError(f'columns must be distinct names, got {self.columns}')
    object.__setattr__(self, 'levels', np.array(self.levels, np.float64))
    _validate.shape((None, len(self.columns)), levels=self.levels)
    _validate.finite(levels=self.levels)
    if len(self.levels) < 2 or len(np.unique(self.levels, axis=0)) < len(
      self.levels
    ):
      raise ValueError('levels must be two or more distinct rows')

  @property
  def num_levels(self) -> int:
    """L."""
    return len(self.levels)


def one_hot(columns: Sequence[str]) -> SensitiveAttribute:
  """Returns the attribute with one 0/1 column per level."""
  columns = tuple(columns)
  return SensitiveAttribute(columns=columns, levels=np.eye(len(columns)))


def column_index(
  attribute: SensitiveAttribute, names: Sequence[str]
) -> np.ndarray:
  """Returns the `[K]` positions of the attribute's columns among `names`.

  Raises:
    ValueError: if a column is not one of them.
  """
  names = tuple(names)
  unknown = [column for column in attribute.columns if column not in names]
  if unknown:
    raise ValueError(
      f'columns {unknown} of the sensitive attribute are not columns of the '
      f'rules, which have {names}'
    )
  return np.array([names.index(column) for column in attribute.columns])


def codes(
  attribute: SensitiveAttribute, names: Sequence[str], x: np.ndarray
) -> np.ndarray:
  """Returns the level of each row, `[n]` int64 in [0, L).

  Args:
    attribute: the sensitive attribute.
    names: of the C columns.
    x: `[n, C]`.

  Raises:
    ValueError: if a row has no level in the attribute's columns.
  """
  x = np.asarray(x)
  _validate.shape((None, len(names)), x=x)
  values = x[:, column_index(attribute, names)]
  equal = (values[:, None, :] == attribute.levels[None]).all(axis=2)
  unknown = np.count_nonzero(~equal.any(axis=1))
  if unknown:
    raise ValueError(f'x has {unknown} rows with no level in sensitive columns')
  return np.argmax(equal, axis=1)


def with_level(
  attribute: SensitiveAttribute,
  names: Sequence[str],
  x: np.ndarray,
  level: int,
) -> np.ndarray:
  """Returns a float64 copy of `[n, C]` rows that all have one level."""
  _validate.integer(0, attribute.num_levels - 1, level=level)
  x = np.array(x, np.float64)
  _validate.shape((None, len(names)), x=x)
  x[:, column_index(attribute, names)] = attribute.levels[level]
  return x


def admitted(
  rules: rule_set.RuleSet, attribute: SensitiveAttribute
) -> np.ndarray:
  """Returns `[R, L]` bool: whether a level meets a rule's conditions on S.

  A row of True says that the rule does not restrict S, conditions or not.
  """
  index = column_index(attribute, rules.names)
  public = np.setdiff1d(np.arange(len(rules.names)), index)
  rows = np.zeros((attribute.num_levels, len(rules.names)))
  rows[:, index] = attribute.levels
  return rule_set.matches(_without(rules, public), rows).T


def public_matches(
  rules: rule_set.RuleSet, attribute: SensitiveAttribute, x: np.ndarray
) -> np.ndarray:
  """Returns `[n, R]` bool: whether a row meets all conditions but those on S.

  Args:
    rules: R rules over C columns.
    attribute: the sensitive attribute.
    x: `[n, C]` finite numbers; the sensitive columns are not read.
  """
  index = column_index(attribute, rules.names)
  return rule_set.matches(_without(rules, index), x)


def _without(rules: rule_set.RuleSet, columns: np.ndarray) -> rule_set.RuleSet:
  """Drops the conditions on some columns."""
  lower, upper = rules.lower.copy(), rules.upper.copy()
  lower[:, columns], upper[:, columns] = -np.inf, np.inf
  return dataclasses.replace(rules, lower=lower, upper=upper)
