"""Tests of frozen backbones, of how they are made and of their worlds."""

import copy
import dataclasses
import hashlib
import json
import os
import pathlib
import shutil
import unittest.mock

from absl.testing import parameterized
import jax
import numpy as np
import pytest

from experiments import backbones
from experiments import cfs_frontier
from experiments import train_backbones
from experiments import worlds
from privjax import counterfactual
from privjax import data
from privjax import graphs
from privjax import models
from privjax import prng
from privjax.data import sources
from privjax.models import gcn
from tests.experiments import harness

_DATA_DIR = os.environ.get(sources.DATA_DIR_VARIABLE)
_COMMITTED = [
  (dataset, seed) for dataset in data.DATASETS for seed in (0, 1, 2)
]
_NUM_TEST_NODES = 1000


def _manifest(dataset, seed):
  path = backbones.ARTIFACTS / f'{backbones.name(dataset, seed)}.json'
  return json.loads(path.read_text())


def _accuracies(dataset):
  """Recomputes the test accuracies of the committed backbones."""
  graph = graphs.to_message_graph(
    dataset.graph.graph, dataset.features.toarray()
  )
  accuracies = []
  for seed in (0, 1, 2):
    model, _ = backbones.load(dataset.name, seed)
    predicted = np.asarray(model.apply_fn(model.params, graph)).argmax(axis=1)
    correct = predicted == dataset.labels
    accuracies.append(correct[dataset.test_index].mean())
  return accuracies


def _recorded(dataset):
  return [_manifest(dataset.name, i)['test_accuracy'] for i in (0, 1, 2)]


class CommittedTest(parameterized.TestCase):
  def test_every_file_has_its_pair(self):
    names = {backbones.name(*each) for each in _COMMITTED}
    for suffix in ('.npz', '.json'):
      found = {path.stem for path in backbones.ARTIFACTS.glob(f'*{suffix}')}
      self.assertEqual(found, names)
    self.assertLen(list(backbones.ARTIFACTS.iterdir()), 2 * len(names))

  @parameterized.parameters(*_COMMITTED)
  def test_digest(self, dataset, seed):
    manifest = _manifest(dataset, seed)
    self.assertEqual((manifest['dataset'], manifest['seed']), (dataset, seed))
    model, sha256 = backbones.load(dataset, seed)
    path = backbones.ARTIFACTS / f'{backbones.name(dataset, seed)}.npz'
    content = path.read_bytes()
    self.assertEqual(hashlib.sha256(content).hexdigest(), sha256)
    self.assertEqual(manifest['sha256'], sha256)
    self.assertIs(model.apply_fn, gcn.apply)

  def test_accuracy_on_the_embedded_graph(self):
    dataset = worlds.load_dataset('embedded', None)
    self.assertLen(dataset.test_index, _NUM_TEST_NODES)
    self.assertEqual(_accuracies(dataset), _recorded(dataset))

  # The accuracies that PrivCFS states for its backbones, to one point.
  @parameterized.parameters(('cora', 0.809), ('citeseer', 0.682))
  @pytest.mark.realdata
  @pytest.mark.skipif(
    not _DATA_DIR,
    reason=f'needs the Planetoid files: set {sources.DATA_DIR_VARIABLE}',
  )
  def test_accuracy_on_real_data(self, name, published):
    dataset = worlds.load_dataset(name, _DATA_DIR)
    found = _accuracies(dataset)
    self.assertEqual(found, _recorded(dataset))
    for accuracy in found:
      self.assertLessEqual(abs(accuracy - published), 0.01)


