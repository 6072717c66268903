"""A whole release on one private graph, frozen, and everything it shows.

`observe` runs a release session (a release, the same query again, a release at
another epsilon, a failure while scoring, one of the operating system's entropy,
a refusal) on a fresh ledger, with the random bits and the ledger's id frozen,
and returns all that can be seen from outside. `differences` compares two such
sessions on neighboring graphs: the drawn candidates may differ, and what is
computed from them (seals, later hashes of the chain); nothing else may.
"""

from collections.abc import Iterator
import contextlib
import fractions
import functools
import io
import json
import logging
import os
import pathlib
import re
import tempfile
import traceback
from typing import Any, NamedTuple
from unittest import mock
import warnings

import jax
import numpy as np

from privjax import counterfactual
from privjax import graphs
from privjax import models
from privjax import release
from privjax import types
from privjax.counterfactual import factored
from privjax.counterfactual import subgraph
from privjax.mechanisms import entropy
from privjax.mechanisms import exact
from privjax.release import certificate
from privjax.release import explainer as explainer_lib
from privjax.release import ledger_records
from privjax.release import ledger_schema
from tests.counterfactual import cases

EDGE = types.NeighboringRelation.ADD_REMOVE_ONE_EDGE
BUDGET = fractions.Fraction(4)
CONFIG = counterfactual.PrivCFSConfig(
  num_pairs=5,
  max_edges=2,
  num_features=4,
  max_features=2,
  utility=counterfactual.UtilityConfig(sensitivity='tight'),
)


code_version = functools.cache(certificate.code_version)


class Problem(NamedTuple):
  """The public side of a session; `case.private` is one private graph."""

  case: cases.Case
  model: models.NodeModel
  capacity: Any = cases.NEIGHBORS
  config: counterfactual.PrivCFSConfig = CONFIG


def problem(case: cases.Case, **kwargs) -> Problem:
  """Returns the problem of a case, with its graph convolutional network."""
  return Problem(case, **{'model': case.model, **kwargs})


def explainer(
  this: Problem, private: graphs.PrivateGraph, ledger: release.Ledger, **kwargs
) -> explainer_lib.PrivateExplainer:
  """Returns the explainer of a problem on one private graph."""
  return explainer_lib.PrivateExplainer(
    **{
      'private': private,
      'snapshot': this.case.snapshot,
      'features': this.case.features,
      'model': this.model,
      'ledger': ledger,
      'dataset_id': 'tiny',
      'first_layer': this.case.params['hidden']['kernel'],
      'config': this.config,
      'capacity': this.capacity,
      **kwargs,
    }
  )


class Observation(NamedTuple):
  """What a session shows. `differences` names these fields."""

  certificates: list[str]
  results: list[tuple]
  errors: list[tuple]
  rows: list[ledger_records.Entry]
  balance: release.Balance
  files: dict[str, Any]
  compiled: list
  sampled: list
  reads: int
  logs: list
  warned: list
  printed: str


def folder() -> tempfile.TemporaryDirectory:
  """Returns a new folder, in memory if the system has such a place."""
  place = '/dev/shm'
  return tempfile.TemporaryDirectory(
    dir=place if os.path.isdir(place) else None
  )


def observe(this: Problem, private: graphs.PrivateGraph) -> Observation:
  """Runs the session and records everything."""
  with folder() as name, contextlib.ExitStack() as stack:
    path = pathlib.Path(name)
    printed = stack.enter_context(_printed())
    warned = stack.enter_context(warnings.catch_warnings(record=True))
    warnings.simplefilter('always')
    logs = stack.enter_context(_logs())
    compiled = stack.enter_context(_compiled())
    sampled = stack.enter_context(_sampled())
    reads = stack.enter_context(_frozen())
    # Reads the sources, which somebody may be editing; it has no argument.
    stack.enter_context(
      mock.patch.object(certificate, 'code_version', code_version)
    )
    errors, releases = [], []
    ledger = release.Ledger.create(path / 'ledger.db', receipt=path / 'r')
    stack.callback(ledger.close)
    ledger.open_account('tiny', BUDGET, EDGE)
    owner = explainer(this, private, ledger)
    target = this.case.target
    for epsilon in ('1', '1', '1/2'):
      releases.append(owner.release(target, epsilon=epsilon))
    attempt = lambda epsilon: errors.append(_error(owner, target, epsilon))
    with mock.patch.object(owner, '_evaluator', _failing_evaluator):
      attempt('1/3')
    with mock.patch.object(entropy, '_urandom', side_effect=OSError('none')):
      attempt('1/4')
    attempt('9')
    attempt('0')
    owner.public.save(path / 'public.npz')
    ledger.export(path / 'export.jsonl')
    for number, one in enumerate(releases):
      (path / f'{number}.json').write_text(one.certificate)
    # The drawn candidate, and the certificate, are compared apart.
    blank = lambda one: one._replace(
      delete_pairs=(), mask_features=(), certificate=None
    )
    return Observation(
      certificates=[one.certificate for one in releases],
      results=[blank(one) for one in releases],
      errors=[tuple(str(x).replace(name, '.') for x in e) for e in errors],
      rows=ledger.history(),
      balance=owner.account(),
      files=_files(path),
      compiled=compiled,
      sampled=sampled,
      reads=len(reads),
      logs=list(logs),
      warned=[(w.category, str(w.message)) for w in warned],
      printed=printed.getvalue(),
    )


