"""The owner's object: what is paid, when, for what, and what comes back."""

import ast
import contextlib
import fractions
import itertools
import json
import pathlib
import subprocess
import sys
from unittest import mock

from absl.testing import parameterized
import hypothesis
from hypothesis import strategies as st
import numpy as np
from scipy import stats
import scipy.sparse

from privjax import counterfactual
from privjax import graphs
from privjax import mechanisms
from privjax import models
from privjax import release
from privjax import types
from privjax.mechanisms import entropy
from privjax.mechanisms import exact
from privjax.release import certificate
from privjax.release import explainer as explainer_lib
from privjax.release import verify_certificate
from tests import statistics
from tests.counterfactual import cases
from tests.oracles import counterfactual as oracle
from tests.release import neighbor_runs

Fraction = fractions.Fraction
_ROOT = pathlib.Path(__file__).resolve().parents[2]
_CASE = cases.random_case(2)
_TARGET = _CASE.target
_CONFIG = neighbor_runs.CONFIG


class ExplainerTest(parameterized.TestCase):
  """A folder with a ledger, and an explainer of a tiny graph."""

  def setUp(self):
    super().setUp()
    folder = neighbor_runs.folder()
    self.addCleanup(folder.cleanup)
    self.folder = pathlib.Path(folder.name)
    self.ledger = release.Ledger.create(
      self.folder / 'ledger.db', receipt=self.folder / 'receipt'
    )
    self.addCleanup(self.ledger.close)
    self.ledger.open_account('tiny', '2', neighbor_runs.EDGE)
    self.problem = neighbor_runs.problem(_CASE)
    self.owner = self.explainer()

  def explainer(self, **kwargs):
    private = kwargs.pop('private', _CASE.private)
    ledger = kwargs.pop('ledger', self.ledger)
    return neighbor_runs.explainer(self.problem, private, ledger, **kwargs)

  def spent(self, analyst=None):
    return self.ledger.balance('tiny', analyst).spent

  def kinds(self):
    return [entry.kind for entry in self.ledger.history()]

  @contextlib.contextmanager
  def nothing_spent(self, error, words=''):
    """Checks an error, and that the ledger is what it was."""
    before = self.ledger.history()
    with self.assertRaisesRegex(error, words):
      yield
    self.assertEqual(self.ledger.history(), before)


