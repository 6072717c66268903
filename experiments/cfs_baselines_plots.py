"""Figure of Table 3: what each method flips, and who carries a guarantee."""

import pathlib

import matplotlib
from matplotlib import figure
from matplotlib import lines
import numpy as np
import pandas as pd

from experiments import plots

_COLOR_OF = {
  'explanation': plots.COLORS[0],
  'graph': plots.COLORS[3],
  'model': plots.COLORS[4],
  'public': plots.COLORS[2],
}
_FIELD = 'receptive field'
_UNIVERSE = 'public universe, rho '


def rates(summary: pd.DataFrame, folder: pathlib.Path) -> None:
  """One figure per arm: a panel per dataset and protocol, a line per method.

  Methods over the receptive field, and those that choose from a public
  universe; filled markers carry a guarantee for their complete release.
  """
  matplotlib.rcParams.update(plots.STYLE)
  known = summary.dropna(subset=['csr'])
  for arm, part in known.groupby('feature_masks', sort=False):
    _draw(part, f'{arm} feature masks', folder / f'baselines_{arm}')


def _draw(part: pd.DataFrame, title: str, base: pathlib.Path) -> None:
  names = list(dict.fromkeys(_names(part)))
  panels = list(part.groupby(['dataset', 'protocol'], sort=False))
  height = 0.155 * len(names) + 1.3
  shown = figure.Figure(
    figsize=(max(2.1 + 1.9 * len(panels), 5.2), height), layout='constrained'
  )
  axes = shown.subplots(1, len(panels), sharey=True, squeeze=False)[0]
  for axis, (key, cells) in zip(axes, panels):
    axis.set_title(', '.join(map(str, np.asarray(key))))
    for name, line in zip(_names(cells), cells.to_dict('records')):
      color, y = _COLOR_OF[line['placement']], names.index(name)
      fill = color if line['certified'] else 'white'
      axis.plot(
        line['csr'], y, 'o', color=color, markerfacecolor=fill, markersize=4.5
      )
      if pd.notna(line['pollution']):
        axis.plot(line['pollution'], y, 'x', color='black', markersize=4)
    axis.set_xlim(-0.04, 1.04)
    axis.set_xlabel('share of targets')
    axis.grid(axis='both', linewidth=0.3)
  axes[0].set_yticks(range(len(names)), names, fontsize=6.5)
  axes[0].set_ylim(len(names) - 0.5, -0.5)
  shown.legend(
    handles=_legend(set(part['placement'])),
    loc='outside lower center',
    ncols=4,
    frameon=False,
    title=f'{title}: share of targets whose private prediction flips',
    title_fontsize=7,
  )
  shown.savefig(base.with_suffix('.png'), dpi=200)
  shown.savefig(base.with_suffix('.svg'), metadata={'Date': None})


def _names(cells: pd.DataFrame) -> list[str]:
  """Returns a label per line: the method, and its operations if public."""
  return [
    method
    if space == _FIELD
    else f'{method} | rho {space.removeprefix(_UNIVERSE)}'
    for method, space in zip(cells['method'], cells['space'])
  ]


def _legend(placements: set[str]) -> list[lines.Line2D]:
  dot = dict(linestyle='', marker='o', markersize=4.5)
  handles = [
    lines.Line2D([], [], color=color, label=f'{placement} level', **dot)
    for placement, color in _COLOR_OF.items()
    if placement in placements
  ]
  gray = dict(dot, color='gray')
  return [
    *handles,
    lines.Line2D([], [], label='certified', **gray),
    lines.Line2D(
      [], [], markerfacecolor='white', label='not certified', **gray
    ),
    lines.Line2D(
      *([], []), linestyle='', marker='x', color='black', label='pollution'
    ),
  ]
