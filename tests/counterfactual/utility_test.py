"""Utilities by hand, against the oracle, and their range and sensitivity."""

import dataclasses
import fractions
import itertools

from absl.testing import parameterized
import hypothesis
import hypothesis.extra.numpy as hnp
import hypothesis.strategies as st
import numpy as np

from privjax import counterfactual
from tests.counterfactual import cases
from tests.oracles import counterfactual as oracle

Fraction = fractions.Fraction
UtilityConfig = counterfactual.UtilityConfig
_DEFAULT = UtilityConfig()
_DEFAULT_SIZES = dict(max_edges=2, max_features=3)


def _support(max_edges=2, max_features=3, num_pairs=3, num_features=4):
  others = 1 + np.arange(num_pairs)
  universe = counterfactual.Universe(
    target=0,
    pairs=np.stack([np.zeros_like(others), others], axis=1),
    pair_valid=np.ones(num_pairs, bool),
    features=np.arange(num_features),
    feature_valid=np.ones(num_features, bool),
  )
  return counterfactual.enumerate_candidates(
    universe, max_edges=max_edges, max_features=max_features
  )


def _evaluation(candidates, *, flips, exists=None, gap=None):
  """An evaluation with these flips, existing pairs and gaps."""
  shape = candidates.valid.shape
  flips = np.broadcast_to(flips, shape)
  if exists is None:
    exists = np.ones(len(candidates.universe.pairs), bool)
  return counterfactual.CandidateEvaluation(
    label=flips.astype(np.int32),
    flips=flips,
    existing_edges=(candidates.edge_subsets & exists).sum(axis=1),
    gap=np.ones(shape) if gap is None else gap,
    runner_up_label=np.int32(1),
  )


def _utility(candidates, config=_DEFAULT, **kwargs):
  return counterfactual.candidate_utility(
    _evaluation(candidates, **kwargs), candidates, config
  )


def _settings(config, candidates):
  """The oracle's settings for a config."""
  weights = (config.w_flip, config.w_compact, config.w_plausible)
  unit = oracle.denominator(weights, candidates.k_max, candidates.max_edges)
  return dict(
    kind=config.kind,
    weights=weights,
    k_max=candidates.k_max,
    unit=Fraction(1, unit),
  )


@st.composite
def _configs(draw, kind=None):
  """Draws weights that sum to 1, with any denominators."""
  parts = draw(st.tuples(*[st.integers(0, 12)] * 3).filter(lambda p: p[0] > 0))
  kinds = st.sampled_from(('gated', 'soft'))
  return UtilityConfig(
    kind=draw(kinds) if kind is None else kind,
    w_flip=Fraction(parts[0], sum(parts)),
    w_compact=Fraction(parts[1], sum(parts)),
    w_plausible=Fraction(parts[2], sum(parts)),
    sensitivity='tight',
  )


