"""Frozen backbones: artefacts found by name, checked by sha256.

Trained float parameters differ between core counts and processors, so no
experiment trains: it loads what `experiments.train_backbones` once made, from
`experiments/artifacts` or from the user cache.
"""

import json
import pathlib

import pooch

from privjax import models
from privjax.models import params_io

ARTIFACTS = pathlib.Path(__file__).resolve().parent / 'artifacts'


def cache() -> pathlib.Path:
  """Returns the user cache's folder of backbones."""
  return pathlib.Path(pooch.os_cache('privjax')) / 'backbones'


def name(dataset: str, seed: int) -> str:
  """Returns the base name of a backbone's files."""
  return f'{dataset}_seed{seed}'


def load(dataset: str, seed: int) -> tuple[models.NodeModel, str]:
  """Returns a frozen backbone and the sha256 of its file.

  Raises:
    FileNotFoundError: saying which command makes it.
    ValueError: if the file does not have the digest of its manifest.
  """
  for folder in (ARTIFACTS, cache()):
    manifest = folder / f'{name(dataset, seed)}.json'
    if manifest.exists():
      sha256 = json.loads(manifest.read_text())['sha256']
      path = folder / f'{name(dataset, seed)}.npz'
      return models.gcn.model(params_io.load(path, sha256=sha256)), sha256
  raise FileNotFoundError(
    f'no backbone for {dataset} with seed {seed}: run python -m '
    f'experiments.train_backbones --datasets={dataset} --seeds={seed}'
  )
