"""The public universe against the oracle, and what can reach it."""

import dataclasses
import inspect
import typing

from absl.testing import parameterized
import hypothesis
import hypothesis.strategies as st
import numpy as np
import scipy.sparse

from privjax import counterfactual
from privjax import graphs
from tests.counterfactual import cases
from tests.counterfactual import checks
from tests.oracles import counterfactual as oracle


def _build(case, **kwargs):
  return counterfactual.build_universe(
    case.snapshot,
    case.features,
    case.params['hidden']['kernel'],
    case.target,
    **kwargs,
  )


def _pairs(universe):
  return [tuple(pair) for pair in universe.pairs[universe.pair_valid].tolist()]


def _dims(universe):
  return universe.features[universe.feature_valid].tolist()


def _one_row(values, kernel, **kwargs):
  """The feature universe of a lone node with these feature values."""
  return counterfactual.build_universe(
    cases.snapshot_of([], num_nodes=1),
    values
    if isinstance(values, scipy.sparse.csr_array)
    else cases.csr([values]),
    kernel,
    0,
    **kwargs,
  )


def _few_values(size):
  return st.lists(
    st.sampled_from([0.0, 0.5, 1, -1, 2]), min_size=size, max_size=size
  )


class PairsTest(parameterized.TestCase):
  def test_one_hop_is_ascending_and_truncated(self):
    case = cases.make([(5, 3), (0, 5), (7, 5), (1, 2), (2, 3)], target=5)
    universe = _build(case, num_pairs=2)
    self.assertEqual(_pairs(universe), [(5, 0), (5, 3)])
    universe = _build(case, num_pairs=5)
    self.assertEqual(_pairs(universe), [(5, 0), (5, 3), (5, 7)])
    self.assertEqual(universe.pairs[3:].tolist(), [[5, 5], [5, 5]])
    self.assertEqual(universe.pair_valid.tolist(), [True] * 3 + [False] * 2)

  def test_two_hop_follows_by_u_then_w(self):
    # 2 and 4 are adjacent neighbors of the target: that pair counts once.
    case = cases.make(
      [(3, 2), (3, 4), (2, 4), (2, 7), (2, 0), (4, 1), (1, 6)], target=3
    )
    universe = _build(case, num_pairs=12, num_hops=2)
    self.assertEqual(
      _pairs(universe), [(3, 2), (3, 4), (2, 0), (2, 4), (2, 7), (4, 1)]
    )
    self.assertEqual(
      _pairs(_build(case, num_pairs=4, num_hops=2)),
      [(3, 2), (3, 4), (2, 0), (2, 4)],
    )

  @parameterized.parameters(1, 2)
  def test_isolated_target(self, num_hops):
    case = cases.make([(1, 2)], target=0)
    universe = _build(case, num_hops=num_hops)
    self.assertEqual(universe.pairs.tolist(), [[0, 0]] * 12)
    self.assertFalse(universe.pair_valid.any())

  def test_no_pairs_wanted(self):
    universe = _build(cases.make([(0, 1)]), num_pairs=0, num_features=0)
    self.assertEqual(universe.pairs.shape, (0, 2))
    self.assertEqual(universe.features.shape, (0,))


