"""Which candidate rules to keep: an integer program, or a greedy cover.

The program chooses z in {0, 1}^R to maximize

  rows whose weighted majority vote is their label - penalty * |z|

such that every distinct row is covered by `min(coverage, rules available)`
rules. Rows that the same rules cover and that share a label are one cell. A
tied vote, no rule included, gives the default class.

>>> problem = Problem(
...   applies=np.eye(2, dtype=bool), counts=np.array([[5, 0], [0, 3]]),
...   consequent=np.array([-1, 1]), weight=np.array([1, 1]),
...   lengths=np.array([1, 1]), default=-1, coverage=1)
>>> select(problem).chosen.tolist(), select(problem).status
([0, 1], 'optimal')

The limits are a number of nodes and a gap, never a time, so that the answer
does not depend on the load of a machine. No answer of the solver is believed:
coverage and agreement are recomputed in integers. What comes in and goes out
is a function of private rows: NOT COVERED.
"""

import fractions
from typing import Literal, NamedTuple

import numpy as np
from scipy import optimize
from scipy import sparse

from privjax import _validate

Status = Literal['optimal', 'node_limit', 'greedy', 'empty']
# In rows per rule. A fraction, so that objectives compare exactly.
PENALTY = fractions.Fraction(1, 2)
MAX_GAP = 1e-4
# The solver's own tolerance on integers, with a margin.
_INTEGRAL = 1e-5


class Problem(NamedTuple):
  """What a selection is made of. Not for release.

  Attributes:
    applies: `[U, R]` bool, whether a rule covers a distinct row.
    counts: `[U, 2]` int64, rows of label -1 and +1 behind a distinct row.
    consequent: `[R]` int64 in {-1, +1}.
    weight: `[R]` int64 >= 0, votes of a rule.
    lengths: `[R]` int64, conditions of a rule; only the greedy cover uses it.
    default: -1 or +1, the class of a tied vote.
    coverage: >= 0, the rules that must cover a row, if there are so many.
  """

  applies: np.ndarray
  counts: np.ndarray
  consequent: np.ndarray
  weight: np.ndarray
  lengths: np.ndarray
  default: int
  coverage: int


class Selection(NamedTuple):
  """The rules kept. Not for release.

  Attributes:
    chosen: `[K]` int64 positions, increasing.
    agreement: rows whose vote is their label.
    objective: `agreement - PENALTY * K`, exact.
    status: 'optimal' within the gap, 'node_limit', 'greedy' where no verified
      answer of the solver is as good, or 'empty' where there is no candidate.
  """

  chosen: np.ndarray
  agreement: int
  objective: fractions.Fraction
  status: Status


def select(problem: Problem, *, node_limit: int = 10_000) -> Selection:
  """Solves the program, and falls back on the greedy cover.

  Args:
    problem: candidates and cells.
    node_limit: nodes of the solver's search, >= 0; at 0 only the greedy cover
      runs.
  """
  _validate.integer(0, node_limit=node_limit)
  problem = merged(problem)
  if not problem.applies.shape[1]:
    return _selection(problem, np.zeros(0, np.int64), 'empty')
  greedy = _selection(problem, greedy_cover(problem), 'greedy')
  if node_limit == 0:
    return greedy
  solved = _solve(problem, node_limit)
  if solved is None or solved.objective < greedy.objective:
    return greedy
  return solved


def merged(problem: Problem) -> Problem:
  """Merges distinct rows that the same rules cover; changes no objective."""
  applies, inverse = np.unique(problem.applies, axis=0, return_inverse=True)
  counts = np.zeros((len(applies), 2), np.int64)
  np.add.at(counts, inverse.ravel(), problem.counts)
  return problem._replace(applies=applies, counts=counts)


def agreement(problem: Problem, chosen: np.ndarray) -> int:
  """Returns the number of rows whose vote is their label, in integers."""
  votes = problem.applies[:, chosen].astype(np.int64) @ (
    problem.consequent[chosen] * problem.weight[chosen]
  )
  is_positive = np.where(votes == 0, problem.default > 0, votes > 0)
  right = np.where(is_positive, problem.counts[:, 1], problem.counts[:, 0])
  return int(right.sum())


def is_covering(problem: Problem, chosen: np.ndarray) -> bool:
  """Returns whether every row has the rules that the constraint asks for."""
  covered = problem.applies[:, chosen].sum(axis=1)
  return bool((covered >= _required(problem)).all())


