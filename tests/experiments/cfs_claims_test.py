"""Tests of the verdicts on published prices and differences."""

import contextlib
import io
import math

from absl.testing import parameterized
import pandas as pd

from experiments import cfs_claims

_CELL = dict(dataset='cora', protocol='borderline', rho='0.5')


def _claim(low, high=None):
  high = low if high is None else high
  return cfs_claims.Claim('App. D', 'a price', _CELL, 'price', low, high, True)


def _frame(values, arm='inert', **fields):
  rows = [
    _CELL | dict(feature_masks=arm, seed=i % 3, price=value) | fields
    for i, value in enumerate(values)
  ]
  return pd.DataFrame(rows)


class VerdictTest(parameterized.TestCase):
  @parameterized.named_parameters(
    ('at_the_quote', -0.4, -0.4, 0.05, 'reproduced'),
    ('two_errors_off', -0.4, -0.31, 0.05, 'reproduced'),
    ('more_than_two', -0.4, -0.29, 0.05, 'not reproduced'),
    ('on_the_other_side', -0.4, -0.51, 0.05, 'not reproduced'),
    # Two errors may be half of the quote, no more.
    ('wide', -0.4, -0.4, 0.101, 'inconclusive'),
    ('wide_and_far', -0.4, 0.0, 0.15, 'not reproduced'),
    ('small_quote', -0.02, -0.02, 0.0051, 'inconclusive'),
    ('zero', 0.0, 0.0, 0.025, 'reproduced'),
    ('wide_zero', 0.0, 0.0, 0.026, 'inconclusive'),
    ('far_from_zero', 0.0, 0.97, 0.02, 'not reproduced'),
  )
  def test_single_number(self, quote, mean, error, expected):
    self.assertEqual(cfs_claims.verdict(_claim(quote), mean, error), expected)

  @parameterized.named_parameters(
    ('below', 3.4, 'reproduced'),
    ('inside', 4.0, 'reproduced'),
    ('above', 4.7, 'not reproduced'),
  )
  def test_interval(self, mean, expected):
    claim = _claim(3.5, 4.5)
    self.assertEqual(cfs_claims.verdict(claim, mean, 0.06), expected)


class StandardErrorTest(parameterized.TestCase):
  def test_larger_of_targets_and_seeds(self):
    seeds = pd.Series([0, 0, 1, 1])
    within = pd.Series([0.0, 1.0, 0.0, 1.0])
    error = cfs_claims.standard_error(within, seeds, is_share=False)
    self.assertAlmostEqual(error, math.sqrt(1 / 3) / 2)
    between = pd.Series([0.0, 0.0, 1.0, 1.0])
    error = cfs_claims.standard_error(between, seeds, is_share=True)
    self.assertAlmostEqual(error, math.sqrt(1 / 2) / math.sqrt(2))

  @parameterized.parameters(-1.0, 0.0, 1.0)
  def test_equal_shares_are_not_certain(self, value):
    values = pd.Series([value] * 30)
    error = cfs_claims.standard_error(
      values, pd.Series([0] * 30), is_share=True
    )
    self.assertAlmostEqual(error, 0.05)

  def test_other_constants_are(self):
    values = pd.Series([0.25] * 4)
    error = cfs_claims.standard_error(values, values, is_share=False)
    self.assertEqual(error, 0)


class CompareTest(parameterized.TestCase):
  def test_one_line_per_arm(self):
    frame = pd.concat(
      [_frame([-0.3, -0.5] * 15), _frame([0.0] * 30, 'effective')]
    )
    lines = cfs_claims.compare(frame, [_claim(-0.4)]).to_dict('records')
    inert, effective = lines
    self.assertEqual(inert['feature_masks'], 'inert')
    self.assertAlmostEqual(inert['measured'], -0.4)
    self.assertEqual(inert['verdict'], 'reproduced')
    self.assertEqual(effective['measured'], 0)
    self.assertEqual(effective['verdict'], 'not reproduced')
    self.assertEqual(effective['paper'], '-0.4')

  def test_no_change_at_all_does_not_confirm_a_small_price(self):
    (line,) = cfs_claims.compare(_frame([0.0] * 30), [_claim(-0.07)]).to_dict(
      'records'
    )
    self.assertEqual(line['verdict'], 'inconclusive')

  @parameterized.parameters(
    (0.0, [0.0] * 30, 'reproduced'),
    (0.0, [0.0] * 29 + [1.0], 'inconclusive'),
    (0.0, [1.0] * 30, 'not reproduced'),
  )
  def test_a_quoted_zero(self, quote, values, expected):
    (line,) = cfs_claims.compare(_frame(values), [_claim(quote)]).to_dict(
      'records'
    )
    self.assertEqual(line['verdict'], expected)

  @parameterized.parameters(
    dict(dataset='citeseer'), dict(protocol='random'), dict(rho='1')
  )
  def test_other_cells_are_not_judged(self, **fields):
    frame = _frame([-0.4] * 3, **fields)
    self.assertEmpty(cfs_claims.compare(frame, [_claim(-0.4)]))

  def test_print(self):
    verdicts = cfs_claims.compare(_frame([-0.3, -0.5] * 15), [_claim(-0.4)])
    with contextlib.redirect_stdout(io.StringIO()) as out:
      cfs_claims.print_verdicts(verdicts)
    self.assertIn(
      'inert feature masks, 1 statements: 1 reproduced', out.getvalue()
    )
    self.assertIn('a price', out.getvalue())
