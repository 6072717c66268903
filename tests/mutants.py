"""Named wrong versions of the release, and what must catch each of them.

A *privacy* mutant is a pipeline that is not differentially private: the
exhaustive check of `tests/counterfactual/dp_test.py` must find it. An
*exactness* mutant is an evaluator that computes something else: it stays
private, since any score in range does, and the oracle check must find it.
"""

import dataclasses
import fractions
import functools
from unittest import mock

import jax
import jax.numpy as jnp
import numpy as np

from privjax import counterfactual
from privjax import graphs
from privjax import mechanisms
from privjax.counterfactual import evaluation as evaluation_lib
from privjax.counterfactual import factored
from privjax.counterfactual import subgraph
from tests.counterfactual import cases
from tests.counterfactual import checks

Fraction = fractions.Fraction


def missing_factor_two(case, private, config, epsilon):
  """Exponent epsilon u / sensitivity."""
  scored = checks.score(case, private, config)
  law = counterfactual.log_law(scored, 2 * epsilon)
  return checks.release(scored.candidates, scored.utility, law, config)


def understated_sensitivity(case, private, config, epsilon):
  """Half of the range, as if a flip bit could not change."""
  scored = checks.score(case, private, config)
  law = mechanisms.log_law(
    scored.utility,
    epsilon=epsilon,
    sensitivity=config.sensitivity / 2,
    denominator=config.denominator,
    valid=scored.candidates.valid,
  )
  release = checks.release(scored.candidates, scored.utility, law, config)
  return release._replace(stated_sensitivity=config.sensitivity / 2)


def unbounded_utility(case, private, config, epsilon):
  """Adds the progress of the gap in logits, which has no bound."""
  scored = checks.score(case, private, config)
  gap = scored.evaluation.gap
  extra = np.rint((gap[0, 0] - gap) * config.denominator).astype(np.int64)
  scored = scored._replace(utility=scored.utility + extra)
  law = counterfactual.log_law(scored, epsilon)
  return checks.release(scored.candidates, scored.utility, law, config)


def universe_from_the_private_graph(case, private, config, epsilon):
  """The candidate pairs are the target's real edges."""
  leaking = case._replace(snapshot=graphs.Snapshot(private.graph, 'simulated'))
  return checks.privjax_pipeline(leaking, private, config, epsilon)


def invalid_candidates_filtered(case, private, config, epsilon):
  """Candidates that name a pair that is no edge are dropped, per graph."""
  scored = checks.score(case, private, config)
  named = scored.candidates.edge_sizes
  exist = scored.evaluation.existing_edges == named
  candidates = dataclasses.replace(
    scored.candidates, edge_valid=scored.candidates.edge_valid & exist
  )
  law = counterfactual.log_law(scored._replace(candidates=candidates), epsilon)
  return checks.release(candidates, scored.utility, law, config)


def flipping_candidates_only(case, private, config, epsilon):
  """Candidates that do not flip are dropped, but for the empty set."""
  scored = checks.score(case, private, config)
  keep = scored.candidates.valid & scored.evaluation.flips
  keep[0, 0] = True
  law = mechanisms.log_law(
    scored.utility,
    epsilon=epsilon,
    sensitivity=config.sensitivity,
    denominator=config.denominator,
    valid=keep,
  )
  return checks.release(scored.candidates, scored.utility, law, config)


def base_measure_from_the_private_graph(case, private, config, epsilon):
  """The prior that may only be computed on the snapshot."""
  scored = checks.score(case, private, config)
  base = 4 * scored.utility / config.denominator
  law = counterfactual.log_law(scored, epsilon, log_base_measure=base)
  return checks.release(scored.candidates, scored.utility, law, config)


PRIVACY = {
  function.__name__: function
  for function in (
    missing_factor_two,
    understated_sensitivity,
    unbounded_utility,
    universe_from_the_private_graph,
    invalid_candidates_filtered,
    flipping_candidates_only,
    base_measure_from_the_private_graph,
  )
}


def _keep(inputs):
  return inputs


