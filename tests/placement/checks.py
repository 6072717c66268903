"""What a mechanism must pass, as functions that mutants must fail.

`violates` is a test of differential privacy itself: it needs an event and no
law. The others compare draws with the law that the proof is about.
"""

import collections

import numpy as np
from scipy import stats

from privjax import prng
from tests import statistics
from tests.oracles import placement as oracle
from tests.placement import cases

# The path 0-1-2 and its neighbor without the edge 0-1, on four nodes.
WITH = cases.private(4, [(0, 1), (1, 2)])
WITHOUT = cases.private(4, [(1, 2)])
EVENTS = {
  'first pair present': lambda g: bool(g.has_pairs([[0, 1]])[0]),
  'first pair absent': lambda g: not g.has_pairs([[0, 1]])[0],
  'at least two edges': lambda g: g.num_edges >= 2,
  'at most one edge': lambda g: g.num_edges <= 1,
}


def violates(draw, epsilon, delta=0.0, *, num_draws=500) -> list[str]:
  """Returns the events whose odds break (epsilon, delta), at error 1e-6 each.

  Args:
    draw: `(private, seed) -> NoisyGraph`.
    epsilon: the claim, a float.
    delta: the claim.
    num_draws: draws per graph.
  """
  found = []
  drawn = [
    [draw(private, seed).graph for seed in range(num_draws)]
    for private in (WITH, WITHOUT)
  ]
  for name, event in EVENTS.items():
    counts = [sum(map(event, graphs)) for graphs in drawn]
    for more, less in (counts, counts[::-1]):
      low = stats.beta.ppf(1e-6, more, num_draws - more + 1) if more else 0.0
      high = stats.beta.isf(1e-6, less + 1, num_draws - less)
      high = 1.0 if less == num_draws else high
      if low > np.exp(epsilon) * high + delta:
        found.append(name)
  return found


def follows_channel(draw, private, keep, false, *, num_draws=1500) -> bool:
  """Returns whether draws on a tiny graph follow a channel per pair."""
  num_nodes = private.graph.num_nodes
  counts = collections.Counter(
    oracle.bits_of(num_nodes, draw(private, seed).graph.pairs)
    for seed in range(num_draws)
  )
  bits = oracle.bits_of(num_nodes, private.graph.pairs)
  return _follows(counts, oracle.channel_law(bits, keep, false), num_draws)


def follows_field_law(sample) -> bool:
  """Returns whether drawn fields have the joint law of the whole graph's.

  Args:
    sample: `(rng, graph, target, num_hops, keep_prob, false_prob) -> field`.
  """
  graph = cases.private(5, cases.PATH).graph
  bits = oracle.bits_of(5, graph.pairs)
  probs = {'keep_prob': 0.7, 'false_prob': 0.25}
  for num_hops, num_draws in ((1, 1000), (2, 2500)):
    rng, counts = prng.generator(0, 'field law'), collections.Counter()
    for _ in range(num_draws):
      field = sample(rng, graph, 1, num_hops=num_hops, **probs)
      counts[field_key(field)] += 1
    law = oracle.field_law(5, bits, 1, num_hops, **probs)
    if not _follows(counts, law, num_draws):
      return False
  return True


def field_key(field):
  """Returns nodes, inner pairs and degrees of a field, as the oracle does."""
  ids = field.node_ids
  senders, receivers = ids[field.graph.senders], ids[field.graph.receivers]
  pairs = {(int(s), int(r)) for s, r in zip(senders, receivers) if s < r}
  return (
    tuple(ids.tolist()),
    tuple(sorted(pairs)),
    tuple(field.boundary_degree.tolist()),
  )


def count_follows(draw, scale, *, num_draws=1500) -> bool:
  """Returns whether the number of edges is 40 + Laplace(scale), rounded.

  The graph has 40 edges among 105 pairs; scale is far below both distances.
  """
  private = cases.private(15, oracle.all_pairs(15)[:40])
  found = np.array(
    [draw(private, seed).graph.num_edges for seed in range(num_draws)]
  )
  cuts = 40 + np.rint(scale * np.array([-2, -1, 0, 1, 2])) + 0.5
  law = np.diff(np.concatenate([[0], stats.laplace(40, scale).cdf(cuts), [1]]))
  counts = np.bincount(np.searchsorted(cuts, found), minlength=len(law))
  return not statistics.chi_square_rejects(counts, law)


def noise_follows(draw, sigma) -> bool:
  """Returns whether P(entry > 1/2) is that of N(0, sigma^2) noise.

  The graph has 1,000 edges among 4,950 pairs; one draw is enough.
  """
  pairs = oracle.all_pairs(100)
  private = cases.private(100, pairs[:1000])
  graph = draw(private, 0).graph
  kept = int(graph.has_pairs(private.graph.pairs).sum())
  false = graph.num_edges - kept
  keep = stats.norm.sf(-0.5 / sigma)
  return not any(
    statistics.chi_square_rejects(
      np.array([count, total - count]), np.array([p, 1 - p])
    )
    for count, total, p in ((kept, 1000, keep), (false, 3950, 1 - keep))
  )


def ignores_private_edges(train) -> bool:
  """Returns whether two neighbors with one noisy graph get one backbone.

  Args:
    train: `(private, noisy, features, labels, index) -> PrivateBackbone`.
  """
  x, labels = cases.features(), np.arange(cases.NUM_NODES) % 3
  private = cases.random_private(0)
  noisy = cases.random_private(1)
  kernels = []
  for other in (private, cases.random_private(2)):
    backbone = train(other, noisy, x, labels, np.arange(6))
    kernels.append(backbone.model.params['hidden']['kernel'])
  return bool(np.array_equal(*kernels))


def _follows(counts, law, num_draws) -> bool:
  """Chi-square with the outcomes that expect few draws as one bin."""
  if not set(counts) <= set(law):
    return False
  keys = sorted(law, key=law.get, reverse=True)
  often = [key for key in keys if law[key] * num_draws >= 6]
  found = [counts[key] for key in often]
  probs = [law[key] for key in often]
  if num_draws * (1 - sum(probs)) >= 6:
    found.append(num_draws - sum(found))
    probs.append(1 - sum(probs))
  else:
    found[-1] += num_draws - sum(found)
    probs[-1] += 1 - sum(probs)
  return not statistics.chi_square_rejects(np.array(found), np.array(probs))
