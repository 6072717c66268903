"""Bayesian rule lists (Letham et al. 2015), as an explanation of labels.

Paper, Sec. 3.3: a rule list that is fitted to the labels a classifier gives is
a readable account of the classifier. Antecedents are mined, chains sample lists
from the posterior, and one visited list stands for all.

>>> from privjax import prng
>>> items = items_lib.Items(names=('a', 'b'), features=('a', 'b'))
>>> binary = np.array([[0, 0], [0, 1], [1, 0], [1, 1]] * 20)
>>> labels = np.where(binary[:, 0] == 1, 1, -1)
>>> fitted = fit(binary, labels, items, key=prng.key(0), num_iterations=200)
>>> fitted.status, fitted.antecedents
('sampled', ((0,),))
>>> rule_set.predict(fitted.rules, np.array([[0, 1], [1, 1]])).tolist()
[-1, 1]

Rows and labels are private. Antecedents, counts and the list read them: the
result is NOT differentially private, whatever made the labels. It is
post-processing only where rows and labels are themselves releases.
"""

from collections.abc import Sequence
import math
from typing import NamedTuple

import numpy as np

from privjax import _validate
from privjax import prng
from privjax import types
from privjax.rules import items as items_lib
from privjax.rules import mining
from privjax.rules import rule_list_chain
from privjax.rules import rule_list_posterior as posterior
from privjax.rules import rule_set

STATUSES = ('sampled', 'constant-labels', 'no-antecedents')


class RuleListFit(NamedTuple):
  """A fitted rule list and how it came about. Not for release.

  Attributes:
    rules: ordered, over the items; probabilities are posterior means.
    status: 'sampled'; or why the list is the default alone, without sampling:
      'constant-labels' (one class) or 'no-antecedents' (nothing is frequent,
      or only what holds in every row).
    antecedents: for each rule its columns, in order.
    class_counts: `[R + 1, 2]` int64, the rows of class (-1, +1) that each rule
      and, last, the default decides.
    log_posterior: float, of the list, up to a constant.
    mean_length: posterior mean of the number of rules, over samples.
    mean_width: posterior mean of the number of items, over all rules of all
      samples; 0 without any.
    acceptance: the part of proposals that was accepted.
    num_antecedents: |A|.
    num_duplicates: see `mining.Antecedents`.
    num_visited: distinct lists after burn-in, in all chains.
    trace: `[num_chains, num_iterations]` float64 log posterior, with burn-in;
      empty without sampling.
  """

  rules: rule_set.RuleSet
  status: str
  antecedents: tuple[tuple[int, ...], ...]
  class_counts: np.ndarray
  log_posterior: float
  mean_length: float
  mean_width: float
  acceptance: float
  num_antecedents: int
  num_duplicates: int
  num_visited: int
  trace: np.ndarray


def fit(
  binary: types.Array,
  labels: types.Array,
  items: items_lib.Items,
  *,
  key: types.KeyArray,
  min_support: float = 0.05,
  max_items: int = 2,
  expected_length: float = 3.0,
  expected_width: float = 1.0,
  alpha: Sequence[float] = (1.0, 1.0),
  num_chains: int = 3,
  num_iterations: int = 10_000,
) -> RuleListFit:
  """Fits a rule list to private rows and labels. Not differentially private.

  The first half of every chain is burn-in. The list returned is the one of
  highest posterior among the visited lists that are near the posterior mean:
  with m rules, floor(mean_length) <= m <= ceil(mean_length), and of a mean
  width between floor and ceil of mean_width (a list without rules has none and
  passes). If no visited list is, the best of all visited. Ties go to the
  shorter list, then to the lower antecedents.

  Args:
    binary: `[n, C]` of 0 and 1, n >= 1.
    labels: `[n]` in {-1, +1}: those of a classifier, or true ones.
    items: the C items.
    key: folded by name, not consumed. The result is a function of it.
    min_support: least part of the rows that an antecedent holds in, in (0, 1].
    max_items: most items in one antecedent, >= 1.
    expected_length: prior mean of the number of rules.
    expected_width: prior mean of the number of items of a rule.
    alpha: prior pseudo-counts of the classes (-1, +1).
    num_chains: >= 1.
    num_iterations: steps of each chain, >= 2.

  Raises:
    ValueError: naming the argument that is out of range.
  """
  _validate.integer(1, num_chains=num_chains)
  _validate.integer(2, num_iterations=num_iterations)
  cells = mining.compress(binary, labels, items)
  mined = mining.mine(
    cells, items, min_support=min_support, max_items=max_items
  )
  problem = posterior.make(
    mined,
    cells.counts,
    expected_length=expected_length,
    expected_width=expected_width,
    alpha=alpha,
  )
  status, chains = 'sampled', []
  if np.any(cells.counts.sum(axis=0) == 0):
    status = 'constant-labels'
  elif not mined.items:
    status = 'no-antecedents'
  else:
    chains = _run_chains(problem, key, num_chains, num_iterations)
  return _summarize(problem, mined, items, status, chains)


