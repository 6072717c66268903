"""Outside data files: where they come from and how they are found.

A `Source` says what a file is (license, citation, sha256) and where it can be
downloaded. `locate` finds it on disk or downloads it, and never returns a file
whose checksum is not a listed one. `third_party/<source>/METADATA` states the
same facts for readers.
"""

from collections.abc import Mapping
import dataclasses
import hashlib
import os
import pathlib
from typing import Any

import pooch

from privjax import _validate

DATA_DIR_VARIABLE = 'PRIVJAX_DATA_DIR'
# Seconds to connect and to wait for a byte: offline must fail fast.
_TIMEOUT = (3, 20)


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class SourceFile:
  """One file of a source.

  Attributes:
    urls: mirrors, in the order in which they are tried.
    sha256: every accepted checksum, as hex. The first is that of the file at
      the urls; others are of copies that users may hold (recompressed ones).
  """

  urls: tuple[str, ...]
  sha256: tuple[str, ...]


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class Source:
  """An outside source of data.

  Attributes:
    name: also its folder, under a data directory and in `third_party/`.
    version: the commit or release that the checksums are of.
    license: its terms, as an SPDX identifier where it has one.
    citation: who to cite.
    files: the files, by name.
  """

  name: str
  version: str
  license: str
  citation: str
  files: Mapping[str, SourceFile]


def locate(
  source: Source,
  filename: str,
  data_dir: str | os.PathLike | None = None,
) -> pathlib.Path:
  """Returns the path of a file whose checksum is an accepted one.

  Looks for `<folder>/<source>/<filename>` in `data_dir` (or, where that is
  None, in the folder that the environment variable PRIVJAX_DATA_DIR names),
  then in the user's cache; then downloads it into the cache, atomically.

  Args:
    source: the source of the file.
    filename: one of `source.files`.
    data_dir: a folder with one folder per source, or None.

  Raises:
    ValueError: if the source has no such file, or the file found has another
      checksum. It is left as it is.
    FileNotFoundError: if the file is neither on disk nor downloadable.
  """
  _validate.one_of(tuple(source.files), filename=filename)
  data_dir = data_dir or os.environ.get(DATA_DIR_VARIABLE)
  folders = [pathlib.Path(data_dir)] if data_dir else []
  folders.append(pathlib.Path(pooch.os_cache('privjax')))
  paths = [folder / source.name / filename for folder in folders]
  for path in paths:
    if path.is_file():
      _check_sha256(path, source.files[filename].sha256)
      return path
  failures = _download(source.files[filename], paths[-1])
  if failures:
    raise FileNotFoundError(_not_found(source, filename, paths, failures))
  return paths[-1]


def _check_sha256(path: pathlib.Path, accepted: tuple[str, ...]) -> None:
  found = hashlib.sha256(path.read_bytes()).hexdigest()
  if found not in accepted:
    raise ValueError(
      f'{path} is damaged or another version: its sha256 is {found}, expected '
      f'{" or ".join(accepted)}. Replace it, or delete it to have it '
      'downloaded again.'
    )


def _download(entry: SourceFile, path: pathlib.Path) -> list[str]:
  """Tries the mirrors; returns what went wrong, nothing on success."""
  downloader: Any = pooch.HTTPDownloader(timeout=_TIMEOUT)
  failures = []
  for url in entry.urls:
    try:
      # Checks the sum of a temporary file beside `path`, then renames it.
      pooch.retrieve(
        url,
        known_hash=f'sha256:{entry.sha256[0]}',
        fname=path.name,
        path=path.parent,
        downloader=downloader,
      )
    except (OSError, ValueError) as error:
      failures.append(f'{url} ({type(error).__name__})')
    else:
      return []
  return failures


def _not_found(
  source: Source,
  filename: str,
  paths: list[pathlib.Path],
  failures: list[str],
) -> str:
  entry = source.files[filename]
  target = f'DIR/{source.name}/{filename}'
  return (
    f'{filename} (sha256 {" or ".join(entry.sha256)}) was not found. Looked '
    f'at {", ".join(map(str, paths))}; could not download it from '
    f'{", ".join(failures)}. To fix it, run `curl -fL --create-dirs -o '
    f'{target} {entry.urls[0]}` where there is a network, then pass '
    f'--data_dir=DIR or set {DATA_DIR_VARIABLE}=DIR.'
  )


_RAW = 'https://raw.githubusercontent.com/'
_PLANETOID_VERSION = 'af6abf468a772cc055bec88c52e4d6f51b7c37e3'
_PLANETOID_MIRRORS = (
  f'{_RAW}kimiyoung/planetoid/{_PLANETOID_VERSION}/data/',
  f'https://github.com/kimiyoung/planetoid/raw/{_PLANETOID_VERSION}/data/',
  # The copy in the repository of Kipf and Welling (2017).
  f'{_RAW}tkipf/gcn/master/gcn/data/',
)
_PLANETOID_PARTS = ('y', 'allx', 'ally', 'tx', 'ty', 'graph', 'test.index')
_PLANETOID_SHA256 = {  # In the order of the parts.
  'cora': (
    '94465c14eb53e04ca262198dcbb2521ee8af60fb3f3d546cd6ca24a511b0e7d1',
    '9419ba2f26f5c35243db64aba110e0f35a04851609e0dc5433450676ca6b8543',
    '2b998f5cc7fedc86e7f97ca2498f47a1ffc1462c29e2d578b23bf3f62b6e7d71',
    'b9afbaa4a400df991f6f02ef677e1e44da55ffc04801fd02f9e673987829226a',
    '41f5ac76596a1699cc33f53084a2419e92961c42bb75f36fc38e616d348532ad',
    '58f13302f39dde8852dad6fe6d15b89b077b6d7f837626bce671ef80344b383d',
    '297ce89af2b51a6a194181c7dbe1796c6a1cf9cd9349a88383b1b1e227867875',
  ),
  'citeseer': (
    '8ba87e515d8e3ee3cf52f6d2c5b86aa73f11ecad825a808455209ec26cd54924',
    '2ac30345d95c9ec933a817ee0bdd6a5f077f8c184a20e696910192d534414668',
    'f704b2d986dde6c2669934de1f3ae5696a6cf9455c0f6b2646a2d135ea0a1c95',
    '539a8906a2da97628d212f2fdd668c109a8b3f0d36574b59e5d3fd5b5303da21',
    '55e5bd1ba1e733a04598753ad1a8d57957f4b8f89e74519f41f4f4938767e4ce',
    'd79a4ef9d3e7169aee8946145f6b7306e35bc79bffad26346cfb94e10e9912a7',
    '2af990671580b6b2df5d158d1038f8292e30c9cd821b5453f399659b25b723d4',
  ),
}

