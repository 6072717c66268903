"""Every public module, function, class and method of privjax is documented."""

import ast
from collections.abc import Iterator
import pathlib

import pytest

import privjax

_ROOT = pathlib.Path(privjax.__file__).parent
_FILES = sorted(_ROOT.rglob('*.py'))
_DEFINITIONS = (ast.AsyncFunctionDef, ast.ClassDef, ast.FunctionDef)


def _is_public_file(path: pathlib.Path) -> bool:
  parts = path.relative_to(_ROOT).with_suffix('').parts
  return all(part == '__init__' or not part.startswith('_') for part in parts)


def _continues_another(node: ast.AST) -> bool:
  """Whether a definition is an overload or a property's setter or deleter."""
  for decorator in getattr(node, 'decorator_list', []):
    name = ast.unparse(decorator)
    if name.endswith(('overload', '.setter', '.deleter')):
      return True
  return False


def _public(body: list[ast.stmt], prefix: str = '') -> Iterator[tuple]:
  """Yields (name, node) for public definitions, and the members of classes."""
  for node in body:
    if isinstance(node, (ast.If, ast.Try)):
      yield from _public(node.body + node.orelse, prefix)
    elif isinstance(node, _DEFINITIONS) and not node.name.startswith('_'):
      if not _continues_another(node):
        yield prefix + node.name, node
      if isinstance(node, ast.ClassDef):
        yield from _public(node.body, f'{prefix}{node.name}.')


def _problems(source: str) -> list[str]:
  """Returns what lacks a docstring, and an `__all__` that is not sorted."""
  tree = ast.parse(source)
  problems = [] if ast.get_docstring(tree) else ['module: no docstring']
  for name, node in _public(tree.body):
    if not ast.get_docstring(node):
      problems.append(f'{name}: no docstring')
  for node in tree.body:
    if isinstance(node, ast.Assign) and '__all__' in map(
      ast.unparse, node.targets
    ):
      names = ast.literal_eval(node.value)
      if list(names) != sorted(set(names)):
        problems.append('__all__: not sorted, or a name twice')
  return problems


@pytest.mark.parametrize(
  'path',
  [path for path in _FILES if _is_public_file(path)],
  ids=lambda path: str(path.relative_to(_ROOT)),
)
def test_public_names_are_documented(path):
  assert not _problems(path.read_text(encoding='utf-8'))


def test_all_of_the_package_is_importable():
  assert list(privjax.__all__) == sorted(privjax.__all__)
  for name in privjax.__all__:
    assert hasattr(privjax, name), name


@pytest.mark.parametrize(
  ('source', 'problem'),
  [
    ('x = 1', 'module: no docstring'),
    ('"""M."""\ndef f(): pass', 'f: no docstring'),
    ('"""M."""\nclass C:\n  x: int', 'C: no docstring'),
    (
      '"""M."""\nclass C:\n  """C."""\n  def f(self): pass',
      'C.f: no docstring',
    ),
    ('"""M."""\n__all__ = ["b", "a"]', '__all__: not sorted, or a name twice'),
  ],
)
def test_the_check_can_fail(source, problem):
  assert _problems(source) == [problem]


def test_private_names_need_no_docstring():
  source = '"""M."""\ndef _f(): pass\nclass _C:\n  def f(self): pass'
  assert not _problems(source)
