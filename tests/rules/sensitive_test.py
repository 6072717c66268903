"""Tests of the sensitive attribute's part of rules."""

from absl.testing import parameterized
import numpy as np

from privjax.rules import rule_set
from privjax.rules import sensitive
from tests.oracles import rules_attack as oracle
from tests.rules import attack_cases

_SCORE = attack_cases.SCORE
_NAMES = attack_cases.NAMES


class PartsTest(parameterized.TestCase):
  def test_equal_the_oracle(self):
    for rules, x, _ in attack_cases.CASES:
      admits = sensitive.admitted(rules, _SCORE)
      public = sensitive.public_matches(rules, _SCORE, x)
      _, columns = oracle.split(rules, _SCORE)
      for rule in range(rules.num_rules):
        self.assertEqual(
          set(np.flatnonzero(admits[rule])),
          oracle.admitted_set(rules, rule, _SCORE),
        )
        for row in range(len(x)):
          self.assertEqual(
            public[row, rule], oracle.meets(rules, rule, x[row], columns)
          )

  def test_a_rule_applies_where_both_parts_do(self):
    for rules, x, _ in attack_cases.CASES:
      codes = sensitive.codes(_SCORE, _NAMES, x)
      np.testing.assert_array_equal(
        rule_set.matches(rules, x),
        sensitive.public_matches(rules, _SCORE, x)
        & sensitive.admitted(rules, _SCORE)[:, codes].T,
      )

  def test_levels_need_not_be_one_hot(self):
    # Two columns of thresholds: low, medium and high are 00, 10 and 11.
    attribute = sensitive.SensitiveAttribute(
      columns=('> low', '> medium'),
      levels=np.array([[0.0, 0], [1, 0], [1, 1]]),
    )
    rules = rule_set.make(
      [[0.5, -np.inf]], [[np.inf, 0.5]], [1],
      names=('> low', '> medium'), default=1, ordered=False,
    )  # fmt: skip
    admits = sensitive.admitted(rules, attribute)
    self.assertEqual(admits.tolist(), [[False, True, False]])
    codes = sensitive.codes(attribute, rules.names, attribute.levels[[2, 0]])
    self.assertEqual(codes.tolist(), [2, 0])

  def test_levels_are_a_copy_of_any_sequence(self):
    levels = [[0, 1], [1, 0]]
    attribute = sensitive.SensitiveAttribute(columns=('a', 'b'), levels=levels)
    codes = sensitive.codes(attribute, ('a', 'b'), np.eye(2))
    self.assertEqual(codes.tolist(), [1, 0])
    given = np.eye(2)
    attribute = sensitive.SensitiveAttribute(columns=('a', 'b'), levels=given)
    given[:] = 7
    self.assertEqual(attribute.levels.tolist(), [[1, 0], [0, 1]])

  def test_with_level_copies(self):
    x = attack_cases.CASES[1][1]
    before = x.copy()
    for level in range(3):
      moved = sensitive.with_level(_SCORE, _NAMES, x, level)
      self.assertEqual(set(sensitive.codes(_SCORE, _NAMES, moved)), {level})
      np.testing.assert_array_equal(moved[:, [1, 3]], x[:, [1, 3]])
    np.testing.assert_array_equal(x, before)


class BadInputTest(parameterized.TestCase):
  @parameterized.named_parameters(
    ('none', (), np.zeros((2, 0)), 'columns'),
    ('twice', ('a', 'a'), np.eye(2), 'columns'),
    ('shape', ('a', 'b'), np.eye(3), 'levels'),
    ('one_level', ('a',), np.ones((1, 1)), 'levels'),
    ('equal_levels', ('a', 'b'), np.ones((2, 2)), 'levels'),
    ('nan', ('a', 'b'), np.full((2, 2), np.nan), 'levels'),
  )
  def test_attribute(self, columns, levels, name):
    with self.assertRaisesRegex(ValueError, name):
      sensitive.SensitiveAttribute(columns=columns, levels=levels)

  def test_unknown_column(self):
    other = sensitive.one_hot(('S=a', 'S=d'))
    with self.assertRaisesRegex(ValueError, "columns .'S=d'. of the sensitive"):
      sensitive.column_index(other, _NAMES)

  def test_rows_without_a_level(self):
    x = attack_cases.CASES[1][1].copy()
    x[0, [0, 2, 4]] = 0
    with self.assertRaisesRegex(ValueError, '1 rows with no level'):
      sensitive.codes(_SCORE, _NAMES, x)
    with self.assertRaisesRegex(ValueError, 'x must have shape'):
      sensitive.codes(_SCORE, _NAMES, x[:, :4])

  @parameterized.parameters(-1, 3)
  def test_level(self, level):
    with self.assertRaisesRegex(ValueError, 'level'):
      sensitive.with_level(_SCORE, _NAMES, np.zeros((1, 5)), level)
