"""Tables 3 and 7 of PrivCFS from rows, and the verdict on each quoted number.

A quote counts as reproduced if the measured rate comes within two standard
errors of it, over pooled targets or over seeds' means, whichever is larger, and
as inconclusive where two standard errors exceed .25 and would meet nearly
anything. No error is below 1.5 / n, the rule of three: a rate of 0 or 1 has no
spread and is not thereby known exactly.
"""

import pathlib
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from experiments import cfs_baselines_plots
from experiments import results

_KEYS = ['dataset', 'protocol', 'feature_masks', 'placement', 'method', 'space']
_TOP_M = "Gaussian, top-M ('paper')"
_FIELD = 'receptive field'
_COUNTS = (
  'csr',
  'mean_size',
  'num_explained',
  'num_polluted',
  'num_spurious',
  'num_spurious_polluted',
)
_COARSE = 0.25
_RULE_OF_THREE = 1.5
_CAVEAT = (
  'certified: a bound for the complete release, were targets, backbone and '
  'snapshot public. Here they are simulated, with seeds: no row is a release.'
)


class Quote(NamedTuple):
  """One published rate: which cell, and the interval that the text gives."""

  source: str
  dataset: str
  feature_masks: str
  method: str
  space: str
  rate: str
  low: float
  high: float


def quotes() -> list[Quote]:
  """Returns what the paper quotes on borderline targets at epsilon 8."""
  found = []
  for dataset, out, sgd, half, most in (
    ('cora', 1.0, 0.5, 0.484, 0.614),
    ('citeseer', 0.958, 0.533, 0.348, 0.534),
  ):
    both = ('effective', 'inert')
    for arm in both:
      table = lambda method, value, arm=arm, dataset=dataset: Quote(
        'Table 3', dataset, arm, method, _FIELD, 'csr', value, value
      )
      found += [table('PrivCF-out', out), table('PrivCF-SGD', sgd)]
      for rho, value in (('0.5', half), ('0.7', most)):
        space = f'public universe, rho {rho}'
        found.append(
          Quote('Table 3', dataset, arm, 'PrivCFS', space, 'csr', value, value)
        )
      for method in (_TOP_M, 'EdgeRand', 'LapGraph'):
        found += [
          Quote('3.2', dataset, arm, method, _FIELD, 'pollution', 0.6, 0.92),
          Quote('3.2', dataset, arm, method, _FIELD, 'spurious', 0.23, 0.37),
          Quote(
            *('Table 7', dataset, arm, method),
            *('public universe, rho 0.5', 'csr', 0.0, 0.0),
          ),
        ]
  return found


def report(config: Any, rows: list[dict], folder: pathlib.Path) -> None:
  """Prints both tables and the verdicts; writes them as csv."""
  del config
  frame = pd.DataFrame(rows)
  summary = summarize(frame)
  results.write_text(folder / 'summary.csv', summary.to_csv(index=False))
  for line in tables(summary):
    print(line)
  print(f'\n{_CAVEAT}')
  cfs_baselines_plots.rates(summary, folder)
  verdicts = compare(frame)
  if len(verdicts):
    text = verdicts.to_csv(index=False)
    results.write_text(folder / 'paper_versus_measured.csv', text)
    print('\nPaper versus measured (borderline targets):')
    print(verdicts.to_string(index=False, float_format=lambda x: f'{x:.3f}'))
    counts = verdicts.groupby('feature_masks')['verdict'].value_counts()
    print(counts.to_string())


def rates(frame: pd.DataFrame) -> pd.DataFrame:
  """Returns the rows with csr, pollution, spurious and mean size, per row."""
  # A run of one method alone may lack what others count.
  frame = frame.reindex(columns=dict.fromkeys((*frame.columns, *_COUNTS)))
  tried = frame['num_targets'] * frame['num_draws']
  # PrivCFS has exact expectations in place of counts.
  frame['csr'] = frame['csr'].fillna(frame['num_valid'] / tried)
  frame['pollution'] = frame['num_polluted'] / frame['num_targets']
  frame['spurious'] = frame['num_spurious'] / frame['num_targets']
  explained = frame['num_explained'].fillna(tried)
  size = frame['total_size'] / explained.where(explained > 0)
  frame['mean_size'] = frame['mean_size'].fillna(size)
  return frame