def differences(
  this: Problem, own: Observation, other: Observation
) -> list[str]:
  """Returns what differs beyond the drawn candidates, as 'field: detail'."""
  found = [
    f'certificates: the release is not only a candidate: {text}'
    for text in map(_release_of, other.certificates)
    if text != _named(this, text)
  ]
  try:
    expected = _with_candidates_of(own, other)
  except (IndexError, KeyError) as error:
    return [*found, f'certificates: not of the same form: {error!r}']
  for field in Observation._fields:
    ours, theirs = getattr(expected, field), getattr(other, field)
    if ours != theirs:
      found.append(f'{field}: {_first_difference(ours, theirs)}')
  return found


def drawn(observation: Observation) -> list[dict]:
  """Returns the candidates that a session released."""
  return [_release_of(text) for text in observation.certificates]


def _release_of(text: str) -> dict:
  return json.loads(text)['release']


def _named(this: Problem, released: dict) -> dict:
  """Returns the candidate at the released index, in public terms."""
  support = this.case.support(this.config)
  a, b = released['index']
  row, column = support.edge_subsets[a], support.feature_subsets[b]
  return {
    'index': [a, b],
    'delete_pairs': support.universe.pairs[row].tolist(),
    'mask_features': support.universe.features[column].tolist(),
  }


def _with_candidates_of(own: Observation, other: Observation) -> Observation:
  """Returns a session as it would be with the candidates of another one.

  The chain of the ledger covers the answers, so it is computed again, and with
  it the receipts and seals of later certificates.
  """
  answers = {}
  for mine, theirs in zip(own.certificates, other.certificates):
    answers[json.loads(mine)['charge']['query_sha256']] = (mine, theirs)
  rows, texts = [], {}
  for entry in own.rows:
    columns = entry._asdict()
    for name in ('sequence', 'previous', 'hash'):
      del columns[name]
    if entry.kind == 'release':
      charge = rows[json.loads(entry.body)['charge'] - 1]
      mine, theirs = answers[entry.query_digest]
      content = json.loads(mine) | {'release': _release_of(theirs)}
      content['charge']['receipt'] = _receipt(rows, charge)
      content['sha256'] = certificate.seal(content)
      text = json.dumps(content, indent=2) + '\n'
      texts[mine] = text
      columns['body'] = ledger_schema.release_body(charge.sequence, text)
    last = rows[-1] if rows else None
    rows.append(ledger_records.next_entry(last, **columns))
  certificates = [texts[text] for text in own.certificates]
  files = dict(own.files)
  for number, text in enumerate(certificates):
    files[f'{number}.json'] = text.encode()
  files['r'] = f'{_receipt(rows, rows[-1])}\n'.encode()
  lines = (ledger_records.canonical_json(row._asdict()) for row in rows)
  files['export.jsonl'] = ''.join(f'{line}\n' for line in lines).encode()
  return own._replace(rows=rows, certificates=certificates, files=files)


def _receipt(rows, entry) -> str:
  ledger_id = json.loads(rows[0].body)['ledger_id']
  return str(
    ledger_records.Receipt(
      ledger_id=ledger_id, sequence=entry.sequence, hash=entry.hash
    )
  )


