"""Tests of the selection: brute force over subsets, and answers that lie."""

from unittest import mock

from absl.testing import parameterized
import numpy as np

from privjax.rules import selection
from tests.oracles import rules_attack as oracle
from tests.rules import selection_cases


class SelectTest(parameterized.TestCase):
  def test_is_the_best_of_all_subsets(self):
    statuses = []
    for problem in selection_cases.PROBLEMS:
      found = selection.select(problem)
      best = oracle.best_objective(problem)
      # The gap is relative, and here less than one half.
      self.assertEqual(found.objective, best)
      self.assertEqual(found.objective, oracle.objective(problem, found.chosen))
      statuses.append(found.status)
    self.assertGreater(statuses.count('optimal'), len(statuses) // 2)

  def test_greedy_covers(self):
    gaps = []
    for problem in selection_cases.PROBLEMS:
      chosen = selection.greedy_cover(problem)
      value = oracle.objective(problem, chosen)
      self.assertIsNotNone(value)
      gaps.append(oracle.best_objective(problem) - value)
      found = selection.select(problem, node_limit=0)
      if len(problem.consequent):
        self.assertEqual(found.chosen.tolist(), chosen.tolist())
        self.assertEqual((found.status, found.objective), ('greedy', value))
    # The program is worth its while.
    self.assertGreater(max(gaps), 2)

  def test_merging_changes_no_objective(self):
    for problem in selection_cases.PROBLEMS:
      merged = selection.merged(problem)
      self.assertEqual(merged.counts.sum(), problem.counts.sum())
      for chosen in ([], [0], [0, 1], list(range(len(problem.consequent)))):
        if len(problem.consequent) >= len(chosen):
          self.assertEqual(
            oracle.objective(problem, chosen), oracle.objective(merged, chosen)
          )

  def test_greedy_takes_agreeing_then_shorter_then_first(self):
    problem = selection.Problem(
      applies=np.array([[1, 1, 1, 1], [1, 1, 1, 0]], bool),
      counts=np.array([[9, 2], [0, 2]]),
      consequent=np.array([1, -1, -1, -1]),
      weight=np.ones(4, int),
      lengths=np.array([1, 2, 1, 1]),
      default=1,
      coverage=1,
    )
    # Rule 0 agrees with 4 rows, the others with 9; rules 1 and 2 cover both
    # distinct rows, and of these rule 2 is shorter.
    self.assertEqual(selection.greedy_cover(problem).tolist(), [2])
    even = problem._replace(lengths=np.ones(4, int))
    self.assertEqual(selection.greedy_cover(even).tolist(), [1])

  def test_greedy_counts_only_rows_that_are_not_covered(self):
    problem = selection.Problem(
      applies=np.array([[1, 1, 0, 1], [1, 1, 0, 0], [0, 0, 1, 1]], bool),
      counts=np.array([[5, 0], [5, 0], [2, 0]]),
      consequent=np.full(4, -1),
      weight=np.ones(4, int),
      lengths=np.array([1, 1, 2, 3]),
      default=1,
      coverage=1,
    )
    # After rule 0, rules 2 and 3 help the last row alone, and 1 none.
    self.assertEqual(selection.greedy_cover(problem).tolist(), [0, 2])

  def test_greedy_covers_by_disagreeing_rules_where_no_other_is_left(self):
    problem = selection.Problem(
      applies=np.array([[1, 1]], bool),
      counts=np.array([[5, 0]]),
      consequent=np.array([1, -1]),
      weight=np.ones(2, int),
      lengths=np.ones(2, int),
      default=1,
      coverage=2,
    )
    self.assertEqual(selection.greedy_cover(problem).tolist(), [0, 1])

  def test_no_candidate(self):
    problem = selection_cases.problem(0)
    empty = problem._replace(
      applies=problem.applies[:, :0],
      consequent=problem.consequent[:0],
      weight=problem.weight[:0],
      lengths=problem.lengths[:0],
      default=1,
    )
    found = selection.select(empty)
    self.assertEqual(found.status, 'empty')
    self.assertEqual(found.chosen.tolist(), [])
    self.assertEqual(found.agreement, problem.counts[:, 1].sum())

  def test_the_penalty_drops_a_rule_that_decides_nothing(self):
    problem = selection.Problem(
      applies=np.eye(2, dtype=bool),
      counts=np.array([[0, 5], [5, 0]]),
      consequent=np.array([1, -1]),
      weight=np.ones(2, int),
      lengths=np.ones(2, int),
      default=1,
      coverage=0,
    )
    # The default says what rule 0 does.
    self.assertEqual(selection.select(problem).chosen.tolist(), [1])

  def test_the_limits_are_nodes_and_a_gap(self):
    seen, solve = [], selection.optimize.milp

    def watched(*args, options, **kwargs):
      seen.append(dict(options))  # SciPy takes entries out.
      return solve(*args, options=options, **kwargs)

    with mock.patch.object(selection.optimize, 'milp', watched):
      selection.select(selection_cases.hard(), node_limit=77)
    self.assertEqual(seen, [{'node_limit': 77, 'mip_rel_gap': 1e-4}])

  @parameterized.parameters(-1, 1.5, None)
  def test_bad_node_limit(self, node_limit):
    with self.assertRaisesRegex(ValueError, 'node_limit'):
      selection.select(selection_cases.problem(0), node_limit=node_limit)


class VerifiedTest(parameterized.TestCase):
  def _truth(self):
    problem = selection.merged(selection_cases.hard())
    found = selection.select(problem)
    z = np.zeros(len(problem.consequent))
    z[found.chosen] = 1
    return problem, z, float(found.objective)

  def test_the_truth_passes(self):
    problem, z, claimed = self._truth()
    chosen = selection.verified(problem, z + 1e-7, claimed + 1e-6)
    self.assertEqual(chosen.tolist(), np.flatnonzero(z).tolist())

  @parameterized.named_parameters(
    ('fraction', 0.5),
    ('almost_an_integer', 1 - 1e-3),
    ('nan', np.nan),
  )
  def test_not_an_integer(self, value):
    problem, z, claimed = self._truth()
    z[np.argmax(z)] = value
    self.assertIsNone(selection.verified(problem, z, claimed - 100))

  def test_not_covering(self):
    problem, z, claimed = self._truth()
    self.assertIsNone(selection.verified(problem, 0 * z, claimed - 100))

  def test_claims_too_much(self):
    problem, z, claimed = self._truth()
    self.assertIsNone(selection.verified(problem, z, claimed + 0.5))

  @parameterized.named_parameters(
    ('nothing', lambda result: result.update(x=None)),
    ('uncovered', lambda result: result.update(x=0 * result.x)),
    ('halves', lambda result: result.update(x=0 * result.x + 0.5)),
    ('boast', lambda result: result.update(fun=result.fun - 1)),
  )
  def test_a_false_answer_gives_the_greedy_cover(self, spoil):
    problem = selection_cases.hard()
    self.assertEqual(selection.select(problem).status, 'optimal')
    solve = selection.optimize.milp

    def spoiled(*args, **kwargs):
      result = solve(*args, **kwargs)
      spoil(result)
      return result

    with mock.patch.object(selection.optimize, 'milp', spoiled):
      found = selection.select(problem)
    self.assertEqual(found.status, 'greedy')
    greedy = selection.greedy_cover(selection.merged(problem))
    self.assertEqual(found.chosen.tolist(), greedy.tolist())

  def test_a_true_answer_that_is_worse_gives_the_greedy_cover(self):
    problem = selection_cases.hard()
    num_rules = len(problem.consequent)
    everything = selection.Selection(
      np.arange(num_rules),
      selection.agreement(problem, np.arange(num_rules)),
      oracle.objective(problem, range(num_rules)),
      'node_limit',
    )
    greedy = selection.select(problem, node_limit=0)
    self.assertLess(everything.objective, greedy.objective)
    solve = selection.optimize.milp

    def stopped(*args, **kwargs):
      result = solve(*args, **kwargs)
      result.x[:num_rules] = 1
      result.update(status=1, fun=-float(everything.objective))
      return result

    with mock.patch.object(selection.optimize, 'milp', stopped):
      found = selection.select(problem)
    self.assertEqual(found.status, 'greedy')
    self.assertEqual(found.objective, greedy.objective)

  @parameterized.parameters(0, 1, 2)
  def test_the_answer_of_a_search_of_one_node_is_used(self, seed):
    # The solver's own stop, not a mock of it: its status is 4 in SciPy.
    generator = np.random.Generator(np.random.Philox(seed))
    problem = selection.Problem(
      applies=generator.random((80, 25)) < 0.3,
      counts=generator.integers(0, 5, (80, 2)),
      consequent=generator.choice([-1, 1], 25),
      weight=np.ones(25, int),
      lengths=np.ones(25, int),
      default=1,
      coverage=2,
    )
    found = selection.select(problem, node_limit=1)
    greedy = selection.select(problem, node_limit=0)
    self.assertEqual(found.status, 'node_limit')
    self.assertGreater(found.objective, greedy.objective)
    self.assertEqual(found.objective, oracle.objective(problem, found.chosen))

  def test_a_stopped_search_says_so(self):
    problem = selection_cases.hard()
    solve = selection.optimize.milp

    def stopped(*args, **kwargs):
      result = solve(*args, **kwargs)
      result.update(status=1)
      return result

    with mock.patch.object(selection.optimize, 'milp', stopped):
      found = selection.select(problem)
    self.assertEqual(found.status, 'node_limit')
