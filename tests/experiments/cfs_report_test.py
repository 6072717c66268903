"""Tests of the frontier's summary, price list, verdicts and figures."""

import contextlib
import io
import math
import unittest.mock

from absl.testing import parameterized
import pandas as pd

from experiments import cfs_report
from experiments import paper_values
from experiments import plots
from tests.experiments import harness


def _row(**fields):
  """One row; every quantity that is not named is 0."""
  row = dict.fromkeys(cfs_report.FIELDS, 0.0)
  row |= dict(
    dataset='cora',
    protocol='borderline',
    feature_masks='inert',
    rho='0.5',
    epsilon='8',
    seed=0,
    target=0,
    margin=0.0,
    num_draws=10,
    valid_draws=0,
  )
  return row | fields


def _rows(*values, **fields):
  return [_row(target=i, **fields, **value) for i, value in enumerate(values)]


# Seed 0 has three targets, seed 1 has one: seeds count equally.
UNEVEN = _rows(
  dict(ceiling=1.0, valid_cf_rate=0.8, public_only=True),
  dict(ceiling=1.0, valid_cf_rate=0.4),
  dict(ceiling=0.0, valid_cf_rate=0.0),
) + _rows(dict(ceiling=1.0, valid_cf_rate=1.0), seed=1)


class SummarizeTest(parameterized.TestCase):
  def test_mean_and_deviation_over_seeds(self):
    (line,) = cfs_report.summarize(pd.DataFrame(UNEVEN)).to_dict('records')
    self.assertEqual((line['num_seeds'], line['num_targets']), (2, 4))
    # Means of the seeds: 0.4 and 1.
    self.assertAlmostEqual(line['valid_cf_rate'], 0.7)
    self.assertAlmostEqual(line['valid_cf_rate_std'], 0.6 / math.sqrt(2))
    self.assertAlmostEqual(line['ceiling'], (2 / 3 + 1) / 2)
    self.assertAlmostEqual(line['ceiling_std'], (1 / 3) / math.sqrt(2))
    self.assertAlmostEqual(line['public_only'], 1 / 6)

  def test_retention_is_a_ratio_of_means(self):
    (line,) = cfs_report.summarize(pd.DataFrame(UNEVEN)).to_dict('records')
    self.assertAlmostEqual(line['retention'], 0.7 / (5 / 6))
    # The mean of the targets' ratios would be another number.
    self.assertNotAlmostEqual(line['retention'], (0.8 + 0.4 + 1.0) / 3)

  def test_retention_is_empty_where_nothing_flips(self):
    rows = UNEVEN + _rows({}, rho='0.3')
    summary = cfs_report.summarize(pd.DataFrame(rows))
    self.assertEqual(summary['rho'].to_list(), ['0.5', '0.3'])
    self.assertEqual(summary['retention'].isna().to_list(), [False, True])

  def test_one_seed_has_no_deviation(self):
    summary = cfs_report.summarize(pd.DataFrame(UNEVEN[:3]))
    self.assertTrue(math.isnan(summary['valid_cf_rate_std'][0]))

  def test_cells_are_apart_and_in_order(self):
    rows = []
    for field, values in (
      ('dataset', ('embedded', 'cora')),
      ('protocol', ('random', 'borderline')),
      ('feature_masks', ('inert', 'effective')),
      ('rho', ('1', '0.3')),
      ('epsilon', ('8', '0.1')),
    ):
      rows += [_row(**{field: value}) for value in values]
    summary = cfs_report.summarize(pd.DataFrame(rows))
    cells = [tuple(row[field] for field in cfs_report.CELL) for row in rows]
    self.assertEqual(
      list(summary[cfs_report.CELL].itertuples(index=False, name=None)),
      list(dict.fromkeys(cells)),
    )


class PriceListTest(parameterized.TestCase):
  def test_every_cell_is_printed(self):
    rows, value = [], 0.0
    for dataset in ('cora', 'embedded'):
      for arm in ('effective', 'inert'):
        for rho in ('0.5', '1'):
          for epsilon in ('1', '8'):
            value += 0.01
            rows.append(
              _row(
                dataset=dataset,
                feature_masks=arm,
                rho=rho,
                epsilon=epsilon,
                ceiling=0.9,
                public_only=0.25,
                valid_cf_rate=value,
              )
            )
    lines = cfs_report.price_lists(cfs_report.summarize(pd.DataFrame(rows)))
    words = [line.split() for line in lines]
    self.assertEqual(
      words.count(['rho', 'ceiling', 'free', 'eps', '1', 'eps', '8']), 4
    )
    first = lines.index('cora, borderline targets, effective feature masks')
    self.assertEqual(words[first + 2], '0.5 0.900 0.250 0.010 0.020'.split())
    self.assertEqual(words[first + 3], '1* 0.900 0.250 0.030 0.040'.split())
    last = lines.index('embedded, borderline targets, inert feature masks')
    self.assertEqual(words[last + 2], '0.5 0.900 0.250 0.130 0.140'.split())
    self.assertEqual(words[last + 3], '1* 0.900 0.250 0.150 0.160'.split())


