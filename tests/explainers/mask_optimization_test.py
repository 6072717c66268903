"""Mask optimization: soft masks, validity, batching, degenerate targets."""

import dataclasses
from unittest import mock

from absl.testing import parameterized
import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse

from privjax import explainers
from privjax import graphs
from privjax import models
from privjax.explainers import field_batch
from privjax.explainers import mask_optimization
from privjax.explainers import masked_field
from tests.counterfactual import cases
from tests.explainers import checks

_CONFIG = explainers.MaskConfig(num_steps=60)


def _field(case, space):
  """Returns the model of its rows and a batch of one."""
  of_rows, fields = masked_field.build_all(*checks.about(case), [space])
  ((_, batch),) = field_batch.batches(fields, 1)
  return of_rows, batch


def _padded(batch, mask):
  edge, feature = map(np.array, field_batch.keep_all(batch))
  edge[0, : len(mask.edge)] = mask.edge
  feature[0, : len(mask.feature)] = mask.feature
  return edge, feature


def _whole(apply_fn, graph, dense):
  with jax.enable_x64(True):
    return apply_fn({}, graphs.to_message_graph(graph, dense))


def _triangles(params, graph):
  """Counts the edges among the neighbors of each node; they reach one hop."""
  del params
  size = len(graph.nodes['degree'])
  ends = (graph.receivers, graph.senders)
  adjacent = jnp.zeros((size, size)).at[ends].add(graph.edges['mask'])
  count = ((adjacent @ adjacent) * adjacent).sum(1) / 2
  return jnp.stack([count, graph.nodes['features'].sum(1), count * 0 + 1.5], 1)


def _mean(params, graph):
  """Divides by the number of messages: 0 / 0 where there are none."""
  del params
  mask, x = graph.edges['mask'], graph.nodes['features']
  total = lambda values: (
    jnp.zeros((len(x), values.shape[1])).at[graph.receivers].add(values)
  )
  for _ in range(2):
    x = total(mask[:, None] * x[graph.senders]) / total(mask[:, None])
  return x


class SoftMaskTest(parameterized.TestCase):
  def test_a_soft_mask_is_a_weighted_edge(self):
    """Equal to a dense forward on the weighted symmetric adjacency."""
    case = cases.random_case(2, density=0.4)
    space = checks.space_of(case)
    of_rows, field = _field(case, space)
    rng = np.random.default_rng(0)
    soft = field_batch.split(rng.random(space.num_operations), space)
    found = field_batch.logits(
      of_rows.apply_fn, of_rows.params, field, *_padded(field, soft)
    )
    weight = np.eye(cases.NUM_NODES)
    for pair in case.private.graph.pairs.tolist():
      weight[tuple(pair)] = weight[tuple(pair[::-1])] = 1
    for pair, value in zip(space.pairs.tolist(), soft.edge):
      weight[tuple(pair)] = weight[tuple(pair[::-1])] = value
    dense = case.features.toarray()
    dense[case.target, space.features] *= soft.feature
    degree = weight.sum(axis=1)
    mixing = weight / np.sqrt(np.outer(degree, degree))
    hidden, output = case.params['hidden'], case.params['output']
    inner = np.maximum(mixing @ dense @ hidden['kernel'] + hidden['bias'], 0)
    expected = mixing @ inner @ output['kernel'] + output['bias']
    np.testing.assert_allclose(found[0], expected[case.target], atol=1e-12)

  def test_other_models_read_the_features_themselves(self):
    """The general path and the projected one are the same function."""
    case = cases.random_case(2, density=0.4)
    space = checks.space_of(case)
    masks = checks.random_masks(space, 0)
    model, graph, features = checks.about(case)
    other = model._replace(apply_fn=lambda p, g: model.apply_fn(p, g))
    args = (graph, features, [space] * len(masks), masks)
    own = explainers.check_masks(model, *args)
    same = explainers.check_masks(other, *args)
    np.testing.assert_array_equal(own.new, same.new)
    np.testing.assert_allclose(own.gap, same.gap, atol=1e-12)

  @parameterized.parameters('triangles', 'mean')
  def test_models_that_read_every_edge_of_the_field(self, name):
    """A cut that leaves a GCN alone would change these two."""
    apply_fn, num_hops = {'triangles': (_triangles, 1), 'mean': (_mean, 2)}[
      name
    ]
    case = cases.random_case(2, density=0.4)
    _, graph, features = checks.about(case)
    model = models.NodeModel(apply_fn, {}, num_hops)
    dense = features.toarray()
    targets = range(cases.NUM_NODES)
    before = np.asarray(_whole(apply_fn, graph, dense))
    cuts, expected = [], []
    for target in targets:
      pairs = [p for p in map(tuple, graph.pairs.tolist()) if target in p][:1]
      cuts.append(explainers.Intervention(target=target, pairs=tuple(pairs)))
      edited = explainers.apply_intervention(graph, features, cuts[-1])[0]
      expected.append(_whole(apply_fn, edited, dense)[target])
    labels = explainers.predict(model, graph, features, cuts)
    np.testing.assert_array_equal(labels.original, before.argmax(1))
    np.testing.assert_array_equal(labels.new, np.argmax(expected, axis=1))
    spaces = [
      explainers.receptive_field_space(graph, features, t, num_hops=num_hops)
      for t in targets
    ]
    for one in explainers.search(model, graph, features, spaces):
      self.assertTrue(np.isfinite(np.concatenate(one.logits)).all())

  def test_gradient_equals_differences(self):
    case = cases.random_case(2, density=0.4)
    space = checks.space_of(case)
    of_rows, field = _field(case, space)
    apply_fn, params = of_rows.apply_fn, of_rows.params
    clean = field_batch.clean_logits(apply_fn, params, field)
    loss = jax.jit(
      lambda x: mask_optimization.objective(
        x, apply_fn, params, field, clean, 1e-3
      )[0]
    )
    start = mask_optimization.start(field, 1.0)
    slope = jax.jit(jax.grad(loss))(start)
    self.assertFalse(np.asarray(slope.edge)[~field.pair_valid].any())
    step = 1e-6
    for index in range(len(space.pairs)):
      moved = lambda sign, k=index: start._replace(
        edge=start.edge.at[0, k].add(sign * step)
      )
      difference = (loss(moved(1)) - loss(moved(-1))) / (2 * step)
      self.assertAlmostEqual(
        float(slope.edge[0, index]), float(difference), delta=1e-8
      )


