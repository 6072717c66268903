"""Tests of `privjax-release` as its users run it, in this process."""

import contextlib
import io
import json
import pathlib
import re
import shutil
import tempfile
from typing import NamedTuple
import unittest.mock

from absl import flags
from absl.testing import parameterized
import numpy as np
import scipy.sparse

from privjax import graphs
from privjax import types
from privjax.graphs import importers
from privjax.mechanisms import entropy
from privjax.mechanisms import exact
from privjax.models import params_io
from privjax.release import card
from privjax.release import cli_ledger
from privjax.release import cli_release
from privjax.release import explainer
from privjax.release import ledger as ledger_lib
from privjax.release import public_objects
from privjax.release import verify_certificate

_NODES, _DIMS = 12, 6
_DISCLOSED = [[i, (i + 1) % _NODES] for i in range(_NODES)]
# In no file but the private one: nothing may ever mention it.
_SECRET = [3, 7]
_EDGE = types.NeighboringRelation.ADD_REMOVE_ONE_EDGE
_WRITTEN = {'certificate.json', 'card.html', 'public.npz'}


class Outcome(NamedTuple):
  """How a command ended."""

  code: int
  out: str
  err: str


def call(main, *args):
  """Runs a console entry point."""
  out, err = io.StringIO(), io.StringIO()
  with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
    code = main(args)
  return Outcome(code, out.getvalue(), err.getvalue())


def write_world(folder):
  """Writes the files of a small release."""
  private, _ = graphs.from_pairs(_NODES, [*_DISCLOSED, _SECRET])
  disclosed, _ = graphs.from_pairs(_NODES, _DISCLOSED)
  importers.save_npz(folder / 'private.npz', private)
  importers.save_npz(folder / 'disclosed.npz', disclosed)
  rng = np.random.default_rng(0)
  draw = lambda *shape: rng.normal(size=shape).astype(np.float32)
  features = scipy.sparse.csr_array(np.abs(draw(_NODES, _DIMS)))
  scipy.sparse.save_npz(folder / 'features.npz', features)
  params_io.save(
    folder / 'gcn.npz',
    {
      'hidden': {'kernel': draw(_DIMS, 4), 'bias': draw(4)},
      'output': {'kernel': draw(4, 3), 'bias': draw(3)},
    },
  )
  ledger_path, receipt = folder / 'ledger.db', folder / 'receipt.txt'
  with ledger_lib.Ledger.create(ledger_path, receipt=receipt) as ledger:
    ledger.open_account('people', '2', _EDGE)
    ledger.set_analyst_cap('people', 'ann', '1/3')


class ReleaseCase(parameterized.TestCase):
  @classmethod
  def setUpClass(cls):
    super().setUpClass()
    world = cls.enterClassContext(tempfile.TemporaryDirectory())
    cls._world = pathlib.Path(world)
    write_world(cls._world)

  def setUp(self):
    super().setUp()
    temporary = self.enterContext(tempfile.TemporaryDirectory())
    self.folder = pathlib.Path(temporary) / 'owner'
    shutil.copytree(self._world, self.folder)
    self.given = {
      'graph': self.folder / 'private.npz',
      'snapshot': self.folder / 'disclosed.npz',
      'features': self.folder / 'features.npz',
      'weights': self.folder / 'gcn.npz',
      'ledger': self.folder / 'ledger.db',
      'receipt': self.folder / 'receipt.txt',
      'dataset_id': 'people',
      'target': 3,
      'epsilon': '1',
      'out': self.folder / 'answer',
    }

  def release(self, *args, **changes):
    """Runs the command with flags changed, or left out where None."""
    given = {k: v for k, v in (self.given | changes).items() if v is not None}
    flags_given = [f'--{name}={value}' for name, value in given.items()]
    return call(cli_release.main, *flags_given, *args)

  def balance(self):
    with ledger_lib.Ledger.open(self.folder / 'ledger.db') as ledger:
      return ledger.balance('people')

  def files(self):
    return {
      path.relative_to(self.folder).as_posix(): path.read_bytes()
      for path in sorted(self.folder.rglob('*'))
      if path.is_file()
    }

  def check_refused(self, outcome, code, message):
    """One line on stderr, no folder, nothing spent."""
    self.assertEqual(outcome.code, code, outcome.err)
    self.assertRegex(outcome.err, rf'^error: [^\n]*{message}[^\n]*\n$')
    self.assertEndsWith(outcome.err, 'nothing was spent\n')
    self.assertEqual(outcome.out, '')
    self.assertEqual(self.balance().spent, 0)
    self.assertFalse(list(self.folder.glob('*answer*')))


