"""The verifier alone: it accepts what was released and nothing else."""

import ast
import contextlib
import fractions
import functools
import io
import json
import pathlib
import shutil
import subprocess
import sys

from absl.testing import parameterized
import hypothesis
from hypothesis import strategies as st
import numpy as np

from privjax import counterfactual
from privjax.release import ledger_records
from privjax.release import public_objects
from privjax.release import verify_certificate
from tests.counterfactual import cases
from tests.release import certificate_test
from tests.release import neighbor_runs

Fraction = fractions.Fraction
_FILE = pathlib.Path(verify_certificate.__file__)
_PATHS = tuple(verify_certificate.PATTERNS)


@functools.cache
def _one() -> certificate_test.Certified:
  return certificate_test.Certified(
    neighbor_runs.problem(cases.random_case(2)), epsilon='1'
  )


def _sha256(value) -> str:
  return verify_certificate.sha256(ledger_records.canonical_json(value))


def _forged(content: dict) -> dict:
  """Makes digests of query and certificate fit again, as a forger would."""
  query = {name: content[name] for name in verify_certificate.QUERY}
  digest = _sha256(query)
  content = content | {'charge': content['charge'] | {'query_sha256': digest}}
  del content['sha256']
  return content | {'sha256': _sha256(content)}


def _edited(path, value) -> dict:
  return certificate_test.edited(_one().content, path, value)


def _problems(content, objects=None, *exports) -> list[str]:
  objects = _one().objects if objects is None else objects
  return verify_certificate.problems(content, objects, *exports)


# A well-formed other value of every field that has one.
_OTHER = {
  'dataset_id': 'other',
  'target': 0,
  'guarantee.epsilon': '1/2',
  'mechanism.denominator': 100,
  'mechanism.sensitivity': '1/1',
  'mechanism.sensitivity_rule': 'paper',
  'mechanism.sensitivity_why': 'because',
  'config.num_pairs': 1,
  'config.max_edges': 1,
  'config.num_features': 3,
  'config.max_features': 1,
  'config.num_hops': 2,
  'config.feature_masks': 'inert',
  'config.utility': 'soft',
  'config.w_flip': '4/5',
  'config.w_compact': '3/10',
  'config.w_plausible': '1/5',
  'config.capacity': [1, 1],
  'config.model': 'other.apply',
  'config.model_hops': 3,
  **{
    f'public_objects.{name}': 'a' * 64
    for name in ('snapshot', 'features', 'backbone', 'first_layer')
  },
  'support.size': 43,
  'support.sha256': 'b' * 64,
  'release.index': [0, 0],
  'release.delete_pairs': [[0, 1]],
  'release.mask_features': [5],
  'charge.query_sha256': 'c' * 64,
  'charge.cost': '1/3',
  'charge.receipt': f'privjax-ledger-receipt 1 {"d" * 32} 3 {"e" * 64}',
  'code.privjax': '9.9',
  'code.privjax_sha256': 'f' * 64,
  'code.python': '2.7',
  'code.jax': '0.1',
  'code.numpy': '1.0',
  'not_covered': ['nothing'] * 6,
  'sha256': '0' * 64,
}
# What only the ledger can contradict: no public object speaks of it. Of the
# settings, these are the ones under which the support stays what it is.
_LEDGER_ONLY = {
  'dataset_id', 'mechanism.sensitivity_why', 'config.capacity', 'config.model',
  'config.model_hops', 'charge.query_sha256', 'charge.receipt', 'not_covered',
  'code.privjax', 'code.privjax_sha256', 'code.python', 'code.jax',
  'code.numpy', 'sha256',
}  # fmt: skip
# Which computed field contradicts a forged one, if it is not the field itself.
_CONTRADICTED = {
  'target': 'support.sha256',
  'guarantee.epsilon': 'charge.cost',
  'mechanism.sensitivity_rule': 'mechanism.sensitivity',
  'config.num_pairs': 'support.size',
  'config.max_edges': 'support.size',
  'config.num_features': 'support.size',
  'config.max_features': 'support.size',
  'config.num_hops': 'support.size',
  'config.w_flip': 'config.w_plausible',
  'config.w_compact': 'config.w_plausible',
  'release.index': 'release.',
}


