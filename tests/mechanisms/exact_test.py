"""The exact exponential mechanism: law, support, errors, agreement."""

import fractions
import itertools
import math
import random
from unittest import mock

from absl.testing import parameterized
import hypothesis
import hypothesis.strategies as st
import numpy as np
import pytest
from scipy import stats

from privjax import mechanisms
from privjax.mechanisms import entropy
from privjax.mechanisms import exact
from privjax.mechanisms import grouping
from privjax.mechanisms import inversion
from tests import statistics
from tests.mechanisms import sampling_checks
from tests.oracles import exact_sampling as oracle

Fraction = fractions.Fraction


def _sample(utility, **kwargs):
  settings = dict(levels=(0, 1), epsilon=1, sensitivity=1) | kwargs
  return exact.sample(np.asarray(utility), **settings)


def _masses(utility, depth, **kwargs):
  draw = lambda source: _sample(utility, **kwargs, source=source)
  return sampling_checks.tree(draw, depth)


class LawTest(parameterized.TestCase):
  def test_two_candidates(self):
    """P(1) = 0.6224593312: the docstring's law, off a decision tree."""
    found = _masses([0, 1], 40)
    self.assertEqual(found.undecided, Fraction(1, 2**40))
    self.assertAlmostEqual(float(found.masses[1]), 0.6224593312, delta=5e-11)
    self.assertAlmostEqual(
      float(found.masses[1]), 1 / (1 + math.exp(-0.5)), delta=1e-11
    )

  @hypothesis.settings(max_examples=25)
  @hypothesis.given(
    candidates=st.lists(
      st.tuples(st.integers(0, 4), st.integers(0, 3)), min_size=1, max_size=4
    ),
    scale=st.fractions(Fraction(1, 100), 2, max_denominator=100),
    precision=st.sampled_from((2, 64)),
  )
  def test_decision_trees(self, candidates, scale, precision):
    utility, weights = map(list, zip(*candidates))
    hypothesis.assume(sum(weights))
    case = sampling_checks.Case(utility, tuple(range(5)), scale, weights)
    with mock.patch.object(inversion, '_FIRST_PRECISION', precision):
      found = sampling_checks.tree(sampling_checks.exponential_draw(case), 9)
    law = oracle.law(utility, scale, weights=weights)
    problems = sampling_checks.tree_violations(
      found, law, most_undecided=Fraction(1, 4)
    )
    self.assertEqual(problems, [])

  @hypothesis.settings(max_examples=30)
  @hypothesis.given(
    candidates=st.lists(
      st.tuples(st.integers(-9, 9), st.integers(0, 2**40)),
      min_size=1,
      max_size=12,
    ),
    epsilon=st.fractions(grouping.MIN_EPSILON, grouping.MAX_EPSILON),
    precision=st.integers(1, 100),
  )
  def test_boundaries_enclose_the_cumulative_law(
    self, candidates, epsilon, precision
  ):
    utility, weights = map(list, zip(*candidates))
    hypothesis.assume(sum(weights))
    scale = grouping.scale(epsilon, '0.96', 10)
    grouped = grouping.group(
      np.array(utility), range(-9, 11), np.array(weights)
    )
    low, high, bits = exact._boundaries(grouped, scale, precision)
    law = oracle.law(utility, scale, weights=weights)
    by_level = [
      sum((p for p, value in zip(law, utility) if value == level), Fraction(0))
      for level in range(-9, 11)
    ]
    unit = Fraction(1, 2**bits)
    for begin, end, truth in zip(low, high, itertools.accumulate(by_level)):
      self.assertLessEqual(begin * unit, truth + oracle.LAW_ERROR)
      self.assertGreaterEqual(end * unit, truth - oracle.LAW_ERROR)
      self.assertLessEqual(end - begin, 2)
    self.assertEqual(low[-1], 2**bits)
    self.assertEqual(low, sorted(low))
    self.assertEqual(high, sorted(high))

  def test_only_the_ratio_matters(self):
    """Equal bits, equal candidate: nothing is read through a float."""
    utility = np.array([0, 3, 5, 5])
    draw = lambda factor=1, **kwargs: [
      exact.sample(
        utility * factor,
        levels=[0, 3 * factor, 5 * factor],
        source=entropy.seeded(seed),
        **kwargs,
      )
      for seed in range(50)
    ]
    expected = draw(epsilon=1, sensitivity=1)
    self.assertLen({drawn.index for drawn in expected}, 4)
    self.assertEqual(expected, draw(epsilon='2', sensitivity=Fraction(2)))
    self.assertEqual(
      expected, draw(factor=100, epsilon='1.0', sensitivity=1, denominator=100)
    )
    self.assertNotEqual(expected, draw(epsilon=10, sensitivity=1))

  def test_levels_that_do_not_occur_do_not_matter(self):
    utility = np.array([10, 12, 12, 14])
    draw = lambda levels: [
      _sample(utility, levels=levels, source=entropy.seeded(seed))
      for seed in range(50)
    ]
    expected = draw((10, 12, 14))
    for levels in (range(100), [10, 11, 12, 14, 2**60], range(-5, 15)):
      self.assertEqual(draw(levels), expected)

  def test_wide_levels_take_the_other_way(self):
    """Beyond the direct map, positions come from a binary search."""
    utility = np.array([0, 2**40, 5, 2**40])
    grouped = grouping.group(utility, [0, 5, 7, 2**40])
    self.assertEqual(grouped.level.tolist(), [0, 3, 1, 3])
    self.assertEqual(grouped.totals, [1, 1, 0, 2])

  @hypothesis.given(
    candidates=st.lists(
      st.tuples(st.integers(0, 3), st.integers(0, 5)), min_size=1, max_size=12
    )
  )
  def test_members_share_a_level_by_weight(self, candidates):
    level, weights = map(np.array, zip(*candidates))
    hypothesis.assume(weights.sum())
    grouped = grouping.group(level, range(4), weights)
    for position, total in enumerate(grouped.totals):
      ranks = [grouping.member(grouped, position, r) for r in range(total)]
      counts = np.bincount(ranks, minlength=len(level)) if ranks else 0 * level
      np.testing.assert_array_equal(
        counts, np.where(level == position, weights, 0)
      )


