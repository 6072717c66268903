"""What a certificate says, and the schema that it is published with."""

import copy
import fractions
import hashlib
import json
import pathlib
import re

from absl.testing import parameterized

import privjax
from privjax import counterfactual
from privjax import graphs
from privjax import models
from privjax import release
from privjax.release import certificate
from privjax.release import ledger_records
from privjax.release import public_objects
from privjax.release import verify_certificate
from tests.counterfactual import cases
from tests.release import neighbor_runs

_CASE = cases.random_case(2)
_SCHEMA = json.loads(certificate.SCHEMA_PATH.read_text())


def _own_apply(params, graph):
  return models.gcn.apply(params, graph)


def _problems():
  own = models.NodeModel(_own_apply, _CASE.params, models.gcn.NUM_HOPS)
  published = counterfactual.PrivCFSConfig(
    num_hops=2,
    feature_masks='inert',
    utility=counterfactual.UtilityConfig(kind='soft'),
  )
  of = neighbor_runs.problem
  return {
    'tight': of(_CASE),
    'published tables': of(cases.random_case(4), config=published),
    'own model': of(_CASE, model=own, capacity=graphs.Capacity(8, 56)),
    'empty support': of(
      cases.make([], features=cases.csr([[0.0] * cases.NUM_FEATURES] * 8))
    ),
  }


class Certified:
  """One release of a problem: certificate, ledger entries, public objects."""

  def __init__(self, this: neighbor_runs.Problem, epsilon='1', delta=None):
    with neighbor_runs.folder() as name:
      path = pathlib.Path(name) / 'ledger.db'
      with release.Ledger.create(path) as ledger:
        ledger.open_account('tiny', '40', neighbor_runs.EDGE, delta=delta)
        owner = neighbor_runs.explainer(this, this.case.private, ledger)
        self.text = owner.release(this.case.target, epsilon=epsilon).certificate
        self.rows = ledger.history()
        self.public = owner.public

  @property
  def content(self) -> dict:
    """A fresh copy."""
    return json.loads(self.text)

  @property
  def objects(self) -> dict:
    """The saved arrays, as a verifier reads them."""
    return {
      f'{group}.{name}': array
      for group, arrays in self.public.arrays().items()
      for name, array in arrays.items()
    }

  @property
  def export(self) -> list[dict]:
    """The ledger's entries, as a verifier reads them."""
    return [json.loads(json.dumps(row._asdict())) for row in self.rows]


def schema_errors(value, schema=_SCHEMA, path='certificate') -> list[str]:
  """Validates against the part of JSON Schema 2020-12 that the schema uses."""
  known = {
    'type', 'const', 'enum', 'pattern', 'minLength', 'minimum', 'maximum',
    'items', 'minItems', 'maxItems', 'properties', 'required',
    'additionalProperties', '$ref', '$defs', '$schema', '$id', 'title',
    'description',
  }  # fmt: skip
  assert set(schema) <= known, f'{path}: {set(schema) - known} is not checked'
  found = []
  if '$ref' in schema:
    name = schema['$ref'].removeprefix('#/$defs/')
    found += schema_errors(value, _SCHEMA['$defs'][name], path)
  types = {'object': dict, 'array': list, 'string': str, 'integer': int}
  if 'type' in schema and type(value) is not types[schema['type']]:
    return [*found, f'{path}: not of type {schema["type"]}']
  same = lambda a: type(a) is type(value) and a == value
  allowed = [schema['const']] if 'const' in schema else schema.get('enum')
  if allowed is not None and not any(map(same, allowed)):
    found.append(f'{path}: not one of {allowed}')
  if isinstance(value, str):
    long = len(value) >= schema.get('minLength', 0)
    if not long or not re.search(schema.get('pattern', ''), value):
      found.append(f'{path}: does not match')
  if type(value) is int:
    low, high = schema.get('minimum', value), schema.get('maximum', value)
    if not low <= value <= high:
      found.append(f'{path}: out of range')
  if isinstance(value, list):
    most = schema.get('maxItems', len(value))
    if not schema.get('minItems', 0) <= len(value) <= most:
      found.append(f'{path}: number of items')
    for item in value:
      found += schema_errors(item, schema.get('items', {}), f'{path}[]')
  if isinstance(value, dict):
    inner = schema.get('properties', {})
    missing = set(schema.get('required', ())) - set(value)
    unknown = set(value) - set(inner)
    found += [f'{path}.{name}: missing' for name in missing]
    if schema.get('additionalProperties') is False:
      found += [f'{path}.{name}: unknown' for name in unknown]
    for name in set(value) & set(inner):
      found += schema_errors(value[name], inner[name], f'{path}.{name}')
  return found


