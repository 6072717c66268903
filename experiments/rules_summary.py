"""Pruned rules of a classifier without privacy, or a private one: Table 3.

  python -m experiments.rules_summary
  python -m experiments.rules_summary --datasets=compas,mammographic

The paper sets alpha-violation at alpha .5 on an SVM without privacy beside the
unpruned rules of a private SVM at epsilon .1, "when both models achieve similar
attack success". The units are those of `rules_privacy`, with these alone. To
each pruned line we add as many rules dropped at random, and to every line the
success of a Bayes attacker who holds the rules.
"""

import pathlib

import pandas as pd

from experiments import _common
from experiments import experiment as experiment_lib
from experiments import results
from experiments import rules_pipeline
from experiments import rules_report
from experiments import rules_tables

NONE = rules_pipeline.NONE
ALPHA, EPSILON = '0.5', '0.1'


def report(
  config: rules_pipeline.Config,
  rows: list[experiment_lib.Row],
  folder: pathlib.Path,
) -> None:
  """Prints Table 3 with controls, and the verdicts."""
  del config
  summary = rules_report.summarize(rows)
  results.write_text(folder / 'summary.csv', summary.to_csv(index=False))
  heads = ['data', 'rules', 'privacy model', 'attack', 'marginal', 'f acc.']
  heads += ['accuracy', 'agreement', 'number', 'Bayes']
  lines = [
    [
      rules_report.title(line['dataset']),
      rules_report.NAMES[line['explainer']],
      _privacy_model(line),
      rules_report.cell_text(line, 'attack'),
      f'{line["marginal"]:.1f}',
      rules_report.cell_text(line, 'classifier_accuracy'),
      rules_report.cell_text(line, 'accuracy'),
      rules_report.cell_text(line, 'agreement'),
      f'{line["rules"]:.1f}',
      rules_report.cell_text(line, 'bayes'),
    ]
    for line in table_lines(summary).to_dict('records')
  ]
  text = [
    *rules_report.table(heads, lines),
    *rules_tables.verdicts(summary, folder, ('Table 3',)),
    *rules_tables.notes(rows),
  ]
  print('\n'.join(text))


def table_lines(summary: pd.DataFrame) -> pd.DataFrame:
  """Returns the lines of the table, by dataset and rules.

  They are what no privacy model leaves, pruned rules and their control without
  privacy, and unpruned rules of the private classifier.
  """
  private = summary['epsilon'] != NONE
  chosen = summary.loc[~private | (summary['arm'] == 'whole')]
  order = ['dataset', 'explainer']
  return pd.concat([part for _, part in chosen.groupby(order, sort=False)])


def _privacy_model(line: dict) -> str:
  if line['epsilon'] != NONE:
    return f'objective DP, eps {line["epsilon"]}'
  if line['arm'] == 'whole':
    return 'none'
  rate = rules_report.percent(line['privacy_rate'])
  if line['arm'] == 'random':
    return f'as many at random, r_p {rate}'
  return f'alpha {line["alpha"]}, r_p {rate}'


EXPERIMENT = experiment_lib.Experiment(
  name='rules_summary',
  config_class=rules_pipeline.Config,
  unit_names=rules_pipeline.unit_names,
  run_unit=rules_pipeline.run_unit,
  inputs=rules_pipeline.inputs,
  report=report,
)


def _config() -> rules_pipeline.Config:
  return rules_pipeline.config(
    models=('svm',), epsilons=(NONE, EPSILON), alphas=(ALPHA,)
  )


def main() -> int:
  """Runs the experiment as the flags say."""
  return _common.execute(EXPERIMENT, _config)


if __name__ == '__main__':
  _common.start(main)
