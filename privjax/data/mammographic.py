"""Mammographic Mass: is a lesion malignant, from a BI-RADS reading.

Rows are those without a missing value, but for the one row whose BI-RADS
assessment is 55, a slip of the pen on a scale from 0 to 6: 829 of 961. The
sensitive column is that assessment.

References: Elter, Schulz-Wendtland and Wittenberg (2007), Medical Physics.
"""

import os

import numpy as np

from privjax.data import csv_table
from privjax.data import schema as schema_lib
from privjax.data import sources
from privjax.data import table as table_lib

SCHEMA = schema_lib.Schema(
  name='mammographic',
  columns=(
    schema_lib.NominalColumn(
      name='bi_rads', levels=('0', '1', '2', '3', '4', '5', '6')
    ),
    schema_lib.NumericColumn(name='age', lower=18, upper=100, cuts=(45, 60)),
    schema_lib.NumericColumn(name='shape', lower=1, upper=4, cuts=(1, 2, 3)),
    schema_lib.NumericColumn(
      name='margin', lower=1, upper=5, cuts=(1, 2, 3, 4)
    ),
    schema_lib.NumericColumn(name='density', lower=1, upper=4, cuts=(1, 2, 3)),
  ),
  label=schema_lib.LabelColumn(name='severity', negative='0', positive='1'),
  sensitive='bi_rads',
  missing=('?',),
  drop_missing=True,
)
_FILE = 'mammographic_masses.data'


def load(data_dir: str | os.PathLike | None = None) -> table_lib.Table:
  """Loads Mammographic Mass: 829 rows.

  Args:
    data_dir: where to look for the file first, see `sources.locate`.

  Raises:
    ValueError: if the file has a wrong checksum.
    FileNotFoundError: if the file is neither on disk nor downloadable.
  """
  path = sources.locate(sources.MAMMOGRAPHIC, _FILE, data_dir)
  header = (*SCHEMA.names, SCHEMA.label.name)
  raw = csv_table.read_columns(path, header, header=header)
  return table_lib.from_raw(
    SCHEMA, raw, keep=np.not_equal(raw['bi_rads'], '55')
  )
