"""What several releases cost together, and which theorem says so.

Four ways to compose releases about one data set, from the safest to the one
with the most conditions. Every answer is a `Composition`: its epsilon, delta,
theorem, and the `Scope` in which that theorem holds.

  pure_sum                sum of epsilon_i, delta = 0                 live
  generic_optimum         any epsilon_i-DP mechanisms                 fixed list
  bounded_range_adaptive  exponential mechanisms, epsilon^2/8-zCDP    fixed list
  bounded_range_batch     exponential mechanisms, all fixed at once   batch

A live account, where the next epsilon may depend on the answers so far, uses
the pure sum or a `ZcdpFilter` only.

>>> paid = bounded_range_adaptive(1, count=100, delta='1e-6')
>>> f'{float(paid.epsilon):.1f}', paid.scope.value
('37.4', 'fixed_list')
>>> float(bounded_range_adaptive(8, count=16, delta='1e-6').epsilon)
128.0

Inputs are public. Epsilons, deltas and rhos are exact Fractions; a bound
is computed in floating point is rounded up, by about 1e-10 of its size.

References:
  Kairouz, Oh & Viswanath (2015), "The composition theorem for DP", Theorem 3.3.
  Bun & Steinke (2016), "Concentrated differential privacy", Prop. 1.4.
  Rogers, Roth, Ullman & Vadhan (2016), "Privacy odometers and filters".
  Canonne, Kamath & Steinke (2020), "The discrete Gaussian for DP", Prop. 12.
  Dong, Durfee & Rogers (2020), "Optimal DP composition for ...", Section 5.
  Cesar & Rogers (2021), "Bounding, concentrating, and truncating".
  Feldman & Zrnic (2021), "Individual privacy accounting via a Renyi filter".
"""

import collections
from collections.abc import Callable, Sequence
import dataclasses
import decimal
import enum
import fractions
import math
from typing import NamedTuple

import numpy as np

from privjax import _validate

Fraction = fractions.Fraction
Rational = int | str | Fraction
Epsilons = Rational | Sequence[Rational]

PURE_SUM = 'Rogers, Roth, Ullman & Vadhan (2016), pure sum of epsilons'
GENERIC = 'Kairouz, Oh & Viswanath (2015), Theorem 3.3'
PURE_ZCDP = 'Bun & Steinke (2016), Prop. 1.4: epsilon^2/2-zCDP'
BOUNDED_RANGE_ZCDP = 'Cesar & Rogers (2021): bounded range, epsilon^2/8-zCDP'
BATCH = 'Dong, Durfee & Rogers (2020), Section 5'
FILTER = 'Feldman & Zrnic (2021), Renyi filter at every order'
CONVERSION = 'Canonne, Kamath & Steinke (2020), Prop. 12'

_MAX_BATCH = 1000  # The optimum takes count^2 work per step of the search.
_MAX_LATTICE = 2**14
_MIN_DELTA = 1e-300  # Below, 1 / delta leaves the range of a float.
# A relative bound on the rounding of a float64 delta. All terms are positive,
# and a log probability that matters is at most ~1500 in its parts, so that the
# true error stays under 1e-11 for the sizes above.
_DELTA_SLACK = 1e-9
_DIGITS = 60
_EPSILON_SLACK = decimal.Decimal('1e-30')


class Scope(enum.Enum):
  """What may depend on earlier answers.

  LIVE: everything, epsilon and the time to stop included.
  FIXED_LIST: the mechanisms; the list of epsilons is fixed in advance.
  BATCH: nothing; mechanisms and epsilons are fixed in advance.
  """

  LIVE = 'live'
  FIXED_LIST = 'fixed_list'
  BATCH = 'batch'


class Composition(NamedTuple):
  """An (epsilon, delta) bound on several releases together.

  Attributes:
    epsilon: exact, >= 0; rounded up where the theorem gives a real number.
    delta: exact, in [0, 1).
    theorem: the source that the number rests on.
    scope: what may depend on earlier answers.
  """

  epsilon: Fraction
  delta: Fraction
  theorem: str
  scope: Scope


def pure_sum(epsilon: Epsilons, *, count: int = 1) -> Composition:
  """Returns the sum of the epsilons, exact.

  Args:
    epsilon: one epsilon > 0 or a sequence of them.
    count: how often each of them is spent.

  Formal guarantees:
    Epsilon-DP for mechanisms that are each epsilon_i-DP for one neighboring
    relation, chosen with knowledge of all earlier answers. An account that
    stops before the sum passes a fixed budget is budget-DP.

  Raises:
    ValueError: on an epsilon that is not a finite number > 0, an empty
      sequence, or a count below 1.
  """
  total = _total(_counts(epsilon, count))
  return Composition(total, Fraction(0), PURE_SUM, Scope.LIVE)


