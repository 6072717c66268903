"""The private choice of Lambda: its law, its privacy, what it states."""

import fractions
import inspect
import itertools
from unittest import mock

from absl.testing import parameterized
import numpy as np

from privjax import erm
from privjax import prng
from privjax import types
from privjax.erm import objective
from privjax.erm import tuning
from tests import mutants_tuning
from tests.erm import cases
from tests.erm import tuning_checks

Fraction = fractions.Fraction

_GRID = (1.0, 1e-2)
# The check of `tuning_checks` that must find each mutant.
_CAUGHT_BY = {
  'sensitivity_halved': ('selection_privacy', 'selection_law'),
  'selection_without_noise': ('joint_privacy',),
  'split_by_label': ('joint_privacy',),
  'split_by_feature': ('joint_privacy',),
  'overlapping_training_parts': ('joint_privacy',),
  'validation_rows_in_training': ('joint_privacy',),
  'selection_on_a_training_part': ('joint_privacy',),
  'selection_on_all_rows': ('joint_privacy',),
  'uncharged_second_fit': ('joint_privacy',),
  'one_noise_for_all_parts': ('independent_streams',),
  'errors_preferred': ('selection_law', 'chosen_model'),
  'another_value_reported': ('chosen_model',),
}
_MUTANTS = mutants_tuning.PRIVACY | mutants_tuning.EXACTNESS


def _tune(num_rows=30, **changes):
  features, labels = cases.table(num_rows)
  settings = dict(config=cases.config(), regularizations=_GRID, epsilon=1)
  return tuning.tune(features, labels, **(settings | changes))


def _recorder(models):
  """Returns a fit that keeps what it returned."""
  fit = objective.fit

  def recorded(*args, **kwargs):
    models.append(fit(*args, **kwargs))
    return models[-1]

  return recorded


class MutantsTest(parameterized.TestCase):
  @parameterized.parameters(*tuning_checks.CHECKS)
  def test_the_library_passes(self, check):
    self.assertEqual(tuning_checks.CHECKS[check](), [])

  @parameterized.parameters(
    (mutant, check) for mutant in _CAUGHT_BY for check in _CAUGHT_BY[mutant]
  )
  def test_is_caught(self, mutant, check):
    with _MUTANTS[mutant]():
      self.assertNotEmpty(tuning_checks.CHECKS[check]())

  @parameterized.parameters(*mutants_tuning.EXACTNESS)
  def test_exactness_mutants_are_private(self, mutant):
    with _MUTANTS[mutant]():
      self.assertEqual(tuning_checks.selection_privacy(), [])

  def test_every_mutant_has_a_check_and_every_check_a_mutant(self):
    self.assertEqual(set(_CAUGHT_BY), set(_MUTANTS))
    used = {check for checks in _CAUGHT_BY.values() for check in checks}
    self.assertEqual(used, set(tuning_checks.CHECKS))

  def test_epsilon_is_attained(self):
    """The checks are not passed by adding noise that nobody asked for."""
    some = itertools.islice(tuning_checks.log_ratios(), 60)
    self.assertGreater(max(some), 0.999)
    self.assertGreater(tuning_checks.selection_log_ratio(), 0.75)


class SplitTest(parameterized.TestCase):
  @parameterized.parameters((1, 1), (5, 5), (5, 1), (23, 4), (24, 4))
  def test_parts_are_disjoint_complete_and_even(self, num_rows, num_parts):
    parts = tuning.split_rows(num_rows, num_parts, seed=3)
    self.assertLen(parts, num_parts)
    self.assertEqual(
      sorted(np.concatenate(parts).tolist()), list(range(num_rows))
    )
    sizes = [len(part) for part in parts]
    self.assertLessEqual(max(sizes) - min(sizes), 1)

  def test_is_of_public_numbers_only(self):
    self.assertEqual(
      list(inspect.signature(tuning.split_rows).parameters),
      ['num_rows', 'num_parts', 'seed'],
    )

  def test_the_seed_permutes(self):
    first, again, other = (
      np.concatenate(tuning.split_rows(50, 3, seed=seed)) for seed in (0, 0, 1)
    )
    np.testing.assert_array_equal(first, again)
    self.assertTrue((first != other).any())
    self.assertTrue((first != np.arange(50)).any())

  @parameterized.parameters((3, 4, 0), (3, 0, 0), (3, 2, -1))
  def test_out_of_range(self, num_rows, num_parts, seed):
    with self.assertRaises(ValueError):
      tuning.split_rows(num_rows, num_parts, seed=seed)


