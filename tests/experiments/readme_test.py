"""Tests that what the README tells readers to type exists and runs."""

import contextlib
import importlib
import io
import pathlib
import re
import shlex
import tempfile

from absl.testing import parameterized

from experiments import _common
from privjax.release import verify_certificate
from tests.experiments import harness

_README = pathlib.Path(__file__).resolve().parents[2] / 'README.md'
_FENCE = re.compile(r'^```(\w*)\n(.*?)^```$', re.MULTILINE | re.DOTALL)


def _blocks(language: str) -> list[str]:
  text = _README.read_text()
  return [body for name, body in _FENCE.findall(text) if name == language]


def _problems(line: str) -> list[str]:
  """Returns what is wrong with one `python -m experiments.…` command."""
  words = shlex.split(line, comments=True)
  name = words[words.index('-m') + 1]
  try:
    importlib.import_module(name)
  except ModuleNotFoundError:
    return [f'no module {name}']
  known = harness.defined_flags(name, _common.__name__)
  problems = []
  for word in words[words.index('-m') + 2 :]:
    if word in ('&&', ';', '|', '>'):
      break
    flag = word.partition('=')[0].removeprefix('--')
    if not word.startswith('--') or flag not in known:
      problems.append(f'{name} takes no {word}')
  return problems


def _commands() -> list[str]:
  """Returns every command of an experiment, continued lines joined."""
  found = []
  for block in _blocks('sh'):
    for line in block.replace('\\\n', ' ').splitlines():
      for command in line.split('&&'):
        if 'python -m experiments.' in command:
          found.append(command.strip())
  return found


class ReadmeTest(parameterized.TestCase):
  @parameterized.parameters(
    'pip install -e ".[experiments]" && python -m experiments.cfs_frontier',
    'pip install -e ".[test]" && python -m pytest',
  )
  def test_set_up_commands(self, command):
    lines = [line for block in _blocks('sh') for line in block.splitlines()]
    self.assertIn(command, [line.strip() for line in lines])

  def test_commands_name_modules_and_their_flags(self):
    commands = _commands()
    self.assertNotEmpty(commands)
    for command in commands:
      self.assertEmpty(_problems(command), command)

  # A command that the README must not hold, so that the check can fail.
  @parameterized.parameters(
    ('python -m experiments.nothing', ['no module experiments.nothing']),
    (
      'python -m experiments.cfs_frontier --manifest=x --rhos=1',
      ['experiments.cfs_frontier takes no --manifest=x'],
    ),
    (
      'python -m experiments.cfs_frontier cora',
      ['experiments.cfs_frontier takes no cora'],
    ),
    ('python -m experiments.replay --manifest=x --data_dir=y', []),
  )
  def test_wrong_commands_are_found(self, command, problems):
    self.assertEqual(_problems(command), problems)

  def test_python_blocks_run(self):
    folder = self.enter_context(tempfile.TemporaryDirectory())
    self.enter_context(contextlib.chdir(folder))
    namespace = {'__name__': 'readme'}
    blocks = _blocks('python')
    self.assertNotEmpty(blocks)
    for block in blocks:
      exec(compile(block, str(_README), 'exec'), namespace)
    # The certificate that the reader is left with holds.
    with contextlib.redirect_stdout(io.StringIO()) as printed:
      code = verify_certificate.main(['certificate.json', 'public.npz'])
    self.assertEqual(code, 0, printed.getvalue())
    self.assertIn('<html', pathlib.Path('card.html').read_text())
