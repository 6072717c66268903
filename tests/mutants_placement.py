"""Named wrong placements, and how each is guilty.

The *privacy* mutants claim an epsilon that they do not keep; the *exactness*
mutants draw from another law than the one that is stated. The tests in
`tests/placement/mutants_test.py` must catch every one of them.
"""

import dataclasses
import fractions

import numpy as np

from privjax import graphs
from privjax import models
from privjax import prng
from privjax.mechanisms import gaussian as calibration
from privjax.mechanisms import randomized_response
from privjax.mechanisms import sparse_noise
from privjax.placement import edge_rand
from privjax.placement import gaussian
from privjax.placement import lap_graph
from privjax.placement import local
from privjax.placement import model_level
from privjax.placement import noisy_graph
from privjax.placement import pairs as pairs_lib

# Privacy: EdgeRand.


def doubled_epsilon(private, epsilon, seed):
  """Flips as if epsilon were twice as large."""
  return edge_rand.privatize(private, epsilon=2 * epsilon, seed=seed)


def both_directions(private, epsilon, seed):
  """Flips (i, j) and (j, i) apart and keeps a pair that either shows."""
  looks = [
    edge_rand.privatize(private, epsilon=epsilon, seed=2 * seed + side)
    for side in (0, 1)
  ]
  union = np.concatenate([look.graph.pairs for look in looks])
  graph, _ = graphs.from_pairs(private.graph.num_nodes, union)
  return dataclasses.replace(looks[0], graph=graph)


def first_pair_never_flips(private, epsilon, seed):
  """Starts at the second pair."""
  graph = private.graph
  wrong = randomized_response.flip_probability(epsilon)
  ones = pairs_lib.index_of(graph.pairs, graph.num_nodes)
  rest = sparse_noise.flip(
    prng.generator(seed, 'mutant'),
    ones[ones > 0] - 1,
    pairs_lib.num_pairs(graph.num_nodes) - 1,
    keep_prob=1 - wrong,
    false_prob=wrong,
  )
  index = np.concatenate([ones[ones == 0], rest + 1])
  return noisy_graph.from_indices(
    index, graph.num_nodes, edge_rand.guarantee(epsilon)
  )


def only_edges_are_noised(private, epsilon, seed):
  """Drops edges at random, adds none."""
  graph = private.graph
  wrong = randomized_response.flip_probability(epsilon)
  rng = prng.generator(seed, 'mutant')
  kept = graphs.subgraph_of_edges(graph, rng.random(graph.num_edges) > wrong)
  return noisy_graph.NoisyGraph(
    graph=kept, guarantee=edge_rand.guarantee(epsilon)
  )


EDGE_RAND = {
  'both_directions': both_directions,
  'doubled_epsilon': doubled_epsilon,
  'first_pair_never_flips': first_pair_never_flips,
  'only_edges_are_noised': only_edges_are_noised,
}

# Privacy: the number of edges.


def private_count_gaussian(private, epsilon, seed):
  """The fair arm with the private number as if it were public."""
  config = gaussian.GaussianConfig(
    epsilon=epsilon, delta='1e-5', num_kept=private.graph.num_edges
  )
  return gaussian.privatize(private, config, seed=seed)


def private_count_laplace(private, epsilon, seed):
  """LapGraph without noise on the number of edges."""
  graph = private.graph
  index = sparse_noise.top(
    prng.generator(seed, 'mutant'),
    pairs_lib.index_of(graph.pairs, graph.num_nodes),
    pairs_lib.num_pairs(graph.num_nodes),
    graph.num_edges,
    noise='laplace',
    scale=1 / float(epsilon),
  )
  return noisy_graph.from_indices(
    index, graph.num_nodes, lap_graph.guarantee(epsilon)
  )


PRIVATE_COUNTS = {
  'private_count_gaussian': private_count_gaussian,
  'private_count_laplace': private_count_laplace,
}


def count_at_full_epsilon(private, epsilon, seed):
  """LapGraph whose count spends all of epsilon, and its pairs again."""
  graph = private.graph
  rng = prng.generator(seed, 'mutant')
  size = pairs_lib.num_pairs(graph.num_nodes)
  index = sparse_noise.top(
    rng,
    pairs_lib.index_of(graph.pairs, graph.num_nodes),
    size,
    lap_graph.noisy_count(rng, graph.num_edges, size, epsilon),
    noise='laplace',
    scale=1 / float(epsilon),
  )
  return noisy_graph.from_indices(
    index, graph.num_nodes, lap_graph.guarantee(epsilon)
  )