def _leaves(schema, path='') -> dict[str, dict]:
  """Returns the schemas of all fields that are not objects, by dotted path."""
  if 'properties' not in schema:
    return {path[1:]: schema}
  return {
    name: leaf
    for key, inner in schema['properties'].items()
    for name, leaf in _leaves(inner, f'{path}.{key}').items()
  }


def edited(content: dict, path: str, value) -> dict:
  """Returns a certificate with another value at a dotted path."""
  result = copy.deepcopy(content)
  *folders, last = path.split('.')
  inner = result
  for name in folders:
    inner = inner[name]
  inner[last] = value
  return result


_REMOVED = object()


def _without(content, path):
  result = edited(content, path, _REMOVED)
  *folders, last = path.split('.')
  inner = result
  for name in folders:
    inner = inner[name]
  del inner[last]
  return result


class ContentTest(parameterized.TestCase):
  def setUp(self):
    super().setUp()
    self.one = Certified(neighbor_runs.problem(_CASE), epsilon='0.1')
    self.content = self.one.content

  def test_states_the_guarantee_exactly(self):
    statement = counterfactual.guarantee('1/10')
    self.assertEqual(
      self.content['guarantee'],
      {
        'epsilon': '1/10',
        'delta': '0/1',
        'relation': statement.relation.value,
        'unit': statement.unit,
        'theorem': statement.theorem,
      },
    )

  def test_states_the_mechanism_and_its_settings(self):
    config = neighbor_runs.CONFIG
    mechanism = self.content['mechanism']
    self.assertEqual(
      fractions.Fraction(mechanism['sensitivity']), config.sensitivity
    )
    self.assertEqual(mechanism['denominator'], config.denominator)
    self.assertEqual(self.content['config']['capacity'], [8, 8])
    self.assertEqual(
      self.content['config']['model'], 'privjax.models.gcn.apply'
    )
    for name in ('num_pairs', 'max_edges', 'num_features', 'max_features'):
      self.assertEqual(self.content['config'][name], getattr(config, name))

  def test_names_public_objects_and_support(self):
    support = _CASE.support(neighbor_runs.CONFIG)
    self.assertEqual(self.content['public_objects'], self.one.public.digests())
    self.assertEqual(
      self.content['support'],
      {
        'size': support.support_size,
        'sha256': public_objects.support_digest(support),
      },
    )

  def test_its_charge_is_in_the_ledger(self):
    charge = next(row for row in self.one.rows if row.kind == 'charge')
    receipt = ledger_records.Receipt.parse(self.content['charge']['receipt'])
    self.assertEqual(
      (receipt.sequence, receipt.hash), (charge.sequence, charge.hash)
    )
    self.assertEqual(self.content['charge']['cost'], charge.cost)
    self.assertEqual(
      self.content['charge']['query_sha256'], charge.query_digest
    )
    answer = next(row for row in self.one.rows if row.kind == 'release')
    self.assertEqual(json.loads(answer.body)['release'], self.one.text)

  def test_the_query_is_all_but_what_comes_after_the_charge(self):
    names = list(self.content)[:9]
    text = json.dumps(
      {name: self.content[name] for name in names},
      separators=(',', ':'),
      sort_keys=True,
    )
    self.assertEqual(
      self.content['charge']['query_sha256'],
      hashlib.sha256(text.encode()).hexdigest(),
    )
    self.assertEqual(names[-1], 'support')

  def test_is_sealed(self):
    rest = {k: v for k, v in self.content.items() if k != 'sha256'}
    text = json.dumps(rest, separators=(',', ':'), sort_keys=True)
    digest = hashlib.sha256(text.encode()).hexdigest()
    self.assertEqual(self.content['sha256'], digest)

  def test_says_what_is_not_covered(self):
    self.assertEqual(self.content['not_covered'], list(certificate.NOT_COVERED))
    text = ' '.join(certificate.NOT_COVERED)
    for word in ('trained', 'prediction', 'time', 'snapshot', 'private rule'):
      self.assertIn(word, text)

  def test_names_the_code(self):
    root = pathlib.Path(privjax.__file__).parent
    lines = {
      path.relative_to(root).as_posix().encode(): path.read_bytes()
      for path in root.rglob('*.py')
    }
    content = b''.join(
      name + b'\n' + lines[name] for name in sorted(lines, key=_parts)
    )
    code = certificate.code_version()
    self.assertEqual(code['privjax'], privjax.__version__)
    self.assertEqual(
      code['privjax_sha256'], hashlib.sha256(content).hexdigest()
    )

  def test_is_ascii_json_that_ends_with_a_newline(self):
    self.assertTrue(self.one.text.isascii())
    self.assertEqual(self.one.text, json.dumps(self.content, indent=2) + '\n')


