"""Tests of loading by name."""

import unittest.mock

from absl.testing import parameterized

from privjax import data
from privjax.data import registry


class LoadTest(parameterized.TestCase):
  def test_embedded_needs_no_file(self):
    with unittest.mock.patch.object(
      registry.planetoid, 'load', side_effect=AssertionError
    ):
      dataset = data.load('embedded', '/nonexistent')
    self.assertEqual(dataset.name, 'embedded')

  @parameterized.parameters('cora', 'citeseer')
  def test_hands_planetoid_its_arguments(self, name):
    with unittest.mock.patch.object(registry.planetoid, 'load') as load:
      self.assertIs(data.load(name, data_dir='d'), load.return_value)
    load.assert_called_once_with(name, 'd')

  @parameterized.parameters('Cora', 'pubmed', '')
  def test_unknown_name(self, name):
    with self.assertRaisesRegex(
      ValueError, "^dataset must be one of 'cora', 'citeseer', 'embedded'"
    ):
      data.load(name)

  def test_public_names_are_sorted_and_exist(self):
    self.assertEqual(list(data.__all__), sorted(data.__all__))
    for name in data.__all__:
      self.assertTrue(hasattr(data, name), name)
