"""Tests of the demonstration of a certified release."""

import json
import unittest.mock

from absl.testing import parameterized
import numpy as np
import pandas as pd

from experiments import experiment as experiment_lib
from experiments import release
from experiments import worlds
from privjax.release import card
from privjax.release import ledger as ledger_lib
from tests.experiments import harness

ONE_SEED = release.Config(seeds=(0,))


def _folder(out_dir, config=ONE_SEED):
  return out_dir / 'release' / experiment_lib.config_hash(config)


class RunTest(parameterized.TestCase):
  def test_twice(self):
    """Runs the command, replays its rows, and runs it again."""
    out_dir = harness.temporary_folder(self)
    args = ('--smoke', f'--out_dir={out_dir}')
    first = harness.call(release.main, *args)
    self.assertEqual(first.code, 0, first.err)
    self.assertIn('Released (charged)', first.out)
    self.assertIn('spent 1, remaining 3\nVALID', first.out)
    folder = _folder(out_dir)
    rows = harness.read_rows(out_dir)

    with self.subTest('rows'):
      self.check_rows(rows)

    with self.subTest('replay'):
      (replayed,) = experiment_lib.run(release.EXPERIMENT, ONE_SEED)
      replayed = [{'unit': 'embedded/0', **row} for row in replayed]
      manifest = harness.read_manifest(out_dir)
      self.assertEqual(
        experiment_lib.decision_digest(replayed), manifest['decision_digest']
      )
      self.assertEqual(
        experiment_lib.value_digest(replayed, release.EXPERIMENT.measured),
        manifest['value_digest'],
      )

    with self.subTest('kept'):
      answer = folder / 'release'
      self.assertEqual(
        {path.name for path in answer.iterdir()},
        {'certificate.json', 'card.html', 'public.npz'},
      )
      text = (answer / 'certificate.json').read_text()
      self.assertEqual((answer / 'card.html').read_text(), card.html_card(text))
      facts = next(row for row in rows if row['kind'] == 'release')
      content = json.loads(text)
      self.assertEqual(content['target'], facts['target'])
      self.assertEqual(content['support']['sha256'], facts['support_sha256'])
      for name, digest in content['public_objects'].items():
        self.assertEqual(digest, facts[f'{name}_sha256'])

    with self.subTest('again'):
      again = harness.call(release.main, *args)
      self.assertEqual(again.code, 0, again.err)
      self.assertIn('Released before', again.out)
      self.assertIn('spent 1, remaining 3\nVALID', again.out)

    with self.subTest('a lost answer is in the ledger'):
      for path in answer.iterdir():
        path.unlink()
      answer.rmdir()
      again = harness.call(release.main, *args)
      self.assertEqual(again.code, 0, again.err)
      self.assertIn('Released (from the ledger, charged 0)', again.out)
      self.assertEqual((answer / 'certificate.json').read_text(), text)

    with self.subTest('a changed answer'):
      path = answer / 'certificate.json'
      self.assertIn('"epsilon": "1/1"', text)
      path.write_text(text.replace('"epsilon": "1/1"', '"epsilon": "1/2"'))
      again = harness.call(release.main, *args)
      self.assertEqual(again.code, 1)
      self.assertIn('REJECTED', again.out)

  def check_rows(self, rows):
    frame = pd.DataFrame(rows)
    self.assertEqual(
      frame['kind'].tolist(),
      ['price'] * 5
      + [
        'release',
        'simulated',
      ],
    )
    self.assertLen(set(frame['target']), 1)
    prices = frame[frame['kind'] == 'price']
    self.assertEqual(prices['epsilon'].tolist(), ['1/2', '1', '2', '4', '8'])
    self.assertTrue(prices['valid_cf_rate'].is_monotonic_increasing)
    self.assertTrue((prices['valid_cf_rate'] <= prices['ceiling']).all())
    (facts,) = [row for row in rows if row['kind'] == 'release']
    expected = dict(
      certified=True,
      charged='1',
      charged_again='0',
      remaining='3',
      same_certificate=True,
      accepted=True,
      accepted_if_changed=False,
      accepted_if_resealed=False,
    )
    self.assertEqual(facts, facts | expected)
    (simulated,) = [row for row in rows if row['kind'] == 'simulated']
    self.assertIs(simulated['certified'], False)
    for pair in json.loads(simulated['delete_pairs']):
      self.assertIn(facts['target'], pair)


class DryRunTest(parameterized.TestCase):
  def test_spends_and_writes_nothing(self):
    out_dir = harness.temporary_folder(self) / 'results'
    with unittest.mock.patch.object(
      ledger_lib.Ledger, 'charge', side_effect=AssertionError
    ):
      outcome = harness.call(
        release.main, '--dry_run', '--smoke', f'--out_dir={out_dir}'
      )
    self.assertEqual(outcome.code, 0, outcome.err)
    lines = outcome.out.splitlines()
    self.assertRegex(
      lines[0], r'^node [0-9]+: [0-9]+ candidates in the support'
    )
    self.assertEqual(
      [line.split()[:2] for line in lines[2:7]],
      [[epsilon] * 2 for epsilon in ('1/2', '1', '2', '4', '8')],
    )
    self.assertEqual(lines[-1], 'Dry run: nothing was spent.')
    self.assertFalse(out_dir.exists())


class ConfigTest(parameterized.TestCase):
  @parameterized.parameters('0', '-1', 'nan', 'one', '5')
  def test_epsilon(self, epsilon):
    flag = f'--release_epsilon={epsilon}'
    for args in ((flag,), (flag, '--dry_run')):
      outcome = harness.call(release.main, *args)
      self.assertEqual((outcome.code, outcome.out), (2, ''))
      self.assertRegex(outcome.err, '^error: release_epsilon')

  @parameterized.parameters(
    (dict(datasets=('cora', 'nothing')), "datasets must be .* got 'nothing'"),
    (dict(seeds=(-1,)), 'seeds must be in'),
    (dict(priced=('1.0',)), 'priced must be spelled'),
    (dict(budget='0'), 'budget must be'),
  )
  def test_bad_value(self, changes, message):
    with self.assertRaisesRegex(ValueError, message):
      release.Config(**changes)

  def test_units(self):
    config = release.Config(datasets=('embedded', 'cora'), seeds=(0, 2))
    self.assertEqual(
      release.unit_names(config),
      ['embedded/0', 'embedded/2', 'cora/0', 'cora/2'],
    )


class PrivateGraphTest(parameterized.TestCase):
  def test_new_edges_are_drawn_after_the_snapshot(self):
    published = worlds.load_dataset('embedded', None).graph.graph
    private = release.private_graph(published, 'embedded', 0).graph
    self.assertTrue(private.has_pairs(published.pairs).all())
    num_new = private.num_edges - published.num_edges
    share = num_new / published.num_edges
    # A few of the new pairs meet an old one, each other, or themselves.
    self.assertBetween(share, 0.09, 0.1)
    is_new = ~published.has_pairs(private.pairs)
    self.assertEqual(is_new.sum(), num_new)

  def test_by_seed_and_dataset(self):
    published = worlds.load_dataset('embedded', None).graph.graph
    draw = lambda *args: release.private_graph(published, *args).graph.pairs
    np.testing.assert_array_equal(draw('embedded', 0), draw('embedded', 0))
    for other in (('embedded', 1), ('cora', 0)):
      self.assertFalse(np.array_equal(draw('embedded', 0), draw(*other)))
