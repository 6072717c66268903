"""Composition bounds: the published table, oracles, and lower bounds."""

import decimal
import fractions
import itertools
import math

from absl.testing import parameterized
import dp_accounting
import hypothesis
from hypothesis import strategies as st
import numpy as np
from scipy import stats

from privjax.mechanisms import accounting

Fraction = fractions.Fraction
_DELTA = '1e-6'
_ALPHA = 1e-6
_BOUNDS = {
  'generic': accounting.generic_optimum,
  'adaptive': accounting.bounded_range_adaptive,
  'batch': accounting.bounded_range_batch,
}
_EPSILONS = st.fractions(
  min_value=Fraction(1, 20), max_value=8, max_denominator=20
)
_DELTAS = st.sampled_from(['1e-9', '1e-6', '1e-3', '0.1'])


def _worst_pair(epsilon: float, t: float) -> tuple[float, float, float]:
  """Probability of loss t, and both losses, of generalized response."""
  high = math.expm1(t - epsilon) / math.expm1(-epsilon)
  return high, t, t - epsilon


def _exact_delta(pairs, target: float) -> float:
  """Enumerates all outcomes of a product of two-outcome pairs."""
  total = 0.0
  for outcome in itertools.product((0, 1), repeat=len(pairs)):
    probability, loss = 1.0, 0.0
    for (high, first, second), low in zip(pairs, outcome):
      probability *= 1 - high if low else high
      loss += second if low else first
    total += probability * -math.expm1(min(target - loss, 0))
  return total


def _simulated_epsilon(losses: np.ndarray, delta: float, rng) -> float:
  """Returns an epsilon that the mechanism exceeds, wrong with 1e-6.

  At each of 40 targets a Bernoulli variable of mean delta(target) is drawn per
  loss, and its Clopper-Pearson lower bound at 1e-6 / 40 compared with delta.
  """
  targets = np.linspace(0, losses.max(), 40)
  uniform = rng.random(len(losses))
  best = 0.0
  for target in targets:
    hits = int((uniform < -np.expm1(np.minimum(target - losses, 0))).sum())
    lower = stats.beta.ppf(_ALPHA / 40, hits, len(losses) - hits + 1)
    if hits and lower > delta:
      best = max(best, float(target))
  return best


class TableTest(parameterized.TestCase):
  @parameterized.parameters(
    ('0.1', 100, 10, 4.77, 2.42, 2.25),
    (1, 16, 16, 16, 11.69, 10.43),
    (1, 100, 100, 83.5, 37.4, 34.8),
    (8, 16, 128, 128, 128, 118),
  )
  def test_published_values(self, epsilon, count, pure, *others):
    total = accounting.pure_sum(epsilon, count=count)
    self.assertEqual(total.epsilon, pure)
    self.assertEqual(total.delta, 0)
    for bound, value in zip(_BOUNDS.values(), others):
      actual = bound(epsilon, count=count, delta=_DELTA)
      digits = 0 if value >= 100 else 1 if value > 20 else 2
      self.assertAlmostEqual(
        float(actual.epsilon), value, delta=0.5 * 10**-digits
      )
      is_pure = actual.theorem == accounting.PURE_SUM
      self.assertEqual(actual.delta, 0 if is_pure else Fraction(1, 10**6))

  @parameterized.parameters(
    ('adaptive', 1, 16, accounting.BOUNDED_RANGE_ZCDP, 'fixed_list'),
    ('adaptive', 8, 16, accounting.PURE_SUM, 'live'),
    ('batch', 8, 16, accounting.BATCH, 'batch'),
    ('generic', 1, 100, accounting.GENERIC, 'fixed_list'),
    ('generic', 8, 1, accounting.GENERIC, 'fixed_list'),
    ('generic', '0.01', 20000, accounting.PURE_ZCDP, 'fixed_list'),
    ('batch', 1, 1001, accounting.BOUNDED_RANGE_ZCDP, 'fixed_list'),
  )
  def test_names_its_theorem_and_scope(self, name, epsilon, count, *expected):
    bound = _BOUNDS[name](epsilon, count=count, delta=_DELTA)
    theorem, scope = expected
    self.assertStartsWith(bound.theorem, theorem)
    self.assertEqual(bound.scope.value, scope)

  def test_conversion_is_the_tight_one(self):
    # The older conversion rho + 2 sqrt(rho ln(1 / delta)) gives 38.8.
    older = 12.5 + 2 * math.sqrt(12.5 * math.log(1e6))
    self.assertAlmostEqual(older, 38.8, delta=0.05)
    ours = accounting.zcdp_epsilon('12.5', delta=_DELTA)
    self.assertAlmostEqual(float(ours), 37.42, delta=0.005)

  @parameterized.parameters(
    ({'epsilon': 0}, 'epsilon'),
    ({'epsilon': -1}, 'epsilon'),
    ({'epsilon': float('nan')}, 'epsilon'),
    ({'epsilon': float('inf')}, 'epsilon'),
    ({'epsilon': True}, 'epsilon'),
    ({'epsilon': []}, 'epsilon'),
    ({'epsilon': [1, 0]}, 'epsilon'),
    ({'count': 0}, 'count'),
    ({'count': True}, 'count'),
    ({'delta': 0}, 'delta'),
    ({'delta': 1}, 'delta'),
    ({'delta': '1e-301'}, 'delta'),
  )
  def test_refuses(self, change, argument):
    arguments = {'epsilon': 1, 'count': 2, 'delta': _DELTA} | change
    for bound in _BOUNDS.values():
      with self.assertRaisesRegex(ValueError, argument):
        bound(**arguments)


