"""Figures for print: PNG at 200 dpi and SVG, from summary tables only."""

import pathlib

import matplotlib
from matplotlib import figure
import numpy as np
import pandas as pd

STYLE = {
  'font.size': 8,
  'axes.titlesize': 8,
  'axes.labelsize': 8,
  'legend.fontsize': 7,
  'axes.spines.top': False,
  'axes.spines.right': False,
  'svg.hashsalt': 'privjax',
}
# Okabe-Ito: readable in gray and for color-blind readers.
COLORS = ('#0072B2', '#E69F00', '#009E73', '#D55E00', '#CC79A7', '#56B4E9')
MARKERS = ('o', 's', '^', 'D', 'v', 'P')


def frontier(summary: pd.DataFrame, folder: pathlib.Path) -> None:
  """Valid counterfactual rate against epsilon, a line per rho (Fig. 4)."""
  for arm, part in summary.groupby('feature_masks', sort=False):
    grid = _Grid(part, top=0.75)
    for axis, cells in grid.panels():
      for index, (rho, line) in enumerate(cells.groupby('rho', sort=False)):
        _draw_line(axis, rho, line, index)
      axis.set_xticks(range(len(line)), line['epsilon'])
      axis.set_ylim(0, 1.04)
      axis.set_xlabel('epsilon of one release')
      axis.grid(axis='y', linewidth=0.3)
    grid.axes[0, 0].figure.supylabel('P(prediction flips)', fontsize=8)
    handles, labels = grid.axes[0, 0].get_legend_handles_labels()
    note = 'Dotted: free (epsilon 0). Bar at the right: ceiling. Band: 1 sd.'
    grid.legend(handles, labels, f'{arm} feature masks. {note}')
    grid.save(folder / f'frontier_{arm}')


def _draw_line(axis, rho: str, line: pd.DataFrame, index: int) -> None:
  """Draws one rho: rate with its band, the free baseline and the ceiling."""
  color = COLORS[index % len(COLORS)]
  x = np.arange(len(line))
  rate, error = line['valid_cf_rate'], line['valid_cf_rate_std'].fillna(0)
  axis.plot(
    x,
    rate,
    color=color,
    marker=MARKERS[index % len(MARKERS)],
    markersize=4 - 0.5 * (index % 3),
    linewidth=1.2,
    label=f'rho {rho}' + (' (reference)' if rho == '1' else ''),
  )
  axis.fill_between(
    x, rate - error, rate + error, color=color, alpha=0.12, linewidth=0
  )
  flat = {'color': color, 'linewidth': 1.2}
  free, ceiling = line['public_only'].iloc[0], line['ceiling'].iloc[0]
  axis.plot([0, x[-1]], [free] * 2, linestyle=(0, (1, 1.5)), **flat)
  # Equal ceilings would hide each other: each rho has its own place.
  left = x[-1] + 0.2 + 0.22 * index
  axis.plot([left, left + 0.2], [ceiling] * 2, solid_capstyle='butt', **flat)


def guidance(summary: pd.DataFrame, folder: pathlib.Path) -> None:
  """What a budget buys: rho by epsilon, against the free baseline (Fig. 5)."""
  for arm, part in summary.groupby('feature_masks', sort=False):
    grid = _Grid(part, top=0.6)
    image = None
    for axis, cells in grid.panels():
      table = cells.pivot_table(
        index='rho', columns='epsilon', values='valid_cf_rate', sort=False
      )
      free = cells.groupby('rho', sort=False)['public_only'].first()
      gain = table.sub(free, axis=0)
      image = axis.imshow(gain, cmap='PuOr', vmin=-0.5, vmax=0.5, aspect='auto')
      for (i, j), value in np.ndenumerate(table.to_numpy()):
        strong = abs(gain.to_numpy()[i, j]) > 0.35
        axis.text(
          j,
          i,
          f'{value:.2f}',
          ha='center',
          va='center',
          fontsize=6.5,
          color='white' if strong else 'black',
        )
      labels = [f'{rho}\n(free {free[rho]:.2f})' for rho in table.index]
      axis.set_yticks(range(len(table)), labels, fontsize=6.5)
      axis.set_xticks(range(len(table.columns)), table.columns)
      axis.set_xlabel('epsilon of one release')
      axis.spines[:].set_visible(False)
      axis.tick_params(length=0)
    grid.axes[0, 0].figure.supylabel('rho, disclosed fraction', fontsize=8)
    grid.colorbar(image, 'P(flips) minus free')
    grid.title(
      f'P(prediction flips), {arm} feature masks; orange: worse than free'
    )
    grid.save(folder / f'guidance_{arm}')


class _Grid:
  """Small multiples: a row per dataset, a column per target protocol."""

  def __init__(self, summary: pd.DataFrame, *, top: float):
    matplotlib.rcParams.update(STYLE)
    self._summary = summary
    self._datasets = list(dict.fromkeys(summary['dataset']))
    self._protocols = list(dict.fromkeys(summary['protocol']))
    rows, columns = len(self._datasets), len(self._protocols)
    size = (2.3 * columns + 0.7, 1.75 * rows + top)
    self._figure = figure.Figure(figsize=size, layout='constrained')
    self.axes = self._figure.subplots(rows, columns, squeeze=False)

  def panels(self):
    """Yields every axis with its cells, titled."""
    for i, dataset in enumerate(self._datasets):
      for j, protocol in enumerate(self._protocols):
        chosen = (self._summary['dataset'] == dataset) & (
          self._summary['protocol'] == protocol
        )
        self.axes[i, j].set_title(f'{dataset}, {protocol} targets')
        yield self.axes[i, j], self._summary[chosen]

  def legend(self, handles, labels, title: str) -> None:
    """Puts one legend under all panels."""
    self._figure.legend(
      handles,
      labels,
      title=title,
      loc='outside lower center',
      ncols=len(labels),
      frameon=False,
      title_fontsize=7,
    )

  def colorbar(self, image, label: str) -> None:
    """Puts one color bar beside all panels."""
    bar = self._figure.colorbar(image, ax=self.axes, shrink=0.8, pad=0.01)
    bar.set_label(label)
    bar.outline.set_visible(False)

  def title(self, text: str) -> None:
    """Titles the figure."""
    self._figure.suptitle(text, fontsize=8)

  def save(self, base: pathlib.Path) -> None:
    """Writes base.png and base.svg."""
    self._figure.savefig(base.with_suffix('.png'), dpi=200)
    self._figure.savefig(base.with_suffix('.svg'), metadata={'Date': None})
