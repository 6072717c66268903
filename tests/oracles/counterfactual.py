"""PrivCFS with Python sets, exact fractions and one dense forward at a time.

An undirected edge is `frozenset({i, j})` and a graph a set of those. Subsets
are sets of edges and of feature ids, so nothing here knows of padding, masks,
slots or index tricks.
"""

import fractions
import itertools
import math
from typing import NamedTuple

import numpy as np

from tests.oracles import gcn

Fraction = fractions.Fraction


class Scores(NamedTuple):
  """Lists over edge subsets, then (but for `existing`) feature subsets."""

  label: list
  flips: list
  existing: list
  gap: list
  runner_up: int


def edge_set(pairs) -> set:
  """Returns the edges that rows of node ids name."""
  return {frozenset(map(int, pair)) for pair in pairs}


def neighbors(edges: set, node: int) -> list:
  """Returns the ascending neighbors of a node."""
  return sorted(
    other for edge in edges if node in edge for other in edge - {node}
  )


def universe_pairs(edges: set, target: int, num_pairs: int, num_hops: int):
  """Returns the candidate pairs, `(v, u)` first, then `(u, w)`."""
  near = neighbors(edges, target)
  pairs = [(target, u) for u in near]
  if num_hops == 2:
    for u in near:
      for w in neighbors(edges, u):
        is_new = frozenset((u, w)) not in map(frozenset, pairs)
        if w != target and is_new:
          pairs.append((u, w))
  return pairs[:num_pairs]


def universe_features(features, kernel, target: int, num_features: int, fill):
  """Returns the candidate features, by exact squared influence, then id."""
  row = [Fraction(float(value)) for value in features[target]]
  influence = {
    dim: row[dim] ** 2 * sum(Fraction(float(w)) ** 2 for w in kernel[dim])
    for dim in range(len(row))
    if row[dim] != 0
  }
  dims = sorted(influence, key=lambda dim: (-influence[dim], dim))
  if fill:
    dims = dims[:num_features] + [d for d in range(len(row)) if row[d] == 0]
  return dims[:num_features]


def subsets(elements: list, max_size: int) -> list:
  """Returns all subsets of at most `max_size`, smaller ones first."""
  return [
    frozenset(combination)
    for size in range(max_size + 1)
    for combination in itertools.combinations(elements, size)
  ]


def target_logits(params, num_nodes, edges, features, target):
  """Returns the target's `[K]` logits of one forward on the whole graph."""
  adjacency = gcn.adjacency_matrix(num_nodes, edges)
  return gcn.logits(params, adjacency, features)[target]


def evaluate(
  params, edges, features, target, edge_subsets, feature_subsets, *, inert=False
) -> Scores:
  """Scores a support; a subset that names a non-edge deletes less."""
  num_nodes = len(features)
  base = target_logits(params, num_nodes, edges, features, target)
  order = sorted(range(len(base)), key=lambda k: (-base[k], k))
  original, runner_up = order[:2]
  label, gap = [], []
  for deleted in edge_subsets:
    label.append([])
    gap.append([])
    for masked in feature_subsets:
      edited = np.array(features, np.float64)
      for dim in masked if not inert else ():
        edited[target, dim] = 0
      out = target_logits(params, num_nodes, edges - deleted, edited, target)
      label[-1].append(min(range(len(out)), key=lambda k: (-out[k], k)))
      others = [out[k] for k in range(len(out)) if k != original]
      gap[-1].append(out[original] - max(others))
  return Scores(
    label=label,
    flips=[[value != original for value in row] for row in label],
    existing=[len(deleted & edges) for deleted in edge_subsets],
    gap=gap,
    runner_up=runner_up,
  )


def denominator(weights, k_max: int, max_edges: int) -> int:
  """Returns the least D that makes every gated utility a multiple of 1 / D."""
  w_flip, w_compact, w_plausible = weights
  values = [w_compact, w_flip]
  values += [
    w_flip + w_compact * (1 - Fraction(s, k_max)) for s in range(k_max)
  ]
  values += [w_plausible * Fraction(1, n) for n in range(1, max_edges + 1)]
  return math.lcm(*(value.denominator for value in values))


def utility(
  *,
  kind: str,
  weights: tuple,
  k_max: int,
  num_pairs: int,
  num_features: int,
  existing: int,
  flips: bool,
  gap: float,
  empty_gap: float,
  unit: Fraction,
) -> Fraction:
  """Returns the exact utility of one candidate.

  Args:
    kind: 'gated' or 'soft'.
    weights: exact (w_flip, w_compact, w_plausible).
    k_max: most elements that a candidate may name.
    num_pairs: pairs named.
    num_features: features named.
    existing: named pairs that are edges.
    flips: whether the prediction changes.
    gap: after the intervention.
    empty_gap: with no intervention.
    unit: 1 / D, for the soft utility.
  """
  w_flip, w_compact, w_plausible = weights
  size = num_pairs + num_features
  if size == 0:
    return w_compact
  if flips:
    plausible = Fraction(existing, num_pairs) if num_pairs else Fraction(0)
    compact = 1 - Fraction(size, k_max)
    return w_flip + w_compact * compact + w_plausible * plausible
  if kind == 'gated' or empty_gap == 0:
    return Fraction(0)
  progress = 1 - Fraction(gap) / Fraction(empty_gap)
  progress = min(max(progress, Fraction(0)), Fraction(1))
  return unit * max(math.floor(progress * (w_compact / unit - 1)), 0)


def utilities(scores, edge_subsets, feature_subsets, **settings) -> list:
  """Returns `utility` of every candidate of a support."""
  return [
    [
      utility(
        num_pairs=len(pairs),
        num_features=len(dims),
        existing=scores.existing[a],
        flips=scores.flips[a][b],
        gap=scores.gap[a][b],
        empty_gap=scores.gap[0][0],
        **settings,
      )
      for b, dims in enumerate(feature_subsets)
    ]
    for a, pairs in enumerate(edge_subsets)
  ]


def law(utility_values: list, epsilon, sensitivity) -> list:
  """Returns the exponential mechanism over a flat list of exact utilities.

  Exponents are exact fractions, taken relative to the largest one.
  """
  factor = Fraction(epsilon) / (2 * Fraction(sensitivity))
  best = max(utility_values)
  weights = [math.exp(factor * (value - best)) for value in utility_values]
  total = math.fsum(weights)
  return [weight / total for weight in weights]


def metrics(law_values, utility_values, scores, sizes) -> dict:
  """Returns every metric of one law over `[A][B]` lists, by plain loops."""
  result = dict.fromkeys(
    ('ceiling', 'valid_cf_rate', 'targeted_success', 'size'), 0.0
  )
  result |= {'collision': 0.0, 'expected_utility': 0.0}
  best = 0.0
  for a, row in enumerate(law_values):
    for b, prob in enumerate(row):
      value = float(utility_values[a][b])
      best = max(best, value)
      result['expected_utility'] += prob * value
      result['collision'] += prob * prob
      result['size'] += prob * sizes[a][b]
      if scores.flips[a][b]:
        result['ceiling'] = 1.0
        result['valid_cf_rate'] += prob
        if scores.label[a][b] == scores.runner_up:
          result['targeted_success'] += prob
  result['empty_rate'] = law_values[0][0]
  result['regret'] = best - result['expected_utility']
  nonempty = 1 - law_values[0][0]
  result['nonempty_valid_rate'] = result['valid_cf_rate'] / nonempty
  return result
