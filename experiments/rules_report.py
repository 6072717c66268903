"""Summary of the rule pipeline from its rows, and how it is printed."""

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction

import numpy as np
import pandas as pd

from experiments import rules_paper_values

NONE = 'none'
UNIT = ['dataset', 'model', 'epsilon', 'seed']
CELL = ['dataset', 'model', 'epsilon', 'explainer', 'arm', 'alpha']
CELL = [*CELL, 'privacy_rate']
NAMES = {'svm': 'SVM', 'lr': 'LR', 'it': 'IT', 'brl': 'BRL', NONE: 'None'}

# What a row of rules is set beside, from its unit's row of the classifier.
_OF_CLASSIFIER = {
  'classifier_accuracy': 'num_right',
  'marginal': 'num_marginal',
  'none_attack': 'num_attacked',
  'bayes_public': 'num_bayes_public',
  'bayes_surrogate': 'num_bayes_surrogate',
  'bayes_white_box': 'num_bayes',
}
_OF_RULES = {
  'agreement': 'num_agree',
  'accuracy': 'num_right',
  'attack': 'num_attacked',
  'bayes': 'num_bayes',
}


def summarize(rows: list[dict]) -> pd.DataFrame:
  """Returns one line per release: mean and sd of every measure.

  A run is one fold of one seed. `X_sd` is the sample deviation over runs,
  `X_seed_sd` that of the seeds' means over folds (NaN for one seed). Measures
  are percent of held-out rows but for `rules` and `violating`, which count.
  Differences are taken within a run: `excess` is attack minus marginal,
  `over_none` attack minus that on the classifier, `reduction` the attack on
  the unpruned rules minus that on these.
  """
  frame = pd.DataFrame(rows)
  is_unit = frame['explainer'] == NONE
  units = {_unit(row): row for row in frame[is_unit].to_dict('records')}
  rules = frame[~is_unit].to_dict('records')
  whole = {
    (_unit(row), row['explainer']): _measures(row, units[_unit(row)])
    for row in rules
    if row['arm'] == 'whole'
  }
  cells: dict[tuple, list[dict]] = {}
  for row in rules:
    unit = _unit(row)
    measures = _measures(row, units[unit])
    before = whole[unit, row['explainer']]
    measures['reduction'] = before['attack'] - measures['attack']
    measures['bayes_reduction'] = before['bayes'] - measures['bayes']
    cells.setdefault(tuple(row[name] for name in CELL), []).append(measures)
  return pd.DataFrame(
    [
      dict(zip(CELL, key))
      | _statistics(runs)
      | {'num_seeds': len(runs), 'num_folds': len(runs[0]['attack'])}
      for key, runs in cells.items()
    ]
  )


def _unit(row: dict) -> tuple:
  return tuple(row[name] for name in UNIT)


def _measures(row: dict, unit: dict) -> dict[str, np.ndarray]:
  """Returns the measures of one row, each `[K]` over folds."""
  tested = np.array(unit['num_tested'])
  percent = lambda source, field: 100 * np.array(source[field]) / tested
  found = {k: percent(row, field) for k, field in _OF_RULES.items()}
  found |= {k: percent(unit, field) for k, field in _OF_CLASSIFIER.items()}
  found['excess'] = found['attack'] - found['marginal']
  found['over_none'] = found['attack'] - found['none_attack']
  found['rules'] = np.array(row['num_rules'], float)
  violating = row.get('num_violates')
  if isinstance(violating, list):
    found['violating'] = np.array(violating, float)
  return found


def _statistics(runs: list[dict[str, np.ndarray]]) -> dict[str, float]:
  """Returns mean, sd over runs and sd over seeds of every measure."""
  found = {}
  for name in runs[0]:
    values = np.stack([run[name] for run in runs])
    found[name] = values.mean()
    found[f'{name}_sd'] = _sd(values.ravel())
    found[f'{name}_seed_sd'] = _sd(values.mean(axis=1))
  return found


def _sd(values: np.ndarray) -> float:
  return float(np.std(values, ddof=1)) if len(values) > 1 else float('nan')


def select(summary: pd.DataFrame, **fields: str) -> pd.DataFrame:
  """Returns the lines with these fields."""
  chosen = pd.Series(True, index=summary.index)
  for name, value in fields.items():
    chosen &= summary[name] == value
  return summary.loc[chosen]


def epsilons(summary: pd.DataFrame) -> list[str]:
  """Returns the epsilons that were measured, 'none' last."""
  order = lambda e: (e == NONE, 0 if e == NONE else Fraction(e))
  return sorted(set(summary['epsilon']), key=order)


def largest_epsilon(summary: pd.DataFrame) -> str:
  """Returns the largest private epsilon; 'none' if there is no private one."""
  private = [e for e in epsilons(summary) if e != NONE]
  return private[-1] if private else NONE


def groups(summary: pd.DataFrame) -> Iterable[tuple[str, str, pd.DataFrame]]:
  """Yields dataset, model and their lines."""
  for key, part in summary.groupby(['dataset', 'model'], sort=False):
    dataset, model = (str(name) for name in list(key))
    yield dataset, model, part


def title(dataset: str) -> str:
  """Returns a dataset's name, marked where it is a proxy of the paper's."""
  proxy = dataset in rules_paper_values.PROXIES
  return f'{dataset} (proxy)' if proxy else dataset


def cell_text(line: Mapping | pd.Series, name: str) -> str:
  """Returns 'mean+-sd' of one measure; the mean of a single run."""
  sd = line[f'{name}_sd']
  mean = f'{line[name]:.1f}'
  return mean if np.isnan(sd) else f'{mean}+-{sd:.1f}'


def table(heads: Sequence[str], lines: Sequence[Sequence[str]]) -> list[str]:
  """Aligns columns to the right, each as wide as it needs."""
  every = [list(heads), *[list(line) for line in lines]]
  widths = [max(len(line[i]) for line in every) for i in range(len(heads))]
  return [
    '  '.join(f'{cell:>{width}}' for cell, width in zip(line, widths))
    for line in every
  ]


def percent(rate: str) -> str:
  """Returns a privacy rate in percent."""
  return f'{float(100 * Fraction(rate)):g} %'