class TamperedTest(parameterized.TestCase):
  def test_the_untouched_certificate_is_accepted(self):
    one = _one()
    self.assertEqual(_problems(one.content), [])
    self.assertEqual(_problems(one.content, None, one.export), [])
    self.assertEqual(_problems(_forged(one.content), None, one.export), [])

  def test_every_field_is_tampered_with(self):
    constant = {
      'schema', 'guarantee.delta', 'guarantee.relation', 'guarantee.unit',
      'guarantee.theorem', 'mechanism.law', 'mechanism.weights',
      'snapshot_origin', 'certified', 'randomness',
    }  # fmt: skip
    self.assertEqual(set(_OTHER) | constant, set(_PATHS))
    for path in constant:
      found = _problems(_forged(_edited(path, 'simulated')))
      self.assertLen(found, 1)
      self.assertStartsWith(found[0], f'{path}: ')

  @parameterized.parameters(*_OTHER)
  def test_a_careless_change_breaks_the_seal(self, path):
    found = _problems(_edited(path, _OTHER[path]))
    self.assertTrue(any(line.startswith('sha256: ') for line in found), found)

  @parameterized.parameters(*sorted(set(_OTHER) - _LEDGER_ONLY))
  def test_a_forgery_contradicts_the_public_objects(self, path):
    found = _problems(_forged(_edited(path, _OTHER[path])))
    if path in ('config.utility', 'config.feature_masks'):
      # This support and sensitivity are the same for both; the ledger tells.
      self.assertEqual(found, [])
      return
    reason = _CONTRADICTED.get(path, path)
    self.assertTrue(any(line.startswith(reason) for line in found), found)

  @parameterized.parameters(*sorted(set(_OTHER) - {'sha256'}))
  def test_a_forgery_contradicts_the_ledger(self, path):
    forged = _forged(_edited(path, _OTHER[path]))
    if path == 'charge.query_sha256':
      self.assertEqual(forged, _one().content)  # The forger mends it.
      return
    self.assertNotEmpty(_problems(forged, None, _one().export))

  def test_another_candidate_of_the_support_contradicts_the_ledger(self):
    released = {'index': [0, 0], 'delete_pairs': [], 'mask_features': []}
    if _one().content['release'] == released:
      released = {'index': [0, 1], 'delete_pairs': []}
      _, masks = _one_subsets()
      released['mask_features'] = masks[1]
    forged = _forged(_one().content | {'release': released})
    self.assertEqual(_problems(forged), [])
    found = _problems(forged, None, _one().export)
    self.assertEqual(
      found, ['ledger: it does not hold this charge with this one release']
    )

  @parameterized.parameters('1/2', '1/9', '2/1', '2/2', '2/16')
  def test_the_cost_is_that_of_a_pure_or_a_zcdp_account(self, cost):
    found = _problems(_forged(_edited('charge.cost', cost)))
    self.assertEqual(found, ['charge.cost: must be "1/1"'])
    self.assertEqual(_problems(_forged(_edited('charge.cost', '1/8'))), [])

  @parameterized.parameters('2/2', '01/1', '1', '0/1', '-1/1', '1/0', '1.0/1')
  def test_epsilon_has_one_spelling(self, epsilon):
    found = _problems(_forged(_edited('guarantee.epsilon', epsilon)))
    self.assertStartsWith(found[0], 'guarantee.epsilon: ')

  @parameterized.parameters([[10**6, 0]], [[0, 99]], [[15, 10]])
  def test_an_index_off_the_support(self, index):
    found = _problems(_forged(_edited('release.index', index)))
    self.assertTrue(any(line.startswith('release.') for line in found), found)

  def test_the_order_of_fields_does_not_matter(self):
    content = json.loads(ledger_records.canonical_json(_one().content))
    self.assertEqual(_problems(content, None, _one().export), [])


def _one_subsets():
  support = cases.random_case(2).support(neighbor_runs.CONFIG)
  universe = support.universe
  return (
    [universe.pairs[row].tolist() for row in support.edge_subsets],
    [universe.features[row].tolist() for row in support.feature_subsets],
  )


