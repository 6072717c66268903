"""Figures of the rule pipeline: PNG and SVG, from summaries only."""

import pathlib

import matplotlib
from matplotlib import figure
from matplotlib import lines
import numpy as np
import pandas as pd

from experiments import plots
from experiments import rules_report

NONE = rules_report.NONE
_IT, _BRL, _F = plots.COLORS[0], plots.COLORS[3], plots.COLORS[2]
_STYLES = {
  'it': dict(color=_IT, marker='o'),
  'brl': dict(color=_BRL, marker='s'),
}
_NAMES = {'svm': 'SVM', 'lr': 'LR'}


def panels(
  summary: pd.DataFrame, epsilon: str, rate: str, folder: pathlib.Path
) -> None:
  """The paper's panels (Figs. 4-8): a figure per dataset, a row per model."""
  for dataset in dict.fromkeys(summary['dataset']):
    part = rules_report.select(summary, dataset=dataset)
    models = list(dict.fromkeys(part['model']))
    whole = _figure(7.2, 1.75 * len(models) + 1.25)
    axes = whole.subplots(len(models), 4, squeeze=False)
    for model, row in zip(models, axes):
      cells = rules_report.select(part, model=model)
      _against_epsilon(row[:2], rules_report.select(cells, arm='whole'))
      at = rules_report.select(cells, epsilon=epsilon)
      _against_alpha(row[2:], at, rate)
      row[0].set_ylabel(f'{_NAMES[model]}: percent of rows')
    for axis, text in zip(axes[0], _titles(epsilon, rate)):
      axis.set_title(text)
    for axis, text in zip(axes[-1], ('epsilon of f',) * 2 + ('alpha',) * 2):
      axis.set_xlabel(text)
    whole.suptitle(rules_report.title(dataset), fontsize=8)
    # A suffix would start at a decimal point or a slash.
    name = f'panels_{dataset}_rp_{rate}'.replace('/', '_').replace('.', '_')
    note = ' Epsilon none has another Lambda.'
    _save(whole, folder / name, _legend(), columns=4, note=note)


def _titles(epsilon: str, rate: str) -> tuple[str, ...]:
  f = 'f without privacy' if epsilon == NONE else f'eps {epsilon}'
  where = f'{f}, r_p {rules_report.percent(rate)}'
  return (
    'agreement, accuracy\nno pruning',
    'attack success\nno pruning',
    f'agreement, accuracy\n{where}',
    f'attack success\n{where}',
  )


def _against_epsilon(axes, cells: pd.DataFrame) -> None:
  """Draws unpruned rules against epsilon, 'none' at the right."""
  epsilons = rules_report.epsilons(cells)
  tables = _by_explainer(cells, 'epsilon', epsilons)
  for explainer, table in tables.items():
    style = _STYLES[explainer]
    _line(axes[0], table, 'agreement', **style)
    _dashed(axes[0], table, 'accuracy', color=style['color'])
    _line(axes[1], table, 'attack', **style)
    _dotted(axes[1], table, 'bayes', color=style['color'])
  first = next(iter(tables.values()))
  _dashed(axes[0], first, 'classifier_accuracy', color='black')
  _dashed(axes[1], first, 'marginal', color='gray')
  _line(axes[1], first, 'none_attack', color=_F, marker='^')
  _dotted(axes[1], first, 'bayes_surrogate', color='black')
  _ticks(axes, epsilons)


