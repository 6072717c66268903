"""One printable page about rules: coverage, alpha-violation, what was pruned.

"Robust Transparency Against Model Inversion Attacks", Sec. 4.2 and 5: each rule
beside the counts that its violation score is made of, the label of every stage
of the pipeline, and attacks beside the marginal. It is one HTML file without
scripts and outside resources: same input, same bytes.

>>> s = np.array([1, 1, 1, 0, 1, 0, 0, 0])
>>> x = np.stack([1 - s, s], axis=1)
>>> f = np.array([1, 1, 1, 1, 1, -1, -1, -1])
>>> rules = rule_set.make(
...   [[-np.inf, 0.5]], [[np.inf, np.inf]], [1], names=('S=0', 'S=1'),
...   default=-1, ordered=True)
>>> attribute = sensitive.one_hot(rules.names)
>>> page = html_panel(
...   rules, attribute, violation.score(rules, attribute, x, f),
...   coverage=rule_set.coverage(rules, x), alpha=0.5, epsilon='1')
>>> '<td>4 / 5</td><td>4 / 8</td><td>+0.4700</td><td>keeps</td>' in page
True

Rules, counts, scores and figures are functions of private rows: the page is
NOT COVERED by an epsilon and not for release, and says so.
"""

from collections.abc import Iterable, Mapping, Sequence
import fractions
import html
import math
from typing import NamedTuple

import numpy as np

from privjax import _validate
from privjax import types
from privjax.rules import rule_io
from privjax.rules import rule_set
from privjax.rules import sensitive
from privjax.rules import stages
from privjax.rules import violation

_STATUSES = {
  violation.Status.S_FREE: 'S-free',
  violation.Status.KEEPS: 'keeps',
  violation.Status.VIOLATES: '<b>violates</b>',
  violation.Status.UNDEFINED: 'undefined',
}
_NONE = '-'
# A bar is a border, which prints where backgrounds are left out.
_STYLE = """
@page { size: A4 landscape; margin: 12mm; }
body { font: 13px/1.35 sans-serif; color: #111; background: #fff;
  max-width: 270mm; margin: 6mm auto; padding: 0 3mm; }
h1 { font-size: 20px; margin: 0 0 2mm; }
h2 { font-size: 14px; margin: 3.5mm 0 1mm; }
p { margin: 1mm 0; }
.label { border: 2px solid #111; padding: 1mm 2mm; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
td, th { padding: .4mm 3mm .4mm 0; text-align: left; vertical-align: top;
  border-bottom: 1px solid #ccc; overflow-wrap: anywhere; }
th { border-color: #111; }
tr { break-inside: avoid; }
.bar { display: block; border-bottom: 3px solid #36648b; }
@media print { body { margin: 0; font-size: 11.5px; } }
"""


class Figures(NamedTuple):
  """Shares in [0, 1] of one variant of the rules, `None` where unknown.

  Attributes:
    agreement: rows on which the rules say what the classifier says.
    accuracy: rows on which the rules say the true class.
    attack_success: targets whose level of S an attacker guesses.
    marginal: targets whose level the prior alone guesses; beside every attack.
  """

  agreement: float | None = None
  accuracy: float | None = None
  attack_success: float | None = None
  marginal: float | None = None