# Privacy: Gaussian noise, keep='threshold'.


def _threshold(private, sigma, seed):
  graph = private.graph
  config = gaussian.GaussianConfig(
    epsilon=8, delta='1e-5', keep='threshold', arm='fair'
  )

  class Scaled:
    """Only its sigma is read."""

  Scaled.sigma = sigma
  index = sparse_noise.flip(
    prng.generator(seed, 'mutant'),
    pairs_lib.index_of(graph.pairs, graph.num_nodes),
    pairs_lib.num_pairs(graph.num_nodes),
    **gaussian.threshold_probs(Scaled),
  )
  return noisy_graph.from_indices(index, graph.num_nodes, config.guarantee)


def two_triangles_at_sensitivity_one(private, seed):
  """Noises (i, j) and (j, i) apart at sigma .600 and averages the two."""
  sigma = calibration.analytic_sigma(8, delta='1e-5')
  return _threshold(private, sigma / 2**0.5, seed)


def half_of_sigma(private, seed):
  """The noise of a pair that an edge moved by 1/2."""
  sigma = calibration.analytic_sigma(8, delta='1e-5', sensitivity=0.5)
  return _threshold(private, sigma, seed)


GAUSSIAN = {
  'half_of_sigma': half_of_sigma,
  'two_triangles_at_sensitivity_one': two_triangles_at_sensitivity_one,
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class ClassicIsAlwaysProven(gaussian.GaussianConfig):
  """Claims the classic calibration for every epsilon, at sensitivity 1."""

  @property
  def sigma(self) -> float:
    return calibration.classic_sigma(self.epsilon, delta=self.delta)

  @property
  def guarantee(self):
    return dataclasses.replace(
      super().guarantee,
      epsilon=fractions.Fraction(self.epsilon),
      delta=fractions.Fraction(self.delta),
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class CountIsFree(gaussian.GaussianConfig):
  """Pays for the noisy number of edges, but spends epsilon on the pairs."""

  @property
  def sigma(self) -> float:
    return calibration.analytic_sigma(self.epsilon, delta=self.delta)


# Privacy: training.


def trains_on_the_private_graph(private, noisy, features, labels, index):
  """Claims the noisy graph's guarantee for the private graph's backbone."""
  del noisy
  seen = noisy_graph.NoisyGraph(
    graph=private.graph, guarantee=edge_rand.guarantee(1)
  )
  return model_level.train_backbone(
    prng.key(0),
    seen,
    features,
    labels,
    index,
    num_classes=3,
    config=models.TrainingConfig(num_steps=2),
  )


# Privacy: fields. The degrees of the rim tell private edges.


def private_rim_degrees(rng, graph, target, **settings):
  """Takes the rim's degrees from the private graph."""
  field = local.sample_field(rng, graph, target, **settings)
  degree = np.maximum(field.boundary_degree, graph.degree[field.node_ids])
  return field._replace(boundary_degree=degree)


# Exactness: fields.


def induced_degrees(rng, graph, target, **settings):
  """Counts no neighbor outside the ball."""
  field = local.sample_field(rng, graph, target, **settings)
  degree = np.bincount(field.graph.receivers, minlength=len(field.node_ids))
  return field._replace(boundary_degree=degree)


def no_pairs_on_the_rim(rng, graph, target, **settings):
  """Draws each rim node's outer degree apart, pairs of the rim included."""

  class Channel(local._Channel):
    """Leaves the pairs among the rim undrawn."""

    def among(self, nodes):
      return super().among(nodes[:0])

  return _with_channel(Channel, rng, graph, target, settings)


def rows_drawn_twice(rng, graph, target, **settings):
  """Draws a pair of inner nodes once from each end and keeps either."""

  class Channel(local._Channel):
    """Forgets which rows are done."""

    def row(self, node, done):
      return super().row(node, done[:0])

  return _with_channel(Channel, rng, graph, target, settings)


def _with_channel(channel, rng, graph, target, settings):
  original = local._Channel
  local._Channel = channel
  try:
    return local.sample_field(rng, graph, target, **settings)
  finally:
    local._Channel = original


FIELDS = {
  'induced_degrees': induced_degrees,
  'no_pairs_on_the_rim': no_pairs_on_the_rim,
  'private_rim_degrees': private_rim_degrees,
  'rows_drawn_twice': rows_drawn_twice,
}
