"""The four-stage chain and the operation arms, from rows only."""

import pathlib
from typing import Any

import matplotlib
from matplotlib import figure
import pandas as pd

from experiments import cfs_claims
from experiments import plots
from experiments import results

_CELL = ['dataset', 'protocol', 'feature_masks', 'rho', 'operations']
STAGES = {
  'unrestricted': 'unrestricted',
  'full_ceiling': 'support',
  'ceiling': 'public prior',
  'valid_cf_rate': 'release',
}
# price -> (stage before, stage after).
PRICES = {
  'price_support': ('unrestricted', 'full_ceiling'),
  'price_prior': ('full_ceiling', 'ceiling'),
  'price_noise': ('ceiling', 'valid_cf_rate'),
}
_PRICE_NAMES = {
  'price_support': 'support',
  'price_prior': 'prior',
  'price_noise': 'noise',
}


# The other fields hold the release, which is a probability.
_SHARES = ('unrestricted', 'price_support', 'price_prior', 'ceiling')


def report(config: Any, rows: list[dict], folder: pathlib.Path) -> None:
  """Prints chains, arms and verdicts; writes summary.csv and the figures."""
  del config
  frame = priced(pd.DataFrame(rows))
  summary = summarize(frame)
  results.write_text(folder / 'summary.csv', summary.to_csv(index=False))
  for line in chains(summary) + arms(summary):
    print(line)
  verdicts = cfs_claims.compare(frame, claims())
  if len(verdicts):
    text = verdicts.to_csv(index=False)
    results.write_text(folder / 'paper_versus_measured.csv', text)
    cfs_claims.print_verdicts(verdicts)
  waterfall(summary, folder)


def priced(frame: pd.DataFrame) -> pd.DataFrame:
  """Adds what each stage changes, <= 0, target by target."""
  changes = {
    price: frame[after] - frame[before]
    for price, (before, after) in PRICES.items()
  }
  return frame.assign(**changes)


def summarize(frame: pd.DataFrame) -> pd.DataFrame:
  """Returns one line per cell: stages, prices, their errors and the counts.

  `dominant` is the stage that costs most, '-' if nothing is lost.
  """
  lines = []
  for key, cell in frame.groupby(_CELL, sort=False):
    line = dict(zip(_CELL, key)) | {'epsilon': cell['epsilon'].iloc[0]}
    line |= {'num_targets': len(cell)}
    line |= {stage: cell[stage].mean() for stage in STAGES}
    for price in PRICES:
      line[price] = cell[price].mean()
      line[f'{price}_error'] = cfs_claims.standard_error(
        cell[price], cell['seed'], is_share=price in _SHARES
      )
    costs = {price: float(cell[price].mean()) for price in PRICES}
    most = min(costs, key=lambda price: costs[price])
    line['dominant'] = _PRICE_NAMES[most] if costs[most] < 0 else '-'
    for search in ('mask optimization', 'greedy deletion', 'support'):
      line[f'found by {search}'] = int((cell['found_by'] == search).sum())
    line |= {
      'num_flips': int(cell['num_flips'].sum()),
      'num_candidates': int(cell['support_size'].sum()),
      'num_flipped_targets': int(cell['ceiling'].sum()),
      'num_witnesses': int(cell['witness_flips'].sum()),
    }
    lines.append(line)
  return pd.DataFrame(lines)


def chains(summary: pd.DataFrame) -> list[str]:
  """Returns the four-stage chain of every cell, all operations together."""
  lines = []
  joint = summary[summary['operations'] == 'joint']
  for arm, part in joint.groupby('feature_masks', sort=False):
    lines += ['', f'Four stages, {arm} feature masks (price of each stage)']
    heads = ['unrestricted', 'support', 'public prior', 'release', 'dominant']
    lines.append(f'{"":<28}' + ''.join(f'{head:>18}' for head in heads))
    for cell in part.to_dict('records'):
      where = f'{cell["dataset"]} {cell["protocol"]}, rho {cell["rho"]}'
      texts = [f'{cell["unrestricted"]:.3f}']
      texts += [
        f'{cell[after]:.3f} ({cell[price]:+.3f})'
        for price, (_, after) in PRICES.items()
      ]
      texts.append(cell['dominant'])
      lines.append(f'{where:<28}' + ''.join(f'{text:>18}' for text in texts))
  epsilon = summary['epsilon'].iloc[0]
  return lines + [
    '',
    'unrestricted: share of targets that a search of the whole two-hop',
    'receptive field flips, a lower bound. support: ceiling of the support',
    'with every edge disclosed. public prior: ceiling at rho. release:',
    f'P(prediction flips) at epsilon {epsilon}. dominant: the largest price.',
  ]