class BudgetTest(ExplainerTest):
  def test_everything_private_happens_after_the_charge(self):
    steps = []

    def recorded(module, name):
      original = getattr(module, name)

      def call(*args, **kwargs):
        steps.append((name, self.spent()))
        return original(*args, **kwargs)

      return mock.patch.object(module, name, call)

    with (
      recorded(release.Ledger, 'cached'),
      recorded(release.Ledger, 'charge'),
      recorded(counterfactual, 'score'),
      recorded(exact, 'sample'),
      recorded(certificate, 'build'),
      recorded(release.Ledger, 'record_release'),
    ):
      self.owner.release(_TARGET, epsilon='1/2')
    before, after = Fraction(0), Fraction(1, 2)
    self.assertEqual(
      steps,
      [
        ('cached', before),
        ('charge', before),
        ('score', after),
        ('sample', after),
        ('build', after),
        ('record_release', after),
      ],
    )

  def test_insufficient_budget_computes_nothing(self):
    self.owner.release(_TARGET, epsilon='3/2')
    words = 'spent 3/2, remaining 1/2, requested 2/3; nothing was spent'
    with (
      mock.patch.object(counterfactual, 'score') as score,
      mock.patch.object(exact, 'sample') as sample,
      self.nothing_spent(release.InsufficientBudgetError, words),
    ):
      self.owner.release(_TARGET, epsilon='2/3')
    score.assert_not_called()
    sample.assert_not_called()

  def test_the_budget_can_be_spent_to_the_end(self):
    for number in range(1, 4):
      self.owner.release(_TARGET, epsilon=Fraction(number, 3))
    self.assertEqual(self.owner.account().remaining, 0)

  def test_a_failure_after_the_charge_leaves_it_and_tells_nothing(self):
    private_error = ValueError('the target has degree 5')
    with (
      mock.patch.object(counterfactual, 'score', side_effect=private_error),
      self.assertRaises(explainer_lib.ReleaseError) as caught,
    ):
      self.owner.release(_TARGET, epsilon='1/2')
    error = caught.exception
    self.assertIsNone(error.__cause__)
    self.assertIsNone(error.__context__)
    self.assertTrue(error.__suppress_context__)
    self.assertNotIn('degree', str(error))
    self.assertIn('after the charge, which stays', str(error))
    self.assertEqual(self.spent(), Fraction(1, 2))
    self.assertEqual(self.kinds()[-1], 'charge')

  def test_a_failed_simulation_says_that_nothing_was_charged(self):
    with (
      mock.patch.object(counterfactual, 'score', side_effect=ValueError),
      self.nothing_spent(explainer_lib.ReleaseError, 'nothing was charged'),
    ):
      self.owner.simulate(_TARGET, epsilon='1/2', seed=0)

  def test_a_second_attempt_is_a_second_charge(self):
    with (
      mock.patch.object(counterfactual, 'score', side_effect=ValueError),
      self.assertRaises(explainer_lib.ReleaseError),
    ):
      self.owner.release(_TARGET, epsilon='1/2')
    self.assertFalse(self.owner.release(_TARGET, epsilon='1/2').cached)
    self.assertEqual(self.spent(), 1)

  @parameterized.parameters(
    (counterfactual, 'score'),
    (exact, 'sample'),
    (certificate, 'build'),
    (release.Ledger, 'record_release'),
  )
  def test_an_interrupt_after_the_charge_leaves_it(self, module, name):
    with (
      mock.patch.object(module, name, side_effect=KeyboardInterrupt),
      self.assertRaises(KeyboardInterrupt),
    ):
      self.owner.release(_TARGET, epsilon='1/2')
    self.assertEqual(self.spent(), Fraction(1, 2))
    self.assertEqual(self.kinds()[-1], 'charge')

  def test_an_interrupt_before_the_charge_costs_nothing(self):
    with (
      mock.patch.object(
        release.Ledger, 'charge', side_effect=KeyboardInterrupt
      ),
      mock.patch.object(counterfactual, 'score') as score,
      self.nothing_spent(KeyboardInterrupt),
    ):
      self.owner.release(_TARGET, epsilon='1/2')
    score.assert_not_called()

  def test_an_answer_that_is_not_recorded_is_not_given(self):
    failure = release.LedgerStorageError('the disk is full')
    with (
      mock.patch.object(release.Ledger, 'record_release', side_effect=failure),
      self.assertRaisesRegex(release.LedgerStorageError, 'full'),
    ):
      self.owner.release(_TARGET, epsilon='1/2')
    self.assertEqual(self.spent(), Fraction(1, 2))

  def test_the_same_query_costs_once_and_gives_the_same_bytes(self):
    first = self.owner.release(_TARGET, epsilon='0.5')
    again = self.explainer()  # The cache is in the ledger.
    before = self.ledger.history()
    with mock.patch.object(counterfactual, 'score') as score:
      for epsilon in ('1/2', 0.5, Fraction(1, 2), '2/4'):
        second = again.release(_TARGET, epsilon=epsilon)
        self.assertEqual(second, first._replace(cached=True))
    score.assert_not_called()
    self.assertFalse(first.cached)
    self.assertEqual(self.ledger.history(), before)

  @parameterized.named_parameters(
    ('epsilon', {}, '1/4', _TARGET),
    ('target', {}, '1/2', 0),
    ('config', {'config': cases.CONFIG}, '1/2', _TARGET),
    (
      'capacity',
      {'capacity': counterfactual.NeighborCapacity(8, 9)},
      '1/2',
      _TARGET,
    ),
    ('features', {'features': _CASE.features * 2}, '1/2', _TARGET),
    (
      'snapshot',
      {'snapshot': cases.snapshot_of([(0, _TARGET)])},
      '1/2',
      _TARGET,
    ),
    ('backbone', {'model': cases.random_case(3).model}, '1/2', _TARGET),
  )
  def test_another_query_is_charged(self, changed, epsilon, target):
    self.owner.release(_TARGET, epsilon='1/2')
    self.assertFalse(
      self.explainer(**changed).release(target, epsilon=epsilon).cached
    )
    self.assertEqual(self.spent(), Fraction(1, 2) + Fraction(epsilon))

  def test_an_edited_graph_spends_from_the_same_budget(self):
    first = self.owner.release(_TARGET, epsilon='1')
    graph = graphs.toggle_pair(_CASE.private.graph, (0, 1))
    edited = self.explainer(private=graphs.PrivateGraph(graph))
    # Even the answer to the same query: a second one would be a second release.
    stored = edited.release(_TARGET, epsilon='1')
    self.assertEqual(stored.certificate, first.certificate)
    edited.release(_TARGET, epsilon='3/4')
    self.assertEqual(edited.account().remaining, Fraction(1, 4))
    with self.nothing_spent(release.InsufficientBudgetError):
      edited.release(_TARGET, epsilon='1/2')

  def test_a_zcdp_account_is_charged_for_a_bounded_range(self):
    self.ledger.open_account(
      'zcdp', '2', neighbor_runs.EDGE, delta=Fraction(1, 10**6)
    )
    owner = self.explainer(dataset_id='zcdp')
    text = owner.release(_TARGET, epsilon='1/2').certificate
    self.assertEqual(owner.account().spent, Fraction(1, 32))
    self.assertEqual(json.loads(text)['charge']['cost'], '1/32')
    self.assertEqual(owner.account().unit, 'rho')

  def test_the_release_is_in_the_support(self):
    one = self.owner.release(_TARGET, epsilon='1')
    edges, masks = _CASE.subsets(_CONFIG)
    self.assertIn(frozenset(map(frozenset, one.delete_pairs)), edges)
    self.assertIn(frozenset(one.mask_features), masks)
    self.assertTrue(one.certified)
    self.assertEqual((one.target, one.epsilon), (_TARGET, 1))
    self.assertEqual(
      verify_certificate.problems(
        json.loads(one.certificate), _flat(self.owner.public)
      ),
      [],
    )


