"""Rule sets as text, JSON and data frames.

>>> import numpy as np
>>> rules = rule_set.make(
...   [[0.5, -np.inf]], [[np.inf, 30.5]], [1], names=('smoker: yes', 'age'),
...   default=-1, ordered=True, probability=[0.9], default_probability=0.25)
>>> print(to_text(rules, indicators=True, coverage=[12, 88]))
IF smoker: yes AND age <= 30.5 THEN +1 (P(+1) = 0.900, covers 12)
ELSE -1 (P(+1) = 0.250, covers 88)
>>> from_json(to_json(rules)).upper.tolist()
[[inf, 30.5]]

Writing is not a mechanism: what is private in a rule set is so in its text.
"""

from collections.abc import Sequence
import json
import math
import sys
from typing import Any

import numpy as np

from privjax import _validate
from privjax import types
from privjax.rules import rule_set

FORMAT = 'privjax.rule_set'
VERSION = 1

_TOP = {'format', 'version', 'ordered', 'columns', 'rules', 'default'}
_RULE = {'conditions', 'class', 'probability', 'weight'}
_CONDITION = {'column', 'above', 'at_most'}
_DEFAULT = {'class', 'probability'}
_LARGEST = sys.float_info.max


def conditions(
  rules: rule_set.RuleSet, *, indicators: bool = False
) -> list[str]:
  """Returns the condition of each rule as text; 'TRUE' where it has none.

  Args:
    rules: the rules.
    indicators: whether the columns that rules split between 0 and 1 hold only
      0 and 1, so that such a condition reads 'name' or 'not name'.
  """
  result = []
  for lower, upper in zip(rules.lower.tolist(), rules.upper.tolist()):
    parts = [
      _condition_text(name, low, high, indicators)
      for name, low, high in zip(rules.names, lower, upper)
      if low > -math.inf or high < math.inf
    ]
    result.append(' AND '.join(parts) or 'TRUE')
  return result


def to_text(
  rules: rule_set.RuleSet,
  *,
  indicators: bool = False,
  classes: tuple[str, str] = ('-1', '+1'),
  coverage: types.Array | Sequence[int] | None = None,
) -> str:
  """Returns one line for each rule and one for the default.

  Numbers are rounded for reading; `to_json` keeps them.

  Args:
    rules: the rules.
    indicators: see `conditions`.
    classes: how to call the classes (-1, +1).
    coverage: `[R + 1]` rows, from `rule_set.coverage`; none are shown without.
  """
  notes = _notes(rules, classes, coverage)
  words = [_class_text(c, classes) for c in (*rules.consequent, rules.default)]
  texts = conditions(rules, indicators=indicators)
  lines = [
    f'{"ELSE IF" if rules.ordered and rule else "IF"} {text} THEN '
    f'{words[rule]} ({notes[rule]})'
    for rule, text in enumerate(texts)
  ]
  last = 'ELSE' if rules.ordered else 'NO MATCH OR A TIED VOTE:'
  lines.append(f'{last if lines else "ALWAYS"} {words[-1]} ({notes[-1]})')
  return '\n'.join(lines)


def to_frame(
  rules: rule_set.RuleSet,
  *,
  indicators: bool = False,
  coverage: types.Array | Sequence[int] | None = None,
) -> Any:
  """Returns a data frame with a row for each rule and, last, for the default.

  Args:
    rules: the rules.
    indicators: see `conditions`.
    coverage: `[R + 1]` rows, from `rule_set.coverage`.

  Returns:
    A `pandas.DataFrame` with the columns `condition`, `consequent`,
    `probability`, `weight` (missing for the default) and, if given, `coverage`.

  Raises:
    ImportError: without pandas.
  """
  try:
    import pandas as pd
  except ImportError as error:
    raise ImportError(
      'to_frame needs pandas: pip install "privjax[experiments]"'
    ) from error
  columns: dict[str, Any] = {
    'condition': [*conditions(rules, indicators=indicators), 'DEFAULT'],
    'consequent': np.append(rules.consequent, rules.default),
    'probability': np.append(rules.probability, rules.default_probability),
    'weight': np.append(rules.weight, np.nan),
  }
  if coverage is not None:
    columns['coverage'] = _checked_coverage(rules, coverage)
  return pd.DataFrame(columns)


def to_json(rules: rule_set.RuleSet) -> str:
  """Returns JSON text that `from_json` reads back without loss.

  A condition holds where above < float32(x) <= at_most; null is no bound.
  """
  document = {
    'format': FORMAT,
    'version': VERSION,
    'ordered': rules.ordered,
    'columns': list(rules.names),
    'rules': [_rule_to_dict(rules, rule) for rule in range(rules.num_rules)],
    'default': {
      'class': int(rules.default),
      'probability': float(rules.default_probability),
    },
  }
  return json.dumps(document, allow_nan=False, indent=1)


