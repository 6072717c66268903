import collections
import math

from absl.testing import parameterized
import numpy as np

from privjax import prng
from privjax.rules import rule_list_chain as chain
from privjax.rules import rule_list_posterior as posterior
from tests.rules import rule_list_cases as cases


class KernelTest(parameterized.TestCase):
  @parameterized.parameters(*cases.CASES)
  def test_the_posterior_is_stationary(self, name):
    error = cases.balance_error(chain.propose, cases.CASES[name])
    self.assertLess(error, 1e-12)

  def test_the_posterior_of_four_antecedents_is_stationary(self):
    case = cases.make(((0,), (1,), (0, 1), (1, 2)), seed=2)
    self.assertLess(cases.balance_error(chain.propose, case), 1e-12)

  def test_every_list_is_reached(self):
    matrix = cases.kernel(chain.propose, cases.CASES['three'])
    reached = np.linalg.matrix_power(matrix, 8)
    np.testing.assert_allclose(matrix.sum(axis=1), 1, atol=1e-12)
    self.assertTrue((reached > 0).all())

  def test_a_single_antecedent(self):
    case = cases.make(((0,),))
    self.assertLess(cases.balance_error(chain.propose, case), 1e-12)

  @parameterized.parameters((0, 3), (1, 3), (2, 3), (3, 3), (1, 1), (0, 1))
  def test_kinds_are_equally_likely_where_possible(self, length, size):
    kinds = chain.kind_probabilities(length, size)
    possible = [length >= 2, length < size, length >= 1]
    self.assertEqual([k > 0 for k in kinds], possible)
    self.assertLen({k for k in kinds if k > 0}, 1)
    self.assertAlmostEqual(sum(kinds), 1)

  @parameterized.parameters(0.0, 1 - 2**-53)
  def test_the_ends_of_the_unit_interval(self, u):
    for rule_list in ((), (1,), (2, 0), (0, 2, 1)):
      for kind in (0.0, 0.5, 1 - 2**-53):
        proposal, _ = chain.propose(rule_list, 3, (kind, u, u))
        self.assertIn(proposal, cases.CASES['three'].lists)
        self.assertNotEqual(proposal, rule_list)

  @parameterized.parameters(-np.inf, -800.0, -1.0, -1e-9, 0.0, 3.0, 800.0)
  def test_accepts_with_the_ratio_as_probability(self, log_ratio):
    probability = math.exp(min(0.0, log_ratio))
    for u in (0.0, 0.2, 0.4, 0.9, 1 - 2**-53):
      self.assertEqual(chain.accepts(log_ratio, u), u < probability)


class RunTest(parameterized.TestCase):
  def test_visits_lists_as_often_as_the_posterior_says(self):
    case = cases.CASES['three']
    steps = chain.uniforms(prng.key(3), (40_000, 4))
    result = chain.run(case.problem, (), steps, {})
    visits = collections.Counter(result.states)
    shares = np.array([visits[d] for d in case.lists]) / len(steps)
    # Without rejected steps the distance is .15.
    self.assertLess(np.abs(shares - case.exact()).sum() / 2, 0.03)

  def test_is_a_function_of_the_steps_and_not_of_the_cache(self):
    case = cases.CASES['three']
    steps = chain.uniforms(prng.key(0), (300, 4))
    cache = {}
    first = chain.run(case.problem, (0,), steps, cache)
    again = chain.run(case.problem, (0,), steps, cache)
    self.assertEqual(first.states, again.states)
    changed = sum(a != b for a, b in zip([(0,), *first.states], first.states))
    self.assertEqual(first.num_accepted, changed)
    for state, value in zip(first.states, first.log_posterior):
      self.assertEqual(value, posterior.log_posterior(case.problem, state))

  def test_starts_are_valid_and_of_the_prior_length(self):
    case = cases.make(((0,), (1,), (0, 1), (1, 2)))
    starts = [
      chain.draw_start(case.problem, prng.stream(prng.key(0), number))
      for number in range(400)
    ]
    self.assertTrue(set(starts) <= set(case.lists))
    lengths = np.bincount([len(s) for s in starts], minlength=5) / 400
    # 5 standard deviations of a share of 400 draws.
    np.testing.assert_allclose(
      lengths, np.exp(case.problem.log_length), atol=5 * 0.025
    )
