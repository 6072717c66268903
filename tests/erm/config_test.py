"""What a table may look like, and what is refused before anything is fitted."""

import dataclasses

from absl.testing import parameterized
import numpy as np

from privjax import erm
from tests.erm import cases

_FEATURES = np.array([[3.0, 4.0], [0.0, 0.0], [0.0, 1.0]])
_LABELS = np.array([1, 0, 0])


class UnitRowsTest(parameterized.TestCase):
  def test_rows_are_scaled_and_signed(self):
    rows = erm.unit_rows(_FEATURES, _LABELS, cases.config(row_norm=5.0))
    expected = [[0.6, 0.8], [0.0, 0.0], [0.0, -0.2]]
    np.testing.assert_allclose(rows.signed, expected, atol=1e-13)
    self.assertAlmostEqual(rows.divisor, 5)

  def test_the_intercept_is_part_of_the_norm(self):
    config = cases.config(row_norm=5.0, intercept=12.0)
    rows = erm.unit_rows(_FEATURES, _LABELS, config)
    np.testing.assert_allclose(
      rows.signed[0], np.array([3, 4, 12]) / 13, atol=1e-13
    )
    self.assertEqual(rows.dimension, 3)

  @parameterized.parameters(1e-300, 1e-3, 1.0, 7.3, 1e200, 1e300)
  def test_no_row_is_longer_than_1_by_a_rounding(self, row_norm):
    rng = np.random.default_rng(0)
    features = rng.normal(size=(2000, 7))
    features *= row_norm / np.linalg.norm(features, axis=1, keepdims=True)
    config = cases.config(row_norm=row_norm)
    rows = erm.unit_rows(features, np.ones(2000, int), config)
    # A sum in extended precision, so that the check does not round up.
    squares = (rows.signed.astype(np.longdouble) ** 2).sum(axis=1)
    self.assertLessEqual(squares.max(), 1)
    self.assertGreater(squares.min(), 1 - 1e-12)

  def test_longer_rows_are_refused_or_clipped(self):
    with self.assertRaisesRegex(ValueError, 'row_norm = 2.0, got 1 longer'):
      erm.unit_rows(_FEATURES, _LABELS, cases.config(row_norm=2.0))
    config = cases.config(row_norm=2.0, excess='clip')
    rows = erm.unit_rows(_FEATURES, _LABELS, config)
    expected = [[0.6, 0.8], [0.0, 0.0], [0.0, -0.5]]
    np.testing.assert_allclose(rows.signed, expected, atol=1e-13)

  def test_clipping_survives_any_finite_row(self):
    features = np.array([[1e308, -1e308], [5e-324, 0.0]])
    config = cases.config(excess='clip')
    rows = erm.unit_rows(features, np.array([1, 1]), config)
    np.testing.assert_allclose(rows.signed[0], [0.5**0.5, -(0.5**0.5)])

  @parameterized.parameters('raise', 'clip')
  def test_wider_floats_are_finite_in_64_bits(self, excess):
    """1e4000 is finite in extended precision, infinite in a row of the fit."""
    if np.finfo(np.longdouble).max == np.finfo(np.float64).max:
      self.skipTest('no wider float on this machine')
    features = np.array(
      [[np.longdouble('1e4000'), 0], [0.1, 0.2]], np.longdouble
    )
    with self.assertRaisesRegex(ValueError, 'features must be finite, got 1'):
      erm.unit_rows(features, [1, 0], cases.config(excess=excess))

  def test_what_compares_to_nothing_is_no_label(self):
    class Undecided:
      def __eq__(self, other):
        return self

      def __bool__(self):
        raise TypeError('boolean value is ambiguous')

    labels = np.array([1, Undecided(), None], object)
    with self.assertRaisesRegex(ValueError, 'labels must be .* got 2 others'):
      erm.unit_rows(np.zeros((3, 1)), labels, cases.config())
    labels[1:] = 0
    rows = erm.unit_rows(np.ones((3, 1)), labels, cases.config())
    self.assertEqual(np.sign(rows.signed).ravel().tolist(), [1, -1, -1])

  @parameterized.named_parameters(
    ('nan', [[np.nan, 0.0]], [1], 'features must be finite'),
    ('infinite', [[np.inf, 0.0]], [1], 'features must be finite'),
    ('no_rows', np.zeros((0, 2)), [], 'features must not be empty'),
    ('no_columns', np.zeros((2, 0)), [0, 1], 'features must not be empty'),
    ('one_axis', [1.0, 2.0], [0, 1], 'features must have shape'),
    ('text', [['a', 'b']], [1], 'features must hold real numbers'),
    ('third_label', [[1.0], [0.0]], [1, 2], 'labels must be in classes'),
    ('nan_label', [[1.0], [0.0]], [1, np.nan], 'labels must be in classes'),
    ('few_labels', [[1.0], [0.0]], [1], 'labels must have shape'),
  )
  def test_bad_table(self, features, labels, message):
    with self.assertRaisesRegex(ValueError, message):
      erm.unit_rows(np.asarray(features), np.asarray(labels), cases.config())

  @parameterized.parameters(
    dict(row_norm=None),
    dict(row_norm=0),
    dict(row_norm=float('inf')),
    dict(regularization=0),
    dict(regularization=-1.0),
    dict(intercept=0),
    dict(excess='ignore'),
    dict(classes=(1, 1)),
    dict(classes=(0, 1, 2)),
    dict(classes=None),
    dict(classes=(0, 'no')),
    dict(classes=(None, 1)),
    dict(classes=(float('nan'), 1)),
    dict(classes=((0,), (1,))),
    dict(row_norm=5e-324),
    dict(row_norm=9e-301),
    dict(row_norm=1.1e300),
    dict(intercept=1.1e300),
    dict(row_norm=9e299, intercept=9e299),
    dict(loss=dataclasses.replace(cases.LOGISTIC, curvature=1e-9)),
    dict(loss=dataclasses.replace(cases.HINGE, name='logistic')),
    dict(loss='logistic'),
  )
  def test_bad_config(self, **bad):
    with self.assertRaisesRegex(ValueError, next(iter(bad))):
      cases.config(**bad)

  def test_a_norm_bound_must_be_declared(self):
    with self.assertRaisesRegex(TypeError, 'row_norm'):
      erm.ErmConfig(loss=cases.LOGISTIC, regularization=0.1, classes=(0, 1))
