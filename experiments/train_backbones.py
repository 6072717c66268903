"""Trains frozen backbones (PrivCFS, Sec. 4.1) and writes them with a manifest.

  python -m experiments.train_backbones --datasets=cora --seeds=3,4

writes `<dataset>_seed<seed>.npz` and `.json` into the user cache, where the
other experiments look after `experiments/artifacts`. An existing backbone is
kept unless `--overwrite` is given. Training reads the graph's edges: if they
are private, releasing the backbone is a channel of its own.
"""

import json
import pathlib
import sys

from absl import flags
import numpy as np

from experiments import _common
from experiments import backbones
from experiments import environment
from experiments import experiment
from experiments import results
from privjax import data
from privjax import graphs
from privjax import models
from privjax import prng
from privjax.models import params_io

_ARTIFACTS_DIR = flags.DEFINE_string(
  'artifacts_dir', None, 'Where backbones go. Default: the user cache.'
)


def train(
  dataset: data.NodeDataset, seed: int, folder: pathlib.Path, num_steps: int
) -> float:
  """Trains one backbone, writes its two files and returns the test accuracy."""
  config = models.TrainingConfig(num_steps=num_steps)
  graph = graphs.to_message_graph(
    dataset.graph.graph, dataset.features.toarray()
  )
  params = models.train(
    prng.key(seed),
    graph,
    dataset.labels,
    dataset.train_index,
    num_classes=dataset.num_classes,
    config=config,
  )
  predicted = np.asarray(models.gcn.apply(params, graph)).argmax(axis=1)
  correct = predicted == dataset.labels
  accuracy = float(correct[dataset.test_index].mean())
  name = backbones.name(dataset.name, seed)
  sha256 = params_io.save(folder / f'{name}.npz', params)
  manifest = {
    'dataset': dataset.name,
    'seed': seed,
    'num_steps': num_steps,
    'test_accuracy': accuracy,
    'sha256': sha256,
    'environment': environment.describe(),
  }
  results.write_text(
    folder / f'{name}.json', json.dumps(manifest, indent=2) + '\n'
  )
  return accuracy


def main() -> int:
  """Trains what is missing; returns the exit code."""
  try:
    seeds = _common.int_list(_common.SEEDS.value, 'seeds')
    experiment.check_seeds(seeds)
    names = tuple(_common.DATASETS.value)
    experiment.check_choices('datasets', names, data.DATASETS)
    if _common.SMOKE.value and not _ARTIFACTS_DIR.value:
      # Two steps make a backbone that no experiment should find.
      raise ValueError('smoke needs artifacts_dir, to keep the cache clean')
  except ValueError as error:
    print(f'error: {error}', file=sys.stderr)
    return _common.BAD_USAGE
  folder = pathlib.Path(_ARTIFACTS_DIR.value or backbones.cache())
  try:
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
      dataset = data.load(name, _common.DATA_DIR.value)
      for seed in seeds:
        path = folder / f'{backbones.name(name, seed)}.json'
        if path.exists() and not _common.OVERWRITE.value:
          print(f'{path} exists')
          continue
        steps = 2 if _common.SMOKE.value else models.TrainingConfig().num_steps
        accuracy = train(dataset, seed, folder, steps)
        print(f'{name} seed {seed}: test accuracy {accuracy:.3f}, {path}')
  except (ValueError, OSError) as error:
    print(f'error: {error}', file=sys.stderr)
    return _common.FAILED
  return _common.DONE


if __name__ == '__main__':
  _common.start(main)
