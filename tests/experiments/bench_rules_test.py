"""Tests of the rules' benchmark: rows, peer, report; nothing measures time."""

import contextlib
import dataclasses
import functools
import io
import json
import math
import sys
import types
from unittest import mock

from absl.testing import parameterized
import numpy as np
import pandas as pd

from experiments import bench_rules
from experiments import experiment as experiment_lib
from privjax.rules import sensitive
from tests.experiments import harness

TINY = bench_rules.Config(num_folds=2, num_iterations=50)
MEASURED = bench_rules.EXPERIMENT.measured
PEER = 'BRL of imodels'


@functools.cache
def _rows():
  return bench_rules.run_unit(TINY, 'breast_cancer', None)


@functools.cache
def _fold():
  return bench_rules.load_folds('breast_cancer', 0, 1, None)[0]


class _FakePeer:
  """Predicts the first column, and keeps what it was given."""

  d_star = [3, 1, 0]  # Two rules and the default.
  itemsets = ['null', ('a',), ('b',), ('a', 'b')]

  def __init__(self, **settings):
    self.settings = settings

  def fit(self, binary, labels):
    _FakePeer.fitted = self, binary, labels

  def predict(self, binary):
    return binary[:, 0]


def _with_peer(module):
  return mock.patch.dict(sys.modules, {'imodels': module})


class FoldsTest(parameterized.TestCase):
  def test_labels_are_a_good_classifiers(self):
    fold = _fold()
    self.assertEqual(len(fold.binary) + len(fold.held_out), 569)
    self.assertLen(fold.labels, len(fold.binary))
    self.assertEqual(set(fold.labels), {-1, 1})
    problem = bench_rules.dp_accuracy_fits.load_problem(
      'breast_cancer', 'lr', 0, None
    )
    truth = problem.labels[~problem.train[0]]
    self.assertGreater(np.mean(fold.held_out_labels == truth), 0.9)
    self.assertLess(np.mean(fold.labels == problem.labels[problem.train[0]]), 1)

  def test_every_row_has_a_level(self):
    fold = _fold()
    for x in (fold.binary, fold.held_out):
      codes = sensitive.codes(fold.attribute, fold.items.names, x)
      self.assertLess(codes.max(), fold.attribute.num_levels)

  def test_folds_hold_out_other_rows(self):
    first, second = bench_rules.load_folds('breast_cancer', 0, 2, None)
    self.assertFalse(np.array_equal(first.held_out, second.held_out))
    self.assertFalse(np.array_equal(first.labels, second.labels))


class PeerTest(parameterized.TestCase):
  config = dataclasses.replace(TINY, with_imodels=True)

  def test_gets_what_ours_gets(self):
    fold = _fold()
    module = types.SimpleNamespace(BayesianRuleListClassifier=_FakePeer)
    with _with_peer(module):
      row = bench_rules._imodels_row(self.config, fold)
    peer, binary, labels = _FakePeer.fitted
    np.testing.assert_array_equal(binary, fold.binary)
    np.testing.assert_array_equal(2 * labels - 1, fold.labels)
    self.assertEqual(peer.settings['max_iter'], 50)
    self.assertEqual(peer.settings['n_chains'], 3)
    predicted = np.where(fold.held_out[:, 0], 1, -1)
    num_agree = int(np.sum(predicted == fold.held_out_labels))
    for field in MEASURED:
      self.assertGreater(row.pop(field), 0)
    self.assertEqual(
      row,
      {
        'num_agree': num_agree,
        'num_held_out': len(fold.held_out),
        'num_rules': 2,
        'num_antecedents': 3,
      },
    )

  def test_absent(self):
    with _with_peer(None):
      names, rows = zip(*bench_rules._measure(self.config, _fold()))
    self.assertIn(PEER, names)
    row = rows[names.index(PEER)]
    self.assertEqual(set(row), MEASURED)
    self.assertTrue(all(math.isnan(value) for value in row.values()))

  def test_only_with_the_flag(self):
    self.assertNotIn(PEER, [row['name'] for row in _rows()])


class ReportTest(parameterized.TestCase):
  def test_ratios_to_the_cold_list(self):
    common = dict(dataset='d', num_rows=10, num_folds=1)
    decided = dict(num_agree=9, num_held_out=10, num_rules=4)
    rows = [
      common
      | dict(name='BRL, compiling included', seconds=3.0, cpu_seconds=2.0)
      | decided
      | dict(num_antecedents=7),
      common
      | dict(name='IT', seconds=9.0, cpu_seconds=1.0)
      | decided
      | dict(num_folds=2),
      common | dict(name=PEER, seconds=math.nan, cpu_seconds=math.nan),
      common | dict(dataset='e', name='IT', seconds=9.0, cpu_seconds=1.0),
    ]
    folder, out = harness.temporary_folder(self), io.StringIO()
    with contextlib.redirect_stdout(out):
      bench_rules.report(TINY, rows, folder)
    table = pd.read_csv(folder / 'summary.csv')
    np.testing.assert_allclose(
      table['times_the_list'], [1, 0.5, math.nan, math.nan]
    )
    np.testing.assert_allclose(table['agreement'][:2], [0.9, 0.9])
    np.testing.assert_allclose(table['rules'][:2], [4, 2])
    self.assertRegex(out.getvalue(), rf'{PEER} +10( +absent){{6}}\n')
    self.assertEqual(out.getvalue().count('absent'), 6)

  @parameterized.parameters(
    (dict(seed=-1), r'seeds must be in .*, got -1'),
    (dict(datasets=('iris',)), r"datasets must be among .*, got 'iris'"),
    (dict(num_folds=0), r'num_folds must be in \[1, 10\]: 0'),
    (dict(num_folds=11), r'num_folds must be in \[1, 10\]: 11'),
    (dict(num_iterations=1), r'num_iterations must be >= 2: 1'),
  )
  def test_bad_config(self, changed, message):
    with self.assertRaisesRegex(ValueError, message):
      dataclasses.replace(TINY, **changed)


class RunTest(parameterized.TestCase):
  def test_two_runs_decide_alike(self):
    first, second = _rows(), bench_rules.run_unit(TINY, 'breast_cancer', None)
    self.assertEqual(*map(experiment_lib.decision_digest, (first, second)))
    self.assertEqual(
      *(experiment_lib.value_digest(rows, MEASURED) for rows in (first, second))
    )

  def test_rows(self):
    rows = {row['name']: row for row in json.loads(json.dumps(_rows()))}
    self.assertLen(rows, len(_rows()))
    for row in rows.values():
      self.assertGreater(row['seconds'], 0)
      self.assertEqual(row['num_rows'], 512)
    cold, warm = rows['BRL, compiling included'], rows['BRL, warm']
    self.assertEqual((cold['num_folds'], warm['num_folds']), (1, 2))
    self.assertEqual(warm['num_held_out'], 2 * 57)
    mined = rows['BRL, mining alone']['num_antecedents']
    self.assertEqual(warm['num_antecedents'], mined)
    self.assertGreater(rows['IT']['num_agree'], 0.8 * 2 * 57)
    for name in ('BRL', 'IT'):
      self.assertIn('num_violating', rows[f'{name}, violation.score'])
      guessed = rows[f'{name}, rule_scores']
      self.assertBetween(guessed['num_guessed'], 1, 2 * 57)
      self.assertBetween(guessed['num_marginal'], 1, 2 * 57)
