"""Tests of what a manifest says about the machine."""

import json
import subprocess
import unittest.mock

from absl.testing import parameterized
import jax

from experiments import environment


class DescribeTest(parameterized.TestCase):
  def test_is_plain_json(self):
    found = environment.describe()
    self.assertEqual(json.loads(json.dumps(found)), found)

  def test_versions(self):
    found = environment.describe()
    self.assertEqual(found['packages']['jax'], jax.__version__)
    self.assertEqual(found['backend'], jax.default_backend())
    self.assertGreaterEqual(found['num_cores'], 1)
    self.assertNotEmpty(found['cpu'])

  @parameterized.parameters(False, True)
  def test_jax_settings_are_read_when_asked(self, x64):
    with jax.enable_x64(x64):
      self.assertIs(environment.describe()['jax_config']['x64'], x64)
    with jax.default_matmul_precision('highest'):
      settings = environment.describe()['jax_config']
    self.assertEqual(settings['matmul_precision'], 'highest')


class GitCommitTest(parameterized.TestCase):
  @parameterized.parameters(('', 'abc'), (' M privjax/x.py', 'abc+changes'))
  def test_says_whether_files_were_edited(self, status, expected):
    def git(command, **kwargs):
      out = status if 'status' in command else 'abc\n'
      return subprocess.CompletedProcess(command, 0, stdout=out)

    with unittest.mock.patch.object(subprocess, 'run', git):
      self.assertEqual(environment.describe()['git_commit'], expected)

  @parameterized.parameters(
    FileNotFoundError('git'), subprocess.CalledProcessError(128, 'git')
  )
  def test_none_outside_git(self, error):
    with unittest.mock.patch.object(subprocess, 'run', side_effect=error):
      self.assertIsNone(environment.describe()['git_commit'])
