"""Tables, verdicts and structures of the accuracy sweep, from rows only."""

import math
import pathlib
import textwrap
from typing import Any

import pandas as pd

from experiments import dp_accuracy_plots
from experiments import erm_paper_values
from experiments import results

GROUP = ['dataset', 'model']
ARM = ['calibration', 'noise']
CELL = [*GROUP, *ARM, 'regularization', 'epsilon']

# The tables that are printed; all others are in summary.csv.
_PRINTED = (('paper', 'fresh'), ('paper', 'shared'), ('tight', 'fresh'))
_SMALL = ('0.00001', '0.0000001')
_DIP = ('mammographic', 'svm', 'paper', 'fresh')
_NAMES = {'svm': 'SVM', 'lr': 'LR', 'fresh': 'fresh', 'shared': 'shared'}


def report(config: Any, rows: list[dict], folder: pathlib.Path) -> None:
  """Prints tables, verdicts and structures; writes csv files and figures."""
  del config
  frame = pd.DataFrame(rows)
  summary = summarize(frame)
  results.write_text(folder / 'summary.csv', summary.to_csv(index=False))
  verdicts = erm_paper_values.compare(summary)
  lines = tables(summary)
  if len(verdicts):
    text = verdicts.to_csv(index=False)
    results.write_text(folder / 'paper_versus_measured.csv', text)
    lines += verdict_lines(verdicts)
  lines += structure_lines(frame, summary)
  lines += notes(frame)
  print('\n'.join(lines))
  dp_accuracy_plots.accuracy(summary, verdicts, folder)
  dp_accuracy_plots.gain(summary, folder)


def summarize(frame: pd.DataFrame) -> pd.DataFrame:
  """Returns one line per cell, in percent; a run is one seed and draw.

  A run's accuracy is the share of all rows that the fit of their own test fold
  predicts right. `sd` is the sample deviation over runs (over fold seeds for
  epsilon 'none'), not a number for one run. `error` is that of the mean: over
  runs or over the seeds' means, whose runs share folds, whichever is larger.
  """
  lines = []
  for key, cell in frame.groupby(CELL, sort=False):
    first, n = cell.iloc[0], int(cell['num_rows'].iloc[0])
    num_runs = int(cell['num_draws'].sum())
    # Exact: Python's integers do not round.
    total = sum(map(int, cell['num_correct']))
    spread = num_runs * sum(map(int, cell['sum_squares'])) - total**2
    variance = spread / (num_runs * (num_runs - 1)) if num_runs > 1 else None
    sd = math.nan if variance is None else 100 * math.sqrt(variance) / n
    by_seed = 100 * cell['num_correct'] / cell['num_draws'] / n
    lines.append(
      dict(zip(CELL, key))
      | {
        'mean': 100 * total / (num_runs * n),
        'sd': sd,
        'error': max(sd / math.sqrt(num_runs), _error(by_seed)),
        'least': 100 * int(cell['least_correct'].min()) / n,
        'most': 100 * int(cell['most_correct'].max()) / n,
        'num_runs': num_runs,
        'num_seeds': len(cell),
        'num_rows': n,
        'majority': 100 * int(first['majority_rows']) / n,
        'noise_epsilon': first['noise_epsilon'],
        'total_regularization': first['total_regularization'],
        # Over seeds, whose folds are of the same sizes.
        'num_extra': int(first['num_extra']),
      }
    )
  return pd.DataFrame(lines)


def _error(values: pd.Series) -> float:
  return float(values.sem()) if len(values) > 1 else 0.0


def tables(summary: pd.DataFrame) -> list[str]:
  """Returns tables like the paper's: a line per Lambda, epsilons across."""
  lines = []
  limit = summary[summary['epsilon'] == 'none']
  for group, part in summary.groupby(GROUP, sort=False):
    names = [str(name) for name in list(group)]
    free = limit[(limit[GROUP] == names).all(axis=1)]
    private = part[part['epsilon'] != 'none']
    for rule, noise in _PRINTED:
      arm = private[
        (private['calibration'] == rule) & (private['noise'] == noise)
      ]
      if len(arm):
        lines += ['', f"{_title(*names)}, '{rule}' calibration, {noise} noise"]
        lines += _table(pd.concat([arm, free]))
    if not len(private):
      lines += ['', f'{_title(*names)}, non-private', *_table(free)]
  return lines + [
    '',
    'Entries: percent of held-out rows predicted right, mean +- standard',
    'deviation over draws and fold seeds; none: over fold seeds.',
  ]