class FeaturesTest(parameterized.TestCase):
  def test_ranks_by_influence(self):
    kernel = np.array([[1.0, 0], [0, 3], [2, 0], [1, 1]])
    universe = _one_row([-2.5, 1, 0, 1], kernel, num_features=4)
    self.assertEqual(_dims(universe), [1, 0, 3])
    self.assertEqual(universe.features.tolist(), [1, 0, 3, 0])
    self.assertEqual(universe.feature_valid.tolist(), [True] * 3 + [False])
    universe = _one_row([-2.5, 1, 0, 1], kernel, num_features=2)
    self.assertEqual(_dims(universe), [1, 0])

  def test_ties_go_to_the_lower_id(self):
    kernel = np.array([[3.0, 4], [5, 0], [-4, 3], [0, -5]])
    universe = _one_row([1, -1, 1, 1], kernel, num_features=3)
    self.assertEqual(_dims(universe), [0, 1, 2])

  def test_ranks_by_the_exact_value(self):
    """In float64 the squared norms below tie, and id 0 would win."""
    kernel = np.array([[1.0, 0], [1, 2.0**-40]])
    norms = (kernel**2).sum(axis=1)
    self.assertEqual(norms[0], norms[1])
    universe = _one_row([1, 1], kernel, num_features=2)
    self.assertEqual(_dims(universe), [1, 0])

  @parameterized.parameters(5e-324, 1e-200, 1e200, 1.7e308)
  def test_ranks_where_a_square_leaves_the_range(self, scale):
    kernel = np.array([[scale, 0], [0, 1.0], [scale, scale]])
    dims = _dims(_one_row([1, 1, 1], kernel, num_features=3))
    self.assertEqual(dims, [2, 0, 1] if scale > 1 else [1, 2, 0])

  def test_explicit_zeros_are_not_features(self):
    stored = scipy.sparse.csr_array(
      (np.array([0.0, 1, -0.0]), np.array([0, 1, 2]), np.array([0, 3])),
      shape=(1, 3),
    )
    self.assertEqual(_dims(_one_row(stored, np.ones((3, 2)))), [1])

  def test_fill_appends_the_lowest_zero_dimensions(self):
    kernel = np.ones((6, 1))
    values = [0, 0, 5, 0, 7, 0]
    universe = _one_row(values, kernel, num_features=4, fill_features=True)
    self.assertEqual(_dims(universe), [4, 2, 0, 1])
    universe = _one_row(values, kernel, num_features=1, fill_features=True)
    self.assertEqual(_dims(universe), [4])
    universe = _one_row(values, kernel, num_features=9, fill_features=True)
    self.assertEqual(_dims(universe), [4, 2, 0, 1, 3, 5])
    self.assertEqual(universe.feature_valid.sum(), 6)


class OracleTest(parameterized.TestCase):
  @hypothesis.given(
    case=cases.any_case(),
    num_pairs=st.integers(0, 15),
    num_features=st.integers(0, 8),
    num_hops=st.sampled_from([1, 2]),
    fill=st.booleans(),
  )
  def test_any_universe(self, case, num_pairs, num_features, num_hops, fill):
    universe = _build(
      case,
      num_pairs=num_pairs,
      num_features=num_features,
      num_hops=num_hops,
      fill_features=fill,
    )
    disclosed = oracle.edge_set(case.snapshot.graph.pairs)
    self.assertEqual(
      _pairs(universe),
      oracle.universe_pairs(disclosed, case.target, num_pairs, num_hops),
    )
    self.assertEqual(
      _dims(universe),
      oracle.universe_features(
        case.features.toarray(),
        case.params['hidden']['kernel'],
        case.target,
        num_features,
        fill,
      ),
    )
    self.assertLen(universe.pairs, num_pairs)
    self.assertLen(universe.features, num_features)

  @hypothesis.given(values=_few_values(5), weights=_few_values(10))
  def test_many_ties(self, values, weights):
    kernel = np.reshape(weights, (5, 2))
    universe = _one_row(values, kernel, num_features=3)
    expected = oracle.universe_features([values], kernel, 0, 3, False)
    self.assertEqual(_dims(universe), expected)


class ErrorTest(parameterized.TestCase):
  def setUp(self):
    super().setUp()
    self.case = cases.make([(0, 1)])

  @parameterized.named_parameters(
    ('private_graph', graphs.PrivateGraph),
    ('bare_graph', lambda graph: graph),
  )
  def test_takes_a_snapshot_only(self, wrap):
    graph = wrap(self.case.snapshot.graph)
    with self.assertRaisesRegex(TypeError, f'Snapshot.*{type(graph).__name__}'):
      _build(self.case._replace(snapshot=graph))

  @parameterized.parameters(-1, 8, 0.0, None, True)
  def test_target_out_of_the_graph(self, target):
    with self.assertRaisesRegex(ValueError, r'target must be .*\[0, 7\]'):
      _build(self.case._replace(target=target))

  @parameterized.parameters(
    dict(num_pairs=-1),
    dict(num_features=-1),
    dict(num_pairs=1.5),
    dict(num_hops=3),
    dict(num_hops=0),
  )
  def test_bad_values(self, **kwargs):
    (name,) = kwargs
    with self.assertRaisesRegex(ValueError, f'{name} must be'):
      _build(self.case, **kwargs)

  def test_wrong_shapes(self):
    short = self.case._replace(features=self.case.features[:7])
    with self.assertRaisesRegex(ValueError, 'features must have shape'):
      _build(short)
    kernel = self.case.params['hidden']['kernel'][1:]
    with self.assertRaisesRegex(ValueError, 'first_layer must have shape'):
      _build(self.case._replace(params={'hidden': {'kernel': kernel}}))

  @parameterized.parameters(np.nan, np.inf, -np.inf)
  def test_not_finite(self, value):
    features = self.case.features.copy()
    features.data[0] = value
    with self.assertRaisesRegex(ValueError, 'features must be finite'):
      _build(self.case._replace(features=features))
    kernel = self.case.params['hidden']['kernel'].copy()
    kernel[-1, -1] = value
    with self.assertRaisesRegex(ValueError, 'first_layer must be finite'):
      _build(self.case._replace(params={'hidden': {'kernel': kernel}}))


