"""Tables from any CSV file and a schema file.

The schema is public and says all there is to say about the columns; the rows
are private and may not contradict it.
"""

from collections.abc import Iterable
import csv
import os

import numpy as np

from privjax.data import schema_json
from privjax.data import table as table_lib


def load(
  csv_path: str | os.PathLike,
  schema_path: str | os.PathLike,
  *,
  balanced_seed: int | None = None,
) -> table_lib.Table:
  """Loads a table from a CSV file and a JSON schema.

  Args:
    csv_path: a CSV file with a header line; columns that the schema does not
      name are ignored.
    schema_path: a file that `schema_json.read_json` reads.
    balanced_seed: the seed of a draw of as many rows of each class, or None.

  Raises:
    ValueError: if the schema, the file or a value in it is not as it must be.
  """
  schema = schema_json.read_json(schema_path)
  raw = read_columns(csv_path, (*schema.names, schema.label.name))
  return table_lib.from_raw(schema, raw, balanced_seed=balanced_seed)


def read_columns(
  path: str | os.PathLike,
  names: Iterable[str],
  *,
  header: tuple[str, ...] | None = None,
  first_of_repeated: bool = False,
) -> dict[str, np.ndarray]:
  """Reads columns of a CSV file as text.

  Args:
    path: the file, in UTF-8; blank lines are ignored.
    names: the columns to read.
    header: the names of the columns of a file without a header line, or None.
    first_of_repeated: whether a name that the header holds more than once
      means its first column, rather than being an error.

  Returns:
    `[N]` texts without outer spaces for each name.

  Raises:
    ValueError: if a name is not in the header, or more than once, or a line
      has more or fewer fields than the header (naming the line).
  """
  with open(path, encoding='utf-8-sig', newline='') as file:
    reader = csv.reader(file, strict=True)
    try:
      if header is None:
        header = tuple(field.strip() for field in next(reader, []))
      rows = [
        _checked(fields, len(header), reader.line_num)
        for fields in reader
        if fields
      ]
    except csv.Error as error:
      raise ValueError(f'line {reader.line_num}: {error}') from error
    except UnicodeDecodeError:
      # Its own message holds bytes of the file.
      raise ValueError('the file must be UTF-8 text') from None
  positions = {
    name: _position(header, name, first_of_repeated) for name in names
  }
  return {
    name: np.array([row[i].strip() for row in rows], np.str_)
    for name, i in positions.items()
  }


def _checked(fields: list[str], expected: int, line: int) -> list[str]:
  if len(fields) != expected:
    raise ValueError(
      f'line {line} has {len(fields)} fields, expected {expected}'
    )
  return fields


def _position(
  header: tuple[str, ...], name: str, first_of_repeated: bool
) -> int:
  count = header.count(name)
  if not count:
    raise ValueError(f'column {name!r} is not in the header')
  if count > 1 and not first_of_repeated:
    raise ValueError(f'column {name!r} is {count} times in the header')
  return header.index(name)
