"""One fit: what it minimizes, what noise it holds, what it states."""

import decimal
import fractions
from unittest import mock

from absl.testing import parameterized
import jax
import numpy as np

from privjax import erm
from privjax import prng
from privjax import types
from privjax.mechanisms import vector_noise
from tests.erm import cases

Decimal = decimal.Decimal
Fraction = fractions.Fraction


def _recovered_noise(model, features, labels, config, rule, epsilon):
  """Returns b of the released weights, by the condition of the optimum."""
  numbers = erm.calibrate(
    epsilon,
    loss=config.loss,
    num_rows=len(features),
    regularization=config.regularization,
    calibration=rule,
  )
  rows = erm.unit_rows(features, labels, config)
  weights = model.weights * rows.divisor
  if config.intercept is not None:
    last = model.intercept * rows.divisor / config.intercept
    weights = np.append(weights, last)
  d = rows.dimension
  _, gradient, _ = cases.objective(
    config.loss,
    rows.signed,
    np.ones(rows.num_rows),
    weights,
    np.full(d, numbers.regularization),
    np.zeros(d),
  )
  return -rows.num_rows * gradient / numbers.noise_scale


class ObjectiveTest(parameterized.TestCase):
  @parameterized.product(named=cases.LOSSES, intercept=(None, 0.5))
  def test_the_non_private_limit(self, named, intercept):
    _, loss = named
    features, labels = cases.table(30)
    config = cases.config(loss, intercept=intercept, row_norm=2.0)
    model = erm.objective.fit(features, labels, config=config, epsilon=None)
    augmented = features
    if intercept is not None:
      augmented = np.c_[features, np.full(len(features), intercept)]
    # Lambda is on unit rows: in the features' units it carries the bound.
    penalty = np.full(augmented.shape[1], 0.01 * config.bound**2)
    expected = cases.minimize(loss, augmented, 2 * labels - 1, penalty)
    found = model.weights
    if intercept is not None:
      found = np.append(found, model.intercept / intercept)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-8)
    self.assertIsNone(model.guarantee.epsilon)
    self.assertFalse(model.certified)

  @parameterized.product(
    named=cases.LOSSES, rule=('paper', 'tight'), intercept=(None, 1.0)
  )
  def test_the_weights_hold_the_noise_that_was_drawn(
    self, named, rule, intercept
  ):
    features, labels = cases.table(30)
    config = cases.config(named[1], intercept=intercept)
    model = erm.objective.fit(
      features,
      labels,
      config=config,
      epsilon=2,
      calibration=rule,
      key=prng.key(5),
    )
    found = _recovered_noise(model, features, labels, config, rule, 2)
    source = vector_noise.bit_source(prng.key(5))
    drawn = vector_noise.draw(len(found), source=source).as_float64()
    np.testing.assert_allclose(found, drawn, rtol=0, atol=1e-6)

  def test_units_do_not_matter(self):
    features, labels = cases.table(30)
    fits = [
      erm.objective.fit(
        scale * features,
        labels,
        config=cases.config(row_norm=scale),
        epsilon=1,
        key=prng.key(0),
      )
      for scale in (1.0, 1000.0)
    ]
    np.testing.assert_allclose(fits[0].weights, 1000 * fits[1].weights)

  def test_operating_system_noise_is_certified_and_fresh(self):
    features, labels = cases.table(30)
    fit = lambda key: erm.objective.fit(
      features, labels, config=cases.config(), epsilon=1, key=key
    )
    first, second = fit(None), fit(None)
    self.assertTrue(first.certified)
    self.assertTrue((first.weights != second.weights).all())
    replay = fit(prng.key(1))
    self.assertFalse(replay.certified)
    np.testing.assert_array_equal(replay.weights, fit(prng.key(1)).weights)

  def test_the_guarantee(self):
    exact = erm.objective.guarantee('1/2')
    self.assertEqual(exact.epsilon, Fraction(1, 2))
    self.assertEqual(exact.delta, 0)
    self.assertIs(exact.relation, types.NeighboringRelation.REPLACE_ONE_ROW)
    self.assertIn('ASSUMES the exact minimizer', exact.theorem)
    inexact = erm.objective.guarantee('1/2', mode='certified-inexact')
    self.assertEqual(inexact.epsilon, Fraction(1, 2))
    self.assertNotIn('ASSUMES', inexact.theorem)

  @parameterized.product(
    named=cases.LOSSES, mode=erm.objective.MODES, epsilon=(1, None)
  )
  def test_degenerate_tables_are_fitted(self, named, mode, epsilon):
    ones, zeros = np.ones(3, int), np.zeros((3, 2))
    tables = {
      'all rows zero': (zeros, ones),
      'a column zero': (np.array([[1.0, 0.0]] * 3), np.array([0, 1, 0])),
      'one row': (np.array([[0.6, 0.8]]), ones[:1]),
      'one class': (np.array([[0.6, 0.8]] * 3), ones),
    }
    for name, (features, labels) in tables.items():
      with self.subTest(name):
        model = erm.objective.fit(
          features,
          labels,
          config=cases.config(named[1]),
          epsilon=epsilon,
          mode=mode,
          key=prng.key(0),
        )
        self.assertTrue(np.isfinite(model.weights).all())
        if epsilon is None and name == 'all rows zero':
          np.testing.assert_array_equal(model.weights, 0)

  @parameterized.parameters(
    0, -1, float('nan'), float('inf'), 'none', '1e-400', 10001, 10**400
  )
  def test_bad_epsilon_before_the_table_is_read(self, epsilon):
    with self.assertRaisesRegex(ValueError, 'epsilon'):
      erm.objective.fit(None, None, config=cases.config(), epsilon=epsilon)

  @parameterized.parameters('mode', 'calibration')
  def test_bad_name(self, argument):
    features, labels = cases.table(5)
    with self.assertRaisesRegex(ValueError, argument):
      erm.objective.fit(
        features,
        labels,
        config=cases.config(),
        epsilon=1,
        **{argument: 'other'},
      )

  def test_bits_do_not_depend_on_x64(self):
    features, labels = cases.table(30)
    fit = lambda: (
      erm.objective.fit(
        features, labels, config=cases.config(), epsilon=1, key=prng.key(1)
      ).weights
    )
    on = fit()
    with jax.enable_x64(False):
      off = fit()
    np.testing.assert_array_equal(on, off, strict=True)
    self.assertEqual(off.dtype, np.float64)

  def test_predictions(self):
    features, labels = cases.table(30)
    config = cases.config(classes=('no', 'yes'), intercept=1.0)
    names = np.array(['no', 'yes'])[labels]
    model = erm.objective.fit(features, names, config=config, epsilon=None)
    scores = features @ model.weights + model.intercept
    np.testing.assert_allclose(erm.decision_function(model, features), scores)
    found = erm.predict(model, features)
    np.testing.assert_array_equal(found == 'yes', scores > 0)
    self.assertGreater((found == names).mean(), 0.6)
    probabilities = erm.probabilities(model, features)
    np.testing.assert_allclose(probabilities[:, 1], 1 / (1 + np.exp(-scores)))
    np.testing.assert_allclose(probabilities.sum(axis=1), 1)
    with self.assertRaisesRegex(ValueError, 'features must have shape'):
      erm.predict(model, features[:, 1:])