class HandTest(parameterized.TestCase):
  """Values at the defaults, in hundredths."""

  def setUp(self):
    super().setUp()
    self.candidates = _support()

  def test_flip(self):
    exists = np.array([True, True, False])
    utility = _utility(self.candidates, flips=True, exists=exists)
    row = {
      tuple(np.flatnonzero(subset)): utility[a]
      for a, subset in enumerate(self.candidates.edge_subsets)
    }
    for b, masked in enumerate(self.candidates.feature_sizes):
      if masked:
        # 0.7 + 0.2 (1 - s / 5); no pair is named, so none is plausible.
        self.assertEqual(row[()][b], 70 + 4 * (5 - masked))
      # 0.7 + 0.2 (1 - s / 5) + 0.1 existing / named.
      self.assertEqual(row[0,][b], 70 + 4 * (4 - masked) + 10)
      self.assertEqual(row[2,][b], 70 + 4 * (4 - masked))
      self.assertEqual(row[0, 1][b], 70 + 4 * (3 - masked) + 10)
      self.assertEqual(row[0, 2][b], 70 + 4 * (3 - masked) + 5)
    self.assertEqual(utility[0, 0], 20)
    self.assertEqual(utility.max(), 96)
    self.assertEqual(utility.dtype, np.int64)

  def test_no_flip(self):
    utility = _utility(self.candidates, flips=False)
    self.assertEqual(utility[0, 0], 20)
    self.assertEqual(utility.sum(), 20)

  @parameterized.parameters(
    (1.0, 0),  # No progress.
    (2.0, 0),  # Going the wrong way.
    (0.75, 4),  # floor(0.25 * 19)
    (0.5, 9),
    (2.0**-40, 18),
    (0.0, 19),  # A tie is not a flip, and stays below the empty set.
    (-3.0, 19),
  )
  def test_soft(self, gap, expected):
    start = np.full(self.candidates.valid.shape, gap)
    start[0, 0] = 1.0
    config = UtilityConfig(kind='soft')
    utility = _utility(self.candidates, config, flips=False, gap=start)
    self.assertEqual(utility[0, 0], 20)
    self.assertEqual(set(utility.ravel()[1:]), {expected})

  def test_soft_equals_gated_on_flips(self):
    exists = np.array([True, False, True])
    kwargs = dict(flips=True, exists=exists)
    np.testing.assert_array_equal(
      _utility(self.candidates, UtilityConfig(kind='soft'), **kwargs),
      _utility(self.candidates, **kwargs),
    )

  @parameterized.parameters(0.0, np.nan, np.inf, 5e-324)
  def test_soft_has_no_scale_at_a_degenerate_start(self, start):
    """Private values must not raise, and the range is kept."""
    gap = 1e308 * np.linspace(-1, 1, self.candidates.valid.size)
    gap = gap.reshape(self.candidates.valid.shape)
    gap[0, 0] = start
    config = UtilityConfig(kind='soft')
    utility = _utility(self.candidates, config, flips=False, gap=gap)
    self.assertBetween(utility.min(), 0, 19)
    if start == 0:
      self.assertEqual(utility.sum(), 20)

  @parameterized.parameters(np.nan, np.inf, -np.inf)
  def test_soft_gap_that_is_not_finite(self, value):
    gap = np.ones(self.candidates.valid.shape)
    gap[1, 1] = value
    config = UtilityConfig(kind='soft')
    utility = _utility(self.candidates, config, flips=False, gap=gap)
    self.assertEqual(utility[1, 1], 19 if value == -np.inf else 0)


class DenominatorTest(parameterized.TestCase):
  @parameterized.parameters(
    (2, 3, 100), (2, 2, 20), (0, 1, 10), (3, 12, 300), (2, 0, 20), (4, 12, 240)
  )
  def test_defaults(self, max_edges, max_features, expected):
    sizes = dict(max_edges=max_edges, max_features=max_features)
    self.assertEqual(UtilityConfig().denominator(**sizes), expected)

  def test_sixteen_levels_at_the_defaults(self):
    candidates = _support()
    levels = set()
    for exists in itertools.product([False, True], repeat=3):
      for flips in (False, True):
        utility = _utility(candidates, flips=flips, exists=np.array(exists))
        levels |= set(utility.ravel().tolist())
    self.assertLen(levels, 16)

  @hypothesis.given(
    config=_configs(),
    max_edges=st.integers(0, 4),
    max_features=st.integers(0, 4),
  )
  def test_every_utility_is_a_multiple(self, config, max_edges, max_features):
    hypothesis.assume(max_edges + max_features > 0)
    sizes = dict(max_edges=max_edges, max_features=max_features)
    weights = (config.w_flip, config.w_compact, config.w_plausible)
    k_max = max_edges + max_features
    self.assertEqual(
      config.denominator(**sizes), oracle.denominator(weights, k_max, max_edges)
    )


class OracleTest(parameterized.TestCase):
  @hypothesis.settings(max_examples=60)
  @hypothesis.given(
    config=_configs(),
    max_edges=st.integers(0, 3),
    max_features=st.integers(0, 3),
    seed=st.integers(0, 2**32 - 1),
  )
  def test_any_utility(self, config, max_edges, max_features, seed):
    hypothesis.assume(max_edges + max_features > 0)
    candidates = _support(max_edges, max_features)
    rng = np.random.default_rng(seed)
    flips = rng.random(candidates.valid.shape) < 0.5
    exists = rng.random(3) < 0.5
    gap = np.where(flips, -1, 1) * rng.random(flips.shape)
    flips[0, 0], gap[0, 0] = False, abs(gap[0, 0])
    evaluation = _evaluation(candidates, flips=flips, exists=exists, gap=gap)
    utility = counterfactual.candidate_utility(evaluation, candidates, config)
    settings = _settings(config, candidates)
    scores = oracle.Scores(
      label=None,
      flips=flips.tolist(),
      existing=evaluation.existing_edges.tolist(),
      gap=gap.tolist(),
      runner_up=1,
    )
    expected = oracle.utilities(scores, *cases.named(candidates), **settings)
    exact = [
      [Fraction(int(u)) * settings['unit'] for u in row] for row in utility
    ]
    self.assertEqual(exact, expected)


