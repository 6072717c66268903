"""NLSY97: arrests and incarcerations of a cohort born 1980 to 1984.

The label of `arrest` is whether a respondent was arrested in a month, of the
twelve of the file, whose number of arrests is known; that of `incarceration` is
whether any incarceration was reported. Rows are those without a missing value,
then a seeded public draw of as many of each class: 652 and 1,118 of 8,984. The
sensitive column is any history of drugs.

Negative codes of the survey are missing values. A code that means 'unknown' to
the survey itself (of the residence at age 12) is a level.

References: Bureau of Labor Statistics, U.S. Department of Labor, National
Longitudinal Survey of Youth 1997 cohort.
"""

from collections.abc import Mapping
import os

import numpy as np

from privjax.data import csv_table
from privjax.data import schema as schema_lib
from privjax.data import sources
from privjax.data import table as table_lib

_KEY = 'R0000100'  # PUBID.
_YES_NO = {'0': 'no', '1': 'yes'}
# name -> (variable, its codes). Other codes are negative: missing.
_NOMINAL = {
  'sex': ('R0536300', {'1': 'male', '2': 'female'}),
  'race': (
    'R1482600',
    {'1': 'black', '2': 'hispanic', '3': 'mixed', '4': 'other'},
  ),
  'urban_at_12': (
    'R1217600',
    {'0': 'rural', '1': 'urban', '2': 'unknown'},
  ),
  'msa_at_12': (
    'R1210500',
    {
      '1': 'not in MSA',
      '2': 'not in central city',
      '3': 'in central city',
      '4': 'in MSA, unknown',
      '5': 'abroad',
    },
  ),
  'smoked_2011': ('T7638800', _YES_NO),
}
_BIRTH_YEAR = 'R0536402'
_DRUGS = ('R0358900', 'R2191500')  # Marijuana by 1997, hard drugs by 1998.
_INCARCERATIONS = 'E8043100'
_MONTHS = tuple(f'E80120{month:02d}' for month in range(1, 13))
_UNKNOWN_MONTH = 99
_MISSING = ''


def _schema(name: str, label: str) -> schema_lib.Schema:
  return schema_lib.Schema(
    name=name,
    columns=(
      *(
        schema_lib.NominalColumn(name=key, levels=tuple(codes.values()))
        for key, (_, codes) in _NOMINAL.items()
      ),
      schema_lib.NumericColumn(
        name='birth_year',
        lower=1980,
        upper=1984,
        cuts=(1980, 1981, 1982, 1983),
      ),
      schema_lib.NominalColumn(name='drug_history', levels=('no', 'yes')),
    ),
    label=schema_lib.LabelColumn(name=label, negative='no', positive='yes'),
    sensitive='drug_history',
    missing=(_MISSING,),
    drop_missing=True,
  )


ARREST_SCHEMA = _schema('arrest', 'arrested')
INCARCERATION_SCHEMA = _schema('incarceration', 'incarcerated')


def load_arrest(
  data_dir: str | os.PathLike | None = None, seed: int = 0
) -> table_lib.Table:
  """Loads the arrest proxy: 652 rows, half of them of class +1.

  Args:
    data_dir: where to look for the files first, see `sources.locate`.
    seed: of the balanced draw, in [0, 2**32).

  Raises:
    ValueError: if `seed` is out of range or a file has a wrong checksum.
    FileNotFoundError: if a file is neither on disk nor downloadable.
  """
  survey, features = _features(data_dir)
  path = sources.locate(sources.NLSY97, 'arrests_by_month.csv', data_dir)
  raw = csv_table.read_columns(path, (_KEY, *_MONTHS))
  of_key = dict(zip(_unique(raw[_KEY]), _arrested(raw)))
  keys = _unique(survey[_KEY])
  # A respondent whom the other file lacks has no known month.
  features['arrested'] = np.array([of_key.get(key, _MISSING) for key in keys])
  return table_lib.from_raw(ARREST_SCHEMA, features, balanced_seed=seed)


def load_incarceration(
  data_dir: str | os.PathLike | None = None, seed: int = 0
) -> table_lib.Table:
  """Loads the incarceration proxy: 1,118 rows, half of them of class +1.

  Args:
    data_dir: where to look for the file first, see `sources.locate`.
    seed: of the balanced draw, in [0, 2**32).

  Raises:
    ValueError: if `seed` is out of range or the file has a wrong checksum.
    FileNotFoundError: if the file is neither on disk nor downloadable.
  """
  survey, features = _features(data_dir)
  number = survey[_INCARCERATIONS].astype(np.int64)
  features['incarcerated'] = _yes_no(number > 0, number == 0)
  return table_lib.from_raw(INCARCERATION_SCHEMA, features, balanced_seed=seed)


def _features(
  data_dir: str | os.PathLike | None,
) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
  """Returns the survey's variables and the features made of them, as text."""
  path = sources.locate(sources.NLSY97, 'nlsy97.csv', data_dir)
  variables = [variable for variable, _ in _NOMINAL.values()]
  survey = csv_table.read_columns(
    path, (_KEY, *variables, _BIRTH_YEAR, *_DRUGS, _INCARCERATIONS)
  )
  features = {
    name: _recode(codes, survey[variable])
    for name, (variable, codes) in _NOMINAL.items()
  }
  features['birth_year'] = survey[_BIRTH_YEAR]
  answers = np.stack([survey[variable] for variable in _DRUGS])
  # One yes is enough to know; a no needs both answers.
  features['drug_history'] = _yes_no(
    (answers == '1').any(axis=0), (answers == '0').all(axis=0)
  )
  return survey, features


def _recode(codes: Mapping[str, str], values: np.ndarray) -> np.ndarray:
  """Names the codes; negative ones are missing, others left to be refused."""
  return np.array(
    [
      _MISSING if value.startswith('-') else codes.get(value, value)
      for value in values.tolist()
    ]
  )


def _yes_no(is_yes: np.ndarray, is_no: np.ndarray) -> np.ndarray:
  return np.where(is_yes, 'yes', np.where(is_no, 'no', _MISSING))


def _arrested(raw: Mapping[str, np.ndarray]) -> list[str]:
  number = np.stack([raw[month].astype(np.int64) for month in _MONTHS])
  known = (number >= 0) & (number != _UNKNOWN_MONTH)
  is_yes = (known & (number > 0)).any(axis=0)
  return _yes_no(is_yes, known.any(axis=0)).tolist()


def _unique(keys: np.ndarray) -> list[str]:
  if len(np.unique(keys)) != len(keys):
    raise ValueError(f'{_KEY} must be distinct to join files')
  return keys.tolist()
