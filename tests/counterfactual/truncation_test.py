"""A public capacity: fixed shapes, and hubs scored on their lowest ids."""

import dataclasses
import fractions
import functools

from absl.testing import parameterized
import jax
import numpy as np

from privjax import counterfactual
from privjax import graphs
from privjax.counterfactual import evaluation
from privjax.counterfactual import factored
from tests.counterfactual import cases
from tests.counterfactual import checks

_SMALL = factored.NeighborCapacity(neighbors=3, second=2)
_EVALUATE = functools.partial(factored.evaluate_factored, capacity=_SMALL)


def _truncated_logits(case, capacity):
  """Returns the target's logits, neighbor by neighbor, lists cut by hand."""
  graph, target = case.private.graph, case.target
  hidden, output = case.model.params['hidden'], case.model.params['output']
  z = case.features.toarray().astype(float) @ hidden['kernel']
  norm = lambda a, b: ((graph.degree[a] + 1) * (graph.degree[b] + 1)) ** -0.5
  near = graph.neighbors(target)[: capacity.neighbors].tolist()

  def activation(node):
    if node == target:
      others = near
    else:
      listed = graph.neighbors(node)[: capacity.second].tolist()
      # The target is scored as a neighbor of its neighbors in any case.
      others = sorted({*listed, target} - {node})
    total = sum(norm(node, w) * z[w] for w in [*others, node])
    return np.maximum(total + hidden['bias'], 0)

  total = sum(norm(target, u) * activation(u) for u in [*near, target])
  return total @ output['kernel'] + output['bias']


def _dense_cases():
  return [cases.random_case(seed, density=0.95) for seed in range(4)]


class TruncationTest(parameterized.TestCase):
  @parameterized.parameters((3, 2), (3, 0), (0, 2), (0, 0))
  def test_scores_the_lowest_ids_with_degrees_of_the_whole_graph(
    self, neighbors, second
  ):
    capacity = factored.NeighborCapacity(neighbors, second)
    for case in _dense_cases():
      self.assertGreater(case.private.graph.degree[case.target], 3)
      result = factored.evaluate_factored(
        case.model,
        case.private,
        case.features,
        case.support(),
        capacity=capacity,
      )
      logits = np.sort(_truncated_logits(case, capacity))
      self.assertAlmostEqual(result.gap[0, 0], logits[-1] - logits[-2], 12)

  def test_changes_nothing_where_everything_fits(self):
    case = _dense_cases()[0]
    args = (case.model, case.private, case.features, case.support())
    exact = factored.evaluate_factored(*args)
    roomy = factored.evaluate_factored(
      *args, capacity=factored.NeighborCapacity(30, 30)
    )
    np.testing.assert_array_equal(exact.label, roomy.label)
    np.testing.assert_allclose(exact.gap, roomy.gap, rtol=0, atol=1e-14)

  def test_is_private(self):
    def pipeline(case, private, config, epsilon):
      scored = counterfactual.score(
        case.model,
        private,
        case.features,
        case.support(config),
        config,
        evaluator=_EVALUATE,
      )
      law = counterfactual.log_law(scored, epsilon)
      return checks.release(scored.candidates, scored.utility, law, config)

    config = dataclasses.replace(
      cases.CONFIG, utility=counterfactual.UtilityConfig(sensitivity='tight')
    )
    found, change = checks.dp_violations(
      pipeline, _dense_cases()[:2], config, fractions.Fraction(4)
    )
    self.assertEqual(found, [])
    self.assertGreater(change.utility, 0)

  def test_shapes_do_not_depend_on_the_private_graph(self):
    case = _dense_cases()[0]
    support = case.support()

    def shapes(graph):
      plan = evaluation.plan(
        graphs.PrivateGraph(graph), case.features, support, 'effective'
      )
      inputs = factored.prepare(
        case.model, case.features, support, plan, capacity=_SMALL
      )
      return jax.tree.map(lambda x: (x.shape, x.dtype), inputs)

    expected = shapes(case.private.graph)
    for pair in cases.ALL_PAIRS:
      toggled = graphs.toggle_pair(case.private.graph, pair)
      self.assertEqual(shapes(toggled), expected)

  def test_a_shape_that_follows_the_degree_is_caught(self):
    graph = _dense_cases()[0].private.graph
    # The sizes that experiments take by default, which are not for a release.
    fitting = factored._fitting(graph, 0)
    graph = graphs.toggle_pair(graph, (0, int(graph.neighbors(0)[0])))
    for other in graph.neighbors(0)[2:]:
      graph = graphs.toggle_pair(graph, (0, int(other)))
    self.assertNotEqual(factored._fitting(graph, 0), fitting)