class ResidualTest(parameterized.TestCase):
  @parameterized.product(
    named=cases.LOSSES, penalty=(1e-1, 1e-3, 1e-5, 1e-7), seed=(0, 1, 2)
  )
  def test_the_bound_holds_in_60_digits(self, named, penalty, seed):
    """What float64 rounds away of the gradient is part of the bound."""
    _, loss = named
    num_rows, num_features = ((1, 1), (30, 3), (200, 6))[seed]
    features, labels = cases.table(num_rows, num_features, seed)
    signed = erm.unit_rows(features, labels, cases.config(loss)).signed
    rng = prng.generator(seed, 'residual')
    linear = (seed > 0) * 3 / num_rows * rng.normal(size=num_features)
    weights, bound = erm.single.solve(
      signed, linear, loss=loss, regularization=penalty
    )
    gradient = _decimal_gradient(loss, signed, linear, penalty, weights)
    # At least this far, by the smoothness; at most, by the convexity.
    self.assertLessEqual(gradient / Decimal(penalty), Decimal(bound))
    self.assertLess(bound, 1e-9 * (1 + np.linalg.norm(weights)) / penalty)

  def test_it_is_not_shown(self):
    features, labels = cases.table(10)
    model = erm.objective.fit(
      features, labels, config=cases.config(), epsilon=1
    )
    self.assertGreater(model.residual_bound, 0)
    self.assertNotIn('residual', repr(model))

  def test_a_failure_names_public_numbers_only(self):
    """The tolerance itself depends on the noise, and through it on nothing."""
    signed = np.eye(2)
    stuck = lambda *args, **kwargs: erm.solver.Fit(np.zeros(2), 1.0, 1)
    with mock.patch.object(erm.single, 'attempt', stuck):
      for linear in (np.zeros(2), np.array([123.0, 0.0])):
        with self.assertRaises(erm.ConvergenceError) as caught:
          erm.single.solve(
            signed, linear, loss=cases.LOGISTIC, regularization=0.1
          )
        self.assertIn('above 1e-11 (1 + |linear|);', str(caught.exception))


