"""Tables, verdicts and comparisons of rules, from summaries only."""

from collections.abc import Sequence
import pathlib

import pandas as pd

from experiments import results
from experiments import rules_paper_values
from experiments import rules_report


def by_epsilon(summary: pd.DataFrame) -> list[str]:
  """Returns the unpruned rules and every attacker, against epsilon."""
  lines = []
  for dataset, model, part in rules_report.groups(
    rules_report.select(summary, arm='whole')
  ):
    it, brl = (
      rules_report.select(part, explainer=name).set_index('epsilon')
      for name in ('it', 'brl')
    )
    pairs = [(e, it.loc[e], brl.loc[e]) for e in rules_report.epsilons(part)]
    name = (
      f'{rules_report.title(dataset)}, {rules_report.NAMES[model]}, no pruning'
    )
    lines += ['', f'{name}: agreement with f and accuracy']
    heads = ['eps', 'f acc.', 'IT agr.', 'IT acc.', 'BRL agr.', 'BRL acc.']
    heads += ['IT rules', 'BRL rules']
    named = ('agreement', 'accuracy')
    lines += rules_report.table(
      heads,
      [
        [
          e,
          rules_report.cell_text(one, 'classifier_accuracy'),
          *(
            rules_report.cell_text(cell, n)
            for cell in (one, two)
            for n in named
          ),
          *(f'{cell["rules"]:.1f}' for cell in (one, two)),
        ]
        for e, one, two in pairs
      ],
    )
    lines += ['', f'{name}: attack success of the attack of the paper']
    lines += rules_report.table(
      ['eps', 'marginal', 'None', 'IT', 'BRL'],
      [
        [
          e,
          rules_report.cell_text(one, 'marginal'),
          rules_report.cell_text(one, 'none_attack'),
          *(rules_report.cell_text(cell, 'attack') for cell in (one, two)),
        ]
        for e, one, two in pairs
      ],
    )
    lines += ['', f'{name}: attack success of Bayes attackers']
    ladder = ('bayes_public', 'bayes_surrogate')
    lines += rules_report.table(
      ['eps', 'P(S|P)', 'no release', 'with IT', 'with BRL', 'white box'],
      [
        [
          e,
          *(rules_report.cell_text(one, n) for n in ladder),
          *(rules_report.cell_text(cell, 'bayes') for cell in (one, two)),
          rules_report.cell_text(one, 'bayes_white_box'),
        ]
        for e, one, two in pairs
      ],
    )
  return lines


def by_alpha(summary: pd.DataFrame, epsilon: str, rate: str) -> list[str]:
  """Returns pruned rules beside the random control, against alpha."""
  lines = []
  chosen = rules_report.select(summary, epsilon=epsilon, privacy_rate=rate)
  named = ('agreement', 'accuracy', 'attack', 'bayes')
  for dataset, model, part in rules_report.groups(chosen):
    for explainer, cells in part.groupby('explainer', sort=False):
      pruned, control = (
        rules_report.select(cells, arm=arm).set_index('alpha')
        for arm in ('pruned', 'random')
      )
      first = pruned.iloc[0]
      lines += [
        '',
        f'{rules_report.title(dataset)}, {rules_report.NAMES[model]}, '
        f'{rules_report.NAMES[str(explainer)]}, {_at(epsilon)}, '
        f'r_p {rules_report.percent(rate)}: marginal {first["marginal"]:.1f}; '
        'R: as many rules dropped at random',
      ]
      lines += rules_report.table(
        ['alpha', 'rules', 'agr.', 'acc.', 'attack', 'Bayes']
        + ['R agr.', 'R attack', 'R Bayes'],
        [
          [
            alpha,
            f'{line["rules"]:.1f}',
            *(rules_report.cell_text(line, n) for n in named),
            *(f'{control[n][alpha]:.1f}' for n in named if n != 'accuracy'),
          ]
          for alpha, line in pruned.iterrows()
        ],
      )
  return lines


def _at(epsilon: str) -> str:
  return 'without privacy' if epsilon == rules_report.NONE else f'eps {epsilon}'


def not_monotone(summary: pd.DataFrame) -> list[str]:
  """Returns where pruning, or a smaller epsilon, made an attack better.

  Means over folds and seeds are compared, so some of the smallest differences
  are chance; the largest one is printed with its deviation over runs.
  """
  lines = []
  for key, part in rules_report.select(summary, arm='pruned').groupby(
    ['dataset', 'model', 'explainer'], sort=False
  ):
    dataset, model, explainer = (str(name) for name in list(key))
    rises = part[part['reduction'] < -1e-9]
    bayes = part[part['bayes_reduction'] < -1e-9]
    whole = rules_report.select(
      summary, dataset=dataset, model=model, explainer=explainer, arm='whole'
    ).set_index('epsilon')['attack']
    private = [e for e in rules_report.epsilons(part) if e != rules_report.NONE]
    falls = sum(
      whole[large] < whole[small] for small, large in zip(private, private[1:])
    )
    lines.append(
      [
        rules_report.title(dataset),
        rules_report.NAMES[model],
        rules_report.NAMES[explainer],
        f'{len(rises)}/{len(part)}',
        _largest(rises, 'reduction'),
        f'{len(bayes)}/{len(part)}',
        f'{falls}/{max(len(private) - 1, 0)}',
      ]
    )
  if not lines:
    return []
  heads = ['data', 'model', 'rules', 'attack rose', 'most: points at']
  heads += ['Bayes rose', 'eps up, attack down']
  return [
    '',
    'What is not monotone (mean attack after pruning above that before, over',
    'epsilon, alpha and r_p; neighboring epsilons, the larger attacked less):',
    *rules_report.table(heads, lines),
  ]