class ReportTest(parameterized.TestCase):
  def setUp(self):
    super().setUp()
    patch = lambda name: self.enterContext(
      unittest.mock.patch.object(plots, name)
    )
    self.frontier, self.guidance = patch('frontier'), patch('guidance')

  def report(self, rows):
    self.folder = harness.temporary_folder(self)
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
      cfs_report.report(None, rows, self.folder)
    for figure in (self.frontier, self.guidance):
      figure.assert_called_once_with(unittest.mock.ANY, self.folder)
    return out.getvalue()

  def test_draws_stand_beside_the_exact_rate(self):
    rows = _rows(dict(valid_draws=3, valid_cf_rate=0.25), dict(valid_draws=5))
    self.report(rows)
    summary = pd.read_csv(self.folder / 'summary.csv')
    self.assertAlmostEqual(summary['valid_cf_draws'][0], 0.4)
    self.assertAlmostEqual(summary['valid_cf_rate'][0], 0.125)

  def test_verdicts_where_the_paper_has_numbers(self):
    text = self.report(_rows(dict(ceiling=0.5, valid_cf_rate=0.484)))
    self.assertIn('paper', text)
    verdicts = pd.read_csv(self.folder / 'paper_versus_measured.csv')
    self.assertIn('valid_cf_rate', set(verdicts['field']))

  def test_none_for_the_embedded_graph(self):
    text = self.report(_rows({}, dataset='embedded'))
    self.assertNotIn('Published', text)
    self.assertFalse((self.folder / 'paper_versus_measured.csv').exists())


