"""Enclosures of exp(-x) against two independent references."""

import fractions

from absl.testing import parameterized
import hypothesis
import hypothesis.strategies as st

from privjax.mechanisms import intervals
from tests.mechanisms import sampling_checks
from tests.oracles import exact_sampling as oracle

Fraction = fractions.Fraction

_EXPONENTS = st.one_of(
  st.fractions(0, 10_000),
  st.fractions(0, 1, max_denominator=2**20),
  st.integers(1, 300).map(lambda bits: Fraction(1, 2**bits)),
)
_PRECISIONS = st.integers(1, 200)


def _positive_series(x, num_terms):
  """Encloses exp(x) for x in [0, 1] by a partial sum and its remainder."""
  term, total = Fraction(1), Fraction(1)
  for order in range(1, num_terms):
    term *= x / order
    total += term
  return total, total + 2 * term * x / num_terms


def _ends(interval):
  unit = Fraction(2) ** interval.exponent
  return interval.low * unit, interval.high * unit


class ExpNegTest(parameterized.TestCase):
  @hypothesis.given(x=_EXPONENTS, precision=_PRECISIONS)
  def test_contains_the_decimal_reference(self, x, precision):
    hypothesis.assume(x > 0)
    interval = intervals.exp_neg(x, precision)
    reference = oracle.exp(-x)
    problem = sampling_checks.interval_problem(interval, reference, precision)
    self.assertIsNone(problem)

  @hypothesis.given(
    x=st.fractions(0, 1, max_denominator=1000), precision=st.integers(1, 90)
  )
  def test_contains_the_rational_series(self, x, precision):
    """No decimals and no slack: 1 / exp(x) between two exact fractions."""
    below, above = _positive_series(x, 40)
    low, high = _ends(intervals.exp_neg(x, precision))
    self.assertLessEqual(low, 1 / below)
    self.assertGreaterEqual(high, 1 / above)

  @hypothesis.given(x=_EXPONENTS, precision=_PRECISIONS)
  def test_precisions_agree(self, x, precision):
    low, high = _ends(intervals.exp_neg(x, precision))
    fine_low, fine_high = _ends(intervals.exp_neg(x, precision + 60))
    self.assertLessEqual(low, fine_high)
    self.assertLessEqual(fine_low, high)

  def test_one_is_a_point(self):
    for precision in (1, 2, 64):
      self.assertEqual(_ends(intervals.exp_neg(Fraction(0), precision)), (1, 1))

  def test_tiny_and_huge_exponents(self):
    for x in (Fraction(1, 10**60), Fraction(10**5)):
      interval = intervals.exp_neg(x, 64)
      problem = sampling_checks.interval_problem(interval, oracle.exp(-x), 64)
      self.assertIsNone(problem)

  def test_high_precision(self):
    low, high = _ends(intervals.exp_neg(Fraction(1), 4096))
    below, above = _positive_series(Fraction(1), 600)
    self.assertLessEqual(low, 1 / below)
    self.assertGreaterEqual(high, 1 / above)
    self.assertLess((high - low) / low, Fraction(1, 2**4094))

  @parameterized.parameters(
    dict(x=Fraction(-1), precision=8, name='x'),
    dict(x=0.5, precision=8, name='x'),
    dict(x='1', precision=8, name='x'),
    dict(x=Fraction(1), precision=0, name='precision'),
    dict(x=Fraction(1), precision=8.0, name='precision'),
  )
  def test_errors(self, x, precision, name):
    with self.assertRaisesRegex(ValueError, f'{name} must be'):
      intervals.exp_neg(x, precision)


class ArithmeticTest(parameterized.TestCase):
  @hypothesis.given(
    low=st.integers(0, 10**6),
    width=st.integers(0, 10**3),
    exponent=st.integers(-40, 40),
    anchor=st.integers(-60, 60),
    num_bits=st.integers(1, 30),
  )
  def test_cuts_are_outward_and_tight(
    self, low, width, exponent, anchor, num_bits
  ):
    interval = intervals.Interval(low, low + width, exponent)
    begin, end = _ends(interval)
    below, above = intervals.fixed_point(interval, anchor)
    unit = Fraction(2) ** anchor
    self.assertBetween(begin, below * unit, (below + 1) * unit)
    self.assertBetween(end, (above - 1) * unit, above * unit)
    shorter = intervals.cut(interval, num_bits)
    self.assertLessEqual(shorter.low.bit_length(), num_bits)
    self.assertLessEqual(_ends(shorter)[0], begin)
    self.assertGreaterEqual(_ends(shorter)[1], end)

  def test_product(self):
    a, b = intervals.Interval(2, 3, -1), intervals.Interval(5, 7, 4)
    self.assertEqual(intervals.product(a, b), intervals.Interval(10, 21, 3))
