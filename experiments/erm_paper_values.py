"""Accuracies that the transparency paper prints, and the verdict on each.

Tables 1 and 2 give one cross-validation per cell: one draw of the folds and one
of the noise. So a number is judged by the spread of single runs, not by the
error of a mean:

* private, 'paper' calibration: 'reproduced' if within two standard deviations
  over draws (fold seeds pooled) of the mean, give or take the 0.005 that two
  printed digits leave open. 'inconclusive' if two standard deviations exceed
  half of what the cell could span, from a coin's 50 % to the measured
  non-private accuracy: such an interval would meet nearly anything. Also if
  that accuracy was not measured, or there was one run.
* non-private: 'reproduced' if within 0.8 point of the mean over fold seeds.

Each private number gets a verdict with fresh noise per fold and another with a
draw shared by the folds, and whether it lies between the least and the most of
the runs. The published rows at small epsilon hardly change with Lambda and
leave the range of fresh noise, as one shared draw's would.

Proxies stand in for data that is not public: both NLSY97 tables for Arrest,
judged apart, and Lending Club with FICO at origination, for which the published
numbers are no target. Nothing is tuned to pass.
"""

from typing import NamedTuple

import pandas as pd

REAL = ('mammographic', 'compas')
PROXIES = ('arrest', 'incarceration', 'lending')
NO_TARGET = ('lending',)
NON_PRIVATE_POINTS = 0.8
COIN = 50.0
PRINTED = 0.005

_EPSILONS = ('0.1', '0.25', '0.5', '1', '2', 'none')
_REGULARIZATIONS = ('0.01', '0.001', '0.00001', '0.0000001')

# Percent; a line per Lambda, a column per epsilon.
_SVM = {
  'mammographic': (
    (78.28, 79.49, 80.57, 82.62, 82.75, 82.14),
    (78.16, 79.49, 80.33, 81.30, 80.57, 82.50),
    (78.28, 79.49, 80.57, 80.82, 82.62, 82.50),
    (78.28, 79.49, 80.57, 80.70, 82.75, 82.50),
  ),
  'arrest': (
    (39.77, 39.68, 47.90, 63.90, 68.10, 69.50),
    (39.95, 41.08, 46.33, 54.46, 58.91, 69.41),
    (39.95, 40.91, 45.11, 55.86, 64.69, 69.41),
    (39.95, 40.82, 45.20, 55.95, 64.51, 69.41),
  ),
  'lending': (
    (59.94, 73.43, 82.09, 82.82, 82.82, 82.82),
    (56.14, 62.45, 64.99, 75.34, 82.39, 82.82),
    (56.11, 62.16, 65.66, 70.82, 75.11, 82.76),
    (56.11, 62.02, 66.32, 70.49, 74.86, 82.77),
  ),
  'compas': (
    (56.91, 65.37, 65.40, 65.49, 65.58, 65.58),
    (52.63, 63.19, 63.39, 65.40, 65.43, 65.55),
    (52.63, 63.62, 63.65, 65.70, 65.94, 66.92),
    (52.68, 63.58, 63.54, 65.70, 65.77, 67.06),
  ),
}
_LR = {
  'mammographic': (
    (78.16, 80.09, 81.42, 82.62, 83.59, 82.99),
    (78.28, 79.49, 80.33, 80.70, 82.02, 84.19),
    (78.28, 79.49, 80.33, 80.94, 81.18, 85.04),
    (78.28, 79.49, 80.33, 80.82, 81.42, 85.04),
  ),
  'arrest': (
    (39.77, 43.10, 47.82, 59.71, 66.88, 69.15),
    (39.86, 40.91, 39.95, 51.14, 63.03, 69.58),
    (39.86, 40.82, 44.93, 49.13, 58.57, 69.85),
    (39.86, 40.82, 44.58, 49.04, 59.01, 69.85),
  ),
  'lending': (
    (60.87, 70.54, 78.61, 82.11, 82.77, 82.82),
    (51.06, 63.79, 69.47, 76.01, 81.14, 82.82),
    (56.03, 62.02, 65.44, 68.92, 72.14, 82.54),
    (56.03, 62.16, 64.13, 69.23, 72.03, 82.56),
  ),
  'compas': (
    (55.69, 63.37, 65.57, 65.77, 65.83, 65.92),
    (49.42, 61.88, 64.07, 66.00, 66.18, 66.49),
    (52.12, 60.09, 64.47, 65.44, 67.80, 68.22),
    (52.18, 60.10, 64.58, 65.67, 67.80, 68.38),
  ),
}


class Quote(NamedTuple):
  """One published accuracy, in percent, and the table that we hold it to."""

  source: str
  dataset: str
  model: str
  regularization: str
  epsilon: str
  accuracy: float


def quotes() -> list[Quote]:
  """Returns the 192 numbers; Arrest's once for each of its two proxies."""
  return [
    Quote(source, dataset, model, regularization, epsilon, accuracy)
    for source, model, table in (
      ('Table 1', 'svm', _SVM),
      ('Table 2', 'lr', _LR),
    )
    for dataset in (*REAL, *PROXIES)
    for regularization, line in zip(
      _REGULARIZATIONS,
      table['arrest' if dataset == 'incarceration' else dataset],
    )
    for epsilon, accuracy in zip(_EPSILONS, line)
  ]


def compare(summary: pd.DataFrame) -> pd.DataFrame:
  """Returns one line per quote and noise arm that the summary covers.

  Args:
    summary: of `dp_accuracy_report.summarize`.
  """
  key = ['dataset', 'model', 'regularization', 'epsilon']
  by_key: dict[tuple[str, ...], list[dict]] = {}
  for cell in summary.to_dict('records'):
    if cell['calibration'] in ('paper', 'none'):
      by_key.setdefault(tuple(cell[name] for name in key), []).append(cell)
  lines = []
  for quote in quotes():
    identity = tuple(quote[1:5])
    reference = by_key.get((*identity[:3], 'none'))
    top = reference[0]['mean'] if reference else None
    for cell in by_key.get(identity, []):
      lines.append(_judge(quote, cell, top))
  return pd.DataFrame(lines)


def _judge(quote: Quote, cell: dict, top: float | None) -> dict:
  return {
    **quote._asdict(),
    'proxy': quote.dataset in PROXIES,
    'noise': cell['noise'],
    'measured': cell['mean'],
    'sd': cell['sd'],
    'least': cell['least'],
    'most': cell['most'],
    'covered': bool(cell['least'] <= quote.accuracy <= cell['most']),
    'verdict': _verdict(quote, cell, top),
  }


def _verdict(quote: Quote, cell: dict, top: float | None) -> str:
  """Returns the verdict of the module's rule."""
  if quote.dataset in NO_TARGET:
    return 'no target'
  distance = abs(quote.accuracy - cell['mean'])
  if quote.epsilon == 'none':
    reproduced = distance <= NON_PRIVATE_POINTS
  elif not cell['num_runs'] > 1:
    return 'inconclusive'  # One run has no deviation.
  else:
    reach = 2 * cell['sd']
    if top is None or reach > (top - COIN) / 2:
      return 'inconclusive'
    reproduced = distance <= reach + PRINTED
  return 'reproduced' if reproduced else 'not reproduced'
