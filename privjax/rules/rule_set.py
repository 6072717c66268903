"""Rules as arrays of thresholds: an ordered list, or a set that votes.

Rule r applies to a row x where lower[r] < float32(x) <= upper[r] in every
column. The cast comes first because scikit-learn's trees store rows as float32
and thresholds as float64: a rule that is read off a tree must round as it does.

>>> rules = make(
...   [[0.5, -np.inf], [-np.inf, 2.0]], [[np.inf, np.inf], [np.inf, 3.0]],
...   [1, -1], names=('smoker', 'age'), default=-1, ordered=True)
>>> rows = np.array([[1.0, 2.5], [0.0, 2.5], [0.0, 9.0]])
>>> first_match(rules, rows).tolist(), predict(rules, rows).tolist()
([0, 1, 2], [1, -1, -1])
>>> uses(rules, ['age']).tolist()
[False, True]

Rows are private. So are rules that were learned from private rows: nothing here
is a mechanism, and nothing here makes a release private.
"""

from collections.abc import Sequence
import dataclasses
import math

from flax import struct
import numpy as np

from privjax import _validate
from privjax import types

# Votes closer to a tie than this part of the total are a tie, so that the order
# in which weights are summed decides nothing.
_TIE = 1e-12


@struct.dataclass
class RuleSet:
  """Rules over C columns; build one with `make`, which checks it.

  Attributes:
    lower: `[R, C]` float64, exclusive; -inf for no bound.
    upper: `[R, C]` float64, inclusive; inf for no bound.
    consequent: `[R]` int64 in {-1, +1}.
    probability: `[R]` float64, estimate of P(label = +1 | the rule decides).
    weight: `[R]` float64 >= 0, the vote in an unordered set; lists ignore it.
    default: int64 scalar in {-1, +1}: the class where no rule applies, or where
      the vote is tied.
    default_probability: float64 scalar, estimate of P(label = +1) there.
    names: the names of the C columns.
    ordered: whether the first rule that applies decides (a list) or all rules
      that apply vote (a set).
  """

  lower: np.ndarray
  upper: np.ndarray
  consequent: np.ndarray
  probability: np.ndarray
  weight: np.ndarray
  default: np.ndarray
  default_probability: np.ndarray
  names: tuple[str, ...] = struct.field(pytree_node=False)
  ordered: bool = struct.field(pytree_node=False)

  @property
  def num_rules(self) -> int:
    """R, without the default."""
    return len(self.consequent)


def make(
  lower: types.Array | Sequence,
  upper: types.Array | Sequence,
  consequent: types.Array | Sequence,
  *,
  names: Sequence[str],
  default: int,
  ordered: bool,
  probability: types.Array | Sequence | None = None,
  weight: types.Array | Sequence | None = None,
  default_probability: float | None = None,
) -> RuleSet:
  """Returns a checked rule set; R = 0 leaves the default alone.

  Args:
    lower: `[R, C]`, as in `RuleSet`; an empty sequence for no rules.
    upper: `[R, C]`, above `lower`.
    consequent: `[R]` in {-1, +1}.
    names: C distinct names.
    default: -1 or +1.
    ordered: whether the first match decides.
    probability: `[R]` in [0, 1]; by default the consequent is certain. In a
      list the consequent must be the likelier class, at 1/2 the default.
    weight: `[R]` >= 0, at most the largest float / R so that votes add up; by
      default 1.
    default_probability: in [0, 1], the default its likelier class; by default
      the default is certain.

  Raises:
    ValueError: naming the argument that breaks one of these rules.
  """
  names = tuple(names)
  if any(not isinstance(n, str) for n in names) or len({*names}) < len(names):
    raise ValueError(f'names must be distinct strings, got {names}')
  consequent = np.asarray(consequent)
  num_rules = len(consequent)
  _validate.shape((num_rules,), consequent=consequent)
  lower, upper = _bounds(lower, upper, num_rules, len(names))
  if np.ndim(default) or default not in (-1, 1):
    raise ValueError(f'default must be -1 or +1, got {default!r}')
  _validate.one_of((False, True), ordered=ordered)
  if np.any(np.abs(consequent) != 1):
    raise ValueError(f'consequent must be -1 or +1, got {consequent}')
  certain = (consequent + 1) / 2
  probability = _unit(certain if probability is None else probability, 'rules')
  _validate.shape((num_rules,), probability=probability)
  if default_probability is None:
    default_probability = (int(default) + 1) / 2
  at_default = _unit(default_probability, 'the default')
  _validate.shape((), default_probability=at_default)
  if (at_default - 0.5) * default < 0:
    raise ValueError(
      f'default must be the likelier class, got {default} at the probability '
      f'{default_probability} of +1'
    )
  if ordered:
    _check_likelier(consequent, probability, default)
  weight = np.array(np.ones(num_rules) if weight is None else weight, float)
  _validate.shape((num_rules,), weight=weight)
  most = np.finfo(np.float64).max / max(num_rules, 1)
  if not np.all((weight >= 0) & (weight <= most)):
    raise ValueError(f'weight must be in [0, {most:.3g}], got {weight}')
  return RuleSet(
    lower=lower,
    upper=upper,
    consequent=consequent.astype(np.int64),
    probability=probability,
    weight=weight,
    default=np.asarray(default, np.int64),
    default_probability=at_default,
    names=names,
    ordered=ordered,
  )


