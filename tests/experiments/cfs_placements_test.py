"""What rows of Table 3 compare, and what they say about themselves."""

from unittest import mock

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np
import pandas as pd

from experiments import cfs_baselines_report
from experiments import cfs_methods
from experiments import cfs_placements
from experiments import worlds
from privjax import counterfactual
from privjax import explainers
from privjax import graphs
from privjax import placement

_RHO = '0.5'


def _cell(method):
  world = worlds.load('embedded', 0, None)
  return cfs_methods.Cell(
    world=world,
    targets=worlds.targets(world, 'borderline', 0),
    seed=0,
    epsilon='8',
    delta='1e-5',
    num_draws=1,
    num_steps=1,
    placements=(method,),
  )


def _without_noise(private, *, epsilon, seed):
  del seed
  return placement.NoisyGraph(
    graph=private.graph, guarantee=placement.lap_graph.guarantee(epsilon)
  )


class GraphLevelTest(parameterized.TestCase):
  def test_a_backbone_without_noise_pollutes_nothing(self):
    """What the row measures is the noise, not another initialization."""
    nothing = lambda model, graph, features, targets, **_: [None] * len(targets)
    with (
      mock.patch.object(placement.lap_graph, 'privatize', _without_noise),
      mock.patch.object(explainers, 'find_interventions', nothing),
    ):
      cell = _cell(cfs_methods.MODEL_LEVEL)
      (row,) = cfs_placements.graph_level(
        cell, 'inert', {}, cfs_placements.draw(cell)
      )
    self.assertEqual(row['placement'], 'model')
    self.assertEqual(row['num_polluted'], 0)

  @parameterized.parameters('effective', 'inert')
  def test_currency_and_conditions(self, arm):
    cell = _cell('EdgeRand')
    cell = cell._replace(targets=cell.targets[:2])
    snapshot = worlds.load_snapshot('embedded', 0, _RHO, None)
    rows = cfs_placements.graph_level(
      cell, arm, {_RHO: snapshot}, cfs_placements.draw(cell)
    )
    field, universe = rows
    both = 'edges+features'
    self.assertEqual(field['currency'], both if arm == 'effective' else 'edges')
    self.assertEqual(universe['currency'], both)
    self.assertNotIn('snapshot', field)
    self.assertEqual(universe['snapshot'], 'simulated')
    self.assertIn('sampled from the private graph', universe['not_covered'])
    for row in rows:
      self.assertTrue(row['certified'])
      self.assertIn('floating point', row['not_covered'])

  def test_a_backbone_is_asked_about_the_public_support(self):
    """Table 7: its own labels decide, not those of the frozen backbone."""
    cell = _cell(cfs_methods.MODEL_LEVEL)
    cell = cell._replace(targets=cell.targets[:3])
    snapshot = worlds.load_snapshot('embedded', 0, _RHO, None)
    (drawn,) = cfs_placements.draw(cell).values()
    asked = []
    score = counterfactual.evaluate_factored

    def evaluate(model, *args, **kwargs):
      asked.append(model)
      return score(model, *args, **kwargs)

    with mock.patch.object(counterfactual, 'evaluate_factored', evaluate):
      rows = cfs_placements.graph_level(
        cell, 'inert', {_RHO: snapshot}, {cfs_methods.MODEL_LEVEL: drawn}
      )
    self.assertLen(rows, 2)
    self.assertEqual({row['placement'] for row in rows}, {'model'})
    self.assertLen(asked, 3)
    self.assertTrue(all(model is drawn.model for model in asked))


class ConditionsTest(absltest.TestCase):
  def test_an_external_snapshot_leaves_nothing_out(self):
    private = worlds.load_dataset('embedded', None).graph.graph
    row = {'not_covered': ''}
    found = cfs_methods.on_snapshot(row, graphs.Snapshot(private, 'external'))
    self.assertEqual(found, {'not_covered': '', 'snapshot': 'external'})
    found = cfs_methods.on_snapshot(row, graphs.Snapshot(private, 'simulated'))
    self.assertNotEmpty(found['not_covered'])

  def test_sizes_are_of_what_explains(self):
    found = cfs_methods.sizes_of([0, 3, 0, 5])
    self.assertEqual(found, {'total_size': 8, 'num_explained': 2})


class StandardErrorTest(parameterized.TestCase):
  @parameterized.parameters((0.0, 0.05), (1.0, 0.05), (0.5, 0.5 / 30**0.5))
  def test_a_rate_without_spread_is_not_exact(self, rate, expected):
    cell = pd.DataFrame({'num_targets': [10] * 3, 'csr': [rate] * 3})
    found = cfs_baselines_report.standard_error(cell, 'csr')
    np.testing.assert_allclose(found, expected)

  def test_a_mean_above_one_by_rounding(self):
    cell = pd.DataFrame({'num_targets': [10], 'csr': [1 + 2e-16]})
    found = cfs_baselines_report.standard_error(cell, 'csr')
    self.assertEqual(found, 0.15)