def _against_alpha(axes, cells: pd.DataFrame, rate: str) -> None:
  """Draws pruned rules and their random control against alpha."""
  cells = rules_report.select(cells, privacy_rate=rate)
  alphas = list(dict.fromkeys(cells['alpha']))
  if not alphas:
    for axis in axes:
      axis.set_axis_off()
    return
  pruned = _by_explainer(
    rules_report.select(cells, arm='pruned'), 'alpha', alphas
  )
  control = _by_explainer(
    rules_report.select(cells, arm='random'), 'alpha', alphas
  )
  for explainer, table in pruned.items():
    style = _STYLES[explainer]
    _line(axes[0], table, 'agreement', **style)
    _dashed(axes[0], table, 'accuracy', color=style['color'])
    _line(axes[1], table, 'attack', **style)
    _dotted(axes[1], table, 'bayes', color=style['color'])
    for axis, name in zip(axes, ('agreement', 'attack')):
      _hollow(axis, control[explainer], name, **style)
  first = next(iter(pruned.values()))
  _dashed(axes[0], first, 'classifier_accuracy', color='black')
  _dashed(axes[1], first, 'marginal', color='gray')
  _dotted(axes[1], first, 'bayes_surrogate', color='black')
  _ticks(axes, alphas)


def _by_explainer(cells, name: str, order) -> dict[str, pd.DataFrame]:
  return {
    str(explainer): part.set_index(name).loc[list(order)]
    for explainer, part in cells.groupby('explainer', sort=False)
  }


def _spans(table, name: str):
  """Yields x and values in pieces: epsilon 'none' is apart.

  Its classifier has another Lambda, so a line to it would say too much. A piece
  of one point is drawn as wide as a marker needs.
  """
  x, values = np.arange(len(table), dtype=float), table[name].to_numpy()
  is_none = np.asarray(table.index == NONE)
  for mask in (~is_none, is_none):
    if mask.sum() == 1:
      yield x[mask] + [-0.25, 0.25], np.repeat(values[mask], 2)
    elif mask.any():
      yield x[mask], values[mask]


def _line(axis, table, name: str, *, color, marker) -> None:
  """Draws a mean with a band of one standard deviation over runs."""
  _points(axis, table, name, color=color, marker=marker)
  sds = table.fillna({f'{name}_sd': 0})
  for (x, mean), (_, sd) in zip(_spans(table, name), _spans(sds, f'{name}_sd')):
    axis.plot(x, mean, color=color, linewidth=1.2)
    axis.fill_between(
      x, mean - sd, mean + sd, color=color, alpha=0.1, linewidth=0
    )


def _dashed(axis, table, name: str, *, color) -> None:
  for x, values in _spans(table, name):
    axis.plot(x, values, color=color, linewidth=0.9, linestyle='--')


def _dotted(axis, table, name: str, *, color) -> None:
  for x, values in _spans(table, name):
    axis.plot(x, values, color=color, linewidth=1, linestyle=(0, (1, 1.3)))


def _hollow(axis, table, name: str, *, color, marker) -> None:
  inside = dict(markerfacecolor='white', markeredgewidth=0.7)
  _points(axis, table, name, color=color, marker=marker, **inside)


def _points(axis, table, name: str, **style) -> None:
  x = np.arange(len(table))
  axis.plot(x, table[name], markersize=3, linestyle='', **style)


def _ticks(axes, names) -> None:
  # Eleven alphas do not fit a small panel: every other one is written.
  step = 1 if len(names) <= 7 else 2
  for axis in axes:
    shown = range(0, len(names), step)
    axis.set_xticks(shown, [names[i] for i in shown], fontsize=6.5)
    axis.set_xlim(-0.3, max(len(names), 2) - 0.7)
    # A band may leave what a percentage can be.
    bottom, top = axis.get_ylim()
    axis.set_ylim(max(bottom, -2), min(top, 102))
    axis.grid(axis='y', linewidth=0.3)


def _legend() -> list[lines.Line2D]:
  def line(label, **style):
    return lines.Line2D([], [], label=label, markersize=3, **style)

  dotted = (0, (1, 1.3))
  hollow = dict(linestyle='', markerfacecolor='white', markeredgewidth=0.7)
  return [
    line('IT', **_STYLES['it']),
    line('BRL', **_STYLES['brl']),
    line('None (attack on f)', color=_F, marker='^'),
    line('accuracy of f', color='black', linestyle='--'),
    line('accuracy of IT, BRL', color=_IT, linestyle='--'),
    line('marginal', color='gray', linestyle='--'),
    line('as many dropped at random', **_STYLES['it'], **hollow),
    line('Bayes attack, with rules', color=_IT, linestyle=dotted),
    line('Bayes attack, no release', color='black', linestyle=dotted),
  ]


