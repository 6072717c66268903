"""Tests of the shared types."""

import dataclasses
import fractions

from absl.testing import parameterized

from privjax import types

Fraction = fractions.Fraction
_EDGE = types.NeighboringRelation.ADD_REMOVE_ONE_EDGE
_ROW = types.NeighboringRelation.REPLACE_ONE_ROW


def _guarantee(**changes):
  fields = {'epsilon': Fraction(1, 2), 'relation': _EDGE, 'theorem': 'T'}
  return types.PrivacyGuarantee(**{**fields, **changes})


class PrivacyGuaranteeTest(parameterized.TestCase):
  @parameterized.parameters((_EDGE, 'edge'), (_ROW, 'row'))
  def test_unit(self, relation, unit):
    self.assertEqual(relation.unit, unit)
    self.assertEqual(_guarantee(relation=relation).unit, unit)

  def test_relations_are_known_by_name(self):
    self.assertIs(types.NeighboringRelation('add_remove_one_edge'), _EDGE)
    self.assertIs(types.NeighboringRelation('replace_one_row'), _ROW)
    self.assertLen(types.NeighboringRelation, 2)

  @parameterized.parameters(Fraction(1, 10**9), Fraction(10**400), None)
  def test_accepts_epsilon(self, epsilon):
    self.assertEqual(_guarantee(epsilon=epsilon).epsilon, epsilon)

  @parameterized.parameters(
    0.5, 1, '1/2', True, float('inf'), Fraction(0), Fraction(-1, 2)
  )
  def test_refuses_epsilon(self, epsilon):
    message = r'^epsilon must be a Fraction > 0, got '
    with self.assertRaisesRegex(ValueError, message):
      _guarantee(epsilon=epsilon)

  @parameterized.parameters(Fraction(0), Fraction(1, 10**6))
  def test_accepts_delta(self, delta):
    self.assertEqual(_guarantee(delta=delta).delta, delta)

  @parameterized.parameters(0, 0.0, 1e-6, None, Fraction(1), Fraction(-1, 2))
  def test_refuses_delta(self, delta):
    message = r'^delta must be a Fraction in \[0, 1\), got '
    with self.assertRaisesRegex(ValueError, message):
      _guarantee(delta=delta)

  def test_is_pure_by_default(self):
    self.assertEqual(_guarantee().delta, 0)

  def test_is_a_frozen_value(self):
    self.assertEqual(_guarantee(), _guarantee(epsilon=Fraction('0.5')))
    self.assertNotEqual(_guarantee(), _guarantee(relation=_ROW))
    with self.assertRaises(dataclasses.FrozenInstanceError):
      _guarantee().epsilon = Fraction(1)

  @parameterized.parameters('epsilon', 'relation', 'theorem')
  def test_needs_every_field(self, name):
    fields = {'epsilon': Fraction(1), 'relation': _EDGE, 'theorem': 'T'}
    del fields[name]
    with self.assertRaisesRegex(TypeError, name):
      types.PrivacyGuarantee(**fields)