def _title(dataset: str, model: str) -> str:
  proxy = dataset in erm_paper_values.PROXIES
  return f'{dataset}{" (proxy)" if proxy else ""}, {_NAMES[model]}'


def _table(cells: pd.DataFrame) -> list[str]:
  epsilons = list(dict.fromkeys(cells['epsilon']))
  heads = [e if e == 'none' else f'eps {e}' for e in epsilons]
  lines = [_columns(['Lambda', *heads])]
  for regularization, line in cells.groupby('regularization', sort=False):
    by_epsilon = line.set_index('epsilon')
    values = [
      f'{by_epsilon["mean"][e]:.2f}+-{by_epsilon["sd"][e]:.2f}'
      for e in epsilons
    ]
    lines.append(
      _columns([dp_accuracy_plots.scientific(regularization), *values])
    )
  return lines


def _columns(cells: list[str]) -> str:
  return f'{cells[0]:>7}' + ''.join(f'{cell:>13}' for cell in cells[1:])


def verdict_lines(verdicts: pd.DataFrame) -> list[str]:
  """Returns counts of the verdicts, then each number of the real tables."""
  lines = ['', 'Published accuracies beside measured ones (paper calibration):']
  for proxy, chosen in verdicts.groupby('proxy', sort=False):
    for noise, part in chosen.groupby('noise', sort=False):
      counts = part['verdict'].value_counts()
      said = ', '.join(f'{count} {word}' for word, count in counts.items())
      kind = 'non-private' if noise == 'none' else f'{noise} noise'
      mark = ' (proxies)' if proxy else ''
      line = f'{kind}{mark}, {len(part)} numbers: {said}'
      if noise != 'none':
        covered = int(part['covered'].sum())
        line += f'; {covered} between the least and the most of the runs'
      lines.append(line)
  real = verdicts[~verdicts['proxy']]
  if not len(real):
    return lines
  lines += ['', _line('cell', 'eps', 'paper', 'fresh', '', 'shared', '', '')]
  key = [*GROUP, 'regularization', 'epsilon']
  for identity, cells in real.groupby(key, sort=False):
    lines.append(_quote_line(*identity, cells.set_index('noise')))
  return lines


def _quote_line(dataset, model, regularization, epsilon, cells) -> str:
  """Returns one published number with its cells by noise."""
  words = []
  for noise in ('none',) if epsilon == 'none' else ('fresh', 'shared'):
    if noise not in cells.index:
      words += ['', '']
      continue
    cell = cells.loc[noise]
    words += [f'{cell["measured"]:.2f}+-{cell["sd"]:.2f}', cell['verdict']]
    if noise == 'shared':
      words.append(f'{cell["least"]:.2f} to {cell["most"]:.2f}')
  name = (
    f'{dataset} {_NAMES[model]} {dp_accuracy_plots.scientific(regularization)}'
  )
  paper = f'{cells["accuracy"].iloc[0]:.2f}'
  return _line(name, epsilon, paper, *words)


def _line(name, epsilon, paper, *words: str) -> str:
  widths = (13, 15, 13, 15, 16)
  rest = ''.join(f' {word:>{width}}' for word, width in zip(words, widths))
  return f'{name:<22}{epsilon:>5} {paper:>6}{rest}'.rstrip()


def structure_lines(frame: pd.DataFrame, summary: pd.DataFrame) -> list[str]:
  """Returns what became of the two structures of the published tables."""
  lines = ['', "Structure of the tables under the 'paper' calibration:"]
  for text in (_equal_rows(frame), _dip(summary)):
    lines += textwrap.wrap(text, 80)
  return lines if len(lines) > 2 else []