def baseline(summary: pd.DataFrame, folder: pathlib.Path) -> None:
  """Agreement and attack success without privacy or pruning (Fig. 3)."""
  models = list(dict.fromkeys(summary['model']))
  names = list(dict.fromkeys(summary['dataset']))
  # Side by side, the numbers in the bars of many tables would overlap.
  columns = 2 if len(names) <= 3 else 1
  whole = _figure(7.2, 1.9 * len(models) * (2 // columns) + 0.75)
  axes = whole.subplots(len(models) * (2 // columns), columns, squeeze=False)
  for model, pair in zip(models, axes.reshape(len(models), 2)):
    cells = rules_report.select(summary, model=model)
    tables = {
      explainer: table.reindex(names)
      for explainer, table in _by_explainer(
        cells, 'dataset', dict.fromkeys(cells['dataset'])
      ).items()
    }
    bars = [(tables[e], 'agreement', c) for e, c in _colors()]
    _bars(pair[0], bars)
    first = next(iter(tables.values()))
    bars = [(first, 'none_attack', _F)]
    bars += [(tables[e], 'attack', c) for e, c in _colors()]
    _bars(pair[1], bars)
    for at, value in enumerate(first['marginal']):
      pair[1].plot([at - 0.42, at + 0.42], [value] * 2, color='black')
    for axis, measure in zip(pair, ('agreement with f', 'attack success')):
      axis.set_xticks(range(len(names)), [*map(_tick, names)], fontsize=7)
      axis.set_ylim(0, 104)
      room = 0.6 if len(names) > 1 else 1.1
      axis.set_xlim(-room, len(names) - 1 + room)
      axis.set_title(f'{_NAMES[model]}: {measure}')
    for axis in pair if columns == 1 else pair[:1]:
      axis.set_ylabel('percent of rows')
  handles = [
    lines.Line2D([], [], color=color, linewidth=5, label=label)
    for color, label in ((_F, 'None (attack on f)'), (_IT, 'IT'), (_BRL, 'BRL'))
  ]
  handles.append(lines.Line2D([], [], color='black', label='marginal'))
  _save(whole, folder / 'baseline', handles, columns=4)


def _tick(dataset: str) -> str:
  """Returns a dataset's title in short lines."""
  return rules_report.title(dataset).replace('_', '\n').replace(' ', '\n')


def _colors():
  return tuple((name, style['color']) for name, style in _STYLES.items())


def _bars(axis, bars) -> None:
  width = 0.8 / len(bars)
  for i, (table, name, color) in enumerate(bars):
    x = np.arange(len(table)) + (i - (len(bars) - 1) / 2) * width
    axis.bar(
      x,
      table[name],
      0.9 * width,
      yerr=table[f'{name}_sd'].fillna(0),
      color=color,
      error_kw=dict(elinewidth=0.7),
    )
    for at, value in zip(x, table[name]):
      axis.text(at, 3, f'{value:.0f}', ha='center', color='white', fontsize=6)


def _figure(width: float, height: float) -> figure.Figure:
  matplotlib.rcParams.update(plots.STYLE)
  return figure.Figure(figsize=(width, height), layout='constrained')


def _save(
  whole, base: pathlib.Path, handles, *, columns: int, note: str = ''
) -> None:
  """Adds a legend and writes base.png and base.svg."""
  whole.legend(
    handles=handles,
    title='Mean over folds and seeds; band or bar: 1 sd. '
    f'Rules are NOT COVERED by the epsilon of f.{note}',
    title_fontsize=7,
    loc='outside lower center',
    ncols=columns,
    frameon=False,
  )
  whole.savefig(base.with_suffix('.png'), dpi=200)
  whole.savefig(base.with_suffix('.svg'), metadata={'Date': None})
