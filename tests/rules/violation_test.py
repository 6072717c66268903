"""Tests of alpha-violation and pruning, against slow loops."""

import decimal
import fractions
import math

from absl.testing import parameterized
import numpy as np

from privjax.rules import rule_set
from privjax.rules import sensitive
from privjax.rules import violation
from tests.oracles import rules_attack as oracle
from tests.rules import attack_cases

_INF = np.inf
_STATUS = violation.Status


def _values(statuses):
  return [status.value for status in statuses]


def _stub(log_ratios, coverage=None):
  """Returns as many rules as log ratios, and scores that hold these."""
  num_rules = len(log_ratios)
  rules = rule_set.make(
    np.full((num_rules, 3), -_INF),
    np.arange(num_rules)[:, None] + np.ones((num_rules, 3)),
    np.ones(num_rules, int),
    names=('P', 'S=0', 'S=1'),
    default=-1,
    ordered=False,
  )
  ones = np.ones(num_rules, np.int64)
  scores = violation.Scores(
    s_free=np.zeros(num_rules, bool),
    joint=ones,
    conditioned=ones,
    in_set=ones,
    num_rows=1,
    coverage=ones if coverage is None else np.array(coverage),
    log_ratio=np.array(log_ratios, float),
  )
  return rules, scores


class ScoreTest(parameterized.TestCase):
  def test_equals_the_oracle(self):
    seen = set()
    for rules, x, labels in attack_cases.CASES:
      scores = violation.score(rules, attack_cases.SCORE, x, labels)
      status = _values(violation.statuses(scores, alpha=0.5))
      for rule in range(rules.num_rules):
        exact = oracle.ratio(rules, rule, attack_cases.SCORE, x, labels)
        self.assertEqual(status[rule], oracle.status(exact, 0.5))
        seen.add((rules.ordered, status[rule]))
        if isinstance(exact, fractions.Fraction):
          self.assertEqual(
            scores.log_ratio[rule] == -_INF, exact == 0, (rule, exact)
          )
          if exact:
            np.testing.assert_allclose(
              scores.log_ratio[rule], math.log(exact), rtol=1e-13, atol=1e-15
            )
    # Every status occurs, in sets and in lists.
    self.assertLen(seen, 8)

  def test_eight_rows(self):
    rules, attribute, x, labels = attack_cases.eight_rows()
    scores = violation.score(rules, attribute, x, labels)
    self.assertEqual(scores.joint.tolist(), [1])
    self.assertEqual(scores.conditioned.tolist(), [1])
    self.assertEqual(scores.in_set.tolist(), [4])
    self.assertEqual(scores.num_rows, 8)
    self.assertEqual(scores.coverage.tolist(), [1])
    for alpha, value in (
      (0.5, 'violates'),
      (math.log(2), 'violates'),
      (math.nextafter(math.log(2), 1), 'keeps'),
      (1.0, 'keeps'),
    ):
      self.assertEqual(
        _values(violation.statuses(scores, alpha=alpha)), [value], alpha
      )

  def test_relabelling_levels_changes_nothing(self):
    for rules, x, labels in attack_cases.CASES:
      scores = violation.score(rules, attack_cases.SCORE, x, labels)
      other = sensitive.one_hot(('S=c', 'S=a', 'S=b'))
      # The same columns, in the order of another numbering.
      permuted = sensitive.SensitiveAttribute(
        columns=other.columns, levels=other.levels[[2, 0, 1]]
      )
      again = violation.score(rules, permuted, x, labels)
      for one, two in zip(scores, again):
        np.testing.assert_array_equal(one, two)

  def test_later_rules_see_the_rows_that_are_left(self):
    _, attribute, x, labels = attack_cases.eight_rows()
    bounds = dict(names=('P', 'S=0', 'S=1'), default=-1, ordered=True)
    # First all of P = 1, S = 1; then S = 1: of its rows with f = 1 only the
    # row with P = 0 and the row with P = 1, S = 0 are left.
    rules = rule_set.make(
      [[0.5, -_INF, 0.5], [-_INF, -_INF, 0.5]], [[_INF] * 3] * 2, [1, 1],
      **bounds,
    )  # fmt: skip
    scores = violation.score(rules, attribute, x, labels)
    self.assertEqual(scores.joint.tolist(), [3, 1])
    self.assertEqual(scores.conditioned.tolist(), [4, 2])
    # The prior is that of all rows, in a list as well.
    self.assertEqual(scores.in_set.tolist(), [4, 4])
    self.assertEqual(scores.coverage.tolist(), [3, 1])

  def test_a_condition_that_excludes_no_level_is_s_free(self):
    _, attribute, x, labels = attack_cases.eight_rows()
    rules = rule_set.make(
      [[-_INF, -_INF, -0.5]], [[_INF, _INF, 1.0]], [1],
      names=('P', 'S=0', 'S=1'), default=-1, ordered=False,
    )  # fmt: skip
    scores = violation.score(rules, attribute, x, labels)
    self.assertEqual(_values(violation.statuses(scores, alpha=0)), ['s_free'])

  @parameterized.named_parameters(
    ('no_row_of_the_class', [[0.5, -_INF, 0.5]], [[_INF] * 3], -1),
    ('no_row_of_the_public_part', [[1.5, -_INF, 0.5]], [[_INF] * 3], 1),
    ('no_admitted_level', [[-_INF, 0.5, 0.5]], [[_INF] * 3], 1),
  )
  def test_undefined(self, lower, upper, consequent):
    _, attribute, x, labels = attack_cases.eight_rows()
    rules = rule_set.make(
      lower, upper, [consequent],
      names=('P', 'S=0', 'S=1'), default=-1, ordered=False,
    )  # fmt: skip
    scores = violation.score(rules, attribute, x, labels)
    self.assertTrue(math.isnan(scores.log_ratio[0]))
    for alpha in (0, 0.5, 1e9):
      self.assertEqual(
        violation.statuses(scores, alpha=alpha), (_STATUS.UNDEFINED,)
      )
    pruned = violation.prune(rules, scores, alpha=0, privacy_rate=0)
    self.assertTrue(pruned.kept.all())

  def test_a_level_unseen_in_training(self):
    _, attribute, x, labels = attack_cases.eight_rows()
    rules, _, _, _ = attack_cases.eight_rows()
    unseen = x[x[:, 2] == 0], labels[x[:, 2] == 0]
    scores = violation.score(rules, attribute, *unseen)
    self.assertEqual(
      violation.statuses(scores, alpha=0.1), (_STATUS.UNDEFINED,)
    )

  def test_a_zero_numerator_violates_every_alpha(self):
    _, attribute, x, labels = attack_cases.eight_rows()
    rules = rule_set.make(
      [[-_INF, 0.5, -_INF]], [[0.5, _INF, _INF]], [1],
      names=('P', 'S=0', 'S=1'), default=-1, ordered=False,
    )  # fmt: skip
    scores = violation.score(rules, attribute, x, labels)
    self.assertEqual(scores.log_ratio.tolist(), [-_INF])
    for alpha in (0, 2, 1e300):
      self.assertEqual(
        violation.statuses(scores, alpha=alpha), (_STATUS.VIOLATES,)
      )

  def test_a_ratio_of_one_violates_alpha_zero_alone(self):
    rules, scores = _stub([0.0])
    del rules
    self.assertEqual(violation.statuses(scores, alpha=0), (_STATUS.VIOLATES,))
    self.assertEqual(violation.statuses(scores, alpha=5e-324), (_STATUS.KEEPS,))

  def test_logs_of_inverse_ratios_are_opposite(self):
    for above, below in ((3, 1), (10**9 + 1, 10**9), (7, 5)):
      self.assertEqual(
        violation._log(above, below), -violation._log(below, above)
      )
    self.assertEqual(violation._log(3, 1), math.log(3))

  def test_empty_rule_set(self):
    _, attribute, x, labels = attack_cases.eight_rows()
    empty = rule_set.make(
      [], [], [], names=('P', 'S=0', 'S=1'), default=1, ordered=False
    )
    scores = violation.score(empty, attribute, x, labels)
    self.assertEqual(violation.statuses(scores, alpha=1), ())
    pruned = violation.prune(empty, scores, alpha=1, privacy_rate=0.5)
    self.assertEqual(pruned.rules.num_rules, 0)