def equal_cells(frame: pd.DataFrame) -> pd.DataFrame:
  """Pairs the rows of Lambda 1e-5 and 1e-7 where Delta > 0 in every fold.

  Returns:
    A line per pair: `mechanism_gap`, the relative difference of eps' and
    Lambda + Delta, each calibrated at its own Lambda; and `equal`, whether the
    draws predicted equally many rows right.
  """
  paper = frame[
    (frame['calibration'] == 'paper')
    & (frame['num_extra'] == frame['num_folds'])
  ]
  key = [*GROUP, 'noise', 'seed', 'epsilon']
  one, other = (paper[paper['regularization'] == text] for text in _SMALL)
  pairs = one.merge(other, on=key, suffixes=('', '_other'))
  gap = pd.Series(0.0, index=pairs.index)
  for name in ('noise_epsilon', 'total_regularization'):
    gap = gap.combine((pairs[name] / pairs[f'{name}_other'] - 1).abs(), max)
  counts = ('num_correct', 'sum_squares', 'least_correct', 'most_correct')
  equal = pd.Series(True, index=pairs.index)
  for name in counts:
    equal &= pairs[name] == pairs[f'{name}_other']
  pairs['mechanism_gap'], pairs['equal'] = gap, equal
  return pairs.filter([*key, 'mechanism_gap', 'equal'])


def _equal_rows(frame: pd.DataFrame) -> str:
  pairs = equal_cells(frame)
  if not len(pairs):
    return ''
  return (
    f'Lambda 1e-5 and 1e-7, Delta > 0 at both: {len(pairs)} pairs of rows, '
    f'{int(pairs["equal"].sum())} equal in every count (one fit serves both); '
    "eps' and Lambda + Delta, calibrated at each Lambda, differ by "
    f'{pairs["mechanism_gap"].max():.1g} of their value. '
    f'{_published_pairs(pairs)}'
  )


def _published_pairs(pairs: pd.DataFrame) -> str:
  """Says how far the published numbers of the same pairs are apart."""
  published = {
    quote[1:5]: quote.accuracy
    for quote in erm_paper_values.quotes()
    if quote.dataset in erm_paper_values.REAL
  }
  gaps = []
  for cell in dict.fromkeys(
    zip(pairs['dataset'], pairs['model'], pairs['epsilon'])
  ):
    one, other = (published.get((*cell[:2], text, cell[2])) for text in _SMALL)
    if one is not None and other is not None:
      gaps.append(abs(one - other))
  if not gaps:
    return ''
  return (
    f'Published: {len(gaps)} pairs, {sum(gap < 0.005 for gap in gaps)} equal, '
    f'at most {max(gaps):.2f} points apart.'
  )


def _dip(summary: pd.DataFrame) -> str:
  """Compares Mass-SVM at (1e-3, eps 2) with its three neighbors."""
  columns = [*GROUP, *ARM]
  cells = summary[(summary[columns] == list(_DIP)).all(axis=1)]
  cells = cells.set_index(['regularization', 'epsilon'])
  center = ('0.001', '2')
  around = [('0.001', '1'), ('0.01', '2'), ('0.00001', '2')]
  if not {center, *around} <= set(cells.index):
    return ''
  dip = cells.loc[center]
  gaps, said = [], []
  for name in around:
    cell, at = cells.loc[name], dp_accuracy_plots.scientific(name[0])
    gaps.append(
      (cell['mean'] - dip['mean']) / math.hypot(cell['error'], dip['error'])
    )
    said.append(f'{cell["mean"]:.2f} at ({at}, eps {name[1]})')
  word = 'reproduced' if min(gaps) > 2 else 'not reproduced'
  return (
    f"Mass-SVM dip at (1e-3, eps 2): {word}; {dip['mean']:.2f} (eps' "
    f'{dip["noise_epsilon"]:.3f}) beside {", ".join(said)}; the least gap is '
    f'{min(gaps):.1f} standard errors. Paper: 80.57 beside 81.30, 82.75, 82.62.'
  )


def notes(frame: pd.DataFrame) -> list[str]:
  """Returns what a reader must know about every number above."""
  return [
    '',
    'Epsilon is per fit (REPLACE_ONE_ROW). Ten folds released together cost 10',
    'epsilon by basic composition, since training folds overlap; with shared',
    'noise nothing holds for them together. Accuracies, and a Lambda chosen by',
    'them, are computed on private rows: NOT COVERED. Noise is simulated: no',
    f'row is certified. Largest gradient norm of a fit: '
    f'{frame["residual"].max():.0e}.',
  ]
