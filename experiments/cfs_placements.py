"""The placements of Table 3 on the graph and on the model, as rows.

Each noisy graph is explained by mask optimization over the noisy receptive
field, and by the smallest counterfactual of the public support (Table 7), which
is what PrivCFS chooses from. Everything here reads private edges and is drawn
by seed: for research, not for release.
"""

from collections.abc import Mapping
import functools
from typing import Any, NamedTuple

from experiments import cfs_methods
from experiments import experiment as experiment_lib
from privjax import counterfactual
from privjax import explainers
from privjax import graphs
from privjax import models
from privjax import placement
from privjax import prng
from privjax.explainers import guarantees

_NOT_SEARCHED = 'not searched'


class Drawn(NamedTuple):
  """What a placement says of the graph: drawn once, explained in every arm.

  Attributes:
    noisy: the noisy graph.
    model: the backbone that was trained on it, or `None`: the frozen one.
  """

  noisy: placement.NoisyGraph
  model: models.NodeModel | None = None


def draw(cell: cfs_methods.Cell) -> dict[str, Drawn]:
  """Draws the noisy graphs of a cell, and trains on one, by placement."""
  functions = _placements(cell)
  drawn = {
    name: Drawn(functions[name]())
    for name in cell.placements
    if name in functions
  }
  if cfs_methods.MODEL_LEVEL in cell.placements:
    drawn[cfs_methods.MODEL_LEVEL] = _model_level(cell)
  return drawn


def graph_level(
  cell: cfs_methods.Cell,
  arm: str,
  snapshots: Mapping[str, graphs.Snapshot],
  placements: Mapping[str, Drawn],
) -> list[experiment_lib.Row]:
  """Rows of the placements on the graph and on the model."""
  rows = []
  for method, drawn in placements.items():
    row = functools.partial(_diagnosed, cell, arm, method, drawn)
    noisy = drawn.noisy
    plain = noisy.weights is None and noisy.graph.num_edges < _most_edges(cell)
    if not plain:
      rows.append(row(_NOT_SEARCHED, None))
      continue
    optimize = functools.partial(_optimize, cell, arm, drawn)
    rows.append(row(cfs_methods.FIELD, optimize))
    for rho, snapshot in snapshots.items():
      finder = functools.partial(_smallest, cell, arm, drawn, snapshot)
      found = row(f'{cfs_methods.UNIVERSE}, rho {rho}', finder)
      rows.append(cfs_methods.on_snapshot(found, snapshot))
  return rows


def _most_edges(cell: cfs_methods.Cell) -> int:
  """More than this, and a receptive field is the whole graph many times."""
  return 10 * cell.private.graph.num_edges


def _placements(cell: cfs_methods.Cell) -> dict[str, Any]:
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
    for name, config in zip(cfs_methods.PLACEMENTS, configs)
  } | {
    'EdgeRand': functools.partial(
      placement.edge_rand.privatize, cell.private, **budget
    ),
    'LapGraph': functools.partial(
      placement.lap_graph.privatize, cell.private, **budget
    ),
  }


def _optimize(cell: cfs_methods.Cell, arm: Any, drawn, noisy, targets):
  """Mask optimization on the noisy graph."""
  return explainers.find_interventions(
    drawn.model or cell.world.model,
    noisy.graph,
    cell.world.dataset.features,
    targets,
    feature_masks=arm == 'effective',
    config=explainers.MaskConfig(num_steps=cell.num_steps),
  )


def _smallest(
  cell: cfs_methods.Cell, arm: Any, drawn, snapshot, noisy, targets
):
  """The smallest public candidate that flips the noisy graph."""
  features = cell.world.dataset.features
  model, projected = cell.world.model, cell.world.projected
  if drawn.model:
    model, projected = (
      drawn.model,
      counterfactual.project(drawn.model, features),
    )
  found = []
  for target in targets:
    config = counterfactual.PrivCFSConfig(feature_masks=arm)
    candidates = cfs_methods.support(cell, snapshot, int(target), config)
    scored = counterfactual.evaluate_factored(
      model,
      graphs.PrivateGraph(noisy.graph),
      features,
      candidates,
      feature_masks=config.feature_masks,
      projected=projected,
    )
    smallest = explainers.minimal_counterfactual(scored, candidates)
    found.append(smallest.intervention if smallest.valid else None)
  return found


def _diagnosed(cell, arm, method, drawn, space, finder):
  """Returns the row of one placement under one finder."""
  noisy = drawn.noisy
  found: list[Any] = []
  # The public support holds features in both arms.
  edges_only = space == cfs_methods.FIELD and arm == 'inert'
  currency = 'edges' if edges_only else 'edges+features'

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
    noisy_model=drawn.model,
  )
  stated = cfs_methods.stated_privacy(
    noisy.guarantee, guarantees.FLOATING_POINT
  )
  row = stated | {
    'method': method,
    'placement': 'model' if drawn.model else 'graph',
    'space': space,
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
    **cfs_methods.sizes_of(sizes),
    'num_spurious': int(report.spurious.sum()),
    'num_spurious_polluted': int((report.spurious & report.polluted).sum()),
    'currency': currency,
  }


def _model_level(cell: cfs_methods.Cell) -> Drawn:
  """Trains a backbone on a noisy graph."""
  dataset = cell.world.dataset
  noisy = placement.lap_graph.privatize(
    cell.private, epsilon=cell.epsilon, seed=cell.seed
  )
  private = placement.model_level.train_backbone(
    # The frozen backbone's key: another initialization alone would change about
    # half of the predictions on borderline targets, with no noise at all.
    prng.key(cell.seed),
    noisy,
    dataset.features,
    dataset.labels,
    dataset.train_index,
    num_classes=dataset.num_classes,
  )
  return Drawn(noisy, private.model)