class DoneTest(ReleaseCase):
  def test_release(self):
    outcome = self.release()
    self.assertEqual(outcome.code, 0, outcome.err)
    self.assertEqual(outcome.err, '')
    self.assertContainsSubset(
      [
        'node 3, epsilon 1',
        'Charged 1 epsilon.',
        'people: epsilon budget 2, spent 1, remaining 1',
      ],
      outcome.out.splitlines(),
    )
    answer = self.folder / 'answer'
    self.assertEqual({path.name for path in answer.iterdir()}, _WRITTEN)
    text = (answer / 'certificate.json').read_text()
    released = json.loads(text)['release']
    pairs = re.search(r'^delete pairs (.*)$', outcome.out, re.M)[1]
    self.assertEqual(json.loads(pairs), released['delete_pairs'])
    masks = re.search(r'^mask features (.*)$', outcome.out, re.M)[1]
    self.assertEqual(json.loads(masks), released['mask_features'])
    self.assertEqual((answer / 'card.html').read_text(), card.html_card(text))
    self.assertFalse(list(self.folder.glob('.*')))

  def test_the_certificate_verifies_and_a_changed_one_does_not(self):
    self.assertEqual(self.release().code, 0)
    export = self.folder / 'export.jsonl'
    exported = call(
      cli_ledger.main,
      'export',
      f'--ledger={self.folder / "ledger.db"}',
      f'--out={export}',
    )
    self.assertEqual(exported.code, 0, exported.err)
    paths = [self.folder / 'answer' / 'certificate.json']
    paths += [self.folder / 'answer' / 'public.npz', export]
    verdict = call(verify_certificate.main, *map(str, paths))
    self.assertEqual(verdict.code, 0, verdict.out)
    text = paths[0].read_text()
    self.assertIn('"epsilon": "1/1"', text)
    paths[0].write_text(text.replace('"epsilon": "1/1"', '"epsilon": "1/2"'))
    verdict = call(verify_certificate.main, *map(str, paths))
    self.assertEqual(verdict.code, 1)
    self.assertIn('REJECTED sha256', verdict.out)

  # One exact number, however it is spelled, is one query.
  @parameterized.parameters(['1/2'], ['0.50'], ['.5'], ['5e-1'], ['2/4'])
  def test_the_same_query_costs_once(self, spelling):
    first = self.release(epsilon='0.5')
    self.assertIn('Charged 1/2 epsilon.', first.out)
    again = self.release(epsilon=spelling, out=self.folder / 'again')
    self.assertEqual(again.code, 0, again.err)
    self.assertIn('answered before: charged 0.', again.out)
    self.assertNotIn('Charged', again.out)
    self.assertEqual(self.balance().spent, self.balance().budget / 4)
    for name in ('certificate.json', 'card.html'):
      first_bytes = (self.folder / 'answer' / name).read_bytes()
      self.assertEqual((self.folder / 'again' / name).read_bytes(), first_bytes)

  def test_edge_list(self):
    for name, extra in (('private', [_SECRET]), ('disclosed', [])):
      lines = [f'{u},{v}' for u, v in [*_DISCLOSED, *extra]]
      (self.folder / f'{name}.csv').write_text('\n'.join(lines) + '\n')
    first = self.release()
    again = self.release(
      graph=self.folder / 'private.csv',
      snapshot=self.folder / 'disclosed.csv',
      out=self.folder / 'again',
    )
    self.assertEqual(first.code, 0, first.err)
    self.assertIn('answered before: charged 0.', again.out)

  def test_analyst_pays_twice(self):
    outcome = self.release(analyst='ann', epsilon='1/3')
    self.assertEqual(outcome.code, 0, outcome.err)
    self.assertIn('people: epsilon budget 2, spent 1/3', outcome.out)
    self.assertIn('people, analyst ann: epsilon budget 1/3', outcome.out)
    self.assertEndsWith(outcome.out, 'spent 1/3, remaining 0\n')

  @parameterized.parameters(('tight', '24/25'), ('paper', '1/1'))
  def test_sensitivity(self, rule, value):
    self.assertEqual(self.release(sensitivity=rule).code, 0)
    text = (self.folder / 'answer' / 'certificate.json').read_text()
    self.assertEqual(json.loads(text)['mechanism']['sensitivity'], value)

  def test_flags_of_the_process_are_left_alone(self):
    before = set(flags.FLAGS)
    self.assertEqual(call(cli_release.main, '--help').code, 0)
    self.assertEqual(call(cli_release.main, '--help').code, 0)
    self.assertEqual(set(flags.FLAGS), before)

  def test_help_names_every_flag(self):
    outcome = call(cli_release.main, '--help')
    self.assertEqual(outcome.err, '')
    for name in (*self.given, 'analyst', 'sensitivity', 'orientation'):
      self.assertIn(f'--{name}:', outcome.out)


