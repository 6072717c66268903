"""A dataset with one seed's frozen backbone, loaded once for all cells."""

import functools
import hashlib
from typing import Any, NamedTuple

import numpy as np

from experiments import backbones
from experiments import experiment as experiment_lib
from privjax import counterfactual
from privjax import data
from privjax import graphs
from privjax import models

_BORDERLINE, _RANDOM, _PER_QUARTILE = 10, 16, 4


class World(NamedTuple):
  """What every cell of one dataset and seed starts from.

  Attributes:
    dataset: graph, features and split.
    model: the frozen backbone.
    projected: `[N, H]`, `counterfactual.project` of the features.
    margin: `[N]`, top-two softmax gap on the private graph.
  """

  dataset: data.NodeDataset
  model: models.NodeModel
  projected: np.ndarray
  margin: np.ndarray


@functools.lru_cache(maxsize=4)
def load_dataset(name: str, data_dir: str | None) -> data.NodeDataset:
  """Returns a dataset; cached."""
  return data.load(name, data_dir)


@functools.lru_cache(maxsize=2)
def load(name: str, seed: int, data_dir: str | None) -> World:
  """Returns a dataset with a frozen backbone; cached."""
  dataset = load_dataset(name, data_dir)
  model, _ = backbones.load(name, seed)
  return World(
    dataset=dataset,
    model=model,
    projected=counterfactual.project(model, dataset.features),
    margin=counterfactual.node_margins(
      model, dataset.graph.graph, dataset.features
    ),
  )


@functools.lru_cache(maxsize=2)
def load_snapshot(
  name: str, seed: int, rho: str, data_dir: str | None
) -> graphs.Snapshot:
  """Returns a simulated snapshot; cached."""
  graph = load_dataset(name, data_dir).graph
  return graphs.simulate_snapshot(graph, rho=rho, seed=seed)


def targets(world: World, protocol: str, seed: int) -> np.ndarray:
  """Returns the targets of one protocol: 16 nodes, the 10 borderline ones."""
  nodes = world.dataset.test_index
  if protocol == 'random':
    return counterfactual.random_targets(nodes, count=_RANDOM, seed=seed)
  if protocol == 'borderline':
    return counterfactual.borderline_targets(
      nodes, world.margin, count=_BORDERLINE
    )
  return counterfactual.stratified_targets(
    nodes, world.margin, per_quartile=_PER_QUARTILE, seed=seed
  )


def inputs(config: Any, data_dir: str | None) -> dict[str, str]:
  """Returns the sha256 of every dataset's arrays and every backbone's file."""
  found = {}
  for name in config.datasets:
    found[name] = _digest(load_dataset(name, data_dir))
    for seed in experiment_lib.seeds(config):
      found[backbones.name(name, seed)] = backbones.load(name, seed)[1]
  return found


def _digest(dataset: data.NodeDataset) -> str:
  """Hashes a dataset, edges included: for experiments, never for a release."""
  digest = hashlib.sha256()
  for array in (
    dataset.graph.graph.pairs,
    dataset.features.indptr.astype(np.int64),
    dataset.features.indices.astype(np.int64),
    dataset.features.data,
    dataset.labels,
    dataset.train_index,
    dataset.test_index,
  ):
    digest.update(np.ascontiguousarray(array).tobytes())
  return digest.hexdigest()