def _flat(public):
  return {
    f'{group}.{name}': array
    for group, arrays in public.arrays().items()
    for name, array in arrays.items()
  }


class AnalystTest(ExplainerTest):
  def setUp(self):
    super().setUp()
    self.ledger.set_analyst_cap('tiny', 'ann', '1')
    self.ledger.set_analyst_cap('tiny', 'bob', '1')
    self.ann = self.explainer(analyst='ann')
    self.bob = self.explainer(analyst='bob')

  def test_both_accounts_pay(self):
    self.ann.release(_TARGET, epsilon='1/2')
    self.assertEqual(self.ann.account().spent, Fraction(1, 2))
    self.assertEqual(self.owner.account().spent, Fraction(1, 2))
    self.assertEqual(self.bob.account().spent, 0)

  def test_the_cap_holds_below_the_budget(self):
    self.ann.release(_TARGET, epsilon='1/2')
    with (
      mock.patch.object(counterfactual, 'score') as score,
      self.nothing_spent(release.InsufficientBudgetError, 'analyst ann'),
    ):
      self.ann.release(_TARGET, epsilon='2/3')
    score.assert_not_called()

  def test_an_answer_does_not_pass_by_the_cap_of_another(self):
    self.ann.release(_TARGET, epsilon='1/2')
    self.assertFalse(self.bob.release(_TARGET, epsilon='1/2').cached)
    self.assertFalse(self.owner.release(_TARGET, epsilon='1/2').cached)
    self.assertTrue(self.ann.release(_TARGET, epsilon='1/2').cached)
    self.assertEqual(self.spent(), Fraction(3, 2))