def arms(summary: pd.DataFrame) -> list[str]:
  """Returns the operation arms, and what enumeration proves about each."""
  rho = summary['rho'].iloc[0]
  lines = ['', f'Operation arms at rho {rho}']
  heads = ['unrestricted', 'ceiling', 'P(flips)', 'flips / candidates']
  lines.append(_arm('', [*heads, 'witnesses']))
  for cell in summary[summary['rho'] == rho].to_dict('records'):
    where = f'{cell["dataset"]} {cell["protocol"]}, '
    where += f'{cell["feature_masks"]}, {cell["operations"]}'
    texts = [
      f'{cell["unrestricted"]:.3f}',
      f'{cell["ceiling"]:.3f}',
      f'{cell["valid_cf_rate"]:.3f}',
      f'{cell["num_flips"]:,} / {cell["num_candidates"]:,}',
      f'{cell["num_witnesses"]} of {cell["num_flipped_targets"]}',
    ]
    lines.append(_arm(where, texts))
  return lines + [
    '',
    'flips / candidates: over all targets, every candidate enumerated. 0 flips',
    'is a proof that no candidate flips. witnesses: targets with a flip whose',
    'smallest one the exact model confirms on the edited graph.',
  ]


def _arm(where: str, texts: list[str]) -> str:
  widths = (14, 9, 10, 20, 11)
  cells = (f'{text:>{width}}' for text, width in zip(texts, widths))
  return f'{where:<42}' + ''.join(cells)


def claims() -> list[cfs_claims.Claim]:
  """Returns what the text says of App. D; "a / b" is Cora / CiteSeer."""
  found = []

  def add(says, cell, field, low, high=None):
    high = low if high is None else high
    share = field in _SHARES
    claim = cfs_claims.Claim('App. D', says, cell, field, low, high, share)
    found.append(claim)

  # The ceilings at rho 1 plus the prices, and what Table 3 calls the ceiling.
  for dataset, support, unrestricted in (
    ('cora', -0.07, (0.97, 1.0)),
    ('citeseer', -0.17, (0.94, 0.958)),
  ):
    prices = dict(price_support=support, price_prior=-0.4, price_noise=-0.02)
    cell = dict(dataset=dataset, protocol='borderline', rho='0.5')
    joint = cell | dict(operations='joint', epsilon='8')
    for price, value in prices.items():
      says = f'price of the {_PRICE_NAMES[price]}'
      add(says, joint, price, value)
    add('unrestricted', joint, 'unrestricted', *unrestricted)
    says = 'feature-only arm is zero'
    only = cell | dict(operations='features', epsilon='8')
    for field in ('ceiling', 'valid_cf_rate'):
      add(f'{says}: {field}', only, field, 0.0)
  return found


def waterfall(summary: pd.DataFrame, folder: pathlib.Path) -> None:
  """Draws the chain of all operations at the first rho, one figure per arm."""
  matplotlib.rcParams.update(plots.STYLE)
  rho = summary['rho'].iloc[0]
  chosen = (summary['rho'] == rho) & (summary['operations'] == 'joint')
  for arm, part in summary[chosen].groupby('feature_masks', sort=False):
    datasets = list(dict.fromkeys(part['dataset']))
    protocols = list(dict.fromkeys(part['protocol']))
    size = (2.5 * len(protocols) + 0.3, 1.9 * len(datasets) + 0.6)
    image = figure.Figure(figsize=size, layout='constrained')
    axes = image.subplots(
      len(datasets), len(protocols), squeeze=False, sharey=True
    )
    for cell in part.to_dict('records'):
      row = datasets.index(cell['dataset'])
      axis = axes[row, protocols.index(cell['protocol'])]
      _draw_chain(axis, cell)
      axis.set_title(f'{cell["dataset"]}, {cell["protocol"]} targets')
    image.supylabel('share of targets flipped', fontsize=8)
    image.suptitle(
      f'Where validity is lost: {arm} feature masks, rho {rho}, epsilon '
      f'{part["epsilon"].iloc[0]}',
      fontsize=8,
    )
    for suffix, options in (
      ('.png', {'dpi': 200}),
      ('.svg', {'metadata': {'Date': None}}),
    ):
      image.savefig(folder / f'chain_{arm}{suffix}', **options)


def _draw_chain(axis, cell: dict) -> None:
  """Draws the stages as bars and what each loses as a lighter bar on top."""
  labels = ['unrestricted\n(found)', 'support', 'public\nprior', 'release']
  values = [cell[stage] for stage in STAGES]
  for x, (value, before) in enumerate(zip(values, [values[0], *values])):
    axis.bar(x, value, 0.65, color=plots.COLORS[0])
    axis.bar(x, before - value, 0.65, bottom=value, color=plots.COLORS[1])
    loss = f'\n({value - before:+.2f})' if x else ''
    axis.text(
      x,
      before + 0.02,
      f'{value:.2f}{loss}',
      ha='center',
      va='bottom',
      fontsize=6.5,
    )
  axis.set_xticks(range(len(labels)), labels, fontsize=6.5)
  axis.set_ylim(0, 1.25)
  axis.set_yticks([0, 0.5, 1])
