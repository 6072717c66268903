"""One printable page about a certificate, for who will not read JSON.

The page says what the certificate says, in words: what was released, what that
cost, what holds and what does not. It is one HTML file without scripts and
outside resources, and a function of its arguments: same input, same bytes.

Public inputs only: a certificate, and the offer that was made before it.
"""

from collections.abc import Iterable
import decimal
import fractions
import html
import json
from typing import Any

from privjax.release import certificate
from privjax.release import explainer

_RELATIONS = {
  'add_remove_one_edge': (
    'one connection between two nodes being in the private graph or not'
  ),
}
_OBJECTS = {
  'snapshot': 'disclosed graph (snapshot)',
  'features': 'node features',
  'backbone': 'classifier (weights)',
  'first_layer': 'ranking of the features (kernel)',
}
_STYLE = """
@page { size: A4; margin: 12mm; }
body { font: 13px/1.35 sans-serif; color: #111; max-width: 186mm;
  margin: 6mm auto; }
h1 { font-size: 20px; margin: 0 0 2mm; }
h2 { font-size: 14px; margin: 3.5mm 0 1mm; border-bottom: 1px solid #999; }
p, ul { margin: 1mm 0; }
ul { padding-left: 5mm; }
td, th { padding: 0 4mm 0 0; text-align: left; vertical-align: top; }
code { font: 10.5px monospace; overflow-wrap: anywhere; }
@media print { body { margin: 0; font-size: 11.5px; } code { font-size: 9px; } }
"""


def html_card(
  certificate_json: str, offer: explainer.Offer | None = None
) -> str:
  """Returns a page that tells a certificate in words.

  Args:
    certificate_json: the text of a certificate.
    offer: what `price_list` said of the same target; `None` leaves it out.

  Returns:
    An HTML document. Everything in it comes from the arguments, escaped.

  Raises:
    ValueError: if the text is not an unchanged certificate, or the offer is
      about another target. (Whether it agrees with its public objects is for
      `verify_certificate` to say.)
  """
  content = _checked(certificate_json)
  if offer is not None and offer.target != content['target']:
    raise ValueError(
      f'offer must be about target {content["target"]}, got {offer.target}'
    )
  title = f'Private release about node {content["target"]}'
  title = f'{title} of {content["dataset_id"]}'
  body = [
    _heading(1, title),
    *_released(content),
    *_holds(content),
    *_cost(content, offer),
    _heading(2, 'What is not covered'),
    _bullets(_text(line) for line in content['not_covered']),
    *_public(content),
    *_verify(content),
  ]
  return '\n'.join(
    [
      '<!DOCTYPE html>',
      '<html lang="en"><head><meta charset="utf-8"/>',
      '<meta http-equiv="Content-Security-Policy" '
      "content=\"default-src 'none'; style-src 'unsafe-inline'\"/>",
      f'<title>{_text(title)}</title><style>{_STYLE}</style></head><body>',
      *body,
      '</body></html>\n',
    ]
  )


def _checked(certificate_json: str) -> dict[str, Any]:
  """Parses a certificate and checks that it is whole."""
  try:
    content = json.loads(certificate_json)
    schema, sealed = content['schema'], content['sha256']
  except (ValueError, KeyError, TypeError):
    raise ValueError('certificate_json must be a certificate') from None
  if schema != certificate.SCHEMA_NAME:
    raise ValueError(
      f'certificate_json must be a {certificate.SCHEMA_NAME}, got {schema!r}'
    )
  if certificate.seal(content) != sealed or content['certified'] is not True:
    raise ValueError('certificate_json must be certified and unchanged')
  return content


def _released(content: dict[str, Any]) -> list[str]:
  """Says what the explanation is, and what it does not state."""
  release = content['release']
  pairs = [f'{u} and {v}' for u, v in release['delete_pairs']]
  pairs = [f'without a connection between nodes {pair}' for pair in pairs]
  masks = release['mask_features']
  masks = [f'without feature {dim} of the node' for dim in masks]
  return [
    _heading(2, 'What was released'),
    '<p>One explanation of a prediction: what the classifier would have to '
    'look at instead, for its prediction for this node to be likely to '
    'change.</p>',
    _bullets(map(_text, [*pairs, *masks] or ['nothing is taken away'])),
    '<p>It was drawn at random from '
    f'{_text(content["support"]["size"])} possible explanations, which were '
    'listed from public data alone; those that change the prediction were more '
    'likely. It states neither that a connection named above exists, nor that '
    'the prediction does change.</p>',
  ]