class PropertyTest(parameterized.TestCase):
  @hypothesis.given(
    epsilons=st.lists(_EPSILONS, min_size=1, max_size=3),
    count=st.integers(1, 6),
    delta=_DELTAS,
  )
  @hypothesis.settings(max_examples=15)
  def test_list_and_count_forms_are_identical(self, epsilons, count, delta):
    listed = [e for e in epsilons for _ in range(count)]
    shuffled = listed[::-1]
    pure = accounting.pure_sum(epsilons, count=count)
    self.assertEqual(accounting.pure_sum(listed), pure)
    for bound in _BOUNDS.values():
      counted = bound(epsilons, count=count, delta=delta)
      self.assertEqual(bound(listed, delta=delta), counted)
      self.assertEqual(bound(shuffled, delta=delta), counted)

  @hypothesis.given(
    epsilon=_EPSILONS,
    more=st.fractions(
      min_value=Fraction(1, 20), max_value=2, max_denominator=20
    ),
    count=st.integers(1, 40),
    delta=_DELTAS,
  )
  @hypothesis.example(Fraction(1, 5), Fraction(1, 20), 4, '0.1')
  @hypothesis.settings(max_examples=15)
  def test_is_monotone_in_count_and_epsilon(self, epsilon, more, count, delta):
    for bound in _BOUNDS.values():
      here = bound(epsilon, count=count, delta=delta).epsilon
      longer = bound(epsilon, count=count + 1, delta=delta).epsilon
      larger = bound(epsilon + more, count=count, delta=delta).epsilon
      extended = bound([epsilon] * count + [more], delta=delta).epsilon
      # Searches round up; the truth can be equal for counts 2m - 1 and 2m.
      for other in (longer, larger, extended):
        self.assertLessEqual(here, other * Fraction('1.000000001'))
      self.assertLessEqual(here, epsilon * count)

  @hypothesis.given(epsilon=_EPSILONS, count=st.integers(1, 40), delta=_DELTAS)
  @hypothesis.settings(max_examples=20)
  def test_a_batch_never_costs_more(self, epsilon, count, delta):
    batch = accounting.bounded_range_batch(epsilon, count=count, delta=delta)
    cost = accounting.bounded_range_adaptive(epsilon, count=count, delta=delta)
    generic = accounting.generic_optimum(epsilon, count=count, delta=delta)
    self.assertLessEqual(batch.epsilon, cost.epsilon)
    # Bounded range implies pure DP; both searches round up by about 1e-12.
    self.assertLessEqual(
      batch.epsilon, generic.epsilon * Fraction('1.00000001')
    )

  def test_epsilons_are_exact(self):
    eleven = accounting.pure_sum(['1/11'] * 11)
    self.assertEqual(eleven.epsilon, 1)
    self.assertEqual(accounting.pure_sum([0.1] * 3).epsilon, Fraction(3, 10))

  def test_unequal_epsilons_in_a_batch_count_as_the_largest(self):
    mixed = accounting.bounded_range_batch([1, '1/2'] * 8, delta=_DELTA)
    ones = accounting.bounded_range_batch(1, count=16, delta=_DELTA)
    self.assertLessEqual(mixed.epsilon, ones.epsilon)
    self.assertGreaterEqual(
      mixed.epsilon,
      accounting.bounded_range_batch('1/2', count=16, delta=_DELTA).epsilon,
    )

  @parameterized.parameters('2', '1/1000', '1e-12', '300')
  def test_epsilon_range(self, epsilon):
    for bound in _BOUNDS.values():
      one = bound(epsilon, delta='1e-9')
      self.assertBetween(one.epsilon, 0, Fraction(epsilon))


