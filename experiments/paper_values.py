"""Numbers that the PrivCFS paper prints, and the verdict on each.

A quote is an interval: a single number, or the range that the text gives over
its datasets. It counts as reproduced if the measured mean comes within two
standard errors (over the pooled targets) of it. Nothing is tuned to pass.
"""

from typing import NamedTuple

import numpy as np
import pandas as pd


class Quote(NamedTuple):
  """One published number: where it stands and what it says."""

  source: str
  dataset: str
  protocol: str
  rho: str
  epsilon: str
  field: str
  low: float
  high: float


def _series(source, dataset, protocol, epsilon, field, values) -> list[Quote]:
  return [
    Quote(source, dataset, protocol, rho, epsilon, field, low, high)
    for rho, (low, high) in values.items()
  ]


def _points(**values: float) -> dict[str, tuple[float, float]]:
  """Maps r05, r07, r1 to single numbers."""
  names = {'r05': '0.5', 'r07': '0.7', 'r1': '1'}
  return {names[k]: (v, v) for k, v in values.items()}


_ALL_RHOS = ('0.5', '0.7', '1')


def _same(low: float, high: float) -> dict[str, tuple[float, float]]:
  return {rho: (low, high) for rho in _ALL_RHOS}


def quotes() -> list[Quote]:
  """Returns the quoted numbers of Sec. 4.3, Tables 1 and 2 (as in the text)."""
  found = []
  ceiling = {
    'cora': _points(r05=0.50, r07=0.63, r1=0.90),
    'citeseer': _points(r05=0.37, r07=0.57, r1=0.77),
  }
  valid = {
    'cora': _points(r05=0.484, r07=0.614, r1=0.87),
    'citeseer': _points(r05=0.348, r07=0.534),
  }
  targeted = {
    'cora': _points(r05=0.44, r07=0.53, r1=0.69),
    'citeseer': _points(r05=0.29, r07=0.38, r1=0.41),
  }
  random_ceiling = {
    '0.5': (0.15, 0.25),
    '0.7': (0.23, 0.25),
    '1': (0.29, 0.31),
  }
  for name in ('cora', 'citeseer'):
    border = lambda source, field, values, name=name: _series(
      source, name, 'borderline', '8', field, values
    )
    found += border('Table 2, (ii)', 'ceiling', ceiling[name])
    found += border('Table 2', 'valid_cf_rate', valid[name])
    found += border('(vi)', 'targeted_success', targeted[name])
    found += border('(vii)', 'size', _same(3.1, 3.9))
    found += border('(iv)', 'collision', _same(0.002, 0.003))
    found += border('(iv)', 'empty_rate', _same(0.001, 0.004))
    found += border('(i)', 'retention', _same(0.94, 0.97))
    found += _series(
      'Table 1, (ii)', name, 'random', '8', 'ceiling', random_ceiling
    )
    found += _series(
      '(iii)', name, 'random', '8', 'valid_cf_rate', _same(0.14, 0.22)
    )
    found += _series('(i)', name, 'random', '8', 'retention', _same(0.83, 0.95))
    # A margin depends on no rho and no epsilon: one cell stands for all.
    found.append(
      Quote('(iii)', name, 'random', '0.5', '8', 'margin', 0.69, 0.75)
    )
  both = 'cora+citeseer'  # The text gives one value for both.
  found.append(
    Quote('(iii)', both, 'borderline', '0.5', '8', 'margin', 0.008, 0.008)
  )
  for epsilon, value in (('0.5', 0.368), ('8', 0.164)):
    found.append(
      Quote('(v)', 'cora', 'borderline', '0.7', epsilon, 'regret', value, value)
    )
  return found


def compare(rows: pd.DataFrame) -> pd.DataFrame:
  """Returns one line per quote and feature-mask arm that the rows cover."""
  lines = []
  for arm in rows['feature_masks'].unique():
    for quote in quotes():
      names = quote.dataset.split('+')
      cell = rows[
        rows['dataset'].isin(names)
        & (rows['protocol'] == quote.protocol)
        & (rows['rho'] == quote.rho)
        & (rows['epsilon'] == quote.epsilon)
        & (rows['feature_masks'] == arm)
      ]
      if set(cell['dataset']) == set(names):
        lines.append(_judge(quote, arm, cell))
  return pd.DataFrame(lines)


def _judge(quote: Quote, arm: str, cell: pd.DataFrame) -> dict:
  mean, error = _mean_and_error(cell, quote.field)
  same = quote.low == quote.high
  return {
    'source': quote.source,
    'dataset': quote.dataset,
    'protocol': quote.protocol,
    'rho': quote.rho,
    'epsilon': quote.epsilon,
    'field': quote.field,
    'paper': f'{quote.low:g}' if same else f'{quote.low:g}-{quote.high:g}',
    'feature_masks': arm,
    'measured': mean,
    'standard_error': error,
    'verdict': _verdict(quote, mean, error),
  }


def _verdict(quote: Quote, mean: float, error: float) -> str:
  """Says whether the interval of two standard errors meets the quote.

  'inconclusive' if two standard errors are more than half of the quoted value:
  such an interval would meet nearly anything.
  """
  if 2 * error > quote.high / 2:
    return 'inconclusive'
  inside = quote.low - 2 * error <= mean <= quote.high + 2 * error
  return 'reproduced' if inside else 'not reproduced'


def _mean_and_error(cell: pd.DataFrame, field: str) -> tuple[float, float]:
  """Returns the pooled mean and its standard error (ratios: delta method)."""
  if field == 'retention':
    ceiling, valid = cell['ceiling'], cell['valid_cf_rate']
    if float(ceiling.sum()) == 0:
      return float('nan'), float('nan')
    mean = valid.sum() / ceiling.sum()
    values = (valid - mean * ceiling) / ceiling.mean()
  else:
    values = cell[field]
    mean = values.mean()
  by_seed = values.groupby(cell['seed']).mean()
  return float(mean), max(_standard_error(values), _standard_error(by_seed))


def _standard_error(values: pd.Series) -> float:
  count = len(values)
  return float(np.std(values, ddof=1) / count**0.5) if count > 1 else 0.0
