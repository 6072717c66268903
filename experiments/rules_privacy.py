"""Rules under pruning and attack, against epsilon and alpha: Figs. 4-8.

  python -m experiments.rules_privacy
  python -m experiments.rules_privacy --datasets=compas,mammographic

Agreement, accuracies and attack success of IT and of Bayesian rule lists that
explain a classifier with and without differential privacy ("Robust Transparency
Against Model Inversion Attacks", Sec. 6.5), for every alpha and privacy rate,
beside what the paper leaves out: as many rules dropped at random, Bayes
attackers with and without the release, and a label of what covers each stage.

Prints tables against epsilon and against alpha at the largest epsilon (all
others are in summary.csv), the published numbers beside the measured ones, what
pruning takes from which attacker, and what is not monotone. See
`rules_pipeline` for what is run and which data are private.
"""

import pathlib
from typing import Any

from absl import flags

from experiments import _common
from experiments import experiment as experiment_lib
from experiments import results
from experiments import rules_pipeline
from experiments import rules_plots
from experiments import rules_report
from experiments import rules_tables

NONE = rules_pipeline.NONE

_MODELS = flags.DEFINE_list(
  'rules_models', list(rules_pipeline.MODELS), 'Classifiers explained.'
)
_EPSILONS = flags.DEFINE_list(
  'rules_epsilons',
  [NONE, '0.1', '0.25', '0.5', '1', '2', '5'],
  'Exact epsilons of one classifier; "none" is without privacy.',
)
_ALPHAS = flags.DEFINE_list(
  'rules_alphas', list(rules_pipeline.ALPHAS), 'Exact alphas.'
)
_RATES = flags.DEFINE_list(
  'rules_rates', ['0.5', '0'], 'Privacy rates: violating rules that stay.'
)


def report(
  config: rules_pipeline.Config,
  rows: list[experiment_lib.Row],
  folder: pathlib.Path,
) -> None:
  """Prints tables, verdicts and comparisons; writes csv files and figures."""
  summary = rules_report.summarize(rows)
  results.write_text(folder / 'summary.csv', summary.to_csv(index=False))
  epsilon = rules_report.largest_epsilon(summary)
  lines = rules_tables.by_epsilon(summary)
  for rate in config.privacy_rates:
    lines += rules_tables.by_alpha(summary, epsilon, rate)
    rules_plots.panels(summary, epsilon, rate, folder)
  # The alpha of Table 3.
  alpha = '0.5' if '0.5' in config.alphas else config.alphas[0]
  lines += rules_tables.protection(summary, epsilon, alpha)
  lines += rules_tables.not_monotone(summary)
  lines += rules_tables.verdicts(summary, folder)
  lines += rules_tables.claims(summary, folder)
  print('\n'.join([*lines, *rules_tables.notes(rows)]))


EXPERIMENT = experiment_lib.Experiment(
  name='rules_privacy',
  config_class=rules_pipeline.Config,
  unit_names=rules_pipeline.unit_names,
  run_unit=rules_pipeline.run_unit,
  inputs=rules_pipeline.inputs,
  report=report,
)


def _config() -> rules_pipeline.Config:
  canonical = experiment_lib.canonical_numbers
  private = [text for text in _EPSILONS.value if text != NONE]
  spelled = iter(canonical('rules_epsilons', private))
  chosen: dict[str, Any] = dict(
    models=tuple(_MODELS.value),
    epsilons=tuple(
      text if text == NONE else next(spelled) for text in _EPSILONS.value
    ),
    alphas=canonical('rules_alphas', _ALPHAS.value),
    privacy_rates=canonical('rules_rates', _RATES.value),
  )
  if not (_common.DATASETS.present or _EPSILONS.present):
    chosen |= dict(epsilons=(NONE, '0.1', '1', '5'))  # A quick look.
  if not _ALPHAS.value:
    raise ValueError('rules_alphas must not be empty')
  if _common.SMOKE.value:
    chosen |= dict(models=('lr',), epsilons=(NONE, '1'), alphas=('0.5',))
  return rules_pipeline.config(**chosen)


def main() -> int:
  """Runs the experiment as the flags say."""
  return _common.execute(EXPERIMENT, _config)


if __name__ == '__main__':
  _common.start(main)
