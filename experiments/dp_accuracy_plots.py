"""Figures of the accuracy sweep: PNG and SVG, from summaries only."""

from decimal import Decimal
from fractions import Fraction
import pathlib

import matplotlib
from matplotlib import figure
from matplotlib import lines
import numpy as np
import pandas as pd

from experiments import erm_paper_values
from experiments import plots

_NAMES = {'svm': 'SVM', 'lr': 'logistic regression'}
_RULES = ('paper', 'tight')


def accuracy(
  summary: pd.DataFrame, verdicts: pd.DataFrame, folder: pathlib.Path
) -> None:
  """Accuracy against epsilon at the best Lambda of each cell (Fig. 2)."""
  private = summary[summary['epsilon'] != 'none']
  if not len(private):
    return
  epsilons = sorted(set(private['epsilon']), key=Fraction)
  axes = _grid(summary, top=1.0)
  for (dataset, model), axis in axes.items():
    cells = _of(private, dataset, model)
    limit = _of(summary[summary['epsilon'] == 'none'], dataset, model)
    for index, rule in enumerate(_RULES):
      _draw_line(axis, cells, epsilons, rule, index)
    if len(limit):
      axis.axhline(limit['mean'].max(), color='black', linewidth=1)
    majority = _of(summary, dataset, model)['majority'].iloc[0]
    axis.axhline(majority, color='gray', linewidth=1, linestyle=(0, (1, 1.5)))
    _draw_quotes(axis, verdicts, dataset, model, epsilons)
    axis.set_xticks(range(len(epsilons)), epsilons)
    axis.set_xlim(-0.3, len(epsilons) - 0.7)
    axis.grid(axis='y', linewidth=0.3)
    axis.set_ymargin(0.1)
  handles = _legend(published=len(verdicts) > 0)
  _save(axes, folder / 'accuracy', 'percent of held-out rows right', handles)


def _draw_line(axis, cells, epsilons, rule: str, index: int) -> None:
  """Draws one calibration: fresh noise with a band, shared noise as bars."""
  color = plots.COLORS[index]
  for noise, alpha in (('shared', 0.0), ('fresh', 0.25)):
    arm = cells[(cells['calibration'] == rule) & (cells['noise'] == noise)]
    if not len(arm):
      continue
    best = arm.loc[arm.groupby('epsilon')['mean'].idxmax()]
    best = best.set_index('epsilon').reindex(epsilons)
    x = np.arange(len(epsilons)) + 0.06 * (2 * index - 1)
    mean, sd = best['mean'], best['sd'].fillna(0)
    if noise == 'shared':
      axis.errorbar(x, mean, sd, fmt='none', ecolor=color, elinewidth=0.7)
      continue
    axis.plot(
      x,
      mean,
      color=color,
      marker=plots.MARKERS[index],
      markersize=3.5,
      linewidth=1.2,
    )
    axis.fill_between(
      x, mean - sd, mean + sd, color=color, alpha=alpha, linewidth=0
    )


def _draw_quotes(axis, verdicts, dataset, model, epsilons) -> None:
  """Draws the published best of each epsilon as crosses."""
  if not len(verdicts) or dataset in erm_paper_values.NO_TARGET:
    return
  quoted = _of(verdicts, dataset, model).groupby('epsilon')['accuracy'].max()
  points = [(i, quoted[e]) for i, e in enumerate(epsilons) if e in quoted]
  if points:
    axis.plot(*zip(*points), 'x', color='black', markersize=5, zorder=5)


def _legend(*, published: bool) -> list:
  line = lambda label, **style: lines.Line2D([], [], label=label, **style)
  entries = [
    line(
      f"private, '{rule}' calibration",
      color=plots.COLORS[index],
      marker=plots.MARKERS[index],
      markersize=3.5,
      linewidth=1.2,
    )
    for index, rule in enumerate(_RULES)
  ]
  if published:
    entries.append(line('published', color='black', marker='x', linestyle=''))
  return entries + [
    line('non-private', color='black', linewidth=1),
    line('majority class', color='gray', linestyle=(0, (1, 1.5))),
  ]