def generic_optimum(
  epsilon: Epsilons, *, delta: Rational, count: int = 1
) -> Composition:
  """Returns the optimal composition of arbitrary pure-DP mechanisms.

  Each mechanism is dominated by randomized response, whose privacy loss is
  +epsilon_i with probability 1 / (1 + exp(-epsilon_i)) and else -epsilon_i.
  With L the sum of independent losses

    delta(epsilon) = E[(1 - exp(epsilon - L))_+].

  Losses lie on the lattice of the common divisor of the epsilons. Beyond
  16,384 points epsilons are first rounded up to a coarser one, which is sound
  but makes the bound of a mixed list loose by a relative 1e-4 per entry.

  Args:
    epsilon: one epsilon > 0 or a sequence of them.
    delta: in (0, 1).
    count: how often each of them is spent.

  Returns:
    The smallest of this, the pure sum and epsilon^2/2-zCDP; the last alone
    beyond 16,384 releases. The record's theorem says which.

  Formal guarantees:
    (epsilon, delta)-DP for mechanisms chosen adaptively under a list of
    epsilons that was fixed in advance.
  """
  spent, bound = _counts(epsilon, count), _delta(delta)
  zcdp = _fixed_zcdp(spent, bound, bounded_range=False)
  fallback = [pure_sum(epsilon, count=count), zcdp]
  if spent.total() > _MAX_LATTICE:
    return _smallest(fallback)
  unit, steps = _lattice(spent)
  pmf, loss = _response_losses(unit, steps)
  leak = lambda eps: float(pmf @ -np.expm1(np.minimum(eps - loss, 0)))
  optimum = _search(leak, loss[0], float(bound))
  generic = Composition(optimum, bound, GENERIC, Scope.FIXED_LIST)
  return _smallest([*fallback, generic])


def bounded_range_adaptive(
  epsilon: Epsilons, *, delta: Rational, count: int = 1
) -> Composition:
  """Returns the cost of exponential mechanisms, chosen one after the other.

  The epsilon-DP exponential mechanism is epsilon-bounded-range (its privacy
  loss spans at most epsilon), hence epsilon^2/8-zCDP by Hoeffding's lemma;
  zCDP adds up, and `zcdp_epsilon` converts the sum.

  Args:
    epsilon: one epsilon > 0 or a sequence of them.
    delta: in (0, 1).
    count: how often each of them is spent.

  Returns:
    The smaller of this and the pure sum; the record's theorem says which.

  Formal guarantees:
    (epsilon, delta)-DP for exponential mechanisms chosen adaptively under a
    list of epsilons that was fixed in advance. Not for permute-and-flip or
    any other mechanism that is not of bounded range.
  """
  spent, bound = _counts(epsilon, count), _delta(delta)
  zcdp = _fixed_zcdp(spent, bound, bounded_range=True)
  return _smallest([pure_sum(epsilon, count=count), zcdp])


def bounded_range_batch(
  epsilon: Epsilons, *, delta: Rational, count: int = 1
) -> Composition:
  """Returns the optimum for a batch of exponential mechanisms fixed at once.

  For k mechanisms of one epsilon the worst pairs have loss t with probability
  p_t = (1 - exp(t - epsilon)) / (1 - exp(-epsilon)) and else t - epsilon, with
  one t in [0, epsilon] for all; with i of them on the lower loss

    delta(e) = max_l sum_i C(k,i) p_t^(k-i) (1 - p_t)^i
                 (1 - exp(e - k t + i epsilon))_+
      at t = (e + (l + 1) epsilon) / (k + 1), l = 0..k-1.

  Args:
    epsilon: one epsilon > 0 or a sequence of them. Different epsilons are all
      raised to the largest, which is sound but not optimal.
    delta: in (0, 1).
    count: how often each of them is spent.

  Returns:
    The smallest of this, the pure sum and `bounded_range_adaptive`; without
    this beyond 1,000 releases. The record's theorem says which.

  Formal guarantees:
    (epsilon, delta)-DP for exponential mechanisms that are all fixed before
    the first answer. Adaptive choices can leak more than this (the same paper,
    Section 6): never use it for a live account.
  """
  spent, bound = _counts(epsilon, count), _delta(delta)
  fallback = bounded_range_adaptive(epsilon, delta=delta, count=count)
  k, largest = spent.total(), max(spent)
  if k > _MAX_BATCH:
    return fallback
  leak = lambda eps: _batch_delta(float(largest), k, eps)
  optimum = _search(leak, float(k * largest), float(bound))
  batch = Composition(optimum, bound, BATCH, Scope.BATCH)
  return _smallest([fallback, batch])


