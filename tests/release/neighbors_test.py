"""Two neighboring private graphs show the same, but for the drawn candidate."""

import functools

from absl.testing import parameterized
import jax
import numpy as np

from privjax import counterfactual
from privjax import graphs
from privjax import models
from privjax.counterfactual import evaluation
from privjax.counterfactual import factored
from tests.counterfactual import cases
from tests.release import neighbor_runs

_PATH = [(i, i + 1) for i in range(7)]
_STAR = [(0, i) for i in range(1, 8)]
_DENSE = cases.random_case(1, density=0.7)
_DEGREE = int(_DENSE.private.graph.degree[_DENSE.target])
# The target just fits, and one more edge is one too many.
_SMALL = counterfactual.NeighborCapacity(neighbors=_DEGREE, second=2)
_FIELD = graphs.Capacity(num_nodes=5, num_edges=8)


def _own_model(params, graph):
  """A model that only the general evaluator takes."""
  return models.gcn.apply(params, graph)


def _problems() -> dict[str, neighbor_runs.Problem]:
  of = neighbor_runs.problem
  own = models.NodeModel(_own_model, _DENSE.params, models.gcn.NUM_HOPS)
  return {
    'everything fits': of(cases.random_case(2)),
    'the last edge of the target': of(cases.make(_PATH, target=0)),
    'an isolated target': of(cases.make([(1, 2)], snapshot=_STAR)),
    'hubs are cut': of(_DENSE, capacity=_SMALL),
    'two hops': of(
      cases.random_case(4),
      config=counterfactual.PrivCFSConfig(
        num_pairs=5,
        max_edges=2,
        num_features=4,
        max_features=2,
        num_hops=2,
        utility=counterfactual.UtilityConfig(kind='soft'),
      ),
    ),
    'a model of your own, cut': of(_DENSE, model=own, capacity=_FIELD),
  }


# All 28 toggles where capacities are crossed anywhere; else the target's 7.
_ALL = ('everything fits', 'hubs are cut')


@functools.cache
def _own_run(name: str) -> neighbor_runs.Observation:
  this = _problems()[name]
  neighbor_runs.observe(this, this.case.private)  # Compiles.
  return neighbor_runs.observe(this, this.case.private)


def _neighbors(name: str) -> list[graphs.PrivateGraph]:
  case = _problems()[name].case
  return [
    graphs.PrivateGraph(graphs.toggle_pair(case.private.graph, pair))
    for pair in cases.ALL_PAIRS
    if name in _ALL or case.target in pair
  ]


class NeighborsTest(parameterized.TestCase):
  @parameterized.parameters(*_problems())
  def test_only_the_drawn_candidate_differs(self, name):
    this, own = _problems()[name], _own_run(name)
    others = [neighbor_runs.observe(this, graph) for graph in _neighbors(name)]
    found = [neighbor_runs.differences(this, own, other) for other in others]
    self.assertEqual(found, [[]] * len(others))
    # The comparison is of runs that did draw from different laws.
    if name != 'an isolated target':
      self.assertTrue(
        any(
          neighbor_runs.drawn(one) != neighbor_runs.drawn(own) for one in others
        )
      )

  def test_toggles_reach_what_they_are_about(self):
    degree = lambda name: {
      int(graph.graph.degree[_problems()[name].case.target])
      for graph in _neighbors(name)
    }
    self.assertIn(0, degree('the last edge of the target'))
    self.assertEqual(degree('an isolated target'), {1})
    self.assertEqual(
      degree('hubs are cut'), {_DEGREE - 1, _DEGREE, _DEGREE + 1}
    )
    self.assertGreater(_DENSE.private.graph.degree.max(), _SMALL.second)

  def test_equal_draws_give_equal_bytes(self):
    this, own = _problems()['everything fits'], _own_run('everything fits')
    again = neighbor_runs.observe(this, this.case.private)
    self.assertEqual(again, own)


class TracedOperationsTest(parameterized.TestCase):
  def test_the_compiled_program_is_the_same(self):
    for name in ('everything fits', 'hubs are cut'):
      this = _problems()[name]
      programs = {
        self._program(this, graph)
        for graph in [this.case.private, *_neighbors(name)[:6]]
      }
      self.assertLen(programs, 1)

  def test_a_size_that_follows_the_degree_changes_it(self):
    complete = cases.make(cases.ALL_PAIRS, target=2)
    this = neighbor_runs.problem(complete, capacity=None)
    self.assertNotEqual(
      self._program(this, complete.private),
      self._program(this, cases.private_graph([])),
    )

  def _program(self, this, private) -> str:
    support = this.case.support(this.config)
    plan = evaluation.plan(private, this.case.features, support, 'effective')
    inputs = factored.prepare(
      this.model, this.case.features, support, plan, capacity=this.capacity
    )
    score = functools.partial(factored.score, chunk_size=128)
    return str(jax.make_jaxpr(score)(this.case.params, inputs))


class ObservationTest(parameterized.TestCase):
  """The session exercises what it is there to compare."""

  def test_records_a_full_session(self):
    own = _own_run('everything fits')
    kinds = [entry.kind for entry in own.rows]
    paid = ['charge', 'release', 'charge', 'release', 'charge', 'charge']
    self.assertEqual(kinds, ['ledger', 'account', *paid])
    self.assertEqual([one.cached for one in own.results], [False, True, False])
    names = [error[0].split("'")[1].rpartition('.')[2] for error in own.errors]
    self.assertEqual(
      names,
      ['ReleaseError', 'EntropyError', 'InsufficientBudgetError', 'ValueError'],
    )
    self.assertEqual(own.reads, 2)
    self.assertLen(own.compiled, 3)
    self.assertLen(own.sampled, 3)
    self.assertEqual((own.logs, own.warned, own.printed), ([], [], ''))
    np.testing.assert_equal(
      sorted(own.files),
      ['0.json', '1.json', '2.json', 'export.jsonl', 'ledger.db']
      + ['ledger.db-shm', 'ledger.db-wal', 'public.npz', 'r'],
    )

  def test_a_compilation_is_seen_in_the_log(self):
    this = _problems()['everything fits']
    # A size that nothing else here compiles.
    this = this._replace(capacity=counterfactual.NeighborCapacity(5, 7))
    run = neighbor_runs.observe(this, this.case.private)
    self.assertTrue(any('_decide_all' in message for *_, message in run.logs))
