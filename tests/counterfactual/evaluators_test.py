"""The three evaluators against the oracle and against each other."""

import dataclasses

from absl.testing import parameterized
import hypothesis
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from privjax import counterfactual
from privjax import graphs
from privjax import models
from privjax.counterfactual import evaluation as evaluation_lib
from privjax.counterfactual import factored
from tests.counterfactual import cases
from tests.counterfactual import checks

_DECIDE = jax.jit(evaluation_lib.decide)
_FAST = ('factored', 'subgraph')
_INERT = dataclasses.replace(cases.CONFIG, feature_masks='inert')
_CONFIGS = {
  'one_hop': cases.CONFIG,
  'two_hop': cases.TWO_HOP,
  'inert': _INERT,
}
# Inert masks are shared code: one evaluator stands for both here.
_FAST_BY_CONFIG = (
  ('factored', 'one_hop'),
  ('factored', 'two_hop'),
  ('factored', 'inert'),
  ('subgraph', 'one_hop'),
  ('subgraph', 'two_hop'),
)
# `evaluate_full_graph` compiles once per number of edges: a few cases only.
_REPRESENTATIVE = ('triangles',)


def _evaluate(name, case, candidates=None, config=cases.CONFIG, **kwargs):
  return checks.EVALUATORS[name](
    case.model,
    case.private,
    case.features,
    case.support(config) if candidates is None else candidates,
    feature_masks=config.feature_masks,
    **kwargs,
  )


class OracleTest(parameterized.TestCase):
  @parameterized.parameters(*_FAST_BY_CONFIG)
  def test_degenerate_graphs(self, evaluator, config):
    found = checks.exactness_violations(
      checks.EVALUATORS[evaluator], checks.named_cases(), _CONFIGS[config]
    )
    self.assertEqual(found, [])

  def test_degenerate_graphs_by_the_reference(self):
    named = checks.named_cases()
    found = checks.exactness_violations(
      counterfactual.evaluate_full_graph,
      {name: named[name] for name in _REPRESENTATIVE},
    )
    self.assertEqual(found, [])

  @parameterized.product(config=list(_CONFIGS))
  @pytest.mark.slow
  def test_all_degenerate_graphs_by_the_reference(self, config):
    found = checks.exactness_violations(
      counterfactual.evaluate_full_graph, checks.named_cases(), _CONFIGS[config]
    )
    self.assertEqual(found, [])

  @parameterized.parameters(*_FAST_BY_CONFIG)
  @hypothesis.settings(max_examples=20)
  @hypothesis.given(case=cases.any_case())
  def test_any_graph(self, evaluator, config, case):
    found = checks.exactness_violations(
      checks.EVALUATORS[evaluator], {'drawn': case}, _CONFIGS[config]
    )
    self.assertEqual(found, [])

  def test_random_graphs_flip_and_keep(self):
    """Guards the tests above: neither outcome is rare in what they compare."""
    flips = np.mean(
      [
        _evaluate('factored', cases.random_case(seed)).flips.mean()
        for seed in range(20)
      ]
    )
    self.assertBetween(flips, 0.1, 0.9)


class PathGraphTest(parameterized.TestCase):
  """Path 0-1-2-3, x = [0, 0, 1, 0], unit weights, no bias, target 0."""

  def _candidates(self, snapshot, features, kernel):
    config = counterfactual.PrivCFSConfig(
      num_pairs=1, max_edges=1, num_features=0, max_features=0
    )
    return counterfactual.support(snapshot, features, kernel, 0, config)

  @parameterized.product(evaluator=list(checks.EVALUATORS))
  def test_value(self, evaluator):
    path = graphs.from_pairs(4, [[0, 1], [1, 2], [2, 3]])[0]
    features = cases.csr([[0], [0], [1], [0]])
    params = {
      'hidden': {'kernel': np.ones((1, 1)), 'bias': np.zeros(1)},
      'output': {'kernel': np.array([[0.0, 1.0]]), 'bias': np.zeros(2)},
    }
    snapshot = graphs.Snapshot(path, 'external')
    candidates = self._candidates(
      snapshot, features, params['hidden']['kernel']
    )
    evaluate = {
      'factored': counterfactual.evaluate_factored,
      'subgraph': counterfactual.evaluate_subgraph,
      'full_graph': counterfactual.evaluate_full_graph,
    }[evaluator]
    result = evaluate(
      models.gcn.model(params), graphs.PrivateGraph(path), features, candidates
    )
    # Induced degrees would give 1/6.
    self.assertAlmostEqual(result.gap[0, 0], 1 / (3 * 6**0.5), delta=1e-15)
    self.assertAlmostEqual(result.gap[0, 0], 0.1360827635, delta=5e-11)
    self.assertEqual(result.label.tolist(), [[1], [0]])
    self.assertEqual(result.gap[1, 0], 0)


