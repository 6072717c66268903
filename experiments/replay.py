"""Runs a finished experiment again and compares it with its manifest.

  python -m experiments.replay --manifest=<folder>/manifest.json

Decisions (integers, booleans, strings) must be equal on any machine. All values
must be equal where the environment is, and otherwise within 1e-9 of the rows
beside the manifest. Exits 1 on any difference.
"""

import json
import math
import pathlib
import sys
from typing import Any

from absl import flags
import tqdm

from experiments import _common
from experiments import environment
from experiments import experiment as experiment_lib
from experiments import registry

_MANIFEST = flags.DEFINE_string('manifest', None, 'A finished manifest.json.')
_TOLERANCE = 1e-9
_FIELDS = {
  'experiment': str,
  'config': dict,
  'inputs': dict,
  'environment': dict,
  'decision_digest': str,
  'value_digest': str,
}


def replay(path: pathlib.Path, data_dir: str | None) -> list[str]:
  """Returns what differs; an empty list confirms the manifest.

  Raises:
    ValueError: if the file is not a finished manifest of a known experiment.
    FileNotFoundError: if it, or an input, does not exist.
  """
  manifest = _read(path)
  experiment = registry.load(manifest['experiment'])
  config = _config(experiment, manifest['config'])
  found = experiment.inputs(config, data_dir)
  if found != manifest['inputs']:
    return [f'inputs: {found} instead of {manifest["inputs"]}']
  rows = []
  for unit in tqdm.tqdm(experiment.unit_names(config), mininterval=1):
    rows += [
      {'unit': unit, **row}
      for row in experiment.run_unit(config, unit, data_dir)
    ]
  differences = []
  if experiment_lib.decision_digest(rows) != manifest['decision_digest']:
    differences.append('decision_digest: the decisions differ')
  same_environment = _comparable(environment.describe()) == _comparable(
    manifest['environment']
  )
  if same_environment:
    digest = experiment_lib.value_digest(rows, experiment.measured)
    if digest != manifest['value_digest']:
      differences.append('value_digest: values differ in the same environment')
  else:
    differences += _far_values(
      rows, path.parent / 'rows.jsonl', experiment.measured
    )
  return differences


def _read(path: pathlib.Path) -> dict[str, Any]:
  try:
    manifest = json.loads(path.read_text())
    status = manifest['status']
  except (ValueError, KeyError, TypeError):
    raise ValueError(f'manifest must be a manifest.json, got {path}') from None
  if status != 'finished':
    raise ValueError(f'manifest must be of a finished run, got {status!r}')
  for name, kind in _FIELDS.items():
    if not isinstance(manifest.get(name), kind):
      raise ValueError(f'manifest must hold {name}, got {path}')
  return manifest


def _config(experiment: experiment_lib.Experiment, fields: dict[str, Any]):
  as_tuple = lambda value: tuple(value) if isinstance(value, list) else value
  return experiment.config_class(
    **{name: as_tuple(value) for name, value in fields.items()}
  )


def _comparable(description: dict[str, Any]) -> dict[str, Any]:
  """Drops the commit: the same numbers from new code is what a replay shows."""
  return {k: v for k, v in description.items() if k != 'git_commit'}


def _far_values(rows, path: pathlib.Path, measured) -> list[str]:
  """Compares floats with recorded rows, where those exist."""
  if not path.exists():
    return [f'{path} is missing: values cannot be compared']
  recorded = [json.loads(line) for line in path.read_text().splitlines()]
  order = {unit: index for index, unit in enumerate(r['unit'] for r in rows)}
  recorded.sort(key=lambda row: order.get(row.get('unit'), -1))
  if len(recorded) != len(rows):
    return [f'{len(rows)} rows instead of {len(recorded)}']
  return [
    f'{row["unit"]}: {name} is {value} instead of {old.get(name)}'
    for row, old in zip(rows, recorded)
    for name, value in row.items()
    if isinstance(value, float) and name not in measured
    if not _close(value, old.get(name))
  ]


def _close(value: float, old: Any) -> bool:
  return isinstance(old, (int, float)) and math.isclose(
    value, old, rel_tol=_TOLERANCE, abs_tol=_TOLERANCE
  )


def main() -> int:
  """Replays `--manifest`; returns the exit code."""
  if not _MANIFEST.value:
    print('error: --manifest must name a manifest.json', file=sys.stderr)
    return _common.BAD_USAGE
  try:
    differences = replay(pathlib.Path(_MANIFEST.value), _common.DATA_DIR.value)
  except (ValueError, TypeError, OSError) as error:
    print(f'error: {error}', file=sys.stderr)
    return _common.BAD_USAGE
  for difference in differences:
    print(f'different: {difference}')
  if not differences:
    print('same decisions; same values')
  return _common.FAILED if differences else _common.DONE


if __name__ == '__main__':
  _common.start(main)
