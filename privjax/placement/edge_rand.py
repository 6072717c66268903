"""EdgeRand: randomized response on every pair of nodes (Wu et al., 2022).

Each of the N (N - 1) / 2 unordered pairs is flipped with probability
1 / (1 + exp(epsilon)), independently; the diagonal is not touched. At epsilon 8
that keeps 99.97 % of the edges and adds about 1,229 false ones to Cora's 5,278.

>>> path, _ = graphs.from_pairs(2708, [[0, 1], [1, 2]])
>>> noisy = privatize(graphs.PrivateGraph(path), epsilon=8, seed=0)
>>> 1000 < noisy.graph.num_edges < 1500, noisy.certified
(True, False)
>>> noisy.guarantee.epsilon
Fraction(8, 1)

The edges are private; nodes and epsilon are public. Time and memory grow with
the output, M + N^2 / (2 exp(epsilon)), not with the number of pairs.
"""

import fractions

from privjax import _validate
from privjax import graphs
from privjax import prng
from privjax import types
from privjax.mechanisms import randomized_response
from privjax.mechanisms import sparse_noise
from privjax.placement import local
from privjax.placement import noisy_graph
from privjax.placement import pairs as pairs_lib

Rational = int | str | fractions.Fraction


def guarantee(epsilon: Rational) -> types.PrivacyGuarantee:
  """Returns the statement that one noisy graph at `epsilon` satisfies.

  One edge is one bit, so the ratio is at most exp(epsilon), and attained.
  """
  return types.PrivacyGuarantee(
    epsilon=_validate.rational(epsilon=epsilon),
    relation=types.NeighboringRelation.ADD_REMOVE_ONE_EDGE,
    theorem=f'{randomized_response.THEOREM}; one response per unordered pair',
  )


def privatize(
  private: graphs.PrivateGraph,
  *,
  epsilon: Rational,
  seed: int,
  max_edges: int = sparse_noise.MAX_ONES,
) -> noisy_graph.NoisyGraph:
  """Draws the noisy graph, by seed.

  Args:
    private: the private graph.
    epsilon: exact, > 0.
    seed: names the draw, with epsilon.
    max_edges: the largest expected output.

  Raises:
    sparse_noise.OutputTooLargeError: with the expected number of edges, if it
      exceeds `max_edges`.

  Formal guarantees:
    `guarantee(epsilon)`: pure epsilon-DP for one undirected edge, if the seed
    stood for fresh randomness; as drawn, a simulation. The error tells the
    private number of edges: an owner checks sizes before.
  """
  graph = private.graph
  epsilon = _validate.rational(epsilon=epsilon)
  wrong = randomized_response.flip_probability(epsilon)
  index = sparse_noise.flip(
    prng.generator(seed, 'edge_rand', epsilon),
    pairs_lib.index_of(graph.pairs, graph.num_nodes),
    pairs_lib.num_pairs(graph.num_nodes),
    keep_prob=1 - wrong,
    false_prob=wrong,
    max_ones=max_edges,
  )
  return noisy_graph.from_indices(index, graph.num_nodes, guarantee(epsilon))


def sample_field(
  private: graphs.PrivateGraph,
  target: int,
  *,
  epsilon: Rational,
  num_hops: int,
  seed: int,
  max_edges: int = sparse_noise.MAX_ONES,
) -> graphs.ReceptiveField:
  """Draws one target's receptive field in the noisy graph, and nothing else.

  The law is that of `graphs.extract_receptive_field` on `privatize`'s graph
  (see `local.sample_field`); the draw is another one, and fields of several
  targets are independent, where in one noisy graph they share pairs.

  Args:
    private: the private graph.
    target: node id.
    epsilon: exact, > 0.
    num_hops: radius.
    seed: names the draw, with epsilon and target.
    max_edges: the largest expected number of edges of the field.

  Raises:
    sparse_noise.OutputTooLargeError: as `privatize` does, for the field; it
      tells private degrees.

  Formal guarantees:
    `guarantee(epsilon)` for one field, as for `privatize`. Fields of T targets
    answer about the same pairs T times: together they cost T epsilon, where one
    noisy graph costs epsilon for all targets.
  """
  epsilon = _validate.rational(epsilon=epsilon)
  wrong = randomized_response.flip_probability(epsilon)
  return local.sample_field(
    prng.generator(seed, 'edge_rand', 'field', epsilon, target),
    private.graph,
    target,
    num_hops=num_hops,
    keep_prob=1 - wrong,
    false_prob=wrong,
    max_edges=max_edges,
  )