class SupportTest(parameterized.TestCase):
  def test_epsilon_100_reaches_index_0(self):
    """P(0) = 1.9e-22: 73 zeros, and no fewer."""
    law = oracle.law([0, 1], Fraction(50))
    self.assertEqual(f'{float(law[0]):.1e}', '1.9e-22')
    drawn = _sample([0, 1], epsilon=100, source=entropy.injected('0' * 100))
    self.assertEqual((drawn.index, drawn.bits_used), (0, 73))
    self.assertEqual(-math.floor(math.log2(law[0])), 73)
    with self.assertRaises(entropy.BitsExhaustedError):
      _sample([0, 1], epsilon=100, source=entropy.injected('0' * 72))

  @parameterized.parameters('1e4', Fraction(1, 2**40))
  def test_every_level_is_reachable(self, epsilon):
    """A string inside each level's interval leads to it."""
    levels = (0, 1, 2, 3)
    scale = grouping.scale(epsilon, 3, 1)
    law = oracle.law(levels, scale)
    for level in levels:
      begin = sum(law[:level], Fraction(0))
      num_bits = 12_000
      prefix = int((begin + law[level] / 2) * 2**num_bits)
      source = entropy.injected(f'{prefix:0{num_bits}b}')
      drawn = _sample(
        levels, levels=levels, epsilon=epsilon, sensitivity=3, source=source
      )
      self.assertEqual(drawn.index, level)

  def test_one_candidate_reads_nothing(self):
    drawn = _sample([1], source=entropy.injected(''))
    self.assertEqual(drawn, exact.Draw(0, certified=False, bits_used=0))

  def test_one_candidate_on_the_support_reads_nothing(self):
    drawn = _sample([0, 1], weights=[2**62, 0], source=_Zeros())
    self.assertEqual(drawn.index, 0)

  def test_huge_weights(self):
    weights = np.array([1, 2**63 - 3, 1])
    for source, index in ((_Zeros(), 0), (_Ones(), 2)):
      drawn = _sample([1, 1, 1], weights=weights, source=source)
      self.assertEqual(drawn.index, index)

  def test_four_million_candidates(self):
    levels = np.arange(0, 160, 10)
    utility = np.resize(levels, 4_000_000)
    settings = dict(levels=levels, epsilon='0.5', denominator=100)
    drawn = _sample(utility, **settings, source=entropy.seeded(0))
    law = oracle.law(levels.tolist(), grouping.scale('0.5', 1, 100))
    # The same bits in a small problem of equal proportions.
    small = _sample(levels, **settings, source=entropy.seeded(0))
    self.assertEqual(utility[drawn.index], levels[small.index])
    self.assertGreater(min(law), Fraction(1, 25))


