"""What a release would buy, from public objects alone: the price list.

The data owner may not look at the private graph to tell an analyst what an
epsilon buys: that would be a release. So the snapshot plays the private graph,
a random part of it plays the snapshot, and public nodes with about the target's
margin *on the snapshot* play the target. Everything here takes public inputs
and costs nothing.
"""

from collections.abc import Callable, Sequence
import fractions
from typing import NamedTuple

import numpy as np
import scipy.sparse

from privjax import _validate
from privjax import graphs
from privjax import prng
from privjax.counterfactual import evaluation as evaluation_lib
from privjax.counterfactual import factored
from privjax.counterfactual import privcfs
from privjax.counterfactual import public_only
from privjax.counterfactual import targets
from privjax.mechanisms import exponential
from privjax.models import node_model

_DEFAULT = privcfs.PrivCFSConfig()


class PriceList(NamedTuple):
  """Expected validity of one release, by epsilon. Public.

  Attributes:
    epsilons: E exact privacy parameters.
    valid_cf_rate: `[E]` float64, mean P(the release flips the prediction) over
      the stand-in targets.
    standard_error: `[E]` float64, of that mean.
    free: share of stand-ins that the epsilon-0 explanation flips.
    ceiling: share of stand-ins that some candidate flips.
    num_targets: how many stand-ins were simulated.
  """

  epsilons: tuple[fractions.Fraction, ...]
  valid_cf_rate: np.ndarray
  standard_error: np.ndarray
  free: float
  ceiling: float
  num_targets: int


def simulate_price_list(
  model: node_model.NodeModel,
  snapshot: graphs.Snapshot,
  features: scipy.sparse.csr_array,
  first_layer: np.ndarray,
  target: int,
  epsilons: Sequence[int | str | fractions.Fraction],
  config: privcfs.PrivCFSConfig = _DEFAULT,
  *,
  rho_guess: int | str | fractions.Fraction = '1/2',
  num_targets: int = 32,
  seed: int = 0,
  evaluator: Callable[
    ..., evaluation_lib.CandidateEvaluation
  ] = factored.evaluate_factored,
) -> PriceList:
  """Simulates releases on the snapshot. Public in, public out; epsilon 0.

  Args:
    model: the frozen, public classifier.
    snapshot: the public graph.
    features: `[N, F]` public features.
    first_layer: `[F, H]` public kernel of the backbone's first layer.
    target: the node that is to be explained.
    epsilons: exact privacy parameters to price.
    config: public settings of the release.
    rho_guess: a public guess of the share of the private edges that the
      snapshot discloses, in (0, 1]; the simulation hides the rest again. The
      true share is private.
    num_targets: stand-ins, the nodes nearest in snapshot margin to the target
      (the target included; fewer if the graph has fewer nodes).
    seed: names the simulated snapshot.
    evaluator: what the release scores with.

  Returns:
    The price list.
  """
  if not isinstance(snapshot, graphs.Snapshot):
    raise TypeError(
      f'snapshot must be a Snapshot, got {type(snapshot).__name__}'
    )
  _validate.integer(1, num_targets=num_targets)
  exact = tuple(_validate.rational(epsilon=epsilon) for epsilon in epsilons)
  hidden = _hide(snapshot, rho_guess, seed)
  rows = []
  for stand_in in nearest_in_margin(
    model, snapshot, features, target, num_targets=num_targets
  ):
    candidates = privcfs.support(
      hidden, features, first_layer, stand_in, config
    )
    scored = privcfs.score(
      model, snapshot, features, candidates, config, evaluator=evaluator
    )
    free = public_only.public_only_candidate(
      model,
      hidden,
      features,
      candidates,
      feature_masks=config.feature_masks,
      evaluator=evaluator,
    )
    flips = scored.evaluation.flips
    laws = (privcfs.log_law(scored, epsilon) for epsilon in exact)
    rates = [exponential.probabilities(law)[flips].sum() for law in laws]
    rows.append([(flips & candidates.valid).any(), flips[free], *rates])
  table = np.array(rows, np.float64)
  spread = table[:, 2:].std(axis=0, ddof=min(1, len(table) - 1))
  return PriceList(
    epsilons=exact,
    valid_cf_rate=table[:, 2:].mean(axis=0),
    standard_error=spread / len(table) ** 0.5,
    free=float(table[:, 1].mean()),
    ceiling=float(table[:, 0].mean()),
    num_targets=len(table),
  )


def nearest_in_margin(
  model: node_model.NodeModel,
  snapshot: graphs.Snapshot,
  features: scipy.sparse.csr_array,
  target: int,
  *,
  num_targets: int,
) -> list[int]:
  """Returns the target, then the nodes nearest to it in snapshot margin.

  Ties go to the lower id.
  """
  margin = targets.node_margins(model, snapshot.graph, features)
  _validate.integer(0, len(margin) - 1, target=target)
  distance = np.abs(margin - margin[target])
  distance[target] = -1
  order = np.argsort(distance, kind='stable')
  return [int(node) for node in order[:num_targets]]


def _hide(snapshot, rho_guess, seed) -> graphs.Snapshot:
  """Discloses a random rho_guess of the snapshot itself."""
  share = _validate.rational(rho_guess=rho_guess)
  if share > 1:
    raise ValueError(f'rho_guess must be in (0, 1], got {rho_guess!r}')
  order = prng.permutation(snapshot.graph.num_edges, seed, 'price list')
  kept = order[: round(share * snapshot.graph.num_edges)]
  return graphs.Snapshot(
    graphs.subgraph_of_edges(snapshot.graph, kept), 'simulated'
  )
