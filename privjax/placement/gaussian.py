"""Gaussian noise on the adjacency (PrivCFS, Sec. 3.2, 4.3-4.4).

One normal draw is added to each of the N (N - 1) / 2 unordered pairs; what is
made of the noisy numbers is post-processing:

  top        the num_kept largest become the edges
  threshold  those above 1/2 become the edges (on Cora a million)
  clip       clip(x, 0, 1) is the weight of the edge (half of all pairs)

Two arms. 'paper' takes the sensitivity of the whole symmetric matrix, sqrt(2),
and the classic calibration, which is no theorem at epsilon >= 1; its top-M
keeps the private number of edges, so its output tells that number exactly and
no epsilon is claimed. 'fair' counts each pair once (sensitivity 1), calibrates
analytically, and takes a public number of edges or a noisy one.

>>> paper = GaussianConfig(epsilon='8', delta='1e-5', arm='paper')
>>> fair = GaussianConfig(epsilon='8', delta='1e-5', num_kept=5000)
>>> f'{paper.sigma:.3f} {fair.sigma:.3f}'
'0.856 0.600'
>>> paper.guarantee.epsilon, fair.guarantee.epsilon
(None, Fraction(8, 1))

The edges are private; nodes and config are public. Top-M draws noise for the
edges and for the `num_kept` largest non-edges only, so its time and memory grow
with the graph; the other two grow with their output.
"""

import dataclasses
import fractions
import functools
import math
from typing import Literal

import numpy as np

from privjax import _validate
from privjax import graphs
from privjax import prng
from privjax import types
from privjax.mechanisms import gaussian as calibration
from privjax.mechanisms import sparse_noise
from privjax.placement import lap_graph
from privjax.placement import local
from privjax.placement import noisy_graph
from privjax.placement import pairs as pairs_lib

Fraction = fractions.Fraction

ARMS = ('paper', 'fair')
KEEPS = ('top', 'threshold', 'clip')

_THRESHOLD = 0.5
_PRIVATE_COUNT = (
  'NOT PROVEN, and false: the output has exactly as many edges as the private '
  'graph'
)


@dataclasses.dataclass(frozen=True, kw_only=True)
class GaussianConfig:
  """Public settings.

  Attributes:
    epsilon: exact, > 0 and at most 1000 (as are all fields read from strings).
    delta: exact, in (0, 1).
    arm: 'paper' or 'fair'.
    keep: 'top', 'threshold' or 'clip'.
    num_kept: a public number of edges for the fair arm's 'top'. `None` is a
      noisy number there, bought with `count_share` of epsilon, and the private
      one in the paper's arm.
    count_share: the share of epsilon that a noisy number of edges gets.
  """

  epsilon: int | str | Fraction
  delta: int | str | Fraction
  arm: Literal['paper', 'fair'] = 'fair'
  keep: Literal['top', 'threshold', 'clip'] = 'top'
  num_kept: int | None = None
  count_share: int | str | Fraction = lap_graph.COUNT_SHARE

  def __post_init__(self):
    _validate.one_of(ARMS, arm=self.arm)
    _validate.one_of(KEEPS, keep=self.keep)
    lap_graph.split_budget(self.epsilon, self.count_share)
    calibration.classic_sigma(self.epsilon, delta=self.delta)
    if self.num_kept is not None:
      _validate.integer(0, num_kept=self.num_kept)
      if self.arm == 'paper' or self.keep != 'top':
        raise ValueError(
          "num_kept must be None but for arm='fair', keep='top', got "
          f'{self.num_kept!r}'
        )

  @property
  def count_epsilon(self) -> Fraction:
    """What the number of edges costs: 0 unless it is noisy."""
    if self.arm == 'paper' or self.keep != 'top' or self.num_kept is not None:
      return Fraction(0)
    return lap_graph.split_budget(self.epsilon, self.count_share)[0]

  @functools.cached_property
  def sigma(self) -> float:
    """The standard deviation of the noise on one pair."""
    total = _validate.rational(epsilon=self.epsilon)
    if self.arm == 'paper':
      return calibration.classic_sigma(
        total, delta=self.delta, sensitivity=math.sqrt(2)
      )
    return calibration.analytic_sigma(
      total - self.count_epsilon, delta=self.delta
    )

  @property
  def guarantee(self) -> types.PrivacyGuarantee:
    """What a draw with this config satisfies.

    The noise is judged as it is drawn: one number per unordered pair, of which
    one edge moves one by 1. The paper's larger noise therefore has a theorem
    too (but not the classic one) wherever `exact_delta` allows it.
    """
    total = _validate.rational(epsilon=self.epsilon)
    delta = _validate.rational(delta=self.delta)
    epsilon, theorem = total, f'{calibration.ANALYTIC}, one draw per pair'
    if self.count_epsilon:
      theorem += f'; {lap_graph.LAPLACE}, on the number of edges'
    if self.arm == 'paper' and self.keep == 'top':
      epsilon, theorem = None, _PRIVATE_COUNT
    elif self.arm == 'paper':
      if calibration.exact_delta(self.sigma, epsilon=total) > float(delta):
        epsilon = None
        theorem = 'NOT PROVEN: this sigma has a larger delta'
      elif total >= 1:
        theorem += ' (the classic calibration is not proven at this epsilon)'
    return types.PrivacyGuarantee(
      epsilon=epsilon,
      delta=delta if epsilon is not None else Fraction(0),
      relation=types.NeighboringRelation.ADD_REMOVE_ONE_EDGE,
      theorem=theorem,
    )