def from_json(text: str) -> rule_set.RuleSet:
  """Reads what `to_json` wrote.

  Raises:
    ValueError: on other JSON, another format or version, a field that is
      missing or unknown, or rules that `rule_set.make` refuses.
  """
  document = _fields(
    json.loads(text, parse_constant=_refuse, object_pairs_hook=_distinct),
    _TOP,
    'document',
  )
  _validate.one_of((FORMAT,), format=document['format'])
  _validate.one_of((VERSION,), version=document['version'])
  names, rules = document['columns'], document['rules']
  if not isinstance(names, list) or not isinstance(rules, list):
    raise ValueError('columns and rules must be lists')
  shape = (len(rules), len(names))
  lower, upper = np.full(shape, -math.inf), np.full(shape, math.inf)
  default = _fields(document['default'], _DEFAULT, 'default')
  for number, entry in enumerate(rules):
    _fields(entry, _RULE, f'rule {number}')
    if not isinstance(entry['conditions'], list):
      raise ValueError(f'conditions of rule {number} must be a list')
    for condition in entry['conditions']:
      _fields(condition, _CONDITION, f'condition of rule {number}')
      _validate.one_of(names, column=condition['column'])
      place = number, names.index(condition['column'])
      if lower[place] > -math.inf or upper[place] < math.inf:
        raise ValueError(f'rule {number} bounds {condition["column"]!r} twice')
      lower[place] = _bound(condition['above'], -math.inf)
      upper[place] = _bound(condition['at_most'], math.inf)
  return rule_set.make(
    lower,
    upper,
    [_class(entry['class']) for entry in rules],
    names=names,
    default=_class(default['class']),
    ordered=document['ordered'],
    probability=[_number(entry['probability']) for entry in rules],
    weight=[_number(entry['weight']) for entry in rules],
    default_probability=_number(default['probability']),
  )


def _rule_to_dict(rules, rule) -> dict[str, Any]:
  bounds = zip(
    rules.names, rules.lower[rule].tolist(), rules.upper[rule].tolist()
  )
  finite = lambda value: value if math.isfinite(value) else None
  return {
    'conditions': [
      {'column': name, 'above': finite(low), 'at_most': finite(high)}
      for name, low, high in bounds
      if low > -math.inf or high < math.inf
    ],
    'class': int(rules.consequent[rule]),
    'probability': float(rules.probability[rule]),
    'weight': float(rules.weight[rule]),
  }


def _fields(value, names: set[str], where: str) -> dict[str, Any]:
  if not isinstance(value, dict) or set(value) != names:
    found = sorted(value) if isinstance(value, dict) else type(value).__name__
    raise ValueError(f'{where} must have the fields {sorted(names)}: {found}')
  return value


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
  fields = dict(pairs)
  if len(fields) < len(pairs):
    raise ValueError(f'fields must be distinct, got {[n for n, _ in pairs]}')
  return fields


def _refuse(constant: str):
  raise ValueError(f'numbers must be finite, got {constant}')


def _number(value) -> float:
  if isinstance(value, bool) or not isinstance(value, (int, float)):
    raise ValueError(f'expected a number, got {value!r}')
  # JSON's 1e400 reads as inf, and would be no bound; 10**400 is no float.
  if not -_LARGEST <= value <= _LARGEST:
    raise ValueError('numbers must be finite, got one beyond float64')
  return float(value)


def _bound(value, unbounded: float) -> float:
  return unbounded if value is None else _number(value)


def _class(value) -> int:
  _validate.one_of((-1, 1), **{'class': value})
  return value


def _condition_text(name, low, high, indicators) -> str:
  if indicators and 0 <= low < 1 and high == math.inf:
    return name
  if indicators and low == -math.inf and 0 <= high < 1:
    return f'not {name}'
  left = f'{low:.6g} < ' if low > -math.inf and high < math.inf else ''
  right = f' <= {high:.6g}' if high < math.inf else f' > {low:.6g}'
  return f'{left}{name}{right}'


def _class_text(label, classes) -> str:
  return classes[int(label > 0)]


def _checked_coverage(rules, coverage) -> np.ndarray:
  coverage = np.asarray(coverage)
  _validate.shape((rules.num_rules + 1,), coverage=coverage)
  return coverage


def _notes(rules, classes, coverage) -> list[str]:
  """Returns what stands in parentheses after each rule and the default."""
  probability = np.append(rules.probability, rules.default_probability)
  notes = [f'P({classes[1]}) = {value:.3f}' for value in probability]
  if not rules.ordered:
    for rule, weight in enumerate(rules.weight):
      notes[rule] += f', weight {weight:.6g}'
  if coverage is not None:
    counts = _checked_coverage(rules, coverage)
    notes = [f'{note}, covers {n}' for note, n in zip(notes, counts)]
  return notes
