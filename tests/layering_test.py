"""Who may import whom, and what the library must never touch.

The rules are read off the syntax tree, so a violation on a path that no test
executes is found as well. `test_planted_violations` shows that each can fail.
"""

import ast
from collections.abc import Iterator
import pathlib
import sys
from typing import NamedTuple

import pytest

_ROOT = pathlib.Path(__file__).resolve().parents[1]

# What every folder may import: these import only each other, jax and numpy.
_BASE = {'_validate', '_version', 'prng', 'types'}

# folder of privjax -> the other folders of privjax it may import.
_MAY_IMPORT: dict[str, set[str]] = {'graphs': set(), 'mechanisms': set()}
_MAY_IMPORT['data'] = {'graphs'}
_MAY_IMPORT['models'] = {'graphs'}
_MAY_IMPORT['erm'] = {'mechanisms', 'data'}
_MAY_IMPORT['rules'] = {'mechanisms', 'data'}
_MAY_IMPORT['counterfactual'] = {'graphs', 'models', 'mechanisms'}
_MAY_IMPORT['explainers'] = {
  'counterfactual',
  *_MAY_IMPORT['counterfactual'],
}
_MAY_IMPORT['placement'] = {'explainers', *_MAY_IMPORT['explainers']}
_MAY_IMPORT['audit'] = set(_MAY_IMPORT)
_MAY_IMPORT['release'] = set(_MAY_IMPORT) - {'audit'}

# What a module of privjax may import when it is itself imported. Anything else
# (an extra, a peer) is imported inside the function that needs it.
_RUN_TIME = {
  'absl',
  'chex',
  'flax',
  'jax',
  'jraph',
  'numpy',
  'optax',
  'pooch',
  'privjax',
  'scipy',
  'sklearn',
}
# distribution -> the folders of privjax that may import it; all others never.
_CONFINED = {
  'absl': {'release'},  # For its console entry points.
  'jraph': {'explainers', 'graphs', 'models'},
  'matplotlib': set(),
}
_GENERATORS = {
  'BitGenerator',
  'Generator',
  'MT19937',
  'PCG64',
  'PCG64DXSM',
  'Philox',
  'SFC64',
  'SeedSequence',
  'default_rng',
}


class Use(NamedTuple):
  """A dotted name that a file imports or reaches through an import."""

  name: str
  line: int
  is_import: bool
  in_function: bool


def _bindings(tree: ast.AST) -> dict[str, str]:
  """Returns the dotted name behind each local name that an import binds."""
  names = {}
  for node in ast.walk(tree):
    if isinstance(node, ast.Import):
      for alias in node.names:
        top = alias.name.partition('.')[0]
        names[alias.asname or top] = alias.name if alias.asname else top
    elif isinstance(node, ast.ImportFrom) and not node.level:
      for alias in node.names:
        names[alias.asname or alias.name] = f'{node.module}.{alias.name}'
  return names


def _dotted(node: ast.AST, bindings: dict[str, str]) -> str | None:
  """Returns the full dotted name of `a.b.c`, if `a` comes from an import."""
  attributes = []
  while isinstance(node, ast.Attribute):
    attributes.append(node.attr)
    node = node.value
  if not isinstance(node, ast.Name) or node.id not in bindings:
    return None
  return '.'.join([bindings[node.id], *reversed(attributes)])


def _imported_names(node: ast.AST, bindings: dict[str, str]) -> list[str]:
  """Returns the dotted names that one statement or call imports."""
  if isinstance(node, ast.Import):
    return [alias.name for alias in node.names]
  if isinstance(node, ast.ImportFrom):
    module = '.' * node.level + (node.module or '')
    return [f'{module}.{alias.name}' for alias in node.names]
  if isinstance(node, ast.Call) and node.args:
    function, first = node.func, node.args[0]
    is_import = _dotted(function, bindings) == 'importlib.import_module' or (
      isinstance(function, ast.Name) and function.id == '__import__'
    )
    if is_import and isinstance(first, ast.Constant):
      return [str(first.value)]
  return []


def _uses(source: str) -> Iterator[Use]:
  """Yields every imported name and every attribute chain that starts at one."""
  tree = ast.parse(source)
  bindings = _bindings(tree)

  def visit(node: ast.AST, in_function: bool) -> Iterator[Use]:
    line = getattr(node, 'lineno', 0)
    for name in _imported_names(node, bindings):
      yield Use(name, line, True, in_function)
    if isinstance(node, ast.Attribute):
      name = _dotted(node, bindings)
      if name:
        yield Use(name, line, False, in_function)
    inside = in_function or isinstance(
      node, (ast.AsyncFunctionDef, ast.FunctionDef, ast.Lambda)
    )
    for child in ast.iter_child_nodes(node):
      yield from visit(child, inside)

  yield from visit(tree, False)


