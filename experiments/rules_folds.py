"""One fold of the rule pipeline: fits, rules, pruning, and integer counts.

See `rules_pipeline`, whose unit is ten of these. Everything here reads private
rows; nothing is for release.
"""

from collections.abc import Iterator, Sequence
import functools
from typing import Any, NamedTuple

import numpy as np

from experiments import dp_accuracy_fits
from privjax import data
from privjax import erm
from privjax import prng
from privjax.data import encoding
from privjax.rules import bayes_attack
from privjax.rules import bayesian_rule_list
from privjax.rules import instance_transparency
from privjax.rules import inversion
from privjax.rules import items as items_lib
from privjax.rules import rule_set
from privjax.rules import sensitive
from privjax.rules import violation

NONE = 'none'
MODELS = dp_accuracy_fits.MODELS
NUM_FOLDS = dp_accuracy_fits.NUM_FOLDS
EXPLAINERS = ('it', 'brl')
# Of the classifier that is explained, without and with privacy (Sec. 6.3).
LAMBDA = {False: 1e-7, True: 1e-2}
# Other sensitive features of a table (Fig. 6).
VARIANTS = {
  'arrest_sex': ('arrest', 'sex'),
  'incarceration_sex': ('incarceration', 'sex'),
}
DATASETS = (*data.TABLES, *VARIANTS)
# Nodes of IT's integer program. COMPAS and Mass needed at most 91, so their
# rules are the best ones; at the root alone a fold gets others.
NODE_LIMIT = 200
# Lending Club has over five times as many distinct rows: 200 nodes take nine
# times as long as the root, and no fold that was compared got better rules.
NODE_LIMITS = {'lending': 1}

_SURROGATE_LAMBDA = 1e-2


class Settings(NamedTuple):
  """What a unit is, and how far its grids go; numbers in canonical spelling."""

  dataset: str
  model: str
  epsilon: str
  seed: int
  alphas: Sequence[str]
  privacy_rates: Sequence[str]
  num_iterations: int


class Problem(NamedTuple):
  """A dataset, fold by fold and as rules see it. Private but for names.

  Attributes:
    labels: `[n]` true classes in {-1, +1}.
    train: `[K, n]` bool, the rows that a fold trains on.
    by_level: `[L, n, d]` encoded rows, S set to each level in turn.
    codes: `[n]` levels of S.
    public: `[n, m - 1]` bins of the other features.
    binary: `[n, C]` float64 items.
    items: of the columns of `binary`.
    attribute: S among the items.
  """

  labels: np.ndarray
  train: np.ndarray
  by_level: np.ndarray
  codes: np.ndarray
  public: np.ndarray
  binary: np.ndarray
  items: items_lib.Items
  attribute: sensitive.SensitiveAttribute

  @property
  def rows(self) -> np.ndarray:
    """`[n, d]` encoded rows."""
    return self.by_level[self.codes, np.arange(len(self.codes))]


class Fold(NamedTuple):
  """What a fold's evaluations share.

  Attributes:
    problem: the dataset.
    train: `[n]` bool.
    labels: `[n]` f's classes in {-1, +1}.
    prior: `[L]` training rows per level.
    given_public: `[t, L]` P(S | P) of held-out rows.
    surrogate: `[n, L]` classes by the attacker's own classifier, as 0 and 1.
    cells: `[M, C]` distinct rows without S, and `cell`, `[n]`, each row's.
  """

  problem: Problem
  train: np.ndarray
  labels: np.ndarray
  prior: np.ndarray
  given_public: np.ndarray
  surrogate: np.ndarray
  cells: np.ndarray
  cell: np.ndarray


@functools.lru_cache(maxsize=4)
def load_problem(dataset: str, seed: int, data_dir: str | None) -> Problem:
  """Loads a dataset, with S replaced where the name is one of `VARIANTS`."""
  name, feature = VARIANTS.get(dataset, (dataset, None))
  table = data.load_table(name, data_dir, seed)
  schema = table.schema
  feature = feature or schema.sensitive
  position = schema.names.index(feature)
  items = items_lib.from_schema(schema)
  bins = encoding.bin_codes(schema, table.columns)
  by_level = [
    encoding.encode(
      schema, {**table.columns, feature: np.full(table.num_rows, level)}
    )
    for level in range(len(schema.columns[position].bin_names))
  ]
  folds = data.stratified_folds(table.labels, NUM_FOLDS, seed)
  return Problem(
    labels=table.labels,
    train=np.arange(NUM_FOLDS)[:, None] != folds,
    by_level=np.stack(by_level),
    codes=table.columns[feature],
    public=np.delete(bins, position, axis=1),
    binary=items_lib.indicators(items, bins).astype(np.float64),
    items=items,
    attribute=sensitive.one_hot(items_lib.of_features(items, [feature])),
  )


