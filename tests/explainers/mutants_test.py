"""Every mutant is caught, and what it was made from passes the same check."""

import dataclasses

from absl.testing import parameterized

from tests import mutants_explainers as mutants
from tests.explainers import checks


class ExactnessMutantsTest(parameterized.TestCase):
  @parameterized.parameters(*mutants.EXACTNESS)
  def test_is_caught(self, name):
    with mutants.EXACTNESS[name]():
      self.assertNotEmpty(checks.exactness_violations())

  def test_the_library_passes(self):
    self.assertEqual(checks.exactness_violations(), [])


class SearchMutantsTest(parameterized.TestCase):
  @parameterized.parameters(*enumerate(mutants.SEARCH))
  def test_is_caught(self, index, name):
    # A config of its own: compiled code is kept by config.
    config = dataclasses.replace(mutants.LIBRARY_CONFIG, num_steps=61 + index)
    with mutants.SEARCH[name]():
      self.assertNotEmpty(checks.search_violations(config))

  def test_the_library_passes(self):
    self.assertEqual(checks.search_violations(mutants.LIBRARY_CONFIG), [])


class PrivacyMutantsTest(parameterized.TestCase):
  @parameterized.parameters(*mutants.SGD_PRIVACY)
  def test_sgd_is_caught(self, name):
    self.assertNotEmpty(checks.sgd_violations(mutants.SGD_PRIVACY[name]()))

  def test_sgd_of_the_library_passes(self):
    self.assertEqual(checks.sgd_violations(mutants.library_sgd()), [])

  @parameterized.parameters(*mutants.RESPONSE_PRIVACY)
  def test_response_is_caught(self, name):
    found = checks.response_violations(
      mutants.RESPONSE_PRIVACY[name], epsilon=3
    )
    self.assertIn('ratio', ' '.join(found))

  def test_response_of_the_library_passes(self):
    self.assertEqual(
      checks.response_violations(mutants.UNMUTATED_RESPONSE, epsilon=3), []
    )
