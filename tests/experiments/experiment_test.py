"""Tests of exact numbers, flag checks, digests and config hashes."""

import dataclasses
import fractions

from absl.testing import parameterized
import hypothesis
from hypothesis import strategies as st

from experiments import bench_evaluation
from experiments import experiment
from tests.experiments import harness

ROWS = [
  {'unit': 'a', 'target': 3, 'flips': True, 'rho': '0.5', 'seconds': 0.1},
  {'unit': 'b', 'target': 4, 'flips': False, 'rho': '1', 'rate': 0.25},
]
MEASURED = frozenset({'seconds'})


def _changed(index, **fields):
  rows = [dict(row) for row in ROWS]
  rows[index].update(fields)
  return rows


class CanonicalNumberTest(parameterized.TestCase):
  @parameterized.parameters(
    ('1', '1'),
    ('1.0', '1'),
    ('1e0', '1'),
    ('+1', '1'),
    ('0.10', '0.1'),
    ('1e-1', '0.1'),
    ('1/10', '0.1'),
    (0.1, '0.1'),
    (2, '2'),
    ('1/3', '1/3'),
    ('2/6', '1/3'),
    ('4/2', '2'),
    ('100', '100'),
    ('1e2', '100'),
    (fractions.Fraction(1, 8), '0.125'),
    ('-0.50', '-0.5'),
    # More digits than the decimal context keeps: no two may merge.
    ('1' * 40, '1' * 40),
    ('0.' + '3' * 40, f'{"3" * 40}/1{"0" * 40}'),
  )
  def test_one_spelling(self, text, expected):
    self.assertEqual(experiment.canonical_number(text), expected)

  @parameterized.parameters('nan', 'inf', '-inf', 'abc', '', '1/0', '1,5')
  def test_not_a_number(self, text):
    with self.assertRaisesRegex(ValueError, f"exact number, got '{text}'"):
      experiment.canonical_number(text)

  @hypothesis.given(st.fractions())
  def test_keeps_the_value_and_is_a_fixed_point(self, value):
    text = experiment.canonical_number(value)
    self.assertEqual(fractions.Fraction(text), value)
    self.assertEqual(experiment.canonical_number(text), text)

  def test_list_errors_name_the_flag(self):
    self.assertEqual(
      experiment.canonical_numbers('rhos', ['1.0', '0.50']), ('1', '0.5')
    )
    with self.assertRaisesRegex(ValueError, "^rhos: .*got 'x'"):
      experiment.canonical_numbers('rhos', ['1', 'x'])


class ChecksTest(parameterized.TestCase):
  @parameterized.named_parameters(
    ('empty', (), None, r'epsilons must be distinct and not empty, got \(\)'),
    ('twice', ('1', '1'), None, r"epsilons must be distinct.*'1', '1'"),
    ('zero', ('1', '0'), None, 'epsilons must be > 0, got 0'),
    ('negative', ('-1',), None, 'epsilons must be > 0, got -1'),
    ('above', ('1.5',), 1, r'epsilons must be in \(0, 1\], got 1.5'),
    ('zero_bounded', ('0',), 1, r'epsilons must be in \(0, 1\], got 0'),
    ('nan', ('nan',), None, "epsilons: .*got 'nan'"),
    ('infinite', ('inf',), None, "epsilons: .*got 'inf'"),
    # '1.0' would name other draws than '1' and would not mark rho = 1.
    ('spelling', ('1.0',), None, r"epsilons must be spelled as \('1',\)"),
  )
  def test_bad_numbers(self, texts, most, message):
    with self.assertRaisesRegex(ValueError, message):
      experiment.check_numbers('epsilons', texts, most)

  def test_good_numbers(self):
    experiment.check_numbers('rhos', ('1', '0.5', '1/3'), 1)
    experiment.check_numbers('epsilons', ('100', '0.001'), None)

  @parameterized.named_parameters(
    ('empty', (), r'words must be distinct and not empty, got \(\)'),
    ('twice', ('a', 'a'), r"words must be distinct.*got \('a', 'a'\)"),
    ('unknown', ('a', 'c'), r"words must be among \('a', 'b'\), got 'c'"),
  )
  def test_bad_choices(self, values, message):
    with self.assertRaisesRegex(ValueError, message):
      experiment.check_choices('words', values, ('a', 'b'))

  def test_good_choices(self):
    experiment.check_choices('words', ('b', 'a'), ('a', 'b'))

  @parameterized.named_parameters(
    ('empty', (), r'seeds must be distinct and not empty, got \(\)'),
    ('twice', (3, 3), r'seeds must be distinct.*got \(3, 3\)'),
    ('negative', (0, -1), r'seeds must be in \[0, 2\*\*32\), got -1'),
    ('wraps', (2**32,), 'seeds must be in .*, got 4294967296'),
  )
  def test_bad_seeds(self, seeds, message):
    with self.assertRaisesRegex(ValueError, message):
      experiment.check_seeds(seeds)

  def test_good_seeds(self):
    experiment.check_seeds((2**32 - 1, 0))