class DryRunTest(ReleaseCase):
  def test_prints_the_price_list_and_changes_nothing(self):
    # Without the receipt file, which is then behind: a release moves it on.
    with ledger_lib.Ledger.open(self.folder / 'ledger.db') as ledger:
      ledger.open_account('others', '1', _EDGE)
    before = self.files()
    outcome = self.release('--dry_run', graph=None, out=None, epsilon='3')
    self.assertEqual(outcome.code, 0, outcome.err)
    self.assertEqual(self.files(), before)
    lines = outcome.out.splitlines()
    # Two disclosed neighbors and six features: 4 x 42 candidates.
    self.assertEqual(lines[0], 'node 3: 168 candidates in the support')
    rows = [line.split() for line in lines[1:-3]]
    self.assertEqual(
      rows[0], 'epsilon cost (epsilon) expected validity'.split()
    )
    self.assertEqual(
      [row[:2] for row in rows[1:7]],
      [[e, e] for e in ('1/2', '1', '2', '3', '4', '8')],
    )
    rates = [float(row[2]) for row in rows[1:7]]
    self.assertEqual(rates, sorted(rates))
    self.assertEqual(rows[7][:2], ['free', '0'])
    self.assertEqual(rows[8][0], 'ceiling')
    self.assertLessEqual(rates[-1], float(rows[8][1]))
    self.assertEqual(lines[-2], 'Dry run: nothing was spent.')
    self.assertEqual(
      lines[-1], 'people: epsilon budget 2, spent 0, remaining 2'
    )

  def test_does_not_open_the_private_graph(self):
    (self.folder / 'private.npz').write_text('not a graph')
    outcome = self.release('--dry_run')
    self.assertEqual(outcome.code, 0, outcome.err)
    self.assertFalse((self.folder / 'answer').exists())

  def test_cost_in_a_zcdp_account(self):
    with ledger_lib.Ledger.open(self.folder / 'ledger.db') as ledger:
      ledger.open_account('others', '4', _EDGE, delta='1e-6')
    outcome = self.release('--dry_run', dataset_id='others', receipt=None)
    self.assertEqual(outcome.code, 0, outcome.err)
    self.assertRegex(outcome.out, r'\n +2 +1/2  0\.')  # eps^2 / 8.
    self.assertIn('others: rho budget', outcome.out)