def zcdp_cost(epsilon: Rational, *, bounded_range: bool) -> Fraction:
  """Returns the rho of one epsilon-DP mechanism, exact.

  Args:
    epsilon: > 0.
    bounded_range: whether the mechanism is the exponential mechanism (or
      another of bounded range): epsilon^2/8. Else epsilon^2/2.
  """
  exact = _validate.rational(epsilon=epsilon)
  return exact * exact / (8 if bounded_range else 2)


def zcdp_epsilon(rho: Rational, *, delta: Rational) -> Fraction:
  """Returns an epsilon such that rho-zCDP implies (epsilon, delta)-DP.

    epsilon = inf_{a > 1} a rho + ln(1 - 1/a) - ln(a delta) / (a - 1)

  The minimum solves rho (a - 1)^2 = -ln(a delta). Any a is sound: a is found
  in floating point, the formula is evaluated with 60 digits and rounded up.

  Args:
    rho: > 0.
    delta: in (0, 1).
  """
  exact = _validate.rational(rho=rho)
  return _convert(exact, _delta(delta))


def zcdp_budget(epsilon: Rational, *, delta: Rational) -> Fraction:
  """Returns a rho, within 1e-9 of the largest, with (epsilon, delta)-DP.

  Args:
    epsilon: > 0.
    delta: in (0, 1).
  """
  target, bound = _validate.rational(epsilon=epsilon), _delta(delta)
  fits = lambda rho: _convert(rho, bound) <= target
  low = target
  while not fits(low):
    low /= 2
  high = 2 * low
  while fits(high):
    low, high = high, 2 * high
  for _ in range(32):
    middle = (low + high) / 2
    low, high = (middle, high) if fits(middle) else (low, middle)
  return low


@dataclasses.dataclass(frozen=True, kw_only=True)
class ZcdpFilter:
  """A fixed zCDP budget for releases whose cost may depend on the answers.

  Attributes:
    budget: rho, fixed before the first release.
    spent: the exact sum of the costs so far.

  Formal guarantees:
    If every release that `admits` refuses is not made, all releases together
    are budget-zCDP, whatever the costs, the mechanisms and the time to stop
    depended on: the Renyi filter holds at each order, and a rho_i-zCDP
    mechanism costs rho_i times the order. The bound is the *budget's*; the
    amount spent so far is bookkeeping and bounds nothing by itself.
  """

  budget: Fraction
  spent: Fraction = Fraction(0)

  @classmethod
  def for_guarantee(cls, epsilon: Rational, *, delta: Rational) -> 'ZcdpFilter':
    """Returns an unspent filter whose budget implies (epsilon, delta)-DP."""
    return cls(budget=zcdp_budget(epsilon, delta=delta))

  @property
  def remaining(self) -> Fraction:
    """What is left of the budget."""
    return self.budget - self.spent

  def admits(self, cost: Fraction) -> bool:
    """Returns whether a release of this cost fits."""
    return _validate.rational(cost=cost) <= self.remaining

  def spend(self, cost: Fraction) -> 'ZcdpFilter':
    """Returns the filter after one release, or raises if it does not fit."""
    if not self.admits(cost):
      raise ValueError(
        f'cost must be at most the remaining {self.remaining}, got {cost}; '
        'nothing was spent'
      )
    return dataclasses.replace(self, spent=self.spent + cost)

  def guarantee(self, *, delta: Rational) -> Composition:
    """Returns the (epsilon, delta) view of the whole budget."""
    bound = _delta(delta)
    theorem = f'{FILTER}; {CONVERSION}'
    epsilon = _convert(self.budget, bound)
    return Composition(epsilon, bound, theorem, Scope.LIVE)


def _counts(epsilon: Epsilons, count: int) -> collections.Counter:
  """Returns how often each exact epsilon is spent: one form for both inputs."""
  _validate.integer(1, count=count)
  if isinstance(epsilon, Sequence) and not isinstance(epsilon, str):
    items = list(epsilon)
  else:
    items = [epsilon]
  if not items:
    raise ValueError('epsilon must have at least one entry, got none')
  counts = collections.Counter(_validate.rational(epsilon=e) for e in items)
  return collections.Counter({e: n * int(count) for e, n in counts.items()})


def _delta(delta: Rational) -> Fraction:
  exact = _validate.rational(delta=delta)
  if not _MIN_DELTA <= exact < 1:
    raise ValueError(f'delta must be in [{_MIN_DELTA}, 1), got {delta!r}')
  return exact


