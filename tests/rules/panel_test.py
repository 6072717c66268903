"""Tests of the page about rules."""

import math
import re
from xml.etree import ElementTree

from absl.testing import parameterized
import numpy as np

from privjax.rules import panel
from privjax.rules import rule_set
from privjax.rules import sensitive
from privjax.rules import stages
from privjax.rules import violation
from tests.rules import attack_cases

_INF = np.inf
HOSTILE = '<script src="https://evil.example/x.js">alert(\'1\')</script>&amp;'
_NAMES = ('P', 'S=0', 'S=1')
_S = np.array([1, 1, 1, 0, 1, 0, 0, 0])
_X = np.stack([np.array([1, 1, 1, 1, 0, 0, 0, 0]), 1 - _S, _S], axis=1)
_LABELS = np.array([1, 1, 1, 1, 1, -1, -1, -1])


def _case(ordered, names=_NAMES):
  """Returns rules of every status over eight rows, as in `html_panel`.

  P and S=1; not P and S=0; P; a rule whose public part never holds.
  """
  never = 5.0
  rules = rule_set.make(
    [[0.5, -_INF, 0.5], [-_INF, 0.5, -_INF], [0.5] + [-_INF] * 2]
    + [[never, -_INF, 0.5]],
    [[_INF] * 3, [0.5, _INF, _INF], [_INF] * 3, [_INF] * 3],
    [1, -1, 1, 1],
    names=names,
    default=-1,
    ordered=ordered,
    probability=[0.875, 0.125, 0.75, 0.5625],
    weight=[3, 2.5, 1, 1],
    default_probability=0.25,
  )
  attribute = sensitive.one_hot(names[1:])
  scores = violation.score(rules, attribute, _X, _LABELS)
  return rules, attribute, scores, rule_set.coverage(rules, _X)


def _html(case, *, alpha=0.5, epsilon='1/2', **arguments):
  rules, attribute, scores, coverage = case
  return panel.html_panel(
    rules,
    attribute,
    scores,
    coverage=coverage,
    alpha=alpha,
    epsilon=epsilon,
    **arguments,
  )


def _parsed(page):
  """Parses the page as XML, stricter than any browser."""
  head, _, rest = page.partition('\n')
  assert head == '<!DOCTYPE html>'
  return ElementTree.fromstring(rest)


def _tables(page):
  """The cells of every table, as a reader sees them."""
  return [
    [[''.join(cell.itertext()) for cell in row] for row in table.iter('tr')]
    for table in _parsed(page).iter('table')
  ]


def _words(page):
  body = _parsed(page).find('body')
  return re.sub(r'\s+', ' ', ''.join(body.itertext()))


