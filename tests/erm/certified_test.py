"""The certified mode: exact gradients, a proved distance, and no failure."""

import dataclasses
import fractions
import math
from unittest import mock

from absl.testing import parameterized
import numpy as np

from privjax import erm
from privjax import prng
from privjax.erm import certified
from privjax.erm import single
from privjax.mechanisms import entropy
from privjax.mechanisms import vector_noise
from tests.erm import cases

Fraction = fractions.Fraction


def _numbers(loss, num_rows, regularization=0.05, epsilon=1):
  return erm.calibrate(
    epsilon, loss=loss, num_rows=num_rows, regularization=regularization
  )


def _signed(num_rows, seed=0):
  features, labels = cases.table(num_rows, 3, seed)
  return features * (2.0 * labels - 1)[:, None]


def _problem(loss, num_rows=8, seed=0, **kwargs):
  numbers = _numbers(loss, num_rows, **kwargs)
  source = entropy.seeded(seed, 'certified_test')
  signed = _signed(num_rows, seed)
  return certified._exact(signed, numbers, loss, source), signed


def _distance_to_the_optimum(problem, signed, weights):
  """Returns |w - w*|, with w* from SciPy on the exact problem's own noise."""
  linear = [float(b / len(signed)) for b in problem.noise]
  expected = cases.minimize(
    problem.loss,
    signed,
    np.ones(len(signed)),
    np.full(signed.shape[1], float(problem.regularization)),
    np.array(linear),
  )
  found = np.array([w / 2**problem.bits for w in weights])
  return np.linalg.norm(found - expected)


