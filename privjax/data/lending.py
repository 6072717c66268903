"""Lending Club: is a loan not fully paid, from what was known at origination.

Rows are a seeded public draw of as many loans of each class: 3,066 of 9,578.
The sensitive column is the band of the FICO score.
"""

import os

from privjax.data import csv_table
from privjax.data import schema as schema_lib
from privjax.data import sources
from privjax.data import table as table_lib

_nominal = schema_lib.NominalColumn
_numeric = schema_lib.NumericColumn

SCHEMA = schema_lib.Schema(
  name='lending',
  columns=(
    _nominal(name='credit.policy', levels=('0', '1')),
    _nominal(
      name='purpose',
      levels=(
        'all_other',
        'credit_card',
        'debt_consolidation',
        'educational',
        'home_improvement',
        'major_purchase',
        'small_business',
      ),
    ),
    _numeric(name='int.rate', lower=0, upper=0.3, cuts=(0.1, 0.13, 0.16)),
    _numeric(name='installment', lower=0, upper=1000, cuts=(150, 300, 500)),
    _numeric(name='log.annual.inc', lower=7, upper=15, cuts=(10.5, 11, 11.5)),
    _numeric(name='dti', lower=0, upper=30, cuts=(5, 10, 15, 20)),
    _nominal(
      name='fico',
      levels=('<= 579', '580-669', '670-739', '740-799', '>= 800'),
      cuts=(579, 669, 739, 799),
    ),
    _numeric(
      name='days.with.cr.line',
      lower=0,
      upper=18000,
      cuts=(2000, 4000, 6000),
    ),
    _numeric(
      name='revol.bal',
      lower=0,
      upper=100_000,
      clip=True,
      cuts=(3000, 10_000, 20_000),
    ),
    _numeric(
      name='revol.util', lower=0, upper=120, clip=True, cuts=(25, 50, 75)
    ),
    _numeric(
      name='inq.last.6mths', lower=0, upper=10, clip=True, cuts=(0, 1, 3)
    ),
    _numeric(name='delinq.2yrs', lower=0, upper=5, clip=True, cuts=(0,)),
    _numeric(name='pub.rec', lower=0, upper=5, clip=True, cuts=(0,)),
  ),
  label=schema_lib.LabelColumn(
    name='not.fully.paid', negative='0', positive='1'
  ),
  sensitive='fico',
)
_FILE = 'loan_data.csv'


def load(
  data_dir: str | os.PathLike | None = None, seed: int = 0
) -> table_lib.Table:
  """Loads Lending Club: 3,066 rows, half of them of class +1.

  Args:
    data_dir: where to look for the file first, see `sources.locate`.
    seed: of the balanced draw, in [0, 2**32).

  Raises:
    ValueError: if `seed` is out of range or the file has a wrong checksum.
    FileNotFoundError: if the file is neither on disk nor downloadable.
  """
  path = sources.locate(sources.LENDING, _FILE, data_dir)
  raw = csv_table.read_columns(path, (*SCHEMA.names, SCHEMA.label.name))
  return table_lib.from_raw(SCHEMA, raw, balanced_seed=seed)
