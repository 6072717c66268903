"""Checks of the exact samplers that return what they find wrong.

The main tool is the decision tree: running a sampler on every finite string of
bits, longer and longer, gives the exact probability of each candidate as a sum
of 2^-length over the strings that lead to it. Nothing here is statistical.
"""

import ast
from collections.abc import Callable
import fractions
import pathlib
import sys
from typing import NamedTuple
from unittest import mock

import numpy as np

import privjax
from privjax.mechanisms import entropy
from privjax.mechanisms import exact
from privjax.mechanisms import intervals
from privjax.mechanisms import inversion
from privjax.mechanisms import permute_and_flip
from tests.oracles import exact_sampling as oracle

Fraction = fractions.Fraction


class Tree(NamedTuple):
  """Exact masses of the leaves up to a depth."""

  masses: dict
  undecided: Fraction
  complaints: list


def tree(draw: Callable[[entropy.BitSource], exact.Draw], depth: int) -> Tree:
  """Enumerates the strings of bits that decide a draw."""
  masses, undecided, complaints = {}, Fraction(0), []
  strings = ['']
  while strings:
    text = strings.pop()
    try:
      result = draw(entropy.injected(text))
    except entropy.BitsExhaustedError:
      if len(text) == depth:
        undecided += Fraction(1, 2**depth)
      else:
        strings += [text + '0', text + '1']
      continue
    if result.bits_used != len(text):
      complaints.append(f'{text}: {result.bits_used} bits used')
    mass = Fraction(1, 2 ** len(text))
    masses[result.index] = masses.get(result.index, 0) + mass
  return Tree(masses, undecided, complaints)


def tree_violations(found: Tree, law, *, most_undecided: Fraction) -> list[str]:
  """Compares masses with a law; each may grow by what is undecided."""
  violations = list(found.complaints)
  if sum(found.masses.values()) + found.undecided != 1:
    violations.append('the masses do not sum to 1')
  if found.undecided > most_undecided:
    violations.append(f'{float(found.undecided)} is undecided')
  for index, probability in enumerate(law):
    mass = found.masses.get(index, Fraction(0))
    too_large = mass > probability + oracle.LAW_ERROR
    too_small = mass + found.undecided < probability - oracle.LAW_ERROR
    if too_large or too_small or (probability == 0 and mass):
      violations.append(
        f'candidate {index} has {float(mass)} instead of {float(probability)}'
      )
  if set(found.masses) - set(range(len(law))):
    violations.append(f'no such candidates: {sorted(found.masses)}')
  return violations


class Case(NamedTuple):
  """A selection problem, small enough for its decision tree."""

  utility: list
  levels: tuple
  scale: Fraction
  weights: list | None = None

  def settings(self) -> dict:
    """Returns arguments that mean `scale` = epsilon / (2 sensitivity D)."""
    epsilon = 2 * self.scale * Fraction(96, 100) * 100
    return dict(
      levels=self.levels,
      epsilon=epsilon,
      sensitivity='0.96',
      denominator=100,
    )


CASES = {
  'two': Case([0, 1], (0, 1), Fraction(1, 2)),
  'ties': Case([3, 1, 3, 0, 1, 3], (0, 1, 3), Fraction(2, 5)),
  'only ties': Case([2, 2, 2], (0, 1, 2, 3), Fraction(7)),
  'weighted': Case([0, 2, 2, 1], (0, 1, 2), Fraction(1, 3), [3, 5, 1, 0]),
  'levels that do not occur': Case(
    [12, 10, 12, 14], tuple(range(5, 31)), Fraction(3, 10)
  ),
  'off the support': Case([9, 0, 1, 9], (0, 1, 9), Fraction(1), [0, 2, 1, 0]),
  'far apart': Case([0, 1], (0, 1), Fraction(50)),
  'one': Case([4], (0, 4), Fraction(1)),
  'nearly flat': Case([0, 5, 9], (0, 5, 9), Fraction(1, 2**45)),
  'negative': Case([-7, -5, -5], (-7, -6, -5), Fraction(1, 4)),
}

# Every coin has a boundary of its own, so these trees must be smaller.
PERMUTE_AND_FLIP_CASES = {
  name: CASES[name]
  for name in ('two', 'only ties', 'far apart', 'one', 'negative')
} | {
  'three levels': Case([0, 3, 1], (0, 1, 3, 8), Fraction(2, 5)),
  'four': Case([1, 0, 1, 1], (0, 1), Fraction(1)),
}


