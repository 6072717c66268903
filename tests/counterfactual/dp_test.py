"""Exhaustive differential privacy: every neighbor, every candidate, exact law.

Random graphs on 8 nodes; all 28 edge-flip neighbors of each, in both
directions; the whole support; the original label recomputed on each graph. No
sampling: the laws themselves are compared.
"""

import dataclasses
import fractions

from absl.testing import parameterized
import numpy as np
import pytest

from privjax import counterfactual
from tests.counterfactual import cases
from tests.counterfactual import checks

Fraction = fractions.Fraction

EPSILON = Fraction(4)
# k_max is 5, as in the paper, so the tight sensitivity is 24/25.
CONFIG = counterfactual.PrivCFSConfig(
  num_pairs=5, max_edges=2, num_features=5, max_features=3
)
_DEGENERATE = (
  'no edge at all',
  'star center',
  'complete',
  'disclosed pairs are not edges',
  'tie of all classes',
)


def _config(kind, sensitivity, **kwargs):
  utility = counterfactual.UtilityConfig(kind=kind, sensitivity=sensitivity)
  return dataclasses.replace(CONFIG, utility=utility, **kwargs)


def _problems(count):
  """Graphs of every density, each with two targets."""
  for seed in range(count):
    case = cases.random_case(seed, density=0.2 + 0.6 * seed / count)
    yield case
    yield case._replace(target=(case.target + 3) % cases.NUM_NODES)


class ExhaustiveTest(parameterized.TestCase):
  def _assert_private(self, problems, config):
    found, change = checks.dp_violations(
      checks.privjax_pipeline, problems, config, EPSILON
    )
    self.assertEqual(found, [])
    return change

  @parameterized.product(kind=('gated', 'soft'), sensitivity=('paper', 'tight'))
  def test_edge_flip_neighbors(self, kind, sensitivity):
    config = _config(kind, sensitivity)
    change = self._assert_private(_problems(5), config)
    # The tight bound is met: the check above has no slack to hide behind.
    self.assertEqual(change.utility, Fraction(24, 25))
    self.assertBetween(change.log_ratio, 2, 4)

  @parameterized.parameters(dict(num_hops=2), dict(feature_masks='inert'))
  def test_other_supports(self, **kwargs):
    self._check_other_support(**kwargs)

  @parameterized.parameters(dict(max_edges=0), dict(max_features=0))
  @pytest.mark.slow  # Shapes of their own to compile.
  def test_one_sided_supports(self, **kwargs):
    self._check_other_support(**kwargs)

  def _check_other_support(self, **kwargs):
    config = _config('gated', 'tight', **kwargs)
    change = self._assert_private(_problems(2), config)
    self.assertGreater(change.utility, 0)

  def test_degenerate_graphs(self):
    named = checks.named_cases()
    problems = [named[name] for name in _DEGENERATE]
    self._assert_private(problems, _config('soft', 'tight'))

  @parameterized.product(kind=('gated', 'soft'), sensitivity=('paper', 'tight'))
  @pytest.mark.slow
  def test_forty_graphs(self, kind, sensitivity):
    change = self._assert_private(_problems(40), _config(kind, sensitivity))
    self.assertEqual(change.utility, Fraction(24, 25))

  def test_overflowing_private_logits(self):
    """Whether a graph's logits are finite is private, and no error."""
    case = cases.random_case(5)
    scale = lambda layer, factor: {k: factor * v for k, v in layer.items()}
    hidden, output = case.params['hidden'], case.params['output']
    case = case._replace(
      params={'hidden': scale(hidden, 1e3), 'output': scale(output, 1e305)}
    )
    gaps = [
      checks.evaluate_factored(
        case.model, graph, case.features, case.support()
      ).gap[0, 0]
      for graph in checks.neighbors(case.private)
    ]
    # A gap of 0 stands for a start that is not finite.
    self.assertBetween(np.count_nonzero(gaps), 1, len(gaps) - 1)
    self._assert_private([case], _config('soft', 'tight'))
