"""Metrics against plain loops, and the epsilon-0 explanation."""

import dataclasses
import fractions

from absl.testing import parameterized
import hypothesis
import hypothesis.strategies as st
import numpy as np

from privjax import counterfactual
from tests.counterfactual import cases
from tests.counterfactual import checks
from tests.oracles import counterfactual as oracle

Fraction = fractions.Fraction


def _fast(case, config, epsilon):
  candidates = case.support(config)
  scored = counterfactual.score(
    case.model,
    case.private,
    case.features,
    candidates,
    config,
    evaluator=checks.evaluate_factored,
  )
  return counterfactual.release_metrics(
    np.exp(counterfactual.log_law(scored, epsilon)),
    scored.utility,
    scored.evaluation,
    candidates,
    denominator=config.denominator,
  )


def _slow(case, config, epsilon):
  """The same from graph to metrics, with no code in common."""
  edge_subsets, feature_subsets = case.subsets(config)
  scores = case.scores(config)
  k_max = config.max_edges + config.max_features
  weights = (Fraction(7, 10), Fraction(1, 5), Fraction(1, 10))
  unit = Fraction(1, oracle.denominator(weights, k_max, config.max_edges))
  values = oracle.utilities(
    scores,
    edge_subsets,
    feature_subsets,
    kind=config.utility.kind,
    weights=weights,
    k_max=k_max,
    unit=unit,
  )
  law = oracle.law(sum(values, []), epsilon, 1)
  width = len(feature_subsets)
  rows = [law[i : i + width] for i in range(0, len(law), width)]
  sizes = [[len(s) + len(t) for t in feature_subsets] for s in edge_subsets]
  return oracle.metrics(rows, values, scores, sizes)


class OracleTest(parameterized.TestCase):
  @hypothesis.settings(max_examples=20)
  @hypothesis.given(
    case=cases.any_case(),
    epsilon=st.sampled_from(['0.1', '1', '8', '40']),
    kind=st.sampled_from(['gated', 'soft']),
  )
  def test_any_case(self, case, epsilon, kind):
    config = dataclasses.replace(
      cases.CONFIG, utility=counterfactual.UtilityConfig(kind=kind)
    )
    result = _fast(case, config, epsilon)._asdict()
    expected = _slow(case, config, Fraction(epsilon))
    self.assertEqual(result.keys(), expected.keys())
    for name, value in expected.items():
      if case.support(config).support_size > 1:
        self.assertAlmostEqual(result[name], value, delta=1e-11, msg=name)

  def test_degenerate_graphs(self):
    for name, case in checks.named_cases().items():
      if case.support().support_size == 1:
        continue
      result = _fast(case, cases.CONFIG, 4)._asdict()
      for field, value in _slow(case, cases.CONFIG, 4).items():
        self.assertAlmostEqual(
          result[field], value, delta=1e-11, msg=(name, field)
        )