def exponential_draw(case: Case) -> Callable[[entropy.BitSource], exact.Draw]:
  """Returns the sampler of a case as a function of its bits."""
  weights = None if case.weights is None else np.array(case.weights)
  return lambda source: exact.sample(
    np.array(case.utility), **case.settings(), weights=weights, source=source
  )


def exponential_law() -> list[str]:
  """The exponential mechanism's decision trees against its law."""
  violations = []
  for name, case in CASES.items():
    law = oracle.law(case.utility, case.scale, weights=case.weights)
    found = tree(exponential_draw(case), 13)
    violations += [
      f'{name}: {text}'
      for text in tree_violations(found, law, most_undecided=Fraction(1, 50))
    ]
  return violations


def equal_candidates() -> list[str]:
  """2^k equal candidates: exactly k bits, however they fall."""
  violations = []
  for num_bits in range(5):
    count = 2**num_bits
    utility = np.full(count, 7)
    draw = lambda source, utility=utility: exact.sample(
      utility, levels=(0, 7, 9), epsilon=3, sensitivity=1, source=source
    )
    found = tree(draw, num_bits)
    law = [Fraction(1, count)] * count
    violations += [
      f'{count}: {text}'
      for text in tree_violations(found, law, most_undecided=Fraction(0))
    ]
  return violations


def coarse_enclosures() -> list[str]:
  """The same, from enclosures of one to three bits that must be refined."""
  violations = []
  for precision in (1, 2, 3):
    with (
      mock.patch.object(inversion, '_FIRST_PRECISION', precision),
      mock.patch.object(exact, '_GUARD_BITS', 1),
    ):
      found = exponential_law()
    violations += [f'{precision} bits: {text}' for text in found]
  with mock.patch.object(permute_and_flip, '_FIRST_PRECISION', 1):
    found = permute_and_flip_law()
  return violations + [f'permute-and-flip, 1 bit: {text}' for text in found]


def permute_and_flip_law() -> list[str]:
  """Permute-and-flip's decision trees against its law."""
  violations = []
  for name, case in PERMUTE_AND_FLIP_CASES.items():
    draw = lambda source, case=case: permute_and_flip.sample(
      np.array(case.utility), **case.settings(), source=source
    )
    law = oracle.permute_and_flip_law(case.utility, case.scale)
    found = tree(draw, 11)
    violations += [
      f'{name}: {text}'
      for text in tree_violations(found, law, most_undecided=Fraction(1, 10))
    ]
  return violations


def enclosures() -> list[str]:
  """Enclosures contain exp(-x) and are at most two units wide."""
  violations = []
  for x in ('1/1000', '1/7', '1/2', '1', '48', '5000', '1e-12'):
    reference = oracle.exp(-Fraction(x))
    for precision in (1, 2, 5, 16, 64, 150):
      interval = intervals.exp_neg(Fraction(x), precision)
      problem = interval_problem(interval, reference, precision)
      if problem:
        violations.append(f'exp(-{x}) to {precision} bits {problem}')
  return violations


def interval_problem(interval, reference, precision) -> str | None:
  """Returns what is wrong with an enclosure of a number known to 100 digits."""
  unit = Fraction(2) ** interval.exponent
  slack = reference * oracle.LAW_ERROR
  inside = interval.low * unit <= reference + slack
  if not inside or interval.high * unit < reference - slack:
    return 'is outside'
  if interval.high - interval.low > 2:
    return f'is {interval.high - interval.low} units wide'
  if interval.low.bit_length() != precision:
    return f'has {interval.low.bit_length()} bits'
  return None


def privacy() -> list[str]:
  """Neighbors for which the exponential mechanism's bound is nearly attained.

  Two candidates, the second one 16 times as heavy, both utilities change by the
  sensitivity: the first one's probabilities have the ratio 6.46, below e^2.
  """
  settings = dict(levels=(0, 1), sensitivity=1, weights=np.array([1, 16]))
  return _ratio_violations(exact.sample, settings, Fraction(2))


def permute_and_flip_privacy() -> list[str]:
  """The same for permute-and-flip, whose law has no weights."""
  settings = dict(levels=(0, 1), sensitivity=1)
  return _ratio_violations(permute_and_flip.sample, settings, Fraction(2))


def _ratio_violations(sample, settings, epsilon) -> list[str]:
  draws = [
    lambda source, utility=utility: sample(
      np.array(utility), epsilon=epsilon, source=source, **settings
    )
    for utility in ([1, 0], [0, 1])
  ]
  trees = [tree(draw, 16) for draw in draws]
  bound = oracle.exp(epsilon) * (1 + oracle.LAW_ERROR)
  violations = []
  for one, other in (trees, trees[::-1]):
    for index in range(2):
      mass = one.masses.get(index, Fraction(0))
      most = other.masses.get(index, Fraction(0)) + other.undecided
      if mass > bound * most:
        violations.append(
          f'candidate {index}: {float(mass)} is above e^{epsilon} times '
          f'{float(most)}'
        )
  return violations


