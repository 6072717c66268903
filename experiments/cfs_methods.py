"""The methods of Table 3, each as rows over one dataset, protocol and seed.

Rows hold counts over targets and draws, and the guarantee that the library
states about the method's complete release. Everything here reads private edges
and is drawn by seed: for research, not for release.
"""

from collections.abc import Mapping, Sequence
import functools
from typing import Any, NamedTuple

import numpy as np

from experiments import experiment as experiment_lib
from experiments import worlds
from privjax import counterfactual
from privjax import explainers
from privjax import graphs
from privjax import mechanisms
from privjax import prng
from privjax import types
from privjax.explainers import guarantees

FIELD, UNIVERSE = 'receptive field', 'public universe'
_SIMULATED = (
  'the snapshot was sampled from the private graph: the statement is about an '
  'external one'
)

TOP_M = "Gaussian, top-M ('paper')"
MODEL_LEVEL = 'backbone on LapGraph'
PLACEMENTS = (
  TOP_M,
  "Gaussian, top-M ('fair')",
  "Gaussian, threshold .5 ('paper')",
  "Gaussian, clipped ('paper')",
  'EdgeRand',
  'LapGraph',
  MODEL_LEVEL,
)


class Cell(NamedTuple):
  """What every method explains.

  Attributes:
    world: dataset and frozen backbone.
    targets: `[T]` node ids.
    seed: of every draw.
    epsilon: of one release, exact.
    delta: of the Gaussian methods, exact.
    num_draws: draws of each randomized explanation.
    num_steps: of mask optimization.
    placements: which of `PLACEMENTS`.
  """

  world: worlds.World
  targets: np.ndarray
  seed: int
  epsilon: str
  delta: str
  num_draws: int
  num_steps: int
  placements: tuple[str, ...]

  @property
  def private(self) -> graphs.PrivateGraph:
    return self.world.dataset.graph

  @property
  def about(self) -> tuple[Any, graphs.Graph, Any]:
    """Model, private graph and features, as explainers take them."""
    return (
      self.world.model,
      self.world.dataset.graph.graph,
      self.world.dataset.features,
    )


def explanation_level(cell: Cell, arm: Any) -> list[experiment_lib.Row]:
  """Rows of the methods that explain the private graph."""
  model, graph, features = cell.about
  masked = arm == 'effective'
  spaces = [
    explainers.receptive_field_space(
      graph,
      features,
      int(target),
      num_hops=model.num_hops,
      feature_masks=masked,
    )
    for target in cell.targets
  ]
  return _over_spaces(cell, spaces, FIELD)


def _over_spaces(cell: Cell, spaces, named: str) -> list[experiment_lib.Row]:
  """Rows of every explanation-level method over given operation spaces."""
  config = explainers.MaskConfig(num_steps=cell.num_steps)
  found = explainers.search(*cell.about, spaces, config=config)
  public = all(space.is_public for space in spaces)
  row = functools.partial(_row, cell, spaces, named)
  key = prng.stream(prng.key(cell.seed), 'cfs_baselines')
  draws = range(cell.num_draws)
  scale = explainers.privcf_out.noise_std(
    epsilon=cell.epsilon, delta=cell.delta
  )
  sgd = explainers.privcf_sgd.calibrate(epsilon=cell.epsilon, delta=cell.delta)
  optimal = [one.keep for one in found]
  greedy = explainers.greedy(*cell.about, spaces)
  return [
    row('mask optimization', explainers.guarantee(), [optimal]),
    _explained('greedy deletion', explainers.greedy_guarantee(), greedy, named),
    row(
      'random deletion',
      explainers.random_guarantee(space_is_public=public),
      [explainers.random_masks(key, spaces, draw=draw) for draw in draws],
    ),
    row(
      'PrivCF-out',
      explainers.privcf_out.guarantee(),
      [
        [
          explainers.privcf_out.perturb(key, one, space, scale=scale, draw=draw)
          for one, space in zip(found, spaces)
        ]
        for draw in draws
      ],
    ),
    row(
      'PrivCF-SGD',
      explainers.privcf_sgd.guarantee(
        sgd, delta=cell.delta, space_is_public=public
      ),
      [
        explainers.privcf_sgd.release(
          key, *cell.about, spaces, config=sgd, draw=draw
        )
        for draw in draws
      ],
    ),
    row(
      'randomized response',
      explainers.randomized_response.guarantee(
        epsilon=cell.epsilon, space_is_public=public
      ),
      [
        explainers.randomized_response.release(
          key, optimal, spaces, epsilon=cell.epsilon, draw=draw
        )
        for draw in draws
      ],
    ),
  ]


def _row(cell: Cell, spaces, named, method, guarantee, draws):
  """Returns the row of a method that released masks, `[draws][targets]`."""
  masks = [mask for drawn in draws for mask in drawn]
  all_spaces = list(spaces) * len(draws)
  labels = explainers.check_masks(*cell.about, all_spaces, masks)
  sizes = [int((~m.edge).sum() + (~m.feature).sum()) for m in masks]
  flips = labels.new != labels.original
  return _stated(guarantee) | {
    'method': method,
    'placement': 'explanation',
    'space': named,
    'num_draws': len(draws),
    'num_valid': int(flips.sum()),
    'num_targeted': int((flips & (labels.new == labels.runner_up)).sum()),
    **sizes_of(sizes),
    'currency': _currency(spaces),
  }


