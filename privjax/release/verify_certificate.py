"""Checks a privjax certificate without privjax: one file that runs alone.

  python verify_certificate.py certificate.json public.npz [export.jsonl]

Computes from the public objects what the certificate must say, and finds in an
export of the ledger its charge with this release as the only answer. Exits 0 if
all holds, 1 with the reasons if not, 2 if a file cannot be read. It cannot see
the private graph, nor check that the draw was made as stated.
"""

from fractions import Fraction
import hashlib
import io
import itertools
import json
import math
import pathlib
import re
import sys

import numpy as np

RECEIPT = 'privjax-ledger-receipt 1 ([0-9a-f]{32}) ([0-9]{1,18}) ([0-9a-f]{64})'
COLUMNS = 'kind dataset_id analyst query_digest epsilon cost body'.split()
QUERY = ('schema', 'dataset_id', 'target', 'guarantee', 'mechanism', 'config',
         'public_objects', 'snapshot_origin', 'support')  # fmt: skip
MOST, N = 2**22, '[0-9]{1,18}'  # Most subsets that are enumerated; a count.
# Patterns of JSON text, and which fields of a certificate must match them.
FIELDS = {
  '"privjax-certificate/1"': 'schema', '"external"': 'snapshot_origin',
  '"[a-z0-9][a-z0-9._-]{0,127}"': 'dataset_id', 'true': 'certified',
  '"add_remove_one_edge"': 'guarantee.relation', '"edge"': 'guarantee.unit',
  r'"McSherry & Talwar \(2007\), Theorem 6; PrivCFS, Theorem 1"':
  'guarantee.theorem', '"(gated|soft)"': 'config.utility',
  '"exponential mechanism"': 'mechanism.law', f'"{RECEIPT}"': 'charge.receipt',
  '"one for every candidate"': 'mechanism.weights', '[12]': 'config.num_hops',
  '"(paper|tight)"': 'mechanism.sensitivity_rule', '"0/1"': 'guarantee.delta',
  '"(effective|inert)"': 'config.feature_masks',
  '"operating system, sampled exactly in integers"': 'randomness',
  '[0-9]{1,4}': 'config.num_pairs config.max_edges config.num_features '
  'config.max_features config.model_hops',
  r'\["[^"]+"(,"[^"]+"){5,}\]': 'not_covered',
  rf'\[{N},{N}\]': 'config.capacity release.index',
  rf'\[(\[{N},{N}\],?)*\]': 'release.delete_pairs',
  rf'\[({N},?)*\]': 'release.mask_features',
  N: 'target mechanism.denominator support.size',
  '"[0-9]{1,999}/[1-9][0-9]{0,998}"': 'config.w_compact config.w_plausible',
  '"[1-9][0-9]{0,998}/[1-9][0-9]{0,998}"': 'config.w_flip guarantee.epsilon '
  'charge.cost mechanism.sensitivity',
  '"[0-9a-f]{64}"': 'public_objects.snapshot public_objects.features sha256 '
  'public_objects.backbone public_objects.first_layer code.privjax_sha256 '
  'charge.query_sha256 support.sha256',
  '".+"': 'code.privjax code.python code.jax code.numpy config.model '
  'mechanism.sensitivity_why',
}  # fmt: skip
PATTERNS = {name: key for key in FIELDS for name in FIELDS[key].split()}
canonical = json.JSONEncoder(separators=(',', ':'), sort_keys=True).encode
sha256 = lambda text: hashlib.sha256(text.encode()).hexdigest()
ratio = lambda value: f'{value.numerator}/{value.denominator}'


def _flatten(value, path=''):
  if type(value) is not dict or not value:
    return {path[1:]: value}
  inner = (_flatten(value[n], f'{path}.{n.replace(".", "?")}') for n in value)
  return {name: field for fields in inner for name, field in fields.items()}


def _array_digest(objects, group):
  digest = hashlib.sha256()
  for name in sorted(name for name in objects if name.startswith(f'{group}.')):
    little = objects[name].astype(objects[name].dtype.newbyteorder('<'))
    header = [name[len(group) + 1 :], little.dtype.str, list(little.shape)]
    digest.update(canonical(header).encode() + b'\n' + little.tobytes())
  return digest.hexdigest()


def universe(objects, target, config):
  """Ranks pairs, and features by abs(value) * norm(kernel row), exactly."""
  pairs, size = objects['snapshot.pairs'], int(objects['snapshot.num_nodes'])
  within = all(0 <= i < j < size for i, j in pairs.tolist()) and target < size
  if not within or not np.array_equal(pairs, np.unique(pairs, axis=0)):
    raise ValueError('the snapshot is not ascending pairs i < j of its nodes')
  near = lambda u: sorted((pairs[(pairs == u).any(1)].sum(1) - u).tolist())
  first = near(target)
  found = [[target, u] for u in first]
  for i, u in enumerate(first if config['num_hops'] == 2 else ()):
    found += [[u, w] for w in near(u) if w not in [target, *first[:i]]]
  row = slice(*objects['features.indptr'][target : target + 2])
  dims, data = objects['features.indices'][row], objects['features.data'][row]
  kernel, influence = objects['first_layer.kernel'].tolist(), {}
  for dim, value in zip(dims.tolist(), data.tolist()):
    norm = sum(Fraction(weight) ** 2 for weight in kernel[dim])
    influence |= {dim: Fraction(value) ** 2 * norm} if value else {}
  order = sorted(influence, key=lambda dim: (-influence[dim], dim))
  spare = range(len(kernel)) if config['feature_masks'] == 'inert' else ()
  return found, order + [dim for dim in spare if dim not in influence]