def _starts_with(name: str, prefix: str) -> bool:
  return name == prefix or name.startswith(prefix + '.')


def _folder(path: str) -> str:
  """Returns the folder of privjax, or the stem of a module at its top."""
  return pathlib.PurePosixPath(path).parts[1].removesuffix('.py')


def _check_anywhere(use: Use) -> str | None:
  """Checks what holds in the library, the experiments and the tests."""
  if use.name.startswith('.'):
    return 'relative import'
  if _starts_with(use.name, 'jax._src'):
    return 'jax._src is private'
  return None


def _check_global_random(use: Use) -> str | None:
  """Checks that nothing reaches a global random generator."""
  parts = use.name.split('.')
  if parts[:2] == ['numpy', 'random'] and len(parts) > 2:
    if parts[2] not in _GENERATORS:
      return f'{use.name} is a legacy generator'
  if parts[0] == 'random' and len(parts) > 1:
    if parts[1] not in {'Random', 'SystemRandom'}:
      return f'{use.name} is a global generator'
  return None


def _check_own_import(folder: str, name: str) -> str | None:
  """Checks an import of privjax from a folder of privjax."""
  if folder == '__init__':
    return None
  if name == 'privjax':
    return 'import the module that is needed, not the whole of privjax'
  target = name.split('.')[1]
  if target == folder or target in _BASE:
    return None
  if folder in _BASE:
    return f'{folder} may import only {sorted(_BASE)} of privjax'
  if folder not in _MAY_IMPORT:
    return f'{folder} is not in the table of folders'
  if target not in _MAY_IMPORT[folder]:
    return f'{folder} may not import {target}'
  return None


def _check_outside_import(folder: str, use: Use) -> str | None:
  """Checks an import of something else from a folder of privjax."""
  top = use.name.partition('.')[0]
  if top in {'experiments', 'tests'}:
    return f'the library may not import {top}'
  if top in _CONFINED and folder not in _CONFINED[top]:
    return f'{folder} may not import {top}'
  if top in sys.stdlib_module_names:
    return None
  if folder in _BASE and top not in {'jax', 'numpy'}:
    return f'{folder} may import only jax and numpy'
  if top not in _RUN_TIME and not use.in_function:
    return f'{top} is not a run-time dependency: import it in a function'
  return None


def _check_library(folder: str, use: Use) -> str | None:
  """Checks what holds only in privjax."""
  if _starts_with(use.name, 'jax.config'):
    return 'the library never touches jax.config'
  if not use.is_import:
    return None
  if _starts_with(use.name, 'privjax'):
    return _check_own_import(folder, use.name)
  return _check_outside_import(folder, use)


def _violations(path: str, source: str) -> list[str]:
  """Returns the broken rules of one file, `path` relative to the checkout."""
  top = path.partition('/')[0]
  found = []
  for use in _uses(source):
    problem = _check_anywhere(use)
    if not problem and top != 'tests':
      problem = _check_global_random(use)
    if not problem and top == 'privjax':
      problem = _check_library(_folder(path), use)
    if not problem and use.is_import and top not in {'experiments', 'tests'}:
      if _starts_with(use.name, 'experiments'):
        problem = 'only tests import experiments'
    if problem:
      found.append(f'{path}:{use.line}: {problem}')
  return sorted(set(found))


def _files() -> list[str]:
  """Returns the Python files of the checkout, without hidden folders."""
  tops = ['privjax', 'experiments', 'tests', 'third_party']
  paths = [path for top in tops for path in (_ROOT / top).rglob('*.py')]
  return sorted(path.relative_to(_ROOT).as_posix() for path in paths)


def test_no_file_breaks_a_rule():
  files = _files()
  assert 'privjax/types.py' in files
  found = []
  for path in files:
    source = (_ROOT / path).read_text(encoding='utf-8')
    found += _violations(path, source)
  assert not found, '\n'.join(found)


def test_every_folder_has_a_rule():
  folders = {_folder(path) for path in _files() if path.startswith('privjax/')}
  assert folders <= {'__init__', *_BASE, *_MAY_IMPORT}


def test_counterfactual_and_rules_are_strangers():
  assert 'rules' not in _MAY_IMPORT['counterfactual']
  assert 'counterfactual' not in _MAY_IMPORT['rules']
  assert all('release' not in allowed for allowed in _MAY_IMPORT.values())


