"""Tests of finding, checking and downloading files, without a network."""

import collections
import hashlib
import os
import pathlib
import tempfile
import unittest.mock

from absl.testing import parameterized

from privjax.data import sources

_REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
_GOOD, _OTHER = b'good', b'other accepted'
_SOURCE = sources.Source(
  name='toy',
  version='1',
  license='MIT',
  citation='Nobody (2026)',
  files={
    'a.txt': sources.SourceFile(
      urls=('https://one.invalid/a.txt', 'https://two.invalid/a.txt'),
      sha256=tuple(hashlib.sha256(b).hexdigest() for b in (_GOOD, _OTHER)),
    )
  },
)


class LocateTest(parameterized.TestCase):
  def setUp(self):
    super().setUp()
    root = pathlib.Path(self.enter_context(tempfile.TemporaryDirectory()))
    self.given, self.env, self.cache = root / 'd', root / 'e', root / 'c'
    self.served = {}
    self.asked = []
    self.enter_context(
      unittest.mock.patch.dict(
        os.environ, {sources.DATA_DIR_VARIABLE: str(self.env)}
      )
    )
    self.enter_context(
      unittest.mock.patch.object(
        sources.pooch, 'os_cache', lambda project: self.cache
      )
    )
    self.enter_context(
      unittest.mock.patch.object(
        sources.pooch, 'HTTPDownloader', lambda timeout: self._download
      )
    )

  def _download(self, url, output_file, unused_pooch):
    self.asked.append(url)
    if url not in self.served:
      raise ConnectionError('no network in tests')
    pathlib.Path(output_file).write_bytes(self.served[url])

  def _write(self, folder, content=_GOOD):
    path = folder / 'toy' / 'a.txt'
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path

  def test_resolution_order(self):
    self.served[_SOURCE.files['a.txt'].urls[0]] = _GOOD
    given, env = self._write(self.given), self._write(self.env)
    cached = self._write(self.cache)
    self.assertEqual(sources.locate(_SOURCE, 'a.txt', self.given), given)
    self.assertEqual(sources.locate(_SOURCE, 'a.txt'), env)
    # An explicit folder replaces the environment's, then the cache is next.
    given.unlink()
    self.assertEqual(sources.locate(_SOURCE, 'a.txt', self.given), cached)
    env.unlink()
    self.assertEqual(sources.locate(_SOURCE, 'a.txt'), cached)
    self.assertEmpty(self.asked)
    cached.unlink()
    self.assertEqual(sources.locate(_SOURCE, 'a.txt'), cached)
    self.assertLen(self.asked, 1)
    self.assertEqual(sources.locate(_SOURCE, 'a.txt'), cached)
    self.assertLen(self.asked, 1)
    self.assertFalse(env.exists() or given.exists())

  def test_empty_variable_counts_as_unset(self):
    os.environ[sources.DATA_DIR_VARIABLE] = ''
    cached = self._write(self.cache)
    self.assertEqual(sources.locate(_SOURCE, 'a.txt'), cached)

  def test_accepts_every_listed_checksum(self):
    path = self._write(self.given, _OTHER)
    self.assertEqual(sources.locate(_SOURCE, 'a.txt', self.given), path)

  @parameterized.product(
    content=(b'goo', b'gooD', b''), where=('given', 'env', 'cache')
  )
  def test_wrong_checksum_raises_and_leaves_the_file(self, content, where):
    self.served[_SOURCE.files['a.txt'].urls[0]] = _GOOD
    path = self._write(getattr(self, where), content)
    found = hashlib.sha256(content).hexdigest()
    expected = _SOURCE.files['a.txt'].sha256[0]
    data_dir = self.given if where == 'given' else None
    with self.assertRaisesRegex(
      ValueError, f'{path} .*{found}.*{expected}.*Replace it'
    ):
      sources.locate(_SOURCE, 'a.txt', data_dir)
    self.assertEqual(path.read_bytes(), content)
    self.assertEmpty(self.asked)

  def test_tries_mirrors_in_order_and_checks_what_they_serve(self):
    first, second = _SOURCE.files['a.txt'].urls
    self.served = {first: b'tampered', second: _GOOD}
    path = sources.locate(_SOURCE, 'a.txt')
    self.assertEqual(self.asked, [first, second])
    self.assertEqual(path.read_bytes(), _GOOD)
    self.assertEqual(os.listdir(path.parent), ['a.txt'])

  def test_not_found_says_what_to_do_and_leaves_nothing_behind(self):
    entry = _SOURCE.files['a.txt']
    self.served[entry.urls[0]] = b'trunc'
    with self.assertRaises(FileNotFoundError) as caught:
      sources.locate(_SOURCE, 'a.txt', self.given)
    message = str(caught.exception)
    for part in (
      f'a.txt (sha256 {entry.sha256[0]} or {entry.sha256[1]})',
      str(self.given / 'toy' / 'a.txt'),
      str(self.cache / 'toy' / 'a.txt'),
      f'{entry.urls[0]} (ValueError), {entry.urls[1]} (ConnectionError)',
      f'`curl -fL --create-dirs -o DIR/toy/a.txt {entry.urls[0]}`',
      '--data_dir=DIR',
      'PRIVJAX_DATA_DIR=DIR',
    ):
      self.assertIn(part, message)
    self.assertEmpty(os.listdir(self.cache / 'toy'))

  def test_unwritable_cache_is_a_failed_download(self):
    self.served[_SOURCE.files['a.txt'].urls[0]] = _GOOD
    self.cache.write_bytes(b'a file where the folder should be')
    with self.assertRaises(FileNotFoundError):
      sources.locate(_SOURCE, 'a.txt')

  def test_unknown_filename(self):
    with self.assertRaisesRegex(ValueError, "filename must be one of 'a.txt'"):
      sources.locate(_SOURCE, 'b.txt')


def _urls(lines, filename):
  """Reads mirrors, to which the name is appended, and `address name` lines."""
  pairs = [line.split() for line in lines]
  return tuple(
    pair[0] if pair[1:] else pair[0] + filename
    for pair in pairs
    if pair[1:] in ([], [filename])
  )


class SourcesTest(parameterized.TestCase):
  @parameterized.named_parameters((s.name, s) for s in sources.SOURCES)
  def test_metadata_agrees(self, source):
    path = _REPOSITORY / 'third_party' / source.name / 'METADATA'
    metadata = collections.defaultdict(list)
    for line in path.read_text().splitlines():
      if line and not line.startswith('#'):
        key, value = line.split(': ', maxsplit=1)
        metadata[key].append(value)
    self.assertEqual(metadata['name'], [source.name])
    self.assertEqual(metadata['version'], [source.version])
    self.assertEqual(metadata['license'], [source.license])
    self.assertEqual(metadata['citation'], [source.citation])
    self.assertTrue(metadata['takes'] and metadata['homepage'])
    self.assertCountEqual(
      metadata['sha256'],
      [f'{h} {name}' for name, f in source.files.items() for h in f.sha256],
    )
    for name, file in source.files.items():
      self.assertEqual(_urls(metadata['url'], name), file.urls)

  @parameterized.named_parameters((s.name, s) for s in sources.SOURCES)
  def test_records_are_whole(self, source):
    for name, file in source.files.items():
      self.assertNotEmpty(file.urls, name)
      self.assertNotEmpty(file.sha256, name)
      for digest in file.sha256:
        self.assertRegex(digest, '^[0-9a-f]{64}$')