class RulesTest(parameterized.TestCase):
  def test_a_list(self):
    page = _html(_case(ordered=True), kept=[False, True, True, True])
    # Rule 3 gets what rule 1 leaves of P; rule 2 conditions on label -1.
    self.assertEqual(
      _tables(page)[-1],
      [
        ['', 'rule', 'class', 'P(+1)', 'decides', 'levels in A']
        + ['in A | public part, class', 'in A', 'score', 'status', 'pruning'],
        ['1', 'P > 0.5 AND S=1 > 0.5', '+1', '0.875', '3', '1 of 2']
        + ['3 / 4', '4 / 8', '+0.4055', 'keeps', 'pruned'],
        ['2', 'P <= 0.5 AND S=0 > 0.5', '-1', '0.125', '3', '1 of 2']
        + ['3 / 3', '4 / 8', '+0.6931', 'violates', 'kept'],
        ['3', 'P > 0.5', '+1', '0.750', '1', '2 of 2']
        + ['1 / 1', '8 / 8', '0', 'S-free', 'kept'],
        ['4', 'P > 5 AND S=1 > 0.5', '+1', '0.562', '0', '1 of 2']
        + ['0 / 0', '4 / 8', '-', 'undefined', 'kept'],
        ['', 'otherwise', '-1', '0.250', '1'] + ['-'] * 6,
      ],
    )
    self.assertIn('Rule list: the first rule', _words(page))
    self.assertIn('4 rules, 1 pruned, over 8 rows', _words(page))
    self.assertIn(
      'At alpha 0.5: 1 S-free, 1 keeps, 1 violates, 1 undefined.', _words(page)
    )

  def test_a_set(self):
    page = _html(_case(ordered=False), classes=('no', 'yes'), indicators=True)
    head, first, _, third, _, last = _tables(page)[-1]
    self.assertEqual(head[2:6], ['class', 'P(yes)', 'votes', 'covers'])
    self.assertEqual(first[1:6], ['P AND S=1', 'yes', '0.875', '3', '3'])
    self.assertEqual(third[4:6], ['1', '4'])
    self.assertEqual(last[1:6], [last[1], 'no', '0.250', '-', '1'])
    self.assertIn('tied vote', last[1])
    self.assertIn('Rule set: the rules that apply vote', _words(page))
    self.assertIn('4 rules, 0 pruned', _words(page))

  def test_every_count_of_random_cases(self):
    for rules, x, labels in attack_cases.CASES:
      scores = violation.score(rules, attack_cases.SCORE, x, labels)
      coverage = rule_set.coverage(rules, x)
      page = _html((rules, attack_cases.SCORE, scores, coverage))
      rows = _tables(page)[-1][1:]
      self.assertLen(rows, rules.num_rules + 1)
      column = 4 if rules.ordered else 5
      self.assertEqual([row[column] for row in rows], list(map(str, coverage)))
      statuses = violation.statuses(scores, alpha=0.5)
      for rule, row in enumerate(rows[:-1]):
        text = f'{scores.joint[rule]} / {scores.conditioned[rule]}'
        self.assertEqual(row[-5], text)
        self.assertEqual(row[-4], f'{scores.in_set[rule]} / {len(x)}')
        self.assertEqual(
          row[-2].lower().replace('-', '_'), statuses[rule].value
        )
        if math.isinf(scores.log_ratio[rule]):
          self.assertEqual(row[-3], '-inf')

  def test_the_status_is_that_of_the_unrounded_score(self):
    case = _case(ordered=True)
    for alpha, status in (
      (math.log(2), 'violates'),
      (math.nextafter(math.log(2), 1), 'keeps'),
    ):
      page = _html(case, alpha=alpha)
      self.assertEqual(_tables(page)[-1][2][-2], status)
      self.assertIn(f'At alpha {alpha}:', _words(page))

  def test_what_was_pruned_is_struck_out(self):
    page = _html(_case(ordered=True), kept=[True, False, True, False])
    struck = [element.text for element in _parsed(page).iter('s')]
    self.assertEqual(struck, ['P <= 0.5 AND S=0 > 0.5', 'P > 5 AND S=1 > 0.5'])

  def test_a_pruning(self):
    rules, _, scores, _ = case = _case(ordered=True)
    pruned = violation.prune(rules, scores, alpha=0.5, privacy_rate=0)
    rows = _tables(_html(case, kept=pruned.kept))[-1][1:-1]
    kept = ['kept', 'pruned', 'kept', 'kept']
    self.assertEqual([row[-1] for row in rows], kept)

  def test_bars_are_shares_of_the_rows(self):
    page = _html(_case(ordered=False))
    widths = [e.attrib['style'] for e in _parsed(page).iter('span')]
    wanted = ['7.5', '7.5', '10.0', '0.0', '2.5']  # Of 20.
    self.assertEqual(widths, [f'width:{width}mm' for width in wanted])

  @parameterized.parameters(False, True)
  def test_no_rules(self, ordered):
    rules = rule_set.make(
      [], [], [], names=_NAMES, default=1, ordered=ordered,
      default_probability=0.625,
    )  # fmt: skip
    attribute = sensitive.one_hot(_NAMES[1:])
    scores = violation.score(rules, attribute, _X, _LABELS)
    page = _html((rules, attribute, scores, rule_set.coverage(rules, _X)))
    self.assertLen(_tables(page)[-1], 2)
    self.assertEqual(_tables(page)[-1][1][2:4], ['+1', '0.625'])
    self.assertIn('8', _tables(page)[-1][1])
    self.assertIn('0 rules, 0 pruned, over 8 rows', _words(page))


class LabelsTest(parameterized.TestCase):
  @parameterized.parameters(('1/2', 'dp(1/2)'), (5, 'dp(5)'), (None, None))
  def test_every_stage(self, epsilon, label):
    page = _html(_case(ordered=True), epsilon=epsilon)
    names, labels = _tables(page)[0]
    shown = dict(zip(names, labels))
    self.assertEqual(shown.pop('this page'), stages.NOT_COVERED)
    self.assertEqual(shown, stages.pipeline(epsilon))
    self.assertEqual(shown['classifier'], label or stages.NOT_COVERED)

  def test_not_for_release(self):
    first = _parsed(_html(_case(ordered=False))).find('body').find('p')
    text = ''.join(first.itertext())
    self.assertStartsWith(text, 'NOT COVERED, not for release.')

  def test_figures(self):
    figures = {
      'before': panel.Figures(0.9375, 0.75, 0.625, 0.5),
      'random pruning': panel.Figures(agreement=0.5),
      'Bayes': panel.Figures(attack_success=0.25, marginal=0.375),
    }
    head, *rows = _tables(_html(_case(ordered=True), figures=figures))[1]
    self.assertEqual(head[3:], ['attack', 'marginal', 'attack - marginal'])
    self.assertEqual(
      rows,
      [
        ['before', '93.75 %', '75.00 %', '62.50 %', '50.00 %', '+12.50 points'],
        ['random pruning', '50.00 %', '-', '-', '-', '-'],
        ['Bayes', '-', '-', '25.00 %', '37.50 %', '-12.50 points'],
      ],
    )
    self.assertLen(_tables(_html(_case(ordered=True))), 2)