def _decimal_gradient(loss, signed, linear, penalty, weights):
  """Returns the norm of the gradient at the weights, to about 60 digits."""
  with decimal.localcontext(prec=60):
    w = [Decimal(float(v)) for v in weights]
    total = [
      Decimal(penalty) * a + Decimal(float(b)) for a, b in zip(w, linear)
    ]
    for row in signed:
      r = [Decimal(float(v)) for v in row]
      margin = sum(a * b for a, b in zip(r, w))
      if loss is cases.LOGISTIC:
        slope = -1 / (1 + margin.exp())
      else:
        h = Decimal(loss.smoothing)
        slope = -min(max((1 + h - margin) / (2 * h), Decimal(0)), Decimal(1))
      total = [t + slope * v / len(signed) for t, v in zip(total, r)]
    return sum(t * t for t in total).sqrt()


class OutputTest(parameterized.TestCase):
  def test_noise_of_the_stated_scale_on_the_minimizer(self):
    features, labels = cases.table(30)
    config = cases.config(row_norm=2.0)
    plain = erm.objective.fit(features, labels, config=config, epsilon=None)
    noisy = erm.output.fit(
      features, labels, config=config, epsilon='1/2', key=prng.key(2)
    )
    noise = vector_noise.draw(
      4, source=vector_noise.bit_source(prng.key(2))
    ).as_float64()
    # 2 / (n Lambda epsilon), in units of unit rows.
    scale = 2 / (30 * 0.01 * 0.5)
    np.testing.assert_allclose(
      2 * (noisy.weights - plain.weights), scale * noise, atol=1e-9
    )
    self.assertEqual(noisy.guarantee.epsilon, Fraction(1, 2))
    self.assertIn('ASSUMES', noisy.guarantee.theorem)
    self.assertFalse(noisy.certified)

  @parameterized.named_parameters(*cases.LOSSES)
  def test_the_sensitivity_holds_on_neighbors(self, loss):
    rng = prng.generator(0, 'output_neighbors')
    config = cases.config(loss, regularization=0.1)
    bound = erm.output.sensitivity(30, 0.1)
    largest = 0.0
    for _ in range(20):
      features, labels = cases.table(30, seed=int(rng.integers(1000)))
      features[0] = [1, 0, 0, 0]
      other = features.copy()
      other[0] = [-1, 0, 0, 0]
      fit = lambda x, y=labels: (
        erm.objective.fit(x, y, config=config, epsilon=None).weights
      )
      largest = max(largest, np.linalg.norm(fit(features) - fit(other)))
    self.assertLess(largest, bound)
    self.assertGreater(largest, bound / 20)

  @parameterized.parameters(0, None, float('nan'), '1e-400', 10**400)
  def test_bad_epsilon(self, epsilon):
    with self.assertRaisesRegex(ValueError, 'epsilon'):
      erm.output.fit(None, None, config=cases.config(), epsilon=epsilon)
