"""Tables and figures of the PrivCFS frontier, from rows only."""

import pathlib
from typing import Any

import pandas as pd

from experiments import paper_values
from experiments import plots
from experiments import results
from privjax import counterfactual

CELL = ['dataset', 'protocol', 'feature_masks', 'rho', 'epsilon']
FIELDS = [
  'ceiling',
  'public_only',
  'valid_cf_rate',
  'targeted_success',
  'empty_rate',
  'nonempty_valid_rate',
  'size',
  'collision',
  'regret',
  'valid_cf_draws',
]


def report(config: Any, rows: list[dict], folder: pathlib.Path) -> None:
  """Prints price lists and verdicts; writes summary.csv and the figures."""
  del config
  frame = pd.DataFrame(rows)
  frame['valid_cf_draws'] = frame['valid_draws'] / frame['num_draws']
  summary = summarize(frame)
  results.write_text(folder / 'summary.csv', summary.to_csv(index=False))
  for line in price_lists(summary):
    print(line)
  verdicts = paper_values.compare(frame)
  if len(verdicts):
    text = verdicts.to_csv(index=False)
    results.write_text(folder / 'paper_versus_measured.csv', text)
    _print_verdicts(verdicts)
  plots.frontier(summary, folder)
  plots.guidance(summary, folder)


def summarize(frame: pd.DataFrame) -> pd.DataFrame:
  """Returns one line per cell: mean and std over seeds, targets pooled.

  `retention` is the ratio of the pooled means, empty where nothing can flip;
  `x_std` is the sample standard deviation of the seeds' means.
  """
  lines = []
  for key, cell in frame.groupby(CELL, sort=False):
    by_seed = cell.groupby('seed')[FIELDS].mean()
    mean, std = by_seed.mean(), by_seed.std(ddof=1)
    line = dict(zip(CELL, key))
    line |= {'num_seeds': len(by_seed), 'num_targets': len(cell)}
    for field in FIELDS:
      line |= {field: mean[field], f'{field}_std': std[field]}
    line['retention'] = counterfactual.retention(
      mean['valid_cf_rate'], mean['ceiling']
    )
    lines.append(line)
  return pd.DataFrame(lines)


def price_lists(summary: pd.DataFrame) -> list[str]:
  """Returns the price list of every dataset, population and mask arm."""
  lines = []
  for key, part in summary.groupby(CELL[:3], sort=False):
    lines += ['', f'{key[0]}, {key[1]} targets, {key[2]} feature masks']
    epsilons = list(dict.fromkeys(part['epsilon']))
    heads = [f'eps {epsilon}' for epsilon in epsilons]
    lines.append(_columns(['rho', 'ceiling', 'free', *heads]))
    for rho, cells in part.groupby('rho', sort=False):
      first = cells.iloc[0]
      values = [first['ceiling'], first['public_only'], *cells['valid_cf_rate']]
      mark = '*' if rho == '1' else ''
      lines.append(_columns([f'{rho}{mark}', *(f'{v:.3f}' for v in values)]))
  return lines + [
    '',
    'Entries: the probability that one release flips the prediction.',
    'ceiling: the share of targets that some candidate of the support flips.',
    'free: the explanation that anyone can compute from the snapshot, at',
    'epsilon 0. *: the snapshot discloses every edge; a reference only.',
    'Snapshots are simulated from the private graph: no row is certified.',
    'k releases on one graph cost k times epsilon, whatever their targets.',
  ]


def _columns(cells: list[str]) -> str:
  return ''.join(f'{cell:>9}' for cell in cells)


def _print_verdicts(verdicts: pd.DataFrame) -> None:
  print('\nPublished numbers beside measured ones (2 standard errors):')
  for arm, part in verdicts.groupby('feature_masks', sort=False):
    counts = part['verdict'].value_counts()
    said = ', '.join(f'{count} {verdict}' for verdict, count in counts.items())
    print(f'\n{arm} feature masks, {len(part)} numbers: {said}')
    columns = [c for c in part.columns if c != 'feature_masks']
    print(
      part[columns].to_string(index=False, float_format=lambda x: f'{x:.4f}')
    )
