"""Losses against another writing of them, and against each other."""

import dataclasses

from absl.testing import parameterized
import jax
import numpy as np

from privjax import erm
from tests.erm import cases
from tests.oracles import erm as oracle

_MARGINS = np.concatenate(
  [np.linspace(-4, 4, 161) + 1e-3, [-800.0, -40.0, 40.0, 800.0]]
)


class LossesTest(parameterized.TestCase):
  @parameterized.named_parameters(*cases.LOSSES)
  def test_values_and_derivatives(self, loss):
    smoothing = loss.smoothing
    expected = [oracle.loss(loss.name, z, smoothing) for z in _MARGINS]
    found = [f(_MARGINS) for f in (loss.value, loss.first, loss.second)]
    np.testing.assert_allclose(np.transpose(found), expected, atol=2e-15)

  @parameterized.named_parameters(*cases.LOSSES)
  def test_derivatives_are_those_of_the_value(self, loss):
    first = jax.vmap(jax.grad(loss.value))(_MARGINS)
    np.testing.assert_allclose(loss.first(_MARGINS), first, atol=1e-14)
    second = jax.vmap(jax.grad(loss.first))(_MARGINS)
    np.testing.assert_allclose(loss.second(_MARGINS), second, atol=1e-14)

  @parameterized.named_parameters(*cases.LOSSES)
  def test_second_of_slope(self, loss):
    found = loss.second_of_slope(loss.first(_MARGINS))
    np.testing.assert_allclose(found, loss.second(_MARGINS), atol=1e-15)

  @parameterized.named_parameters(*cases.LOSSES)
  def test_bounds_hold_and_are_attained(self, loss):
    first, second = loss.first(_MARGINS), loss.second(_MARGINS)
    self.assertTrue(((first >= -1) & (first <= 0)).all())
    self.assertTrue(((second >= 0) & (second <= loss.curvature)).all())
    attained = max(float(loss.second(z)) for z in (0.0, 1.0))
    self.assertEqual(attained, loss.curvature)

  def test_equal_hinges_are_one_object(self):
    half = erm.losses.huber_hinge(0.5)
    self.assertIs(half, erm.losses.huber_hinge())
    self.assertIs(half, erm.losses.huber_hinge(smoothing=np.float32(0.5)))
    self.assertIs(erm.losses.huber_hinge(1), erm.losses.huber_hinge(1.0))
    self.assertEqual(erm.losses.huber_hinge(0.25).curvature, 2)

  def test_own_losses_only(self):
    for own in (cases.LOGISTIC, cases.HINGE, erm.losses.huber_hinge(1)):
      erm.losses.check_own(own)
      erm.losses.check_own(dataclasses.replace(own))
      for change in (
        dict(curvature=own.curvature / 2),
        dict(first=lambda z: -z),
        dict(name='other'),
        dict(smoothing=own.smoothing + 1),
      ):
        with self.assertRaisesRegex(ValueError, 'loss must be'):
          erm.losses.check_own(dataclasses.replace(own, **change))
    with self.assertRaisesRegex(ValueError, 'loss must be'):
      erm.losses.check_own('logistic')

  # The curvature of the last two is not finite, and 0.
  @parameterized.parameters(0, -1, float('nan'), float('inf'), 1e-310, 1e308)
  def test_bad_smoothing(self, smoothing):
    with self.assertRaisesRegex(ValueError, 'smoothing'):
      erm.losses.huber_hinge(smoothing)