def summarize(frame: pd.DataFrame) -> pd.DataFrame:
  """Returns one line per method, space and arm, pooled over seeds' targets."""
  lines = []
  for key, cell in rates(frame).groupby(_KEYS, sort=False):
    spurious = float(cell['num_spurious'].sum())
    on_polluted = cell['num_spurious_polluted'].sum()
    lines.append(
      dict(zip(_KEYS, key))
      | {
        'certified': bool(cell['certified'].all()),
        'guarantee': cell['guarantee'].iloc[0],
        'csr': _pooled(cell, 'csr'),
        'csr_std': cell['csr'].std(ddof=1),
        'size': cell['mean_size'].mean(),
        'currency': cell['currency'].iloc[0],
        'pollution': _pooled(cell, 'pollution'),
        'spurious': _pooled(cell, 'spurious'),
        'spurious_on_polluted': on_polluted / spurious if spurious else np.nan,
        'not_covered': cell['not_covered'].iloc[0],
      }
    )
  return pd.DataFrame(lines)


def _pooled(cell: pd.DataFrame, field: str) -> float:
  weight = cell['num_targets']
  return float((cell[field] * weight).sum(min_count=1) / weight.sum())


def tables(summary: pd.DataFrame) -> list[str]:
  """Returns Table 3 (each method's own operations) and Table 7 as text."""
  lines = []
  columns = [
    *('placement', 'method', 'certified', 'guarantee', 'csr', 'csr_std'),
    *('size', 'currency', 'pollution', 'spurious', 'spurious_on_polluted'),
  ]
  keys = ['dataset', 'protocol', 'feature_masks']
  for key, part in summary.groupby(keys, sort=False):
    dataset, protocol, arm = np.asarray(key)
    for space, cells in part.groupby('space', sort=False):
      where = {
        _FIELD: 'Table 3, operations in the whole receptive field',
        'not searched': 'Table 3, too dense to be searched',
      }.get(space, f'Table 7, equal operations: {space}')
      lines += [
        '',
        f'{dataset}, {protocol} targets, {arm} feature masks. {where}',
        cells[columns].to_string(
          index=False, float_format=lambda x: f'{x:.3f}', na_rep='-'
        ),
      ]
  return lines


def compare(frame: pd.DataFrame) -> pd.DataFrame:
  """Returns one line per quote that the rows cover."""
  frame = rates(frame)
  lines = []
  for quote in quotes():
    cell = frame[
      (frame['dataset'] == quote.dataset)
      & (frame['protocol'] == 'borderline')
      & (frame['feature_masks'] == quote.feature_masks)
      & (frame['method'] == quote.method)
      & (frame['space'] == quote.space)
    ]
    if len(cell):
      mean = _pooled(cell, quote.rate)
      error = standard_error(cell, quote.rate)
      same = quote.low == quote.high
      lines.append(
        quote._asdict()
        | {
          'paper': f'{quote.low:g}'
          if same
          else f'{quote.low:g}-{quote.high:g}',
          'measured': mean,
          'standard_error': error,
          'verdict': verdict(quote, mean, error),
        }
      )
  return pd.DataFrame(lines).drop(columns=['low', 'high'], errors='ignore')


def standard_error(cell: pd.DataFrame, field: str) -> float:
  """Returns the larger of the binomial and the between-seeds error."""
  mean, count = _pooled(cell, field), cell['num_targets'].sum()
  binomial = max(mean * (1 - mean), 0) ** 0.5 / count**0.5
  binomial = max(binomial, _RULE_OF_THREE / count)
  if len(cell) < 2:
    return float(binomial)
  between = cell[field].std(ddof=1) / len(cell) ** 0.5
  return float(max(binomial, between))


def verdict(quote: Quote, mean: float, error: float) -> str:
  """Says whether two standard errors reach the quote."""
  if 2 * error > _COARSE:
    return 'inconclusive'
  inside = quote.low - 2 * error <= mean <= quote.high + 2 * error
  return 'reproduced' if inside else 'not reproduced'
