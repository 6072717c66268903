"""The public side of a release, its digests and its file."""

import dataclasses
import hashlib
import json
import pathlib

from absl.testing import parameterized
import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse

from privjax.release import public_objects
from privjax.release import verify_certificate
from tests.counterfactual import cases
from tests.release import neighbor_runs

_CASE = cases.random_case(2)


def _public(case=_CASE, **kwargs):
  return public_objects.PublicObjects(
    **{
      'snapshot': case.snapshot,
      'features': case.features,
      'model': case.model,
      'first_layer': case.params['hidden']['kernel'],
      'config': cases.CONFIG,
      'capacity': cases.NEIGHBORS,
      **kwargs,
    }
  )


class DigestTest(parameterized.TestCase):
  def test_is_a_plain_sha256_of_header_and_bytes(self):
    content = b'["a","<i8",[2]]\n' + (1).to_bytes(8, 'little')
    content += (2).to_bytes(8, 'little') + b'["b","|b1",[]]\n\x01'
    self.assertEqual(
      public_objects.array_digest({'b': np.array(True), 'a': np.array([1, 2])}),
      hashlib.sha256(content).hexdigest(),
    )

  @parameterized.named_parameters(
    ('value', {'a': np.array([1, 3])}),
    ('dtype', {'a': np.array([1, 2], np.int32)}),
    ('shape', {'a': np.array([[1, 2]])}),
    ('name', {'b': np.array([1, 2])}),
    ('more', {'a': np.array([1, 2]), 'b': np.array(0)}),
  )
  def test_covers(self, other):
    own = public_objects.array_digest({'a': np.array([1, 2])})
    self.assertNotEqual(public_objects.array_digest(other), own)

  def test_does_not_depend_on_storage(self):
    array = np.arange(6.0).reshape(2, 3)
    digest = public_objects.array_digest({'a': array})
    for same in (array.astype('>f8'), np.asfortranarray(array)):
      self.assertEqual(public_objects.array_digest({'a': same}), digest)

  def test_each_object_has_its_own_digest(self):
    own = _public().digests()
    self.assertEqual(
      set(own), {'snapshot', 'features', 'backbone', 'first_layer'}
    )
    kernel = _CASE.params['hidden']['kernel']
    for name, changed in (
      ('snapshot', _public(snapshot=cases.snapshot_of([(0, 1)]))),
      ('features', _public(features=_CASE.features * 2)),
      ('backbone', _public(model=cases.random_case(3).model)),
      ('first_layer', _public(first_layer=kernel + 1)),
    ):
      other = changed.digests()
      self.assertEqual([key for key in own if own[key] != other[key]], [name])

  def test_device_arrays_and_index_widths_do_not_matter(self):
    params = jax.tree.map(jnp.asarray, _CASE.params)
    features = _CASE.features.copy()
    features.indices = features.indices.astype(np.int64)
    features.indptr = features.indptr.astype(np.int64)
    case = _CASE._replace(params=params, features=features)
    self.assertEqual(_public(case).digests(), _public().digests())

  def test_the_order_of_parameters_does_not_matter(self):
    params = {
      name: dict(reversed(layer.items()))
      for name, layer in reversed(_CASE.params.items())
    }
    case = _CASE._replace(params=params)
    self.assertEqual(_public(case).digests(), _public().digests())


class SupportDigestTest(parameterized.TestCase):
  @parameterized.parameters(*range(6))
  def test_names_all_candidates_in_order(self, seed):
    case = cases.random_case(seed)
    support = case.support(cases.TWO_HOP)
    universe = support.universe
    edges, masks = [], []
    for row, valid in zip(support.edge_subsets, support.edge_valid):
      if valid:
        edges.append([universe.pairs[i].tolist() for i in np.flatnonzero(row)])
    for row, valid in zip(support.feature_subsets, support.feature_valid):
      if valid:
        masks.append([int(universe.features[i]) for i in np.flatnonzero(row)])
    text = json.dumps([case.target, edges, masks], separators=(',', ':'))
    self.assertEqual(
      public_objects.support_digest(support),
      hashlib.sha256(text.encode()).hexdigest(),
    )
    self.assertEqual(len(edges) * len(masks), support.support_size)

  def test_does_not_depend_on_padding(self):
    case = cases.make([(0, 1), (0, 2)])
    wide = dataclasses.replace(cases.CONFIG, num_pairs=9, num_features=9)
    digest = public_objects.support_digest(case.support(wide))
    less = dataclasses.replace(wide, num_pairs=4)
    self.assertEqual(public_objects.support_digest(case.support(less)), digest)

  def test_differs_between_targets_and_bounds(self):
    case = cases.make([], features=cases.csr(np.zeros((8, 6))))
    one, other = case.support(), case._replace(target=1).support()
    self.assertEqual((one.support_size, other.support_size), (1, 1))
    digest = public_objects.support_digest
    self.assertNotEqual(digest(one), digest(other))
    fewer = dataclasses.replace(cases.CONFIG, max_edges=1)
    self.assertNotEqual(digest(_CASE.support()), digest(_CASE.support(fewer)))


class FileTest(parameterized.TestCase):
  def setUp(self):
    super().setUp()
    folder = neighbor_runs.folder()
    self.addCleanup(folder.cleanup)
    self.path = pathlib.Path(folder.name) / 'public.npz'

  def test_holds_every_array_and_nothing_else(self):
    public = _public()
    public.save(self.path)
    with np.load(self.path, allow_pickle=False) as saved:
      found = dict(saved)
    expected = {
      f'{group}.{name}': array
      for group, arrays in public.arrays().items()
      for name, array in arrays.items()
    }
    self.assertEqual(set(found), set(expected))
    for name, array in expected.items():
      self.assertEqual(found[name].dtype, array.dtype)
      np.testing.assert_array_equal(found[name], array)
    for group, digest in public.digests().items():
      self.assertEqual(verify_certificate._array_digest(found, group), digest)

  def test_equal_objects_give_equal_bytes(self):
    _public().save(self.path)
    first = self.path.read_bytes()
    _public().save(self.path)
    self.assertEqual(self.path.read_bytes(), first)


class ChecksTest(parameterized.TestCase):
  @parameterized.named_parameters(
    ('rows', {'features': _CASE.features[:5]}, 'features'),
    ('dense', {'features': _CASE.features.toarray()}, 'features'),
    ('csc', {'features': scipy.sparse.csc_array(_CASE.features)}, 'features'),
    ('infinite', {'features': _CASE.features * np.inf}, 'features'),
    ('kernel_rows', {'first_layer': np.ones((7, 5))}, 'first_layer'),
    ('kernel_nan', {'first_layer': np.full((6, 5), np.nan)}, 'first_layer'),
  )
  def test_refuses(self, changed, words):
    with self.assertRaisesRegex(ValueError, words):
      _public(**changed)
