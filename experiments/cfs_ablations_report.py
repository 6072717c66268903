"""Tables, verdicts and figures of the PrivCFS ablations, from rows only."""

import pathlib
from typing import Any

import matplotlib
from matplotlib import figure
import pandas as pd

from experiments import cfs_claims
from experiments import plots
from experiments import results

_CELL = ['dataset', 'protocol', 'feature_masks', 'rho', 'epsilon', 'variant']
_TARGET = ['dataset', 'protocol', 'feature_masks', 'rho', 'epsilon', 'seed']
_TARGET = [*_TARGET, 'target']
_FIELDS = ['ceiling', 'valid_cf_rate', 'targeted_ceiling', 'targeted_success']
_MORE = ['support_size', 'empty_rate', 'size', 'collision', 'regret']
_UNCHANGED = 0.01
_LINEAR = 0.05
_TICKS = (-0.5, -0.1, -0.02, 0, 0.02, 0.1, 0.5)


def report(config: Any, rows: list[dict], folder: pathlib.Path) -> None:
  """Prints tables and verdicts; writes summary.csv and the figures."""
  del config
  frame = paired(pd.DataFrame(rows))
  summary = summarize(frame)
  results.write_text(folder / 'summary.csv', summary.to_csv(index=False))
  for line in tables(summary):
    print(line)
  verdicts = cfs_claims.compare(frame, claims())
  if len(verdicts):
    text = verdicts.to_csv(index=False)
    results.write_text(folder / 'paper_versus_measured.csv', text)
    cfs_claims.print_verdicts(verdicts)
  differences(summary, folder)


def paired(frame: pd.DataFrame) -> pd.DataFrame:
  """Adds `more_x`, the difference to the same target's base variant.

  `times_candidates` is the ratio of support sizes.
  """
  columns = [*_FIELDS, 'support_size']
  base = frame[[*_TARGET, 'variant', *columns]]
  base = base.rename(columns={'variant': 'base'})
  both = frame.merge(
    base, on=[*_TARGET, 'base'], suffixes=('', '_base'), validate='m:1'
  )
  for field in _FIELDS:
    both[f'more_{field}'] = both[field] - both[f'{field}_base']
  both['times_candidates'] = both['support_size'] / both['support_size_base']
  return both.drop(columns=[f'{column}_base' for column in columns])


def summarize(frame: pd.DataFrame) -> pd.DataFrame:
  """Returns one line per cell and variant: means, differences, their errors.

  `x_error` is the larger of the standard errors over targets and over seeds.
  """
  lines = []
  for key, cell in frame.groupby(_CELL, sort=False):
    line = dict(zip(_CELL, key)) | {'base': cell['base'].iloc[0]}
    line |= {'num_targets': len(cell)}
    line |= {field: cell[field].mean() for field in [*_FIELDS, *_MORE]}
    line['times_candidates'] = cell['times_candidates'].mean()
    for field in _FIELDS:
      more = cell[f'more_{field}']
      line[f'more_{field}'] = more.mean()
      line[f'more_{field}_error'] = cfs_claims.standard_error(
        more, cell['seed'], is_share='ceiling' in field
      )
    lines.append(line)
  return pd.DataFrame(lines)


def tables(summary: pd.DataFrame) -> list[str]:
  """Returns a table per dataset, population and arm, at the last epsilon."""
  epsilon = summary['epsilon'].iloc[-1]
  lines = []
  at_last = summary.query('epsilon == @epsilon')
  for key, part in at_last.groupby(_CELL[:3], sort=False):
    title = f'{key[0]}, {key[1]} targets, {key[2]} feature masks'
    lines += ['', f'{title}, epsilon {epsilon}']
    rhos = list(dict.fromkeys(part['rho']))
    heads = [f'rho {rho}' for rho in rhos]
    lines.append(f'{"":<28}{"candidates":>11}' + _row(heads))
    for name, cells in part.groupby('variant', sort=False):
      size = cells['support_size'].iloc[0]
      texts = [
        f'{c.ceiling:.3f} {c.valid_cf_rate:.3f} ({c.more_valid_cf_rate:+.3f})'
        for c in cells.itertuples()
      ]
      lines.append(f'{name:<28}{size:>11,.0f}' + _row(texts))
  return lines + [
    '',
    'Entries: ceiling, P(prediction flips) of one release, and (more): that',
    'minus the same of the default over the same targets ("pairs only',
    'permute-and-flip": of "pairs only"). candidates: mean size of the support',
    'at the first rho. Other epsilons and fields: summary.csv.',
  ]


def _row(texts: list[str]) -> str:
  return ''.join(f'{text:>24}' for text in texts)


