"""Exact posterior of rule lists, by enumeration in rational numbers."""

from fractions import Fraction
import itertools
import math

import numpy as np


def all_lists(num_antecedents):
  """Returns every sequence of distinct antecedents."""
  return [
    rule_list
    for length in range(num_antecedents + 1)
    for rule_list in itertools.permutations(range(num_antecedents), length)
  ]


def _poisson(mean, k):
  return Fraction(mean) ** k / math.factorial(k)


def prior(rule_list, widths, *, expected_length=3, expected_width=1):
  """Returns p(d) from its generative definition."""
  total = sum(_poisson(expected_length, k) for k in range(len(widths) + 1))
  result = _poisson(expected_length, len(rule_list)) / total
  unused = set(range(len(widths)))
  for antecedent in rule_list:
    available = {widths[a] for a in unused}
    norm = sum(_poisson(expected_width, width) for width in available)
    width = widths[antecedent]
    same = [a for a in unused if widths[a] == width]
    result *= _poisson(expected_width, width) / norm / len(same)
    unused.remove(antecedent)
  return result


def likelihood(rule_list, holds, labels, *, alpha=(1, 1)):
  """Returns p(y | d), a row at a time: each is drawn from its rule's urn.

  Args:
    rule_list: the list.
    holds: `[n, M]` bool, whether an antecedent holds in a row.
    labels: `[n]` in {-1, +1}.
    alpha: pseudo-counts of (-1, +1), exact.
  """
  urns = [list(map(Fraction, alpha)) for _ in range(len(rule_list) + 1)]
  result = Fraction(1)
  for row, label in zip(holds, labels):
    matching = [i for i, a in enumerate(rule_list) if row[a]]
    urn = urns[matching[0] if matching else -1]
    result *= urn[int(label > 0)] / sum(urn)
    urn[int(label > 0)] += 1
  return result


def posterior(holds, widths, labels, *, alpha=(1, 1), **rates):
  """Returns {list: p(d | y)} over all lists, exact."""
  weights = {
    d: prior(d, widths, **rates) * likelihood(d, holds, labels, alpha=alpha)
    for d in all_lists(len(widths))
  }
  total = sum(weights.values())
  return {d: weight / total for d, weight in weights.items()}


def holds(binary, antecedents):
  """Returns `[n, M]` bool: whether all items of an antecedent hold in a row."""
  binary = np.asarray(binary).astype(bool)
  return np.stack([binary[:, list(a)].all(axis=1) for a in antecedents], axis=1)