class SearchTest(parameterized.TestCase):
  def test_every_target_at_once_equals_one_by_one(self):
    case = cases.random_case(5, density=0.25)
    spaces = [
      checks.space_of(case._replace(target=target)) for target in range(8)
    ]
    about = checks.about(case)
    together = explainers.search(*about, spaces, config=_CONFIG)
    alone = explainers.search(*about, spaces, config=_CONFIG, batch_size=1)
    self.assertIn(True, [bool(one.valid) for one in together])
    for first, second in zip(together, alone):
      self.assertEqual(bool(first.valid), bool(second.valid))
      jax.tree.map(np.testing.assert_array_equal, first.keep, second.keep)
      jax.tree.map(
        lambda a, b: np.testing.assert_allclose(a, b, atol=1e-9),
        first.logits,
        second.logits,
      )

  def test_batches_of_a_size_trace_once(self):
    traces = []
    config = dataclasses.replace(_CONFIG, num_steps=3)
    case = cases.random_case(5, density=0.25)
    optimize = mask_optimization.optimize

    def count(*args):
      traces.append(1)
      return optimize(*args)

    mask_optimization.optimize = count
    try:
      for first in (0, 4, 3):
        spaces = [
          checks.space_of(case._replace(target=target))
          for target in range(first, first + 4)
        ]
        explainers.search(*checks.about(case), spaces, config=config)
      self.assertLen(traces, 1)
    finally:
      mask_optimization.optimize = optimize

  def test_finds_the_only_flip(self):
    """One edge carries the label: its deletion is found, nothing else is."""
    rows = np.zeros((cases.NUM_NODES, cases.NUM_FEATURES))
    rows[0, 0], rows[1, 1] = 1, 3
    case = cases.make([(0, 1)], target=0, features=cases.csr(rows))
    layer = lambda shape: {'kernel': np.eye(*shape), 'bias': np.zeros(shape[1])}
    hidden = layer((cases.NUM_FEATURES, cases.NUM_HIDDEN))
    output = layer((cases.NUM_HIDDEN, cases.NUM_CLASSES))
    case = case._replace(params={'hidden': hidden, 'output': output})
    space = checks.space_of(case)
    (found,) = explainers.explain(*checks.about(case), [space], config=_CONFIG)
    self.assertTrue(found.valid)
    self.assertEqual(found.intervention.pairs, ((0, 1),))
    self.assertEqual(found.intervention.size, 1)
    self.assertEqual((found.original_label, found.new_label), (1, 0))
    self.assertEqual((found.num_steps, found.currency), (60, 'edges+features'))

  @parameterized.parameters('isolated', 'degree 1')
  def test_degenerate_targets(self, name):
    pairs = [(1, 2), (2, 3)] if name == 'isolated' else [(0, 1), (1, 2)]
    case = cases.make(pairs, target=0)
    space = checks.space_of(case, feature_masks=False)
    self.assertLen(space.pairs, 0 if name == 'isolated' else 2)
    (found,) = explainers.explain(*checks.about(case), [space], config=_CONFIG)
    if name == 'isolated':
      self.assertFalse(found.valid)
      self.assertEqual(found.intervention.size, 0)
    empty = explainers.Intervention(target=0)
    before = np.argmax(checks.oracle_logits(case, empty))
    after = np.argmax(checks.oracle_logits(case, found.intervention))
    self.assertEqual(found.valid, bool(before != after))

  def test_find_interventions(self):
    case = cases.random_case(5, density=0.25)
    about = checks.about(case)
    found = explainers.find_interventions(*about, range(8), config=_CONFIG)
    self.assertIn(None, found + [None])
    chosen = [one for one in found if one is not None]
    self.assertNotEmpty(chosen)
    labels = explainers.predict(*about, chosen)
    self.assertTrue((labels.new != labels.original).all())

  def test_non_finite_logits_do_not_flip(self):
    case = cases.random_case(5, density=0.25)
    bad = case.model._replace(
      apply_fn=lambda p, g: jnp.full((len(g.nodes['degree']), 3), jnp.nan)
    )
    spaces = [checks.space_of(case)]
    masks = [checks.random_masks(spaces[0], 0)[1]]
    labels = explainers.check_masks(
      bad, case.private.graph, case.features, spaces, masks
    )
    self.assertEqual(labels.new[0], labels.original[0])

  def test_large_fields_go_into_small_batches(self):
    """16 leaves of a hub: each field is the whole star."""
    size = 4_000
    star = [[0, leaf] for leaf in range(1, size)]
    graph, _ = graphs.from_pairs(size, star)
    features = scipy.sparse.csr_array((size, cases.NUM_FEATURES))
    model = cases.random_case(0).model
    spaces = [
      explainers.OperationSpace(
        target=leaf, pairs=np.array([[0, leaf]]), features=np.zeros(0, int)
      )
      for leaf in range(1, 17)
    ]
    _, fields = masked_field.build_all(model, graph, features, spaces)
    with mock.patch.object(field_batch, '_MOST_NUMBERS', 2**16):
      batches = list(field_batch.batches(fields, 16))
    limit = field_batch.bucket(2**16 // fields[0].rows.shape[1])
    self.assertGreater(len(batches), 1)
    for _, batch in batches:
      self.assertLessEqual(len(batch.graph.nodes['degree']), limit)
    indices = np.concatenate([index for index, _ in batches])
    np.testing.assert_array_equal(np.sort(indices), np.arange(16))

  @parameterized.parameters(
    (dict(pairs=np.array([[1, 0]])), '^pairs must be i < j'),
    (dict(pairs=np.array([[0, 1], [0, 1]])), '^pairs must be distinct'),
    (dict(features=np.array([2, 2])), '^features must be distinct'),
  )
  def test_refuses_a_space_that_names_twice(self, changed, message):
    case = cases.random_case(5, density=0.25)
    space = dataclasses.replace(checks.space_of(case), **changed)
    with self.assertRaisesRegex(ValueError, message):
      explainers.search(*checks.about(case), [space], config=_CONFIG)

  @parameterized.parameters('num_steps', 'learning_rate', 'size_weight')
  def test_config_refuses(self, name):
    with self.assertRaisesRegex(ValueError, f'^{name} must'):
      explainers.MaskConfig(**{name: 0})

  def test_refuses_a_batch_of_none(self):
    with self.assertRaisesRegex(ValueError, '^batch_size must'):
      list(field_batch.batches([], 0))
