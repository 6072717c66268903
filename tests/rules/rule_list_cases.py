"""Tiny spaces of rule lists, and exact checks on them."""

import itertools
import math
from typing import NamedTuple

import numpy as np

from privjax.rules import items as items_lib
from privjax.rules import mining
from privjax.rules import rule_list_posterior as posterior
from tests.oracles import rule_list as oracle

ITEMS = items_lib.Items(names=('a', 'b', 'c'), features=('a', 'b', 'c'))


class Case(NamedTuple):
  """A tiny problem and what its oracle needs."""

  problem: posterior.Problem
  holds: np.ndarray
  widths: tuple[int, ...]
  labels: np.ndarray
  alpha: tuple
  expected_length: float
  expected_width: float

  @property
  def lists(self):
    return oracle.all_lists(len(self.widths))

  def exact(self):
    """Returns `[L]` the posterior of `lists`."""
    law = oracle.posterior(
      self.holds,
      self.widths,
      self.labels,
      alpha=self.alpha,
      expected_length=self.expected_length,
      expected_width=self.expected_width,
    )
    return np.array([float(law[d]) for d in self.lists])


def make(
  antecedents=((0,), (1,), (0, 1)),
  *,
  alpha=(1, 1),
  expected_length=3,
  expected_width=1,
  seed=0,
):
  """Returns a case of 14 rows over the antecedents."""
  rng = np.random.default_rng(seed)
  binary = rng.integers(0, 2, (14, 3))
  binary[0] = 1  # Every antecedent holds somewhere.
  labels = np.where(rng.random(14) < 0.2 + 0.6 * binary[:, 0], 1, -1)
  cells = mining.compress(binary, labels, ITEMS)
  holds = oracle.holds(cells.binary, antecedents)
  mined = mining.Antecedents(
    items=tuple(antecedents),
    extents=tuple(mining.to_bits(column) for column in holds.T),
    supports=tuple((cells.counts.sum(axis=1) @ holds).tolist()),
    num_duplicates=0,
  )
  problem = posterior.make(
    mined,
    cells.counts,
    alpha=alpha,
    expected_length=expected_length,
    expected_width=expected_width,
  )
  return Case(
    problem=problem,
    holds=oracle.holds(binary, antecedents),
    widths=tuple(map(len, antecedents)),
    labels=labels,
    alpha=alpha,
    expected_length=expected_length,
    expected_width=expected_width,
  )


CASES = {
  'three': make(),
  'skewed': make(
    ((0,), (0, 1), (1, 2)),
    alpha=(0.5, 2),
    expected_length=0.5,
    expected_width=2,
    seed=1,
  ),
}


def prior_error(log_prior_fn, case):
  """Returns by how much the prior probabilities miss a total of 1."""
  logs = [log_prior_fn(case.problem, d) for d in case.lists]
  return abs(math.fsum(map(math.exp, logs)) - 1)


def posterior_error(log_posterior_fn, case):
  """Returns the largest log error, after the best constant is taken off."""
  logs = [log_posterior_fn(case.problem, d) for d in case.lists]
  differences = np.array(logs) - np.log(case.exact())
  return np.ptp(differences)


def kernel(propose_fn, case):
  """Returns `[L, L]` the chain's transition matrix, exactly.

  A proposal is a function of three uniform numbers that only splits [0, 1) into
  equal parts, so the midpoints of a grid that every number of parts divides
  give its law.
  """
  size = len(case.widths)
  number = {d: i for i, d in enumerate(case.lists)}
  midpoints = lambda parts: [(k + 0.5) / parts for k in range(parts)]
  grid = list(
    itertools.product(
      midpoints(6),
      midpoints(math.lcm(*range(1, size + 1))),
      midpoints(math.lcm(*range(1, size + 2))),
    )
  )
  logs = np.log(case.exact())
  matrix = np.zeros((len(number), len(number)))
  for current, row in number.items():
    for step in grid:
      proposal, log_ratio = propose_fn(current, size, step)
      column = number[proposal]
      log_accept = min(0.0, logs[column] - logs[row] + log_ratio)
      matrix[row, column] += math.exp(log_accept) / len(grid)
      matrix[row, row] += -math.expm1(log_accept) / len(grid)
  return matrix


def balance_error(propose_fn, case):
  """Returns the largest violation of detailed balance and of pi P = pi."""
  exact, matrix = case.exact(), kernel(propose_fn, case)
  flow = exact[:, None] * matrix
  return max(np.abs(flow - flow.T).max(), np.abs(exact @ matrix - exact).max())