def _largest(rises: pd.DataFrame, name: str) -> str:
  if not len(rises):
    return '-'
  line = rises.loc[rises[name].idxmin()]
  return (
    f'{-line[name]:.2f}+-{line[f"{name}_sd"]:.2f} at eps {line["epsilon"]}, '
    f'alpha {line["alpha"]}, r_p {rules_report.percent(line["privacy_rate"])}'
  )


def protection(summary: pd.DataFrame, epsilon: str, alpha: str) -> list[str]:
  """Returns what pruning takes from each attacker, beside the control."""
  lines = []
  chosen = rules_report.select(summary, epsilon=epsilon, alpha=alpha)
  for key, part in chosen.groupby(
    ['dataset', 'model', 'explainer', 'privacy_rate'], sort=False
  ):
    dataset, model, explainer, rate = (str(name) for name in list(key))
    whole = rules_report.select(
      summary,
      **dict(dataset=dataset, model=model, explainer=explainer),
      **dict(epsilon=epsilon, arm='whole'),
    ).iloc[0]
    arms = [
      whole,
      *(
        rules_report.select(part, arm=arm).iloc[0]
        for arm in ('pruned', 'random')
      ),
    ]
    path = [
      ' > '.join(f'{arm[name]:.1f}' for arm in arms)
      for name in ('agreement', 'attack', 'bayes')
    ]
    lines.append(
      [
        rules_report.title(dataset),
        rules_report.NAMES[model],
        rules_report.NAMES[explainer],
        rules_report.percent(rate),
        *path,
      ]
    )
  if not lines:
    return []
  heads = ['data', 'model', 'rules', 'r_p', 'agreement', 'attack', 'Bayes']
  return [
    '',
    f'What pruning protects, {_at(epsilon)}, alpha {alpha}: all rules > pruned '
    '> as many dropped at random',
    *rules_report.table(heads, lines),
  ]


def verdicts(
  summary: pd.DataFrame, folder: pathlib.Path, sources: Sequence[str] = ()
) -> list[str]:
  """Compares with the paper; writes paper_versus_measured.csv."""
  found = rules_paper_values.compare(summary)
  if len(found) and sources:
    found = found[found['source'].isin(sources)]
  if not len(found):
    return []
  results.write_text(
    folder / 'paper_versus_measured.csv', found.to_csv(index=False)
  )
  lines = ['', 'Published numbers beside measured ones:']
  for key, part in found.groupby(['kind', 'privacy_rate'], sort=False):
    kind, rate = (str(name) for name in list(key))
    counts = part['verdict'].value_counts()
    said = ', '.join(f'{count} {word}' for word, count in counts.items())
    where = (
      'no pruning'
      if rate == rules_report.NONE
      else f'pruned, r_p {rules_report.percent(rate)}'
    )
    lines.append(f'{kind}, {where}, {len(part)} numbers: {said}')
  heads = ['source', 'data', 'f', 'rules', 'eps', 'alpha', 'r_p', 'measure']
  heads += ['paper', 'measured', 'verdict']
  cells = [
    [
      *(line['source'], line['dataset'], rules_report.NAMES[line['model']]),
      *(rules_report.NAMES[line['explainer']], line['epsilon'], line['alpha']),
      rules_report.NONE
      if line['privacy_rate'] == rules_report.NONE
      else rules_report.percent(line['privacy_rate']),
      *(line['measure'], f'{line["paper"]:g}'),
      *(f'{line["measured"]:.2f}+-{line["spread"]:.2f}', line['verdict']),
    ]
    for line in found.to_dict('records')
  ]
  return lines + ['', *rules_report.table(heads, cells)]


def claims(summary: pd.DataFrame, folder: pathlib.Path) -> list[str]:
  """Returns the paper's claims without a number, and whether they hold."""
  found = rules_paper_values.claims(summary)
  if not len(found):
    return []
  results.write_text(folder / 'claims.csv', found.to_csv(index=False))
  lines = ['', 'Claims without a number:']
  for line in found.to_dict('records'):
    lines.append(f'{line["verdict"]}: {line["claim"]} ({line["detail"]})')
  return lines


def notes(rows: list[dict]) -> list[str]:
  """Returns what a reader must know about every number above."""
  labels = dict.fromkeys(row['stage_classifier'] for row in rows)
  other = sorted(
    {
      value
      for row in rows
      for name, value in row.items()
      if name.startswith('stage_') and name != 'stage_classifier'
    }
  )
  return [
    '',
    f'Stages: classifier {", ".join(labels)};',
    f'labels, mining, violation scores, pruning, attacks {", ".join(other)}.',
    'What the claims of the paper do not cover: the rules are NOT private.',
    'Forest, coverage, counts and alpha scores read private rows, so the',
    'epsilon of f is none of the release. It is per fit (REPLACE_ONE_ROW);',
    'noise is simulated and no row is certified. The attack is one heuristic:',
    'a Bayes attacker, and as many rules dropped at random, stand beside it.',
    'Entries: percent of held-out rows, mean +- sd over folds and seeds.',
  ]