class DegenerateTest(parameterized.TestCase):
  def test_a_support_of_the_empty_set(self):
    case = checks.named_cases()['no edge at all']
    config = dataclasses.replace(cases.CONFIG, num_features=0)
    metrics = _fast(case, config, 1)
    self.assertEqual(
      metrics,
      counterfactual.Metrics(
        ceiling=0,
        valid_cf_rate=0,
        targeted_success=0,
        empty_rate=1,
        nonempty_valid_rate=0,
        size=0,
        collision=1,
        regret=0,
        expected_utility=0.2,
      ),
    )

  def test_padding_that_flips_is_not_counted(self):
    """A padded row repeats a real one, so only `valid` can leave it out."""
    case = checks.named_cases()['no edge at all']
    candidates = case.support()
    shape = candidates.valid.shape
    evaluation = counterfactual.CandidateEvaluation(
      label=np.where(candidates.valid, 0, 1),
      flips=~candidates.valid,
      existing_edges=np.zeros(shape[0], np.int64),
      gap=np.where(candidates.valid, 1.0, -1.0),
      runner_up_label=np.int32(1),
    )
    utility = counterfactual.candidate_utility(evaluation, candidates)
    scored = counterfactual.ScoredSupport(
      candidates, evaluation, utility, cases.CONFIG
    )
    metrics = counterfactual.release_metrics(
      np.exp(counterfactual.log_law(scored, 8)),
      utility,
      evaluation,
      candidates,
      denominator=cases.CONFIG.denominator,
    )
    self.assertEqual(metrics.ceiling, 0)
    self.assertEqual(metrics.valid_cf_rate, 0)
    self.assertAlmostEqual(
      metrics.regret, 0.2 * (1 - metrics.empty_rate), delta=1e-15
    )

  @parameterized.parameters((0.3, 0.6, 0.5), (0.6, 0.6, 1.0), (0.0, 1.0, 0.0))
  def test_retention(self, rate, ceiling, expected):
    self.assertEqual(counterfactual.retention(rate, ceiling), expected)

  def test_retention_of_nothing(self):
    self.assertIsNone(counterfactual.retention(0.0, 0.0))


class PublicOnlyTest(parameterized.TestCase):
  def _pick(self, gap, candidates):
    evaluation = counterfactual.CandidateEvaluation(
      label=np.zeros(gap.shape, np.int32),
      flips=gap < 0,
      existing_edges=np.zeros(len(gap), np.int64),
      gap=gap,
      runner_up_label=np.int32(1),
    )
    case = cases.random_case(0)
    return counterfactual.public_only_candidate(
      case.model,
      case.snapshot,
      case.features,
      candidates,
      evaluator=lambda *args, **kwargs: evaluation,
    )

  def test_refuses_a_private_graph(self):
    case = cases.random_case(0)
    with self.assertRaisesRegex(TypeError, 'must be a Snapshot'):
      counterfactual.public_only_candidate(
        case.model, case.private, case.features, case.support()
      )

  def test_takes_the_smallest_gap_of_the_snapshot(self):
    for seed in range(5):
      case = cases.random_case(seed)
      candidates = case.support()
      a, b = counterfactual.public_only_candidate(
        case.model,
        case.snapshot,
        case.features,
        candidates,
        evaluator=checks.evaluate_factored,
      )
      disclosed = case._replace(
        private=cases.private_graph(case.snapshot.graph.pairs)
      )
      edge_subsets, feature_subsets = case.subsets()
      gaps = {
        (pairs, dims): gap
        for pairs, row in zip(edge_subsets, disclosed.scores().gap)
        for dims, gap in zip(feature_subsets, row)
        if pairs or dims
      }
      universe = candidates.universe
      found = (
        oracle_set(universe.pairs[candidates.edge_subsets[a]]),
        frozenset(universe.features[candidates.feature_subsets[b]].tolist()),
      )
      self.assertEqual(found, min(gaps, key=gaps.get))

  def test_skips_padding_and_the_empty_set(self):
    candidates = cases.make(
      [(0, 1), (0, 2)], features=cases.csr(np.eye(8, 6))
    ).support()
    gap = np.zeros(candidates.valid.shape)
    gap[~candidates.valid] = -5
    gap[0, 0] = -9
    gap[2, 1] = gap[2, 0] = gap[3, 0] = -1
    pick = self._pick(gap, candidates)
    self.assertEqual(pick, (2, 0))

  def test_nothing_to_explain(self):
    case = checks.named_cases()['no edge at all']
    config = dataclasses.replace(cases.CONFIG, num_features=0)
    candidates = case.support(config)
    pick = self._pick(np.zeros(candidates.valid.shape), candidates)
    self.assertEqual(pick, (0, 0))


def oracle_set(pairs) -> frozenset:
  """Returns rows of node ids as the oracle writes them."""
  return frozenset(oracle.edge_set(pairs))
