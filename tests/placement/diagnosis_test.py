"""The report against dense recomputation, one target at a time."""

from absl.testing import parameterized
import numpy as np

from privjax import explainers
from privjax import graphs
from privjax import placement
from privjax import prng
from privjax.placement import forward
from tests.placement import cases

_TARGETS = np.array([1, 4, 7])


def _world(seed):
  """Returns a private and a weighted noisy graph that share some edges."""
  private = cases.random_private(seed)
  other = cases.random_private(seed + 50).graph
  pairs = np.concatenate([private.graph.pairs[::2], other.pairs])
  graph, _ = graphs.from_pairs(cases.NUM_NODES, pairs)
  rng = prng.generator(seed, 'diagnosis_test')
  weights = rng.uniform(0.2, 1, graph.num_edges)
  return private, cases.noisy(graph, weights)


def _interventions(noisy, targets):
  """Deletes pairs at and away from a target, some absent."""
  del noisy
  some = {(2, 4), (8, 9), (3, 5), *((1, j) for j in range(2, 10))}
  cut = lambda target, pairs, features: explainers.Intervention(
    target=target, pairs=tuple(sorted(pairs)), features=features
  )
  found = [
    cut(int(_TARGETS[0]), some, (0, 2, 4)),
    None,
    cut(int(_TARGETS[2]), some | {(0, 7)}, (1,)),
  ]
  return found[: len(targets)]


def _label(model, noisy, x, target, intervention=None):
  """Returns a label by dense surgery on the whole graph."""
  dense, x = cases.adjacency(noisy), x.toarray()
  if intervention is not None:
    for i, j in intervention.pairs:
      dense[i, j] = dense[j, i] = 0
    x[target, list(intervention.features)] = 0
  return cases.dense_logits(model.params, dense, x)[target].argmax()


class DiagnoseTest(parameterized.TestCase):
  @parameterized.parameters(*range(8))
  def test_agrees_with_dense_surgery(self, seed):
    private, noisy = _world(seed)
    model, x = cases.model(seed), cases.features(seed)
    report = placement.diagnose(
      model, private, noisy, x, _TARGETS, finder=_interventions
    )
    clean = cases.noisy(private.graph)
    for graph, labels, flips in (
      (clean, report.clean_label, report.clean_flips),
      (noisy, report.noisy_label, report.noisy_flips),
    ):
      for t, cut in enumerate(_interventions(None, _TARGETS)):
        before = _label(model, graph, x, _TARGETS[t])
        after = _label(model, graph, x, _TARGETS[t], cut)
        self.assertEqual(labels[t], before)
        self.assertEqual(flips[t], after != before)

  def test_worlds_have_flips_and_pollution(self):
    reports = [
      placement.diagnose(
        cases.model(seed),
        *_world(seed),
        cases.features(seed),
        _TARGETS,
        finder=_interventions,
      )
      for seed in range(24)
    ]
    for field in ('polluted', 'spurious', 'noisy_flips', 'clean_flips'):
      share = np.mean([getattr(report, field) for report in reports])
      self.assertBetween(share, 0.01, 0.99, field)

  @parameterized.parameters(*range(4))
  def test_logits_after_an_intervention(self, seed):
    _, noisy = _world(seed)
    model, x = cases.model(seed), cases.features(seed)
    field = forward.union_field(forward.noisy_view(noisy), x, _TARGETS, 2)
    cut = _interventions(None, _TARGETS)[2]
    found = forward.logits(model, forward.intervene(field, 2, cut))
    dense, rows = cases.adjacency(noisy), x.toarray()
    for i, j in cut.pairs:
      dense[i, j] = dense[j, i] = 0
    rows[7, cut.features] = 0
    expected = cases.dense_logits(model.params, dense, rows)[7]
    np.testing.assert_allclose(
      found[field.target_index[2]], expected, rtol=0, atol=1e-12
    )

  def test_rates(self):
    report = placement.Diagnosis(
      targets=np.arange(4),
      clean_label=np.array([0, 0, 1, 1]),
      noisy_label=np.array([0, 1, 0, 1]),
      noisy_flips=np.array([True, True, True, False]),
      clean_flips=np.array([False, False, True, False]),
      num_retained=3,
      num_edges=5,
    )
    self.assertEqual(report.pollution, 0.5)
    self.assertEqual(report.spurious.tolist(), [True, True, False, False])
    self.assertEqual(report.spurious_rate, 0.5)
    self.assertEqual(report.spurious_on_polluted, 0.5)
    quiet = report._replace(clean_flips=np.ones(4, bool))
    self.assertIsNone(quiet.spurious_on_polluted)

  def test_without_noise_nothing_is_polluted(self):
    private = cases.random_private(0)
    report = placement.diagnose(
      cases.model(),
      private,
      cases.noisy(private.graph),
      cases.features(),
      np.arange(cases.NUM_NODES),
    )
    self.assertEqual(report.pollution, 0)
    self.assertEqual(report.spurious_rate, 0)
    self.assertEqual(report.num_retained, private.graph.num_edges)

  def test_another_model_on_the_noisy_graph(self):
    private, noisy = _world(0)
    report = placement.diagnose(
      cases.model(0),
      private,
      noisy,
      cases.features(),
      _TARGETS,
      noisy_model=cases.model(1),
    )
    expected = [
      _label(cases.model(1), noisy, cases.features(), v) for v in _TARGETS
    ]
    self.assertEqual(report.noisy_label.tolist(), expected)

  @parameterized.named_parameters(
    ('target', {'targets': np.array([10])}, 'target'),
    ('no_targets', {'targets': np.array([], int)}, 'num_targets'),
    ('finder', {'finder': lambda *_: [None]}, 'num_interventions'),
    (
      'sizes',
      {'noisy': cases.noisy(cases.private(3, []).graph)},
      'noisy_num_nodes',
    ),
  )
  def test_refuses(self, changed, words):
    private, noisy = _world(0)
    known = {'noisy': noisy, 'targets': _TARGETS, 'finder': None} | changed
    with self.assertRaisesRegex(ValueError, words):
      placement.diagnose(
        cases.model(),
        private,
        known['noisy'],
        cases.features(),
        known['targets'],
        finder=known['finder'],
      )


class FieldLabelsTest(parameterized.TestCase):
  @parameterized.parameters(*range(4))
  def test_agrees_with_the_whole_graph(self, seed):
    graph = cases.random_private(seed).graph
    model, x = cases.model(seed), cases.features(seed)
    fields = [
      graphs.extract_receptive_field(graph, int(v), num_hops=2)
      for v in _TARGETS
    ]
    expected = [_label(model, cases.noisy(graph), x, v) for v in _TARGETS]
    found = placement.field_labels(model, fields, x)
    self.assertEqual(found.tolist(), expected)

  def test_refuses_no_fields(self):
    with self.assertRaisesRegex(ValueError, 'num_fields'):
      placement.field_labels(cases.model(), [], cases.features())
