"""Utilities as exact integers over a public denominator (PrivCFS, eq. 8).

  gated:  flip          w_flip + w_compact (1 - s / k_max) + w_plausible plaus
          no flip       0
          empty set     w_compact
  soft:   no flip       floor(r (D w_compact - 1)) / D

with s the number of named elements, plaus the share of named pairs that are
edges, r = clip(1 - gap(S) / gap(empty), 0, 1), D the denominator.

**Range lemma.** Whatever the flip bits and gaps are, a utility lies in
[0, u_max]. So the exponential mechanism's guarantee does not depend on GNN
rounding, on truncation of a hub by a public rule, or on how the original label
is recomputed per graph: any score in range keeps it.

>>> config = UtilityConfig()
>>> str(config.sensitivity_bound(max_edges=2, max_features=3))
'1'
>>> tight = UtilityConfig(sensitivity='tight')
>>> str(tight.sensitivity_bound(max_edges=2, max_features=3))
'24/25'
"""

import dataclasses
import fractions
import math
from typing import Literal

import numpy as np

from privjax import _validate
from privjax.counterfactual import candidates as candidates_lib
from privjax.counterfactual import evaluation as evaluation_lib

Fraction = fractions.Fraction

_MAX_DENOMINATOR = 10**6


@dataclasses.dataclass(frozen=True, kw_only=True)
class UtilityConfig:
  """Public settings of the utility.

  Attributes:
    kind: 'gated' or 'soft'.
    w_flip: exact weight of flipping the prediction.
    w_compact: exact weight of naming few elements.
    w_plausible: exact weight of naming pairs that exist.
    sensitivity: 'paper' bounds the change by w_flip + w_compact + w_plausible;
      'tight' by the exact maximum, `sensitivity_bound`.
  """

  kind: Literal['gated', 'soft'] = 'gated'
  w_flip: Fraction = Fraction(7, 10)
  w_compact: Fraction = Fraction(2, 10)
  w_plausible: Fraction = Fraction(1, 10)
  sensitivity: Literal['paper', 'tight'] = 'paper'

  def __post_init__(self):
    _validate.one_of(('gated', 'soft'), kind=self.kind)
    _validate.one_of(('paper', 'tight'), sensitivity=self.sensitivity)
    for name in ('w_flip', 'w_compact', 'w_plausible'):
      weight = getattr(self, name)
      if not isinstance(weight, Fraction) or weight < 0:
        raise ValueError(f'{name} must be a Fraction >= 0, got {weight!r}')
    total = self.w_flip + self.w_compact + self.w_plausible
    if total != 1 or self.w_flip <= 0:
      raise ValueError(
        'w_flip must be > 0 and the weights must sum to 1, got '
        f'w_flip={self.w_flip} and the sum {total}'
      )

  def sensitivity_bound(self, *, max_edges: int, max_features: int) -> Fraction:
    """Bounds `|u(G, S) - u(G', S)|` over neighboring graphs and candidates.

    Formal guarantees: for graphs that differ in one undirected edge
    (ADD_REMOVE_ONE_EDGE) and every S of the support, the change is at most

    * 'paper': w_flip + w_compact + w_plausible = 1 (PrivCFS, Lemma 2);
    * 'tight': w_flip + w_compact (1 - 1 / k_max) + w_plausible [max_edges > 0],
      and at least w_compact if the kind is 'soft'.

    Proof of 'tight': the empty candidate's utility is constant. A non-empty one
    has s >= 1, so it lies in [0, u_max] with u_max the larger of the first
    expression (it flips) and, for 'soft', w_compact (it does not): it cannot
    change by more than its range.
    """
    if self.sensitivity == 'paper':
      return self.w_flip + self.w_compact + self.w_plausible
    k_max = max_edges + max_features
    plausible = self.w_plausible if max_edges > 0 else Fraction(0)
    flip = self.w_flip + self.w_compact * (1 - Fraction(1, k_max)) + plausible
    return flip if self.kind == 'gated' else max(flip, self.w_compact)

  def denominator(self, *, max_edges: int, max_features: int) -> int:
    """Returns D: every gated utility is an integer over D (100 by default)."""
    parts = [self.w_flip, self.w_compact]
    parts.append(self.w_compact / (max_edges + max_features))
    parts += [self.w_plausible / named for named in range(1, max_edges + 1)]
    result = math.lcm(*(part.denominator for part in parts))
    if result > _MAX_DENOMINATOR:
      raise ValueError(
        f'weights must be short decimals such as Fraction(7, 10): their common '
        f'denominator must be at most {_MAX_DENOMINATOR}, got {result}'
      )
    return result


def utility_levels(
  config: UtilityConfig, *, max_edges: int, max_features: int
) -> tuple[int, ...]:
  """Returns every value a utility can take on any graph, ascending; public.

  In units of 1 / D, as `candidate_utility` returns them: 16 values at the
  default settings.
  """
  bounds = dict(max_edges=max_edges, max_features=max_features)
  denominator = config.denominator(**bounds)
  k_max = max_edges + max_features
  empty = int(config.w_compact * denominator)
  levels = {0, empty}
  if config.kind == 'soft':
    levels.update(range(empty))
  for named in range(max_edges + 1):
    for masked in range(max_features + 1):
      if named + masked:
        compact = config.w_compact * (1 - Fraction(named + masked, k_max))
        for existing in range(named + 1):
          plausible = config.w_plausible * Fraction(existing, max(named, 1))
          flip = config.w_flip + compact + plausible
          levels.add(int(flip * denominator))
  return tuple(sorted(levels))


def candidate_utility(
  evaluation: evaluation_lib.CandidateEvaluation,
  candidates: candidates_lib.CandidateSet,
  config: UtilityConfig = UtilityConfig(),
) -> np.ndarray:
  """Returns `[A, B]` int64 utilities in units of 1 / D. Not for release.

  Args:
    evaluation: the support scored on one graph; private.
    candidates: the support.
    config: public settings; `config.denominator(...)` is D.
  """
  k_max = candidates.k_max
  bounds = dict(
    max_edges=candidates.max_edges, max_features=candidates.max_features
  )
  denominator = config.denominator(**bounds)
  units = lambda weight: int(weight * denominator)
  compact = units(config.w_compact / k_max) * (k_max - candidates.sizes)
  flip = (
    units(config.w_flip)
    + compact
    + _plausible(evaluation, candidates, units, config)[:, None]
  )
  empty = units(config.w_compact)
  if config.kind == 'gated':
    other = np.zeros_like(flip)
  else:
    other = np.floor(_progress(evaluation.gap) * (empty - 1)).astype(np.int64)
  result = np.where(evaluation.flips, flip, np.maximum(other, 0))
  result[0, 0] = empty
  return result


def _plausible(evaluation, candidates, units, config) -> np.ndarray:
  """Returns `[A]` int64: w_plausible * existing / named, in units of 1 / D."""
  per_size = np.array(
    [0]
    + [
      units(config.w_plausible / n) for n in range(1, candidates.max_edges + 1)
    ]
  )
  return per_size[candidates.edge_sizes] * evaluation.existing_edges


def _progress(gap: np.ndarray) -> np.ndarray:
  """Returns r = clip(1 - gap / gap(empty), 0, 1); 0 where gap(empty) is 0."""
  start = gap[0, 0]
  if not start > 0:
    return np.zeros_like(gap)
  with np.errstate(all='ignore'):  # Private values must not even warn.
    return np.nan_to_num(np.clip(1 - gap / start, 0, 1))
