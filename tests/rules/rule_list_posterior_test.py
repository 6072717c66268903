import itertools
from unittest import mock

from absl.testing import parameterized
import numpy as np

from privjax.rules import mining
from privjax.rules import rule_list_posterior as posterior
from tests.oracles import rule_list as oracle
from tests.rules import rule_list_cases as cases


class PosteriorTest(parameterized.TestCase):
  @parameterized.parameters(*cases.CASES)
  def test_equals_the_enumerated_posterior(self, name):
    error = cases.posterior_error(posterior.log_posterior, cases.CASES[name])
    self.assertLess(error, 1e-12)

  @parameterized.parameters(*cases.CASES)
  def test_prior_equals_its_definition_and_adds_up_to_one(self, name):
    case = cases.CASES[name]
    self.assertLess(cases.prior_error(posterior.log_prior, case), 1e-12)
    for rule_list in case.lists:
      exact = oracle.prior(
        rule_list,
        case.widths,
        expected_length=case.expected_length,
        expected_width=case.expected_width,
      )
      value = np.exp(posterior.log_prior(case.problem, rule_list))
      np.testing.assert_allclose(value, float(exact), rtol=1e-12)

  @parameterized.parameters(*cases.CASES)
  def test_likelihood_is_normalized(self, name):
    case = cases.CASES[name]
    for rule_list in case.lists:
      exact = oracle.likelihood(
        rule_list, case.holds, case.labels, alpha=case.alpha
      )
      value = np.exp(posterior.log_likelihood(case.problem, rule_list))
      np.testing.assert_allclose(value, float(exact), rtol=1e-12)

  def test_an_order_that_changes_nothing_ties_exactly(self):
    # Antecedents of one cell each: no two of them hold in one row.
    mined = mining.Antecedents(
      items=((0,), (1,), (2,), (3,), (4,)),
      extents=(1, 2, 4, 8, 16),
      supports=(11, 6, 10, 5, 7),
      num_duplicates=0,
    )
    counts = np.array([[7, 4], [1, 5], [3, 7], [2, 3], [6, 1], [9, 8]])
    problem = posterior.make(mined, counts)
    for chosen in itertools.combinations(range(5), 3):
      values = {
        posterior.log_posterior(problem, rule_list)
        for rule_list in itertools.permutations(chosen)
      }
      self.assertLen(values, 1, chosen)

  def test_class_counts_partition_the_rows(self):
    case = cases.CASES['three']
    for rule_list in case.lists:
      counts = posterior.class_counts(case.problem, rule_list)
      self.assertEqual(counts.shape, (len(rule_list) + 1, 2))
      np.testing.assert_array_equal(
        counts.sum(axis=0), [np.sum(case.labels == c) for c in (-1, 1)]
      )

  def test_the_memo_changes_nothing_and_is_bounded(self):
    case = cases.make()
    values = [posterior.log_posterior(case.problem, d) for d in case.lists]
    self.assertNotEmpty(case.problem.log_betas)
    bound = 3 * len(case.problem.counts)
    with mock.patch.object(posterior, '_MEMO_BITS', bound):
      for rule_list, value in zip(case.lists, values):
        found = posterior.log_posterior(case.problem, rule_list)
        self.assertEqual(found, value)
      case.problem.log_betas.clear()
      for rule_list, value in zip(case.lists, values):
        found = posterior.log_posterior(case.problem, rule_list)
        self.assertEqual(found, value)
        self.assertLessEqual(len(case.problem.log_betas), 4)

  def test_many_antecedents_do_not_overflow(self):
    mined = mining.Antecedents(((0,),) * 3000, (1,) * 3000, (1,) * 3000, 0)
    problem = posterior.make(mined, np.array([[1, 1]]))
    self.assertLess(abs(np.exp(problem.log_length).sum() - 1), 1e-12)

  @parameterized.parameters(1e-300, 1e300)
  def test_extreme_widths_are_finite(self, expected_width):
    problem = cases.make(expected_width=expected_width).problem
    for rule_list in oracle.all_lists(problem.num_antecedents):
      self.assertTrue(np.isfinite(posterior.log_prior(problem, rule_list)))

  @parameterized.parameters(
    ({'expected_length': 0}, 'expected_length'),
    ({'expected_width': -1}, 'expected_width'),
    ({'alpha': (1, 0)}, 'alpha'),
    ({'alpha': (1, 1, 1)}, 'alpha'),
  )
  def test_refuses(self, arguments, name):
    mined = mining.Antecedents((), (), (), 0)
    with self.assertRaisesRegex(ValueError, name):
      posterior.make(mined, np.array([[1, 1]]), **arguments)
