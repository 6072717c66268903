"""Which elements may be named, and whether naming them is public."""

from absl.testing import parameterized
import numpy as np

from privjax import counterfactual
from privjax import explainers
from privjax import graphs
from tests.counterfactual import cases
from tests.explainers import checks


class ReceptiveFieldSpaceTest(parameterized.TestCase):
  def test_holds_every_edge_that_moves_the_logits(self):
    """Deleting any other edge changes nothing; some of these change a lot."""
    for seed in range(6):
      case = cases.random_case(seed, density=0.2)
      space = checks.space_of(case)
      inside = set(map(tuple, space.pairs.tolist()))
      empty = explainers.Intervention(target=case.target)
      clean = checks.oracle_logits(case, empty)
      for pair in map(tuple, case.private.graph.pairs.tolist()):
        cut = explainers.Intervention(target=case.target, pairs=(pair,))
        moved = np.abs(checks.oracle_logits(case, cut) - clean).max()
        if pair not in inside:
          self.assertEqual(moved, 0.0)

  def test_an_edge_that_leaves_the_field_is_in(self):
    case = cases.make([(0, 1), (1, 2), (2, 3), (3, 4)], target=0)
    space = checks.space_of(case)
    self.assertEqual(space.pairs.tolist(), [[0, 1], [1, 2], [2, 3]])
    self.assertFalse(space.is_public)

  def test_features_are_the_targets_own(self):
    case = cases.random_case(1)
    row = case.features.toarray()[case.target]
    space = checks.space_of(case)
    np.testing.assert_array_equal(space.features, np.flatnonzero(row))

  @parameterized.parameters(
    (True, True, 'edges+features'),
    (True, False, 'edges'),
    (False, True, 'features'),
    (False, False, 'nothing'),
  )
  def test_currency(self, edges, feature_masks, currency):
    case = cases.make([(0, 1), (1, 2)], target=0)
    space = checks.space_of(case, edges=edges, feature_masks=feature_masks)
    self.assertEqual(space.currency, currency)

  def test_isolated_target(self):
    case = cases.make([(1, 2)], target=0)
    self.assertEqual(checks.space_of(case).pairs.shape, (0, 2))

  def test_refuses_a_foreign_target(self):
    case = cases.make([(1, 2)], target=0)
    with self.assertRaisesRegex(ValueError, '^target must'):
      explainers.receptive_field_space(
        case.private.graph, case.features, 8, num_hops=2
      )


class PublicSpaceTest(parameterized.TestCase):
  def test_is_the_universe_whatever_the_private_graph(self):
    case = cases.random_case(2)
    universe = counterfactual.build_universe(
      case.snapshot,
      case.features,
      case.params['hidden']['kernel'],
      case.target,
      num_pairs=6,
      num_features=3,
    )
    space = explainers.public_space(universe)
    expected = np.sort(universe.pairs[universe.pair_valid], axis=1)
    np.testing.assert_array_equal(space.pairs, expected)
    self.assertTrue(space.is_public)
    self.assertLess(len(space.pairs), 6)
    self.assertLen(space.features, 3)

  def test_no_private_graph_can_reach_it(self):
    case = cases.random_case(2)
    with self.assertRaisesRegex(TypeError, 'Snapshot'):
      counterfactual.build_universe(
        case.private, case.features, case.params['hidden']['kernel'], 0
      )
    self.assertNotIsInstance(case.private, graphs.Snapshot)