class _Zeros:
  def bits(self, count):
    del count
    return 0


class _Ones:
  def bits(self, count):
    return 2**count - 1


class _Refusing:
  def bits(self, count):
    raise AssertionError(f'{count} bits were read')


class ErrorTest(parameterized.TestCase):
  def _check(self, message, utility=(0, 1), **kwargs):
    with self.assertRaisesRegex(ValueError, message):
      _sample(utility, **kwargs, source=_Refusing())

  @parameterized.named_parameters(
    ('empty', np.array([], np.int64)),
    ('two_dimensional', np.array([[0, 1]])),
    ('scalar', np.array(1)),
    ('float', np.array([0.0, 1.0])),
    ('nan', np.array([0, np.nan])),
    ('bool', np.array([False, True])),
    ('object', np.array([0, None])),
    ('unsigned_64', np.array([0, 1], np.uint64)),
  )
  def test_utility(self, utility):
    self._check('utility must be a non-empty 1-D array', utility)

  @parameterized.parameters(([0, 2],), ([-1, 0],), ([0, 5],))
  def test_a_utility_outside_the_levels_is_not_shown(self, utility):
    self._check(
      r'^every utility must be one of levels; nothing was drawn\. The levels '
      r'are public: name all values that any private input can lead to$',
      utility,
      levels=(0, 1, 3),
    )

  @parameterized.product(
    name=('epsilon', 'sensitivity'),
    value=(0, -1, '0', math.nan, math.inf, 'nan', 'inf', True, 'abc', None),
  )
  def test_parameters(self, name, value):
    self._check(f'{name} must be .* > 0', **{name: value})

  @parameterized.parameters(
    Fraction(1, 2**40) - Fraction(1, 2**80), '1e-13', '10000.0000001', 10**5
  )
  def test_epsilon_out_of_range(self, epsilon):
    self._check(r'epsilon must be in \[2\*\*-40, 10\*\*4\]', epsilon=epsilon)

  @parameterized.parameters(0, -1, 1.5, True)
  def test_denominator(self, value):
    self._check('denominator must be an integer', denominator=value)

  @parameterized.named_parameters(
    ('negative', [1, -1], r'weights must be >= 0, got -1'),
    ('zero', [0, 0], r'weights must sum to 1 to 2\*\*63 - 1, got 0'),
    ('too_large', [2**62, 2**62], r'weights must sum to 1 to'),
    ('float', [0.5, 0.5], 'weights must be a non-empty 1-D array of int'),
    ('nan', [1, math.nan], 'weights must be a non-empty 1-D array of int'),
    ('bool', [True, False], 'weights must be a non-empty 1-D array of int'),
    ('longer', [1, 1, 1], r'weights must have shape \(2,\), got \(3,\)'),
    ('two_dimensional', [[1, 1]], r'weights must have shape \(2,\)'),
  )
  def test_weights(self, weights, message):
    self._check(message, weights=np.array(weights))

  @parameterized.named_parameters(
    ('empty', (), 'levels must be a non-empty 1-D array'),
    ('descending', (1, 0), 'levels must be ascending'),
    ('repeated', (0, 1, 1), 'levels must be ascending'),
    ('float', (0.0, 1.0), 'levels must be a non-empty 1-D array'),
    ('huge', (0, 2**62), r'levels must be in \[-2\*\*61, 2\*\*61\]'),
    ('beyond_int64', (0, 2**70), 'levels must be a non-empty 1-D array'),
  )
  def test_levels(self, levels, message):
    self._check(message, levels=levels)


