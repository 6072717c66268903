"""Seconds of rule lists, rule sets and their scores, imodels in the same run.

  python -m experiments.bench_rules --datasets=compas --with_imodels

A logistic regression without privacy is fitted to the training rows of a fold;
its labels are explained over the items of the schema.

* BRL: `privjax.rules.bayesian_rule_list.fit`, mining and three chains of 10,000
  steps, from a cold cache (compiling included) and again;
* imodels (extra `peers`, with `--with_imodels`; minutes): the same labels,
  items, priors, bounds, chains and steps. Absent where it is not installed;
* mining alone; instance transparency (IT); and, for both explanations, scores
  of alpha-violation and of the inversion attack on the held-out rows.

Every fold is one round, in which all take turns. Cold is fold 0 alone. Seconds
are not replayed; what the explanations say of held-out rows is. Nothing here is
covered by an epsilon.
"""

from collections.abc import Callable, Iterator
import dataclasses
import importlib
import math
import pathlib
import time
from typing import Any, NamedTuple
import warnings

from absl import flags
import jax
import numpy as np
import pandas as pd

from experiments import _common
from experiments import dp_accuracy_fits
from experiments import experiment as experiment_lib
from experiments import results
from privjax import data
from privjax import erm
from privjax import prng
from privjax import rules as rules_lib
from privjax.data import encoding
from privjax.rules import bayesian_rule_list
from privjax.rules import instance_transparency
from privjax.rules import inversion
from privjax.rules import items as items_lib
from privjax.rules import mining
from privjax.rules import sensitive
from privjax.rules import violation

_WITH_IMODELS = flags.DEFINE_bool(
  'with_imodels', False, 'Time the rule lists of imodels too (minutes).'
)
_COLD = 'BRL, compiling included'
_PEER = 'BRL of imodels'
_ALPHA = 0.5
_MIN_SUPPORT = 0.05
_MAX_ITEMS = 2
_NUM_CHAINS = 3


@dataclasses.dataclass(frozen=True, kw_only=True)
class Config:
  """Everything that the decisions depend on."""

  datasets: tuple[str, ...] = ('breast_cancer',)
  seed: int = 0
  num_folds: int = 3  # The first ones, of ten.
  num_iterations: int = 10_000
  with_imodels: bool = False

  def __post_init__(self):
    experiment_lib.check_choices('datasets', self.datasets, data.TABLES)
    experiment_lib.check_seeds((self.seed,))
    most = dp_accuracy_fits.NUM_FOLDS
    if not 1 <= self.num_folds <= most:
      raise ValueError(f'num_folds must be in [1, {most}]: {self.num_folds}')
    if self.num_iterations < 2:
      raise ValueError(f'num_iterations must be >= 2: {self.num_iterations}')


class Fold(NamedTuple):
  """Rows of one fold as items, and the classifier's labels. Private.

  Attributes:
    items: the C items.
    attribute: the sensitive attribute among them.
    binary: `[n, C]` bool, training rows.
    labels: `[n]` in {-1, +1}, the classifier's.
    held_out: `[m, C]` bool.
    held_out_labels: `[m]` in {-1, +1}, the classifier's.
  """

  items: items_lib.Items
  attribute: sensitive.SensitiveAttribute
  binary: np.ndarray
  labels: np.ndarray
  held_out: np.ndarray
  held_out_labels: np.ndarray