def _holds(content: dict[str, Any]) -> list[str]:
  """Says what is guaranteed, and for which change of the data."""
  guarantee = content['guarantee']
  epsilon = fractions.Fraction(guarantee['epsilon'])
  relation = guarantee['relation']
  change = _RELATIONS.get(relation, 'one change of the private data')
  return [
    _heading(2, 'What holds'),
    f'<p>Differential privacy with <b>epsilon {_text(epsilon)}</b>, delta '
    f'{_text(fractions.Fraction(guarantee["delta"]))}, for {_text(change)}. '
    'For somebody who knows everything else, this release changes the odds of '
    f'that by a factor of at most <b>{_text(_odds(epsilon))}</b> (e to the '
    'power of epsilon, rounded up): who held it to be as likely as not is then '
    f'at most <b>{_text(_certainty(epsilon))}</b> sure. For k connections that '
    'only occur together the factor applies k times.</p>',
    f'<p>Proof: {_text(guarantee["theorem"])}. Unit of protection: '
    f'{_text(guarantee["unit"])} ({_text(relation)}). Sensitivity '
    f'{_text(content["mechanism"]["sensitivity"])}. Randomness: '
    f'{_text(content["randomness"])}.</p>',
  ]


def _cost(content: dict[str, Any], offer: explainer.Offer | None) -> list[str]:
  """Says what was charged, and what was on offer."""
  charge = content['charge']
  unit = '' if offer is None else f' {offer.unit}'
  cost = fractions.Fraction(charge['cost'])
  lines = [
    _heading(2, 'What it cost'),
    f'<p>{_text(cost)}{_text(unit)} of the privacy budget of dataset '
    f'{_text(content["dataset_id"])}, charged before anything was computed. '
    'Costs of all releases from this data add up. Receipt of the ledger: '
    f'<code>{_text(charge["receipt"])}</code></p>',
  ]
  if offer is None:
    return lines
  prices = offer.prices
  cells = [f'epsilon {epsilon}' for epsilon in prices.epsilons]
  rates = zip(prices.valid_cf_rate, prices.standard_error)
  return [
    *lines,
    '<p>Expected before the release, from a simulation on public data with '
    f'{_text(prices.num_targets)} similar nodes: the chance (with its standard '
    'error) that a release changes the prediction.</p>',
    _table([cells, [f'{rate:.2f} ({error:.2f})' for rate, error in rates]]),
    f'<p>For free, from public data alone: {_text(f"{prices.free:.2f}")}. Best '
    f'that any epsilon could reach: {_text(f"{prices.ceiling:.2f}")}. Budget '
    f'left when this was offered: {_text(offer.remaining)}{_text(unit)}.</p>',
  ]


def _public(content: dict[str, Any]) -> list[str]:
  """Names what anyone may see, by digest."""
  rows = [
    [_OBJECTS.get(name, name), digest]
    for name, digest in content['public_objects'].items()
  ]
  rows.append(['possible explanations', content['support']['sha256']])
  rows.append(['query', content['charge']['query_sha256']])
  return [
    _heading(2, 'Public objects (sha256)'),
    '<p>Taken to be public, and fixed independently of the private '
    'connections:</p>',
    _table(rows, code=True),
  ]


def _verify(content: dict[str, Any]) -> list[str]:
  """Says how to check the certificate."""
  code = ', '.join(f'{k} {v}' for k, v in sorted(content['code'].items()))
  return [
    _heading(2, 'How to verify'),
    '<p><code>privjax-verify certificate.json public.npz</code> recomputes '
    'from the public objects what the certificate says of them; with an export '
    'of the ledger as third argument it finds the charge as well. The file '
    '<code>verify_certificate.py</code> runs alone.</p>',
    f'<p>Certificate <code>{_text(content["sha256"])}</code>, schema '
    f'{_text(content["schema"])}. Made by <code>{_text(code)}</code></p>',
  ]


def _odds(epsilon: fractions.Fraction) -> str:
  """Returns e^epsilon, rounded up to three digits."""
  with decimal.localcontext(prec=50):
    value = _decimal(epsilon).exp()
  value = decimal.Context(prec=3, rounding=decimal.ROUND_CEILING).plus(value)
  return f'{value:f}' if value < 10**6 else f'{value:e}'


def _certainty(epsilon: fractions.Fraction) -> str:
  """Returns e^epsilon / (1 + e^epsilon) in percent, rounded up."""
  with decimal.localcontext(prec=50):
    value = 100 / (1 + (-_decimal(epsilon)).exp())
  value = decimal.Context(prec=4, rounding=decimal.ROUND_CEILING).plus(value)
  return f'{value:f} %' if value < 100 else 'practically 100 %'


def _decimal(value: fractions.Fraction) -> decimal.Decimal:
  return decimal.Decimal(value.numerator) / value.denominator


def _text(value: object) -> str:
  """Escapes anything for the text of an element."""
  return html.escape(str(value))


def _heading(level: int, text: str) -> str:
  return f'<h{level}>{_text(text)}</h{level}>'


def _bullets(items: Iterable[str]) -> str:
  lines = ''.join(f'<li>{item}</li>' for item in items)
  return f'<ul>{lines}</ul>'


def _table(rows: list[list[str]], *, code: bool = False) -> str:
  """Returns rows of cells; with `code`, all but the first in monospace."""
  lines = []
  for row in rows:
    cells = [_text(cell) for cell in row]
    if code:
      cells[1:] = [f'<code>{cell}</code>' for cell in cells[1:]]
    lines.append(''.join(f'<td>{cell}</td>' for cell in cells))
  return '<table>' + ''.join(f'<tr>{line}</tr>' for line in lines) + '</table>'