class SimulationTest(ExplainerTest):
  def test_a_simulated_snapshot_is_refused_before_any_charge(self):
    snapshot = graphs.simulate_snapshot(_CASE.private, rho='1/2', seed=0)
    owner = self.explainer(snapshot=snapshot)
    with (
      mock.patch.object(counterfactual, 'score') as score,
      self.nothing_spent(ValueError, 'external'),
    ):
      owner.release(_TARGET, epsilon='1')
    score.assert_not_called()
    self.assertFalse(owner.simulate(_TARGET, epsilon='1', seed=0).certified)

  def test_a_seeded_draw_certifies_and_charges_nothing(self):
    before = self.ledger.history()
    draw = lambda seed: self.owner.simulate(_TARGET, epsilon='1', seed=seed)
    draws = [draw(seed) for seed in range(12)]
    for one in draws:
      self.assertEqual(
        (one.certified, one.cached, one.certificate), (False, False, None)
      )
    self.assertEqual(self.ledger.history(), before)
    self.assertEqual(draw(3), draws[3])
    self.assertGreater(len({one[1:3] for one in draws}), 1)

  def test_a_seeded_draw_is_never_served_as_a_release(self):
    self.owner.simulate(_TARGET, epsilon='1', seed=0)
    one = self.owner.release(_TARGET, epsilon='1')
    self.assertEqual((one.certified, one.cached), (True, False))
    self.assertEqual(self.spent(), 1)

  def test_a_release_takes_no_seed(self):
    with (
      mock.patch.object(entropy, 'seeded') as seeded,
      mock.patch.object(exact, 'sample', wraps=exact.sample) as sample,
    ):
      self.owner.release(_TARGET, epsilon='1')
    seeded.assert_not_called()
    self.assertIsNone(sample.call_args.kwargs['source'])


class EntropyTest(ExplainerTest):
  @parameterized.named_parameters(
    ('fails', {'side_effect': OSError('none')}),
    ('is_missing', {'side_effect': NotImplementedError}),
    ('is_short', {'return_value': b'abc'}),
  )
  def test_failure_aborts_after_charging_and_never_falls_back(self, failure):
    with (
      mock.patch.object(entropy, '_urandom', **failure),
      mock.patch.object(entropy, 'seeded') as seeded,
      mock.patch.object(certificate, 'build') as build,
      self.assertRaises(entropy.EntropyError),
    ):
      self.owner.release(_TARGET, epsilon='1/2')
    seeded.assert_not_called()
    build.assert_not_called()
    self.assertEqual(self.spent(), Fraction(1, 2))
    self.assertEqual(self.kinds()[-1], 'charge')

  def test_the_bits_are_those_of_the_system(self):
    drawn = set()
    for seed in range(4):
      number = len(self.ledger.history())
      self.ledger.open_account(f'own-{number}', '1', neighbor_runs.EDGE)
      owner = self.explainer(dataset_id=f'own-{number}')
      frozen = np.random.default_rng(seed).bytes
      with mock.patch.object(entropy, '_urandom', frozen):
        drawn.add(owner.release(_TARGET, epsilon='1')[1:3])
    self.assertGreater(len(drawn), 1)
    with mock.patch.object(entropy, '_urandom', np.random.default_rng(3).bytes):
      self.ledger.open_account('again', '1', neighbor_runs.EDGE)
      again = self.explainer(dataset_id='again').release(_TARGET, epsilon='1')
    self.assertIn(again[1:3], drawn)


def _dense_nan():
  features = _CASE.features.copy()
  features.data[0] = np.nan
  return features


def _not_canonical():
  features = _CASE.features
  order = np.arange(features.nnz)
  start, stop = features.indptr[0], features.indptr[1]
  order[start:stop] = order[start:stop][::-1]
  return scipy.sparse.csr_array(
    (features.data[order], features.indices[order], features.indptr),
    shape=features.shape,
  )


def _own_apply(params, graph):
  return models.gcn.apply(params, graph)


_OWN = models.NodeModel(_own_apply, _CASE.params, models.gcn.NUM_HOPS)
_ROUGH = counterfactual.PrivCFSConfig(
  utility=counterfactual.UtilityConfig(
    w_flip=Fraction(10**7 - 1, 10**7),
    w_compact=Fraction(1, 10**7),
    w_plausible=Fraction(0),
  )
)
_FIELD = graphs.Capacity(8, 56)