def _with_inputs(change=_keep, decide=evaluation_lib.decide):
  """Returns the factored evaluator with changed inputs to its jitted stage."""

  def evaluate(model, graph, features, candidates, *, feature_masks):
    plan = evaluation_lib.plan(graph, features, candidates, feature_masks)
    inputs = factored.prepare(
      model, features, candidates, plan, capacity=cases.NEIGHBORS
    )
    decision = _decide_all(model.params, change(inputs), decide)
    return evaluation_lib.finish(decision, plan, candidates)

  return evaluate


@functools.partial(jax.jit, static_argnums=2)
def _decide_all(params, inputs, decide):
  return decide(factored.score(params, inputs, 128))


def _without(*names):
  """Returns the change that forgets some incidences."""
  return lambda inputs: inputs._replace(
    **{name: np.zeros_like(getattr(inputs, name)) for name in names}
  )


def _highest_class_wins(logits):
  """Ties go to the highest class id."""
  decision = evaluation_lib.decide(logits)
  last = logits.shape[-1] - 1
  return decision._replace(label=last - jnp.argmax(logits[..., ::-1], axis=-1))


def truncated_boundary_degrees(
  model, graph, features, candidates, *, feature_masks
):
  """Degrees are recounted inside the receptive field."""
  extract = graphs.extract_receptive_field

  def induced(*args, **kwargs):
    field = extract(*args, **kwargs)
    own = field.graph.edges['mask']
    degree = np.bincount(
      field.graph.receivers, own, minlength=len(field.node_ids)
    )
    return field._replace(boundary_degree=degree.astype(np.int64))

  with mock.patch.object(graphs, 'extract_receptive_field', induced):
    return checks.evaluate_subgraph(
      model, graph, features, candidates, feature_masks=feature_masks
    )


def deletion_in_one_direction(
  model, graph, features, candidates, *, feature_masks
):
  """Only the message from the lower to the higher node id is removed."""
  incidence = subgraph._incidence

  def one_way(field, pairs):
    on_edge, on_node = incidence(field, pairs)
    upward = field.graph.senders < field.graph.receivers
    return on_edge & upward[:, None], on_node

  with mock.patch.object(subgraph, '_incidence', one_way):
    return checks.evaluate_subgraph(
      model, graph, features, candidates, feature_masks=feature_masks
    )


def original_label_from_elsewhere(
  model, graph, features, candidates, *, feature_masks
):
  """Flips are counted against the label on the graph without edges."""
  evaluate = checks.evaluate_factored
  args = (features, candidates)
  here = evaluate(model, graph, *args, feature_masks=feature_masks)
  bare = cases.private_graph([], graph.graph.num_nodes)
  there = evaluate(model, bare, *args, feature_masks=feature_masks)
  return here._replace(flips=here.label != there.label[0, 0])


def features_masked_everywhere(
  model, graph, features, candidates, *, feature_masks
):
  """Masks are applied to the candidate pairs' other ends as well."""
  universe = candidates.universe
  dense = features.toarray()
  near = graph.graph.neighbors(universe.target)
  masked = np.ix_(near, universe.features[universe.feature_valid])
  dense[masked] = 0
  return checks.evaluate_factored(
    model,
    graph,
    type(features)(dense),
    candidates,
    feature_masks=feature_masks,
  )


# The scaffold of the next mutants with nothing mutated: it passes every check.
unmutated_factored = _with_inputs()

EXACTNESS = {
  'missing_triangle_correction': _with_inputs(_without('adjacent')),
  'target_degree_not_lowered': _with_inputs(_without('on_target')),
  'neighbor_degree_not_lowered': _with_inputs(_without('on_slot')),
  'endpoint_degree_not_lowered': _with_inputs(_without('on_node')),
  'deleted_neighbor_still_heard': _with_inputs(_without('cuts_slot')),
  'deleted_two_hop_pair_still_heard': _with_inputs(_without('cuts_node')),
  'wrong_tie_rule': _with_inputs(decide=_highest_class_wins),
} | {
  function.__name__: function
  for function in (
    truncated_boundary_degrees,
    deletion_in_one_direction,
    original_label_from_elsewhere,
    features_masked_everywhere,
  )
}