def _explained(method, guarantee, explanations, named):
  """Returns the row of a deterministic method."""
  return _stated(guarantee) | {
    'method': method,
    'placement': 'explanation',
    'space': named,
    'num_draws': 1,
    'num_valid': sum(one.valid for one in explanations),
    **sizes_of([one.intervention.size for one in explanations]),
    'currency': _currency(explanations),
  }


def sizes_of(sizes: Sequence[int]) -> experiment_lib.Row:
  """Returns the columns of sizes; an empty set explains nothing."""
  return {
    'total_size': sum(sizes),
    'num_explained': sum(size > 0 for size in sizes),
  }


def _currency(items) -> str:
  """Returns the widest currency among spaces or explanations."""
  return max((one.currency for one in items), key=explainers.CURRENCIES.index)


def _stated(guarantee: explainers.ReleaseGuarantee) -> experiment_lib.Row:
  """Returns the certification columns, from the guarantee object alone."""
  return {
    'certified': guarantee.certified,
    'guarantee': guarantee.label,
    'not_covered': '; '.join(guarantee.not_covered),
  }


def stated_privacy(
  guarantee: types.PrivacyGuarantee, *not_covered: str
) -> experiment_lib.Row:
  """Returns the certification columns of a statement of another package."""
  if guarantee.epsilon is None:
    not_covered = (guarantee.theorem,)
  return _stated(
    explainers.ReleaseGuarantee(privacy=guarantee, not_covered=not_covered)
  )


def leaves_out(row: experiment_lib.Row, reason: str) -> experiment_lib.Row:
  """Returns a row with one more thing that its guarantee does not cover."""
  known = [text for text in (row['not_covered'], reason) if text]
  return row | {'not_covered': '; '.join(known)}


def on_snapshot(
  row: experiment_lib.Row, snapshot: graphs.Snapshot
) -> experiment_lib.Row:
  """Returns a row whose operations come from a snapshot, saying which kind."""
  if snapshot.origin != 'external':
    row = leaves_out(row, _SIMULATED)
  return row | {'snapshot': snapshot.origin}


def support(cell: Cell, snapshot, target: int, config):
  return counterfactual.support(
    snapshot,
    cell.world.dataset.features,
    cell.world.model.params['hidden']['kernel'],
    target,
    config,
  )


def public_support(
  cell: Cell, arm: str, snapshots: Mapping[str, graphs.Snapshot]
) -> list[experiment_lib.Row]:
  """Rows of what chooses from PrivCFS's public support, for each rho.

  PrivCFS and the ceiling in closed form, the public-only explanation, and the
  other explanation-level methods over the same public pairs and features.
  """
  rows = []
  for rho, snapshot in snapshots.items():
    found = _privcfs(cell, arm, rho, snapshot)
    config = counterfactual.PrivCFSConfig(feature_masks=arm)
    spaces = [
      explainers.public_space(
        support(cell, snapshot, int(target), config).universe,
        feature_masks=arm == 'effective',
      )
      for target in cell.targets
    ]
    found += _over_spaces(cell, spaces, f'{UNIVERSE}, rho {rho}')
    rows += [on_snapshot(row, snapshot) for row in found]
  return rows


def _privcfs(
  cell: Cell, arm: str, rho: str, snapshot: graphs.Snapshot
) -> list[experiment_lib.Row]:
  """Returns the rows of PrivCFS, of the ceiling and of the free explanation."""
  config = counterfactual.PrivCFSConfig(feature_masks=arm)
  model, _, features = cell.about
  evaluate = functools.partial(
    counterfactual.evaluate_factored, projected=cell.world.projected
  )
  scores: list[counterfactual.Metrics] = []
  free: list[tuple[bool, int]] = []
  smallest = []
  for target in cell.targets:
    candidates = support(cell, snapshot, int(target), config)
    scored = counterfactual.score(
      model, cell.private, features, candidates, config, evaluator=evaluate
    )
    law = mechanisms.probabilities(counterfactual.log_law(scored, cell.epsilon))
    scores.append(
      counterfactual.release_metrics(
        law,
        scored.utility,
        scored.evaluation,
        candidates,
        denominator=config.denominator,
      )
    )
    best = counterfactual.public_only_candidate(
      model,
      snapshot,
      features,
      candidates,
      feature_masks=config.feature_masks,
      evaluator=evaluate,
    )
    free.append(
      (bool(scored.evaluation.flips[best]), int(candidates.sizes[best]))
    )
    smallest.append(
      explainers.minimal_counterfactual(scored.evaluation, candidates)
    )
  space = f'{UNIVERSE}, rho {rho}'
  mean = lambda name: float(np.mean([getattr(one, name) for one in scores]))
  common = {
    'placement': 'explanation',
    'space': space,
    'currency': 'edges+features',
  }
  release = stated_privacy(counterfactual.guarantee(cell.epsilon))
  return [
    release
    | common
    | {
      'method': 'PrivCFS',
      'csr': mean('valid_cf_rate'),
      'mean_size': mean('size'),
      'ceiling': mean('ceiling'),
    },
    _explained(
      'smallest counterfactual',
      explainers.minimal_guarantee(),
      smallest,
      space,
    ),
    _free_row(free, common),
  ]


def _free_row(
  free: Sequence[tuple[bool, int]], common: experiment_lib.Row
) -> experiment_lib.Row:
  """Returns the row of the explanation that the snapshot alone gives."""
  stated = _stated(guarantees.public_input())
  return (
    stated
    | common
    | {
      'method': 'public only',
      'placement': 'public',
      'num_draws': 1,
      'num_valid': sum(flips for flips, _ in free),
      **sizes_of([size for _, size in free]),
    }
  )