class BadInputTest(ExplainerTest):
  @parameterized.named_parameters(
    ('graph', {'private': _CASE.private.graph}, TypeError, 'private'),
    ('public', {'private': _CASE.snapshot}, TypeError, 'private'),
    ('private', {'snapshot': _CASE.private}, TypeError, 'snapshot'),
    (
      'other_nodes',
      {'private': cases.private_graph([(0, 1)], 9)},
      ValueError,
      'snapshot',
    ),
    ('nan', {'features': _dense_nan()}, ValueError, 'features'),
    ('order', {'features': _not_canonical()}, ValueError, 'features'),
    ('dense', {'features': _CASE.features.toarray()}, ValueError, 'features'),
    ('rows', {'features': _CASE.features[:7]}, ValueError, 'features'),
    ('columns', {'features': _CASE.features[:, :5]}, ValueError, 'first_layer'),
    (
      'columns_of_the_model',
      {
        'features': _CASE.features[:, :5],
        'first_layer': _CASE.params['hidden']['kernel'][:5],
      },
      ValueError,
      'features',
    ),
    ('params', {'model': _CASE.params}, TypeError, 'model'),
    ('own_model', {'model': _OWN, 'first_layer': None}, ValueError, 'first_la'),
    ('own_capacity', {'model': _OWN}, TypeError, 'capacity'),
    ('gcn_capacity', {'capacity': _FIELD}, TypeError, 'capacity'),
    ('tuple', {'capacity': (8, 8)}, TypeError, 'capacity'),
    ('none', {'capacity': None}, TypeError, 'capacity'),
    (
      'zero_capacity',
      {'capacity': counterfactual.NeighborCapacity(0, 8)},
      ValueError,
      'capacity',
    ),
    (
      'bool_capacity',
      {'capacity': counterfactual.NeighborCapacity(True, 8)},
      ValueError,
      'capacity',
    ),
    ('first_rows', {'first_layer': np.ones((5, 2))}, ValueError, 'first_layer'),
    (
      'first_nan',
      {'first_layer': np.full((6, 2), np.nan)},
      ValueError,
      'first',
    ),
    ('utility', {'config': _CONFIG.utility}, TypeError, 'config'),
    ('path', {'ledger': 'ledger.db'}, TypeError, 'ledger'),
    ('upper_case', {'dataset_id': 'Tiny'}, ValueError, 'dataset_id'),
    ('no_account', {'dataset_id': 'other'}, release.UnknownAccountError, ''),
    ('no_analyst', {'analyst': 'eve'}, release.UnknownAccountError, 'eve'),
    ('analyst_type', {'analyst': ['ann']}, ValueError, 'analyst'),
  )
  def test_public_objects_are_refused(self, changed, error, words):
    with self.nothing_spent(error, words):
      self.explainer(**changed)

  def test_weights_that_are_too_fine_are_refused_before_the_charge(self):
    with self.nothing_spent(ValueError, 'denominator'):
      self.explainer(config=_ROUGH).release(_TARGET, epsilon='1')

  def test_an_account_of_another_relation_is_refused(self):
    rows = types.NeighboringRelation.REPLACE_ONE_ROW
    self.ledger.open_account('rows', '1', rows)
    with self.nothing_spent(ValueError, 'add_remove_one_edge'):
      self.explainer(dataset_id='rows')

  @parameterized.parameters(
    0, -1, '-1/2', float('nan'), float('inf'), True, np.True_, '1e-20', '2e4',
    10001, Fraction(1, 2**41), 'much', None, '1/0', '',
  )  # fmt: skip
  def test_epsilon_is_refused(self, epsilon):
    with (
      mock.patch.object(counterfactual, 'score') as score,
      self.nothing_spent(ValueError, 'epsilon'),
    ):
      self.owner.release(_TARGET, epsilon=epsilon)
    with self.assertRaisesRegex(ValueError, 'epsilon'):
      self.owner.simulate(_TARGET, epsilon=epsilon, seed=0)
    score.assert_not_called()

  @parameterized.parameters(-1, 8, 1.0, True, '3', None, 2**70)
  def test_target_is_refused(self, target):
    with (
      mock.patch.object(counterfactual, 'score') as score,
      self.nothing_spent(ValueError, 'target'),
    ):
      self.owner.release(target, epsilon='1')
    with self.nothing_spent(ValueError, 'target'):
      self.owner.price_list(target)
    score.assert_not_called()

  @parameterized.parameters(-1, 2**32, 1.5, True)
  def test_seed_is_refused(self, seed):
    with self.nothing_spent(ValueError, 'seed'):
      self.owner.simulate(_TARGET, epsilon='1', seed=seed)

  @parameterized.parameters(Fraction(1, 2**40), 10**4)
  def test_extreme_epsilons_are_allowed(self, epsilon):
    self.ledger.open_account('rich', 10**5, neighbor_runs.EDGE)
    one = self.explainer(dataset_id='rich').release(_TARGET, epsilon=epsilon)
    self.assertEqual(one.epsilon, epsilon)

  def test_a_numpy_target_is_the_same_query(self):
    self.owner.release(_TARGET, epsilon='1')
    again = self.owner.release(np.int32(_TARGET), epsilon='1')
    self.assertTrue(again.cached)
    self.assertIs(type(again.target), int)