class BadUsageTest(ReleaseCase):
  @parameterized.parameters(
    'graph snapshot features weights ledger receipt'.split()
  )
  def test_missing_file(self, name):
    missing = self.folder / 'nowhere.npz'
    outcome = self.release(**{name: missing})
    self.check_refused(outcome, 2, re.escape(str(missing)))

  @parameterized.parameters(
    *('graph', 'snapshot', 'features', 'weights', 'ledger'),
    *('dataset_id', 'target', 'epsilon', 'out'),
  )
  def test_missing_flag(self, name):
    outcome = self.release(**{name: None})
    self.check_refused(outcome, 2, f'--{name} must be given')

  def test_wrong_flag(self):
    self.check_refused(self.release('--epsilom=1'), 2, "flag 'epsilom'")

  def test_stray_argument(self):
    self.check_refused(self.release('17'), 2, "got \\['17'\\]")

  @parameterized.parameters(
    'nan inf -inf -1 0 1/0 True one 1e-13 10001 1,5'.split()
  )
  def test_epsilon(self, epsilon):
    self.check_refused(self.release(epsilon=epsilon), 2, 'epsilon must be')

  @parameterized.parameters('1e999999999', '9' * 5000, '1e-999999999')
  def test_epsilon_that_takes_forever_to_read(self, epsilon):
    outcome = self.release(epsilon=epsilon)
    self.check_refused(outcome, 2, 'epsilon must be a short number')
    self.assertLess(len(outcome.err), 200)

  @parameterized.parameters(
    (-1, 'target must be'), (12, 'target must be'), ('x', 'target')
  )
  def test_target(self, target, message):
    self.check_refused(self.release(target=target), 2, message)

  @parameterized.parameters('People', '', 'a b', '../x')
  def test_dataset_id(self, dataset_id):
    self.check_refused(self.release(dataset_id=dataset_id), 2, 'dataset_id')

  def test_folder_exists(self):
    (self.folder / 'answer').mkdir()
    outcome = self.release()
    self.assertEqual(outcome.code, 2)
    self.assertRegex(outcome.err, 'answer exists; nothing was spent\n$')
    self.assertEqual(list((self.folder / 'answer').iterdir()), [])
    self.assertEqual(self.balance().spent, 0)

  def test_folder_that_cannot_be_made(self):
    outcome = self.release(out=self.folder / 'private.npz' / 'answer')
    self.check_refused(outcome, 2, 'Not a directory')

  def test_snapshot_is_the_private_file(self):
    link = self.folder / 'link.npz'
    link.symlink_to(self.folder / 'private.npz')
    for snapshot in (self.given['graph'], link):
      self.check_refused(self.release(snapshot=snapshot), 2, 'the same file')

  @parameterized.parameters(
    ('damaged.npz', b'not an npz 3 7'),
    ('ids.csv', b'0,1\n3,7\n8,9\n3,77\n'),
    ('header.csv', b'source,target\n3,7\n'),
    ('columns.csv', b'3,7\n3,7,7\n'),
    ('latin.csv', b'3,7\n\xe9,1\n'),
    ('graph.json', b'[[3, 7]]'),
  )
  def test_bad_private_graph_shows_nothing(self, name, content):
    path = self.folder / name
    path.write_bytes(content)
    outcome = self.release(graph=path)
    self.check_refused(outcome, 2, '--graph must be an npz file')
    said = outcome.err.replace(str(path), '').replace('0 to 11', '')
    self.assertNotRegex(said, '[0-9]')

  def test_other_number_of_nodes(self):
    graph, _ = graphs.from_pairs(_NODES + 1, [[0, 1]])
    importers.save_npz(self.folder / 'other.npz', graph)
    outcome = self.release(graph=self.folder / 'other.npz')
    self.check_refused(outcome, 2, '12 nodes instead of 13')

  @parameterized.parameters('complex', 'nan', 'text')
  def test_bad_features(self, kind):
    path = self.folder / 'bad.npz'
    entries = np.ones((_NODES, _DIMS))
    if kind == 'text':
      path.write_text('text')
    else:
      entries = entries * (1j if kind == 'complex' else np.nan)
      scipy.sparse.save_npz(path, scipy.sparse.csr_array(entries))
    self.check_refused(self.release(features=path), 2, 'features must be')

  def test_weights_of_other_features(self):
    scipy.sparse.save_npz(
      self.folder / 'narrow.npz', scipy.sparse.csr_array(np.eye(_NODES, 5))
    )
    outcome = self.release(features=self.folder / 'narrow.npz')
    self.check_refused(outcome, 2, 'num_features 5')

  def test_bad_choice(self):
    outcome = self.release(sensitivity='loose')
    self.check_refused(outcome, 2, 'sensitivity=loose')


class RefusedTest(ReleaseCase):
  def test_unknown_dataset(self):
    outcome = self.release(dataset_id='strangers')
    self.check_refused(outcome, 1, 'dataset strangers has no account')

  def test_unknown_analyst(self):
    outcome = self.release(analyst='bob')
    self.check_refused(outcome, 1, 'has no cap for analyst bob')

  def test_insufficient_budget(self):
    self.assertEqual(self.release(epsilon='5/3').code, 0)
    before = self.files()
    outcome = self.release(epsilon='0.5', out=self.folder / 'more')
    self.assertEqual(outcome.code, 1)
    self.assertEqual(
      outcome.err,
      'error: dataset people: the epsilon budget is 2, spent 5/3, remaining '
      '1/3, requested 1/2; nothing was spent\n',
    )
    self.assertEqual(self.files(), before)

  def test_old_ledger(self):
    backup = (self.folder / 'ledger.db').read_bytes()
    self.assertEqual(self.release().code, 0)
    (self.folder / 'ledger.db').write_bytes(backup)
    outcome = self.release(out=self.folder / 'more')
    self.assertEqual(outcome.code, 1)
    self.assertRegex(outcome.err, 'it is an old copy.*nothing was spent\n$')
    self.assertFalse((self.folder / 'more').exists())


