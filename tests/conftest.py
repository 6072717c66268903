"""Strict settings for every test, set before anything is collected."""

import sys

import hypothesis
import jax
import numpy as np
import pytest

jax.config.update('jax_enable_x64', True)
jax.config.update('jax_numpy_rank_promotion', 'raise')
jax.config.update('jax_debug_key_reuse', True)

hypothesis.settings.register_profile(
  'privjax',
  database=None,
  deadline=None,  # The first example of a shape compiles.
  derandomize=True,
  suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.load_profile('privjax')

# The functions of the global generator, `seed` and `get_state` included.
_LEGACY_RANDOM = sorted(set(np.random.mtrand.__all__) - {'RandomState'})


def _refuse_unless_hypothesis(name, function):
  """Wraps a function of the global generator so that only hypothesis may call.

  Hypothesis saves and restores the global state around each example.
  """

  def refuse(*args, **kwargs):
    caller = sys._getframe(1).f_globals.get('__name__', '')
    if caller.partition('.')[0] == 'hypothesis':
      return function(*args, **kwargs)
    raise AssertionError(
      f'np.random.{name} uses the global generator; use privjax.prng or pass '
      'an np.random.Generator'
    )

  return refuse


@pytest.fixture(autouse=True)
def refuse_global_random(request, monkeypatch):
  """Makes the global NumPy generator fail, except beside the peer libraries."""
  if request.node.get_closest_marker('peers'):
    return
  for name in _LEGACY_RANDOM:
    function = getattr(np.random, name)
    monkeypatch.setattr(
      np.random, name, _refuse_unless_hypothesis(name, function)
    )
