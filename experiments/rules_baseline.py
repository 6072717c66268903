"""Rules without privacy or pruning: Fig. 3.

  python -m experiments.rules_baseline
  python -m experiments.rules_baseline --datasets=compas,mammographic

Agreement of IT and of Bayesian rule lists with the classifier that they
explain, and the attack on the classifier and on the rules. The units are those
of `rules_privacy` at epsilon 'none', without its alphas.
"""

import pathlib
from typing import Any

from experiments import _common
from experiments import experiment as experiment_lib
from experiments import results
from experiments import rules_pipeline
from experiments import rules_plots
from experiments import rules_report
from experiments import rules_tables


def report(
  config: rules_pipeline.Config,
  rows: list[experiment_lib.Row],
  folder: pathlib.Path,
) -> None:
  """Prints the table, verdicts and claims of Fig. 3; writes the figure."""
  del config
  summary = rules_report.summarize(rows)
  results.write_text(folder / 'summary.csv', summary.to_csv(index=False))
  heads = ['data', 'model', 'f acc.', 'rules', 'agreement', 'accuracy']
  heads += ['number', 'marginal', 'None', 'attack', 'attack - None']
  lines = [
    [
      rules_report.title(line['dataset']),
      rules_report.NAMES[line['model']],
      rules_report.cell_text(line, 'classifier_accuracy'),
      rules_report.NAMES[line['explainer']],
      rules_report.cell_text(line, 'agreement'),
      rules_report.cell_text(line, 'accuracy'),
      f'{line["rules"]:.1f}',
      f'{line["marginal"]:.1f}',
      rules_report.cell_text(line, 'none_attack'),
      rules_report.cell_text(line, 'attack'),
      f'{line["over_none"]:+.1f}+-{line["over_none_sd"]:.1f}',
    ]
    for line in summary.to_dict('records')
  ]
  mean = summary.groupby('explainer', sort=False)['over_none'].mean()
  said = ', '.join(
    f'{rules_report.NAMES[str(name)]} {value:+.1f}'
    for name, value in mean.items()
  )
  text = [
    *rules_report.table(heads, lines),
    '',
    f'Attack minus None, mean over these datasets and models: {said}.',
    'Paper, mean over its four datasets: IT -2, BRL almost 0.',
    *rules_tables.verdicts(summary, folder, ('Fig. 3',)),
    *rules_tables.claims(summary, folder),
    *rules_tables.notes(rows),
  ]
  print('\n'.join(text))
  rules_plots.baseline(summary, folder)


EXPERIMENT = experiment_lib.Experiment(
  name='rules_baseline',
  config_class=rules_pipeline.Config,
  unit_names=rules_pipeline.unit_names,
  run_unit=rules_pipeline.run_unit,
  inputs=rules_pipeline.inputs,
  report=report,
)


def _config() -> rules_pipeline.Config:
  chosen: dict[str, Any] = dict(epsilons=(rules_pipeline.NONE,), alphas=())
  if _common.SMOKE.value:
    chosen |= dict(models=('lr',))
  return rules_pipeline.config(**chosen)


def main() -> int:
  """Runs the experiment as the flags say."""
  return _common.execute(EXPERIMENT, _config)


if __name__ == '__main__':
  _common.start(main)
