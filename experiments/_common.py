"""Shared flags and the life of a run: resume, progress, manifest, report.

Exit codes of every binary: 0 done, 1 failed or different, 2 bad usage, 130
interrupted (ctrl-C; the same command resumes).
"""

from collections.abc import Callable
import os
import pathlib
import sys
from typing import Any

from absl import app
from absl import flags
from absl import logging
import tqdm

from experiments import environment
from experiments import experiment as experiment_lib
from experiments import results as results_lib

OUT_DIR = flags.DEFINE_string('out_dir', 'results', 'Where results go.')
DATA_DIR = flags.DEFINE_string(
  'data_dir',
  None,
  'Folder of data files, one folder per source. Default: $PRIVJAX_DATA_DIR, '
  'then the user cache, then a download.',
)
DATASETS = flags.DEFINE_list('datasets', ['embedded'], 'Data sets.')
SEEDS = flags.DEFINE_list('seeds', ['0', '1', '2'], 'Seeds, in [0, 2**32).')
SMOKE = flags.DEFINE_bool('smoke', False, 'A run of a few seconds.')
OVERWRITE = flags.DEFINE_bool(
  'overwrite', False, 'Drop an earlier run of the same config.'
)

_CHUNK_SIZE = flags.DEFINE_integer(
  'chunk_size',
  10,
  'Edge subsets that are scored at once: bounds memory, changes no decision.',
  lower_bound=1,
)
_BATCH_SIZE = flags.DEFINE_integer(
  'batch_size',
  64,
  'Private fits that are solved at once: bounds memory, changes no decision.',
  lower_bound=1,
)

DONE, FAILED, BAD_USAGE, INTERRUPTED = 0, 1, 2, 130


def int_list(values: list[str], name: str) -> tuple[int, ...]:
  """Parses a list flag of integers, at least one.

  Raises:
    ValueError: naming the flag and the value.
  """
  try:
    if not values:
      raise ValueError
    return tuple(int(value) for value in values)
  except ValueError:
    raise ValueError(f'{name} must be integers, got {values}') from None


def chunk_size() -> int:
  """Returns `--chunk_size`, or its default where flags were not parsed."""
  return _CHUNK_SIZE.value if flags.FLAGS.is_parsed() else _CHUNK_SIZE.default


def batch_size() -> int:
  """Returns `--batch_size`, or its default where flags were not parsed."""
  return _BATCH_SIZE.value if flags.FLAGS.is_parsed() else _BATCH_SIZE.default


def start(main: Callable[[], int]) -> None:
  """Parses flags and exits with the code that `main` returns."""
  logging.set_verbosity(logging.WARNING)  # Not jax's search for backends.
  app.run(lambda _: _leave(main()), flags_parser=_parse)


def _leave(code: int) -> None:
  """Exits; after ctrl-C without the shutdown, in which jaxlib can crash."""
  if code == INTERRUPTED:
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
  sys.exit(code)


def execute(
  experiment: experiment_lib.Experiment, make_config: Callable[[], Any]
) -> int:
  """Runs an experiment as the flags say; returns the exit code."""
  try:
    config = make_config()
    if DATA_DIR.value and not pathlib.Path(DATA_DIR.value).is_dir():
      raise ValueError(f'data_dir must be a folder, got {DATA_DIR.value}')
  except ValueError as error:
    return _fail(error, BAD_USAGE)
  digest = experiment_lib.config_hash(config)
  folder = pathlib.Path(OUT_DIR.value) / experiment.name / digest
  try:
    results = results_lib.Results(folder, overwrite=OVERWRITE.value)
  except OSError as error:
    return _fail(f'out_dir must be writable: {error}', BAD_USAGE)
  except results_lib.DamagedRunError as error:
    return _fail(error, FAILED)
  try:
    _complete(experiment, config, results)
  except KeyboardInterrupt:
    return _fail('interrupted: run the same command to resume', INTERRUPTED)
  except (OSError, ValueError, results_lib.DamagedRunError) as error:
    return _fail(error, FAILED)
  finally:
    results.close()
  return DONE


def _complete(experiment, config, results) -> None:
  """Runs the units that are missing, then writes manifest and report."""
  data_dir = DATA_DIR.value
  names = experiment.unit_names(config)
  manifest = {
    'experiment': experiment.name,
    'status': 'running',
    'config': experiment_lib.config_dict(config),
    'inputs': experiment.inputs(config, data_dir),
    'environment': environment.describe(),
    'command': ' '.join(sys.argv[1:]),
  }
  if results.finished:
    print(f'Finished before: {results.folder}', file=sys.stderr)
    results.check_digest(
      experiment_lib.value_digest(results.rows(names), experiment.measured)
    )
  else:
    _check_same_origin(results, manifest)
    results.write_manifest(manifest)
    missing = [name for name in names if name not in results.done]
    for name in tqdm.tqdm(missing, desc=experiment.name, mininterval=1):
      results.append(name, experiment.run_unit(config, name, data_dir))
    rows = results.rows(names)
    manifest = manifest | {
      'status': 'finished',
      'num_rows': len(rows),
      'decision_digest': experiment_lib.decision_digest(rows),
      'value_digest': experiment_lib.value_digest(rows, experiment.measured),
    }
  experiment.report(config, results.rows(names), results.folder)
  if not results.finished:
    results.write_manifest(manifest)
  print(f'\nRows, manifest and figures: {results.folder}')


def _check_same_origin(results, manifest) -> None:
  """Refuses to mix rows of two environments or inputs in one run."""
  if results.manifest is None:
    return
  for field in ('inputs', 'environment'):
    if results.manifest[field] != manifest[field]:
      raise results_lib.DamagedRunError(
        f'{results.folder} was started with other {field}: '
        f'{_difference(results.manifest[field], manifest[field])}; pass '
        '--overwrite to start again, or another --out_dir'
      )


def _difference(old: dict[str, Any], new: dict[str, Any]) -> str:
  changed = [k for k in sorted({*old, *new}) if old.get(k) != new.get(k)]
  return ', '.join(f'{k} {old.get(k)} -> {new.get(k)}' for k in changed)


def _fail(error: object, code: int) -> int:
  print(f'error: {error}', file=sys.stderr)
  return code


def _parse(argv: list[str]) -> list[str]:
  """Parses flags; unknown flags and stray arguments are bad usage."""
  try:
    rest = flags.FLAGS(argv)[1:]
  except flags.Error as error:
    sys.exit(_fail(f'{error}\nPass --help for the flags.', BAD_USAGE))
  if rest:
    sys.exit(_fail(f'no positional arguments are taken, got {rest}', BAD_USAGE))
  return argv