@pytest.mark.parametrize(
  ('path', 'source'),
  [
    # The table of folders.
    ('privjax/graphs/x.py', 'from privjax import models'),
    ('privjax/graphs/x.py', 'from privjax.data import tables'),
    ('privjax/graphs/x.py', 'import privjax.mechanisms.laws as laws'),
    ('privjax/mechanisms/x.py', 'from privjax.graphs import graph'),
    ('privjax/data/x.py', 'from privjax import models'),
    ('privjax/models/x.py', 'from privjax import data'),
    ('privjax/erm/x.py', 'from privjax import graphs'),
    ('privjax/rules/x.py', 'from privjax import counterfactual'),
    ('privjax/counterfactual/x.py', 'from privjax import rules'),
    ('privjax/counterfactual/x.py', 'def f():\n  from privjax import rules'),
    ('privjax/counterfactual/x.py', 'from privjax import data'),
    ('privjax/explainers/x.py', 'from privjax import placement'),
    ('privjax/placement/x.py', 'from privjax import rules'),
    ('privjax/audit/x.py', 'from privjax import release'),
    ('privjax/release/x.py', 'from privjax import audit'),
    ('privjax/prng.py', 'from privjax import graphs'),
    ('privjax/types.py', 'import scipy'),
    ('privjax/newcomer/x.py', 'from privjax import graphs'),
    ('privjax/graphs/x.py', 'import privjax'),
    ('privjax/graphs/x.py', 'from . import graph'),
    # What only some places may import.
    ('privjax/audit/x.py', 'def f():\n  import matplotlib.pyplot as plt'),
    ('privjax/audit/x.py', 'from absl import flags'),
    ('privjax/counterfactual/x.py', 'import jraph'),
    ('privjax/data/x.py', 'import pandas as pd'),
    ('privjax/data/x.py', 'if True:\n  import pandas'),
    ('privjax/models/x.py', 'from safetensors import numpy'),
    ('privjax/audit/x.py', 'class A:\n  import dp_accounting'),
    (
      'privjax/models/x.py',
      'import importlib\nimportlib.import_module("torch")',
    ),
    ('privjax/audit/x.py', 'from tests.oracles import law'),
    ('privjax/audit/x.py', 'def f():\n  from experiments import replay'),
    ('third_party/x.py', 'import experiments.replay'),
    # What nobody may touch.
    ('privjax/audit/x.py', 'import jax\njax.config.update("a", 1)'),
    ('privjax/audit/x.py', 'from jax import config'),
    ('privjax/audit/x.py', 'import jax as j\nx = j.config.jax_enable_x64'),
    ('experiments/x.py', 'from jax._src import core'),
    ('tests/x.py', 'import jax\njax._src.core'),
    ('privjax/data/x.py', 'import numpy as np\nnp.random.seed(0)'),
    ('privjax/data/x.py', 'from numpy import random as r\nr.normal()'),
    ('privjax/data/x.py', 'from numpy.random import rand'),
    ('experiments/x.py', 'import numpy\nnumpy.random.RandomState(0)'),
    ('experiments/x.py', 'import random\nrandom.shuffle([])'),
  ],
)
def test_planted_violations(path, source):
  assert len(_violations(path, source)) == 1


@pytest.mark.parametrize(
  ('path', 'source'),
  [
    ('privjax/__init__.py', 'from privjax import counterfactual'),
    ('privjax/graphs/x.py', 'from privjax import types\nimport jraph'),
    ('privjax/graphs/x.py', 'from privjax.graphs import graph'),
    ('privjax/prng.py', 'from privjax import _validate\nimport hashlib'),
    ('privjax/placement/x.py', 'from privjax import graphs'),
    ('privjax/audit/x.py', 'from privjax import rules'),
    ('privjax/release/x.py', 'from absl import app'),
    ('privjax/data/x.py', 'def f():\n  import pandas'),
    ('privjax/models/x.py', 'import jax\nwith jax.enable_x64(True): pass'),
    ('privjax/data/x.py', 'import numpy as np\nnp.random.default_rng(0)'),
    ('privjax/data/x.py', 'import numpy as np\nnp.random.Generator'),
    ('privjax/data/x.py', 'import jax\njax.random.normal'),
    ('experiments/x.py', 'import matplotlib\nfrom experiments import _common'),
    ('experiments/x.py', 'import jax\njax.config.update("a", 1)'),
    ('tests/x.py', 'from experiments import replay'),
  ],
)
def test_planted_good_code(path, source):
  assert not _violations(path, source)