class PruneTest(parameterized.TestCase):
  def test_keeps_the_floor_of_the_violating(self):
    rules, scores = _stub([math.nan, 2.0, -1.0, 0.2, -_INF, 1.5, 0.7])
    for rate, kept in (
      (0, [0, 3]),
      (0.19, [0, 3]),
      (0.2, [0, 3, 6]),
      (0.5, [0, 2, 3, 6]),
      ('3/5', [0, 2, 3, 5, 6]),
      (0.99, [0, 1, 2, 3, 5, 6]),
      (1, [0, 1, 2, 3, 4, 5, 6]),
    ):
      pruned = violation.prune(rules, scores, alpha=0.5, privacy_rate=rate)
      self.assertEqual(np.flatnonzero(pruned.kept).tolist(), kept, rate)
      # The upper bounds of the stub number the rules.
      self.assertEqual((pruned.rules.upper[:, 0] - 1).tolist(), kept)
      self.assertLen(pruned.statuses, 7)

  def test_a_rate_is_the_decimal_that_was_written(self):
    rules, scores = _stub([1.0] * 100)
    self.assertLess(0.29 * 100, 29)
    pruned = violation.prune(rules, scores, alpha=0.5, privacy_rate=0.29)
    self.assertEqual(pruned.rules.num_rules, 29)
    single = violation.prune(
      rules, scores, alpha=0.5, privacy_rate=np.float32(0.29)
    )
    self.assertEqual(single.rules.num_rules, 29)

  @parameterized.parameters(
    ('least_violating', [0, 2]),
    ('coverage', [3, 1]),
    ('position', [0, 1]),
  )
  def test_orders(self, order, kept):
    rules, scores = _stub([1.0, -3.0, -1.0, 2.0], coverage=[1, 5, 4, 9])
    pruned = violation.prune(
      rules, scores, alpha=0.5, privacy_rate=0.5, order=order
    )
    self.assertEqual(np.flatnonzero(pruned.kept).tolist(), sorted(kept))

  def test_random_order_is_a_seeded_uniform_choice(self):
    rules, scores = _stub([1.0, 0.1, -3.0, -1.0, 2.0])
    seen = set()
    for seed in range(60):
      kept = violation.prune(
        rules, scores, alpha=0.5, privacy_rate=0.5, order='random', seed=seed
      ).kept
      again = violation.prune(
        rules, scores, alpha=0.5, privacy_rate=0.5, order='random', seed=seed
      ).kept
      np.testing.assert_array_equal(kept, again)
      self.assertTrue(kept[1])
      self.assertEqual(kept.sum(), 3)
      seen.add(tuple(kept.tolist()))
    self.assertLen(seen, 6)

  def test_the_control_drops_any_rule(self):
    rules, _ = _stub([1.0, 0.1, -3.0, -1.0])
    left = [
      (violation.drop_at_random(rules, 3, seed=seed).upper[0, 0] - 1)
      for seed in range(60)
    ]
    self.assertEqual(set(left), {0, 1, 2, 3})
    for number in range(5):
      dropped = violation.drop_at_random(rules, number, seed=0)
      self.assertEqual(dropped.num_rules, 4 - number)
      self.assertTrue(np.all(np.diff(dropped.upper[:, 0]) > 0))

  def test_the_default_and_the_order_stay(self):
    for rules, x, labels in attack_cases.CASES:
      scores = violation.score(rules, attack_cases.SCORE, x, labels)
      pruned = violation.prune(rules, scores, alpha=0.3, privacy_rate=0).rules
      self.assertEqual(pruned.default, rules.default)
      self.assertEqual(pruned.ordered, rules.ordered)

  def test_at_rate_zero_a_set_violates_no_more_and_a_list_may(self):
    violates = {False: 0, True: 0}
    for rules, x, labels in attack_cases.CASES:
      scores = violation.score(rules, attack_cases.SCORE, x, labels)
      pruned = violation.prune(rules, scores, alpha=0.5, privacy_rate=0).rules
      again = violation.score(pruned, attack_cases.SCORE, x, labels)
      status = violation.statuses(again, alpha=0.5)
      violates[rules.ordered] += status.count(_STATUS.VIOLATES)
    self.assertEqual(violates[False], 0)
    self.assertGreater(violates[True], 0)