class HostileNumbersTest(ExplainerTest):
  def test_overflow_on_private_values_does_not_even_warn(self):
    params = {
      'hidden': {
        'kernel': np.full((cases.NUM_FEATURES, 2), 1e308),
        'bias': np.zeros(2),
      },
      'output': {'kernel': np.ones((2, 3)), 'bias': np.zeros(3)},
    }
    owner = self.explainer(
      features=scipy.sparse.csr_array(np.full((8, cases.NUM_FEATURES), 10.0)),
      model=models.gcn.model(params),
      first_layer=np.ones((cases.NUM_FEATURES, 2)),
    )
    # Warnings are errors here, and would come back as a ReleaseError.
    self.assertTrue(owner.release(_TARGET, epsilon='1').certified)


class OwnModelTest(ExplainerTest):
  def draw(self, **kwargs):
    """Returns the release with frozen bits, on a ledger of its own."""
    name = f'own-{len(self.ledger.history())}'
    self.ledger.open_account(name, '1', neighbor_runs.EDGE)
    owner = self.explainer(dataset_id=name, **kwargs)
    frozen = np.random.default_rng(5).bytes
    with mock.patch.object(entropy, '_urandom', frozen):
      return owner, owner.release(_TARGET, epsilon='1')

  def test_agrees_with_the_factored_form(self):
    _, general = self.draw(model=_OWN, capacity=_FIELD)
    _, factored = self.draw()
    self.assertEqual(general[1:3], factored[1:3])

  def test_end_to_end_where_the_field_is_cut(self):
    small = graphs.Capacity(num_nodes=4, num_edges=6)
    with mock.patch.object(
      counterfactual, 'score', wraps=counterfactual.score
    ) as score:
      owner, one = self.draw(model=_OWN, capacity=small)
    field = graphs.extract_receptive_field(
      _CASE.private.graph, _TARGET, num_hops=2
    )
    self.assertGreater(len(field.node_ids), small.num_nodes)
    self.assertEqual(score.call_count, 1)
    content = json.loads(one.certificate)
    self.assertEqual(content['config']['capacity'], [4, 6])
    self.assertEndsWith(content['config']['model'], '._own_apply')
    self.assertEqual(
      verify_certificate.problems(content, _flat(owner.public)), []
    )


class LawTest(ExplainerTest):
  """Draws against the exact law: fresh bits of the system, alpha = 1e-6."""

  _NUM_DRAWS = 2000
  _EPSILON = Fraction(4)

  def test_draws_follow_the_law(self):
    support = _CASE.support(_CONFIG)
    scored = counterfactual.score(
      _CASE.model, _CASE.private, _CASE.features, support, _CONFIG
    )
    law = mechanisms.probabilities(
      counterfactual.log_law(scored, self._EPSILON)
    )
    wrong = mechanisms.probabilities(
      counterfactual.log_law(scored, 2 * self._EPSILON)
    )
    bins, level = _merged_levels(law, scored.utility, self._NUM_DRAWS)
    by_bin = lambda probs: np.bincount(level, probs.ravel(), minlength=bins)
    # Scored once: the sampler is what is tested.
    with mock.patch.object(counterfactual, 'score', return_value=scored):
      draws = [
        self.owner._draw(support, self._EPSILON, source=None)
        for _ in range(self._NUM_DRAWS)
      ]
    self.assertTrue(all(draw.certified for draw in draws))
    index = np.array([draw.index for draw in draws])
    counts = np.bincount(level[index], minlength=bins)
    self.assertFalse(statistics.chi_square_rejects(counts, by_bin(law)))
    # A missing factor 2 would be found, but for one in a million times.
    power = statistics.chi_square_power(
      by_bin(law), by_bin(wrong), num_draws=self._NUM_DRAWS
    )
    self.assertGreater(power, 1 - 1e-6)


