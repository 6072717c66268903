"""Tests of the known tables: their rules on toy files, and the real files."""

import hashlib
import os
import pathlib
import tempfile
import unittest.mock

from absl.testing import parameterized
import numpy as np
import pytest

from privjax.data import compas
from privjax.data import encoding
from privjax.data import lending
from privjax.data import mammographic
from privjax.data import nlsy97
from privjax.data import sources
from privjax.data import table_registry

_DATA_DIR = os.environ.get(sources.DATA_DIR_VARIABLE)


class ToyFilesTest(parameterized.TestCase):
  """The documented rules, row by row, on files of the sources' layout."""

  def _serve(self, name, **contents):
    """Writes files as those of a source; returns the data directory."""
    folder = pathlib.Path(self.enter_context(tempfile.TemporaryDirectory()))
    (folder / name).mkdir()
    files = {}
    source = getattr(sources, name.upper())
    for filename, content in zip(source.files, contents.values(), strict=True):
      data = content.encode()
      (folder / name / filename).write_bytes(data)
      files[filename] = sources.SourceFile(
        urls=(), sha256=(hashlib.sha256(data).hexdigest(),)
      )
    toy = sources.Source(
      name=name, version='', license='', citation='', files=files
    )
    self.enter_context(unittest.mock.patch.object(sources, name.upper(), toy))
    return folder

  def test_compas(self):
    names = (*compas.SCHEMA.names, 'two_year_recid')
    header = ','.join((*names, 'days_b_screening_arrest', 'priors_count'))
    rows = [
      f'Male,{age},Other,3,F,High,1,{days},99'
      for age, days in enumerate(
        ['30', '31', '-30', '-30.5', '', '0', '-1.0'], start=20
      )
    ]
    folder = self._serve('compas', csv='\n'.join([header, *rows]))
    table = compas.load(folder)
    self.assertEqual(table.columns['age'].tolist(), [20, 22, 24, 25, 26])
    self.assertEqual(table.counts.num_filtered, 2)
    # The original file has the column twice; the first one counts.
    self.assertEqual(set(table.columns['priors_count']), {3.0})
    self.assertEqual(set(table.sensitive), {2})
    self.assertEqual(set(table.labels), {1})

  def test_mammographic(self):
    rows = ['5,67,3,5,3,1', '55,46,4,3,3,1', '4,?,1,1,?,0', '0,18,4,1,1,0']
    table = mammographic.load(self._serve('mammographic', csv='\n'.join(rows)))
    self.assertEqual(table.sensitive.tolist(), [5, 0])
    self.assertEqual(table.labels.tolist(), [1, -1])
    self.assertEqual(
      (table.counts.num_filtered, table.counts.num_missing), (1, 1)
    )
    self.assertEqual(table.counts.missing, {'age': 1, 'density': 1})

  def test_lending(self):
    header = ','.join((*lending.SCHEMA.names, 'not.fully.paid'))
    # Of revol.bal 200000 and inq.last.6mths 11, both beyond the bounds.
    rest = '0.1,500,11,10,{fico},4000,200000,50,11,0,0,{label}'
    rows = [
      '1,educational,' + rest.format(fico=fico, label=label)
      for fico, label in [(580, 1), (670, 0), (740, 0), (799, 0)]
    ]
    folder = self._serve('lending', csv='\n'.join([header, *rows]))
    table = lending.load(folder, seed=3)
    self.assertCountEqual(table.labels.tolist(), [-1, 1])
    self.assertEqual(table.sensitive[table.labels == 1].tolist(), [1])
    self.assertEqual(table.counts.num_left_out, 2)
    paid = [lending.load(folder, seed=seed) for seed in range(6)]
    self.assertLen({int(t.sensitive[t.labels == -1][0]) for t in paid}, 2)
    self.assertEqual(
      table.counts.clipped,
      {
        'revol.bal': 2,
        'revol.util': 0,
        'inq.last.6mths': 2,
        'delinq.2yrs': 0,
        'pub.rec': 0,
      },
    )

  @parameterized.parameters(
    (579, 0), (580, 1), (669, 1), (670, 2), (739, 2), (740, 3), (799, 3),
    (800, 4),
  )  # fmt: skip
  def test_lending_bands(self, score, level):
    column = lending.SCHEMA.columns[lending.SCHEMA.names.index('fico')]
    self.assertEqual(sum(score > cut for cut in column.cuts), level)
    self.assertRegex(column.levels[level], f'{score}')

  def _serve_nlsy97(self):
    variables = [v for v, _ in nlsy97._NOMINAL.values()]
    header = ['R0000100', *variables, 'R0536402', *nlsy97._DRUGS, 'E8043100']
    # sex, race, urban, MSA, smoked; birth; two drugs; incarcerations.
    rows = [
      '1,1,4,2,5,1,1980,0,0,0',
      '2,2,1,0,1,0,1984,1,-5,2',  # One yes is enough.
      '3,2,1,0,1,0,1984,-1,1,-3',
      '4,1,1,0,1,0,1982,0,-5,1',  # One no is not.
      '5,1,1,-3,1,0,1982,0,0,1',
      '6,1,2,1,3,0,1981,0,1,0',
    ]
    months = [
      ('6', [0] * 11 + [2]),
      ('1', [99] * 10 + [-4, 0]),
      ('3', [99] * 12),
      ('2', [99, 1] + [99] * 10),
      ('4', [0] * 12),
    ]
    return self._serve(
      'nlsy97',
      survey='\n'.join([','.join(header), *rows]),
      arrests='\n'.join(
        [
          ','.join((*nlsy97._MONTHS, 'R0000100')),
          *(','.join([*map(str, number), key]) for key, number in months),
        ]
      ),
    )

  def test_incarceration(self):
    table = nlsy97.load_incarceration(self._serve_nlsy97())
    counts = table.counts
    self.assertEqual(
      counts.missing, {'urban_at_12': 1, 'drug_history': 1, 'incarcerated': 1}
    )
    # Rows 1 and 6 (no) and 2 (yes) are complete.
    self.assertEqual(
      (counts.num_missing, counts.num_left_out, counts.num_rows), (3, 1, 2)
    )
    self.assertEqual(table.sensitive[table.labels == 1].tolist(), [1])
    self.assertEqual(
      table.columns['birth_year'][table.labels == 1].tolist(), [1984]
    )

  def test_arrest_joins_the_files_by_key(self):
    table = nlsy97.load_arrest(self._serve_nlsy97(), seed=0)
    # Respondent 3 has no known month, 5 is absent from the other file.
    self.assertEqual(table.counts.missing['arrested'], 2)
    # Rows 2 and 6 (yes) and 1 (no) are complete.
    self.assertEqual(table.counts.num_rows, 2)
    (no,) = np.flatnonzero(table.labels == -1)
    schema = table.schema
    self.assertEqual(
      {
        name: schema.columns[i].bin_names[
          encoding.bin_codes(schema, table.columns)[no, i]
        ]
        for i, name in enumerate(schema.names)
      },
      {
        'sex': 'male',
        'race': 'other',
        'urban_at_12': 'unknown',
        'msa_at_12': 'abroad',
        'smoked_2011': 'yes',
        'birth_year': '<= 1980',
        'drug_history': 'no',
      },
    )

  def test_keys_must_be_distinct(self):
    with self.assertRaisesRegex(ValueError, 'R0000100 must be distinct'):
      nlsy97._unique(np.array(['1', '2', '1']))