_PRIVATE_TYPES = {
  graphs.PrivateGraph,
  graphs.ReceptiveField,
  counterfactual.CandidateEvaluation,
  counterfactual.ScoredSupport,
}


def _reachable(annotation, seen=None) -> set:
  """Returns every type that a value of this annotation may hold."""
  seen = set() if seen is None else seen
  is_list = isinstance(annotation, list)  # The arguments of a callable.
  if not is_list and annotation in seen:
    return seen
  parts = annotation if is_list else typing.get_args(annotation)
  if typing.get_origin(annotation) is typing.Literal:
    return seen
  if isinstance(annotation, type) and not parts:
    seen.add(annotation)
    has_fields = dataclasses.is_dataclass(annotation) or hasattr(
      annotation, '_fields'
    )
    parts = typing.get_type_hints(annotation).values() if has_fields else ()
  for part in parts:
    _reachable(part, seen)
  return seen


def _inputs(function) -> set:
  """Returns every type that may reach the arguments of a function."""
  hints = typing.get_type_hints(function)
  names = inspect.signature(function).parameters
  if set(names) - set(hints):
    raise AssertionError(f'{function.__name__} has an argument of any type')
  return set().union(*(_reachable(hints[name]) for name in names))


class PublicInputsTest(parameterized.TestCase):
  """Lemma 1: the signature is the proof that the support is public."""

  @parameterized.parameters(
    counterfactual.build_universe,
    counterfactual.enumerate_candidates,
    counterfactual.support,
  )
  def test_no_private_type_reaches_the_support(self, function):
    inputs = _inputs(function)
    self.assertEmpty(inputs & _PRIVATE_TYPES)
    self.assertNotIn(typing.Any, inputs)
    self.assertNotIn(object, inputs)

  def test_the_walk_finds_private_types(self):
    self.assertIn(graphs.PrivateGraph, _inputs(counterfactual.score))
    self.assertIn(
      counterfactual.CandidateEvaluation, _inputs(counterfactual.log_law)
    )
    self.assertIn(graphs.Graph, _inputs(counterfactual.support))

  @parameterized.parameters(cases.CONFIG, cases.TWO_HOP)
  def test_digest_does_not_depend_on_the_private_graph(self, config):
    case = cases.random_case(1)
    digests, supports = set(), set()
    for pair in [None, *cases.ALL_PAIRS]:
      graph = case.private.graph
      if pair is not None:
        graph = graphs.toggle_pair(graph, pair)
      scored = checks.score(case, graphs.PrivateGraph(graph), config)
      digests.add(cases.digest(scored.candidates))
      log_probs = counterfactual.log_law(scored, 1)
      supports.add(np.isfinite(log_probs).tobytes())
    self.assertLen(digests, 1)
    self.assertLen(supports, 1)

  def test_digest_depends_on_the_snapshot(self):
    case = cases.random_case(1)
    digests = {
      cases.digest(
        case._replace(
          snapshot=graphs.Snapshot(
            graphs.toggle_pair(case.snapshot.graph, (case.target, other)),
            'external',
          )
        ).support()
      )
      for other in range(cases.NUM_NODES)
      if other != case.target
    }
    self.assertGreater(len(digests), 1)