class StructureTest(parameterized.TestCase):
  @parameterized.parameters((None,), (3,), ('x',), ([],), ([{}],), ({},))
  def test_what_is_no_certificate(self, content):
    self.assertNotEmpty(_problems(content))

  def test_a_dotted_name_does_not_stand_for_a_nested_field(self):
    content = _one().content
    content['guarantee']['unit'] = 'node'
    content['guarantee.unit'] = 'edge'
    found = _problems(_forged(content))
    self.assertIn('guarantee?unit: "edge" is not no field', found)

  def test_an_empty_object_is_not_overlooked(self):
    found = _problems(_forged(_one().content | {'extra': {}}))
    self.assertEqual(found, ['extra: {} is not no field'])

  @parameterized.parameters('edges', 'features')
  def test_the_support_of_a_forger_is_bounded(self, kind):
    slots = {'edges': 'config.num_pairs', 'features': 'config.num_features'}
    content = _edited(slots[kind], 9999)
    content = certificate_test.edited(content, f'config.max_{kind}', 3)
    with self.assertRaisesRegex(ValueError, 'too large to check'):
      _problems(_forged(content))


class ObjectsTest(parameterized.TestCase):
  def check(self, group, **arrays):
    """Returns problems of a forgery whose digests fit other objects."""
    objects = dict(_one().objects)
    for name, array in arrays.items():
      objects[f'{group}.{name}'] = array
    content = _one().content
    digests = content['public_objects'] | {
      group: verify_certificate._array_digest(objects, group)
    }
    unforged = _problems(content, objects)
    self.assertTrue(
      any(line.startswith(f'public_objects.{group}: ') for line in unforged)
    )
    return _problems(_forged(content | {'public_objects': digests}), objects)

  @property
  def pairs(self):
    return _one().objects['snapshot.pairs']

  def test_a_pair_more_or_less_changes_the_support(self):
    near = (self.pairs == _one().content['target']).any(axis=1)
    found = self.check('snapshot', pairs=self.pairs[~near])
    self.assertIn('support.size', [line.partition(':')[0] for line in found])

  @parameterized.named_parameters(
    ('reversed', lambda pairs: pairs[::-1]),
    ('upside_down', lambda pairs: pairs[:, ::-1]),
    ('twice', lambda pairs: np.repeat(pairs, 2, axis=0)),
    ('out_of_range', lambda pairs: np.append(pairs, [[7, 8]], axis=0)),
    ('negative', lambda pairs: np.insert(pairs, 0, [[-1, 2]], axis=0)),
    ('loop', lambda pairs: np.append(pairs, [[7, 7]], axis=0)),
  )
  def test_pairs_that_are_not_canonical(self, change):
    with self.assertRaisesRegex(ValueError, 'ascending pairs'):
      self.check('snapshot', pairs=change(self.pairs))

  def test_a_target_that_is_no_node(self):
    with self.assertRaisesRegex(ValueError, 'nodes'):
      _problems(_forged(_edited('target', 8)))

  def test_other_features_and_kernels_change_the_support(self):
    features = _one().objects['features.data']
    row = slice(*_one().objects['features.indptr'][[2, 4]])
    changed = features.copy()
    changed[row] = 0
    found = self.check('features', data=changed)
    self.assertIn('support.size', [line.partition(':')[0] for line in found])
    kernel = _one().objects['first_layer.kernel']
    scaled = kernel * 10.0 ** np.arange(len(kernel))[:, None]
    found = self.check('first_layer', kernel=scaled)
    self.assertIn('support.sha256', [line.partition(':')[0] for line in found])

  @parameterized.parameters('snapshot', 'features', 'backbone', 'first_layer')
  def test_a_missing_group_is_refused(self, group):
    objects = {
      name: array
      for name, array in _one().objects.items()
      if not name.startswith(f'{group}.')
    }
    try:
      found = _problems(_one().content, objects)
    except KeyError as error:
      found = [str(error)]
    self.assertTrue(any(group in line for line in found), found)