class LoadTableTest(parameterized.TestCase):
  def test_names(self):
    self.assertEqual(
      table_registry.TABLES, tuple(sorted(table_registry.SCHEMAS))
    )
    for name, schema in table_registry.SCHEMAS.items():
      self.assertEqual(schema.name, name)

  @parameterized.parameters('Compas', 'cora', '', None)
  def test_unknown_name(self, name):
    with self.assertRaisesRegex(ValueError, "^table must be one of 'arrest', "):
      table_registry.load_table(name)

  @parameterized.parameters(*table_registry.TABLES)
  def test_bad_seed_even_where_it_is_not_used(self, name):
    with self.assertRaisesRegex(ValueError, 'seed must be'):
      table_registry.load_table(name, '/nonexistent', seed=-1)

  def test_embedded_needs_no_file(self):
    with unittest.mock.patch.object(
      sources, 'locate', side_effect=AssertionError
    ):
      table = table_registry.load_table('breast_cancer', '/nonexistent')
    self.assertEqual(table.num_rows, 569)
    self.assertEqual((table.labels == 1).sum(), 212)
    self.assertEqual(table.counts.clipped.keys(), set(table.schema.names) - {
      'mean texture'
    })  # fmt: skip
    self.assertEqual(sum(table.counts.clipped.values()), 0)
    # Larger masses are the malignant ones.
    radius = table.columns['mean radius']
    self.assertGreater(radius[table.labels == 1].mean(), 17)
    self.assertLess(radius[table.labels == -1].mean(), 13)
    self.assertEqual(
      np.bincount(table.sensitive).tolist(), [134, 160, 144, 131]
    )


