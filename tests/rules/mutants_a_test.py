"""Every mutant is caught, and what it was made from passes the same check."""

from absl.testing import parameterized
import numpy as np

from privjax import prng
from privjax.rules import bayesian_rule_list
from privjax.rules import mining
from privjax.rules import rule_io
from privjax.rules import rule_list_chain
from privjax.rules import rule_list_posterior as posterior
from privjax.rules import rule_set
from tests import mutants_rules_a as mutants
from tests.rules import rule_list_cases as cases
from tests.rules import rule_set_cases

# Far above the 1e-12 that the library keeps, far below what mutants reach.
_GUILTY = 1e-3


class PosteriorMutantsTest(parameterized.TestCase):
  @parameterized.parameters(*mutants.LOG_PRIORS)
  def test_prior_does_not_add_up_to_one(self, name):
    error = cases.prior_error(mutants.LOG_PRIORS[name], cases.CASES['three'])
    self.assertGreater(error, _GUILTY)

  @parameterized.parameters(*mutants.LOG_POSTERIORS)
  def test_posterior_is_not_the_enumerated_one(self, name):
    function = mutants.LOG_POSTERIORS[name]
    error = cases.posterior_error(function, cases.CASES['skewed'])
    self.assertGreater(error, _GUILTY)

  def test_mutants_use_the_correct_parts(self):
    case = cases.CASES['skewed']
    for rule_list in case.lists:
      counts = posterior.class_counts(case.problem, rule_list)
      np.testing.assert_allclose(
        mutants._log_likelihood(case.problem, counts),
        posterior.log_likelihood(case.problem, rule_list),
        rtol=1e-12,
      )
      np.testing.assert_allclose(
        mutants._log_prior(case.problem, rule_list, step=mutants._correct_step),
        posterior.log_prior(case.problem, rule_list),
        rtol=1e-12,
      )


class ChainMutantsTest(parameterized.TestCase):
  @parameterized.parameters(*mutants.PROPOSALS)
  def test_posterior_is_not_stationary(self, name):
    case = cases.CASES['three']
    error = cases.balance_error(mutants.PROPOSALS[name], case)
    self.assertGreater(error, _GUILTY)

  def test_dropped_rejections_are_caught(self):
    case = cases.CASES['three']
    steps = rule_list_chain.uniforms(prng.key(3), (5000, 4))
    distances = []
    for run in (rule_list_chain.run, mutants.run_drops_rejections):
      states = run(case.problem, (), steps, {}).states
      shares = [states.count(d) / len(states) for d in case.lists]
      distances.append(np.abs(np.array(shares) - case.exact()).sum() / 2)
    self.assertLess(distances[0], 0.06)
    self.assertGreater(distances[1], 0.1)


class OtherMutantsTest(parameterized.TestCase):
  @parameterized.parameters(*mutants.MINERS)
  def test_wrong_antecedents(self, name):
    self.assertFalse(rule_set_cases.mines_correctly(mutants.MINERS[name]))

  @parameterized.parameters(*mutants.MATCHES)
  def test_wrong_branches(self, name):
    function = mutants.MATCHES[name]
    self.assertGreater(rule_set_cases.stump_disagreements(function), 0)

  @parameterized.parameters(*mutants.PREDICTIONS)
  def test_wrong_predictions(self, name):
    function = mutants.PREDICTIONS[name]
    self.assertFalse(rule_set_cases.predicts_correctly(function))

  def test_last_match_is_caught(self):
    rules, rows = rule_set_cases.voting_set()
    self.assertNotEqual(
      mutants.last_match(rules, rows).tolist(),
      rule_set.first_match(rules, rows).tolist(),
    )

  @parameterized.parameters(*mutants.POINT_ESTIMATES)
  def test_wrong_lists(self, name):
    function = mutants.POINT_ESTIMATES[name]
    self.assertFalse(rule_set_cases.estimates_correctly(function))

  def test_rounded_json_is_caught(self):
    rules = rule_set.make(
      [[1 / 3]], [[2.0]], [1], names=('x',), default=1, ordered=False
    )
    rounded = rule_io.from_json(mutants.json_rounds(rules))
    self.assertNotEqual(rounded.lower[0, 0], rules.lower[0, 0])

  def test_the_library_passes(self):
    self.assertTrue(rule_set_cases.mines_correctly(mining.mine))
    self.assertEqual(rule_set_cases.stump_disagreements(rule_set.matches), 0)
    self.assertTrue(rule_set_cases.predicts_correctly(rule_set.predict))
    self.assertTrue(
      rule_set_cases.estimates_correctly(bayesian_rule_list.point_estimate)
    )
