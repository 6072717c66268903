"""What a result depends on besides its config and inputs."""

import importlib.metadata
import os
import pathlib
import platform
import subprocess
from typing import Any

import jax

import privjax

_PACKAGES = (
  'jax',
  'jaxlib',
  'numpy',
  'scipy',
  'scikit-learn',
  'flax',
  'optax',
  'jraph',
)


def describe() -> dict[str, Any]:
  """Returns versions, devices, jax settings and the git commit."""
  device = jax.devices()[0]
  return {
    'privjax': privjax.__version__,
    'git_commit': _git_commit(),
    'python': platform.python_version(),
    'packages': {name: importlib.metadata.version(name) for name in _PACKAGES},
    'backend': device.platform,
    'device': device.device_kind,
    'cpu': _cpu(),
    'num_cores': _num_cores(),
    'jax_config': {
      'x64': jax.config.jax_enable_x64,
      'threefry_partitionable': jax.config.jax_threefry_partitionable,
      'matmul_precision': str(jax.config.jax_default_matmul_precision),
    },
  }


def _git_commit() -> str | None:
  """Returns the checkout's commit, '+changes' if edited, None outside git."""
  root = pathlib.Path(__file__).resolve().parent.parent
  git = lambda *words: subprocess.run(
    ['git', '-C', str(root), *words],
    capture_output=True,
    text=True,
    check=True,
  ).stdout.strip()
  try:
    changed = git('status', '--porcelain', '--', 'privjax', 'experiments')
    return git('rev-parse', 'HEAD') + ('+changes' if changed else '')
  except (OSError, subprocess.CalledProcessError):
    return None


def _num_cores() -> int | None:
  if hasattr(os, 'sched_getaffinity'):  # Not on macOS.
    return len(os.sched_getaffinity(0))
  return os.cpu_count()


def _cpu() -> str:
  try:
    for line in pathlib.Path('/proc/cpuinfo').read_text().splitlines():
      if line.startswith('model name'):
        return line.split(':', 1)[1].strip()
  except OSError:
    pass
  return platform.processor() or platform.machine()
