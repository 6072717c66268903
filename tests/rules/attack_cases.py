"""Random small rule sets over two public columns and a sensitive attribute."""

import numpy as np

from privjax.rules import rule_set
from privjax.rules import sensitive

# The sensitive columns are not next to each other, nor in their order.
NAMES = ('S=c', 'age', 'S=a', 'smoker', 'S=b')
SCORE = sensitive.one_hot(('S=a', 'S=b', 'S=c'))
_PRIVATE = (2, 4, 0)


def rows(generator, num_rows):
  """Returns `[n, 5]` rows; level b is rare, so that a sample may miss it."""
  x = np.zeros((num_rows, 5))
  x[:, 1] = generator.integers(0, 5, num_rows)
  x[:, 3] = generator.integers(0, 2, num_rows)
  level = generator.choice(3, num_rows, p=(0.6, 0.1, 0.3))
  x[np.arange(num_rows), np.array(_PRIVATE)[level]] = 1
  return x


def rules(generator, num_rules, *, ordered):
  """Returns rules that bound about two columns each."""
  shape = (num_rules, 5)
  lower, upper = np.full(shape, -np.inf), np.full(shape, np.inf)
  cut = np.where(np.arange(5) == 1, generator.integers(0, 4, shape) + 0.5, 0.5)
  side = generator.integers(0, 5, shape)
  lower[side == 0] = cut[side == 0]
  upper[side == 1] = cut[side == 1]
  return rule_set.make(
    lower,
    upper,
    generator.choice([-1, 1], num_rules),
    names=NAMES,
    default=int(generator.choice([-1, 1])),
    ordered=ordered,
    weight=generator.integers(0, 3, num_rules),
  )


def draw(seed, *, ordered):
  """Returns (rules, x, labels) of one random case."""
  generator = np.random.Generator(np.random.Philox(seed))
  num_rows = int(generator.integers(1, 30))
  return (
    rules(generator, int(generator.integers(0, 7)), ordered=ordered),
    rows(generator, num_rows),
    generator.choice([-1, 1], num_rows),
  )


CASES = [
  draw(2 * seed + ordered, ordered=ordered)
  for seed in range(40)
  for ordered in (False, True)
]


def eight_rows():
  """Returns rules, attribute, rows and labels of the worked example.

  P = 0 and S = 1 -> +1: Pr[S = 1] = 1/2, and the one row with P = 0 and f = +1
  has S = 1, so the ratio is 2.
  """
  s = np.array([1, 1, 1, 0, 1, 0, 0, 0])
  p = np.array([1, 1, 1, 1, 0, 0, 0, 0])
  x = np.stack([p, 1 - s, s], axis=1).astype(float)
  labels = np.array([1, 1, 1, 1, 1, -1, -1, -1])
  example = rule_set.make(
    [[-np.inf, -np.inf, 0.5]],
    [[0.5, np.inf, np.inf]],
    [1],
    names=('P', 'S=0', 'S=1'),
    default=-1,
    ordered=False,
  )
  return example, sensitive.one_hot(('S=0', 'S=1')), x, labels