def run_fold(
  settings: Settings, fold: int, data_dir: str | None
) -> Iterator[tuple[tuple[str, str, str, str], dict[str, Any]]]:
  """Yields each release of one fold and its counts.

  Args:
    settings: of the unit.
    fold: in [0, 10).
    data_dir: where data lie.

  Yields:
    (explainer, arm, alpha, privacy rate) and integers. Explainer 'none' is the
    classifier itself; an arm is 'whole', 'pruned' or 'random'.
  """
  problem = load_problem(settings.dataset, settings.seed, data_dir)
  weights = _weights(*settings[:4], data_dir)[fold]
  surrogate = _surrogate(settings.dataset, settings.seed, data_dir)[fold]
  predictions = _classes(problem, weights)
  shared = _make_fold(problem, fold, predictions, _classes(problem, surrogate))
  yield (NONE, 'whole', NONE, NONE), _classifier_counts(shared, predictions)
  for explainer in EXPLAINERS:
    rules = _explain(settings, shared, explainer, fold)
    for key, counts in _releases(settings, shared, rules, fold):
      yield (explainer, *key), counts


@functools.lru_cache(maxsize=2)
def _weights(
  dataset: str, model: str, epsilon: str, seed: int, data_dir: str | None
) -> np.ndarray:
  """Returns the classifiers that are explained, `[K, d]`; cached."""
  private = epsilon != NONE
  return _fit(
    load_problem(dataset, seed, data_dir),
    MODELS[model],
    LAMBDA[private],
    epsilon if private else None,
    key=prng.key(seed),
    names=('rules', dataset, model),
  )


@functools.lru_cache(maxsize=4)
def _surrogate(dataset: str, seed: int, data_dir: str | None) -> np.ndarray:
  """Returns the attacker's own classifiers, `[K, d]`; cached."""
  return _fit(
    load_problem(dataset, seed, data_dir),
    MODELS['lr'],
    _SURROGATE_LAMBDA,
    None,
    key=prng.key(seed),
  )


def _fit(
  problem: Problem, loss, regularization, epsilon, **settings
) -> np.ndarray:
  config = erm.ErmConfig(
    loss=loss, regularization=regularization, row_norm=1.0, classes=(-1, 1)
  )
  fits = erm.sweep(
    erm.unit_rows(problem.rows, problem.labels, config),
    problem.train,
    loss=loss,
    epsilons=(epsilon,),
    regularizations=(regularization,),
    num_draws=1,
    calibration='paper',
    **settings,
  )
  return fits.weights[0, 0, :, 0]


def _classes(problem: Problem, weights: np.ndarray) -> np.ndarray:
  """Returns the classes at every level of S, `[n, L]`; a score of 0 is -1."""
  return np.where(problem.by_level @ weights > 0, 1, -1).T


def _make_fold(problem, fold: int, predictions, surrogate) -> Fold:
  train = problem.train[fold]
  known = bayes_attack.population(
    problem.public[train], problem.codes[train], problem.attribute.num_levels
  )
  # S at level 0 in all: rules are asked level by level, once per public cell.
  rows = sensitive.with_level(
    problem.attribute, problem.items.names, problem.binary, 0
  )
  cells, cell = np.unique(rows, axis=0, return_inverse=True)
  return Fold(
    problem=problem,
    train=train,
    labels=bayes_attack.own(predictions, problem.codes),
    prior=known.prior,
    given_public=bayes_attack.conditional(known, problem.public[~train]),
    surrogate=bayes_attack.classifier_signals(surrogate),
    cells=cells,
    cell=cell.ravel(),
  )


def _explain(
  settings: Settings, fold: Fold, explainer: str, number: int
) -> rule_set.RuleSet:
  binary, labels = fold.problem.binary[fold.train], fold.labels[fold.train]
  if explainer == 'it':
    return instance_transparency.explain(
      binary,
      labels,
      names=fold.problem.items.names,
      seed=settings.seed,
      node_limit=NODE_LIMITS.get(settings.dataset, NODE_LIMIT),
    ).rules
  names = (*settings[:3], number)
  return bayesian_rule_list.fit(
    binary,
    labels,
    fold.problem.items,
    key=prng.stream(prng.key(settings.seed), 'rules', *names),
    num_iterations=settings.num_iterations,
  ).rules