class TuneTest(parameterized.TestCase):
  def test_counts_what_predictions_miss(self):
    features, labels = cases.table(40)
    names = np.array(['no', 'yes'])[labels]
    config = cases.config(classes=('no', 'yes'), intercept=1.0)
    model = objective.fit(features, names, config=config, epsilon=None)
    missed = int((erm.predict(model, features) != names).sum())
    self.assertEqual(tuning.count_errors(model, features, names), missed)
    self.assertBetween(missed, 1, 20)

  def test_operating_system_bits_are_certified_and_a_key_is_not(self):
    self.assertTrue(_tune().model.certified)
    replays = [_tune(key=prng.key(3)) for _ in range(2)]
    for replay in replays:
      self.assertFalse(replay.model.certified)
      self.assertEqual(replay.regularization, replays[0].regularization)
      np.testing.assert_array_equal(
        replay.model.weights, replays[0].model.weights
      )

  @parameterized.product(calibration=('paper', 'tight'), mode=objective.MODES)
  def test_the_guarantee(self, calibration, mode):
    settings = dict(calibration=calibration, mode=mode)
    with mock.patch.object(objective, 'fit', wraps=objective.fit) as fit:
      tuned = _tune(epsilon='1/2', key=prng.key(0), **settings)
    for call in fit.call_args_list:
      self.assertLessEqual(settings.items(), call.kwargs.items())
    self.assertLen(fit.call_args_list, len(_GRID))
    stated = tuned.model.guarantee
    self.assertEqual(stated, tuning.guarantee('1/2', **settings))
    self.assertEqual(stated.epsilon, Fraction(1, 2))
    self.assertEqual(stated.delta, 0)
    self.assertIs(stated.relation, types.NeighboringRelation.REPLACE_ONE_ROW)
    self.assertIn('Algorithm 3', stated.theorem)
    self.assertIn('sensitivity 1', stated.theorem)
    self.assertIn(
      objective.guarantee('1/2', **settings).theorem, stated.theorem
    )
    self.assertEqual('ASSUMES' in stated.theorem, mode == 'exact-argmin')

  def test_one_row_per_part_and_one_value(self):
    for num_rows, grid in ((3, _GRID), (2, (0.5,))):
      tuned = _tune(num_rows, regularizations=grid)
      self.assertIn(tuned.regularization, grid)
      self.assertTrue(np.isfinite(tuned.model.weights).all())

  @parameterized.named_parameters(
    ('empty_grid', dict(regularizations=()), 'regularizations'),
    ('no_grid', dict(regularizations=None), 'regularizations'),
    ('number_for_a_grid', dict(regularizations=0.1), 'regularizations'),
    ('repeated', dict(regularizations=(0.1, 1, 0.1)), 'distinct'),
    ('repeated_as_int', dict(regularizations=(1, 1.0)), 'distinct'),
    ('zero', dict(regularizations=(0.1, 0)), 'regularizations .* got 0'),
    ('negative', dict(regularizations=(0.1, -1)), 'regularizations .* got -1'),
    ('nan', dict(regularizations=(float('nan'),)), 'regularizations'),
    ('infinite', dict(regularizations=(float('inf'), 1)), 'regularizations'),
    ('no_epsilon', dict(epsilon=None), 'epsilon'),
    ('epsilon_zero', dict(epsilon=0), 'epsilon'),
    ('epsilon_small', dict(epsilon=Fraction(1, 2**41)), 'epsilon'),
    ('epsilon_large', dict(epsilon=10001), 'epsilon'),
    ('mode', dict(mode='other'), 'mode'),
    ('calibration', dict(calibration='other'), 'calibration'),
    ('split_seed', dict(split_seed=-1), 'seed'),
    ('few_rows', dict(num_rows=2), 'at least 3 rows.*got 2'),
    ('long_rows', dict(config=cases.config(row_norm=0.1)), 'row_norm'),
    ('labels', dict(config=cases.config(classes=(0, 2))), 'labels'),
  )
  def test_refused_before_anything_is_fitted(self, change, message):
    with mock.patch.object(objective, 'fit') as fit:
      with self.assertRaisesRegex(ValueError, message):
        _tune(**change)
    fit.assert_not_called()

  def test_errors_outside_the_public_levels(self):
    for errors in ([0, 4], [-1, 2]):
      with self.assertRaisesRegex(ValueError, 'levels'):
        tuning.select(errors, num_rows=3, epsilon=1)