def privatize(
  private: graphs.PrivateGraph,
  config: GaussianConfig,
  *,
  seed: int,
  max_edges: int = sparse_noise.MAX_ONES,
) -> noisy_graph.NoisyGraph:
  """Draws the noisy graph, by seed.

  Args:
    private: the private graph.
    config: public settings.
    seed: names the draw, with the config.
    max_edges: the largest expected number of edges.

  Raises:
    sparse_noise.OutputTooLargeError: with the expected number of edges, if it
      exceeds `max_edges`.
    ValueError: if `config.num_kept` exceeds the number of pairs.

  Formal guarantees:
    `config.guarantee`, if the seed stood for fresh randomness and arithmetic
    were real; as drawn, a simulation. Nothing is claimed where its epsilon is
    `None`. The error tells the private number of edges, but not where that is
    noisy or public ('fair' with 'top').
  """
  graph = private.graph
  ones = pairs_lib.index_of(graph.pairs, graph.num_nodes)
  size = pairs_lib.num_pairs(graph.num_nodes)
  rng = _generator(seed, config)
  weights = None
  if config.keep == 'top':
    index = sparse_noise.top(
      rng,
      ones,
      size,
      _num_kept(rng, graph.num_edges, size, config),
      noise='gaussian',
      scale=config.sigma,
      max_ones=max_edges,
    )
  elif config.keep == 'threshold':
    index = sparse_noise.flip(
      rng, ones, size, max_ones=max_edges, **threshold_probs(config)
    )
  else:
    index, weights = sparse_noise.clipped(
      rng, ones, size, scale=config.sigma, max_ones=max_edges
    )
  return noisy_graph.from_indices(
    index, graph.num_nodes, config.guarantee, weights
  )


def sample_field(
  private: graphs.PrivateGraph,
  target: int,
  config: GaussianConfig,
  *,
  num_hops: int,
  seed: int,
  max_edges: int = sparse_noise.MAX_ONES,
) -> graphs.ReceptiveField:
  """Draws one target's receptive field for keep='threshold', nothing else.

  See `local.sample_field`. At a small epsilon the two-hop ball is the whole
  graph, and the error says how large.

  Args:
    private: the private graph.
    target: node id.
    config: public settings.
    num_hops: radius.
    seed: names the draw, with config and target.
    max_edges: the largest expected number of edges of the field.

  Raises:
    ValueError: for another `keep`: top-M is not local, since whether a pair is
      kept depends on all others.
    sparse_noise.OutputTooLargeError: with the expected count, which tells
      private degrees.

  Formal guarantees:
    `config.guarantee` for one field, as for `privatize`. Fields of T targets
    answer about the same pairs T times and compose, where one noisy graph
    serves all targets.
  """
  if config.keep != 'threshold':
    raise ValueError(f"keep must be 'threshold' here, got {config.keep!r}")
  return local.sample_field(
    _generator(seed, config, 'field', target),
    private.graph,
    target,
    num_hops=num_hops,
    max_edges=max_edges,
    **threshold_probs(config),
  )


def threshold_probs(config: GaussianConfig) -> dict[str, float]:
  """Returns P(noisy entry > 1/2) of an edge and of another pair."""
  from_half = _THRESHOLD / config.sigma
  return {
    'keep_prob': (1 + math.erf(from_half / math.sqrt(2))) / 2,
    'false_prob': math.erfc(from_half / math.sqrt(2)) / 2,
  }


def _generator(
  seed: int, config: GaussianConfig, *names: prng.Name
) -> np.random.Generator:
  return prng.generator(
    seed,
    'gaussian',
    config.arm,
    config.keep,
    _validate.rational(epsilon=config.epsilon),
    _validate.rational(delta=config.delta),
    config.count_epsilon,
    *names,
  )


def _num_kept(rng, num_edges, size, config) -> int:
  """Returns M: the private number, the public one, or a noisy one."""
  if config.arm == 'paper':
    return num_edges
  if config.num_kept is not None:
    return config.num_kept
  return lap_graph.noisy_count(rng, num_edges, size, config.count_epsilon)
