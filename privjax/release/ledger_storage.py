"""Files, locks and transactions of a ledger.

SQLite in WAL mode with full synchronization: a commit returns after its frames
are on disk, `BEGIN IMMEDIATE` takes the one write lock before anything is
read, and a process that dies leaves the last commit. WAL needs shared memory
and working locks, which network file systems do not give: they are refused by
type. A type that is not in the list counts as local, and so does everything
where there is no `/proc/self/mounts`: the owner answers for those.

Public inputs only.
"""

import contextlib
import os
import pathlib
import sqlite3
import stat
import urllib.parse

from privjax.release import ledger_errors
from privjax.release import ledger_records

NETWORK_TYPES = frozenset(
  """9p acfs afs afpfs beegfs ceph cifs coda davfs fhgfs gfs gfs2 glusterfs gpfs
  kafs lustre mfs ncp ncpfs nfs nfs4 ocfs2 orangefs panfs prl_fs pvfs2 smb smb2
  smb3 smbfs vboxsf virtiofs vmhgfs webdav
  fuse.ceph fuse.ceph-fuse fuse.curlftpfs fuse.davfs fuse.davfs2 fuse.dropbox
  fuse.gcsfuse fuse.glusterfs fuse.goofys fuse.gvfsd-fuse fuse.juicefs
  fuse.mfsmount fuse.moosefs fuse.nfs fuse.rclone fuse.s3fs fuse.seaweedfs
  fuse.smbnetfs fuse.sshfs fuse.vmhgfs-fuse fuse.weed fuse.blobfuse
  fuse.blobfuse2 fuse.mount-s3""".split()
)
_MOUNTS = pathlib.Path('/proc/self/mounts')
_BUSY_SECONDS = 60
_PRAGMAS = (
  'synchronous = FULL',
  'fullfsync = ON',
  'checkpoint_fullfsync = ON',
  'recursive_triggers = ON',
  'trusted_schema = OFF',
  'cell_size_check = ON',
  'temp_store = MEMORY',
)


def connect(path: str) -> sqlite3.Connection:
  """Opens an existing file, in WAL mode and with full synchronization."""
  uri = f'file:{urllib.parse.quote(path)}?mode=rw'
  connection = sqlite3.connect(
    uri, uri=True, isolation_level=None, timeout=_BUSY_SECONDS
  )
  try:
    (mode,) = connection.execute('PRAGMA journal_mode = WAL').fetchone()
    if mode != 'wal':
      raise ledger_errors.LedgerStorageError(
        f'{path} does not support WAL, its journal mode is {mode}'
      )
    for pragma in _PRAGMAS:
      connection.execute(f'PRAGMA {pragma}')
  except BaseException as error:
    connection.close()
    raise_storage_error(error, f'{path} cannot be opened')
    raise
  return connection


def raise_storage_error(error: BaseException, message: str) -> None:
  """Raises an error of SQLite or the system as a `LedgerStorageError`."""
  if isinstance(error, (OSError, sqlite3.Error)):
    raise ledger_errors.LedgerStorageError(f'{message}: {error}') from error


@contextlib.contextmanager
def transaction(connection: sqlite3.Connection):
  """Holds the write lock, commits at the end, rolls back on any exception."""
  outcome = 'nothing was spent'
  try:
    connection.execute('BEGIN IMMEDIATE')
    yield
    # From here a failure may leave the entry on disk: it then counts as spent.
    outcome = (
      'the commit failed: see history() for whether the entry was recorded; '
      'if it was, it counts'
    )
    connection.execute('COMMIT')
  except BaseException as error:
    rollback(connection)
    raise_storage_error(error, outcome)
    raise


def rollback(connection: sqlite3.Connection) -> None:
  """Ends a transaction without a commit; does nothing outside one."""
  with contextlib.suppress(sqlite3.Error):
    if connection.in_transaction:
      connection.execute('ROLLBACK')


def new_file(path: str) -> None:
  """Creates an empty file for the owner's eyes only; never replaces one."""
  try:
    os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
  except FileExistsError:
    raise ledger_errors.LedgerExistsError(
      f'{path} exists: open it, or delete it if a create was interrupted'
    ) from None
  except OSError as error:
    raise_storage_error(error, f'{path} cannot be created')


