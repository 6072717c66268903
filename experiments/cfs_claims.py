"""Verdicts on what the PrivCFS paper says of prices, differences and arms.

A claim is an interval for the mean of one field over the targets of one cell.
It counts as reproduced if the measured mean comes within two standard errors
of it (over targets or over the seeds' means, whichever is larger). Where they
do and exceed half of the quoted value, or .05 where that may be zero, it is
inconclusive: such an interval would meet nearly anything.

A share, or a difference of two, that is the same for all n targets has the
standard error 1.5 / n: by the rule of three, another one of up to 3 / n would
look like that. A quoted zero that meets nothing but zeros is reproduced.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd

_ZERO_WIDTH = 0.05
_RULE_OF_THREE = 1.5


class Claim(NamedTuple):
  """One published statement.

  Attributes:
    source: where it stands.
    says: the statement in a few words.
    cell: column -> value; the rows that it speaks of.
    field: the column whose mean it is about.
    low: lower end of what is said.
    high: upper end; equal to `low` for a single number.
    is_share: whether the field is 0 or 1 for a target, or a difference of two
      such fields.
  """

  source: str
  says: str
  cell: dict[str, str]
  field: str
  low: float
  high: float
  is_share: bool = False


def compare(frame: pd.DataFrame, claims: Sequence[Claim]) -> pd.DataFrame:
  """Returns one line per claim and feature-mask arm that the rows cover."""
  lines = []
  for arm in frame['feature_masks'].unique():
    for claim in claims:
      chosen = frame['feature_masks'] == arm
      for column, value in claim.cell.items():
        chosen &= frame[column] == value
      cell = frame[chosen]
      if len(cell):
        lines.append(_line(claim, arm, cell))
  return pd.DataFrame(lines)


def _line(claim: Claim, arm: str, cell: pd.DataFrame) -> dict:
  values = cell[claim.field].astype(float)
  mean = float(values.mean())
  error = standard_error(values, cell['seed'], is_share=claim.is_share)
  same = claim.low == claim.high
  all_zero = claim.low <= 0 <= claim.high and bool((values == 0).all())
  return {
    'feature_masks': arm,
    'source': claim.source,
    'dataset': claim.cell['dataset'],
    'protocol': claim.cell['protocol'],
    'rho': claim.cell['rho'],
    'says': claim.says,
    'paper': f'{claim.low:g}' if same else f'{claim.low:g} to {claim.high:g}',
    'measured': mean,
    'standard_error': error,
    'verdict': 'reproduced' if all_zero else verdict(claim, mean, error),
  }


def standard_error(
  values: pd.Series, seeds: pd.Series, *, is_share: bool
) -> float:
  """Returns the larger of the errors over targets and over seeds' means."""
  if is_share and values.nunique() == 1:
    return _RULE_OF_THREE / len(values)
  by_seed = values.groupby(seeds).mean()
  return max(_error_of_mean(values), _error_of_mean(by_seed))


def _error_of_mean(values: pd.Series) -> float:
  count = len(values)
  return float(np.std(values, ddof=1) / count**0.5) if count > 1 else 0.0


def verdict(claim: Claim, mean: float, error: float) -> str:
  """Says whether two standard errors reach what the claim says."""
  if claim.low <= 0 <= claim.high:
    width = _ZERO_WIDTH
  else:
    width = max(abs(claim.low), abs(claim.high)) / 2
  if not claim.low - 2 * error <= mean <= claim.high + 2 * error:
    return 'not reproduced'
  return 'inconclusive' if 2 * error > width else 'reproduced'


def print_verdicts(verdicts: pd.DataFrame) -> None:
  """Prints the counts and lines of every feature-mask arm."""
  print('\nPublished statements beside measured ones (2 standard errors):')
  for arm, part in verdicts.groupby('feature_masks', sort=False):
    counts = part['verdict'].value_counts()
    said = ', '.join(f'{count} {verdict}' for verdict, count in counts.items())
    print(f'\n{arm} feature masks, {len(part)} statements: {said}')
    table = part.drop(columns='feature_masks')
    print(table.to_string(index=False, float_format=lambda x: f'{x:.3f}'))