class LoadTest(parameterized.TestCase):
  def setUp(self):
    super().setUp()
    self.folder = harness.temporary_folder(self)
    self.enterContext(
      unittest.mock.patch.object(backbones, 'cache', lambda: self.folder)
    )

  def copy(self, name):
    for suffix in ('.npz', '.json'):
      shutil.copy(
        backbones.ARTIFACTS / f'embedded_seed0{suffix}',
        self.folder / f'{name}{suffix}',
      )

  def test_missing_backbone_names_the_command(self):
    with self.assertRaisesRegex(
      FileNotFoundError,
      'no backbone for embedded with seed 77: run python -m '
      'experiments.train_backbones --datasets=embedded --seeds=77$',
    ):
      backbones.load('embedded', 77)

  def test_finds_what_the_cache_holds(self):
    self.copy('embedded_seed77')
    _, sha256 = backbones.load('embedded', 77)
    self.assertEqual(sha256, _manifest('embedded', 0)['sha256'])

  def test_committed_backbones_come_first(self):
    self.copy('embedded_seed1')
    _, sha256 = backbones.load('embedded', 1)
    self.assertEqual(sha256, _manifest('embedded', 1)['sha256'])

  def test_another_file_than_the_manifest_says(self):
    self.copy('embedded_seed77')
    shutil.copy(
      backbones.ARTIFACTS / 'embedded_seed1.npz',
      self.folder / 'embedded_seed77.npz',
    )
    with self.assertRaisesRegex(
      ValueError, f'sha256 {_manifest("embedded", 0)["sha256"]}, but .*seed77'
    ):
      backbones.load('embedded', 77)

  def test_a_truncated_file(self):
    self.copy('embedded_seed77')
    path = self.folder / 'embedded_seed77.npz'
    path.write_bytes(path.read_bytes()[:-1])
    with self.assertRaisesRegex(ValueError, 'must have sha256'):
      backbones.load('embedded', 77)


class TrainBackbonesTest(parameterized.TestCase):
  def setUp(self):
    super().setUp()
    self.folder = harness.temporary_folder(self) / 'backbones'
    # Two steps of real training compile for seconds: see the slow test.
    self.fitted = self.enterContext(
      unittest.mock.patch.object(
        models, 'train', return_value=backbones.load('embedded', 0)[0].params
      )
    )

  def train(self, *args):
    return harness.call(
      train_backbones.main, '--smoke', f'--artifacts_dir={self.folder}', *args
    )

  def read(self):
    return {path.name: path.read_bytes() for path in self.folder.iterdir()}

  def test_writes_what_load_finds(self):
    outcome = self.train('--seeds=5,6')
    self.assertEqual(outcome.code, 0, outcome.err)
    self.assertEqual(
      set(self.read()),
      {f'embedded_seed{i}.{kind}' for i in (5, 6) for kind in ('npz', 'json')},
    )
    for call, seed in zip(self.fitted.call_args_list, (5, 6)):
      key = jax.random.key_data(call.args[0])
      np.testing.assert_array_equal(key, jax.random.key_data(prng.key(seed)))
      self.assertEqual(call.kwargs['config'].num_steps, 2)
    manifest = json.loads(self.read()['embedded_seed5.json'])
    self.assertEqual(
      (manifest['dataset'], manifest['seed'], manifest['num_steps']),
      ('embedded', 5, 2),
    )
    accuracy = _manifest('embedded', 0)['test_accuracy']
    self.assertEqual(manifest['test_accuracy'], accuracy)
    self.assertIn(f'embedded seed 5: test accuracy {accuracy:.3f}', outcome.out)
    with unittest.mock.patch.object(backbones, 'cache', lambda: self.folder):
      _, sha256 = backbones.load('embedded', 5)
    self.assertEqual(sha256, manifest['sha256'])

  def test_keeps_what_exists_unless_told_to_overwrite(self):
    self.train('--seeds=5')
    first = self.read()
    path = self.folder / 'embedded_seed5.json'
    path.write_text('kept')
    outcome = self.train('--seeds=5')
    self.assertEqual(outcome.code, 0)
    self.assertEqual(outcome.out, f'{path} exists\n')
    self.assertEqual(path.read_text(), 'kept')
    self.assertEqual(self.train('--seeds=5', '--overwrite').code, 0)
    self.assertEqual(self.read(), first)
    self.assertEqual(self.fitted.call_count, 2)

  def test_trains_in_full_without_smoke(self):
    harness.call(
      train_backbones.main, '--seeds=5', f'--artifacts_dir={self.folder}'
    )
    config = self.fitted.call_args.kwargs['config']
    self.assertEqual(config, models.TrainingConfig())

  def test_a_smoke_run_stays_out_of_the_cache(self):
    with unittest.mock.patch.object(backbones, 'cache', lambda: self.folder):
      outcome = harness.call(train_backbones.main, '--smoke', '--seeds=5')
    self.assertEqual(outcome.code, 2)
    self.assertStartsWith(outcome.err, 'error: smoke needs artifacts_dir')
    self.assertFalse(self.folder.exists())

  def test_unwritable_folder(self):
    self.folder.write_text('a file')
    outcome = self.train('--seeds=5')
    self.assertEqual(outcome.code, 1)
    self.assertStartsWith(outcome.err, 'error: ')
    self.assertIn(str(self.folder), outcome.err)


