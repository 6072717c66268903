"""Checks that return what they found, so that mutants can be fed to them.

`dp_violations` tests a release pipeline for differential privacy and nothing
else; `exactness_violations` tests an evaluator against the oracle. A mutant of
one kind may well pass the check of the other kind.
"""

from collections.abc import Callable, Iterable
import fractions
import itertools
from typing import NamedTuple

import numpy as np
import scipy.sparse

from privjax import counterfactual
from privjax import graphs
from privjax.counterfactual import factored
from tests.counterfactual import cases

Fraction = fractions.Fraction

# Rounding of float64 log probabilities: a ratio of two sums of a few hundred
# exponentials is good to about 1e-13.
RATIO_SLACK = 1e-9
GAP_TOLERANCE = 1e-11


class Release(NamedTuple):
  """What one pipeline does on one graph, in the terms of the guarantee.

  Attributes:
    support: what each of the S candidates of positive probability does.
    utility: `[S]` int64, in units of 1 / denominator.
    log_probs: `[S]` float64.
    denominator: D.
    stated_sensitivity: the bound that the pipeline claims for the utility.
  """

  support: tuple
  utility: np.ndarray
  log_probs: np.ndarray
  denominator: int
  stated_sensitivity: Fraction


class Change(NamedTuple):
  """The largest changes over the neighbors that were tried."""

  utility: Fraction
  log_ratio: float


Pipeline = Callable[
  [
    cases.Case,
    graphs.PrivateGraph,
    counterfactual.PrivCFSConfig,
    Fraction,
  ],
  Release,
]


def release(
  candidates: counterfactual.CandidateSet,
  utility: np.ndarray,
  log_probs: np.ndarray,
  config: counterfactual.PrivCFSConfig,
) -> Release:
  """Keeps the candidates of positive probability, by what they do."""
  positive = np.isfinite(log_probs)
  names = _names(candidates)
  return Release(
    support=tuple(names[index] for index in np.flatnonzero(positive)),
    utility=utility[positive],
    log_probs=log_probs[positive],
    denominator=config.denominator,
    stated_sensitivity=config.sensitivity,
  )


def _names(candidates: counterfactual.CandidateSet) -> list[tuple]:
  """Returns the pairs and features of all A x B candidates, flat."""
  universe = candidates.universe
  choose = lambda items, rows: [tuple(items[row].ravel()) for row in rows]
  return list(
    itertools.product(
      choose(universe.pairs, candidates.edge_subsets),
      choose(universe.features, candidates.feature_subsets),
    )
  )


def privjax_pipeline(case, private, config, epsilon) -> Release:
  """The library's release: public support, private score, exact law."""
  scored = score(case, private, config)
  log_probs = counterfactual.log_law(scored, epsilon)
  return release(scored.candidates, scored.utility, log_probs, config)


def score(
  case: cases.Case,
  private: graphs.PrivateGraph,
  config: counterfactual.PrivCFSConfig,
  evaluator: Callable[..., counterfactual.CandidateEvaluation] | None = None,
) -> counterfactual.ScoredSupport:
  """Scores the case's public support on a graph that may not be its own."""
  return counterfactual.score(
    case.model,
    private,
    case.features,
    case.support(config),
    config,
    evaluator=evaluate_factored if evaluator is None else evaluator,
  )


def neighbors(private: graphs.PrivateGraph) -> list[graphs.PrivateGraph]:
  """Returns every graph that differs in one edge."""
  return [
    graphs.PrivateGraph(graphs.toggle_pair(private.graph, pair))
    for pair in cases.ALL_PAIRS
  ]


def dp_violations(
  pipeline: Pipeline,
  problems: Iterable[cases.Case],
  config: counterfactual.PrivCFSConfig,
  epsilon: Fraction,
) -> tuple[list[str], Change]:
  """Compares each graph with all its edge-flip neighbors, in both directions.

  Returns:
    What is violated, and the largest changes seen.
  """
  found, largest = [], Change(Fraction(0), 0.0)
  for index, case in enumerate(problems):
    own = pipeline(case, case.private, config, epsilon)
    for pair, graph in zip(cases.ALL_PAIRS, neighbors(case.private)):
      other = pipeline(case, graph, config, epsilon)
      where = f'case {index}, target {case.target}, pair {pair}'
      if own.support != other.support:
        found.append(f'support: differs at {where}')
        continue
      change = _change(own, other)
      if change.utility > own.stated_sensitivity:
        found.append(f'utility: changes by {change.utility} at {where}')
      if change.log_ratio > float(epsilon) + RATIO_SLACK:
        found.append(f'ratio: exp({change.log_ratio:.4f}) at {where}')
      largest = Change(*map(max, largest, change))
  return found, largest


def _change(own: Release, other: Release) -> Change:
  units = np.abs(own.utility - other.utility).max()
  log_ratio = np.abs(own.log_probs - other.log_probs).max()
  return Change(Fraction(int(units), own.denominator), float(log_ratio))