class LedgerTest(parameterized.TestCase):
  def refused(self, export, words):
    found = _problems(_one().content, None, export)
    self.assertRegex('\n'.join(found), words)

  def test_an_empty_export(self):
    self.refused([], 'does not hold')

  def test_a_changed_entry_breaks_the_chain(self):
    for number in range(len(_one().export)):
      export = _one().export
      export[number]['epsilon'] = '1/7'
      self.refused(export, f'breaks at entry {number + 1}')

  def test_a_removed_entry_breaks_the_chain(self):
    export = _one().export
    del export[1]
    self.refused(export, 'breaks at entry 2')

  def test_an_export_that_ends_before_the_answer(self):
    self.refused(_one().export[:-1], 'does not hold')
    self.refused(_one().export[:-2], 'does not hold')

  def test_another_ledger(self):
    other = certificate_test.Certified(
      neighbor_runs.problem(cases.random_case(2)), epsilon='1'
    )
    self.refused(other.export, 'does not hold')

  @parameterized.parameters(
    ('charge', 'dataset_id', 'other'),
    ('charge', 'query_digest', 'a' * 64),
    ('charge', 'epsilon', '1/2'),
    ('charge', 'cost', '1/2'),
    ('charge', 'kind', 'cap'),
  )
  def test_a_rewritten_ledger(self, kind, column, value):
    # The receipt of the certificate pins the entry that was charged.
    rows, changed = _one().rows, []
    for row in rows:
      columns = row._asdict()
      for name in ('sequence', 'previous', 'hash'):
        del columns[name]
      if row.kind == kind:
        columns[column] = value
      last = changed[-1] if changed else None
      changed.append(ledger_records.next_entry(last, **columns))
    self.refused([row._asdict() for row in changed], 'does not hold')

  def test_a_second_answer_to_the_charge(self):
    rows = list(_one().rows)
    columns = rows[-1]._asdict()
    for name in ('sequence', 'previous', 'hash'):
      del columns[name]
    rows.append(ledger_records.next_entry(rows[-1], **columns))
    self.refused([row._asdict() for row in rows], 'one release')


class AgreementTest(parameterized.TestCase):
  """Universe, support, sensitivity: as the library computes them."""

  @hypothesis.given(
    cases.any_case(),
    st.integers(0, 7),
    st.integers(0, 3),
    st.integers(0, 7),
    st.integers(0, 3),
    st.sampled_from((1, 2)),
    st.sampled_from(('effective', 'inert')),
  )
  @hypothesis.settings(max_examples=60)
  def test_support(
    self, case, pairs, max_edges, features, max_features, hops, masks
  ):
    hypothesis.assume(max_edges + max_features)
    config = {
      'num_pairs': pairs,
      'max_edges': max_edges,
      'num_features': features,
      'max_features': max_features,
      'num_hops': hops,
      'feature_masks': masks,
    }
    support = case.support(counterfactual.PrivCFSConfig(**config))
    kernel = case.params['hidden']['kernel']
    objects = {
      'snapshot.num_nodes': np.array(cases.NUM_NODES),
      'snapshot.pairs': case.snapshot.graph.pairs,
      'features.data': case.features.data,
      'features.indices': case.features.indices,
      'features.indptr': case.features.indptr,
      'first_layer.kernel': kernel,
    }
    found = verify_certificate.universe(objects, case.target, config)
    edges = verify_certificate.subsets(found[0], pairs, max_edges)
    masked = verify_certificate.subsets(found[1], features, max_features)
    content = [case.target, [*edges.values()], [*masked.values()]]
    self.assertEqual(_sha256(content), public_objects.support_digest(support))
    self.assertEqual(list(edges), np.flatnonzero(support.edge_valid).tolist())
    self.assertEqual(
      list(masked), np.flatnonzero(support.feature_valid).tolist()
    )

  @hypothesis.given(
    st.lists(st.integers(0, 9), min_size=3, max_size=3),
    st.integers(0, 4),
    st.integers(0, 4),
    st.sampled_from(('gated', 'soft')),
    st.sampled_from(('paper', 'tight')),
  )
  @hypothesis.settings(max_examples=60)
  def test_sensitivity_and_denominator(
    self, parts, max_edges, max_features, kind, rule
  ):
    hypothesis.assume(parts[0] and max_edges + max_features)
    weights = [Fraction(part, sum(parts)) for part in parts]
    utility = counterfactual.UtilityConfig(
      kind=kind,
      w_flip=weights[0],
      w_compact=weights[1],
      w_plausible=weights[2],
      sensitivity=rule,
    )
    config = counterfactual.PrivCFSConfig(
      max_edges=max_edges, max_features=max_features, utility=utility
    )
    found = dict(
      verify_certificate._utility(
        {
          'max_edges': max_edges,
          'max_features': max_features,
          'utility': kind,
          'w_flip': ledger_records.ratio(weights[0]),
          'w_compact': ledger_records.ratio(weights[1]),
        },
        rule,
      )
    )
    ratio = ledger_records.ratio
    self.assertEqual(
      found,
      {
        'config.w_plausible': ratio(weights[2]),
        'mechanism.sensitivity': ratio(config.sensitivity),
        'mechanism.denominator': config.denominator,
      },
    )