def html_panel(
  rules: rule_set.RuleSet,
  attribute: sensitive.SensitiveAttribute,
  scores: violation.Scores,
  *,
  coverage: types.Array | Sequence[int],
  alpha: float,
  epsilon: int | float | str | fractions.Fraction | None,
  kept: types.Array | Sequence[bool] | None = None,
  figures: Mapping[str, Figures] | None = None,
  title: str = 'Rules and what they say about S',
  classes: tuple[str, str] = ('-1', '+1'),
  indicators: bool = False,
) -> str:
  """Returns a page that shows rules and what they give away. NOT COVERED.

  Numbers are rounded for reading, but for counts, alpha and epsilon. A status
  is that of the unrounded ratio.

  Args:
    rules: R rules, before pruning.
    attribute: the sensitive attribute, among their columns.
    scores: theirs, from `violation.score`.
    coverage: `[R + 1]` from `rule_set.coverage`, on the rows of `scores`.
    alpha: finite and >= 0.
    epsilon: of the classifier; `None` for one without privacy.
    kept: `[R]` bool, as in `violation.Pruning`; by default all.
    figures: by variant: before and after pruning, a random control, ...
    title: of the page.
    classes: how to call the classes (-1, +1).
    indicators: see `rule_io.conditions`.

  Returns:
    An HTML document. Everything in it comes from the arguments, escaped.

  Raises:
    ValueError: naming the argument that is out of range or of other rules.
  """
  coverage = _checked_coverage(rules, attribute, scores, coverage)
  kept = np.ones(rules.num_rules, bool) if kept is None else np.asarray(kept)
  _validate.shape((rules.num_rules,), kept=kept)
  if kept.dtype != bool:
    raise ValueError(f'kept must be booleans, got {kept.dtype}')
  status = violation.statuses(scores, alpha=alpha)
  texts = rule_io.conditions(rules, indicators=indicators)
  rows = _rule_rows(rules, attribute, scores, status, kept, classes, texts)
  last = _default_row(rules, scores, classes, int(coverage[-1]))
  body = [
    f'<p class="label"><b>{stages.NOT_COVERED}, not for release.</b> This page '
    'shows counts over private rows, which no epsilon covers, whatever covers '
    'the classifier.</p>',
    *_stages(epsilon),
    *_figures(figures or {}),
    *_summary(rules, attribute, scores, status, kept, alpha),
    _table(_head(rules, classes), [*rows, last]),
  ]
  return _page(title, body)


def _page(title: str, body: list[str]) -> str:
  """Returns a document that no browser fetches anything for."""
  return '\n'.join(
    [
      '<!DOCTYPE html>',
      '<html lang="en"><head><meta charset="utf-8"/>',
      '<meta http-equiv="Content-Security-Policy" '
      "content=\"default-src 'none'; style-src 'unsafe-inline'\"/>",
      f'<title>{_text(title)}</title><style>{_STYLE}</style></head><body>',
      f'<h1>{_text(title)}</h1>',
      *body,
      '</body></html>\n',
    ]
  )


def _checked_coverage(rules, attribute, scores, coverage) -> np.ndarray:
  """Checks that scores and coverage are of these rules and of equal rows."""
  coverage = np.asarray(coverage)
  _validate.shape((rules.num_rules + 1,), coverage=coverage)
  _validate.shape((rules.num_rules,), scores=scores.log_ratio)
  s_free = sensitive.admitted(rules, attribute).all(axis=1)
  if not np.array_equal(s_free, scores.s_free):
    raise ValueError('scores must be of these rules and this attribute')
  if not np.array_equal(coverage[:-1], scores.coverage):
    raise ValueError(
      f'coverage must begin with {scores.coverage}, as scores do: {coverage}'
    )
  return coverage


def _stages(epsilon) -> list[str]:
  """Says what covers which stage."""
  labels = stages.pipeline(epsilon) | {'this page': stages.NOT_COVERED}
  return [
    '<h2>What is differentially private</h2>',
    _table(map(_text, labels), [[_text(label) for label in labels.values()]]),
  ]


def _figures(figures: Mapping[str, Figures]) -> list[str]:
  """Returns shares in percent, an attack beside the marginal."""
  rows = []
  for name, found in figures.items():
    shares = found._asdict()
    for field, share in shares.items():
      if share is not None and not 0 <= share <= 1:
        raise ValueError(f'{field} of {name!r} must be in [0, 1], got {share}')
    if (found.attack_success is None) != (found.marginal is None):
      raise ValueError(f'attack_success and marginal of {name!r} go together')
    rows.append([_text(name), *map(_percent, shares.values()), _excess(found)])
  if not rows:
    return []
  names = ('agreement', 'accuracy', 'attack', 'marginal', 'attack - marginal')
  return ['<h2>What the rules achieve, and an attacker</h2>'] + [
    _table(('', *names), rows)
  ]