def claims() -> list[cfs_claims.Claim]:
  """Returns what the text says of the ablations, on borderline targets.

  Where it names neither rho nor epsilon, rho .5 and epsilon 8 are taken, its
  certified setting; "a / b" is read as Cora / CiteSeer. "Unchanged" and "no
  gain" are read as within .01.
  """
  found = []
  same = (-_UNCHANGED, _UNCHANGED)
  for dataset, reach, targeted in (
    ('cora', 0.067, (0.44, 0.53, 0.69)),
    ('citeseer', 0.1, (0.29, 0.38, 0.41)),
  ):

    def add(source, says, variant, field, span, rho='0.5', dataset=dataset):
      cell = dict(dataset=dataset, protocol='borderline', rho=rho, epsilon='8')
      cell['variant'] = variant
      is_share = 'ceiling' in field
      found.append(cfs_claims.Claim(source, says, cell, field, *span, is_share))

    narrow, two_hop = 'narrow universe', 'two-hop pairs'
    for field in ('more_ceiling', 'more_valid_cf_rate'):
      for rho in ('0.5', '0.7'):
        says = f'27x smaller: {field}'
        add('4.3 (ii)', says, narrow, field, same, rho)
    says = 'two-hop: more_ceiling'
    add('4.3 (ii)', says, two_hop, 'more_ceiling', (reach, reach))
    says = 'two-hop: times_candidates'
    add('4.3 (ii)', says, two_hop, 'times_candidates', (3.5, 4.5))
    says = 'permute-and-flip: no gain'
    add('ablation', says, 'permute-and-flip', 'more_valid_cf_rate', same)
    for rho, value in zip(('0.5', '0.7', '1'), targeted):
      for variant in ('default', 'runner-up label'):
        says = f'P(to runner-up), {variant}'
        span = (value, value)
        add('4.3 (vi)', says, variant, 'targeted_success', span, rho)
  return found


def differences(summary: pd.DataFrame, folder: pathlib.Path) -> None:
  """Draws every variant's difference to its base, one figure per arm."""
  matplotlib.rcParams.update(plots.STYLE)
  epsilon = summary['epsilon'].iloc[-1]
  chosen = summary.query('epsilon == @epsilon and variant != "default"')
  for arm, part in chosen.groupby('feature_masks', sort=False):
    panels = [*part.groupby(['dataset', 'protocol'], sort=False)]
    names = list(dict.fromkeys(part['variant']))
    size = (2.2 + 1.75 * len(panels), 1.1 + 0.24 * len(names))
    image = figure.Figure(figsize=size, layout='constrained')
    axes = image.subplots(
      1, len(panels), sharex=True, sharey=True, squeeze=False
    )[0]
    for axis, (key, cells) in zip(axes, panels):
      _draw_panel(axis, cells, names)
      axis.set_title(f'{key[0]},\n{key[1]} targets')
    axes[0].set_yticks(range(len(names)), [_label(n, part) for n in names])
    axes[0].set_ylim(len(names) - 0.5, -0.5)
    handles, labels = axes[0].get_legend_handles_labels()
    image.legend(
      handles,
      labels,
      title=f'Difference to the default, same targets, {arm} feature masks, '
      f'epsilon {epsilon}; linear up to {_LINEAR}, then logarithmic.\n'
      'Filled: P(prediction flips), with two standard errors; hollow: '
      'ceiling. *: difference to "pairs only".',
      loc='outside lower center',
      ncols=len(labels),
      frameon=False,
      title_fontsize=7,
    )
    for suffix, options in (
      ('.png', {'dpi': 200}),
      ('.svg', {'metadata': {'Date': None}}),
    ):
      image.savefig(folder / f'ablations_{arm}{suffix}', **options)


def _label(name: str, part: pd.DataFrame) -> str:
  base = part.loc[part['variant'] == name, 'base'].iloc[0]
  return name if base == 'default' else f'{name}*'


def _draw_panel(axis, cells: pd.DataFrame, names: list[str]) -> None:
  """Draws one dataset and population: a color per rho."""
  axis.axvline(0, color='0.6', linewidth=0.6, zorder=0)
  rhos = list(dict.fromkeys(cells['rho']))
  for index, (rho, line) in enumerate(cells.groupby('rho', sort=False)):
    color = plots.COLORS[index % len(plots.COLORS)]
    place = {name: y for y, name in enumerate(names)}
    shift = 0.24 * (index - (len(rhos) - 1) / 2)
    y = line['variant'].map(place).to_numpy(float) + shift
    axis.plot(
      line['more_ceiling'],
      y,
      linestyle='none',
      marker=plots.MARKERS[index],
      markersize=5,
      markerfacecolor='none',
      markeredgecolor=color,
      markeredgewidth=0.5,
    )
    axis.errorbar(
      line['more_valid_cf_rate'],
      y,
      xerr=2 * line['more_valid_cf_rate_error'],
      linestyle='none',
      marker=plots.MARKERS[index],
      markersize=2.5,
      color=color,
      elinewidth=0.7,
      label=f'rho {rho}' + (' (reference)' if rho == '1' else ''),
    )
  axis.set_xscale('symlog', linthresh=_LINEAR, linscale=1)
  axis.set_xlim(-1, 1)
  axis.set_xticks(_TICKS, [f'{tick:g}' for tick in _TICKS], fontsize=6.5)
  axis.minorticks_off()
  axis.grid(axis='y', linewidth=0.3)
