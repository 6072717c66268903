"""The certificate of one release: a JSON document that can be filed.

It says what was released, what that cost, which theorem holds for which change
of the data, which public objects it rests on, and what it does not cover. Every
field but the release itself is a function of public objects and of the ledger:
two neighboring graphs give the same certificate but for the drawn candidate.
"""

import hashlib
import json
import pathlib
import platform
from typing import Any

import jax
import numpy as np

from privjax import _version
from privjax import counterfactual
from privjax import types
from privjax.release import ledger_records
from privjax.release import public_objects

SCHEMA_NAME = 'privjax-certificate/1'
SCHEMA_PATH = pathlib.Path(__file__).with_name('certificate.schema.json')

NOT_COVERED = (
  'a backbone that was trained on the private edges, or chosen by them',
  'the prediction of the target, which the owner may not confirm for free',
  'time, memory, and the number of random bits read while releasing',
  'the disclosure of the snapshot itself',
  'choosing the target, or whether to ask at all, by a private rule',
  'other uses of the same private graph outside this ledger',
)

_WHY = {
  'paper': 'w_flip + w_compact + w_plausible bounds the range of a utility',
  'tight': (
    'the empty set is constant and any other utility lies between 0 and '
    'w_flip + w_compact (1 - 1 / k_max) + w_plausible (or w_compact, if soft)'
  ),
}


def query(
  public: public_objects.PublicObjects,
  support: counterfactual.CandidateSet,
  epsilon: str,
  dataset_id: str,
) -> dict[str, Any]:
  """Returns the public query: all that shapes the law but the private graph."""
  config, utility = public.config, public.config.utility
  return {
    'schema': SCHEMA_NAME,
    'dataset_id': dataset_id,
    'target': support.universe.target,
    'guarantee': _guarantee(epsilon),
    'mechanism': {
      'law': 'exponential mechanism',
      'weights': 'one for every candidate',
      'denominator': config.denominator,
      'sensitivity': ledger_records.ratio(config.sensitivity),
      'sensitivity_rule': utility.sensitivity,
      'sensitivity_why': _WHY[utility.sensitivity],
    },
    'config': {
      'num_pairs': config.num_pairs,
      'max_edges': config.max_edges,
      'num_features': config.num_features,
      'max_features': config.max_features,
      'num_hops': config.num_hops,
      'feature_masks': config.feature_masks,
      'utility': utility.kind,
      'w_flip': ledger_records.ratio(utility.w_flip),
      'w_compact': ledger_records.ratio(utility.w_compact),
      'w_plausible': ledger_records.ratio(utility.w_plausible),
      'capacity': list(public.capacity),
      'model': _name(public.model.apply_fn),
      'model_hops': public.model.num_hops,
    },
    'public_objects': public.digests(),
    'snapshot_origin': public.snapshot.origin,
    'support': {
      'size': support.support_size,
      'sha256': public_objects.support_digest(support),
    },
  }


def query_digest(public_query: dict[str, Any]) -> str:
  """Returns the sha256 that names a query in the ledger."""
  text = ledger_records.canonical_json(public_query)
  return hashlib.sha256(text.encode()).hexdigest()


def build(
  public_query: dict[str, Any],
  support: counterfactual.CandidateSet,
  index: int,
  charge: ledger_records.Charge,
) -> str:
  """Returns the certificate of a certified draw, as JSON text.

  Args:
    public_query: from `query`.
    support: the public support.
    index: flat index of the drawn candidate: the release.
    charge: what the ledger was charged before anything was computed.
  """
  content = public_query | {
    'certified': True,
    'randomness': 'operating system, sampled exactly in integers',
    'release': _release(support, index),
    'charge': {
      'query_sha256': charge.query_digest,
      'cost': ledger_records.ratio(charge.cost),
      'receipt': str(charge.receipt),
    },
    'code': code_version(),
    'not_covered': list(NOT_COVERED),
  }
  return json.dumps(content | {'sha256': seal(content)}, indent=2) + '\n'


def seal(content: dict[str, Any]) -> str:
  """Returns the sha256 over a certificate without its own 'sha256'."""
  rest = {name: value for name, value in content.items() if name != 'sha256'}
  text = ledger_records.canonical_json(rest)
  return hashlib.sha256(text.encode()).hexdigest()


def code_version() -> dict[str, str]:
  """Returns what computed a release: versions and the package's sha256."""
  root = pathlib.Path(__file__).resolve().parents[1]
  digest = hashlib.sha256()
  for path in sorted(root.rglob('*.py')):
    digest.update(path.relative_to(root).as_posix().encode() + b'\n')
    digest.update(path.read_bytes())
  return {
    'privjax': _version.__version__,
    'privjax_sha256': digest.hexdigest(),
    'python': platform.python_version(),
    'jax': jax.__version__,
    'numpy': np.__version__,
  }


def _name(function) -> str:
  """Names a function as its code does: its parameters have a digest."""
  module = getattr(function, '__module__', None)
  name = getattr(function, '__qualname__', type(function).__qualname__)
  return f'{module}.{name}'


def _guarantee(epsilon: str) -> dict[str, str]:
  statement: types.PrivacyGuarantee = counterfactual.guarantee(epsilon)
  assert statement.epsilon is not None
  return {
    'epsilon': ledger_records.ratio(statement.epsilon),
    'delta': ledger_records.ratio(statement.delta),
    'relation': statement.relation.value,
    'unit': statement.unit,
    'theorem': statement.theorem,
  }


def _release(support: counterfactual.CandidateSet, index: int) -> dict:
  """Names the drawn candidate in public terms."""
  a, b = divmod(index, len(support.feature_subsets))
  universe = support.universe
  return {
    'index': [a, b],
    'delete_pairs': universe.pairs[support.edge_subsets[a]].tolist(),
    'mask_features': universe.features[support.feature_subsets[b]].tolist(),
  }
