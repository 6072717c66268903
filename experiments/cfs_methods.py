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
from privjax import placement
from privjax import prng
from privjax import types

FIELD, UNIVERSE = 'receptive field', 'public universe'
_NOT_SEARCHED = 'not searched'

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
    _explained(cell, 'greedy deletion', greedy, named),
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
    'total_size': sum(sizes),
    'currency': _currency(spaces),
  }


def _explained(cell: Cell, method, explanations, named):
  """Returns the row of a deterministic method without a guarantee."""
  del cell
  return _stated(explainers.greedy_guarantee()) | {
    'method': method,
    'placement': 'explanation',
    'space': named,
    'num_draws': 1,
    'num_valid': sum(one.valid for one in explanations),
    'total_size': sum(one.intervention.size for one in explanations),
    'currency': _currency(explanations),
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


def _stated_graph(guarantee: types.PrivacyGuarantee) -> experiment_lib.Row:
  """Returns the certification columns of a placement's guarantee."""
  covered = guarantee.epsilon is not None
  return _stated(
    explainers.ReleaseGuarantee(
      privacy=guarantee,
      not_covered=() if covered else (guarantee.theorem,),
    )
  )


def graph_level(
  cell: Cell, arm: str, snapshots: Mapping[str, graphs.Snapshot]
) -> list[experiment_lib.Row]:
  """Rows of the placements on the graph and on the model.

  Each noisy graph is explained by mask optimization over the noisy receptive
  field, and by the smallest counterfactual of the public support (Table 7),
  which is what PrivCFS chooses from.
  """
  rows = []
  for method, draw in _placements(cell).items():
    if method not in cell.placements:
      continue
    noisy = draw()
    plain = noisy.weights is None and noisy.graph.num_edges < _most_edges(cell)
    finders: dict[str, Any] = {
      FIELD: functools.partial(_optimize, cell, arm) if plain else None
    }
    if plain:
      finders |= {
        f'{UNIVERSE}, rho {rho}': functools.partial(
          _smallest, cell, arm, snapshot
        )
        for rho, snapshot in snapshots.items()
      }
    for space, finder in finders.items():
      rows.append(_diagnosed(cell, method, noisy, space, finder))
  if MODEL_LEVEL in cell.placements:
    rows.append(_model_level(cell, arm))
  return rows


def _most_edges(cell: Cell) -> int:
  """More than this, and a receptive field is the whole graph many times."""
  return 10 * cell.private.graph.num_edges


def _placements(cell: Cell) -> dict[str, Any]:
  """Returns functions that draw each noisy graph."""
  gaussian = functools.partial(
    placement.GaussianConfig, epsilon=cell.epsilon, delta=cell.delta
  )
  configs = (
    gaussian(arm='paper'),
    gaussian(arm='fair'),
    gaussian(arm='paper', keep='threshold'),
    gaussian(arm='paper', keep='clip'),
  )
  draw = functools.partial(
    placement.gaussian.privatize, cell.private, seed=cell.seed
  )
  budget = dict(epsilon=cell.epsilon, seed=cell.seed)
  return {
    name: functools.partial(draw, config)
    for name, config in zip(PLACEMENTS, configs)
  } | {
    'EdgeRand': functools.partial(
      placement.edge_rand.privatize, cell.private, **budget
    ),
    'LapGraph': functools.partial(
      placement.lap_graph.privatize, cell.private, **budget
    ),
  }


def _optimize(cell: Cell, arm: Any, noisy, targets, model=None):
  """Mask optimization on the noisy graph."""
  return explainers.find_interventions(
    cell.world.model if model is None else model,
    noisy.graph,
    cell.world.dataset.features,
    targets,
    feature_masks=arm == 'effective',
    config=explainers.MaskConfig(num_steps=cell.num_steps),
  )


def _smallest(cell: Cell, arm: Any, snapshot, noisy, targets):
  """The smallest candidate of the public support that flips the noisy graph."""
  found = []
  for target in targets:
    config = counterfactual.PrivCFSConfig(feature_masks=arm)
    candidates = _support(cell, snapshot, int(target), config)
    scored = counterfactual.evaluate_factored(
      cell.world.model,
      graphs.PrivateGraph(noisy.graph),
      cell.world.dataset.features,
      candidates,
      feature_masks=config.feature_masks,
      projected=cell.world.projected,
    )
    smallest = explainers.minimal_counterfactual(scored, candidates)
    found.append(smallest.intervention if smallest.valid else None)
  return found


def _support(cell: Cell, snapshot, target: int, config):
  return counterfactual.support(
    snapshot,
    cell.world.dataset.features,
    cell.world.model.params['hidden']['kernel'],
    target,
    config,
  )


def _diagnosed(cell, method, noisy, space, finder, noisy_model=None):
  """Returns the row of one placement under one finder."""
  found: list[Any] = []

  def kept(noisy, targets):
    found.extend(finder(noisy, targets))
    return found

  report = placement.diagnose(
    cell.world.model,
    cell.private,
    noisy,
    cell.world.dataset.features,
    cell.targets,
    finder=kept if finder else None,
    noisy_model=noisy_model,
  )
  row = _stated_graph(noisy.guarantee) | {
    'method': method,
    'placement': 'graph',
    'space': space if finder else _NOT_SEARCHED,
    'num_draws': 1,
    'num_edges': report.num_edges,
    'num_retained': report.num_retained,
    'num_polluted': int(report.polluted.sum()),
  }
  if finder is None:
    return row
  sizes = [one.size for one in found if one is not None]
  return row | {
    'num_valid': int(report.clean_flips.sum()),
    'total_size': sum(sizes),
    'num_explained': len(sizes),
    'num_spurious': int(report.spurious.sum()),
    'num_spurious_polluted': int((report.spurious & report.polluted).sum()),
    'currency': 'edges+features',
  }


def _model_level(cell: Cell, arm: Any) -> experiment_lib.Row:
  """Returns the row of a backbone that was trained on a noisy graph."""
  dataset = cell.world.dataset
  noisy = placement.lap_graph.privatize(
    cell.private, epsilon=cell.epsilon, seed=cell.seed
  )
  private = placement.model_level.train_backbone(
    prng.stream(prng.key(cell.seed), 'cfs_baselines', 'model'),
    noisy,
    dataset.features,
    dataset.labels,
    dataset.train_index,
    num_classes=dataset.num_classes,
  )
  finder = functools.partial(_optimize, cell, arm, model=private.model)
  row = _diagnosed(cell, MODEL_LEVEL, noisy, FIELD, finder, private.model)
  return row | {'placement': 'model'}


def public_support(
  cell: Cell, arm: str, snapshots: Mapping[str, graphs.Snapshot]
) -> list[experiment_lib.Row]:
  """Rows of what chooses from PrivCFS's public support, for each rho.

  PrivCFS and the ceiling in closed form, the public-only explanation, and the
  other explanation-level methods over the same public pairs and features.
  """
  rows = []
  for rho, snapshot in snapshots.items():
    rows += _privcfs(cell, arm, rho, snapshot)
    config = counterfactual.PrivCFSConfig(feature_masks=arm)
    spaces = [
      explainers.public_space(
        _support(cell, snapshot, int(target), config).universe,
        feature_masks=arm == 'effective',
      )
      for target in cell.targets
    ]
    rows += _over_spaces(cell, spaces, f'{UNIVERSE}, rho {rho}')
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
    candidates = _support(cell, snapshot, int(target), config)
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
  release = _stated_graph(counterfactual.guarantee(cell.epsilon))
  return [
    release
    | common
    | {
      'method': 'PrivCFS',
      'csr': mean('valid_cf_rate'),
      'mean_size': mean('size'),
      'ceiling': mean('ceiling'),
    },
    _explained(cell, 'smallest counterfactual', smallest, space),
    _free_row(free, common),
  ]


def _free_row(
  free: Sequence[tuple[bool, int]], common: experiment_lib.Row
) -> experiment_lib.Row:
  """Returns the row of the explanation that the snapshot alone gives."""
  stated = _stated(explainers.random_guarantee(space_is_public=True))
  return (
    stated
    | common
    | {
      'method': 'public only',
      'placement': 'public',
      'num_draws': 1,
      'num_valid': sum(flips for flips, _ in free),
      'total_size': sum(size for _, size in free),
    }
  )