class CommandTest(parameterized.TestCase):
  def setUp(self):
    super().setUp()
    folder = neighbor_runs.folder()
    self.addCleanup(folder.cleanup)
    self.folder = pathlib.Path(folder.name)
    self.paths = [
      self.folder / name
      for name in ('certificate.json', 'public.npz', 'export.jsonl')
    ]
    self.paths[0].write_text(_one().text)
    _one().public.save(self.paths[1])
    lines = (json.dumps(entry) + '\n' for entry in _one().export)
    self.paths[2].write_text(''.join(lines))

  def run_main(self, *paths):
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
      code = verify_certificate.main([str(path) for path in paths])
    return code, printed.getvalue()

  def test_accepts(self):
    self.assertEqual(self.run_main(*self.paths), (0, 'VALID\n'))
    self.assertEqual(self.run_main(*self.paths[:2]), (0, 'VALID\n'))

  def test_rejects_with_the_reason(self):
    content = _edited('guarantee.epsilon', '1/10')
    self.paths[0].write_text(json.dumps(_forged(content)))
    code, printed = self.run_main(*self.paths)
    self.assertEqual(code, 1)
    self.assertIn('REJECTED charge.cost: must be "1/10"\n', printed)

  def test_rejects_what_it_cannot_compute(self):
    self.paths[0].write_text(json.dumps(_forged(_edited('target', 99))))
    code, printed = self.run_main(*self.paths)
    self.assertEqual(code, 1)
    self.assertStartsWith(printed, 'REJECTED ')

  @parameterized.named_parameters(
    ('no_json', 0, b'{'),
    ('binary', 0, b'\xff\xfe'),
    ('deep', 0, b'[' * 10**5),
    ('no_npz', 1, b'PK\x03\x04 and no more'),
    ('empty', 1, b''),
    ('text', 1, b'pairs'),
    ('no_lines', 2, b'{"sequence": 1\n'),
  )
  def test_files_that_cannot_be_read(self, number, content):
    self.paths[number].write_bytes(content)
    self.assertEqual(self.run_main(*self.paths)[0], 2)

  def test_missing_files_and_arguments(self):
    self.assertEqual(self.run_main(self.paths[0], self.folder / 'no')[0], 2)
    self.assertEqual(self.run_main(self.paths[0])[0], 2)
    self.assertEqual(self.run_main()[0], 2)

  def test_pickles_are_not_loaded(self):
    array = np.empty(1, object)
    array[0] = {}
    np.savez(self.paths[1], **{'snapshot.pairs': array})
    self.assertEqual(self.run_main(*self.paths)[0], 2)

  def test_runs_alone(self):
    alone = shutil.copy(_FILE, self.folder)
    done = subprocess.run(
      [sys.executable, '-I', alone, *map(str, self.paths)],
      capture_output=True,
      cwd=self.folder,
      text=True,
    )
    self.assertEqual((done.returncode, done.stdout), (0, 'VALID\n'))


class SourceTest(parameterized.TestCase):
  def test_is_short_enough_to_be_read(self):
    lines = _FILE.read_text().splitlines()
    self.assertLessEqual(len(lines), 200)
    self.assertLessEqual(max(map(len, lines)), 80)

  def test_imports_the_standard_library_and_numpy(self):
    found = set()
    for node in ast.walk(ast.parse(_FILE.read_text())):
      if isinstance(node, ast.Import):
        found |= {alias.name.partition('.')[0] for alias in node.names}
      elif isinstance(node, ast.ImportFrom):
        self.assertEqual(node.level, 0)
        found.add(node.module.partition('.')[0])
    self.assertContainsSubset(found, {*sys.stdlib_module_names, 'numpy'})