class CertifiedTest(parameterized.TestCase):
  @parameterized.product(named=cases.LOSSES, size=(0.0, 1.0, 30.0))
  def test_the_exact_gradient(self, named, size):
    _, loss = named
    problem, signed = _problem(loss)
    weights = size * np.array([1.0, -0.5, 2.0])
    exact = problem.gradient([int(w * 2**problem.bits) for w in weights])
    _, expected, _ = cases.objective(
      loss,
      signed,
      np.ones(8),
      weights,
      np.full(3, float(problem.regularization)),
      np.array([float(b / 8) for b in problem.noise]),
    )
    np.testing.assert_allclose(
      [float(g) for g in exact], expected, rtol=1e-13, atol=1e-14
    )

  @parameterized.named_parameters(*cases.LOSSES)
  def test_slopes_are_within_their_bound(self, loss):
    """3 units or 1; twice the bits are the truth, up to as many of theirs."""
    slope, units = {
      'logistic': (certified._logistic_slope, 3),
      'huber_hinge': (
        lambda z, bits: certified._hinge_slope(
          z, bits, Fraction(loss.smoothing)
        ),
        1,
      ),
    }[loss.name]
    for margin in np.linspace(-50, 50, 301):
      coarse = slope(int(Fraction(margin) * 2**90), 90)
      fine = slope(int(Fraction(margin) * 2**90) << 90, 180)
      self.assertLessEqual(abs(coarse * 2**90 - fine), units * (2**90 + 1))
      np.testing.assert_allclose(
        coarse / 2**90, loss.first(margin), rtol=1e-13, atol=1e-25
      )

  @parameterized.named_parameters(*cases.LOSSES)
  def test_saturated_slopes(self, loss):
    problem, _ = _problem(loss)
    far = 1 << problem.bits + 20
    self.assertEqual(problem._slope(far), 0)
    self.assertEqual(problem._slope(-far), -(1 << problem.bits))

  @parameterized.product(named=cases.LOSSES, seed=(0, 1, 2))
  def test_the_minimizer_is_within_gamma(self, named, seed):
    problem, signed = _problem(named[1], seed=seed)
    weights = certified._minimizer(problem, signed)
    self.assertTrue(problem.proved(problem.gradient(weights)))
    # 1e-9 is for SciPy.
    distance = _distance_to_the_optimum(problem, signed, weights)
    self.assertLess(distance, float(problem.gamma) + 1e-9)

  @parameterized.named_parameters(*cases.LOSSES)
  def test_a_point_outside_gamma_is_not_proved(self, loss):
    problem, signed = _problem(loss)
    weights = certified._minimizer(problem, signed)
    off = int(2 * problem.gamma * 2**problem.bits)
    for sign in (-1, 1):
      moved = [weights[0] + sign * off, *weights[1:]]
      self.assertFalse(problem.proved(problem.gradient(moved)))

  @parameterized.named_parameters(*cases.LOSSES)
  def test_gradient_steps_end_from_a_far_start(self, loss):
    problem, signed = _problem(loss, num_rows=3, regularization=0.5)
    start = [10 << problem.bits, 0, -20 << problem.bits]
    weights = certified.descend(problem, start)
    distance = _distance_to_the_optimum(problem, signed, weights)
    self.assertLess(distance, float(problem.gamma) + 1e-9)

  @parameterized.named_parameters(
    ('nan', np.nan), ('infinite', np.inf), ('wrong', 1e6)
  )
  def test_a_broken_solver_changes_nothing_that_counts(self, value):
    problem, signed = _problem(cases.LOGISTIC, 4, regularization=0.5)
    broken = lambda *args, **kwargs: erm.solver.Fit(
      np.full(3, value), np.nan, 0
    )
    with mock.patch.object(single, 'attempt', broken):
      weights = certified._minimizer(problem, signed)
    self.assertTrue(problem.proved(problem.gradient(weights)))

  def test_without_refinements_gradient_steps_take_over(self):
    problem, signed = _problem(cases.LOGISTIC, 4, regularization=0.5)
    stuck = lambda problem, signed, weights, gradient: weights
    zero = lambda problem, signed: [0] * 3
    with (
      mock.patch.object(certified, '_refined', stuck),
      mock.patch.object(certified, '_proposal', zero),
    ):
      weights = certified._minimizer(problem, signed)
    self.assertTrue(problem.proved(problem.gradient(weights)))

  @parameterized.product(
    named=cases.LOSSES,
    epsilon=('1/1000000', 1, 1000),
    regularization=(1e-9, 1e-3, 10.0),
  )
  def test_gamma_leaves_room_for_every_error(
    self, named, epsilon, regularization
  ):
    """The condition of step 3 of the proof, for public numbers only."""
    problem, _ = _problem(
      named[1], 2, regularization=regularization, epsilon=epsilon
    )
    mu, smooth = problem.regularization, problem.curvature
    smooth += mu
    rounding = smooth * Fraction(3, 2**problem.bits)
    room = 16 * (problem.error + rounding) * smooth / mu
    self.assertGreaterEqual(problem.gamma * mu, room)
    self.assertGreaterEqual(problem.gamma, Fraction(1, 2**problem.bits))

  def test_gamma_is_public(self):
    """It does not depend on the rows, their labels or the noise."""
    gammas = {_problem(cases.HINGE, 6, seed=seed)[0].gamma for seed in range(4)}
    self.assertLen(gammas, 1)

  def test_the_release_is_on_the_grid_with_noise_of_its_scale(self):
    numbers = _numbers(cases.LOGISTIC, 5, regularization=0.5)
    steps = []
    for seed in range(60):
      source = entropy.seeded(seed, 'grid')
      weights, gamma = certified.release(
        _signed(5),
        numbers,
        Fraction(1, 100),
        loss=cases.LOGISTIC,
        source=source,
      )
      problem = certified._exact(
        _signed(5), numbers, cases.LOGISTIC, entropy.seeded(seed, 'grid')
      )
      exact = certified._minimizer(problem, _signed(5))
      on_grid = weights / gamma
      np.testing.assert_array_equal(on_grid, np.rint(on_grid))
      steps += list(on_grid - np.array(exact) / 2**problem.bits / gamma)
    # Mean absolute value 2 (d + ceil(sqrt(d))) / eps_o = 1000; the mean of 180
    # draws has standard deviation 75, and 450 is six of them.
    self.assertLess(abs(np.abs(steps).mean() - 1000), 450)

  def test_the_two_modes_agree_but_for_the_share(self):
    """With the same bits, epsilon is smaller by a hundredth."""
    features, labels = cases.table(30)
    fits = [
      erm.objective.fit(
        features,
        labels,
        config=cases.config(regularization=0.1),
        epsilon=epsilon,
        mode=mode,
        key=prng.key(3),
      ).weights
      for epsilon, mode in (
        (Fraction(99, 100), 'exact-argmin'),
        (1, 'certified-inexact'),
      )
    ]
    np.testing.assert_allclose(fits[0], fits[1], rtol=0, atol=1e-3)
    self.assertGreater(np.abs(fits[0] - fits[1]).max(), 0)

  @parameterized.parameters('squared', 'logistic', 'huber_hinge')
  def test_another_loss_is_refused(self, name):
    """Whatever its name: its slope is not the one that is evaluated here."""
    other = erm.losses.Loss(
      name=name,
      value=np.square,
      first=lambda z: z,
      second=np.ones_like,
      second_of_slope=np.ones_like,
      curvature=1.0,
      smoothing=0.5,
    )
    with self.assertRaisesRegex(ValueError, 'loss must be'):
      _problem(other)

  @parameterized.parameters(1, 2, 3, 4, 7)
  def test_the_laplace_scale_covers_the_rounded_distance(self, dimension):
    """2 (d + sqrt(d)) / eps_o: d for rounding, sqrt(d) for gamma in L1."""
    scales = []
    draw = vector_noise.discrete_laplace

    def spy(count, *, scale, source):
      scales.append(scale)
      return draw(count, scale=scale, source=source)

    with mock.patch.object(vector_noise, 'discrete_laplace', spy):
      certified.release(
        np.zeros((2, dimension)),
        _numbers(cases.HINGE, 2, 0.5),
        Fraction(1, 7),
        loss=cases.HINGE,
        source=entropy.seeded(0, 'scale'),
      )
    beyond = scales[0] * Fraction(1, 7) / 2 - dimension
    self.assertGreater(beyond, 0)
    self.assertGreaterEqual(beyond * beyond, dimension)

  @parameterized.named_parameters(*cases.LOSSES)
  def test_the_error_holds_every_part(self, loss):
    problem, _ = _problem(loss, 2)
    scale = 2 / Fraction(_numbers(loss, 2).noise_epsilon)
    noise = scale * vector_noise.error_bound(3) / 2
    slopes = (3 + Fraction(loss.curvature)) / 2**problem.bits
    self.assertGreaterEqual(problem.error, noise + slopes)

  def test_a_proof_leaves_room_for_the_error(self):
    problem, _ = _problem(cases.HINGE, 2)
    room = problem.gamma * problem.regularization
    tight = dataclasses.replace(problem, error=room / 2)
    self.assertTrue(tight.proved([room / 2, 0, 0]))
    self.assertFalse(tight.proved([room * Fraction(51, 100), 0, 0]))

  def test_rows_are_never_lengthened(self):
    signed = _signed(50) / 300
    fixed = certified._fixed_rows(signed)
    for exact, given in zip(fixed.ravel(), signed.ravel()):
      self.assertLessEqual(abs(exact), abs(Fraction(float(given))) * 2**60)


