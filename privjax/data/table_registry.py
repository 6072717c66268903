"""Tables by name.

>>> load_table('breast_cancer').counts.num_rows
569
"""

import os

from privjax import _validate
from privjax.data import breast_cancer
from privjax.data import compas
from privjax.data import lending
from privjax.data import mammographic
from privjax.data import nlsy97
from privjax.data import table as table_lib

TABLES = (
  'arrest',
  'breast_cancer',
  'compas',
  'incarceration',
  'lending',
  'mammographic',
)
# The public schemas, which need no file.
SCHEMAS = {
  'arrest': nlsy97.ARREST_SCHEMA,
  'breast_cancer': breast_cancer.SCHEMA,
  'compas': compas.SCHEMA,
  'incarceration': nlsy97.INCARCERATION_SCHEMA,
  'lending': lending.SCHEMA,
  'mammographic': mammographic.SCHEMA,
}


def load_table(
  name: str, data_dir: str | os.PathLike | None = None, seed: int = 0
) -> table_lib.Table:
  """Loads the table called `name`.

  Args:
    name: one of `TABLES`; 'breast_cancer' needs no file.
    data_dir: where to look for files first, see `sources.locate`.
    seed: of the draw of a balanced set ('arrest', 'incarceration', 'lending'),
      in [0, 2**32); the other tables do not depend on it.

  Returns:
    The table; its rows are private.

  Raises:
    ValueError: if no table has that name, `seed` is out of range, or a file
      has a wrong checksum.
    FileNotFoundError: if a file is neither on disk nor downloadable.
  """
  _validate.one_of(TABLES, table=name)
  _validate.seed(seed=seed)
  if name == 'arrest':
    return nlsy97.load_arrest(data_dir, seed)
  if name == 'breast_cancer':
    return breast_cancer.load()
  if name == 'compas':
    return compas.load(data_dir)
  if name == 'incarceration':
    return nlsy97.load_incarceration(data_dir, seed)
  if name == 'lending':
    return lending.load(data_dir, seed)
  return mammographic.load(data_dir)
