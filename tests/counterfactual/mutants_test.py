"""Every mutant is caught, and what it was made from passes the same check."""

import dataclasses
import fractions

from absl.testing import parameterized

from privjax import counterfactual
from tests import mutants
from tests.counterfactual import cases
from tests.counterfactual import checks

Fraction = fractions.Fraction

_EPSILON = Fraction(4)
_CONFIG = counterfactual.PrivCFSConfig(
  num_pairs=5,
  max_edges=2,
  num_features=5,
  max_features=3,
  utility=counterfactual.UtilityConfig(sensitivity='tight'),
)
# What each privacy mutant must be found guilty of.
_CHARGES = {
  'missing_factor_two': {'ratio'},
  'understated_sensitivity': {'utility', 'ratio'},
  'unbounded_utility': {'utility', 'ratio'},
  'universe_from_the_private_graph': {'support'},
  'invalid_candidates_filtered': {'support'},
  'flipping_candidates_only': {'support'},
  'base_measure_from_the_private_graph': {'ratio'},
}


def _dp_check(pipeline) -> list[str]:
  # Two graphs on which much flips.
  problems = [cases.random_case(seed) for seed in (2, 5)]
  return checks.dp_violations(pipeline, problems, _CONFIG, _EPSILON)[0]


def _exactness_check(evaluator) -> list[str]:
  problems = checks.named_cases()
  problems |= {f'random {s}': cases.random_case(s) for s in range(3)}
  return [
    f'{config.num_hops} hop, {violation}'
    for config in (cases.CONFIG, cases.TWO_HOP)
    for violation in checks.exactness_violations(evaluator, problems, config)
  ]


class PrivacyMutantsTest(parameterized.TestCase):
  @parameterized.parameters(*mutants.PRIVACY)
  def test_is_caught(self, name):
    found = _dp_check(mutants.PRIVACY[name])
    kinds = {violation.partition(':')[0] for violation in found}
    self.assertEqual(kinds, _CHARGES[name])

  def test_the_library_passes(self):
    self.assertEqual(_dp_check(checks.privjax_pipeline), [])

  def test_every_mutant_is_charged(self):
    self.assertEqual(set(_CHARGES), set(mutants.PRIVACY))


class ExactnessMutantsTest(parameterized.TestCase):
  @parameterized.parameters(*mutants.EXACTNESS)
  def test_is_caught(self, name):
    self.assertNotEmpty(_exactness_check(mutants.EXACTNESS[name]))

  @parameterized.named_parameters(
    ('factored', checks.evaluate_factored),
    ('subgraph', checks.evaluate_subgraph),
    ('scaffold', mutants.unmutated_factored),
  )
  def test_the_library_passes(self, evaluator):
    self.assertEqual(_exactness_check(evaluator), [])

  @parameterized.parameters(
    'original_label_from_elsewhere',
    'missing_triangle_correction',
  )
  def test_stays_private(self, name):
    """The range lemma at work: a wrong score in range costs no privacy."""

    def pipeline(case, private, config, epsilon):
      evaluator = mutants.EXACTNESS[name]
      scored = checks.score(case, private, config, evaluator)
      law = counterfactual.log_law(scored, epsilon)
      return checks.release(scored.candidates, scored.utility, law, config)

    self.assertEqual(_dp_check(pipeline), [])

  def test_truncated_degrees_miss_the_path_value(self):
    """1 / 6 instead of 1 / (3 sqrt(6)): the induced subgraph is not exact."""
    case = cases.make([(0, 1), (1, 2), (2, 3)])
    hidden, output = case.params['hidden'], case.params['output']
    case = case._replace(
      features=cases.csr([[float(node == 2)] * 6 for node in range(8)]),
      params={
        'hidden': {
          'kernel': _corner(hidden['kernel'], 0),
          'bias': 0 * hidden['bias'],
        },
        'output': {
          'kernel': _corner(output['kernel'], 1),
          'bias': 0 * output['bias'],
        },
      },
    )
    config = dataclasses.replace(cases.CONFIG, max_features=0)
    args = (case.model, case.private, case.features, case.support(config))
    kwargs = dict(feature_masks='effective')
    mutant = mutants.truncated_boundary_degrees(*args, **kwargs)
    self.assertAlmostEqual(mutant.gap[0, 0], 1 / 6, delta=1e-15)
    exact = checks.evaluate_subgraph(*args, **kwargs)
    self.assertAlmostEqual(exact.gap[0, 0], 0.1360827635, delta=5e-11)


def _corner(kernel, column):
  """Zeros, but for a 1 in the first row."""
  result = 0 * kernel
  result[0, column] = 1
  return result