class TerminationTest(parameterized.TestCase):
  """The public bound on gradient steps, and what may not raise before it."""

  @parameterized.product(named=cases.LOSSES, far=(0, 1000))
  def test_the_bound_suffices_without_a_proof_on_the_way(self, named, far):
    problem, _ = _problem(named[1], num_rows=3, regularization=0.5)
    start = [far << problem.bits] * 3
    never = lambda self, gradient: False
    with mock.patch.object(certified._Exact, 'proved', never):
      weights = certified.descend(problem, start)
    self.assertTrue(problem.proved(problem.gradient(weights)))

  def test_no_more_steps_than_the_bound(self):
    problem, _ = _problem(cases.LOGISTIC, num_rows=3, regularization=0.5)
    count = 0

    def counted(self, gradient):
      nonlocal count
      count += 1
      return False

    with mock.patch.object(certified._Exact, 'proved', counted):
      certified.descend(problem, [0] * 3)
    self.assertEqual(count, problem.sufficient_steps([0] * 3))
    smooth = problem.curvature + problem.regularization
    shrink = float(1 - problem.regularization / smooth)
    away = 2 * smooth * problem.radius
    room = problem.gamma * problem.regularization
    self.assertLess(float(away) * shrink**count, float(room))

  @parameterized.product(named=cases.LOSSES, seed=(0, 1, 2))
  def test_the_radius_holds_the_minimizer(self, named, seed):
    problem, signed = _problem(named[1], 3, seed)
    weights = certified._minimizer(problem, signed)
    size = math.hypot(*(w / 2**problem.bits for w in weights))
    self.assertLess(size, problem.radius + problem.gamma)
    # The gradient at 0, for slopes of 1 and the noise as it may really be.
    noise = math.hypot(*map(float, problem.noise)) / 3
    gradient = float(problem.radius * problem.regularization)
    self.assertGreaterEqual(gradient, 1 + noise)

  def test_the_bound_does_not_depend_on_rows(self):
    """Bits are the same; rows and labels are not."""
    bounds = set()
    for seed in range(4):
      problem = certified._exact(
        _signed(5, seed),
        _numbers(cases.HINGE, 5),
        cases.HINGE,
        entropy.seeded(0, 'bound'),
      )
      bounds.add(problem.sufficient_steps([0] * 3))
    self.assertLen(bounds, 1)

  @parameterized.parameters('singular', 'infinite', 'huge')
  def test_a_failed_refinement_is_no_failure(self, kind):
    problem, signed = _problem(cases.LOGISTIC, 4, regularization=0.5)

    def solve(matrix, vector):
      if kind == 'singular':
        raise np.linalg.LinAlgError('Singular matrix')
      return np.full_like(vector, np.inf if kind == 'infinite' else 1e308)

    wrong = lambda problem, signed: [1 << problem.bits] * 3
    with (
      mock.patch.object(np.linalg, 'solve', solve),
      mock.patch.object(certified, '_proposal', wrong),
    ):
      weights = certified._minimizer(problem, signed)
    self.assertTrue(problem.proved(problem.gradient(weights)))

  def test_equal_rows_and_a_singular_hessian_are_fitted(self):
    features = np.array([[0.6, 0.8]] * 4)
    model = erm.objective.fit(
      features,
      [0, 1, 0, 1],
      config=cases.config(regularization=1e-12),
      epsilon=200,
      mode='certified-inexact',
      key=prng.key(1),
    )
    self.assertTrue(np.isfinite(model.weights).all())

  @parameterized.named_parameters(*cases.LOSSES)
  def test_a_condition_beyond_2_to_the_40_is_refused_before_rows(self, loss):
    limit = loss.curvature * 2.0**-40
    allowed, refused = (
      erm.calibrate(9000, loss=loss, num_rows=4, regularization=factor * limit)
      for factor in (1.001, 0.999)
    )
    certified.check(allowed, loss=loss)
    with self.assertRaisesRegex(ValueError, 'regularization . Delta must be'):
      certified.check(refused, loss=loss)
    unread = np.full((4, 2), np.nan)
    fit = lambda mode: erm.objective.fit(
      unread,
      None,
      config=cases.config(loss, regularization=0.999 * limit),
      epsilon=9000,
      mode=mode,
    )
    with self.assertRaisesRegex(ValueError, 'regularization . Delta must be'):
      fit('certified-inexact')
    with self.assertRaisesRegex(ValueError, 'features must be finite'):
      fit('exact-argmin')