def point_estimate(
  problem: posterior.Problem,
  log_posteriors: dict[posterior.RuleList, float],
  *,
  mean_length: float,
  mean_width: float,
) -> posterior.RuleList:
  """Returns the visited list that stands for the posterior, as `fit` says.

  Args:
    problem: of the chains.
    log_posteriors: of the visited lists, at least one.
    mean_length: posterior mean of the number of rules.
    mean_width: posterior mean of the number of items.
  """
  near = [
    rule_list
    for rule_list in log_posteriors
    if _is_between(len(rule_list), mean_length)
    and (not rule_list or _is_between(_width(problem, rule_list), mean_width))
  ]
  return min(
    near or log_posteriors,
    key=lambda d: (-log_posteriors[d], len(d), d),
  )


def _run_chains(problem, key, num_chains, num_iterations):
  cache, chains = {}, []
  for number in range(num_chains):
    name = ('bayesian_rule_list', number)
    start = rule_list_chain.draw_start(
      problem, prng.stream(key, *name, 'start')
    )
    steps = rule_list_chain.uniforms(
      prng.stream(key, *name, 'steps'), (num_iterations, 4)
    )
    chains.append(rule_list_chain.run(problem, start, steps, cache))
  return chains


def _summarize(problem, mined, items, status, chains) -> RuleListFit:
  samples, visited = [], {}
  for chain in chains:
    burn_in = len(chain.states) // 2
    samples += chain.states[burn_in:]
    visited |= zip(chain.states[burn_in:], chain.log_posterior[burn_in:])
  lengths = [len(rule_list) for rule_list in samples]
  widths = [problem.widths[a] for rule_list in samples for a in rule_list]
  mean_length = sum(lengths) / max(len(lengths), 1)
  mean_width = sum(widths) / max(len(widths), 1)
  best = ()
  if visited:
    best = point_estimate(
      problem, visited, mean_length=mean_length, mean_width=mean_width
    )
  num_steps = sum(len(chain.states) for chain in chains)
  num_accepted = sum(chain.num_accepted for chain in chains)
  antecedents = tuple(mined.items[a] for a in best)
  class_counts = posterior.class_counts(problem, best)
  return RuleListFit(
    rules=_rules(antecedents, class_counts, problem.alpha, items),
    status=status,
    antecedents=antecedents,
    class_counts=class_counts,
    log_posterior=posterior.log_posterior(problem, best),
    mean_length=mean_length,
    mean_width=mean_width,
    acceptance=num_accepted / max(num_steps, 1),
    num_antecedents=problem.num_antecedents,
    num_duplicates=mined.num_duplicates,
    num_visited=len(visited),
    trace=np.array([chain.log_posterior for chain in chains]),
  )


def _rules(antecedents, class_counts, alpha, items) -> rule_set.RuleSet:
  """Returns the list as thresholds: an item holds where its column is > 1/2."""
  lower = np.full((len(antecedents), len(items.names)), -np.inf)
  for rule, columns in enumerate(antecedents):
    lower[rule, list(columns)] = 0.5
  pseudo_counts = class_counts + np.array(alpha)[None, :]
  probability = pseudo_counts[:, 1] / pseudo_counts.sum(axis=1)
  # At 1/2 exactly: -1 for the default, as the argmax of equal entries, and the
  # default's class for a rule.
  default = 1 if probability[-1] > 0.5 else -1
  likelier = np.where(probability > 0.5, 1, -1)
  consequent = np.where(probability == 0.5, default, likelier)[:-1]
  return rule_set.make(
    lower,
    np.full(lower.shape, np.inf),
    consequent,
    names=items.names,
    default=default,
    ordered=True,
    probability=probability[:-1],
    default_probability=float(probability[-1]),
  )


def _is_between(value: float, mean: float) -> bool:
  return math.floor(mean) <= value <= math.ceil(mean)


def _width(problem, rule_list) -> float:
  return sum(problem.widths[a] for a in rule_list) / len(rule_list)