class AgreementTest(parameterized.TestCase):
  """Two exact samplers that share no line, and the law in float64.

  Power 1 - 1e-9 at least against an epsilon that is off by a factor 2.
  """

  _NUM_DRAWS = 3_000
  _LEVELS = (0, 20, 70, 86, 96)

  def setUp(self):
    super().setUp()
    rng = np.random.default_rng(0)
    self.utility = rng.choice(self._LEVELS, size=80)
    self.weights = rng.integers(1, 4, size=80)

  def _law(self, epsilon):
    log_law = mechanisms.log_law(
      self.utility,
      epsilon=epsilon,
      sensitivity=1,
      denominator=100,
      log_base_measure=np.log(self.weights),
    )
    return statistics.level_law(np.exp(log_law), self.utility)

  def _ours(self):
    source = entropy.seeded(0, 'agreement')
    return [
      exact.sample(
        self.utility,
        levels=self._LEVELS,
        epsilon=4,
        sensitivity=1,
        denominator=100,
        weights=self.weights,
        source=source,
      ).index
      for _ in range(self._NUM_DRAWS)
    ]

  def _oracle(self):
    generator = random.Random(1)
    return [
      oracle.exponential_mechanism(
        self.utility.tolist(),
        Fraction(4, 200),
        lambda: generator.getrandbits(1),
        weights=self.weights.tolist(),
      )
      for _ in range(self._NUM_DRAWS)
    ]

  def test_they_agree(self):
    law = self._law(4)
    counts = []
    for draws in (self._ours(), self._oracle()):
      found = statistics.level_counts(np.array(draws), self.utility)
      counts.append(found)
      self.assertFalse(statistics.chi_square_rejects(found, law))
      for epsilon in (2, 8):
        mutant = self._law(epsilon)
        self.assertTrue(statistics.chi_square_rejects(found, mutant))
        power = statistics.chi_square_power(
          mutant, law, num_draws=self._NUM_DRAWS
        )
        self.assertGreater(power, 1 - 1e-9)
    p_value = stats.chi2_contingency(np.array(counts)).pvalue
    self.assertGreater(p_value, statistics.ALPHA)


@pytest.mark.peers
class OpenDPTest(parameterized.TestCase):
  """A third implementation: report noisy max with Gumbel noise."""

  def test_it_agrees(self):
    dp = pytest.importorskip('opendp.prelude')
    dp.enable_features('contrib')
    utility = np.repeat([0, 1, 2], [10, 5, 2])
    measurement = dp.m.make_noisy_max(
      dp.vector_domain(dp.atom_domain(T='i64')),
      dp.linf_distance(T='i64'),
      dp.zero_concentrated_divergence(),
      scale=2.0,
    )
    num_draws = 5_000
    draws = np.array([measurement(utility) for _ in range(num_draws)])
    counts = statistics.level_counts(draws, utility)
    laws = [
      statistics.level_law(
        np.exp(mechanisms.log_law(utility, epsilon=epsilon, sensitivity=1)),
        utility,
      )
      for epsilon in (1, 2)
    ]
    self.assertFalse(statistics.chi_square_rejects(counts, laws[0]))
    self.assertTrue(statistics.chi_square_rejects(counts, laws[1]))
    power = statistics.chi_square_power(laws[1], laws[0], num_draws=num_draws)
    self.assertGreater(power, 1 - 1e-9)
