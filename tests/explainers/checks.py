"""Checks that return what they found, so that mutants can be fed to them."""

import itertools
import math
from typing import NamedTuple

import jax
import numpy as np
from scipy import stats

from privjax import explainers
from privjax import prng
from privjax.explainers import field_batch
from tests.counterfactual import cases
from tests.counterfactual import checks as counterfactual_checks
from tests.oracles import counterfactual as oracle

GAP_TOLERANCE = 1e-11
_MASKS_PER_CASE = 4
_DIMENSION = 200_000


def named_cases() -> dict[str, cases.Case]:
  """Returns degenerate and random graphs, by name."""
  named = counterfactual_checks.named_cases()
  return named | {f'random {s}': cases.random_case(s) for s in range(4)}


def space_of(case: cases.Case, **kinds) -> explainers.OperationSpace:
  """Returns the case's two-hop receptive field as an operation space."""
  graph = case.private.graph
  return explainers.receptive_field_space(
    graph, case.features, case.target, num_hops=2, **kinds
  )


def public_space_of(case: cases.Case) -> explainers.OperationSpace:
  """Returns a public space on all pairs of nodes, edges or not."""
  return explainers.OperationSpace(
    target=case.target,
    pairs=np.array(cases.ALL_PAIRS),
    features=np.arange(cases.NUM_FEATURES),
    is_public=True,
  )


def about(case: cases.Case):
  """Returns model, graph and features of a case."""
  return case.model, case.private.graph, case.features


def oracle_logits(case: cases.Case, cut: explainers.Intervention):
  """Returns the logits of a dense forward on the rebuilt graph."""
  dense = case.features.toarray()
  dense[case.target, list(cut.features)] = 0
  deleted = {frozenset(pair) for pair in cut.pairs}
  return oracle.target_logits(
    case.params, len(dense), case.edges - deleted, dense, case.target
  )


def random_masks(space, seed) -> list[field_batch.Masks]:
  """Returns a few masks, the empty and the full intervention among them."""
  rng = np.random.default_rng(seed)
  size = space.num_operations
  rows = [np.ones(size, bool), np.zeros(size, bool)]
  rows += [rng.random(size) < 0.7 for _ in range(_MASKS_PER_CASE - 2)]
  return [field_batch.split(row, space) for row in rows]


def exactness_violations() -> list[str]:
  """Compares `check_masks` with dense forwards on rebuilt graphs."""
  found = []
  for name, case in named_cases().items():
    spaces, masks = [], []
    for seed, space in enumerate((space_of(case), public_space_of(case))):
      masks += random_masks(space, seed)
      spaces += [space] * _MASKS_PER_CASE
    labels = explainers.check_masks(*about(case), spaces, masks)
    empty = explainers.Intervention(target=case.target)
    clean = oracle_logits(case, empty)
    original = int(np.argmax(clean))
    for index, (space, mask) in enumerate(zip(spaces, masks)):
      out = oracle_logits(case, space.intervention(*mask))
      gap = out[original] - np.delete(out, original).max()
      if not abs(labels.gap[index] - gap) <= GAP_TOLERANCE:
        found.append(f'gap: {name} by {labels.gap[index] - gap:.2e}')
      if name == 'tie of all classes':
        continue  # Rounding decides an oracle's tie in its own way.
      if labels.new[index] != np.argmax(out):
        found.append(f'label: {name}')
      if labels.original[index] != original:
        found.append(f'original: {name}')
  return found


def search_violations(config: explainers.MaskConfig) -> list[str]:
  """Compares what a search calls valid with what the oracle calls valid."""
  found = []
  for seed in range(24):
    case = cases.random_case(seed, density=0.3)
    space = space_of(case, feature_masks=False)
    one = explainers.search(*about(case), [space], config=config)[0]
    label = lambda cut, c=case: int(np.argmax(oracle_logits(c, cut)))
    empty = explainers.Intervention(target=case.target)
    flips = label(space.intervention(*one.keep)) != label(empty)
    if bool(one.valid) != flips:
      found.append(f'valid: random {seed}')
  return found


class SgdSubject(NamedTuple):
  """A noisy gradient step and what its release claims."""

  privatize: object
  config: object
  epsilon: float
  delta: float


def sgd_violations(subject: SgdSubject) -> list[str]:
  """Compares a claim with the exact loss of T steps on the worst gradients.

  The shift between two gradients is seen without error, as the noise of one
  key cancels; the scale of the noise is estimated to about 0.2 %, and 2 %
  are granted to it.
  """
  config = subject.config
  settings = dict(clip_norm=config.clip_norm, noise_std=config.noise_std)
  key = prng.key(3)
  run = lambda flat, step=0: np.concatenate(
    subject.privatize(
      jax.random.fold_in(key, step), field_batch.split(flat, _WIDE), **settings
    )
  )
  rng = np.random.default_rng(0)
  direction = rng.normal(size=_DIMENSION)
  direction /= np.linalg.norm(direction)
  gradients = [scale * direction for scale in (0, 1, -1, 1e6, -1e6, 1e100)]
  outputs = [run(gradient) for gradient in gradients]
  shift = max(
    np.linalg.norm(a - b) for a, b in itertools.combinations(outputs, 2)
  )
  found = []
  if not np.isfinite(outputs).all():
    found.append('finite: an output is not')
  std = 1.02 * outputs[0].std()
  mu = math.sqrt(config.num_steps) * shift / std
  if gaussian_delta(mu, subject.epsilon) > subject.delta:
    found.append(f'loss: mu = {mu:.3f} at epsilon {subject.epsilon}')
  # The loss is that of independent entries: both parts of one step, and two
  # steps. Ten standard errors.
  parts = [*np.split(outputs[0], 2), *np.split(run(0 * direction, 1), 2)]
  correlation = np.corrcoef(parts) - np.eye(len(parts))
  if np.abs(correlation).max() > 10 / math.sqrt(_DIMENSION / 2):
    found.append(f'independent: correlation {np.abs(correlation).max():.3f}')
  return found


class _Wide(NamedTuple):
  pairs: np.ndarray
  features: np.ndarray


_WIDE = _Wide(np.zeros((_DIMENSION // 2, 2)), np.zeros(_DIMENSION // 2))


def gaussian_delta(mu: float, epsilon: float) -> float:
  """Returns the exact delta of a Gaussian mechanism (Balle & Wang, 2018)."""
  if not np.isfinite(mu):
    return 1.0
  first = stats.norm.cdf(mu / 2 - epsilon / mu)
  log_second = epsilon + stats.norm.logcdf(-mu / 2 - epsilon / mu)
  return float(first - np.exp(log_second))


def response_violations(log_likelihood, *, epsilon, num_bits=4) -> list[str]:
  """Compares all masks with all others: the loss and the total mass."""
  masks = [
    np.array(m) for m in itertools.product([False, True], repeat=num_bits)
  ]
  table = np.array(
    [[log_likelihood(r, m, epsilon=epsilon) for r in masks] for m in masks]
  )
  found = []
  if not np.allclose(np.exp(table).sum(axis=1), 1, atol=1e-12):
    found.append('mass: not a law')
  loss = np.abs(table[:, None] - table[None, :]).max()
  if loss > float(epsilon) + 1e-9:
    found.append(f'ratio: exp({loss:.4f})')
  if loss < 0.99 * float(epsilon):
    found.append(f'waste: exp({loss:.4f})')
  return found
