"""Alpha-violation: what a rule says about S, and pruning to a privacy rate.

"Robust Transparency Against Model Inversion Attacks", Sec. 4.2, Definition 4.
For a rule with class c, and A the sensitive levels that it admits,

  ratio = Pr[S in A | its public part holds, f(x) = c] / Pr[S in A]

over training rows; in a list the condition also asks that no earlier rule
applies (Sec. 6); Pr[S in A] stays that of all rows, where the paper can also be
read to mean the rows left. The rule violates alpha where |log ratio| >= alpha.
The ratio is of the set A: the largest ratio of a single level protects less.

>>> s = np.array([1, 1, 1, 0, 1, 0, 0, 0])
>>> p = np.array([1, 1, 1, 1, 0, 0, 0, 0])
>>> x = np.stack([p, 1 - s, s], axis=1)
>>> f = np.array([1, 1, 1, 1, 1, -1, -1, -1])
>>> rules = rule_set.make(
...   [[-np.inf, -np.inf, 0.5]], [[0.5, np.inf, np.inf]], [1],
...   names=('P', 'S=0', 'S=1'), default=-1, ordered=False)
>>> scores = score(rules, sensitive.one_hot(('S=0', 'S=1')), x, f)
>>> bool(scores.log_ratio[0] == math.log(2))
True
>>> [status.value for status in statuses(scores, alpha=math.log(2))]
['violates']
>>> [status.value for status in statuses(scores, alpha=0.7)]
['keeps']

Scores and whatever is pruned by them are functions of private rows: NOT
COVERED by an epsilon. Pruning need not lower the success of an attack.
"""

import decimal
import enum
import fractions
import math
from typing import Literal, NamedTuple

import numpy as np

from privjax import _validate
from privjax import prng
from privjax.rules import rule_set
from privjax.rules import sensitive

Order = Literal['least_violating', 'coverage', 'position', 'random']
ORDERS = ('least_violating', 'coverage', 'position', 'random')


class Status(enum.Enum):
  """What a rule is at some alpha.

  S_FREE: it admits every level of S; v = 0.
  KEEPS: |log ratio| < alpha; v = 0.
  VIOLATES: |log ratio| >= alpha, a ratio of 0 included; v = 1.
  UNDEFINED: no training row meets the condition, or none has a level that the
    rule admits, so there is no ratio; v = 0.
  """

  S_FREE = 's_free'
  KEEPS = 'keeps'
  VIOLATES = 'violates'
  UNDEFINED = 'undefined'


class Scores(NamedTuple):
  """Integer counts over training rows, and the log ratio. Not for release.

  Attributes:
    s_free: `[R]` bool, whether a rule admits every level of S.
    joint: `[R]` int64, rows that meet the condition and have S in A.
    conditioned: `[R]` int64, rows that meet the condition.
    in_set: `[R]` int64, rows with S in A.
    num_rows: n.
    coverage: `[R]` int64, rows that the rule applies to; in a list, that it
      decides.
    log_ratio: `[R]` float64, log(joint n / (conditioned in_set)), rounded
      once from the exact ratio; -inf for joint = 0; 0 for S-free rules; NaN
      where a count that divides is 0.
  """

  s_free: np.ndarray
  joint: np.ndarray
  conditioned: np.ndarray
  in_set: np.ndarray
  num_rows: int
  coverage: np.ndarray
  log_ratio: np.ndarray


class Pruning(NamedTuple):
  """Rules that are left, and why. Not for release.

  Attributes:
    rules: the rules kept, in their order, with the default of the whole.
    kept: `[R]` bool.
    statuses: R of them, of the rules before pruning.
  """

  rules: rule_set.RuleSet
  kept: np.ndarray
  statuses: tuple[Status, ...]


def score(
  rules: rule_set.RuleSet,
  attribute: sensitive.SensitiveAttribute,
  x: np.ndarray,
  labels: np.ndarray,
) -> Scores:
  """Counts what alpha-violation asks for. NOT COVERED.

  Args:
    rules: R rules over C columns, a set or a list.
    attribute: the sensitive attribute, among these columns.
    x: `[n, C]` training rows, n >= 1.
    labels: `[n]` in {-1, +1}, the classifier's.

  Raises:
    ValueError: on an unknown sensitive column, a row without a level, or a
      wrong shape or label.
  """
  x, labels = np.asarray(x), np.asarray(labels)
  codes = sensitive.codes(attribute, rules.names, x)
  _validate.shape((len(x),), labels=labels)
  if not len(x):
    raise ValueError('x must hold a row, got none')
  if np.any(np.abs(labels) != 1):
    raise ValueError('labels must be -1 or +1')
  admits = sensitive.admitted(rules, attribute)
  in_set = admits[:, codes].T
  public = sensitive.public_matches(rules, attribute, x)
  applies = public & in_set
  open_rows = np.ones_like(applies)
  if rules.ordered:
    open_rows = np.cumsum(applies, axis=1) - applies == 0
  condition = public & open_rows & (labels[:, None] == rules.consequent)
  counts = Scores(
    s_free=np.all(admits, axis=1),
    joint=(condition & in_set).sum(axis=0),
    conditioned=condition.sum(axis=0),
    in_set=in_set.sum(axis=0),
    num_rows=len(x),
    coverage=rule_set.coverage(rules, x)[:-1],
    log_ratio=np.zeros(rules.num_rules),
  )
  return counts._replace(log_ratio=_log_ratios(counts))