def run_unit(
  config: Config, name: str, data_dir: str | None
) -> list[experiment_lib.Row]:
  """Measures one dataset."""
  folds = load_folds(name, config.seed, config.num_folds, data_dir)
  jax.clear_caches()
  taken, fitted = _timed(_fit, config, folds[0])
  rounds = {_COLD: [taken | _list_row(folds[0], fitted)]}
  for fold in folds:
    for call_name, row in _measure(config, fold):
      rounds.setdefault(call_name, []).append(row)
  num_rows = sum(len(fold.labels) for fold in folds)
  common = {'dataset': name, 'num_rows': num_rows // len(folds)}
  return [
    common | {'name': call_name, **_merged(rows)}
    for call_name, rows in rounds.items()
  ]


def load_folds(
  dataset: str, seed: int, num_folds: int, data_dir: str | None
) -> list[Fold]:
  """Returns the first folds of ten, labelled by a classifier."""
  problem = dp_accuracy_fits.load_problem(dataset, 'lr', seed, data_dir)
  train = problem.train[:num_folds]
  fits = erm.sweep(
    problem.rows,
    train,
    loss=dp_accuracy_fits.MODELS['lr'],
    epsilons=(None,),
    regularizations=(1e-7,),
    num_draws=1,
    key=prng.key(seed),
  )
  table = data.load_table(dataset, data_dir, seed)
  items = items_lib.from_schema(table.schema)
  codes = encoding.bin_codes(table.schema, table.columns)
  binary = items_lib.indicators(items, codes)
  attribute = sensitive.one_hot(
    items_lib.of_features(items, [table.schema.sensitive])
  )
  rows = problem.rows.signed * problem.labels[:, None]
  folds = []
  for is_train, weights in zip(train, fits.weights[0, 0, :, 0]):
    labels = np.where(rows @ weights > 0, 1, -1)
    folds.append(
      Fold(
        items=items,
        attribute=attribute,
        binary=binary[is_train],
        labels=labels[is_train],
        held_out=binary[~is_train],
        held_out_labels=labels[~is_train],
      )
    )
  return folds


def _measure(
  config: Config, fold: Fold
) -> Iterator[tuple[str, experiment_lib.Row]]:
  """Yields names and rows: seconds of one call, and what it decided."""
  taken, fitted = _timed(_fit, config, fold)
  yield 'BRL, warm', taken | _list_row(fold, fitted)
  taken, mined = _timed(_mine, fold)
  yield 'BRL, mining alone', taken | {'num_antecedents': _num_frequent(mined)}
  if config.with_imodels:
    yield _PEER, _imodels_row(config, fold)
  taken, explained = _timed(_explain, config, fold)
  yield 'IT', taken | _rules_row(fold, explained.rules)
  for name, rules in (('BRL', fitted.rules), ('IT', explained.rules)):
    arguments = rules, fold.attribute
    taken, scores = _timed(
      violation.score, *arguments, fold.binary, fold.labels
    )
    status = violation.statuses(scores, alpha=_ALPHA)
    num_violating = status.count(violation.Status.VIOLATES)
    yield f'{name}, violation.score', taken | {'num_violating': num_violating}
    taken, scores = _timed(
      inversion.rule_scores, *arguments, fold.held_out, fold.held_out_labels
    )
    yield f'{name}, rule_scores', taken | _attack_row(fold, scores)


def _timed(call: Callable[..., Any], *arguments) -> tuple[dict[str, Any], Any]:
  """Returns wall and processor seconds, and the result."""
  start, cpu_start = time.perf_counter(), time.process_time()
  result = call(*arguments)
  cpu_seconds = time.process_time() - cpu_start
  seconds = time.perf_counter() - start
  return {'seconds': seconds, 'cpu_seconds': cpu_seconds}, result


def _merged(rounds: list[experiment_lib.Row]) -> experiment_lib.Row:
  """Returns the median of seconds over folds, and sums of what was decided."""
  row = {}
  for field in rounds[0]:
    values = [each[field] for each in rounds]
    is_time = field in EXPERIMENT.measured
    row[field] = float(np.median(values)) if is_time else sum(values)
  return row | {'num_folds': len(rounds)}


def _fit(config: Config, fold: Fold) -> bayesian_rule_list.RuleListFit:
  return bayesian_rule_list.fit(
    fold.binary,
    fold.labels,
    fold.items,
    key=prng.key(config.seed),
    min_support=_MIN_SUPPORT,
    max_items=_MAX_ITEMS,
    num_chains=_NUM_CHAINS,
    num_iterations=config.num_iterations,
  )


def _mine(fold: Fold) -> mining.Antecedents:
  cells = mining.compress(fold.binary, fold.labels, fold.items)
  return mining.mine(
    cells, fold.items, min_support=_MIN_SUPPORT, max_items=_MAX_ITEMS
  )


def _explain(config: Config, fold: Fold) -> instance_transparency.Explanation:
  return instance_transparency.explain(
    fold.binary, fold.labels, names=fold.items.names, seed=config.seed
  )


def _imodels_row(config: Config, fold: Fold) -> experiment_lib.Row:
  """Fits the peer; without it, seconds are not numbers."""
  try:
    imodels: Any = importlib.import_module('imodels')
  except ImportError:
    return {'seconds': math.nan, 'cpu_seconds': math.nan}
  peer = imodels.BayesianRuleListClassifier(
    listlengthprior=3,
    listwidthprior=1,
    maxcardinality=_MAX_ITEMS,
    minsupport=_MIN_SUPPORT,
    n_chains=_NUM_CHAINS,
    max_iter=config.num_iterations,
    random_state=config.seed,
  )
  binary, held_out = fold.binary.astype(int), fold.held_out.astype(int)
  with warnings.catch_warnings():
    warnings.simplefilter('ignore')
    taken, _ = _timed(peer.fit, binary, (fold.labels > 0).astype(int))
    predicted = 2 * peer.predict(held_out).astype(int) - 1
  return taken | {
    **_agreement(fold, predicted),
    'num_rules': len(peer.d_star) - 1,  # The default is in it.
    'num_antecedents': len(peer.itemsets) - 1,
  }


def _list_row(
  fold: Fold, fitted: bayesian_rule_list.RuleListFit
) -> experiment_lib.Row:
  return _rules_row(fold, fitted.rules) | {
    'num_antecedents': fitted.num_antecedents + fitted.num_duplicates
  }


def _num_frequent(mined: mining.Antecedents) -> int:
  """Counts duplicates, as the peer does."""
  return len(mined.items) + mined.num_duplicates


def _rules_row(fold: Fold, rules: rules_lib.RuleSet) -> experiment_lib.Row:
  predicted = rules_lib.predict(rules, fold.held_out)
  return _agreement(fold, predicted) | {'num_rules': rules.num_rules}


def _agreement(fold: Fold, predicted: np.ndarray) -> experiment_lib.Row:
  return {
    'num_agree': int(np.sum(predicted == fold.held_out_labels)),
    'num_held_out': len(predicted),
  }


def _attack_row(fold: Fold, scores: np.ndarray) -> experiment_lib.Row:
  """Counts the held-out levels that are guessed, and by the marginal alone."""
  train, held_out = (
    sensitive.codes(fold.attribute, fold.items.names, x)
    for x in (fold.binary, fold.held_out)
  )
  prior = inversion.prior_counts(train, fold.attribute.num_levels)
  outcome = inversion.evaluate(scores, held_out, prior=prior)
  return {
    'num_guessed': int(outcome.is_right.sum()),
    'num_marginal': int(outcome.is_marginal_right.sum()),
  }


def report(
  config: Config, rows: list[experiment_lib.Row], folder: pathlib.Path
) -> None:
  """Prints seconds a call, their ratio to a cold rule list, and agreement."""
  del config
  frame = pd.DataFrame(rows)
  cold = frame[frame['name'] == _COLD].set_index('dataset')['cpu_seconds']
  frame['times_the_list'] = frame['cpu_seconds'] / frame['dataset'].map(cold)
  frame['agreement'] = frame['num_agree'] / frame['num_held_out']
  for field in ('antecedents', 'rules'):
    frame[field] = frame[f'num_{field}'] / frame['num_folds']
  columns = ['dataset', 'name', 'num_rows', 'seconds', 'cpu_seconds']
  columns += ['times_the_list', 'antecedents', 'rules', 'agreement']
  table = frame[columns]
  results.write_text(folder / 'summary.csv', table.to_csv(index=False))
  print('medians (seconds: wall and processor) and means over folds')
  print('times_the_list: processor seconds over those of BRL with compiling')
  shown, absent = table.copy(), table['cpu_seconds'].isna()
  for column in columns[3:]:
    digits = 1 if column in ('antecedents', 'rules') else 4
    shown[column] = [
      ('absent' if gone else '')
      if math.isnan(value)
      else f'{value:,.{digits}f}'
      for value, gone in zip(table[column], absent)
    ]
  print(shown.to_string(index=False))


EXPERIMENT = experiment_lib.Experiment(
  name='bench_rules',
  config_class=Config,
  unit_names=lambda config: list(config.datasets),
  run_unit=run_unit,
  inputs=dp_accuracy_fits.inputs,
  report=report,
  measured=frozenset({'seconds', 'cpu_seconds'}),
)


def _config() -> Config:
  chosen: dict[str, Any] = {}
  if _common.DATASETS.present:
    chosen |= dict(datasets=tuple(_common.DATASETS.value))
  if _common.SMOKE.value:
    chosen |= dict(num_folds=1, num_iterations=200)
  seeds = _common.int_list(_common.SEEDS.value, 'seeds')
  return Config(seed=seeds[0], with_imodels=_WITH_IMODELS.value, **chosen)


def main() -> int:
  """Runs the benchmark as the flags say."""
  return _common.execute(EXPERIMENT, _config)


if __name__ == '__main__':
  _common.start(main)