def reachability() -> list[str]:
  """Adversarial bits reach every candidate of positive weight."""
  violations = []
  for epsilon in (100, 10_000):
    settings = dict(levels=(0, 1), epsilon=epsilon, sensitivity=1)
    for text, index in (('0' * 20_000, 0), ('1' * 20_000, 1)):
      try:
        source = entropy.injected(text)
        drawn = exact.sample(np.array([0, 1]), **settings, source=source)
      except entropy.BitsExhaustedError:
        violations.append(f'epsilon {epsilon}: {index} is out of reach')
        continue
      if drawn.index != index:
        violations.append(f'epsilon {epsilon}: {index} is out of reach')
  return violations


def certification() -> list[str]:
  """Only the operating system's bits certify a draw."""
  violations = []
  for sample in (exact.sample, permute_and_flip.sample):
    for name, source, expected in (
      ('default', None, True),
      ('os_entropy', entropy.os_entropy(), True),
      ('seeded', entropy.seeded(1, 'checks'), False),
      ('injected', entropy.injected('01' * 50), False),
      ('pretender', _Pretender(), False),
    ):
      drawn = sample(
        np.array([0, 1]), levels=(0, 1), epsilon=1, sensitivity=1, source=source
      )
      if drawn.certified is not expected:
        violations.append(f'{name} is marked {drawn.certified}')
  return violations


class _Pretender(entropy.OsEntropy):
  """A subclass of the certified source that returns what it likes."""

  certified = True

  def bits(self, count):
    return (1 << count) - 1


def entropy_failure() -> list[str]:
  """Without bits of the operating system there is an error and no draw."""
  violations = []
  failures = (OSError('no device'), NotImplementedError('no generator'))
  for sample in (exact.sample, permute_and_flip.sample):
    for failure in (*failures, None):
      broken = mock.Mock(side_effect=failure, return_value=b'short')
      with mock.patch.object(entropy, '_urandom', broken):
        try:
          drawn = sample(
            np.array([0, 1]), levels=(0, 1), epsilon=1, sensitivity=1
          )
          violations.append(f'{failure!r}: drew {drawn}')
        except entropy.EntropyError as error:
          if error.__cause__ is not failure:
            violations.append(f'{failure!r} is not named as the cause')
  return violations


def float_free_run() -> list[str]:
  """Runs draws under a trace that looks for floats in our local variables."""
  settings = dict(sensitivity='0.96', denominator=100)
  utility = np.array([0, 20, 96, 96, 70])
  levels = (0, 20, 70, 96)
  weights = np.array([1, 2, 3, 4, 5])
  found, frames = set(), set()

  def trace(frame, event, arg):
    del event
    path = pathlib.Path(frame.f_code.co_filename)
    if not path.is_relative_to(_ROOT):
      return None
    name = f'{path.stem}.{frame.f_code.co_name}'
    frames.add(name)
    for value in (arg, *frame.f_locals.values()):
      if _holds_float(value):
        found.add(f'{name} holds a float')
    return trace

  before = sys.gettrace()
  sys.settrace(trace)
  try:
    for epsilon in (Fraction(1, 2**40), '0.1', 8, 10_000):
      exact.sample(utility, levels=levels, epsilon=epsilon, **settings)
      exact.sample(
        utility, levels=levels, epsilon=epsilon, weights=weights, **settings
      )
      permute_and_flip.sample(
        utility, levels=levels, epsilon=epsilon, **settings
      )
  finally:
    sys.settrace(before)
  # Otherwise a trace that sees nothing would pass.
  expected = {
    'exact._boundaries',
    'grouping.member',
    'intervals._taylor',
    'permute_and_flip._digits',
  }
  return sorted(found) + [f'{name} never ran' for name in expected - frames]


def _holds_float(value) -> bool:
  if isinstance(value, (tuple, list, set)):
    return any(_holds_float(item) for item in value)
  if isinstance(value, dict):
    return any(_holds_float(item) for item in (*value, *value.values()))
  if isinstance(value, (np.ndarray, np.generic)):
    return value.dtype.kind in 'fc'
  return isinstance(value, (float, complex))


