"""The composition: support, score, law and guarantee."""

import dataclasses
import fractions
import math

from absl.testing import parameterized
import numpy as np

from privjax import counterfactual
from privjax import types
from tests.counterfactual import cases
from tests.counterfactual import checks
from tests.oracles import counterfactual as oracle

Fraction = fractions.Fraction
_TIGHT = counterfactual.UtilityConfig(sensitivity='tight')


def _score(case, config=cases.CONFIG, **kwargs):
  candidates = case.support(config)
  return counterfactual.score(
    case.model, case.private, case.features, candidates, config, **kwargs
  )


class ConfigTest(parameterized.TestCase):
  def test_defaults_are_the_papers(self):
    config = counterfactual.PrivCFSConfig()
    self.assertEqual(config.sensitivity, 1)
    self.assertEqual(config.denominator, 100)
    tight = dataclasses.replace(config, utility=_TIGHT)
    self.assertEqual(tight.sensitivity, Fraction(24, 25))

  def test_the_default_support_has_23621_candidates(self):
    snapshot = cases.snapshot_of([(0, i) for i in range(1, 14)], num_nodes=14)
    candidates = counterfactual.support(
      snapshot, cases.csr(np.ones((14, 13))), np.ones((13, 2)), 0
    )
    self.assertEqual(candidates.support_size, 23_621)
    self.assertEqual(candidates.k_max, 5)

  @parameterized.parameters(
    (dict(num_pairs=-1), 'num_pairs must be an integer >= 0, got -1'),
    (dict(num_features=2.5), 'num_features must be an integer >= 0, got 2.5'),
    (dict(max_edges=-1), 'max_edges must be an integer >= 0, got -1'),
    (dict(max_features=None), 'max_features must be an integer >= 0, got None'),
    (dict(max_edges=0, max_features=0), 'k_max must be an integer >= 1, got 0'),
    (dict(num_hops=3), 'num_hops must be one of 1, 2, got 3'),
    (dict(feature_masks='off'), "feature_masks must be one of .*, got 'off'"),
  )
  def test_bad_settings(self, kwargs, message):
    with self.assertRaisesRegex(ValueError, message):
      counterfactual.PrivCFSConfig(**kwargs)


class SupportTest(parameterized.TestCase):
  def test_inert_masks_always_have_the_full_feature_universe(self):
    case = checks.named_cases()['no nonzero feature']
    config = dataclasses.replace(cases.CONFIG, feature_masks='inert')
    self.assertEqual(case.support().universe.feature_valid.sum(), 0)
    self.assertEqual(case.support(config).universe.feature_valid.sum(), 4)

  def test_hops(self):
    case = checks.named_cases()['degree 1']
    self.assertEqual(case.support().universe.pair_valid.sum(), 1)
    self.assertEqual(case.support(cases.TWO_HOP).universe.pair_valid.sum(), 2)


class ScoreTest(parameterized.TestCase):
  def test_utility_is_that_of_the_evaluation(self):
    scored = _score(cases.random_case(0))
    np.testing.assert_array_equal(
      scored.utility,
      counterfactual.candidate_utility(
        scored.evaluation, scored.candidates, cases.CONFIG.utility
      ),
    )

  def test_any_evaluator(self):
    case = cases.random_case(0)
    expected = _score(case).utility
    result = _score(case, evaluator=checks.evaluate_subgraph).utility
    np.testing.assert_array_equal(result, expected)

  def test_the_evaluator_gets_the_masks(self):
    case = cases.random_case(2)
    config = dataclasses.replace(cases.CONFIG, feature_masks='inert')
    flips = _score(case, config).evaluation.flips
    np.testing.assert_array_equal(flips, np.repeat(flips[:, :1], 11, axis=1))
    effective = _score(case).evaluation.flips
    self.assertFalse((effective == effective[:, :1]).all())


class LawTest(parameterized.TestCase):
  @parameterized.parameters('paper', 'tight')
  def test_law(self, sensitivity):
    utility = counterfactual.UtilityConfig(sensitivity=sensitivity)
    config = dataclasses.replace(cases.CONFIG, utility=utility)
    scored = _score(cases.random_case(0), config)
    log_probs = counterfactual.log_law(scored, '2.5')
    valid = scored.candidates.valid
    values = [Fraction(int(u), 20) for u in scored.utility[valid]]
    bound = 1 if sensitivity == 'paper' else Fraction(19, 20)
    np.testing.assert_allclose(
      np.exp(log_probs[valid]),
      oracle.law(values, Fraction(5, 2), bound),
      rtol=1e-12,
    )
    self.assertTrue(np.isneginf(log_probs[~valid]).all())

  def test_base_measure(self):
    scored = _score(cases.random_case(5))
    base = np.linspace(-3, 3, scored.utility.size).reshape(scored.utility.shape)
    law = counterfactual.log_law(scored, 1, log_base_measure=base)
    uniform = counterfactual.log_law(scored, 1)
    valid = scored.candidates.valid
    change = law[valid] - uniform[valid]
    np.testing.assert_allclose(np.ptp(change - base[valid]), 0, atol=1e-12)
    self.assertGreater(np.ptp(change), 1)

  @parameterized.parameters(0, -1, math.nan, math.inf, True, 'abc', None)
  def test_bad_epsilon(self, epsilon):
    scored = _score(cases.random_case(0))
    with self.assertRaisesRegex(ValueError, 'epsilon must be a finite'):
      counterfactual.log_law(scored, epsilon)
    with self.assertRaisesRegex(ValueError, 'epsilon must be a finite'):
      counterfactual.guarantee(epsilon)


class GuaranteeTest(parameterized.TestCase):
  @parameterized.parameters('0.1', '1e-1', 0.1, Fraction(1, 10))
  def test_statement(self, epsilon):
    guarantee = counterfactual.guarantee(epsilon)
    self.assertEqual(guarantee.epsilon, Fraction(1, 10))
    self.assertEqual(guarantee.delta, 0)
    self.assertEqual(
      guarantee.relation, types.NeighboringRelation.ADD_REMOVE_ONE_EDGE
    )
    self.assertEqual(guarantee.unit, 'edge')
    self.assertIn('McSherry', guarantee.theorem)