class PageTest(parameterized.TestCase):
  @parameterized.parameters(False, True)
  def test_same_input_same_bytes(self, ordered):
    arguments = dict(kept=[True, False, True, True], title='a')
    first, second = (_html(_case(ordered), **arguments) for _ in range(2))
    self.assertEqual(first, second)
    self.assertNotEqual(first, _html(_case(ordered)))

  def test_escapes_names_of_levels(self):
    names = (HOSTILE, f'S={HOSTILE}', 'S=</td></table><img src=x>')
    for ordered in (False, True):
      page = _html(_case(ordered, names))
      text = ''.join(_parsed(page).itertext())
      self.assertIn(f'{HOSTILE} > 0.5 AND {names[2]} > 0.5', text)
      self.assertIn(f'S is {names[1]}, {names[2]}', text)
      self.assertNotIn('<script', page)
      self.assertNotIn('<img', page)

  @parameterized.parameters(
    dict(title=HOSTILE),
    dict(classes=(HOSTILE, '+1')),
    dict(classes=('-1', HOSTILE)),
    dict(figures={HOSTILE: panel.Figures(0.5)}),
  )
  def test_escapes_everything(self, **arguments):
    page = _html(_case(ordered=True), **arguments)
    self.assertIn(HOSTILE, ''.join(_parsed(page).itertext()))
    self.assertNotIn('<script', page)

  def test_no_scripts_and_no_outside_resources(self):
    page = _html(_case(ordered=True), figures={'a': panel.Figures(0.5)})
    tags = {element.tag for element in _parsed(page).iter()}
    allowed = 'html head meta title style body h1 h2 p b s span table tr td th'
    self.assertContainsSubset(tags, allowed.split())
    known = {'lang', 'charset', 'content', 'http-equiv', 'class', 'style'}
    for element in _parsed(page).iter():
      self.assertContainsSubset(element.attrib, known)
    self.assertNotRegex(page, r'://|url\(|@import')
    self.assertIn("default-src 'none'", page)


class RefusalTest(parameterized.TestCase):
  @parameterized.parameters(
    (dict(alpha=-1), 'alpha must be .* >= 0, got -1'),
    (dict(alpha=math.nan), 'alpha must be finite'),
    (dict(epsilon=0), 'epsilon must be .* > 0'),
    (dict(kept=[True]), r'kept must have shape \(4,\), got \(1,\)'),
    (dict(kept=[1, 1, 1, 0]), 'kept must be booleans, got int64'),
    (
      dict(figures={'a': panel.Figures(agreement=1.5)}),
      r"agreement of 'a' must be in \[0, 1\], got 1.5",
    ),
    (
      dict(figures={'a': panel.Figures(accuracy=math.nan)}),
      "accuracy of 'a' must be",
    ),
    (
      dict(figures={'a': panel.Figures(attack_success=0.5)}),
      "attack_success and marginal of 'a' go together",
    ),
    (
      dict(figures={'a': panel.Figures(marginal=0.5)}),
      "attack_success and marginal of 'a' go together",
    ),
  )
  def test_refuses(self, arguments, message):
    with self.assertRaisesRegex(ValueError, message):
      _html(_case(ordered=True), **arguments)

  def test_unknown_sensitive_column(self):
    rules, _, scores, coverage = _case(ordered=True)
    other = sensitive.one_hot(('S=0', 'S=2'))
    with self.assertRaisesRegex(ValueError, r"columns \['S=2'\]"):
      _html((rules, other, scores, coverage))

  def test_another_attribute(self):
    rules, _, scores, coverage = _case(ordered=True)
    other = sensitive.one_hot(('P', 'S=0'))
    with self.assertRaisesRegex(ValueError, 'scores must be of these rules'):
      _html((rules, other, scores, coverage))

  def test_coverage_of_other_rows_or_rules(self):
    rules, attribute, scores, coverage = _case(ordered=True)
    with self.assertRaisesRegex(ValueError, 'coverage must begin with'):
      _html((rules, attribute, scores, coverage[::-1]))
    with self.assertRaisesRegex(ValueError, r'coverage must have shape \(5,\)'):
      _html((rules, attribute, scores, coverage[:-1]))

  def test_scores_of_fewer_rules(self):
    rules, attribute, scores, _ = _case(ordered=True)
    fewer = rule_set.take(rules, [0, 1])
    coverage = rule_set.coverage(fewer, _X)
    with self.assertRaisesRegex(ValueError, r'scores must have shape \(2,\)'):
      _html((fewer, attribute, scores, coverage))
