"""Interventions, their surgery, and what the exact model says of them."""

from absl.testing import parameterized
import numpy as np

from privjax import explainers
from tests.counterfactual import cases
from tests.explainers import checks


class InterventionTest(parameterized.TestCase):
  def test_size_counts_elements(self):
    cut = explainers.Intervention(
      target=0, pairs=((0, 2), (1, 2)), features=(4,)
    )
    self.assertEqual((cut.num_edges, cut.num_features, cut.size), (2, 1, 3))

  @parameterized.parameters(
    ({'target': -1}, 'target'),
    ({'pairs': ((2, 1),)}, 'pairs'),
    ({'pairs': ((1, 1),)}, 'pairs'),
    ({'pairs': ((-1, 1),)}, 'pairs'),
    ({'pairs': ((1, 2), (0, 1))}, 'pairs'),
    ({'pairs': ((0, 1), (0, 1))}, 'pairs'),
    ({'features': (3, 1)}, 'features'),
    ({'features': (-1,)}, 'features'),
  )
  def test_refuses(self, change, name):
    with self.assertRaisesRegex(ValueError, f'^{name} must'):
      explainers.Intervention(**({'target': 0} | change))

  def test_surgery_equals_the_definition(self):
    case = cases.random_case(3)
    graph = case.private.graph
    named = [*map(tuple, graph.pairs[[0, 2]].tolist()), (6, 7)]
    cut = explainers.Intervention(
      target=case.target, pairs=tuple(sorted(set(named))), features=(0, 3)
    )
    edited, masked = explainers.apply_intervention(graph, case.features, cut)
    expected = {tuple(p) for p in graph.pairs.tolist()} - set(cut.pairs)
    self.assertEqual({tuple(p) for p in edited.pairs.tolist()}, expected)
    degree = np.bincount(edited.pairs.ravel(), minlength=cases.NUM_NODES)
    np.testing.assert_array_equal(edited.degree, degree)
    dense = case.features.toarray()
    dense[case.target, [0, 3]] = 0
    np.testing.assert_array_equal(masked.toarray(), dense)

  @parameterized.parameters(
    ({'target': cases.NUM_NODES}, 'target'),
    ({'pairs': ((0, cases.NUM_NODES),)}, 'pairs'),
    ({'features': (cases.NUM_FEATURES,)}, 'features'),
  )
  def test_foreign_ids(self, change, name):
    case = cases.random_case(3)
    cut = explainers.Intervention(**({'target': 0} | change))
    with self.assertRaisesRegex(ValueError, f'^{name} must'):
      explainers.predict(*checks.about(case), [cut])
    with self.assertRaisesRegex(ValueError, f'^{name} must'):
      explainers.apply_intervention(case.private.graph, case.features, cut)

  def test_predict_equals_a_forward_after_surgery(self):
    for seed in range(4):
      case = cases.random_case(seed)
      space = checks.space_of(case)
      cuts = [space.intervention(*m) for m in checks.random_masks(space, seed)]
      labels = explainers.predict(*checks.about(case), cuts)
      for index, cut in enumerate(cuts):
        edited, masked = explainers.apply_intervention(
          case.private.graph, case.features, cut
        )
        self.assertEqual(
          labels.new[index],
          np.argmax(
            checks.oracle_logits(
              case._replace(
                private=cases.private_graph(edited.pairs), features=masked
              ),
              explainers.Intervention(target=case.target),
            )
          ),
        )

  def test_found_on_one_graph_and_checked_on_another(self):
    """A pair that the clean graph lacks does nothing there."""
    case = cases.make([(0, 1), (1, 2)], target=0)
    absent = explainers.Intervention(target=0, pairs=((0, 5), (3, 4)))
    labels = explainers.predict(*checks.about(case), [absent])
    self.assertEqual(labels.new[0], labels.original[0])
    empty = explainers.Intervention(target=0)
    logits = checks.oracle_logits(case, empty)
    top = np.sort(logits)
    self.assertAlmostEqual(labels.gap[0], top[-1] - top[-2], delta=1e-12)
    self.assertEqual(labels.runner_up[0], np.argsort(logits)[-2])
