"""COMPAS: re-arrest within two years, from a county's risk scores.

Rows are those of ProPublica's two-year file whose charge lies within 30 days
of the screening, or whose distance to it is missing: 6,479 of 7,214. The
sensitive column is the risk score's band.

References: Angwin, Larson, Mattu and Kirchner (2016), "Machine bias".
"""

import os

import numpy as np

from privjax.data import csv_table
from privjax.data import schema as schema_lib
from privjax.data import sources
from privjax.data import table as table_lib

SCHEMA = schema_lib.Schema(
  name='compas',
  columns=(
    schema_lib.NominalColumn(name='sex', levels=('Female', 'Male')),
    schema_lib.NumericColumn(name='age', lower=18, upper=100, cuts=(24, 45)),
    schema_lib.NominalColumn(
      name='race',
      levels=(
        'African-American',
        'Asian',
        'Caucasian',
        'Hispanic',
        'Native American',
        'Other',
      ),
    ),
    schema_lib.NumericColumn(
      name='priors_count', lower=0, upper=40, cuts=(0, 3)
    ),
    schema_lib.NominalColumn(name='c_charge_degree', levels=('F', 'M')),
    schema_lib.NominalColumn(
      name='score_text', levels=('Low', 'Medium', 'High')
    ),
  ),
  label=schema_lib.LabelColumn(
    name='two_year_recid', negative='0', positive='1'
  ),
  sensitive='score_text',
)
_FILE = 'compas-scores-two-years.csv'
_DAYS = 'days_b_screening_arrest'
_MAX_DAYS = 30


def load(data_dir: str | os.PathLike | None = None) -> table_lib.Table:
  """Loads COMPAS: 6,479 rows, of which 2,864 (44.2 %) are of class +1.

  Args:
    data_dir: where to look for the file first, see `sources.locate`.

  Raises:
    ValueError: if the file has a wrong checksum.
    FileNotFoundError: if the file is neither on disk nor downloadable.
  """
  path = sources.locate(sources.COMPAS, _FILE, data_dir)
  raw = csv_table.read_columns(
    path,
    (*SCHEMA.names, SCHEMA.label.name, _DAYS),
    # The original file holds `priors_count` twice.
    first_of_repeated=True,
  )
  days = np.array([float(text or 0) for text in raw[_DAYS].tolist()])
  return table_lib.from_raw(SCHEMA, raw, keep=np.abs(days) <= _MAX_DAYS)