class OracleTest(parameterized.TestCase):
  @parameterized.parameters(('0.3', 7, '1e-3'), (2, 5, '1e-6'), (1, 1, '0.2'))
  def test_generic_is_the_enumerated_optimum(self, epsilon, count, delta):
    e = float(Fraction(epsilon))
    pair = (1 / (1 + math.exp(-e)), e, -e)
    bound = accounting.generic_optimum(epsilon, count=count, delta=delta)
    value, limit = float(bound.epsilon), float(delta)
    self.assertLessEqual(_exact_delta([pair] * count, value), limit)
    below = _exact_delta([pair] * count, value * (1 - 1e-6))
    self.assertGreater(below, limit)

  def test_generic_of_a_mixed_list_is_the_enumerated_optimum(self):
    epsilons = ['1/2', '1/3', '1', '3/4', '1/3']
    pairs = []
    for text in epsilons:
      e = float(Fraction(text))
      pairs.append((1 / (1 + math.exp(-e)), e, -e))
    value = float(accounting.generic_optimum(epsilons, delta='1e-3').epsilon)
    self.assertLessEqual(_exact_delta(pairs, value), 1e-3)
    self.assertGreater(_exact_delta(pairs, value * (1 - 1e-6)), 1e-3)

  def test_a_rounded_lattice_is_sound_and_close(self):
    epsilons = ['1/3', '1/7', '2/11', '1/101', '1/103', '5/109']
    value = float(accounting.generic_optimum(epsilons, delta='1e-2').epsilon)
    pairs = []
    for text in epsilons:
      e = float(Fraction(text))
      pairs.append((1 / (1 + math.exp(-e)), e, -e))
    self.assertLessEqual(_exact_delta(pairs, value), 1e-2)
    self.assertGreater(_exact_delta(pairs, value * (1 - 1e-3)), 1e-2)

  @parameterized.parameters((1, 4, '1e-3'), ('0.2', 6, '1e-2'), (3, 3, '1e-6'))
  def test_batch_covers_every_product_of_worst_pairs(self, epsilon, k, delta):
    e, limit = float(Fraction(epsilon)), float(delta)
    bound = accounting.bounded_range_batch(epsilon, count=k, delta=delta)
    self.assertStartsWith(bound.theorem, accounting.BATCH)
    value = float(bound.epsilon)
    rng = np.random.default_rng(k)
    for _ in range(200):  # Unequal t as well: they must not be worse.
      pairs = [_worst_pair(e, t) for t in rng.uniform(0, e, k)]
      self.assertLessEqual(_exact_delta(pairs, value), limit)
    # Attained: just below, one common t exceeds delta.
    grid = np.linspace(0, e, 2001)[1:-1]
    worst = max(
      _exact_delta([_worst_pair(e, t)] * k, value * (1 - 1e-4)) for t in grid
    )
    self.assertGreater(worst, limit)

  def test_batch_against_sixty_digits(self):
    epsilon, k, delta = Fraction(1), 16, Fraction(1, 10**6)
    value = accounting.bounded_range_batch(epsilon, count=k, delta=delta)
    exact = lambda target: self._decimal_delta(epsilon, k, target)
    self.assertLessEqual(exact(value.epsilon), decimal.Decimal('1e-6'))
    below = value.epsilon * (1 - Fraction(1, 10**8))
    self.assertGreater(exact(below), decimal.Decimal('1e-6'))

  @staticmethod
  def _decimal_delta(epsilon, k, target):
    with decimal.localcontext(prec=60):
      to_decimal = lambda x: decimal.Decimal(x.numerator) / x.denominator
      worst = decimal.Decimal(0)
      for level in range(k):
        t = (target + (level + 1) * epsilon) / (k + 1)
        if not 0 < t < epsilon:
          continue
        high = (1 - to_decimal(t - epsilon).exp()) / (
          1 - to_decimal(-epsilon).exp()
        )
        total = decimal.Decimal(0)
        for i in range(k + 1):
          excess = to_decimal(target - k * t + i * epsilon)
          if excess < 0:
            pmf = math.comb(k, i) * high ** (k - i) * (1 - high) ** i
            total += pmf * (1 - excess.exp())
        worst = max(worst, total)
      return worst

  def test_two_adaptive_steps_exceed_the_batch_optimum(self):
    # Why a live account must not use it: the second t may follow the answer.
    epsilon, delta = 1.0, '0.2'
    batch = accounting.bounded_range_batch(1, count=2, delta=delta)
    target = float(batch.epsilon)
    grid = np.linspace(0, epsilon, 101)
    after = lambda spent: max(
      _exact_delta([_worst_pair(epsilon, t)], target - spent) for t in grid
    )
    adaptive = 0.0
    for t in grid:
      high, first, second = _worst_pair(epsilon, t)
      adaptive = max(adaptive, high * after(first) + (1 - high) * after(second))
    self.assertGreater(adaptive, 0.2029)
    cost = accounting.bounded_range_adaptive(1, count=2, delta=delta)
    self.assertGreater(cost.epsilon, batch.epsilon)

  @parameterized.parameters(('0.1', 100), (1, 16), (1, 100))
  def test_generic_against_dp_accounting(self, epsilon, count):
    pld = dp_accounting.pld.privacy_loss_distribution
    one = pld.from_randomized_response(
      # k-ary response with noise p: epsilon = ln((1 - p / 2) / (p / 2)).
      2 / (1 + math.exp(float(Fraction(epsilon)))),
      2,
      value_discretization_interval=1e-4,
    )
    theirs = one.self_compose(count).get_epsilon_for_delta(1e-6)
    ours = accounting.generic_optimum(epsilon, count=count, delta=_DELTA)
    self.assertAlmostEqual(float(ours.epsilon) / theirs, 1, delta=2e-3)

  @parameterized.parameters(('0.125', '1e-6'), (2, '1e-9'), (8, '0.1'))
  def test_conversion_against_a_grid_of_orders(self, rho, delta):
    ours = float(accounting.zcdp_epsilon(rho, delta=delta))
    r, d = float(Fraction(rho)), float(Fraction(delta))
    a = 1 + np.exp(np.linspace(-8, math.log(1 / d - 1), 200001))
    grid = a * r + np.log1p(-1 / a) - np.log(a * d) / (a - 1)
    self.assertAlmostEqual(ours, grid.min(), delta=1e-6)
    self.assertLessEqual(ours, grid.min() + 1e-12)


