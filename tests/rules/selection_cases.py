"""Small random selections that brute force can solve."""

import numpy as np

from privjax.rules import selection


def problem(seed, num_rules=None):
  """Returns a random selection of at most nine rules over fifteen rows."""
  generator = np.random.Generator(np.random.Philox(seed))
  num_rules = generator.integers(0, 10) if num_rules is None else num_rules
  num_rows = int(generator.integers(1, 16))
  return selection.Problem(
    applies=generator.random((num_rows, num_rules)) < 0.4,
    counts=generator.integers(0, 5, (num_rows, 2)),
    consequent=generator.choice([-1, 1], num_rules),
    weight=generator.integers(1, 2 + 5 * (seed % 2), num_rules),
    lengths=generator.integers(1, 5, num_rules),
    default=int(generator.choice([-1, 1])),
    coverage=int(generator.integers(0, 4)),
  )


PROBLEMS = [problem(seed) for seed in range(40)]


def hard():
  """Returns a selection where the greedy cover falls short of the best."""
  return problem(3, num_rules=9)
