import json

from absl.testing import parameterized
import hypothesis
from hypothesis import strategies as st
import numpy as np

from privjax.rules import rule_io
from privjax.rules import rule_set
from tests.rules import rule_set_cases

_FINITE = st.floats(allow_nan=False, allow_infinity=False, width=64)


def _list():
  return rule_set.make(
    [[0.5, -np.inf], [-np.inf, 1 / 3]],
    [[np.inf, np.inf], [0.5, 2.0]],
    [1, -1],
    names=('age: > 45', 'dose'),
    default=-1,
    ordered=True,
    probability=[0.75, 0.125],
    default_probability=0.1,
  )


@st.composite
def _rule_sets(draw):
  num_rules = draw(st.integers(0, 3))
  lower, upper = np.zeros((num_rules, 2)), np.zeros((num_rules, 2))
  for place in np.ndindex(lower.shape):
    low, high = sorted(draw(st.lists(_FINITE, min_size=2, max_size=2)))
    lower[place] = draw(st.sampled_from([low, -np.inf]))
    upper[place] = draw(st.sampled_from([high, np.inf]))
    if low == high:
      upper[place] = np.inf
  unit = st.floats(0, 1)
  default_probability = draw(unit)
  return rule_set.make(
    lower,
    upper,
    draw(
      st.lists(st.sampled_from([-1, 1]), min_size=num_rules, max_size=num_rules)
    ),
    names=('a', 'ü "b"'),
    default=1 if default_probability >= 0.5 else -1,
    ordered=False,
    probability=draw(st.lists(unit, min_size=num_rules, max_size=num_rules)),
    weight=draw(
      st.lists(st.floats(0, 1e300), min_size=num_rules, max_size=num_rules)
    ),
    default_probability=default_probability,
  )


class JsonTest(parameterized.TestCase):
  @hypothesis.given(_rule_sets())
  def test_round_trip_is_exact(self, rules):
    again = rule_io.from_json(rule_io.to_json(rules))
    for name in (
      'lower',
      'upper',
      'consequent',
      'probability',
      'weight',
      'default',
      'default_probability',
    ):
      before, after = getattr(rules, name), getattr(again, name)
      self.assertEqual(before.dtype, after.dtype)
      self.assertEqual(before.shape, after.shape)
      self.assertEqual(before.tobytes(), after.tobytes(), name)
    self.assertEqual((again.names, again.ordered), (rules.names, rules.ordered))

  def test_a_list_survives(self):
    again = rule_io.from_json(rule_io.to_json(_list()))
    self.assertTrue(again.ordered)
    self.assertEqual(rule_io.to_json(again), rule_io.to_json(_list()))

  def test_the_schema_is_stable(self):
    self.assertEqual(
      json.loads(rule_io.to_json(rule_set.take(_list(), [1]))),
      {
        'format': 'privjax.rule_set',
        'version': 1,
        'ordered': True,
        'columns': ['age: > 45', 'dose'],
        'rules': [
          {
            'conditions': [
              {'column': 'age: > 45', 'above': None, 'at_most': 0.5},
              {'column': 'dose', 'above': 1 / 3, 'at_most': 2.0},
            ],
            'class': -1,
            'probability': 0.125,
            'weight': 1.0,
          }
        ],
        'default': {'class': -1, 'probability': 0.1},
      },
    )

  @parameterized.parameters(
    (('"version": 1', '"version": 2'), 'version'),
    (('"version": 1', '"version": true'), 'version'),
    (('privjax.rule_set', 'other'), 'format'),
    (('"ordered"', '"sorted"'), 'fields'),
    (('"above"', '"over"'), 'fields'),
    (('"column": "dose"', '"column": "dosis"'), 'column'),
    (('"column": "dose"', '"column": "age: > 45"'), 'twice'),
    (('"weight": 1.0', '"weight": NaN'), 'finite'),
    (('"weight": 1.0', '"weight": Infinity'), 'finite'),
    (('"weight": 1.0', '"weight": "1"'), 'number'),
    (('"weight": 1.0', '"weight": true'), 'number'),
    (('"class": 1,', '"class": 1.0,'), 'class'),
    (('"class": 1,', '"class": 0,'), 'class'),
    (('"class": 1,', '"class": -1,'), 'consequent'),
    (('"at_most": 2.0', '"at_most": 0.1'), 'lower'),
    (('"ordered": true', '"ordered": 1'), 'ordered'),
    # Read as inf, a threshold would be no bound.
    (('"at_most": 2.0', '"at_most": 1e400'), 'finite'),
    (('"above": 0.5', '"above": -1e400'), 'finite'),
    (('"weight": 1.0', f'"weight": 1{"0" * 400}'), 'finite'),
    (('"ordered": true', '"ordered": true, "ordered": false'), 'distinct'),
  )
  def test_refuses(self, change, message):
    text = rule_io.to_json(_list())
    self.assertIn(change[0], text)
    with self.assertRaisesRegex(ValueError, message):
      rule_io.from_json(text.replace(*change))

  @parameterized.parameters((None,), (3,), ({},), ('',))
  def test_refuses_conditions_that_are_no_list(self, conditions):
    document = json.loads(rule_io.to_json(_list()))
    document['rules'][0]['conditions'] = conditions
    with self.assertRaisesRegex(ValueError, 'conditions of rule 0'):
      rule_io.from_json(json.dumps(document))

  @parameterized.parameters('[]', '{}', 'null', 'x')
  def test_refuses_other_json(self, text):
    with self.assertRaises(ValueError):
      rule_io.from_json(text)


