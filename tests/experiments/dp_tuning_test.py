"""Tests of the comparison of private and leaky choices of Lambda."""

import contextlib
import dataclasses
import io

from absl.testing import parameterized
import numpy as np
import pandas as pd

from experiments import dp_accuracy_fits
from experiments import dp_tuning
from experiments import experiment as experiment_lib
from tests.experiments import harness

TINY = dp_tuning.Config(
  models=('svm',), epsilons=('2',), num_draws=2, num_folds=1
)


def _rows():
  return dp_tuning.run_unit(TINY, 'breast_cancer svm', None)


class RunTest(parameterized.TestCase):
  @classmethod
  def setUpClass(cls):
    super().setUpClass()
    cls.rows = _rows()

  def test_two_runs_are_equal(self):
    digest = experiment_lib.value_digest
    self.assertEqual(
      *(digest(rows, frozenset()) for rows in (self.rows, _rows()))
    )

  def test_guarantees_come_from_the_library(self):
    stated = {row['choice']: row['guarantee'] for row in self.rows}
    self.assertEqual(
      stated,
      {
        'private': 'dp(2)',
        'fixed': 'dp(2)',
        'best on test': 'NOT COVERED',
        'best of equals': 'NOT COVERED',
      },
    )
    self.assertFalse(any(row['certified'] for row in self.rows))

  def test_counts(self):
    problem = dp_accuracy_fits.load_problem('breast_cancer', 'svm', 0, None)
    features = problem.rows.signed * problem.labels[:, None]
    test = ~problem.train[0]
    for row in self.rows:
      choice, expected = row['choice'], []
      for draw in range(2):
        tuned = dp_tuning._tuned(TINY, problem, features, '2', choice, draw, 0)
        score = features[test] @ tuned.model.weights
        right = np.where(score > 0, 1, -1) == problem.labels[test]
        expected.append(right.sum())
      self.assertEqual(row['num_correct'], sum(expected))
      self.assertEqual(row['sum_squares'], np.square(expected).sum())
      self.assertEqual(row['num_tested'], test.sum())

  def test_every_choice_names_one_lambda_a_run(self):
    num_values = len(TINY.regularizations)
    for row in self.rows:
      if row['choice'] in ('private', 'best on test'):
        picked = [int(count) for count in row['picked'].split()]
        self.assertLen(picked, num_values)
        self.assertEqual(sum(picked), 2)


class ReportTest(parameterized.TestCase):
  def test_mean_and_sd(self):
    common = dict(dataset='d', model='lr', epsilon='1', guarantee='dp(1)')
    # 80 and 90 right of 100.
    row = common | dict(
      choice='private',
      num_tested=100,
      num_draws=2,
      num_correct=170,
      sum_squares=80**2 + 90**2,
      picked='2 0',
    )
    folder, out = harness.temporary_folder(self), io.StringIO()
    with contextlib.redirect_stdout(out):
      dp_tuning.report(TINY, [row], folder)
    table = pd.read_csv(folder / 'summary.csv')
    np.testing.assert_allclose(table['accuracy'], [85])
    np.testing.assert_allclose(table['sd'], [np.std([80, 90], ddof=1)])

  @parameterized.parameters(
    (dict(num_draws=0), 'num_draws must be >= 1, got 0'),
    (dict(num_folds=11), r'num_folds must be in \[1, 10\], got 11'),
    (dict(epsilons=('-1',)), r'epsilons must be in .*, got -1'),
    (dict(models=('tree',)), r"models must be among .*, got 'tree'"),
  )
  def test_bad_config(self, changed, message):
    with self.assertRaisesRegex(ValueError, message):
      dataclasses.replace(TINY, **changed)