def _first_difference(ours, theirs) -> str:
  if isinstance(ours, dict):
    ours, theirs = sorted(ours.items()), sorted(theirs.items())
  if isinstance(ours, list) and len(ours) == len(theirs):
    pairs = zip(ours, theirs)
    ours, theirs = next((a, b) for a, b in pairs if a != b)
  ours, theirs = str(ours), str(theirs)
  start = max(len(os.path.commonprefix([ours, theirs])) - 60, 0)
  excerpt = lambda text: text[start : start + 120]
  return f'{excerpt(ours)!r} != {excerpt(theirs)!r}'


def _files(folder: pathlib.Path) -> dict[str, Any]:
  """Returns the contents of all files; of SQLite's own, that they exist.

  SQLite salts its log, so those bytes differ between two equal runs; all of
  their content is in the rows.
  """
  return {
    path.name: b'' if path.name.startswith('ledger.db') else path.read_bytes()
    for path in folder.rglob('*')
  }


def _error(owner, target, epsilon) -> tuple:
  """Returns all that an error tells, its chain included."""
  try:
    owner.release(target, epsilon=epsilon)
  except Exception as error:
    return (
      type(error),
      error,
      ''.join(traceback.format_exception_only(error)),
      repr(error.__cause__),
      repr(error.__context__),
      vars(error),
    )
  return ('no error',)


def _failing_evaluator(model, graph, features, candidates, **kwargs):
  """Fails with an error that shows the private graph."""
  del model, features, candidates, kwargs
  raise ValueError(f'there is a bug at {graph.graph.pairs.tolist()}')


@contextlib.contextmanager
def _frozen() -> Iterator[list]:
  """Freezes the operating system's bits and the id of the ledger."""
  reads = []

  def urandom(count):
    reads.append(count)
    generator = np.random.default_rng([len(reads), 11])
    return generator.bytes(count)

  token = lambda count: 'ab' * count
  with (
    mock.patch.object(entropy, '_urandom', urandom),
    mock.patch.object(ledger_schema.secrets, 'token_hex', token),
  ):
    yield reads


@contextlib.contextmanager
def _sampled() -> Iterator[list]:
  """Records every argument of the sampler but the private utilities."""
  calls, sample = [], exact.sample

  def recorded(utility, **kwargs):
    public = {'shape': utility.shape, 'dtype': str(utility.dtype)}
    for name, value in kwargs.items():
      public[name] = value.tolist() if hasattr(value, 'tolist') else value
    calls.append(public)
    return sample(utility, **kwargs)

  with mock.patch.object(exact, 'sample', recorded):
    yield calls


@contextlib.contextmanager
def _compiled() -> Iterator[list]:
  """Records what the compiled stages are called with: their cache keys."""
  calls = []

  def recorded(stage):
    def call(*args, **kwargs):
      arrays, tree = jax.tree.flatten((args, kwargs))
      leaf = lambda x: (np.shape(x), str(np.asarray(x).dtype))
      static = lambda x: hasattr(x, 'shape') and leaf(x) or repr(x)
      calls.append((str(tree), [static(x) for x in arrays]))
      return stage(*args, **kwargs)

    return call

  with contextlib.ExitStack() as stack:
    for module in (factored, subgraph):
      stage = recorded(module._decide_all)
      stack.enter_context(mock.patch.object(module, '_decide_all', stage))
    yield calls


_SECONDS = re.compile(r'in [0-9.e-]+ sec')


class _Handler(logging.Handler):
  """Keeps (logger, level, message), without how long JAX took.

  Time is not covered by the guarantee; what is compiled, and when, is.
  """

  def __init__(self):
    super().__init__()
    self.records = []

  def emit(self, record):
    message = _SECONDS.sub('in some sec', record.getMessage())
    self.records.append((record.name, record.levelname, message))


@contextlib.contextmanager
def _logs() -> Iterator[list]:
  """Records all log messages, with a line for everything JAX compiles."""
  handler, root = _Handler(), logging.getLogger()
  root.addHandler(handler)
  try:
    with jax.log_compiles():
      yield handler.records
  finally:
    root.removeHandler(handler)


@contextlib.contextmanager
def _printed() -> Iterator[io.StringIO]:
  text = io.StringIO()
  with contextlib.redirect_stdout(text), contextlib.redirect_stderr(text):
    yield text
