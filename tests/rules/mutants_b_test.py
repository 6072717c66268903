"""Every mutant is caught, and what it was made from passes the same check."""

from absl.testing import parameterized

from privjax.rules import bayes_attack
from privjax.rules import forest_rules
from privjax.rules import inversion
from privjax.rules import selection
from privjax.rules import violation
from tests import mutants_rules_b as mutants
from tests.rules import attack_checks


def _library_status(rules, attribute, x, labels, alpha):
  scores = violation.score(rules, attribute, x, labels)
  return violation.statuses(scores, alpha=alpha)


class LibraryTest(parameterized.TestCase):
  @parameterized.named_parameters(
    ('status', attack_checks.status_errors, _library_status),
    ('status_by_floats', attack_checks.status_errors, mutants.status_of),
    ('equality', attack_checks.equality_errors, violation.statuses),
    ('pruning', attack_checks.pruning_errors, attack_checks.library_kept),
    ('scores', attack_checks.score_errors, inversion.rule_scores),
    ('guess', attack_checks.guess_errors, inversion.guess),
    ('selection', attack_checks.selection_errors, selection.select),
    ('boxes', attack_checks.box_errors, forest_rules.leaf_boxes),
    ('signals', attack_checks.signal_errors, bayes_attack.release_signals),
  )
  def test_passes(self, check, subject):
    self.assertEqual(check(subject), 0)


class MutantsTest(parameterized.TestCase):
  @parameterized.parameters(*mutants.STATUSES)
  def test_status_is_not_that_of_the_exact_ratio(self, name):
    self.assertGreater(attack_checks.status_errors(mutants.STATUSES[name]), 0)

  @parameterized.parameters(*mutants.EQUALITIES)
  def test_equality_is_lost(self, name):
    self.assertGreater(
      attack_checks.equality_errors(mutants.EQUALITIES[name]), 0
    )

  @parameterized.parameters(*mutants.PRUNINGS)
  def test_other_rules_are_kept(self, name):
    self.assertGreater(attack_checks.pruning_errors(mutants.PRUNINGS[name]), 0)

  @parameterized.parameters(*mutants.SCORES)
  def test_scores_are_not_those_of_the_loops(self, name):
    self.assertGreater(attack_checks.score_errors(mutants.SCORES[name]), 0)

  @parameterized.parameters(*mutants.GUESSES)
  def test_guess_is_not_that_of_the_loops(self, name):
    self.assertGreater(attack_checks.guess_errors(mutants.GUESSES[name]), 0)

  @parameterized.parameters(*mutants.SELECTIONS)
  def test_selection_is_not_the_best_of_all_subsets(self, name):
    self.assertGreater(
      attack_checks.selection_errors(mutants.SELECTIONS[name]), 0
    )

  @parameterized.parameters(*mutants.BOXES)
  def test_leaf_is_not_the_trees(self, name):
    self.assertGreater(attack_checks.box_errors(mutants.BOXES[name]), 0)

  @parameterized.parameters(*mutants.SIGNALS)
  def test_signals_are_not_those_of_the_loops(self, name):
    self.assertGreater(attack_checks.signal_errors(mutants.SIGNALS[name]), 0)