class ExactTest(parameterized.TestCase):
  """What must hold bit for bit in float64."""

  @parameterized.product(evaluator=list(checks.EVALUATORS))
  def test_deleting_a_non_edge_changes_no_bit(self, evaluator):
    case = checks.named_cases()['disclosed pairs are not edges']
    candidates = case.support()
    result = _evaluate(evaluator, case, candidates)
    is_edge = case.private.graph.has_pairs(candidates.universe.pairs)
    for a, subset in enumerate(candidates.edge_subsets):
      # The same row as the one that names only the edges of this subset.
      same = (candidates.edge_subsets == (subset & is_edge)).all(axis=1)
      if candidates.edge_valid[a]:
        np.testing.assert_array_equal(result.gap[a], result.gap[same][0])
    self.assertEqual(is_edge.sum(), 1)

  @parameterized.product(evaluator=_FAST)
  def test_inert_masks_repeat_the_first_column(self, evaluator):
    case = cases.random_case(3)
    result = _evaluate(evaluator, case, config=_INERT)
    self.assertGreater(result.gap.shape[1], 1)
    np.testing.assert_array_equal(
      result.gap, result.gap[:, :1] + 0 * result.gap
    )
    np.testing.assert_array_equal(
      result.label, result.label[:, :1] | 0 * result.label
    )
    effective = _evaluate(evaluator, case, case.support(_INERT))
    # Other shapes make another program: equal decisions, not equal bits.
    np.testing.assert_array_equal(result.label[:, 0], effective.label[:, 0])
    np.testing.assert_allclose(
      result.gap[:, 0], effective.gap[:, 0], rtol=1e-14, atol=1e-14
    )
    self.assertGreater(np.ptp(effective.gap, axis=1).max(), 0)

  @parameterized.product(evaluator=_FAST)
  def test_storage_order_changes_no_bit(self, evaluator):
    case = cases.random_case(4)
    candidates = case.support()
    expected = _evaluate(evaluator, case, candidates)
    pairs = case.private.graph.pairs
    rng = np.random.default_rng(0)
    shuffled = rng.permuted(rng.permutation(pairs), axis=1)
    stored = np.concatenate([shuffled, shuffled[:3, ::-1], [[2, 2]]])
    other = case._replace(private=cases.private_graph(stored))
    result = _evaluate(evaluator, other, candidates)
    for found, wanted in zip(result, expected):
      np.testing.assert_array_equal(found, wanted)

  def test_one_program_gives_one_answer(self):
    case = cases.random_case(5)
    candidates = case.support()
    expected = _evaluate('factored', case, candidates)
    projected = counterfactual.project(case.model, case.features)
    result = _evaluate('factored', case, candidates, projected=projected)
    for found, wanted in zip(result, expected):
      np.testing.assert_array_equal(found, wanted)


def _dense_cases():
  """Cases with more than 4 pairs, so that one shape is compiled for all."""
  return [
    cases.random_case(seed, density=0.95, disclosed=1) for seed in (1, 2, 3)
  ]