def _parts(name: bytes) -> tuple:
  return pathlib.PurePosixPath(name.decode()).parts


class SchemaTest(parameterized.TestCase):
  @parameterized.parameters(*_problems())
  def test_real_certificates_are_valid(self, name):
    for epsilon, delta in (('1/3', None), ('1/2', '1/1000')):
      one = Certified(_problems()[name], epsilon=epsilon, delta=delta)
      self.assertEqual(schema_errors(one.content), [])
      problems = verify_certificate.problems
      self.assertEqual(problems(one.content, one.objects, one.export), [])

  def test_names_this_version(self):
    fields = _leaves(_SCHEMA)
    self.assertEqual(fields['schema']['const'], certificate.SCHEMA_NAME)
    version = certificate.SCHEMA_NAME.rpartition('/')[2]
    self.assertEndsWith(_SCHEMA['$id'], f':{version}')
    self.assertIn('2020-12', _SCHEMA['$schema'])

  def test_describes_every_field_and_allows_no_other(self):
    def walk(schema):
      self.assertNotEmpty(schema['description'])
      if 'properties' in schema:
        self.assertIs(schema['additionalProperties'], False)
        self.assertEqual(schema['required'], list(schema['properties']))
        for inner in schema['properties'].values():
          walk(inner)

    walk(_SCHEMA)

  def test_agrees_with_the_verifier_on_fields_and_constants(self):
    fields, patterns = _leaves(_SCHEMA), verify_certificate.PATTERNS
    self.assertEqual(set(fields), set(patterns))
    for path, schema in fields.items():
      name = schema.get('$ref', '').removeprefix('#/$defs/')
      schema = _SCHEMA['$defs'].get(name, schema)
      matches = lambda value, path=path: re.fullmatch(
        patterns[path], verify_certificate.canonical(value)
      )
      for value in [*schema.get('enum', ()), schema.get('const', _REMOVED)]:
        if value is not _REMOVED:
          self.assertTrue(matches(value), path)
      if 'pattern' in schema:
        # A receipt has groups in the verifier, which reads its parts.
        plain = re.sub(r'[()]', '', patterns[path])
        self.assertEqual(f'"{schema["pattern"][1:-1]}"', plain)
      for bound in ('minimum', 'maximum'):
        if bound in schema:
          beyond = schema[bound] + (1 if bound == 'maximum' else -1)
          self.assertTrue(matches(schema[bound]), path)
          self.assertFalse(matches(beyond), path)

  def test_both_refuse_missing_unknown_and_mistyped_fields(self):
    one = Certified(neighbor_runs.problem(_CASE))
    content, objects = one.content, one.objects
    wrong = {}
    for path in _leaves(_SCHEMA):
      wrong[f'{path} missing'] = _without(content, path)
      for value in (None, [], {}, 1.5, -1, '', [[0]], ['x'], False):
        if value == [] and path.startswith('release.'):
          continue  # The empty explanation.
        wrong[f'{path} {value!r}'] = edited(content, path, value)
    folders = {path.rpartition('.')[0] for path in _leaves(_SCHEMA)}
    for folder in folders:
      path = f'{folder}.label' if folder else 'label'
      wrong[f'{path} unknown'] = edited(content, path, 1)
      if folder:
        wrong[f'{folder} missing'] = _without(content, folder)
        wrong[f'{folder} text'] = edited(content, folder, 'x')
    accepted = [name for name in wrong if not schema_errors(wrong[name])]
    self.assertEqual(accepted, [])
    accepted = [
      name
      for name in wrong
      if not verify_certificate.problems(wrong[name], objects)
    ]
    self.assertEqual(accepted, [])
