"""Calls an experiment's `main` in this process, as its command line would."""

from collections.abc import Callable
import contextlib
import dataclasses
import io
import json
import pathlib
import tempfile
from typing import Any, NamedTuple
import unittest

from absl import flags
from absl.testing import flagsaver

from experiments import _common
from experiments import cfs_frontier
from experiments import experiment as experiment_lib

# One cheap cell: three shapes to compile, shared by most tests of the folder.
TINY = cfs_frontier.Config(
  seeds=(0,),
  rhos=('0.5',),
  epsilons=('1', '8'),
  protocols=('random',),
  feature_masks=('effective',),
  num_draws=20,
  max_targets=2,
)


class Outcome(NamedTuple):
  """How a command ended."""

  code: int
  out: str
  err: str


def call(main: Callable[[], int], *args: str) -> Outcome:
  """Parses flags as the binary does, then runs `main`."""
  out, err = io.StringIO(), io.StringIO()
  with (
    flagsaver.flagsaver(),
    contextlib.redirect_stdout(out),
    contextlib.redirect_stderr(err),
  ):
    try:
      _common._parse(['binary', *args])
      code = main()
    except SystemExit as error:
      code = error.code
  return Outcome(code, out.getvalue(), err.getvalue())


def execute(
  experiment: experiment_lib.Experiment, config: Any, *args: str
) -> Outcome:
  """Runs an experiment through `_common.execute`."""
  return call(lambda: _common.execute(experiment, lambda: config), *args)


def temporary_folder(test: unittest.TestCase) -> pathlib.Path:
  """Returns a folder that lives as long as the test."""
  return pathlib.Path(test.enterContext(tempfile.TemporaryDirectory()))


def only(folder: pathlib.Path, name: str) -> pathlib.Path:
  """Returns the one file below `folder` that is called `name`."""
  (path,) = folder.rglob(name)
  return path


def read_rows(folder: pathlib.Path) -> list[dict]:
  """Returns the rows below `folder`, in file order."""
  text = only(folder, 'rows.jsonl').read_text()
  return [json.loads(line) for line in text.splitlines()]


def read_manifest(folder: pathlib.Path) -> dict:
  """Returns the manifest below `folder`."""
  return json.loads(only(folder, 'manifest.json').read_text())


def defined_flags(*modules: str) -> set[str]:
  """Returns the names of the flags that modules define."""
  by_module = flags.FLAGS.flags_by_module_dict()
  return {flag.name for name in modules for flag in by_module.get(name, [])}


@dataclasses.dataclass(frozen=True, kw_only=True)
class FakeConfig:
  """Config of `fake_experiment`."""

  units: tuple[str, ...] = ('a', 'b', 'c', 'd')


def fake_rows(name: str) -> list[dict]:
  """Returns the rows of one unit of `fake_experiment`."""
  return [
    {'index': i, 'ok': i > 0, 'word': name * 2, 'value': len(name) / (i + 3)}
    for i in range(3)
  ]


def fake_experiment(
  run_unit: Callable[[FakeConfig, str, str | None], list[dict]] | None = None,
  inputs: dict[str, str] | None = None,
) -> experiment_lib.Experiment:
  """An experiment that needs no jax; its table is the list of its rows."""

  def report(config, rows, folder):
    del config
    (folder / 'summary.csv').write_text(f'{len(rows)}\n')
    for row in rows:
      print(json.dumps(row))

  return experiment_lib.Experiment(
    name='fake',
    config_class=FakeConfig,
    unit_names=lambda config: list(config.units),
    run_unit=run_unit or (lambda config, name, data_dir: fake_rows(name)),
    inputs=lambda config, data_dir: inputs or {'data': '00'},
    report=report,
  )