class TextTest(parameterized.TestCase):
  def test_a_list(self):
    self.assertEqual(
      rule_io.to_text(
        _list(), indicators=True, classes=('no', 'yes'), coverage=[1, 2, 3]
      ).splitlines(),
      [
        'IF age: > 45 THEN yes (P(yes) = 0.750, covers 1)',
        'ELSE IF not age: > 45 AND 0.333333 < dose <= 2 THEN no '
        '(P(yes) = 0.125, covers 2)',
        'ELSE no (P(yes) = 0.100, covers 3)',
      ],
    )

  def test_a_set(self):
    rules, _ = rule_set_cases.voting_set()
    lines = rule_io.to_text(rules).splitlines()
    self.assertEqual(lines[1], 'IF b > 0.5 THEN -1 (P(+1) = 0.000, weight 3)')
    self.assertEqual(lines[3], 'NO MATCH OR A TIED VOTE: +1 (P(+1) = 1.000)')

  def test_no_rules_and_no_conditions(self):
    empty = rule_set.take(_list(), [])
    self.assertEqual(rule_io.to_text(empty), 'ALWAYS -1 (P(+1) = 0.100)')
    true = rule_set.make(
      [[-np.inf]], [[np.inf]], [1], names=('a',), default=1, ordered=True
    )
    self.assertEqual(rule_io.conditions(true), ['TRUE'])

  def test_a_frame(self):
    frame = rule_io.to_frame(_list(), indicators=True, coverage=[1, 2, 3])
    self.assertEqual(
      list(frame.columns),
      ['condition', 'consequent', 'probability', 'weight', 'coverage'],
    )
    self.assertEqual(frame.condition.tolist()[::2], ['age: > 45', 'DEFAULT'])
    self.assertEqual(frame.consequent.tolist(), [1, -1, -1])
    self.assertEqual(frame.probability.tolist(), [0.75, 0.125, 0.1])
    self.assertEqual(frame.weight.isna().tolist(), [False, False, True])
    self.assertEqual(frame.coverage.tolist(), [1, 2, 3])
    self.assertNotIn('coverage', rule_io.to_frame(_list()).columns)

  def test_refuses_coverage_of_another_length(self):
    with self.assertRaisesRegex(ValueError, 'coverage'):
      rule_io.to_text(_list(), coverage=[1, 2])