def gain(summary: pd.DataFrame, folder: pathlib.Path) -> None:
  """What the tight calibration gains, in points, per Lambda and epsilon."""
  fresh = summary[summary['noise'] == 'fresh']
  if set(fresh['calibration']) != set(_RULES):
    return
  axes = _grid(fresh, top=0.6)
  image = None
  for (dataset, model), axis in axes.items():
    cells = _of(fresh, dataset, model)
    paper, tight = (
      cells[cells['calibration'] == rule].pivot_table(
        index='regularization', columns='epsilon', values='mean', sort=False
      )
      for rule in _RULES
    )
    difference = tight - paper
    image = axis.imshow(
      difference, cmap='PuOr_r', vmin=-20, vmax=20, aspect='auto'
    )
    for (i, j), value in np.ndenumerate(difference.to_numpy()):
      axis.text(
        j,
        i,
        f'{value:+.1f}' if abs(value) >= 0.05 else '0',
        ha='center',
        va='center',
        fontsize=6.5,
        color='white' if abs(value) > 14 else 'black',
      )
    axis.set_yticks(
      range(len(difference)),
      [scientific(text) for text in difference.index],
    )
    axis.set_xticks(range(len(difference.columns)), difference.columns)
    axis.spines[:].set_visible(False)
    axis.tick_params(length=0)
  whole = next(iter(axes.values())).figure
  bar = whole.colorbar(image, ax=list(axes.values()), shrink=0.6, pad=0.01)
  bar.set_label('points of accuracy')
  bar.outline.set_visible(False)
  whole.suptitle(
    "Accuracy under 'tight' minus 'paper', fresh noise; orange: tight wins",
    fontsize=8,
  )
  _save(axes, folder / 'gain', 'Lambda', None)


def scientific(text: str) -> str:
  """Returns a canonical number as '1e-7'; a fraction as it is."""
  return text if '/' in text else f'{Decimal(text).normalize():e}'


def _of(table: pd.DataFrame, dataset: str, model: str) -> pd.DataFrame:
  return table.query('dataset == @dataset and model == @model')


def _grid(summary: pd.DataFrame, *, top: float) -> dict:
  """Returns titled axes: a row per dataset, a column per model."""
  matplotlib.rcParams.update(plots.STYLE)
  datasets = list(dict.fromkeys(summary['dataset']))
  models = list(dict.fromkeys(summary['model']))
  size = (2.9 * len(models) + 0.7, 1.45 * len(datasets) + top)
  whole = figure.Figure(figsize=size, layout='constrained')
  axes = whole.subplots(len(datasets), len(models), squeeze=False)
  found = {}
  for i, dataset in enumerate(datasets):
    for j, model in enumerate(models):
      proxy = ' (proxy)' if dataset in erm_paper_values.PROXIES else ''
      axes[i, j].set_title(f'{dataset}{proxy}, {_NAMES[model]}')
      if i == len(datasets) - 1:
        axes[i, j].set_xlabel('epsilon of one fit')
      found[dataset, model] = axes[i, j]
  return found


def _save(axes: dict, base: pathlib.Path, label: str, handles) -> None:
  """Writes base.png and base.svg."""
  whole = next(iter(axes.values())).figure
  whole.supylabel(label, fontsize=8)
  if handles:
    whole.legend(
      handles=handles,
      title='At the best Lambda on the test folds (NOT COVERED). '
      'Band: 1 sd of fresh noise; bar: 1 sd of a shared draw.',
      title_fontsize=7,
      loc='outside lower center',
      ncols=3,
      frameon=False,
    )
  whole.savefig(base.with_suffix('.png'), dpi=200)
  whole.savefig(base.with_suffix('.svg'), metadata={'Date': None})
