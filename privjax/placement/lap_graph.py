"""LapGraph: Laplace noise on every pair, top entries kept (Wu et al., 2022).

A share of epsilon (1 % by default) buys a noisy number of edges, the rest
Laplace noise of scale 1 / epsilon_pairs on the N (N - 1) / 2 unordered pairs:

  count   round(M + Laplace(1 / epsilon_count)), clipped to [0, N (N - 1) / 2]
  graph   the `count` pairs with the largest bit + Laplace(1 / epsilon_pairs)

>>> path, _ = graphs.from_pairs(100, [[0, 1], [1, 2]])
>>> noisy = privatize(graphs.PrivateGraph(path), epsilon=1000, seed=0)
>>> noisy.graph.pairs.tolist(), noisy.guarantee.epsilon
([[0, 1], [1, 2]], Fraction(1000, 1))

The edges and their number are private; nodes, epsilon and the split are public.
Time and memory grow with the private and the noisy number of edges: of the
pairs without an edge only the largest noises are drawn.
"""

import fractions

import numpy as np

from privjax import _validate
from privjax import graphs
from privjax import prng
from privjax import types
from privjax.mechanisms import sparse_noise
from privjax.placement import noisy_graph
from privjax.placement import pairs as pairs_lib

Rational = int | str | fractions.Fraction

COUNT_SHARE = fractions.Fraction(1, 100)
LAPLACE = 'Dwork, McSherry, Nissim & Smith (2006), Laplace mechanism'


def split_budget(
  epsilon: Rational, count_share: Rational = COUNT_SHARE
) -> tuple[fractions.Fraction, fractions.Fraction]:
  """Returns exact (epsilon_count, epsilon_pairs); they sum to epsilon.

  Args:
    epsilon: exact, > 0.
    count_share: the share of the number of edges, in (0, 1).
  """
  total = _validate.rational(epsilon=epsilon)
  share = _validate.rational(count_share=count_share)
  if share >= 1:
    raise ValueError(f'count_share must be in (0, 1), got {count_share!r}')
  return share * total, (1 - share) * total


def guarantee(epsilon: Rational) -> types.PrivacyGuarantee:
  """Returns the statement that one noisy graph at `epsilon` satisfies.

  One edge moves the number of edges by 1 and one unordered pair by 1; the two
  Laplace mechanisms compose to the sum of their epsilons, and rounding,
  clipping and keeping the largest entries read nothing else.
  """
  return types.PrivacyGuarantee(
    epsilon=_validate.rational(epsilon=epsilon),
    relation=types.NeighboringRelation.ADD_REMOVE_ONE_EDGE,
    theorem=f'{LAPLACE}, on the number of edges and on each unordered pair',
  )


def noisy_count(
  rng: np.random.Generator,
  num_edges: int,
  num_pairs: int,
  epsilon: fractions.Fraction,
) -> int:
  """Returns the number of edges plus Laplace noise, rounded and clipped.

  Args:
    rng: advanced.
    num_edges: M, private.
    num_pairs: the largest possible number, public.
    epsilon: what the count may cost; one edge moves it by 1.

  Formal guarantees:
    epsilon-DP with delta 0 for one edge (in real arithmetic, fresh randomness);
    rounding and clipping to [0, num_pairs] are post-processing.
  """
  noise = rng.laplace() / float(epsilon)
  return int(np.clip(np.rint(num_edges + noise), 0, num_pairs))


def privatize(
  private: graphs.PrivateGraph,
  *,
  epsilon: Rational,
  seed: int,
  count_share: Rational = COUNT_SHARE,
  max_edges: int = sparse_noise.MAX_ONES,
) -> noisy_graph.NoisyGraph:
  """Draws the noisy graph, by seed.

  Args:
    private: the private graph.
    epsilon: exact, > 0.
    seed: names the draw, with epsilon and the split.
    count_share: the share of epsilon that the number of edges gets.
    max_edges: the largest noisy number of edges.

  Raises:
    sparse_noise.OutputTooLargeError: if the noisy number exceeds `max_edges`.

  Formal guarantees:
    `guarantee(epsilon)`: pure epsilon-DP for one undirected edge, if the seed
    stood for fresh randomness and arithmetic were real; as drawn, a simulation.
  """
  graph = private.graph
  count_epsilon, pair_epsilon = split_budget(epsilon, count_share)
  rng = prng.generator(seed, 'lap_graph', count_epsilon, pair_epsilon)
  size = pairs_lib.num_pairs(graph.num_nodes)
  index = sparse_noise.top(
    rng,
    pairs_lib.index_of(graph.pairs, graph.num_nodes),
    size,
    noisy_count(rng, graph.num_edges, size, count_epsilon),
    noise='laplace',
    scale=1 / float(pair_epsilon),
    max_ones=max_edges,
  )
  return noisy_graph.from_indices(index, graph.num_nodes, guarantee(epsilon))