class BestOnTestTest(parameterized.TestCase):
  @parameterized.parameters('1/2', None)
  def test_is_the_best_and_not_covered(self, epsilon):
    features, labels = cases.table(40)
    split = slice(0, 25), slice(25, 40)
    for key in (None, prng.key(1)):
      models = []
      with mock.patch.object(objective, 'fit', _recorder(models)):
        found = tuning.best_on_test(
          features[split[0]],
          labels[split[0]],
          features[split[1]],
          labels[split[1]],
          config=cases.config(),
          regularizations=(100.0, *_GRID),
          epsilon=epsilon,
          key=key,
        )
      missed = [
        int((erm.predict(m, features[split[1]]) != labels[split[1]]).sum())
        for m in models
      ]
      best = missed.index(min(missed))
      self.assertEqual(found.regularization, (100.0, *_GRID)[best])
      np.testing.assert_array_equal(found.model.weights, models[best].weights)
      self.assertFalse(found.model.certified)
      self.assertIsNone(found.model.guarantee.epsilon)
      self.assertStartsWith(found.model.guarantee.theorem, 'NOT COVERED: ')

  def test_bad_grid(self):
    features, labels = cases.table(4)
    table = features, labels, features, labels
    with self.assertRaisesRegex(ValueError, 'distinct'):
      tuning.best_on_test(
        *table, config=cases.config(), regularizations=(1, 1), epsilon=1
      )

  def test_bad_test_labels_before_anything_is_fitted(self):
    features, labels = cases.table(4)
    with mock.patch.object(objective, 'fit') as fit:
      with self.assertRaisesRegex(ValueError, 'labels'):
        tuning.best_on_test(
          features,
          labels,
          features,
          labels + 1,
          config=cases.config(),
          regularizations=_GRID,
          epsilon=1,
        )
    fit.assert_not_called()


class CrossValidationTest(parameterized.TestCase):
  @parameterized.product(num_folds=(2, 3, 10), num_values=(1, 4))
  def test_epsilon_counts_the_models_that_see_a_row(
    self, num_folds, num_values
  ):
    folds = np.arange(60) % num_folds
    seen = [
      sum(
        fold != folds[row]
        for fold, _ in itertools.product(range(num_folds), range(num_values))
      )
      for row in range(60)
    ]
    stated = tuning.cross_validation_guarantee(
      '1/3', num_folds=num_folds, num_values=num_values
    )
    self.assertEqual(stated.epsilon, max(seen) * Fraction(1, 3))
    self.assertIn('scores NOT COVERED', stated.theorem)
    self.assertIn(objective.guarantee('1/3').theorem, stated.theorem)

  @parameterized.parameters(
    dict(num_folds=1), dict(num_folds=3, num_values=0), dict(num_folds=2.5)
  )
  def test_out_of_range(self, **settings):
    with self.assertRaisesRegex(ValueError, 'num_'):
      tuning.cross_validation_guarantee(1, **settings)

  def test_bad_epsilon(self):
    with self.assertRaisesRegex(ValueError, 'epsilon'):
      tuning.cross_validation_guarantee(None, num_folds=3)