_ROOT = pathlib.Path(privjax.__file__).parent
_MODULES = (
  'entropy',
  'exact',
  'grouping',
  'intervals',
  'inversion',
  'permute_and_flip',
)
_ENTRY_POINTS = (('exact', 'sample'), ('permute_and_flip', 'sample'))
# What the sampler may reach beyond its own functions. `_validate` reads an
# argument that is a float by its decimal digits; `prng` names a replay.
_ALLOWED = {
  '_validate.integer',
  '_validate.rational',
  '_validate.seed',
  '_validate.shape',
  'bisect.bisect_left',
  'dataclasses.dataclass',
  'fractions.Fraction',
  'hashlib.sha256',
  'itertools.accumulate',
  'itertools.pairwise',
  'math.isqrt',
  'np.add.at',
  'np.arange',
  'np.asarray',
  'np.bincount',
  'np.can_cast',
  'np.cumsum',
  'np.full',
  'np.int64',
  'np.integer',
  'np.issubdtype',
  'np.ndarray',
  'np.searchsorted',
  'np.where',
  'np.zeros',
  'os.urandom',
  'prng.Name',
  'prng.words',
  'types.Array',
}
_FLOATING = {'complex', 'float', 'mean', 'round', 'std', 'var'}


def sources() -> dict[str, str]:
  """Returns the text of the sampler's modules."""
  folder = _ROOT / 'mechanisms'
  return {
    name: (folder / f'{name}.py').read_text(encoding='utf-8')
    for name in _MODULES
  }


def edited(module: str, old: str, new: str) -> str:
  """Returns a module's text with one passage replaced.

  Raises:
    ValueError: if the passage is not there, once.
  """
  text = sources()[module]
  if text.count(old) != 1:
    raise ValueError(f'{module} must hold {old!r} once')
  return text.replace(old, new)


def float_free_source(texts: dict[str, str] | None = None) -> list[str]:
  """Walks the call graph from the samplers and looks for floating point.

  A float literal, a true division, a power that is not of two literals, a name
  that makes floats, or anything outside the list of integer functions.
  """
  texts = sources() if texts is None else texts
  definitions = {
    (module, name): node
    for module, text in texts.items()
    for node in ast.parse(text).body
    for name in _defined(node)
  }
  imported = {module: _imported(text) for module, text in texts.items()}
  waiting, seen, violations = list(_ENTRY_POINTS), set(), []
  while waiting:
    place = waiting.pop()
    if place in seen:
      continue
    seen.add(place)
    module, name = place
    for node in ast.walk(definitions[place]):
      problem = _problem(node, imported[module])
      if problem:
        violations.append(f'{module}.{name}, line {node.lineno}: {problem}')
      target = _target(node, module)
      if target in definitions:
        waiting.append(target)
  return sorted(set(violations))


def _defined(node: ast.stmt) -> list[str]:
  if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
    return [node.name]
  if isinstance(node, ast.Assign):
    return [target.id for target in node.targets]
  return []


def _imported(text: str) -> set[str]:
  """Returns the names that a module's imports bind, less our own modules."""
  names = set()
  for node in ast.parse(text).body:
    if isinstance(node, (ast.Import, ast.ImportFrom)):
      names |= {alias.asname or alias.name for alias in node.names}
  return names - set(_MODULES)


def _target(node: ast.AST, module: str) -> tuple[str, str] | None:
  if isinstance(node, ast.Name):
    return module, node.id
  if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
    return node.value.id, node.attr
  return None


def _problem(node: ast.AST, imported: set[str]) -> str | None:
  if isinstance(node, ast.Constant) and isinstance(
    node.value, (float, complex)
  ):
    return f'literal {node.value}'
  if isinstance(node, (ast.BinOp, ast.AugAssign)):
    if isinstance(node.op, (ast.Div, ast.MatMult)):
      return 'true division or matrix product'
    if isinstance(node.op, ast.Pow) and not isinstance(
      node.right, ast.Constant
    ):
      return 'power with an exponent that may be negative'
  if isinstance(node, ast.Name) and node.id in _FLOATING:
    return node.id
  if isinstance(node, (ast.Import, ast.ImportFrom)):
    return 'import inside a function'
  if isinstance(node, ast.Attribute):
    dotted = ast.unparse(node)
    top = dotted.partition('.')[0]
    known = any(
      name == dotted or name.startswith(dotted + '.') for name in _ALLOWED
    )
    if node.attr in _FLOATING or (top in imported and not known):
      return dotted
  return None


CHECKS = {
  check.__name__: check
  for check in (
    certification,
    coarse_enclosures,
    enclosures,
    entropy_failure,
    equal_candidates,
    exponential_law,
    float_free_run,
    float_free_source,
    permute_and_flip_law,
    permute_and_flip_privacy,
    privacy,
    reachability,
  )
}