class BadInputTest(parameterized.TestCase):
  @parameterized.parameters(-0.1, -1, math.nan, _INF, -_INF, 'x')
  def test_alpha(self, alpha):
    _, scores = _stub([1.0])
    with self.assertRaisesRegex(ValueError, 'alpha'):
      violation.statuses(scores, alpha=alpha)

  @parameterized.parameters(
    -0.1, 1.1, math.nan, _INF, '2', 'half', None, True, decimal.Decimal('inf')
  )
  def test_privacy_rate(self, rate):
    rules, scores = _stub([1.0])
    with self.assertRaisesRegex(ValueError, 'privacy_rate'):
      violation.prune(rules, scores, alpha=1, privacy_rate=rate)

  def test_order_and_seed(self):
    rules, scores = _stub([1.0])
    with self.assertRaisesRegex(ValueError, 'order'):
      violation.prune(rules, scores, alpha=1, privacy_rate=1, order='worst')
    with self.assertRaisesRegex(ValueError, 'seed'):
      violation.prune(rules, scores, alpha=1, privacy_rate=1, order='random')
    with self.assertRaisesRegex(ValueError, 'seed'):
      violation.prune(rules, scores, alpha=1, privacy_rate=1, seed=3)

  def test_scores_of_other_rules(self):
    rules, _ = _stub([1.0, 2.0])
    _, scores = _stub([1.0])
    with self.assertRaisesRegex(ValueError, 'scores'):
      violation.prune(rules, scores, alpha=1, privacy_rate=1)

  @parameterized.parameters(-1, 3, 1.0)
  def test_num_dropped(self, number):
    rules, _ = _stub([1.0, 2.0])
    with self.assertRaisesRegex(ValueError, 'num_dropped'):
      violation.drop_at_random(rules, number, seed=0)

  def test_rows_and_labels(self):
    rules, attribute, x, labels = attack_cases.eight_rows()
    with self.assertRaisesRegex(ValueError, "columns .'S=2'. of the sensitive"):
      violation.score(rules, sensitive.one_hot(('S=0', 'S=2')), x, labels)
    with self.assertRaisesRegex(ValueError, 'labels'):
      violation.score(rules, attribute, x, labels[:-1])
    with self.assertRaisesRegex(ValueError, 'labels'):
      violation.score(rules, attribute, x, (labels + 1) // 2)
    with self.assertRaisesRegex(ValueError, '1 rows with no level'):
      x[0, 1:] = 1
      violation.score(rules, attribute, x, labels)
    with self.assertRaisesRegex(ValueError, 'must hold a row'):
      violation.score(rules, attribute, x[:0], labels[:0])
