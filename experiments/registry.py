"""The experiments that continuous integration smoke-runs and replays.

Prints one module name per line:

  python -m experiments.registry
"""

import importlib

from experiments import experiment as experiment_lib

MODULES = (
  'experiments.bench_erm',
  'experiments.bench_evaluation',
  'experiments.bench_explainers',
  'experiments.bench_rules',
  'experiments.bench_sampling',
  'experiments.cfs_ablations',
  'experiments.cfs_baselines',
  'experiments.cfs_decomposition',
  'experiments.cfs_frontier',
  'experiments.dp_accuracy',
  'experiments.dp_tuning',
  'experiments.release',
  'experiments.rules_baseline',
  'experiments.rules_privacy',
  'experiments.rules_summary',
)


def load(name: str) -> experiment_lib.Experiment:
  """Returns the registered experiment called `name` (its module's last part).

  Raises:
    ValueError: if no registered module has that name.
  """
  by_name = {module.rsplit('.', 1)[1]: module for module in MODULES}
  if name not in by_name:
    raise ValueError(
      f'experiment must be one of {sorted(by_name)}, got {name!r}'
    )
  return importlib.import_module(by_name[name]).EXPERIMENT


if __name__ == '__main__':
  print('\n'.join(MODULES))