class CompareTest(parameterized.TestCase):
  def verdict(self, rows, field, **where):
    """Returns the one line about a field."""
    table = paper_values.compare(pd.DataFrame(rows))
    table = table[table['field'] == field]
    for name, value in where.items():
      table = table[table[name] == value]
    (line,) = table.to_dict('records')
    return line

  # The paper: 0.484. Two targets at m -+ d have the standard error d.
  @parameterized.parameters(
    (0.484, 0.0, 'reproduced'),
    (0.485, 0.0, 'not reproduced'),
    (0.504, 0.0101, 'reproduced'),
    (0.504, 0.0099, 'not reproduced'),
    (0.464, 0.0101, 'reproduced'),
    (0.464, 0.0099, 'not reproduced'),
  )
  def test_two_standard_errors_around_a_number(self, mean, error, verdict):
    rows = _rows(
      dict(valid_cf_rate=mean - error), dict(valid_cf_rate=mean + error)
    )
    line = self.verdict(rows, 'valid_cf_rate')
    self.assertEqual(line['paper'], '0.484')
    self.assertAlmostEqual(line['measured'], mean)
    self.assertAlmostEqual(line['standard_error'], error)
    self.assertEqual(line['verdict'], verdict)

  @parameterized.parameters(
    (3.1, 'reproduced'),
    (3.5, 'reproduced'),
    (3.9, 'reproduced'),
    (3.09, 'not reproduced'),
    (3.91, 'not reproduced'),
  )
  def test_inside_a_range(self, size, verdict):
    line = self.verdict(_rows(dict(size=size), dict(size=size)), 'size')
    self.assertEqual((line['paper'], line['verdict']), ('3.1-3.9', verdict))

  def test_retention_is_a_ratio_of_pooled_means(self):
    rows = _rows(
      dict(ceiling=1.0, valid_cf_rate=0.9),
      dict(ceiling=1.0, valid_cf_rate=1.0),
      dict(ceiling=0.0, valid_cf_rate=0.0),
    )
    line = self.verdict(rows, 'retention')
    self.assertAlmostEqual(line['measured'], 0.95)
    # Delta method: residuals valid - 0.95 ceiling are -0.05, 0.05 and 0, their
    # deviation is 0.05, over the mean ceiling 2/3 and the root of 3.
    self.assertAlmostEqual(
      line['standard_error'], 0.05 / (2 / 3) / math.sqrt(3)
    )
    self.assertEqual(line['verdict'], 'reproduced')

  def test_retention_of_nothing_is_not_reproduced(self):
    line = self.verdict(_rows({}, {}), 'retention')
    self.assertTrue(math.isnan(line['measured']))
    self.assertEqual(line['verdict'], 'not reproduced')

  def test_a_quote_over_both_data_sets_pools_their_targets(self):
    cora = _rows(dict(margin=0.0075), dict(margin=0.0085))
    citeseer = _rows(dict(margin=0.007), dict(margin=0.009), dataset='citeseer')
    line = self.verdict(
      cora + citeseer, 'margin', dataset='cora+citeseer', rho='0.5'
    )
    self.assertAlmostEqual(line['measured'], 0.008)
    self.assertEqual(line['verdict'], 'reproduced')
    # One of the two alone does not answer the quote.
    table = paper_values.compare(pd.DataFrame(cora))
    self.assertNotIn('margin', set(table['field']))

  def test_a_wide_interval_says_nothing(self):
    rows = _rows(dict(valid_cf_rate=0.0), dict(valid_cf_rate=1.0))
    line = self.verdict(rows, 'valid_cf_rate')
    self.assertEqual(line['verdict'], 'inconclusive')

  def test_arms_are_judged_apart(self):
    rows = _rows(dict(valid_cf_rate=0.484)) + _rows(
      dict(valid_cf_rate=0.95), feature_masks='effective'
    )
    inert = self.verdict(rows, 'valid_cf_rate', feature_masks='inert')
    effective = self.verdict(rows, 'valid_cf_rate', feature_masks='effective')
    self.assertEqual(inert['verdict'], 'reproduced')
    self.assertEqual(effective['verdict'], 'not reproduced')

  @parameterized.parameters(
    dict(dataset='embedded'),
    dict(epsilon='4'),
    dict(rho='0.3'),
    dict(protocol='stratified'),
  )
  def test_other_cells_are_not_judged(self, **fields):
    table = paper_values.compare(pd.DataFrame(_rows({}, {}, **fields)))
    self.assertEmpty(table)

  def test_quotes_are_distinct_intervals_of_known_fields(self):
    quotes = paper_values.quotes()
    names = [quote[1:6] for quote in quotes]
    self.assertLen(set(names), len(names))
    for quote in quotes:
      self.assertLessEqual(quote.low, quote.high)
      self.assertIn(quote.field, {*cfs_report.FIELDS, 'retention', 'margin'})


class FiguresTest(parameterized.TestCase):
  def setUp(self):
    super().setUp()
    rows = [
      _row(
        feature_masks=arm,
        rho=rho,
        epsilon=epsilon,
        seed=seed,
        ceiling=1.0,
        valid_cf_rate=0.1 * float(epsilon) * float(rho) + 0.01 * seed,
      )
      for arm in ('effective', 'inert')
      for rho in ('0.5', '1')
      for epsilon in ('1', '8')
      for seed in (0, 1)
    ]
    self.summary = cfs_report.summarize(pd.DataFrame(rows))
    self.folder = harness.temporary_folder(self)

  @parameterized.named_parameters(
    ('frontier', plots.frontier, 'frontier'),
    ('guidance', plots.guidance, 'guidance'),
  )
  def test_files(self, draw, name):
    contents = []
    for _ in range(2):
      draw(self.summary, self.folder)
      self.assertEqual(
        {path.name for path in self.folder.iterdir()},
        {
          f'{name}_{arm}{suffix}'
          for arm in ('effective', 'inert')
          for suffix in ('.png', '.svg')
        },
      )
      contents.append({p.name: p.read_bytes() for p in self.folder.iterdir()})
    self.assertEqual(contents[0], contents[1])
    for path, content in contents[0].items():
      if path.endswith('.png'):
        self.assertStartsWith(content, b'\x89PNG')
        self.assertGreater(len(content), 10_000)
      else:
        self.assertIn(b'<svg', content)
        self.assertIn(b'</svg>', content)

  def test_one_cell(self):
    summary = self.summary[
      (self.summary['feature_masks'] == 'inert')
      & (self.summary['rho'] == '1')
      & (self.summary['epsilon'] == '8')
    ]
    self.assertLen(summary, 1)
    plots.frontier(summary, self.folder)
    plots.guidance(summary, self.folder)
    self.assertLen(list(self.folder.iterdir()), 4)
