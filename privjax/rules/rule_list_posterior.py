r"""The posterior of Bayesian rule lists (Letham et al. 2015, Secs. 2.2-2.4).

A list d is a sequence of distinct antecedents a_1, ..., a_m out of the mined A,
and then the default. Its prior is generative: the length m from a Poisson
truncated to 0, ..., |A|; for each place a width c_j (number of items) from a
Poisson truncated to the widths that still have an unused antecedent; then one
of those antecedents, uniformly:

  p(d) = p(m) \prod_j p(c_j | unused) / |{a unused: |a| = c_j}|

With N_jk the rows of class k that rule j is the first to match, and a
Dirichlet(alpha) prior on the class probabilities of every rule,

  p(y | d) = \prod_{j=0}^m B(N_j + alpha) / B(alpha).

>>> antecedents = mining.Antecedents(
...   items=((0,),), extents=(0b01,), supports=(2,), num_duplicates=0)
>>> problem = make(antecedents, np.array([[0, 2], [2, 0]]))
>>> split, default_only = np.exp([
...   log_likelihood(problem, (0,)), log_likelihood(problem, ())])
>>> (1 / split).round(6).item(), (1 / default_only).round(6).item()
(9.0, 30.0)

Everything here reads private rows; nothing of it is for release.
"""

from collections.abc import Iterable, Sequence
import math
from typing import NamedTuple

import numpy as np

from privjax import _validate
from privjax.rules import mining

# Most bits of cells that a memo holds: 64 MiB, whatever the number of cells.
_MEMO_BITS = 2**29

RuleList = tuple[int, ...]  # Positions of distinct antecedents, in order.


class Problem(NamedTuple):
  """Tables that make one evaluation a few integer operations. Private.

  Attributes:
    extents: for each antecedent its cells as bits.
    widths: for each antecedent its number of items.
    counts: `[K, 2]` int64, the rows of class (-1, +1) in each cell.
    alpha: (alpha of class -1, alpha of class +1).
    log_length: for m = 0, ..., |A| the log prior of a list of m rules.
    log_width: for each width its log Poisson weight, not normalized.
    num_of_width: for each width the number of antecedents.
    log_betas: log B(N + alpha) / B(alpha) of captured cells, as bits; filled on
      the way. What it holds changes no result.
  """

  extents: tuple[int, ...]
  widths: tuple[int, ...]
  counts: np.ndarray
  alpha: tuple[float, float]
  log_length: tuple[float, ...]
  log_width: tuple[float, ...]
  num_of_width: tuple[int, ...]
  log_betas: dict[int, float]

  @property
  def num_antecedents(self) -> int:
    """|A|."""
    return len(self.extents)


def make(
  antecedents: mining.Antecedents,
  counts: np.ndarray,
  *,
  expected_length: float = 3.0,
  expected_width: float = 1.0,
  alpha: Sequence[float] = (1.0, 1.0),
) -> Problem:
  """Prepares the tables.

  Args:
    antecedents: A, mined on K cells; may be empty.
    counts: `[K, 2]` int64, the rows of class (-1, +1) in each cell. Private.
    expected_length: the Poisson mean of the number of rules, > 0.
    expected_width: the Poisson mean of the number of items, > 0.
    alpha: Dirichlet pseudo-counts of the classes (-1, +1), > 0.

  Raises:
    ValueError: naming the argument that is out of range.
  """
  _validate.shape((None, 2), counts=counts)
  _validate.positive(expected_length=expected_length)
  _validate.positive(expected_width=expected_width)
  _validate.shape((2,), alpha=alpha)
  for value in alpha:
    _validate.positive(alpha=value)
  widths = tuple(len(itemset) for itemset in antecedents.items)
  all_widths = range(max(widths, default=0) + 1)
  return Problem(
    extents=antecedents.extents,
    widths=widths,
    counts=counts,
    alpha=(float(alpha[0]), float(alpha[1])),
    log_length=_truncated_log_poisson(expected_length, len(widths)),
    log_width=_log_poisson(expected_width, all_widths),
    num_of_width=tuple(widths.count(k) for k in all_widths),
    log_betas={},
  )