def file_identity(path: str) -> tuple[int, int]:
  """Checks that a file can hold a ledger; returns its device and inode.

  Raises:
    LedgerStorageError: if it is missing, not a regular file, or reachable by a
      second hard link (SQLite would keep a separate WAL for each name).
    ReadOnlyLedgerError: if it or its folder cannot be written. A file without
      a write bit is refused even to root.
  """
  try:
    status = os.stat(path)
  except OSError as error:
    raise ledger_errors.LedgerStorageError(
      f'{path} cannot be read: {error}'
    ) from error
  if not stat.S_ISREG(status.st_mode) or status.st_nlink != 1:
    raise ledger_errors.LedgerStorageError(
      f'{path} must be a regular file with one name, '
      f'it has {status.st_nlink} hard links'
    )
  check_writable(path, status.st_mode)
  return status.st_dev, status.st_ino


def check_writable(path: str, mode: int) -> None:
  """Checks a file's mode, its folder's and its file system's."""
  folder = os.path.dirname(path)
  writable = mode & 0o222 and os.access(path, os.W_OK)
  writable = writable and os.access(folder, os.W_OK | os.X_OK)
  if not writable or os.statvfs(folder).f_flag & os.ST_RDONLY:
    raise ledger_errors.ReadOnlyLedgerError(
      f'{path} or its folder is read-only; nothing was spent'
    )


def check_local(path: str) -> None:
  """Refuses a path on a network file system.

  Raises:
    NetworkFileSystemError: by the type of the mount that holds the path.
  """
  try:
    mounts = _MOUNTS.read_text(encoding='utf-8', errors='surrogateescape')
  except OSError:
    return
  kind = file_system_type(path, mounts)
  if kind in NETWORK_TYPES:
    raise ledger_errors.NetworkFileSystemError(
      f'{path} is on a {kind} file system, where locks are not reliable; keep '
      'the ledger on a local disk. Nothing was spent'
    )


def file_system_type(path: str, mounts: str) -> str | None:
  """Returns the type of the deepest, then latest, mount above a path.

  Args:
    path: absolute, without symbolic links.
    mounts: the text of `/proc/self/mounts`.
  """
  best, kind = -1, None
  for line in mounts.splitlines():
    _, point, mount_type, *_ = line.split(' ')
    for code, character in (('040', ' '), ('011', '\t'), ('134', '\\')):
      point = point.replace('\\' + code, character)
    inside = os.path.commonpath([path, point]) == point
    if inside and len(point) >= best:
      best, kind = len(point), mount_type
  return kind


def read_receipt(path: str) -> ledger_records.Receipt:
  """Reads the owner's receipt file."""
  try:
    with open(path, encoding='ascii') as file:
      return ledger_records.Receipt.parse(file.read())
  except (OSError, UnicodeDecodeError) as error:
    raise ledger_errors.LedgerRollbackError(
      f'the receipt {path} cannot be read ({error}), so a rollback cannot be '
      'excluded; nothing was spent'
    ) from error


def write_receipt(path: str, receipt: ledger_records.Receipt) -> None:
  """Replaces the receipt file in one step; the old or the new one survives."""
  temporary = f'{path}.{os.getpid()}.tmp'
  flags = os.O_CREAT | os.O_TRUNC | os.O_WRONLY | os.O_NOFOLLOW
  descriptor = os.open(temporary, flags, 0o600)
  try:
    with os.fdopen(descriptor, 'wb') as file:
      file.write(f'{receipt}\n'.encode('ascii'))
      file.flush()
      os.fsync(file.fileno())
    os.replace(temporary, path)
  except BaseException:
    with contextlib.suppress(OSError):
      os.unlink(temporary)
    raise
  sync_folder(os.path.dirname(path))


def sync_folder(path: str) -> None:
  """Makes new names in a folder durable."""
  descriptor = os.open(path, os.O_RDONLY)
  try:
    os.fsync(descriptor)
  finally:
    os.close(descriptor)