def _total(spent: collections.Counter) -> Fraction:
  return sum((e * n for e, n in spent.items()), Fraction(0))


def _smallest(bounds: list[Composition]) -> Composition:
  """Returns the first smallest bound."""
  return min(bounds, key=lambda bound: bound.epsilon)


def _fixed_zcdp(spent, delta, *, bounded_range: bool) -> Composition:
  costs = (
    n * zcdp_cost(e, bounded_range=bounded_range) for e, n in spent.items()
  )
  rho = sum(costs, Fraction(0))
  theorem = BOUNDED_RANGE_ZCDP if bounded_range else PURE_ZCDP
  return Composition(
    _convert(rho, delta), delta, f'{theorem}; {CONVERSION}', Scope.FIXED_LIST
  )


def _convert(rho: Fraction, delta: Fraction) -> Fraction:
  """Evaluates the conversion at the best order, rounded up, at least 0."""
  minus_one = Fraction(_best_order_minus_one(float(rho), delta))
  order = 1 + minus_one
  with decimal.localcontext(prec=_DIGITS):
    value = (
      _decimal(order * rho)
      + _decimal(minus_one / order).ln()
      - _decimal(order * delta).ln() / _decimal(minus_one)
    )
    value += _EPSILON_SLACK * (1 + abs(value))
  return max(Fraction(value), Fraction(0))


def _best_order_minus_one(rho: float, delta: Fraction) -> float:
  """Solves rho x^2 + ln(1 + x) + ln(delta) = 0, increasing in x > 0."""
  log_delta = math.log(delta)
  low, high = -80.0, math.log(1 / delta - 1)
  for _ in range(100):
    middle = (low + high) / 2
    x = math.exp(middle)
    below = rho * x * x + math.log1p(x) + log_delta < 0
    low, high = (middle, high) if below else (low, middle)
  return math.exp(low)


def _decimal(value: Fraction) -> decimal.Decimal:
  return decimal.Decimal(value.numerator) / decimal.Decimal(value.denominator)


def _search(
  delta_fn: Callable[[float], float], pure: float, delta: float
) -> Fraction:
  """Returns the upper end of a bracket of the smallest sound epsilon."""
  low, high = 0.0, math.nextafter(pure, math.inf)
  for _ in range(50):
    middle = (low + high) / 2
    sound = delta_fn(middle) * (1 + _DELTA_SLACK) + _MIN_DELTA / 2 <= delta
    low, high = (low, middle) if sound else (middle, high)
  return Fraction(high)


def _lattice(spent: collections.Counter) -> tuple[float, list[int]]:
  """Returns a unit and each epsilon in units of it, rounded up."""
  total = _total(spent)
  unit = Fraction(
    math.gcd(*(e.numerator for e in spent)),
    math.lcm(*(e.denominator for e in spent)),
  )
  if total / unit > _MAX_LATTICE:
    unit = total / _MAX_LATTICE
  steps = [math.ceil(e / unit) for e, n in spent.items() for _ in range(n)]
  return float(unit), sorted(steps)


def _response_losses(
  unit: float, steps: list[int]
) -> tuple[np.ndarray, np.ndarray]:
  """Returns probabilities and descending losses, `[sum(steps) + 1]` each."""
  pmf = np.ones(1)
  for step in steps:
    low = math.exp(-step * unit) / (1 + math.exp(-step * unit))
    grown = np.zeros(len(pmf) + step)
    grown[: len(pmf)] += pmf * (1 / (1 + math.exp(-step * unit)))
    grown[step:] += pmf * low
    pmf = grown
  return pmf, unit * np.arange(sum(steps), -sum(steps) - 1, -2)


def _batch_delta(epsilon: float, k: int, target: float) -> float:
  """Returns the delta of k epsilon-bounded-range mechanisms, fixed at once."""
  index = np.arange(k + 1)
  log_choose = np.zeros(k + 1)
  log_choose[1:] = np.cumsum(np.log((k - index[:-1]) / index[1:]))
  t = (target + (index[:-1] + 1) * epsilon) / (k + 1)
  t = t[(t > 0) & (t < epsilon)]  # At the ends the loss is constantly zero.
  if not t.size:
    return 0.0
  scale = np.log(-np.expm1(-epsilon))
  log_high = np.log(-np.expm1(t - epsilon)) - scale
  log_low = t - epsilon + np.log(-np.expm1(-t)) - scale
  log_pmf = log_choose + np.outer(log_high, k - index)
  log_pmf += np.outer(log_low, index)
  excess = target - np.add.outer(k * t, -index * epsilon)
  terms = np.exp(log_pmf) * -np.expm1(np.minimum(excess, 0))
  return float(terms.sum(axis=1).max())