def log_prior(problem: Problem, rule_list: RuleList) -> float:
  """Returns log p(d); the probabilities of all lists over A add up to 1."""
  unused = list(problem.num_of_width)
  terms = [problem.log_length[len(rule_list)]]
  log_total = _log_total(problem, unused)
  for antecedent in rule_list:
    width = problem.widths[antecedent]
    terms.append(problem.log_width[width] - log_total - math.log(unused[width]))
    unused[width] -= 1
    if not unused[width]:
      # Summed anew rather than subtracted: no rounding is left behind.
      log_total = _log_total(problem, unused)
  # Rounded once: lists that differ in the order of their terms tie exactly.
  return math.fsum(terms)


def captured(problem: Problem, rule_list: RuleList) -> list[int]:
  """Returns the cells, as bits, of each rule and, last, of the default."""
  rest, cells = (1 << len(problem.counts)) - 1, []
  for antecedent in rule_list:
    here = rest & problem.extents[antecedent]
    rest ^= here
    cells.append(here)
  cells.append(rest)
  return cells


def class_counts(problem: Problem, rule_list: RuleList) -> np.ndarray:
  """Returns `[m + 1, 2]` int64: the rows that each rule, then the default, has.

  The columns are the classes (-1, +1).
  """
  cells = captured(problem, rule_list)
  return np.stack([_counts(problem, bits) for bits in cells])


def log_likelihood(problem: Problem, rule_list: RuleList) -> float:
  """Returns log p(y | d), the class probabilities integrated out."""
  memo, terms = problem.log_betas, []
  for bits in captured(problem, rule_list):
    value = memo.get(bits)
    if value is None:
      if len(memo) * len(problem.counts) > _MEMO_BITS:
        memo.clear()
      value = _log_beta(_counts(problem, bits).tolist(), problem.alpha)
      memo[bits] = value
    terms.append(value)
  return math.fsum(terms)


def log_posterior(problem: Problem, rule_list: RuleList) -> float:
  """Returns log p(d) + log p(y | d), the posterior up to a constant."""
  return log_prior(problem, rule_list) + log_likelihood(problem, rule_list)


def _log_poisson(mean: float, values: Iterable[int]) -> tuple[float, ...]:
  """Returns log(mean**k / k!) for each k."""
  return tuple(k * math.log(mean) - math.lgamma(k + 1) for k in values)


def _truncated_log_poisson(mean: float, largest: int) -> tuple[float, ...]:
  """Returns log p(k) of a Poisson conditioned on k <= largest."""
  logs = _log_poisson(mean, range(largest + 1))
  log_total = _log_sum(logs)
  return tuple(value - log_total for value in logs)


def _log_total(problem, unused) -> float:
  """Returns the log normalizer over the widths that have unused antecedents."""
  return _log_sum(
    [value for value, count in zip(problem.log_width, unused) if count]
  )


def _log_sum(logs: Sequence[float]) -> float:
  """Returns log(sum(exp(logs))), without underflow."""
  highest = max(logs, default=0.0)
  total = sum(math.exp(value - highest) for value in logs)
  return highest + math.log(total) if total else -math.inf


def _counts(problem, bits) -> np.ndarray:
  mask = mining.from_bits(bits, len(problem.counts))
  return problem.counts[mask].sum(axis=0)


def _log_beta(counts, alpha) -> float:
  """Returns log B(counts + alpha) / B(alpha)."""
  result = math.lgamma(sum(alpha)) - math.lgamma(sum(counts) + sum(alpha))
  for count, shift in zip(counts, alpha):
    result += math.lgamma(count + shift) - math.lgamma(shift)
  return result
