"""Tests of parameter files."""

import hashlib
import pathlib
import pickle
import tempfile

from absl.testing import parameterized
import jax
import numpy as np

from privjax import prng
from privjax.models import gcn
from privjax.models import params_io


def _params(seed=0):
  rng = prng.generator(seed, 'params_io_test')
  draw = lambda *shape: jax.numpy.asarray(rng.normal(size=shape), np.float32)
  return {
    'hidden': {'kernel': draw(3, 4), 'bias': draw(4)},
    'output': {'kernel': draw(4, 2), 'bias': draw(2)},
  }


class _Marker:
  """Creates a file when it is unpickled."""

  def __init__(self, path):
    self._path = str(path)

  def __reduce__(self):
    return pathlib.Path.touch, (pathlib.Path(self._path),)


class ParamsIoTest(parameterized.TestCase):
  def setUp(self):
    super().setUp()
    directory = tempfile.TemporaryDirectory()
    self.addCleanup(directory.cleanup)
    self.directory = pathlib.Path(directory.name)
    self.path = self.directory / 'params.npz'

  @parameterized.parameters(np.float32, np.float64)
  def test_round_trip(self, dtype):
    params = jax.tree.map(lambda x: np.asarray(x, dtype), _params())
    digest = params_io.save(self.path, params)
    loaded = params_io.load(self.path, sha256=digest)
    self.assertEqual(jax.tree.structure(loaded), jax.tree.structure(params))
    jax.tree.map(
      lambda x, y: np.testing.assert_array_equal(x, y, strict=True),
      loaded,
      params,
    )
    gcn.model(loaded)

  def test_digest_is_of_the_file(self):
    digest = params_io.save(self.path, _params())
    content = self.path.read_bytes()
    self.assertEqual(digest, hashlib.sha256(content).hexdigest())
    self.assertEqual(list(self.directory.iterdir()), [self.path])

  def test_digest_depends_on_the_content_only(self):
    params = _params()
    backwards = {
      layer: dict(reversed(params[layer].items()))
      for layer in ('output', 'hidden')
    }
    on_host = jax.tree.map(np.asarray, params)
    digests = {
      params_io.save(self.path, params),
      params_io.save(self.path, params),
      params_io.save(self.directory / 'other.npz', backwards),
      params_io.save(self.path, on_host),
    }
    self.assertLen(digests, 1)

  def test_digest_depends_on_the_content(self):
    params = jax.tree.map(np.asarray, _params())
    bit = np.nextafter(params['hidden']['kernel'], np.float32(2))
    edited = {**params, 'hidden': {**params['hidden'], 'kernel': bit}}
    wider = jax.tree.map(np.float64, params)
    renamed = {'first': params['hidden'], 'output': params['output']}
    digests = [
      params_io.save(self.path, each)
      for each in (params, edited, wider, renamed)
    ]
    self.assertLen(set(digests), 4)

  def test_refuses_another_digest(self):
    params_io.save(self.path, _params())
    wanted = '0' * 64
    with self.assertRaisesRegex(ValueError, f'path must .* {wanted}, but .*'):
      params_io.load(self.path, sha256=wanted)

  def test_refuses_a_changed_file(self):
    digest = params_io.save(self.path, _params())
    params_io.save(self.path, _params(1))
    with self.assertRaisesRegex(ValueError, f'path must .* {digest}, but .*'):
      params_io.load(self.path, sha256=digest)

  @parameterized.parameters(0, 1, 10, 100, -1)
  def test_refuses_a_truncated_file(self, length):
    params_io.save(self.path, _params())
    self.path.write_bytes(self.path.read_bytes()[:length])
    with self.assertRaisesRegex(ValueError, 'path must be a parameter file'):
      params_io.load(self.path)

  def test_refuses_an_array(self):
    with self.path.open('wb') as file:
      np.save(file, np.ones(3))
    with self.assertRaisesRegex(ValueError, 'path must be a parameter file'):
      params_io.load(self.path)

  @parameterized.parameters('object_array', 'pickle')
  def test_never_unpickles(self, kind):
    marker = self.directory / 'unpickled'
    payload = np.array([_Marker(marker)], object)
    if kind == 'object_array':
      np.savez(self.path, **{'hidden/kernel': payload})
    else:
      self.path.write_bytes(pickle.dumps(payload))
    with self.assertRaisesRegex(ValueError, 'path must be a parameter file'):
      params_io.load(self.path)
    self.assertFalse(marker.exists())

  def test_the_payload_is_live(self):
    marker = self.directory / 'unpickled'
    pickle.loads(pickle.dumps(_Marker(marker)))
    self.assertTrue(marker.exists())

  def test_missing_file(self):
    with self.assertRaises(FileNotFoundError):
      params_io.load(self.directory / 'absent.npz')