def _summary(rules, attribute, scores, status, kept, alpha) -> list[str]:
  """Says what the columns of the table mean, and how many rules are what."""
  kind = 'list: the first rule that applies decides'
  moved = ' In a list, those of a later rule change once one is pruned.'
  if not rules.ordered:
    kind, moved = 'set: the rules that apply vote', ''
  counts = [f'{status.count(s)} {text}' for s, text in _STATUSES.items()]
  return [
    f'<h2>Rule {kind}</h2>',
    f'<p>{rules.num_rules} rules, {np.count_nonzero(~kept)} pruned, over '
    f'{scores.num_rows} rows. S is {_text(", ".join(attribute.columns))}, with '
    f'{attribute.num_levels} levels; A is what a rule admits of them. At alpha '
    f'{_text(alpha)}: {", ".join(counts)}.</p>',
    '<p>Score: log of Pr[S in A | public part, class] / Pr[S in A], whose '
    'counts stand before it; a rule violates where its absolute value is at '
    f'least alpha. Coverage and scores are those before pruning.{moved}</p>',
  ]


def _head(rules, classes) -> list[str]:
  names = ['', 'rule', 'class', f'P({classes[1]})']
  names += [] if rules.ordered else ['votes']
  names += ['decides' if rules.ordered else 'covers', 'levels in A']
  names += ['in A | public part, class', 'in A', 'score', 'status', 'pruning']
  return [_text(name) for name in names]


def _rule_rows(
  rules, attribute, scores, status, kept, classes, texts
) -> Iterable[list[str]]:
  """Yields the cells of each rule."""
  num_admitted = sensitive.admitted(rules, attribute).sum(axis=1)
  for rule, text in enumerate(texts):
    text = _text(text) if kept[rule] else f'<s>{_text(text)}</s>'
    yield [
      str(rule + 1),
      text,
      _text(classes[int(rules.consequent[rule] > 0)]),
      f'{rules.probability[rule]:.3f}',
      *([] if rules.ordered else [f'{rules.weight[rule]:.6g}']),
      _bar(int(scores.coverage[rule]), scores.num_rows),
      f'{num_admitted[rule]} of {attribute.num_levels}',
      f'{scores.joint[rule]} / {scores.conditioned[rule]}',
      f'{scores.in_set[rule]} / {scores.num_rows}',
      _score(scores, rule),
      _STATUSES[status[rule]],
      'kept' if kept[rule] else '<b>pruned</b>',
    ]


def _default_row(rules, scores, classes, count: int) -> list[str]:
  """Returns the cells of the default, which has no score."""
  text = 'no rule applies, or a tied vote'
  return [
    '',
    'otherwise' if rules.ordered else text,
    _text(classes[int(rules.default > 0)]),
    f'{rules.default_probability:.3f}',
    *([] if rules.ordered else [_NONE]),
    # Not the ties of a set: those are rows that rules apply to.
    _bar(count, scores.num_rows),
    *[_NONE] * 6,
  ]


def _score(scores: violation.Scores, rule: int) -> str:
  value = float(scores.log_ratio[rule])
  if math.isnan(value):
    return _NONE
  return '0' if scores.s_free[rule] else f'{value:+.4f}'


def _bar(count: int, total: int) -> str:
  width = 20 * count / total
  return f'{count}<span class="bar" style="width:{width:.1f}mm"></span>'


def _percent(share: float | None) -> str:
  return _NONE if share is None else f'{100 * share:.2f} %'


def _excess(found: Figures) -> str:
  if found.attack_success is None or found.marginal is None:
    return _NONE
  return f'{100 * (found.attack_success - found.marginal):+.2f} points'


def _text(value: object) -> str:
  """Escapes anything for the text of an element."""
  return html.escape(str(value))


def _table(head: Iterable[str], rows: Iterable[list[str]]) -> str:
  """Returns a table of cells that are HTML already."""
  lines = [''.join(f'<th>{cell}</th>' for cell in head)]
  lines += [''.join(f'<td>{cell}</td>' for cell in row) for row in rows]
  return (
    '<table>' + '\n'.join(f'<tr>{line}</tr>' for line in lines) + '</table>'
  )