def greedy_cover(problem: Problem) -> np.ndarray:
  """Covers rows by rules that agree with them, most uncovered rows first.

  A row counts until it has the rules that the constraint asks for. Ties go to
  the rule that helps more distinct rows of either label, then to the shorter,
  then to the first; so does the rest, where no rule that agrees is left.

  Returns:
    `[K]` int64 positions, increasing, that satisfy the constraint.
  """
  agreeing = np.where(
    problem.consequent > 0, problem.counts[:, [1]], problem.counts[:, [0]]
  )
  required = _required(problem)
  chosen = np.zeros(len(problem.consequent), bool)
  while (required > 0).any():
    helps = problem.applies & (required > 0)[:, None] & ~chosen
    gain = (helps * agreeing).sum(axis=0)
    rows = helps.sum(axis=0)
    best = np.lexsort((problem.lengths, -rows, -gain))[0]
    chosen[best] = True
    required = required - problem.applies[:, best]
  return np.flatnonzero(chosen)


def _required(problem: Problem) -> np.ndarray:
  return np.minimum(problem.coverage, problem.applies.sum(axis=1))


def _selection(
  problem: Problem, chosen: np.ndarray, status: Status
) -> Selection:
  right = agreement(problem, chosen)
  return Selection(chosen, right, right - PENALTY * len(chosen), status)


def _solve(problem: Problem, node_limit: int) -> Selection | None:
  """Returns the solver's answer if integers confirm it, else `None`."""
  num_rules = problem.applies.shape[1]
  rows, labels = np.nonzero(problem.counts)
  matrix, least = _constraints(problem, rows, 2 * labels - 1)
  cost = np.concatenate(
    [np.full(num_rules, float(PENALTY)), -problem.counts[rows, labels]]
  )
  result = optimize.milp(
    cost,
    integrality=np.ones(len(cost)),
    bounds=optimize.Bounds(0, 1),
    constraints=(matrix, least, np.full(len(least), np.inf)),
    options={'node_limit': node_limit, 'mip_rel_gap': MAX_GAP},
  )
  # SciPy calls a search that its node limit stopped 4 ("other") and not 1, so
  # the status tells no more than whether the answer is optimal.
  if result.x is None:
    return None
  chosen = verified(problem, result.x[:num_rules], -result.fun)
  if chosen is None:
    return None
  status = 'optimal' if result.status == 0 else 'node_limit'
  return _selection(problem, chosen, status)


def verified(
  problem: Problem, solution: np.ndarray, claimed: float
) -> np.ndarray | None:
  """Returns the rules of a solver's answer if it is what it claims to be.

  Args:
    problem: what was solved.
    solution: `[R]` float64, the solver's z.
    claimed: the objective that the solver reports for it.

  Returns:
    `[K]` int64 positions, or `None` if z is not 0/1, a row is not covered, or
    the objective, recomputed in integers, is below the claim.
  """
  if not np.all(np.minimum(np.abs(solution), np.abs(solution - 1)) < _INTEGRAL):
    return None
  chosen = np.flatnonzero(solution > 0.5)
  objective = _selection(problem, chosen, 'optimal').objective
  # Objectives are multiples of one half.
  if not is_covering(problem, chosen) or objective < claimed - 0.25:
    return None
  return chosen


def _constraints(
  problem: Problem, rows: np.ndarray, labels: np.ndarray
) -> tuple[sparse.csr_array, np.ndarray]:
  """Returns A and b of A (z, a) >= b: votes of the cells, then coverage.

  a = 1 says that a cell's vote is its label: at least one vote ahead, or none
  where the label is the default. At a = 0 the constraint says nothing.
  """
  signed = (
    problem.applies[rows].astype(np.int64)
    * (problem.consequent * problem.weight)
    * labels[:, None]
  )
  ahead = (labels != problem.default).astype(np.int64)
  slack = ahead - np.minimum(signed, 0).sum(axis=1)
  votes = sparse.hstack(
    [sparse.csr_array(signed), sparse.diags_array(-slack, dtype=np.int64)]
  )
  required = _required(problem)
  need = required > 0
  cover = sparse.hstack(
    [
      sparse.csr_array(problem.applies[need].astype(np.int64)),
      sparse.csr_array((int(need.sum()), len(rows)), dtype=np.int64),
    ]
  )
  matrix = sparse.csr_array(sparse.vstack([votes, cover]))
  return matrix, np.concatenate([ahead - slack, required[need]])