PLANETOID = Source(
  name='planetoid',
  version=_PLANETOID_VERSION,
  license='MIT',
  citation=(
    'Yang, Cohen and Salakhutdinov (2016), Revisiting semi-supervised learning '
    'with graph embeddings, ICML'
  ),
  files={
    f'ind.{name}.{part}': SourceFile(
      urls=tuple(f'{url}ind.{name}.{part}' for url in _PLANETOID_MIRRORS),
      sha256=(digest,),
    )
    for name, digests in _PLANETOID_SHA256.items()
    for part, digest in zip(_PLANETOID_PARTS, digests, strict=True)
  },
)

_COMPAS_VERSION = 'bafff5da3f2e45eca6c2d5055faad269defd135a'
_MAMMOGRAPHIC_VERSION = 'd6fbf0ee344aa5dc734dd396af6ebf8f02babd25'
_LENDING_VERSION = '3c0a5d1'
_NLSY97_VERSION = '8eeaaad1a107c67add53f79ad735c20ce9c8038c'
_NLSY97_ARRESTS_VERSION = '3c8e4bc78b1a27f09cd7611f4c73dce447e88499'

COMPAS = Source(
  name='compas',
  version=_COMPAS_VERSION,
  license='none stated',
  citation=(
    'Angwin, Larson, Mattu and Kirchner (2016), Machine bias, ProPublica'
  ),
  files={
    'compas-scores-two-years.csv': SourceFile(
      urls=(
        f'{_RAW}propublica/compas-analysis/{_COMPAS_VERSION}/'
        'compas-scores-two-years.csv',
      ),
      sha256=(
        'c451db85908b2f7fef1d83203bedf6b71ecda0d5af468d82ae62178f91d0cc7d',
        # Without names, birth dates and case numbers.
        '3bbc3288b268942fe3166bb6bfc0b6dbde3f31ed839ea636fffa1a6457d2c9f4',
      ),
    )
  },
)

MAMMOGRAPHIC = Source(
  name='mammographic',
  version=_MAMMOGRAPHIC_VERSION,
  license='CC-BY-4.0',
  citation=(
    'Elter, Schulz-Wendtland and Wittenberg (2007), The prediction of breast '
    'cancer biopsy outcomes using two CAD approaches that both emphasize an '
    'intelligible decision process, Medical Physics 34(11)'
  ),
  files={
    'mammographic_masses.data': SourceFile(
      urls=(
        f'{_RAW}jehiltz01/KDD_Group4_Project/{_MAMMOGRAPHIC_VERSION}/'
        'mammographic_masses.data',
        'https://archive.ics.uci.edu/ml/machine-learning-databases/'
        'mammographic-masses/mammographic_masses.data',
      ),
      sha256=(
        '2ed8bb60a517f631256d218a4885c56ef196d41023c63307ab40d69985be3b4a',
      ),
    )
  },
)

LENDING = Source(
  name='lending',
  version=_LENDING_VERSION,
  license='none stated',
  citation='Lending Club, loan data 2007-2010 with FICO score at origination',
  files={
    'loan_data.csv': SourceFile(
      urls=(
        f'{_RAW}AndjelaStojanovic02/loan-credit-risk-classification-ml/'
        f'{_LENDING_VERSION}/loan_data.csv',
      ),
      sha256=(
        '1471c1bdc5ce3b48cfacb44a824d4739c252493196e7e1874668c6139c248af0',
      ),
    )
  },
)

NLSY97 = Source(
  name='nlsy97',
  version=f'{_NLSY97_VERSION} and {_NLSY97_ARRESTS_VERSION}',
  license='US government, public use; MIT (arrests_by_month.csv)',
  citation=(
    'Bureau of Labor Statistics, U.S. Department of Labor, National '
    'Longitudinal Survey of Youth 1997 cohort'
  ),
  files={
    'nlsy97.csv': SourceFile(
      urls=(f'{_RAW}anandavii/pda/{_NLSY97_VERSION}/nlsy97.csv',),
      sha256=(
        'e1649361f1ba22a2472eb9976d5f60501f2671f9c0284034bb6cba7294ac27d3',
      ),
    ),
    'arrests_by_month.csv': SourceFile(
      urls=(
        f'{_RAW}nateybear/causal-inference-2022/{_NLSY97_ARRESTS_VERSION}/'
        'data/NLSY97.csv',
      ),
      sha256=(
        '00c6fc9061edb5ec0fb9ee4682b739cfdb211c63831b13a81c16f5d06ff6088d',
      ),
    ),
  },
)

SOURCES = (PLANETOID, COMPAS, MAMMOGRAPHIC, LENDING, NLSY97)