def _releases(
  settings: Settings, fold: Fold, rules: rule_set.RuleSet, number: int
):
  """Yields (arm, alpha, rate) and counts: the whole, pruned ones, controls."""
  scores = violation.score(
    rules,
    fold.problem.attribute,
    fold.problem.binary[fold.train],
    fold.labels[fold.train],
  )
  # Most alphas drop the same rules, and a control depends on their number.
  done: dict[bytes, dict[str, int]] = {}
  yield ('whole', NONE, NONE), _cached_counts(fold, rules, done)
  for alpha in settings.alphas:
    for rate in settings.privacy_rates:
      pruned = violation.prune(
        rules, scores, alpha=dp_accuracy_fits.number(alpha), privacy_rate=rate
      )
      control = violation.drop_at_random(
        rules,
        rules.num_rules - pruned.rules.num_rules,
        seed=int(prng.words('control', settings.seed, number)[0]),
      )
      counts = _cached_counts(fold, pruned.rules, done)
      counts |= {
        f'num_{status.value}': pruned.statuses.count(status)
        for status in violation.Status
      }
      yield ('pruned', alpha, rate), counts
      yield ('random', alpha, rate), _cached_counts(fold, control, done)


def _cached_counts(fold: Fold, rules: rule_set.RuleSet, done) -> dict[str, int]:
  """Returns a copy of the counts of rules, from `done` if they are there."""
  parts = (rules.lower, rules.upper, rules.consequent)
  key = b''.join(part.tobytes() for part in parts)
  if key not in done:
    done[key] = _rule_counts(fold, rules)
  return dict(done[key])


def _rule_counts(fold: Fold, rules: rule_set.RuleSet) -> dict[str, int]:
  """Counts held-out rows: agreement, accuracy, and levels guessed."""
  problem, test = fold.problem, ~fold.train
  predicted = rule_set.predict(rules, problem.binary[test])
  votes = inversion.rule_scores(
    rules, problem.attribute, problem.binary[test], fold.labels[test]
  )
  spoken = bayes_attack.release_signals(rules, problem.attribute, fold.cells)
  signals = bayes_attack.join(
    fold.surrogate, spoken[fold.cell], bayes_attack.NUM_RELEASE_SIGNALS
  )
  num_signals = 2 * bayes_attack.NUM_RELEASE_SIGNALS
  return {
    'num_rules': rules.num_rules,
    'num_agree': np.sum(predicted == fold.labels[test]),
    'num_right': np.sum(predicted == problem.labels[test]),
    'num_attacked': _guessed(fold, votes),
    'num_bayes': _guessed(fold, _bayes(fold, signals, num_signals)),
  }


def _classifier_counts(fold: Fold, predictions: np.ndarray) -> dict[str, int]:
  """Counts held-out rows: the classifier's, and attackers without rules."""
  test = ~fold.train
  marginal = np.argmax(fold.prior)
  signals = bayes_attack.classifier_signals(predictions)
  itself = inversion.classifier_scores(predictions[test], fold.labels[test])
  return {
    'num_tested': np.sum(test),
    'num_positive': np.sum(fold.labels[test] == 1),
    'num_right': np.sum(fold.labels[test] == fold.problem.labels[test]),
    'num_marginal': np.sum(fold.problem.codes[test] == marginal),
    'num_attacked': _guessed(fold, itself),
    'num_bayes': _guessed(fold, _bayes(fold, signals, 2)),
    'num_bayes_public': _guessed(fold, fold.given_public),
    'num_bayes_surrogate': _guessed(fold, _bayes(fold, fold.surrogate, 2)),
  }


def _bayes(fold: Fold, signals: np.ndarray, num_signals: int) -> np.ndarray:
  """Returns the Bayes scores `[t, L]` of held-out rows, from `[n, L]`."""
  train = fold.train
  own = bayes_attack.own(signals[train], fold.problem.codes[train])
  return bayes_attack.bayes_scores(
    fold.given_public,
    signals=signals[~train],
    labels=fold.labels[~train],
    likelihoods=bayes_attack.likelihood(own, fold.labels[train], num_signals),
  )


def _guessed(fold: Fold, scores: np.ndarray) -> int:
  codes = fold.problem.codes[~fold.train]
  outcome = inversion.evaluate(scores, codes, prior=fold.prior)
  return int(outcome.is_right.sum())