def exactness_violations(
  evaluator: Callable[..., counterfactual.CandidateEvaluation],
  problems: dict[str, cases.Case],
  config: counterfactual.PrivCFSConfig = cases.CONFIG,
) -> list[str]:
  """Compares an evaluator with the oracle on named problems.

  Labels, flips and counts must be equal and gaps agree to `GAP_TOLERANCE`.
  """
  found = []
  for name, case in problems.items():
    candidates = case.support(config)
    evaluation = evaluator(
      case.model,
      case.private,
      case.features,
      candidates,
      feature_masks=config.feature_masks,
    )
    expected = case.scores(config)
    valid = lambda array, c=candidates: cases.valid_rows(array, c)
    if not np.array_equal(valid(evaluation.label), expected.label):
      found.append(f'label: {name}')
    if not np.array_equal(valid(evaluation.flips), expected.flips):
      found.append(f'flips: {name}')
    existing = evaluation.existing_edges[candidates.edge_valid]
    if existing.tolist() != expected.existing:
      found.append(f'existing: {name}')
    difference = np.abs(valid(evaluation.gap) - expected.gap).max()
    if not difference <= GAP_TOLERANCE:
      found.append(f'gap: {name} by {difference:.2e}')
    if int(evaluation.runner_up_label) != expected.runner_up:
      found.append(f'runner_up: {name}')
  return found


def evaluate_factored(*args, **kwargs) -> counterfactual.CandidateEvaluation:
  """`evaluate_factored` at the one capacity that fits all cases."""
  return factored.evaluate_factored(*args, capacity=cases.NEIGHBORS, **kwargs)


def evaluate_subgraph(*args, **kwargs) -> counterfactual.CandidateEvaluation:
  """`evaluate_subgraph` at the one capacity that fits all cases."""
  return counterfactual.evaluate_subgraph(
    *args, capacity=cases.CAPACITY, **kwargs
  )


EVALUATORS = {
  'factored': evaluate_factored,
  'subgraph': evaluate_subgraph,
  'full_graph': counterfactual.evaluate_full_graph,
}


# (private pairs, snapshot pairs or None for the same, target)
_COMPLETE = cases.ALL_PAIRS
_PATH = [(i, i + 1) for i in range(7)]
_RING = [*_PATH, (0, 7)]
_STAR = [(0, i) for i in range(1, 8)]
_TRIANGLE = [(0, 1), (0, 2), (1, 2)]


def named_cases() -> dict[str, cases.Case]:
  """Returns the degenerate graphs, by name."""
  make = cases.make
  return {
    'isolated target': make([(1, 2), (2, 3)], target=0),
    'isolated target, pairs disclosed': make([(1, 2)], snapshot=_STAR),
    'no edge at all': make([], target=3),
    'degree 1': make(_PATH, target=0),
    'path': make(_PATH, target=3),
    'ring': make(_RING, target=5),
    'star center': make(_STAR, target=0),
    'star leaf': make(_STAR, target=4),
    'triangle': make(_TRIANGLE, target=0),
    'triangles': make([*_TRIANGLE, (0, 3), (2, 3), (1, 4)], target=0),
    'complete': make(_COMPLETE, target=2),
    'complete, little disclosed': make(
      _COMPLETE, snapshot=[(2, 5), (2, 7)], target=2
    ),
    'disclosed pairs are not edges': make(
      [(0, 1), (1, 2)], snapshot=[(0, 1), (0, 2), (0, 3), (0, 4)], target=0
    ),
    'no disclosed pair': make(_RING, snapshot=[(1, 2)], target=5),
    'no nonzero feature': make(
      _RING,
      target=5,
      features=_without(cases.make(_RING).features, [5]),
    ),
    'no feature anywhere': make(
      _RING,
      target=5,
      features=_without(cases.make(_RING).features, slice(None)),
    ),
    'tie of all classes': _tied(make([*_STAR, (1, 2)], target=0)),
  }


def _without(features, nodes) -> scipy.sparse.csr_array:
  """Returns the features with no entry in some rows."""
  dense = features.toarray()
  dense[nodes] = 0
  return scipy.sparse.csr_array(dense)


def _tied(case: cases.Case) -> cases.Case:
  """Makes the logits of the last two classes equal, bit for bit, and largest.

  One hidden unit carries them, so no order of summation can part them.
  """
  hidden, output = case.params['hidden'], case.params['output']
  kernel = np.zeros_like(output['kernel'])
  kernel[0, 1:] = 1
  return case._replace(
    params={
      'hidden': {
        'kernel': abs(hidden['kernel']),
        'bias': np.full_like(hidden['bias'], 0.5),
      },
      'output': {'kernel': kernel, 'bias': np.zeros_like(output['bias'])},
    },
    features=abs(case.features),
  )
