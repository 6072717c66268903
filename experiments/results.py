"""A results folder that survives kill -9: rows.jsonl and manifest.json.

A unit's rows are appended in one write. After a crash only the last unit can
be incomplete, so opening a folder drops it and the run computes it again.
"""

from collections.abc import Iterable
import fcntl
import json
import os
import pathlib
from typing import Any

from experiments import experiment as experiment_lib

Row = experiment_lib.Row


class DamagedRunError(RuntimeError):
  """The folder holds something that this program did not leave there."""


class Results:
  """An open results folder; only one process may hold it."""

  def __init__(self, folder: pathlib.Path, *, overwrite: bool):
    """Creates or opens the folder.

    Args:
      folder: `<out_dir>/<experiment>/<config hash>`.
      overwrite: drops what is there.

    Raises:
      OSError: if the folder cannot be written.
      DamagedRunError: if its files do not parse or another process holds it.
    """
    self.folder = folder
    folder.mkdir(parents=True, exist_ok=True)
    self._lock = (folder / '.lock').open('w')
    try:
      self._open(overwrite)
    except BaseException:
      self.close()
      raise

  @property
  def finished(self) -> bool:
    """Whether the run that left the folder ended."""
    return self.manifest is not None and self.manifest['status'] == 'finished'

  @property
  def done(self) -> frozenset[str]:
    """The names of the units whose rows are here."""
    return frozenset(row['unit'] for row in self._rows)

  def rows(self, order: Iterable[str]) -> list[Row]:
    """Returns all rows, by the order of unit names."""
    by_unit: dict[str, list[Row]] = {}
    for row in self._rows:
      by_unit.setdefault(row['unit'], []).append(row)
    return [row for unit in order for row in by_unit.get(unit, [])]

  def append(self, unit: str, rows: list[Row]) -> None:
    """Adds one unit's rows, in one write."""
    rows = [{'unit': unit, **row} for row in rows]
    lines = ''.join(json.dumps(row) + '\n' for row in rows)
    with (self.folder / 'rows.jsonl').open('ab') as file:
      file.write(lines.encode())
    self._rows += rows

  def write_manifest(self, manifest: dict[str, Any]) -> None:
    """Replaces the manifest atomically."""
    write_text(
      self.folder / 'manifest.json', json.dumps(manifest, indent=2) + '\n'
    )
    self.manifest = manifest

  def check_digest(self, value_digest: str) -> None:
    """Refuses rows of a finished run that are not those of its manifest.

    Raises:
      DamagedRunError: if they were changed.
    """
    manifest = self.manifest or {}
    if manifest.get('value_digest') != value_digest:
      raise self._damaged(self.folder / 'rows.jsonl')

  def close(self) -> None:
    """Lets another process open the folder."""
    self._lock.close()

  def _open(self, overwrite: bool) -> None:
    try:
      fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
      raise DamagedRunError(
        f'{self.folder} is in use by another process'
      ) from None
    if overwrite:
      for name in ('rows.jsonl', 'manifest.json'):
        (self.folder / name).unlink(missing_ok=True)
    self.manifest = self._read_manifest()
    self._rows = self._read_rows()
    if not self.finished:
      self._drop_last_unit()

  def _read_manifest(self) -> dict[str, Any] | None:
    path = self.folder / 'manifest.json'
    if not path.exists():
      return None
    try:
      manifest = json.loads(path.read_text())
      if {'status', 'environment', 'inputs'} <= set(manifest):
        return manifest
    except (ValueError, TypeError):
      pass
    raise self._damaged(path)

  def _read_rows(self) -> list[Row]:
    path = self.folder / 'rows.jsonl'
    if not path.exists():
      if self.finished:
        raise self._damaged(path)
      return []
    if self.manifest is None:
      raise self._damaged(self.folder / 'manifest.json')
    lines = path.read_bytes().split(b'\n')
    if lines[-1] and self.finished:
      raise self._damaged(path)
    try:
      # What follows the last newline is the torn end of a killed write.
      rows = [json.loads(line) for line in lines[:-1]]
      if not all(isinstance(row['unit'], str) for row in rows):
        raise ValueError
      if self.finished and len(rows) != self.manifest['num_rows']:
        raise ValueError
      return rows
    except (ValueError, KeyError, TypeError):
      raise self._damaged(path) from None

  def _damaged(self, path: pathlib.Path) -> DamagedRunError:
    return DamagedRunError(
      f'{path} is damaged or missing: pass --overwrite to start this run '
      'again, or another --out_dir'
    )

  def _drop_last_unit(self) -> None:
    path = self.folder / 'rows.jsonl'
    if not path.exists():
      return
    last = self._rows[-1]['unit'] if self._rows else None
    self._rows = [row for row in self._rows if row['unit'] != last]
    write_text(path, ''.join(json.dumps(row) + '\n' for row in self._rows))


def write_text(path: pathlib.Path, text: str) -> None:
  """Writes a file atomically: readers see the old or the new one."""
  partial = path.with_name(path.name + '.partial')
  with partial.open('w') as file:
    file.write(text)
    file.flush()
    os.fsync(file.fileno())
  partial.replace(path)
