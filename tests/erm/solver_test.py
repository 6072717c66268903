"""The solver against SciPy, and against itself on other shapes."""

import functools

from absl.testing import parameterized
import jax
import numpy as np

from privjax import erm
from privjax import prng
from tests.erm import cases
from tests.oracles import erm as oracle


def _problem(num_rows=40):
  features, labels = cases.table(num_rows)
  signs = 2.0 * labels - 1
  return features, signs, features * signs[:, None]


_batch = functools.partial(
  jax.jit, static_argnames=('loss', 'max_steps', 'batch_size')
)(erm.solver.minimize)


def _minimize(rows, row_weights, linear, penalty, **settings):
  fits = _batch(rows, row_weights, linear[None], penalty[None], **settings)
  return erm.solver.Fit(*(np.asarray(leaf)[0] for leaf in fits))


class SolverTest(parameterized.TestCase):
  @parameterized.product(
    named=cases.LOSSES, penalty=(1.0, 1e-2, 1e-4), linear=(0.0, 0.05, 20.0)
  )
  def test_optimum_to_1e_8(self, named, penalty, linear):
    _, loss = named
    features, signs, rows = _problem()
    term = linear * np.array([1.0, -2.0, 0.5, 1.0])
    penalties = penalty * np.array([1.0, 2.0, 1.0, 3.0])
    fit = _minimize(rows, np.ones(40), term, penalties, loss=loss)
    _, gradient, _ = cases.objective(
      loss, features, signs, np.asarray(fit.weights), penalties, term
    )
    # What J mu-strong convexity makes of it is the distance.
    distance = np.linalg.norm(gradient) / penalty
    self.assertLess(distance, 1e-8 * (1 + np.linalg.norm(fit.weights)))
    self.assertLess(fit.residual, 1e-12 * (1 + 100 * linear))

  @parameterized.named_parameters(*cases.LOSSES)
  def test_scipy_finds_the_same_weights(self, loss):
    features, signs, rows = _problem()
    penalty = np.full(4, 1e-3)
    fit = _minimize(rows, np.ones(40), np.zeros(4), penalty, loss=loss)
    expected = cases.minimize(loss, features, signs, penalty)
    np.testing.assert_allclose(fit.weights, expected, rtol=0, atol=1e-8)

  def test_row_weights_select_and_repeat(self):
    _, _, rows = _problem()
    counts = np.arange(40) % 3
    solve = functools.partial(_minimize, loss=cases.HINGE)
    rest = (np.full(4, 0.1), np.full(4, 0.01))
    weighted = solve(rows, counts.astype(float), *rest)
    repeated = np.repeat(rows, counts, axis=0)
    plain = solve(repeated, np.ones(len(repeated)), *rest)
    np.testing.assert_allclose(weighted.weights, plain.weights, atol=1e-12)

  def test_a_batch_is_its_members(self):
    _, _, rows = _problem()
    linear = prng.generator(0, 'linear').normal(size=(5, 4))
    penalty = np.linspace(0.01, 0.1, 20).reshape(5, 4)
    settings = dict(loss=cases.LOGISTIC)
    for batch_size in (None, 1, 2):
      batch = _batch(
        rows, np.ones(40), linear, penalty, batch_size=batch_size, **settings
      )
      for i in range(5):
        single = _minimize(rows, np.ones(40), linear[i], penalty[i], **settings)
        np.testing.assert_allclose(
          batch.weights[i], single.weights, rtol=1e-12, atol=1e-12
        )
        np.testing.assert_allclose(
          batch.residual[i], single.residual, rtol=0, atol=1e-14
        )
        self.assertEqual(batch.num_steps[i], single.num_steps)

  @parameterized.product(named=cases.LOSSES, far=(0.1, 1.0, 1e3))
  def test_any_start_ends_at_the_optimum(self, named, far):
    _, loss = named
    _, _, rows = _problem()
    linear, penalty = np.full(4, 0.05), np.full(4, 1e-3)
    settings = dict(loss=loss, tolerance=1e-13)
    expected = _minimize(rows, np.ones(40), linear, penalty, **settings)
    start = far * np.array([1.0, -1.0, 0.3, 0.0])
    fit = _minimize(rows, np.ones(40), linear, penalty, start=start, **settings)
    np.testing.assert_allclose(fit.weights, expected.weights, atol=1e-9)

  def test_the_optimum_itself_takes_one_step(self):
    _, _, rows = _problem()
    linear, penalty = np.full(4, 0.05), np.full(4, 1e-2)
    solve = functools.partial(
      _minimize, rows, np.ones(40), linear, penalty, loss=cases.LOGISTIC
    )
    fit = solve()
    self.assertGreater(fit.num_steps, 2)
    self.assertEqual(solve(start=fit.weights).num_steps, 1)

  def test_each_problem_has_its_own_tolerance(self):
    _, _, rows = _problem()
    linear, penalty = np.full((3, 4), 0.05), np.full((3, 4), 1e-2)
    fits = _batch(
      rows,
      np.ones(40),
      linear,
      penalty,
      loss=cases.LOGISTIC,
      tolerance=np.array([np.inf, 1e-12, 1e-3]),
    )
    self.assertEqual(fits.num_steps[0], 1)
    self.assertLess(fits.residual[1], 1e-12)
    self.assertBetween(fits.residual[2], 1e-12, 1e-3)

  @parameterized.named_parameters(*cases.LOSSES)
  def test_a_tolerance_of_0_ends_at_the_rounding(self, loss):
    _, _, rows = _problem()
    for penalty in (1.0, 1e-3, 1e-7):
      fit = _minimize(
        rows,
        np.ones(40),
        np.full(4, 1e-3),
        np.full(4, penalty),
        loss=loss,
        tolerance=0.0,
      )
      self.assertLess(fit.num_steps, 25)
      size = 1 + np.linalg.norm(fit.weights)
      self.assertLess(fit.residual, 1e-15 * size)

  def test_the_residual_is_reported_when_steps_run_out(self):
    features, signs, rows = _problem()
    penalty, linear = np.full(4, 1e-6), np.full(4, 0.3)
    fit = _minimize(
      rows, np.ones(40), linear, penalty, loss=cases.LOGISTIC, max_steps=2
    )
    _, gradient, _ = oracle.objective(
      'logistic', features, signs, np.asarray(fit.weights), penalty, linear
    )
    self.assertGreater(fit.residual, 1e-3)
    np.testing.assert_allclose(fit.residual, np.linalg.norm(gradient))

  def test_a_step_that_is_not_finite_keeps_the_point_before(self):
    """Two equal columns and a penalty that rounding swallows."""
    rows = np.ones((4, 2))
    fit = _minimize(
      rows, np.ones(4), np.full(2, 0.1), np.full(2, 1e-18), loss=cases.LOGISTIC
    )
    np.testing.assert_array_equal(fit.weights, 0)
    self.assertTrue(np.isfinite(fit.residual))

  @parameterized.parameters(
    (dict(max_steps=0), '^max_steps must'),
    (dict(batch_size=0), '^batch_size must'),
    (dict(batch_size=-1), '^batch_size must'),
  )
  def test_refuses(self, changed, message):
    _, _, rows = _problem()
    with self.assertRaisesRegex(ValueError, message):
      _minimize(
        rows,
        np.ones(40),
        np.zeros(4),
        np.ones(4),
        loss=cases.LOGISTIC,
        **changed,
      )

  def test_less_than_64_bits_is_refused(self):
    _, _, rows = _problem()
    with jax.enable_x64(False), self.assertRaisesRegex(TypeError, 'float64'):
      erm.solver.minimize(
        rows.astype(np.float32),
        np.ones(40, np.float32),
        np.zeros((1, 4), np.float32),
        np.ones((1, 4), np.float32),
        loss=cases.LOGISTIC,
      )