class PaddingTest(parameterized.TestCase):
  """Public padded sizes and chunks decide nothing.

  Another shape is another program, which may sum in another order: logits of
  size 1 may differ by a few roundings of 1e-16, decisions may not.
  """

  def _assert_same_decisions(self, result, expected):
    for name in ('label', 'flips', 'existing_edges', 'runner_up_label'):
      np.testing.assert_array_equal(
        getattr(result, name), getattr(expected, name), name
      )
    np.testing.assert_allclose(result.gap, expected.gap, rtol=0, atol=1e-14)

  @parameterized.parameters((1, (8, 8)), (7, (40, 12)))
  def test_factored(self, chunk_size, capacity):
    for case in _dense_cases():
      args = (case.model, case.private, case.features, case.support())
      result = factored.evaluate_factored(
        *args,
        capacity=factored.NeighborCapacity(*capacity),
        chunk_size=chunk_size,
      )
      self._assert_same_decisions(result, _evaluate('factored', case))

  @parameterized.parameters((5, (30, 100)))
  def test_subgraph(self, batch_size, capacity):
    for case in _dense_cases():
      args = (case.model, case.private, case.features, case.support())
      result = counterfactual.evaluate_subgraph(
        *args, capacity=graphs.Capacity(*capacity), batch_size=batch_size
      )
      self._assert_same_decisions(result, _evaluate('subgraph', case))

  def test_subgraph_of_the_exact_size(self):
    case = _dense_cases()[0]
    args = (case.model, case.private, case.features, case.support())
    result = counterfactual.evaluate_subgraph(*args)
    self._assert_same_decisions(result, _evaluate('subgraph', case))