class MonteCarloTest(parameterized.TestCase):
  _CASES = ((0.5, 20, 0.01), (1.0, 10, 0.01), (2.0, 6, 0.05))

  def _losses(self, epsilon, count, rng, size=200_000):
    """Losses of the worst product pair, t chosen from a grid by simulation."""
    best, worst = None, -1.0
    for t in np.linspace(0.2, 0.8, 7) * epsilon:
      high, first, second = _worst_pair(epsilon, float(t))
      draws = rng.random((size // 10, count)) < high
      losses = np.where(draws, first, second).sum(axis=1)
      tail = np.quantile(losses, 0.97)
      if tail > worst:
        best, worst = (high, first, second), tail
    high, first, second = best
    draws = rng.random((size, count)) < high
    return np.where(draws, first, second).sum(axis=1)

  @parameterized.parameters(*_CASES)
  def test_no_bound_is_below_simulated_leakage(self, epsilon, count, delta):
    rng = np.random.default_rng(20 + count)
    lower = _simulated_epsilon(self._losses(epsilon, count, rng), delta, rng)
    self.assertGreater(lower, 0)
    costs = [
      float(bound(str(epsilon), count=count, delta=str(delta)).epsilon)
      for bound in _BOUNDS.values()
    ]
    self.assertLessEqual(lower, min(costs))
    # Power: what a bound that forgets most of the releases would say, and a
    # zCDP of epsilon^2/32, are below what was seen.
    forgot = accounting.bounded_range_batch(str(epsilon), delta=str(delta))
    self.assertGreater(lower, float(forgot.epsilon))
    quarter = accounting.zcdp_epsilon(
      Fraction(epsilon) ** 2 / 32 * count, delta=str(delta)
    )
    self.assertGreater(lower, float(quarter))

  @parameterized.parameters(*_CASES)
  def test_adaptive_adversary_stays_below_zcdp(self, epsilon, count, delta):
    rng = np.random.default_rng(count)
    loss = np.zeros(200_000)
    goal = 0.6 * math.sqrt(count) * epsilon
    for step in range(count):
      # Behind the goal: larger steps with less chance; ahead: keep it.
      need = (goal - loss) / (count - step)
      t = np.clip(epsilon / 2 + need / 2, 0.05 * epsilon, 0.95 * epsilon)
      high = np.expm1(t - epsilon) / math.expm1(-epsilon)
      loss += np.where(rng.random(len(loss)) < high, t, t - epsilon)
    lower = _simulated_epsilon(loss, delta, rng)
    cost = accounting.bounded_range_adaptive(
      str(epsilon), count=count, delta=str(delta)
    )
    self.assertGreater(lower, 0)
    self.assertLessEqual(lower, float(cost.epsilon))

  def test_exponential_mechanism_has_the_bounded_range(self):
    # The pair that the bounds are about is one the mechanism attains.
    rng = np.random.default_rng(0)
    epsilon, worst = 1.0, 0.0
    for _ in range(200):
      utility = rng.integers(0, 2, 5)
      other = rng.integers(0, 2, 5)
      law = np.exp(epsilon * utility / 2)
      neighbor = np.exp(epsilon * other / 2)
      loss = np.log(law / law.sum()) - np.log(neighbor / neighbor.sum())
      worst = max(worst, np.ptp(loss))
    self.assertAlmostEqual(worst, epsilon, delta=1e-12)


class FilterTest(parameterized.TestCase):
  @parameterized.parameters((5, '1e-6'), ('1/10', '1e-9'), (100, '1e-6'))
  def test_budget_is_the_largest_that_converts(self, epsilon, delta):
    rho = accounting.zcdp_budget(epsilon, delta=delta)
    exact = Fraction(epsilon)
    self.assertLessEqual(accounting.zcdp_epsilon(rho, delta=delta), exact)
    more = rho * (1 + Fraction(1, 10**8))
    self.assertGreater(accounting.zcdp_epsilon(more, delta=delta), exact)

  def test_admits_up_to_the_budget_exactly(self):
    account = accounting.ZcdpFilter(budget=Fraction(1, 2))
    cost = accounting.zcdp_cost(1, bounded_range=True)
    self.assertEqual(cost, Fraction(1, 8))
    for _ in range(4):
      account = account.spend(cost)
    self.assertEqual(account.remaining, 0)
    self.assertFalse(account.admits(Fraction(1, 10**30)))
    with self.assertRaisesRegex(ValueError, 'nothing was spent'):
      account.spend(cost)

  def test_a_cost_that_is_not_positive_is_refused(self):
    account = accounting.ZcdpFilter(budget=Fraction(1))
    for cost in (Fraction(0), Fraction(-1)):
      with self.assertRaisesRegex(ValueError, 'cost'):
        account.spend(cost)

  def test_guarantee_is_of_the_budget(self):
    account = accounting.ZcdpFilter.for_guarantee(5, delta=_DELTA)
    before = account.guarantee(delta=_DELTA)
    after = account.spend(Fraction(1, 8)).guarantee(delta=_DELTA)
    self.assertEqual(before, after)
    self.assertEqual(before.scope, accounting.Scope.LIVE)
    self.assertBetween(before.epsilon, Fraction('4.9999999'), 5)

  def test_pure_mechanisms_cost_four_times_as_much(self):
    self.assertEqual(
      accounting.zcdp_cost(3, bounded_range=False),
      4 * accounting.zcdp_cost(3, bounded_range=True),
    )

  def test_records_are_frozen(self):
    with self.assertRaises(AttributeError):
      accounting.pure_sum(1).epsilon = 0
