"""Every wrong sampler is caught by a named check that the library passes."""

from absl.testing import parameterized

from tests import mutants_sampling
from tests.mechanisms import sampling_checks

# What finds each mutant: a check of `sampling_checks`, one at least.
_CAUGHT_BY = {
  'missing_factor_two': (
    'privacy',
    'permute_and_flip_privacy',
    'exponential_law',
  ),
  'understated_sensitivity': ('privacy', 'exponential_law'),
  'float_level_weights': ('reachability', 'exponential_law'),
  'float_hidden_in_the_scale': ('float_free_run',),
  'uniform_within_a_level': ('exponential_law',),
  'weights_ignored': ('exponential_law',),
  'boundaries_rounded_inward': ('coarse_enclosures',),
  'enclosure_rounded_inward': ('enclosures',),
  'taylor_without_remainder': ('enclosures',),
  'decided_by_the_first_point': ('exponential_law', 'privacy'),
  'tie_at_a_boundary_rejected': ('equal_candidates',),
  'rejection_off_by_one': ('exponential_law', 'equal_candidates'),
  'modulo_bias': ('exponential_law', 'permute_and_flip_law'),
  'seeded_marked_certified': ('certification',),
  'subclass_marked_certified': ('certification',),
  'fallback_to_random': ('entropy_failure',),
  'short_read_accepted': ('entropy_failure',),
  'coin_misses_a_digit': ('permute_and_flip_law',),
  'coins_with_replacement': ('permute_and_flip_law',),
  'first_accepted_by_index': ('permute_and_flip_law', 'exponential_law'),
}
_CHECKS = sampling_checks.CHECKS


class MutantsTest(parameterized.TestCase):
  @parameterized.parameters(
    (mutant, check) for mutant in _CAUGHT_BY for check in _CAUGHT_BY[mutant]
  )
  def test_is_caught(self, mutant, check):
    with mutants_sampling.MUTANTS[mutant]():
      self.assertNotEmpty(_CHECKS[check]())

  @parameterized.parameters(*_CHECKS)
  def test_the_library_passes(self, check):
    self.assertEqual(_CHECKS[check](), [])

  def test_every_mutant_has_a_check_and_every_check_a_mutant(self):
    self.assertEqual(set(_CAUGHT_BY), set(mutants_sampling.MUTANTS))
    used = {check for checks in _CAUGHT_BY.values() for check in checks}
    self.assertEqual(used | {'float_free_source'}, set(_CHECKS))


class SourceMutantsTest(parameterized.TestCase):
  @parameterized.parameters(*mutants_sampling.SOURCE_MUTANTS)
  def test_is_caught(self, name):
    module, old, new = mutants_sampling.SOURCE_MUTANTS[name]
    texts = sampling_checks.sources()
    texts[module] = sampling_checks.edited(module, old, new)
    found = sampling_checks.float_free_source(texts)
    self.assertNotEmpty(found)
    self.assertTrue(all(text.startswith(module) for text in found), found)

  def test_the_law_beside_the_sampler_is_not_on_its_call_graph(self):
    """`log_law` divides; the sampler of the same module passes."""
    texts = sampling_checks.sources()
    self.assertEmpty(sampling_checks.float_free_source(texts))
    texts['permute_and_flip'] = sampling_checks.edited(
      'permute_and_flip', '  bits_used = 0\n', '  bits_used = log_law\n'
    )
    self.assertNotEmpty(sampling_checks.float_free_source(texts))
