"""Runs the examples in the docstrings of every module of privjax."""

import doctest
import importlib
import pathlib

import pytest

import privjax

_ROOT = pathlib.Path(privjax.__file__).parent
_FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def _module_names() -> list[str]:
  names = []
  for path in sorted(_ROOT.rglob('*.py')):
    parts = path.relative_to(_ROOT.parent).with_suffix('').parts
    names.append('.'.join(parts).removesuffix('.__init__'))
  return names


@pytest.mark.parametrize('name', _module_names())
def test_examples(name):
  module = importlib.import_module(name)
  result = doctest.testmod(module, optionflags=_FLAGS)
  assert result.failed == 0, f'{result.failed} examples failed: see stdout'


def test_a_wrong_example_fails(capsys):
  parser = doctest.DocTestParser()
  wrong = parser.get_doctest('>>> 1 + 1\n3\n', {}, 'wrong', None, 0)
  runner = doctest.DocTestRunner(optionflags=_FLAGS)
  assert runner.run(wrong).failed == 1
  assert 'Expected' in capsys.readouterr().out
