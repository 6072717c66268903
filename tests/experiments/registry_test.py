"""Tests of the list that continuous integration runs."""

import pathlib

from absl.testing import parameterized

from experiments import experiment as experiment_lib
from experiments import registry

_EXPERIMENTS = pathlib.Path(registry.__file__).parent


class RegistryTest(parameterized.TestCase):
  @parameterized.parameters(*registry.MODULES)
  def test_loads_by_the_name_of_its_module(self, module):
    name = module.rsplit('.', 1)[1]
    self.assertEqual(module, f'experiments.{name}')
    experiment = registry.load(name)
    self.assertIsInstance(experiment, experiment_lib.Experiment)
    self.assertEqual(experiment.name, name)
    names = experiment.unit_names(experiment.config_class())
    self.assertNotEmpty(names)
    self.assertLen(set(names), len(names))

  def test_every_experiment_is_registered(self):
    found = [
      f'experiments.{path.stem}'
      for path in sorted(_EXPERIMENTS.glob('*.py'))
      if '\nEXPERIMENT = ' in path.read_text()
    ]
    self.assertEqual(found, sorted(registry.MODULES))

  def test_modules_are_distinct_and_sorted(self):
    self.assertEqual(list(registry.MODULES), sorted({*registry.MODULES}))

  @parameterized.parameters('', 'nothing', 'experiments.cfs_frontier')
  def test_unknown_name(self, name):
    with self.assertRaisesRegex(
      ValueError, f"experiment must be one of .*'cfs_frontier'.*, got '{name}'"
    ):
      registry.load(name)