class NonFiniteTest(parameterized.TestCase):
  def test_decide_counts_non_finite_logits_as_no_flip(self):
    logits = np.array(
      [
        [[1.0, 0.0, 0.5], [0.0, 2.0, 0.5], [0.0, np.nan, 0.5]],
        [[0.0, np.inf, 0.5], [0.0, -np.inf, 5.0], [0.0, 0.0, 7.0]],
      ]
    )
    decision = _DECIDE(logits)
    self.assertEqual(decision.label.tolist(), [[0, 1, 0], [0, 0, 2]])
    self.assertEqual(decision.gap.tolist(), [[0.5, -2, 0.5], [0.5, 0.5, -7]])
    self.assertEqual(int(decision.runner_up_label), 2)

  def test_decide_flips_nothing_when_the_start_is_not_finite(self):
    logits = np.array([[[np.nan, 0.0], [0.0, 1.0], [1.0, 0.0]]])
    decision = _DECIDE(logits)
    self.assertEqual(len(np.unique(decision.label)), 1)
    self.assertEqual(decision.gap.tolist(), [[0, 0, 0]])

  def test_decide_breaks_ties_to_the_lowest_class(self):
    logits = np.array([[[1.0, 1.0, 1.0], [0.0, 2.0, 2.0], [0.0, 1.0, 2.0]]])
    decision = _DECIDE(logits)
    self.assertEqual(decision.label.tolist(), [[0, 1, 2]])
    self.assertEqual(decision.gap[0, 0], 0)
    self.assertEqual(int(decision.runner_up_label), 1)

  @parameterized.product(evaluator=list(checks.EVALUATORS))
  def test_overflowing_logits_do_not_flip(self, evaluator):
    """Finite public weights; whether they overflow depends on the graph."""
    case = cases.make(
      [(0, 1), (0, 2), (1, 3)], features=cases.csr(np.eye(8, 6))
    )
    params = {
      # Hidden unit 0 sees feature 1 (node 1), unit 1 sees feature 2 (node 2).
      'hidden': {'kernel': np.eye(6, 5, -1), 'bias': np.zeros(5)},
      'output': {'kernel': np.zeros((5, 3)), 'bias': np.array([1.0, 0, 0])},
    }
    params['output']['kernel'][0] = [1e308, -1e308, 0]
    params['output']['kernel'][1] = [0, 2, 0]
    params['hidden']['kernel'][1] *= 1e3
    case = case._replace(params=params)
    candidates = case.support()
    result = _evaluate(evaluator, case, candidates)
    self.assertFalse(result.flips.any())
    self.assertTrue(np.isfinite(result.gap).all())
    utility = counterfactual.candidate_utility(result, candidates)
    self.assertEqual(utility[0, 0], cases.CONFIG.denominator // 5)
    self.assertEqual(utility.sum(), utility[0, 0])


class ErrorTest(parameterized.TestCase):
  def setUp(self):
    super().setUp()
    self.case = checks.named_cases()['star center']
    self.candidates = self.case.support()

  def test_subgraph_cuts_what_exceeds_its_capacity(self):
    # An error would tell the size of a private neighborhood.
    result = counterfactual.evaluate_subgraph(
      self.case.model,
      self.case.private,
      self.case.features,
      self.candidates,
      capacity=graphs.Capacity(num_nodes=8, num_edges=7),
    )
    self.assertTrue(np.isfinite(result.gap).all())

  def test_factored_refuses_another_model(self):
    other = self.case.model._replace(apply_fn=_sum_model)
    with self.assertRaisesRegex(ValueError, 'use evaluate_subgraph'):
      factored.evaluate_factored(
        other, self.case.private, self.case.features, self.candidates
      )

  @parameterized.product(evaluator=list(checks.EVALUATORS))
  def test_bare_graph(self, evaluator):
    case = self.case._replace(private=self.case.private.graph)
    with self.assertRaisesRegex(TypeError, 'PrivateGraph or.*Snapshot'):
      _evaluate(evaluator, case, self.candidates)

  @parameterized.product(evaluator=list(checks.EVALUATORS))
  def test_features_of_another_graph(self, evaluator):
    case = self.case._replace(features=self.case.features[:7])
    with self.assertRaisesRegex(ValueError, 'features must have shape'):
      _evaluate(evaluator, case, self.candidates)

  @parameterized.product(evaluator=list(checks.EVALUATORS))
  def test_target_of_another_graph(self, evaluator):
    case = self.case._replace(
      private=cases.private_graph([(0, 1)], num_nodes=3),
      features=self.case.features[:3],
    )
    candidates = self.case._replace(target=4).support()
    with self.assertRaisesRegex(ValueError, r'target must be .*\[0, 2\].*4'):
      _evaluate(evaluator, case, candidates)

  @parameterized.product(evaluator=list(checks.EVALUATORS))
  def test_unknown_feature_masks(self, evaluator):
    with self.assertRaisesRegex(ValueError, "feature_masks must be.*'half'"):
      checks.EVALUATORS[evaluator](
        self.case.model,
        self.case.private,
        self.case.features,
        self.candidates,
        feature_masks='half',
      )

  @parameterized.product(
    evaluator=list(checks.EVALUATORS), value=(np.nan, np.inf)
  )
  def test_features_that_are_not_finite(self, evaluator, value):
    features = self.case.features.copy()
    features.data[3] = value
    case = self.case._replace(features=features)
    with self.assertRaisesRegex(ValueError, 'features must be finite'):
      _evaluate(evaluator, case, self.candidates)


def _sum_model(params, graph):
  """Two rounds of degree-normalized sums, no self-loop normalization."""
  x = jnp.asarray(graph.nodes['features'])
  degree = graph.nodes['degree'][:, None]
  for kernel in (params['first'], params['second']):
    messages = x[graph.senders] * graph.edges['mask'][:, None]
    total = jax.ops.segment_sum(
      messages, graph.receivers, num_segments=x.shape[0]
    )
    x = jnp.tanh(((total + x) / (1.0 + degree)) @ kernel)
  return x


def _deep_gcn(params, graph):
  """Three graph convolutions."""
  x = jnp.asarray(graph.nodes['features'])
  scale = 1 / jnp.sqrt(graph.nodes['degree'] + 1.0)[:, None]
  for kernel in params:
    x = jnp.maximum(x, 0) @ kernel
    messages = (scale * x)[graph.senders] * graph.edges['mask'][:, None]
    total = jax.ops.segment_sum(
      messages, graph.receivers, num_segments=x.shape[0]
    )
    x = scale * (total + scale * x)
  return x


class CallbackTest(parameterized.TestCase):
  """Models other than the two-layer GCN, through `subgraph`."""

  def _model(self, name):
    rng = np.random.default_rng(1)
    draw = lambda rows, columns: rng.normal(size=(rows, columns))
    if name == 'sum':
      params = {'first': draw(6, 5), 'second': draw(5, 3)}
      return models.NodeModel(_sum_model, params, 2)
    return models.NodeModel(_deep_gcn, [draw(6, 5), draw(5, 4), draw(4, 3)], 3)

  @parameterized.parameters(('sum', 1), ('deep', 2))
  def test_agrees_with_the_reference(self, name, num_hops):
    case = checks.named_cases()['triangles']
    config = dataclasses.replace(
      cases.CONFIG, num_hops=num_hops, num_pairs=4, num_features=1
    )
    args = (
      self._model(name),
      case.private,
      case.features,
      case.support(config),
    )
    expected = counterfactual.evaluate_full_graph(*args)
    result = checks.evaluate_subgraph(*args)
    np.testing.assert_array_equal(result.label, expected.label)
    np.testing.assert_array_equal(result.flips, expected.flips)
    np.testing.assert_allclose(
      result.gap, expected.gap, rtol=0, atol=checks.GAP_TOLERANCE
    )
    self.assertGreater(np.ptp(expected.gap[:, 0]), 1e-3)

  def test_too_small_a_radius_is_noticed(self):
    """The agreement above is not for want of a third hop."""
    path = cases.make([(0, 1), (1, 2), (2, 3), (3, 4)], target=0)
    args = (path.private, path.features, path.support())
    model = self._model('deep')
    whole = checks.evaluate_subgraph(model, *args)
    near = checks.evaluate_subgraph(model._replace(num_hops=2), *args)
    self.assertGreater(abs(whole.gap - near.gap).max(), 1e-3)


class Float32Test(parameterized.TestCase):
  def test_agrees_up_to_rounding(self):
    """64 roundings of the largest logit bound a sum of 60 terms."""
    for seed in range(10):
      case = cases.random_case(seed)
      wide = _evaluate('factored', case)
      narrow = _evaluate('factored', case, dtype=np.float32)
      bound = 64 * np.finfo(np.float32).eps * (1 + abs(wide.gap).max())
      self.assertLess(abs(narrow.gap - wide.gap).max(), bound)
      self.assertGreater(abs(narrow.gap - wide.gap).max(), 0)
      clear = abs(wide.gap) > bound
      np.testing.assert_array_equal(narrow.flips[clear], wide.flips[clear])
      self.assertEqual(narrow.gap.dtype, np.float64)


def test_many_targets_of_a_bucket_trace_once(monkeypatch):
  traces = []
  score = factored.score

  def count(params, inputs, chunk_size):
    traces.append((len(inputs.slot_valid), len(inputs.keep)))
    return score(params, inputs, chunk_size)

  monkeypatch.setattr(factored, 'score', count)
  for seed in range(2):
    case = cases.random_case(seed, density=0.15)
    degree = case.private.graph.degree
    for target in np.flatnonzero(degree <= factored.BUCKETS[0]):
      _score_in_bucket(case._replace(target=int(target)), 'effective')
  assert traces == [(4, 7)]
  hub = [(0, i) for i in range(1, 8)]
  _score_in_bucket(cases.make(hub), 'effective')
  _score_in_bucket(cases.make(hub[1:]), 'effective')
  assert traces == [(4, 7), (12, 7)]
  _score_in_bucket(cases.make(hub, target=3), 'inert')
  assert traces == [(4, 7), (12, 7), (4, 1)]


def _score_in_bucket(case, feature_masks):
  """Scores at public sizes that no other test has compiled."""
  config = counterfactual.PrivCFSConfig(
    num_pairs=3,
    max_edges=2,
    num_features=3,
    max_features=2,
    feature_masks=feature_masks,
  )
  counterfactual.evaluate_factored(
    case.model,
    case.private,
    case.features,
    case.support(config),
    feature_masks=feature_masks,
  )


class TieTest(parameterized.TestCase):
  def test_masking_everything_leaves_an_exact_tie(self):
    # Subtracting masked features would leave 1e-17, which picks a class.
    graph = cases.private_graph([(1, 2)])
    snapshot = cases.snapshot_of([(1, 2)])
    features = cases.csr(np.eye(8, cases.NUM_FEATURES) + 0.1)
    config = dataclasses.replace(cases.CONFIG, max_features=6, num_features=6)
    for seed in range(30):
      params = jax.tree.map(np.asarray, cases.random_case(seed).model.params)
      for layer in params.values():
        layer['bias'] = np.zeros_like(layer['bias'])
      model = models.gcn.model(params)
      support = counterfactual.support(
        snapshot, features, params['hidden']['kernel'], 0, config
      )
      result = checks.evaluate_factored(model, graph, features, support)
      everything = int(np.argmax(support.feature_sizes))
      self.assertEqual(result.label[0, everything], 0)
