"""Tests of draws against a law, with a stated error rate and a stated power.

A draw test rejects a right sampler with probability `ALPHA` (and, the seeds
being fixed, always gives one answer). Its use is that it rejects a wrong one:
every caller states the power against a named mutant.
"""

import numpy as np
from scipy import stats

ALPHA = 1e-6
_MIN_EXPECTED = 5  # Below, the chi-square approximation is not to be trusted.


def chi_square_rejects(
  counts: np.ndarray, probs: np.ndarray, *, alpha: float = ALPHA
) -> bool:
  """Returns whether counts over bins are improbable under a law.

  Args:
    counts: `[L]` draws per bin; bins are utility levels, not candidates.
    probs: `[L]` law of the bins.
    alpha: probability of rejecting the right law.

  Raises:
    ValueError: if the law is not one or a bin expects fewer than 5 draws.
  """
  counts, probs = np.asarray(counts), np.asarray(probs)
  expected = counts.sum() * probs
  _check(probs, expected)
  statistic = ((counts - expected) ** 2 / expected).sum()
  return bool(statistic > stats.chi2.isf(alpha, len(probs) - 1))


def chi_square_power(
  probs: np.ndarray,
  mutant: np.ndarray,
  *,
  num_draws: int,
  alpha: float = ALPHA,
) -> float:
  """Returns the probability that draws of `mutant` are rejected as `probs`."""
  probs, mutant = np.asarray(probs), np.asarray(mutant)
  _check(probs, num_draws * probs)
  distance = num_draws * ((mutant - probs) ** 2 / probs).sum()
  freedom = len(probs) - 1
  critical = stats.chi2.isf(alpha, freedom)
  return float(stats.ncx2.sf(critical, freedom, distance))


def level_law(probs: np.ndarray, levels: np.ndarray) -> np.ndarray:
  """Sums a law over candidates of equal level, ascending levels."""
  _, index = np.unique(levels, return_inverse=True)
  return np.bincount(index.ravel(), np.ravel(probs))


def level_counts(draws: np.ndarray, levels: np.ndarray) -> np.ndarray:
  """Counts draws (flat candidate indices) by level, ascending levels."""
  values, index = np.unique(levels, return_inverse=True)
  return np.bincount(index.ravel()[draws], minlength=len(values))


def _check(probs: np.ndarray, expected: np.ndarray) -> None:
  if (probs <= 0).any() or abs(probs.sum() - 1) > 1e-9:
    raise ValueError(f'probs must be positive and sum to 1, got {probs}')
  if expected.min() < _MIN_EXPECTED:
    raise ValueError(
      f'every bin must expect {_MIN_EXPECTED} draws, got {expected.min():.3g}: '
      'merge bins or draw more'
    )