class AfterTheChargeTest(ReleaseCase):
  def check_spent(self, outcome, message):
    self.assertEqual(outcome.code, 1)
    self.assertRegex(
      outcome.err,
      rf'^error: {message}; 1 epsilon was spent and stays spent[^\n]*\n$',
    )
    self.assertEqual(outcome.out, '')
    self.assertEqual(self.balance().spent, 1)
    self.assertFalse(list(self.folder.glob('*answer*')))
    self.assertFalse(list(self.folder.glob('.*')))

  def patch(self, owner, name, error):
    return unittest.mock.patch.object(owner, name, side_effect=error)

  def test_interrupt_leaves_the_charge(self):
    draw = self.patch(explainer.PrivateExplainer, '_draw', KeyboardInterrupt())
    with draw:
      self.check_spent(self.release(), 'interrupted')
    # No answer was stored: it is a second release, and the last one.
    self.assertIn('Charged 1 epsilon.', self.release().out)
    self.assertEqual(self.balance().remaining, 0)

  def test_interrupt_before_the_charge(self):
    with self.patch(
      explainer.PrivateExplainer, '_support', KeyboardInterrupt()
    ):
      outcome = self.release()
    self.check_refused(outcome, 1, 'interrupted')

  def test_no_entropy(self):
    with self.patch(entropy, '_urandom', OSError('no device')):
      outcome = self.release()
    self.check_spent(outcome, 'the operating system gave no random bits.*')

  @parameterized.parameters(IndexError, ValueError, TypeError, MemoryError)
  def test_error_that_may_hold_a_private_value(self, kind):
    with self.patch(explainer.certificate, 'build', kind('edge 3 7')):
      self.check_spent(self.release(), kind.__name__)

  def test_scoring_fails(self):
    with self.patch(explainer.counterfactual, 'score', ValueError('edge 3 7')):
      self.check_spent(self.release(), 'scoring failed after the charge[^7]*')

  def test_answer_that_cannot_be_written(self):
    with self.patch(cli_release, '_write', OSError('disk full')):
      self.check_spent(self.release(), 'OSError')
    # The answer is in the ledger.
    again = self.release()
    self.assertEqual(again.code, 0, again.err)
    self.assertIn('answered before: charged 0.', again.out)
    self.assertEqual(self.balance().spent, 1)

  @parameterized.parameters(
    (pathlib.Path, 'mkdir'), (public_objects.PublicObjects, 'save')
  )
  def test_place_that_cannot_be_written_costs_nothing(self, owner, name):
    with self.patch(owner, name, OSError('disk full')):
      outcome = self.release()
    self.check_refused(outcome, 2, 'disk full')
    self.assertFalse(list(self.folder.glob('.*')))


class PrivacyTest(ReleaseCase):
  def test_neighbors_differ_in_the_draw_alone(self):
    """The same draw on two neighboring graphs: everything else is equal."""
    neighbor, _ = graphs.from_pairs(_NODES, _DISCLOSED)
    draw = exact.Draw(index=1, certified=True, bits_used=0)
    outputs, utilities = [], []
    for graph in (None, neighbor):
      if graph is not None:
        importers.save_npz(self.given['graph'], graph)
        (self.folder / 'answer').rename(self.folder / 'first')
      with (
        unittest.mock.patch.object(
          explainer.ledger_lib.Ledger, 'cached', return_value=None
        ),
        unittest.mock.patch.object(exact, 'sample', return_value=draw) as drawn,
      ):
        outcome = self.release(epsilon='1/2')
      drawn.assert_called_once()
      utilities.append(drawn.call_args.args[0].tolist())
      self.assertEqual(outcome.code, 0, outcome.err)
      answer = self.folder / 'answer'
      content = json.loads((answer / 'certificate.json').read_text())
      for name in ('charge', 'sha256'):  # They name the entry of the ledger.
        del content[name]
      outputs.append(
        [
          outcome.out.rpartition('people:')[0],
          outcome.err,
          content,
          sorted(path.name for path in answer.iterdir()),
          (answer / 'public.npz').read_bytes(),
          len((answer / 'card.html').read_text()),
        ]
      )
    self.assertEqual(*outputs)
    self.assertNotEqual(*utilities)