def statuses(scores: Scores, *, alpha: float) -> tuple[Status, ...]:
  """Returns what each rule is at `alpha`.

  Equality violates, between the rounded log ratio and the float alpha: a ratio
  of 2 violates `math.log(2)`. At alpha = 0 every rule that is scored violates.

  Args:
    scores: of R rules.
    alpha: finite and >= 0.
  """
  _validate.finite(alpha=alpha)
  if np.ndim(alpha) or alpha < 0:
    raise ValueError(f'alpha must be a finite number >= 0, got {alpha!r}')
  result = []
  for s_free, log_ratio in zip(
    scores.s_free.tolist(), scores.log_ratio.tolist()
  ):
    if s_free:
      result.append(Status.S_FREE)
    elif math.isnan(log_ratio):
      result.append(Status.UNDEFINED)
    elif abs(log_ratio) >= alpha:
      result.append(Status.VIOLATES)
    else:
      result.append(Status.KEEPS)
  return tuple(result)


def prune(
  rules: rule_set.RuleSet,
  scores: Scores,
  *,
  alpha: float,
  privacy_rate: int | float | str | fractions.Fraction,
  order: Order = 'least_violating',
  seed: int | None = None,
) -> Pruning:
  """Keeps floor(privacy_rate v) of the v rules that violate alpha.

  Which ones, `order` says: 'least_violating' by increasing |log ratio|,
  'coverage' by decreasing coverage, 'position' the first ones, 'random' a
  draw; ties go to the first. Rules that do not violate stay.

  In a list the rows of a dropped rule go to later rules, whose scores change:
  at privacy_rate 0 a list may violate again. A set does not.

  Args:
    rules: R rules.
    scores: theirs.
    alpha: finite and >= 0.
    privacy_rate: in [0, 1]; a float means its shortest decimal form, so that
      0.29 of 100 is 29.
    order: one of `ORDERS`.
    seed: public, for 'random' alone.

  Raises:
    ValueError: on an argument out of range, or scores of other rules.
  """
  rate = _rate(privacy_rate)
  _validate.one_of(ORDERS, order=order)
  _validate.shape((rules.num_rules,), scores=scores.log_ratio)
  if (seed is not None) != (order == 'random'):
    raise ValueError(
      f"seed goes with order 'random' alone, got {seed!r} with {order!r}"
    )
  status = statuses(scores, alpha=alpha)
  violating = np.flatnonzero([s is Status.VIOLATES for s in status])
  num_kept = math.floor(rate * len(violating))
  if order == 'random':
    assert seed is not None
    rank = prng.permutation(len(violating), seed, 'prune')
  else:
    keys = {
      'least_violating': np.abs(scores.log_ratio),
      'coverage': -scores.coverage,
      'position': np.arange(rules.num_rules),
    }
    rank = np.argsort(keys[order][violating], kind='stable')
  kept = np.ones(rules.num_rules, bool)
  kept[violating[rank[num_kept:]]] = False
  return Pruning(rule_set.take(rules, kept), kept, status)


def drop_at_random(
  rules: rule_set.RuleSet, num_dropped: int, *, seed: int
) -> rule_set.RuleSet:
  """Drops rules at random, whatever they say: the control of a pruning.

  Args:
    rules: R rules.
    num_dropped: in [0, R]; the number that the pruning dropped.
    seed: public.
  """
  _validate.integer(0, rules.num_rules, num_dropped=num_dropped)
  order = prng.permutation(rules.num_rules, seed, 'control')
  return rule_set.take(rules, np.sort(order[num_dropped:]))


def _rate(privacy_rate) -> fractions.Fraction:
  error = ValueError(f'privacy_rate must be in [0, 1], got {privacy_rate!r}')
  if isinstance(privacy_rate, (bool, np.bool_)):
    raise error
  try:
    rate = fractions.Fraction(
      str(privacy_rate)
      if isinstance(privacy_rate, (float, np.floating))
      else privacy_rate
    )
  except (ValueError, TypeError, ArithmeticError):
    raise error from None
  if not 0 <= rate <= 1:
    raise error
  return rate


def _log_ratios(counts: Scores) -> np.ndarray:
  result = np.zeros(len(counts.s_free))
  for rule in np.flatnonzero(~counts.s_free).tolist():
    above = int(counts.joint[rule]) * counts.num_rows
    below = int(counts.conditioned[rule]) * int(counts.in_set[rule])
    result[rule] = _log(above, below) if below else math.nan
  return result


def _log(above: int, below: int) -> float:
  """Returns log(above / below), the same on every machine.

  Fifty digits, then one rounding: `math.log` of a rounded quotient would be
  another number next to alpha, and depend on the C library.
  """
  if above == 0:
    return -math.inf
  context = decimal.Context(prec=50)
  ratio = context.divide(decimal.Decimal(above), decimal.Decimal(below))
  return float(ratio.ln(context))