def matches(rules: RuleSet, x: types.Array) -> np.ndarray:
  """Returns `[n, R]` bool: whether a rule applies to a row.

  Args:
    rules: R rules over C columns.
    x: `[n, C]` finite numbers; cast to float32 before any comparison.

  Raises:
    ValueError: on rows of another width, or NaN or infinite entries.
  """
  x = np.asarray(x)
  _validate.shape((None, len(rules.names)), x=x)
  _validate.finite(x=x)
  with np.errstate(over='ignore'):  # A double above float32 compares as inf.
    x = x.astype(np.float32).astype(np.float64)
  result = np.ones((len(x), rules.num_rules), bool)
  for rule, column in np.argwhere(rules.lower > -np.inf):
    result[:, rule] &= x[:, column] > rules.lower[rule, column]
  for rule, column in np.argwhere(rules.upper < np.inf):
    result[:, rule] &= x[:, column] <= rules.upper[rule, column]
  return result


def first_match(rules: RuleSet, x: types.Array) -> np.ndarray:
  """Returns `[n]` int64: the first rule that applies, R where none does."""
  applies = matches(rules, x)
  always = np.ones((len(applies), 1), bool)
  return np.argmax(np.concatenate([applies, always], axis=1), axis=1)


def predict_proba(rules: RuleSet, x: types.Array) -> np.ndarray:
  """Returns `[n, 2]` float64 probabilities of the classes (-1, +1).

  In a list they are the deciding rule's; in a set the weighted shares of the
  vote. The default's stand where no rule applies or the vote is tied.
  """
  if rules.ordered:
    table = np.append(rules.probability, rules.default_probability)
    positive = table[first_match(rules, x)]
  else:
    positive = _vote_share(rules, matches(rules, x))
  return np.stack([1 - positive, positive], axis=1)


def predict(rules: RuleSet, x: types.Array) -> np.ndarray:
  """Returns `[n]` int64 in {-1, +1}: the argmax of `predict_proba`.

  Equal probabilities give the default.
  """
  proba = predict_proba(rules, x)
  likelier = np.where(proba[:, 1] > proba[:, 0], 1, -1)
  return np.where(proba[:, 1] == proba[:, 0], rules.default, likelier)


def coverage(rules: RuleSet, x: types.Array) -> np.ndarray:
  """Returns `[R + 1]` int64: how many rows each rule, and the default, covers.

  In a list the rows that a rule decides: they partition the rows. In a set the
  rows that a rule applies to, and those that no rule applies to.
  """
  if rules.ordered:
    return np.bincount(first_match(rules, x), minlength=rules.num_rules + 1)
  applies = matches(rules, x)
  return np.append(applies.sum(axis=0), np.sum(~applies.any(axis=1)))


def take(rules: RuleSet, index: types.Array | Sequence) -> RuleSet:
  """Returns the rules at `[K]` positions, or where `[R]` booleans hold.

  The default stays, so pruning a list hands rows to later rules.
  """
  index = np.asarray(index)
  if index.dtype == bool:
    _validate.shape((rules.num_rules,), index=index)
    index = np.flatnonzero(index)
  index = index.astype(np.int64) if index.size == 0 else index
  if index.ndim != 1 or index.dtype.kind not in 'iu':
    raise ValueError(f'index must hold positions or booleans, got {index}')
  if np.any((index < 0) | (index >= rules.num_rules)):
    raise ValueError(f'index must be in [0, {rules.num_rules}), got {index}')
  return dataclasses.replace(
    rules,
    lower=rules.lower[index],
    upper=rules.upper[index],
    consequent=rules.consequent[index],
    probability=rules.probability[index],
    weight=rules.weight[index],
  )


def uses(rules: RuleSet, columns: Sequence[str]) -> np.ndarray:
  """Returns `[R]` bool: whether a rule bounds any of the named columns.

  Raises:
    ValueError: on a name that is not one of `rules.names`.
  """
  if isinstance(columns, str):
    raise ValueError(f'columns must be a sequence of names, got {columns!r}')
  for column in columns:
    _validate.one_of(rules.names, column=column)
  index = [rules.names.index(column) for column in columns]
  bounded = (rules.lower > -np.inf) | (rules.upper < np.inf)
  return np.any(bounded[:, index], axis=1)


def _bounds(lower, upper, num_rules, num_columns):
  shape = (num_rules, num_columns)
  if num_rules == 0:
    lower, upper = np.zeros(shape), np.zeros(shape)
  # Copies: a caller's array that changes later would pass by the checks.
  lower, upper = np.array(lower, float), np.array(upper, float)
  _validate.shape(shape, lower=lower)
  _validate.shape(shape, upper=upper)
  if not np.all(lower < upper):
    raise ValueError('lower must be below upper everywhere, and neither NaN')
  return lower, upper


def _unit(value, where) -> np.ndarray:
  value = np.array(value, np.float64)
  if not np.all((value >= 0) & (value <= 1)):
    raise ValueError(f'probability of {where} must be in [0, 1], got {value}')
  return value


def _check_likelier(consequent, probability, default) -> None:
  likelier = np.where(probability > 0.5, 1, -1)
  likelier = np.where(probability == 0.5, default, likelier)
  if np.any(consequent != likelier):
    rule = int(np.argmax(consequent != likelier))
    raise ValueError(
      'consequent of a list must be the likelier class, and the default at '
      f'1/2, got {consequent[rule]} at {probability[rule]} in rule {rule}'
    )


def _vote_share(rules, applies) -> np.ndarray:
  """Returns `[n]` P(+1) of the vote."""
  votes, total = np.zeros(len(applies)), np.zeros(len(applies))
  for rule, weight in enumerate(rules.weight.tolist()):
    votes += applies[:, rule] * (weight * rules.consequent[rule])
    total += applies[:, rule] * weight
  tied = np.abs(votes) <= _TIE * total
  # The quotient first: half of the least float is 0.
  share = 0.5 + 0.5 * (votes / np.where(total > 0, total, math.inf))
  return np.where(tied, rules.default_probability, np.clip(share, 0, 1))
