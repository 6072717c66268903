"""A grid of fits is its cells, whatever the grid around them."""

import fractions

from absl.testing import parameterized
import numpy as np

from privjax import erm
from privjax import prng
from tests.erm import cases

Fraction = fractions.Fraction

_MASKS = np.arange(30)[None] % 3 != np.arange(3)[:, None]


def _rows():
  # Rounded, so that some rows are equal and are merged.
  features, labels = cases.table(30, 3)
  return erm.unit_rows(np.round(features, 1) / 2, labels, cases.config())


def _sweep(**changes):
  settings = dict(
    loss=cases.LOGISTIC,
    epsilons=('1/2', None, 2),
    regularizations=(1e-3, 0.1),
    num_draws=2,
    key=prng.key(0),
    tolerance=1e-12,
  )
  return erm.sweep(_rows(), _MASKS, **(settings | changes))


class SweepTest(parameterized.TestCase):
  @parameterized.product(named=cases.LOSSES, rule=('paper', 'tight'))
  def test_cells_are_optimal_for_their_own_noise(self, named, rule):
    _, loss = named
    fits = _sweep(loss=loss, calibration=rule, names=('data',))
    self.assertEqual(fits.weights.shape, (2, 3, 3, 2, 3))
    self.assertLess(fits.residual.max(), 1e-12)
    signed = _rows().signed
    for (i, regularization), fold, draw in (
      ((0, 1e-3), 0, 1),
      ((1, 0.1), 2, 0),
    ):
      for j, epsilon in enumerate((Fraction(1, 2), None, Fraction(2))):
        total, linear = regularization, np.zeros(3)
        if epsilon is not None:
          numbers = erm.calibrate(
            epsilon,
            loss=loss,
            num_rows=20,
            regularization=regularization,
            calibration=rule,
          )
          cell = (Fraction(str(regularization)), epsilon, fold, draw)
          noise = erm.cell_noise(
            prng.key(0), [cell], dimension=3, names=('data',)
          )[0]
          total, linear = numbers.regularization, noise * numbers.noise_scale
        _, gradient, _ = cases.objective(
          loss,
          signed[_MASKS[fold]],
          np.ones(20),
          fits.weights[i, j, fold, draw],
          np.full(3, total),
          linear / 20,
        )
        self.assertLess(np.linalg.norm(gradient), 1e-11)

  def test_batches_do_not_matter(self):
    # 10 fits of a fold: batches of 4, 4 and 2, the last one filled up.
    np.testing.assert_allclose(
      _sweep(batch_size=4).weights, _sweep().weights, atol=1e-8
    )

  @parameterized.named_parameters(*cases.LOSSES)
  def test_the_non_private_limit_to_1e_8_at_the_default_tolerance(self, loss):
    values = (1e-2, 1e-3, 1e-5, 1e-7)
    fits = erm.sweep(
      _rows(),
      _MASKS,
      loss=loss,
      epsilons=(None, 1),
      regularizations=values,
      num_draws=1,
      key=prng.key(0),
    )
    for i, value in enumerate(values):
      for fold, mask in enumerate(_MASKS):
        rows = _rows().signed[mask]
        expected = cases.minimize(
          loss, rows, np.ones(len(rows)), np.full(3, value)
        )
        distance = np.linalg.norm(fits.weights[i, 0, fold, 0] - expected)
        self.assertLess(distance, 1e-8)

  def test_the_grid_around_a_cell_does_not_matter(self):
    whole = _sweep()
    part = _sweep(epsilons=(2,), regularizations=(0.1,), num_draws=1)
    np.testing.assert_allclose(
      part.weights[0, 0, :, 0], whole.weights[1, 2, :, 0], atol=1e-8
    )

  def test_the_non_private_limit_repeats_over_draws(self):
    fits = _sweep()
    np.testing.assert_array_equal(
      fits.weights[:, 1, :, 0], fits.weights[:, 1, :, 1]
    )
    noisy = fits.weights[:, 0, :, 0] != fits.weights[:, 0, :, 1]
    self.assertTrue(noisy.all())

  def test_every_cell_has_its_own_noise(self):
    cells = [
      (Fraction(r), Fraction(e), fold, draw)
      for r in (1, 2)
      for e in (1, 2)
      for fold in range(3)
      for draw in range(2)
    ]
    noise = erm.cell_noise(prng.key(0), cells, dimension=2)
    self.assertLen(np.unique(noise[:, 0]), len(cells))
    shared = erm.cell_noise(prng.key(0), cells, dimension=2, noise='shared')
    self.assertLen(np.unique(shared[:, 0]), len(cells) // 3)
    other = erm.cell_noise(prng.key(0), cells, dimension=2, names=('b',))
    self.assertTrue((noise != other).all())

  @parameterized.parameters(
    dict(num_draws=0),
    dict(batch_size=0),
    dict(epsilons=(0,)),
    dict(epsilons=()),
    dict(regularizations=()),
    dict(regularizations=(0.0,)),
    dict(calibration='loose'),
    dict(noise='none'),
  )
  def test_bad_argument(self, **bad):
    with self.assertRaisesRegex(ValueError, next(iter(bad)).rstrip('s')):
      _sweep(**bad)

  @parameterized.named_parameters(
    ('narrow', _MASKS[:, 1:], 'fold_masks must have shape'),
    ('counts', 2 * _MASKS.astype(int), 'fold_masks must be bool, got int64'),
    ('no_folds', _MASKS[:0], 'fold_masks.* must not be empty, got 0, 1 and 1'),
    ('empty_fold', np.zeros((1, 30), bool), 'num_rows'),
  )
  def test_bad_masks(self, masks, message):
    with self.assertRaisesRegex(ValueError, message):
      erm.sweep(
        _rows(),
        masks,
        loss=cases.LOGISTIC,
        epsilons=(1,),
        regularizations=(1,),
        num_draws=1,
        key=prng.key(0),
      )