@pytest.mark.slow
class RealTrainingTest(parameterized.TestCase):
  def test_equal_seeds_make_equal_files(self):
    contents = []
    for _ in range(2):
      folder = harness.temporary_folder(self)
      outcome = harness.call(
        train_backbones.main,
        '--smoke',
        '--seeds=5',
        f'--artifacts_dir={folder}',
      )
      self.assertEqual(outcome.code, 0, outcome.err)
      contents.append({p.name: p.read_bytes() for p in folder.iterdir()})
    self.assertLen(contents[0], 2)
    self.assertEqual(
      contents[0]['embedded_seed5.npz'], contents[1]['embedded_seed5.npz']
    )


class WorldsTest(parameterized.TestCase):
  def test_world(self):
    world = worlds.load('embedded', 0, None)
    num_nodes = world.dataset.graph.graph.num_nodes
    num_hidden = world.model.params['hidden']['kernel'].shape[1]
    self.assertEqual(world.projected.shape, (num_nodes, num_hidden))
    self.assertEqual(world.margin.shape, (num_nodes,))
    np.testing.assert_array_equal(
      world.projected,
      counterfactual.project(world.model, world.dataset.features),
    )
    # The least certain node is less certain than the rest.
    self.assertLess(world.margin.min(), 0.01)
    self.assertGreater(np.median(world.margin), 0.1)

  def test_snapshots_are_nested(self):
    half, most = (
      worlds.load_snapshot('embedded', 0, rho, None).graph
      for rho in ('0.5', '0.7')
    )
    self.assertTrue(most.has_pairs(half.pairs).all())
    self.assertLess(half.num_edges, most.num_edges)

  def test_inputs_name_every_file(self):
    found = worlds.inputs(
      cfs_frontier.Config(datasets=('embedded',), seeds=(0, 2)), None
    )
    self.assertEqual(
      set(found), {'embedded', 'embedded_seed0', 'embedded_seed2'}
    )
    self.assertEqual(
      found['embedded_seed2'], _manifest('embedded', 2)['sha256']
    )
    for digest in found.values():
      self.assertRegex(digest, '^[0-9a-f]{64}$')

  @parameterized.parameters(
    'features', 'labels', 'train_index', 'test_index', 'graph'
  )
  def test_the_digest_sees_every_array(self, field):
    dataset = worlds.load_dataset('embedded', None)
    value = getattr(dataset, field)
    if field == 'features':
      changed = value.copy()
      changed.data[0] += 1
    elif field == 'graph':
      keep = np.arange(value.graph.num_edges - 1)
      changed = graphs.PrivateGraph(graphs.subgraph_of_edges(value.graph, keep))
    else:
      changed = value[::-1]
    other = dataclasses.replace(dataset, **{field: changed})
    self.assertNotEqual(worlds._digest(other), worlds._digest(dataset))
    same = dataclasses.replace(dataset, **{field: copy.deepcopy(value)})
    self.assertEqual(worlds._digest(same), worlds._digest(dataset))

  def test_missing_data_names_the_file(self):
    folder = harness.temporary_folder(self)
    empty = pathlib.Path(folder)
    with (
      unittest.mock.patch.object(
        sources, 'locate', side_effect=FileNotFoundError('ind.cora.x')
      ),
      self.assertRaisesRegex(FileNotFoundError, 'ind.cora.x'),
    ):
      worlds.load_dataset('cora', str(empty))