class DigestTest(parameterized.TestCase):
  @parameterized.named_parameters(
    ('integer', dict(target=5)),
    ('boolean', dict(flips=False)),
    ('string', dict(rho='0.7')),
    ('one_for_true', dict(flips=1)),
    ('nothing', dict(target=None)),
    ('new_field', dict(extra=0)),
  )
  def test_decisions_change_both(self, fields):
    rows = _changed(0, **fields)
    self.assertNotEqual(
      experiment.decision_digest(rows), experiment.decision_digest(ROWS)
    )
    self.assertNotEqual(
      experiment.value_digest(rows, MEASURED),
      experiment.value_digest(ROWS, MEASURED),
    )

  def test_floats_change_values_only(self):
    rows = _changed(1, rate=0.25 + 2**-52)
    self.assertEqual(
      experiment.decision_digest(rows), experiment.decision_digest(ROWS)
    )
    self.assertNotEqual(
      experiment.value_digest(rows, MEASURED),
      experiment.value_digest(ROWS, MEASURED),
    )

  def test_measured_fields_change_nothing(self):
    rows = _changed(0, seconds=99.0)
    self.assertEqual(
      experiment.value_digest(rows, MEASURED),
      experiment.value_digest(ROWS, MEASURED),
    )
    self.assertNotEqual(
      experiment.value_digest(rows, frozenset()),
      experiment.value_digest(ROWS, frozenset()),
    )

  def test_order_changes_nothing(self):
    rows = [dict(reversed(row.items())) for row in reversed(ROWS)]
    self.assertEqual(
      experiment.decision_digest(rows), experiment.decision_digest(ROWS)
    )
    self.assertEqual(
      experiment.value_digest(rows, MEASURED),
      experiment.value_digest(ROWS, MEASURED),
    )

  def test_a_lost_or_doubled_row_changes_both(self):
    for rows in (ROWS[:1], ROWS + ROWS[:1]):
      self.assertNotEqual(
        experiment.decision_digest(rows), experiment.decision_digest(ROWS)
      )
      self.assertNotEqual(
        experiment.value_digest(rows, MEASURED),
        experiment.value_digest(ROWS, MEASURED),
      )


class ConfigHashTest(parameterized.TestCase):
  def test_every_field_names_another_folder(self):
    changes = dict(
      datasets=('cora',),
      seeds=(1,),
      rhos=('0.7',),
      epsilons=('8', '1'),
      protocols=('borderline',),
      feature_masks=('inert',),
      sensitivity='tight',
      num_draws=21,
      max_edges=1,
      max_features=2,
      max_targets=None,
    )
    fields = {field.name for field in dataclasses.fields(harness.TINY)}
    self.assertEqual(set(changes), fields)
    configs = [harness.TINY] + [
      dataclasses.replace(harness.TINY, **{name: value})
      for name, value in changes.items()
    ]
    hashes = {experiment.config_hash(config) for config in configs}
    self.assertLen(hashes, len(configs))
    for text in hashes:
      self.assertRegex(text, '^[0-9a-f]{12}$')

  def test_equal_configs_share_a_folder(self):
    self.assertEqual(
      experiment.config_hash(dataclasses.replace(harness.TINY)),
      experiment.config_hash(harness.TINY),
    )

  def test_config_dict_is_plain_json(self):
    fields = experiment.config_dict(bench_evaluation.Config())
    self.assertEqual(fields['datasets'], ['embedded'])
    self.assertIsNone(fields['max_targets'])


class RunTest(parameterized.TestCase):
  def test_yields_units_in_order(self):
    config = harness.FakeConfig(units=('b', 'a'))
    found = list(experiment.run(harness.fake_experiment(), config))
    self.assertEqual(found, [harness.fake_rows('b'), harness.fake_rows('a')])