class RangeTest(parameterized.TestCase):
  @hypothesis.settings(max_examples=80)
  @hypothesis.given(
    config=_configs(),
    flips=hnp.arrays(bool, (7, 15)),
    exists=hnp.arrays(bool, 3),
    gap=hnp.arrays(
      np.float64, (7, 15), elements=st.floats(-1e6, 1e6), fill=st.floats(-1, 1)
    ),
  )
  def test_range_lemma(self, config, flips, exists, gap):
    """Whatever the flips and gaps are: the guarantee rests on this alone."""
    candidates = _support()
    utility = _utility(candidates, config, flips=flips, exists=exists, gap=gap)
    unit = Fraction(1, config.denominator(**_DEFAULT_SIZES))
    bound = config.sensitivity_bound(**_DEFAULT_SIZES)
    nonempty = np.delete(utility.ravel(), 0)
    self.assertEqual(int(utility[0, 0]) * unit, config.w_compact)
    self.assertGreaterEqual(nonempty.min(), 0)
    self.assertLessEqual(int(nonempty.max()) * unit, bound)
    not_flipped = np.where(flips, 0, utility)
    not_flipped[0, 0] = 0
    if config.w_compact > 0:
      self.assertLess(int(not_flipped.max()) * unit, config.w_compact)


class SensitivityTest(parameterized.TestCase):
  @parameterized.parameters(
    ('paper', 2, 3, Fraction(1)),
    ('tight', 2, 3, Fraction(24, 25)),
    ('tight', 2, 2, Fraction(19, 20)),
    ('tight', 1, 0, Fraction(4, 5)),
    ('tight', 0, 3, Fraction(5, 6)),
    ('tight', 2, 12, Fraction(69, 70)),
  )
  def test_values(self, sensitivity, max_edges, max_features, expected):
    for kind in ('gated', 'soft'):
      config = UtilityConfig(kind=kind, sensitivity=sensitivity)
      bound = config.sensitivity_bound(
        max_edges=max_edges, max_features=max_features
      )
      self.assertEqual(bound, expected)

  @hypothesis.given(
    config=_configs(),
    max_edges=st.integers(0, 3),
    max_features=st.integers(0, 3),
  )
  def test_brute_force(self, config, max_edges, max_features):
    """Every pair of outcomes that two graphs one edge apart could produce.

    One edge changes the number of existing named pairs by at most one, and
    flips and gaps in any way. The bound is never exceeded, and for the gated
    utility it is attained.
    """
    hypothesis.assume(max_edges + max_features > 0)
    sizes = dict(max_edges=max_edges, max_features=max_features)
    candidates = _support(**sizes)
    settings = _settings(config, candidates)
    outcomes = [(True, 1.0), (False, 1.0), (False, 0.3), (False, 0.0)]
    largest = Fraction(0)
    for named in range(max_edges + 1):
      for masked in range(max_features + 1):
        value = {
          (existing, outcome): oracle.utility(
            num_pairs=named,
            num_features=masked,
            existing=existing,
            flips=outcome[0],
            gap=outcome[1],
            empty_gap=1.0,
            **settings,
          )
          for existing in range(named + 1)
          for outcome in outcomes
        }
        largest = max(
          [largest]
          + [
            abs(value[one] - value[other])
            for one, other in itertools.combinations(value, 2)
            if abs(one[0] - other[0]) <= 1
          ]
        )
    bound = config.sensitivity_bound(**sizes)
    self.assertLessEqual(largest, bound)
    if config.kind == 'gated':
      self.assertEqual(largest, bound)


class ErrorTest(parameterized.TestCase):
  @parameterized.parameters(
    (dict(kind='hard'), "kind must be one of 'gated', 'soft', got 'hard'"),
    (dict(sensitivity=1), "sensitivity must be one of 'paper', 'tight', got 1"),
    (dict(w_flip=0.7), 'w_flip must be a Fraction >= 0, got 0.7'),
    (dict(w_plausible=Fraction(-1, 10)), 'w_plausible must be a Fraction >= 0'),
    (dict(w_flip=Fraction(8, 10)), 'must sum to 1.*11/10'),
    (
      dict(w_flip=Fraction(0), w_compact=Fraction(9, 10)),
      'w_flip must be > 0',
    ),
  )
  def test_bad_settings(self, kwargs, message):
    with self.assertRaisesRegex(ValueError, message):
      UtilityConfig(**kwargs)

  def test_settings_are_frozen(self):
    with self.assertRaises(dataclasses.FrozenInstanceError):
      UtilityConfig().w_flip = Fraction(1)