def _merged_levels(law, utility, num_draws):
  """Returns bins of utility levels that expect at least 10 draws each."""
  values, level = np.unique(utility.ravel(), return_inverse=True)
  probs = np.bincount(level, law.ravel(), minlength=len(values))
  merged, current, total = np.zeros(len(values), int), 0, 0.0
  for number, prob in enumerate(probs):
    merged[number] = current
    total += prob
    if total * num_draws >= 10 and probs[number + 1 :].sum() * num_draws >= 10:
      current, total = current + 1, 0.0
  return current + 1, merged[level]


_PROGRAM = """
import pathlib, sys
from unittest import mock
import jax
jax.config.update('jax_enable_x64', True)
from privjax import counterfactual, release
from tests.counterfactual import cases
from tests.release import neighbor_runs
ledger = release.Ledger.create(pathlib.Path(sys.argv[1]) / 'ledger.db')
ledger.open_account('tiny', '2', neighbor_runs.EDGE)
this = neighbor_runs.problem(cases.random_case(2))
owner = neighbor_runs.explainer(this, this.case.private, ledger)
owner.release(this.case.target, epsilon='1')
support = this.case.support(this.config)
scored = counterfactual.score(
  this.model, this.case.private, this.case.features, support, this.config,
  evaluator=owner._evaluator,
)
with mock.patch.object(counterfactual, 'score', return_value=scored):
  draw = lambda: owner._draw(support, 1, source=None).index
  print([draw() for _ in range(300)])
"""


class ProcessesTest(parameterized.TestCase):
  def test_two_processes_draw_independently(self):
    """Agreements of 300 pairs of draws are binomial; alpha = 1e-6.

    Processes that share a seed agree in all 300, so that the power against
    them is 1.
    """
    with contextlib.ExitStack() as stack:
      started = [
        stack.enter_context(
          subprocess.Popen(
            [
              sys.executable,
              '-c',
              _PROGRAM,
              stack.enter_context(neighbor_runs.folder()),
            ],
            stdout=subprocess.PIPE,
            cwd=_ROOT,
            text=True,
          )
        )
        for _ in range(2)
      ]
      printed = [process.communicate()[0] for process in started]
    first, second = (np.array(ast.literal_eval(text)) for text in printed)
    scored = counterfactual.score(
      _CASE.model, _CASE.private, _CASE.features, _CASE.support(), _CONFIG
    )
    law = mechanisms.probabilities(counterfactual.log_law(scored, 1))
    collision = (law**2).sum()
    most = stats.binom.isf(statistics.ALPHA, len(first), collision)
    self.assertLess((first == second).sum(), most)
    self.assertLess(most, len(first))


class _Poison:
  """A private graph that nobody may touch."""

  def __getattribute__(self, name):
    raise AssertionError(f'{name} of the private graph was read')


class PriceTest(ExplainerTest):
  def test_reads_nothing_private_and_spends_nothing(self):
    expected = self.owner.price_list(_TARGET)
    before = self.ledger.history()
    self.owner._private = _Poison()
    offer = self.owner.price_list(_TARGET)
    np.testing.assert_equal(offer, expected)
    self.assertEqual(self.ledger.history(), before)
    with self.assertRaises(explainer_lib.ReleaseError):
      self.owner.release(_TARGET, epsilon='1')  # The poison works.

  def test_is_the_same_for_every_private_graph(self):
    expected = self.owner.price_list(_TARGET)
    for private in (cases.private_graph([]), cases.random_case(5).private):
      other = self.explainer(private=private).price_list(_TARGET)
      np.testing.assert_equal(other, expected)

  def test_states_size_and_remaining_budget(self):
    self.owner.release(_TARGET, epsilon='1/3')
    offer = self.owner.price_list(_TARGET, ['1', '2'])
    edges, masks = _CASE.subsets(_CONFIG)
    self.assertEqual(offer.target, _TARGET)
    self.assertEqual(offer.support_size, len(edges) * len(masks))
    self.assertEqual((offer.remaining, offer.unit), (Fraction(5, 3), 'epsilon'))
    self.assertEqual(offer.prices.epsilons, (1, 2))

  def test_uses_the_evaluator_of_the_release(self):
    called = mock.Mock(wraps=self.owner._evaluator)
    self.owner._evaluator = called
    offer = self.owner.price_list(_TARGET)
    # On the snapshot, and on its simulated snapshot, for each stand-in.
    self.assertEqual(called.call_count, 2 * offer.prices.num_targets)
    self.assertEqual(offer.prices.num_targets, cases.NUM_NODES)

  @parameterized.parameters('0', '3/2', -1, float('nan'), True, 'half')
  def test_rho_guess_is_refused(self, rho_guess):
    with self.nothing_spent(ValueError, 'rho_guess'):
      self.owner.price_list(_TARGET, rho_guess=rho_guess)