def subsets(items, slots, largest):
  """Returns the subsets of items, by their number among those of all slots."""
  padded, rows = (items + [None] * slots)[:slots], []
  for size in range(min(slots, largest) + 1):
    if len(rows) + math.comb(slots, size) > MOST:
      raise ValueError('the support is too large to check')
    rows += map(list, itertools.combinations(padded, size))
  return {number: row for number, row in enumerate(rows) if None not in row}


def _utility(config, rule):
  flip, compact = Fraction(config['w_flip']), Fraction(config['w_compact'])
  plausible, max_edges = 1 - flip - compact, config['max_edges']
  yield 'config.w_plausible', ratio(plausible)
  k_max = max_edges + config['max_features']
  tight = 1 - compact / k_max - (0 if max_edges else plausible)
  tight = max(tight, compact) if config['utility'] == 'soft' else tight
  yield 'mechanism.sensitivity', ratio(tight) if rule == 'tight' else '1/1'
  parts = [plausible / named for named in range(1, max_edges + 1)]
  parts += [flip, compact, compact / k_max]
  yield 'mechanism.denominator', math.lcm(*(x.denominator for x in parts))


def computed(certificate, objects):
  """Yields what a field must be, by the other fields and the public objects."""
  config, target = certificate['config'], certificate['target']
  for name in certificate['public_objects']:
    yield f'public_objects.{name}', _array_digest(objects, name)
  yield from _utility(config, certificate['mechanism']['sensitivity_rule'])
  pairs, dims = universe(objects, target, config)
  edges = subsets(pairs, config['num_pairs'], config['max_edges'])
  masks = subsets(dims, config['num_features'], config['max_features'])
  yield 'support.size', len(edges) * len(masks)
  support = [target, [*edges.values()], [*masks.values()]]
  yield 'support.sha256', sha256(canonical(support))
  a, b = certificate['release']['index']
  yield 'release.delete_pairs', edges.get(a, 'in the support')
  yield 'release.mask_features', masks.get(b, 'in the support')
  query = {name: certificate[name] for name in QUERY}
  yield 'charge.query_sha256', sha256(canonical(query))
  epsilon = Fraction(certificate['guarantee']['epsilon'])
  yield 'guarantee.epsilon', ratio(epsilon)
  zcdp = certificate['charge']['cost'] == ratio(epsilon**2 / 8)
  yield 'charge.cost', ratio(epsilon**2 / 8 if zcdp else epsilon)
  sealed = {n: certificate[n] for n in certificate if n != 'sha256'}
  yield 'sha256', sha256(canonical(sealed))


def ledger_problems(certificate, export):
  """Yields how an export of the ledger disagrees with charge and release."""
  charge, previous = certificate['charge'], '0' * 64
  held = [json.loads(export[0]['body'])['ledger_id']] if export else []
  ((ledger, place, pinned),) = re.findall(RECEIPT, charge['receipt'])
  for number, entry in enumerate(export, 1):
    row = canonical([number, *(entry[name] for name in COLUMNS)])
    digest, body = sha256(f'{previous}\n{row}'), json.loads(entry['body'])
    if (entry['previous'], entry['hash']) != (previous, digest):
      yield f'ledger: the chain breaks at entry {number}'
    if number == int(place):
      held += [entry[name] for name in (*COLUMNS[:2], *COLUMNS[3:6], 'hash')]
    if entry['kind'] == 'release' and body['charge'] == int(place):
      held += [json.loads(body['release'])]
    previous = digest
  query = certificate['dataset_id'], charge['query_sha256']
  price = certificate['guarantee']['epsilon'], charge['cost']
  if held != [ledger, 'charge', *query, *price, pinned, certificate]:
    yield 'ledger: it does not hold this charge with this one release'


def problems(certificate, objects, *exports):
  """Returns every reason to reject the certificate."""
  texts = {n: canonical(value) for n, value in _flatten(certificate).items()}
  wanted = dict.fromkeys(texts, 'no field') | PATTERNS
  texts = dict.fromkeys(PATTERNS, 'missing') | texts
  misfits = [n for n in texts if not re.fullmatch(wanted[n], texts[n])]
  if misfits:
    return [f'{n}: {texts[n]:.80} is not {wanted[n]}' for n in misfits]
  must = {n: canonical(value) for n, value in computed(certificate, objects)}
  found = [f'{n}: must be {must[n]:.80}' for n in must if must[n] != texts[n]]
  return found + [r for e in exports for r in ledger_problems(certificate, e)]


def main(arguments=None):
  """Prints the verdict and returns the exit code."""
  paths = sys.argv[1:] if arguments is None else arguments
  read = lambda path: pathlib.Path(path).read_bytes()
  code = 2  # Until everything is read.
  try:
    certificate = json.loads(read(paths[0]))
    objects = dict(np.load(io.BytesIO(read(paths[1])), allow_pickle=False))
    exports = [[*map(json.loads, read(p).splitlines())] for p in paths[2:]]
    code = 1
    found = problems(certificate, objects, *exports)
  except Exception as error:
    found = [f'it cannot be checked: {error!r}']
  print('\n'.join(f'REJECTED {reason}' for reason in found) or 'VALID')
  return code if found else 0


if __name__ == '__main__':
  sys.exit(main())