@pytest.mark.realdata
@pytest.mark.skipif(
  not _DATA_DIR,
  reason=f'needs the tables: set {sources.DATA_DIR_VARIABLE}',
)
class RealDataTest(parameterized.TestCase):
  @parameterized.named_parameters(
    # name, rows read, filtered, missing, kept, of class +1, entries of a row.
    ('arrest', 'arrest', 8984, 0, 4263, 652, 326, 19),
    ('compas', 'compas', 7214, 735, 0, 6479, 2864, 15),
    ('incarceration', 'incarceration', 8984, 0, 3581, 1118, 559, 19),
    ('lending', 'lending', 9578, 0, 0, 3066, 1533, 24),
    ('mammographic', 'mammographic', 961, 1, 131, 829, 402, 11),
  )
  def test_sizes(self, name, read, filtered, missing, kept, positive, entries):
    table = table_registry.load_table(name, _DATA_DIR)
    counts = table.counts
    self.assertEqual(table.name, name)
    self.assertEqual(
      (counts.num_read, counts.num_filtered, counts.num_missing),
      (read, filtered, missing),
    )
    self.assertEqual(table.num_rows, kept)
    self.assertEqual(counts.num_rows, kept)
    self.assertEqual((table.labels == 1).sum(), positive)
    rows = encoding.encode(table.schema, table.columns)
    self.assertEqual(rows.shape, (kept, entries))
    self.assertLessEqual(np.linalg.norm(rows, axis=1).max(), 1 + 1e-12)

  def test_compas(self):
    table = table_registry.load_table('compas', _DATA_DIR)
    self.assertAlmostEqual((table.labels == 1).mean(), 0.442, delta=5e-4)
    self.assertEqual(np.bincount(table.sensitive).tolist(), [3585, 1684, 1210])
    self.assertAlmostEqual((table.sensitive == 0).mean(), 0.553, delta=5e-4)
    self.assertEqual(table.columns['priors_count'].max(), 38)
    self.assertEqual(table.columns['age'].max(), 96)

  def test_lending_clips(self):
    table = table_registry.load_table('lending', _DATA_DIR, seed=0)
    self.assertEqual(
      {name: n for name, n in table.counts.clipped.items() if n},
      {'revol.bal': 82, 'inq.last.6mths': 34, 'delinq.2yrs': 1},
    )

  @parameterized.parameters('arrest', 'lending')
  def test_the_seed_draws_the_larger_class(self, name):
    first, same, other = (
      table_registry.load_table(name, _DATA_DIR, seed=seed)
      for seed in (0, 0, 1)
    )
    rows = [encoding.encode(t.schema, t.columns) for t in (first, same, other)]
    np.testing.assert_array_equal(rows[0], rows[1])
    positive = [r[t.labels == 1] for r, t in zip(rows, (first, same, other))]
    np.testing.assert_array_equal(positive[0], positive[2])
    self.assertFalse(np.array_equal(rows[0], rows[2]))