def _reachable(config, max_edges, max_features) -> set[int]:
  """Returns every utility, in units of 1 / D, by the oracle, one by one."""
  weights = config.w_flip, config.w_compact, config.w_plausible
  k_max = max_edges + max_features
  scale = oracle.denominator(weights, k_max, max_edges)
  steps = max(int(config.w_compact * scale) - 1, 1)
  found = set()
  for named, masked, flips, step in itertools.product(
    range(max_edges + 1),
    range(max_features + 1),
    (False, True),
    range(steps + 1),
  ):
    for existing in range(named + 1):
      value = oracle.utility(
        kind=config.kind,
        weights=weights,
        k_max=k_max,
        num_pairs=named,
        num_features=masked,
        existing=existing,
        flips=flips,
        gap=1 - Fraction(step, steps),
        empty_gap=Fraction(1),
        unit=Fraction(1, scale),
      )
      found.add(int(value * scale))
  return found


@st.composite
def _utility_configs(draw):
  parts = [draw(st.integers(low, 6)) for low in (1, 0, 0)]
  weights = [Fraction(part, sum(parts)) for part in parts]
  return counterfactual.UtilityConfig(
    kind=draw(st.sampled_from(('gated', 'soft'))),
    w_flip=weights[0],
    w_compact=weights[1],
    w_plausible=weights[2],
  )


class LevelsTest(parameterized.TestCase):
  @hypothesis.given(_utility_configs(), st.integers(0, 3), st.integers(0, 3))
  @hypothesis.settings(max_examples=60)
  def test_are_exactly_the_reachable_values(self, config, edges, features):
    hypothesis.assume(edges + features)
    levels = counterfactual.utility_levels(
      config, max_edges=edges, max_features=features
    )
    expected = _reachable(config, edges, features)
    self.assertEqual(levels, tuple(sorted(expected)))

  def test_at_the_default_settings(self):
    config = counterfactual.UtilityConfig()
    levels = counterfactual.utility_levels(config, max_edges=2, max_features=3)
    self.assertLen(levels, 16)
    self.assertEqual((levels[0], levels[-1]), (0, 96))

  @hypothesis.given(
    _utility_configs(), st.integers(0, 3), st.integers(0, 3), st.data()
  )
  @hypothesis.settings(max_examples=60)
  def test_contain_every_utility(self, config, edges, features, data):
    hypothesis.assume(edges + features)
    universe = _CASE.support().universe
    candidates = counterfactual.enumerate_candidates(
      universe, max_edges=edges, max_features=features
    )
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    exists = universe.pair_valid & (rng.random(len(universe.pairs)) < 0.5)
    shape = candidates.valid.shape
    gap = rng.normal(size=shape)
    special = rng.choice([0.0, np.nan, np.inf, -np.inf], size=shape)
    gap = np.where(rng.random(shape) < 0.3, special, gap)
    utility = counterfactual.candidate_utility(
      counterfactual.CandidateEvaluation(
        label=np.zeros(shape, np.int32),
        flips=rng.random(shape) < 0.5,
        existing_edges=(candidates.edge_subsets & exists).sum(axis=1),
        gap=gap,
        runner_up_label=np.array(1),
      ),
      candidates,
      config,
    )
    levels = counterfactual.utility_levels(
      config, max_edges=edges, max_features=features
    )
    self.assertContainsSubset(set(utility.ravel().tolist()), levels)
