"""The price list: public self-simulation against a slow recomputation."""

import dataclasses
import fractions
import math

from absl.testing import parameterized
import numpy as np

from privjax import counterfactual
from privjax import graphs
from privjax import prng
from privjax.counterfactual import simulate
from tests.counterfactual import cases
from tests.counterfactual import checks
from tests.oracles import counterfactual as oracle

Fraction = fractions.Fraction
_EPSILONS = ('1/2', '2', '8')


def _prices(case, config=cases.CONFIG, epsilons=_EPSILONS, **kwargs):
  return counterfactual.simulate_price_list(
    case.model,
    case.snapshot,
    case.features,
    case.params['hidden']['kernel'],
    case.target,
    epsilons,
    config,
    evaluator=checks.evaluate_factored,
    **kwargs,
  )


def _nearest(case, num_targets):
  return simulate.nearest_in_margin(
    case.model,
    case.snapshot,
    case.features,
    case.target,
    num_targets=num_targets,
  )


def _slow_margins(case) -> list[float]:
  """Returns the top-two gap of the probabilities of every node."""
  edges = oracle.edge_set(case.snapshot.graph.pairs)
  features, margins = case.features.toarray(), []
  for node in range(cases.NUM_NODES):
    logits = oracle.target_logits(
      case.params, cases.NUM_NODES, edges, features, node
    )
    weights = sorted(math.exp(value) for value in logits)
    margins.append((weights[-1] - weights[-2]) / math.fsum(weights))
  return margins


def _slow_prices(case, config, *, share, num_targets, seed):
  """Returns one row per stand-in: ceiling, free, and a rate per epsilon."""
  pairs = case.snapshot.graph.pairs
  order = prng.permutation(len(pairs), seed, 'price list')
  hidden = pairs[order[: round(share * len(pairs))]]
  margins = _slow_margins(case)
  stand_ins = sorted(
    range(cases.NUM_NODES),
    key=lambda v: (v != case.target, abs(margins[v] - margins[case.target]), v),
  )
  rows = []
  for node in stand_ins[:num_targets]:
    world = case._replace(
      private=graphs.PrivateGraph(case.snapshot.graph),
      snapshot=cases.snapshot_of(hidden),
      target=node,
    )
    edges, masks = world.subsets(config)
    scores = world.scores(config)
    bare = world._replace(private=cases.private_graph(hidden)).scores(config)
    cells = [(a, b) for a in range(len(edges)) for b in range(len(masks))]
    free = min(
      cells[1:], key=lambda cell: bare.gap[cell[0]][cell[1]], default=(0, 0)
    )
    flips = [scores.flips[a][b] for a, b in cells]
    utility = oracle.utilities(
      scores,
      edges,
      masks,
      kind=config.utility.kind,
      weights=(
        config.utility.w_flip,
        config.utility.w_compact,
        config.utility.w_plausible,
      ),
      k_max=config.max_edges + config.max_features,
      unit=Fraction(1, config.denominator),
    )
    flat = [utility[a][b] for a, b in cells]
    row = [float(any(flips)), float(scores.flips[free[0]][free[1]])]
    for epsilon in _EPSILONS:
      law = oracle.law(flat, Fraction(epsilon), config.sensitivity)
      row.append(math.fsum(p for p, flip in zip(law, flips) if flip))
    rows.append(row)
  return np.array(rows)


class PriceListTest(parameterized.TestCase):
  @parameterized.parameters(
    (0, '1/2', 8, 0), (1, '1/2', 3, 1), (2, '3/4', 5, 0), (3, '1', 1, 2)
  )
  def test_agrees_with_a_slow_recomputation(self, case, rho, count, seed):
    case = cases.random_case(case)
    config = dataclasses.replace(
      cases.CONFIG,
      num_hops=1 + seed % 2,
      utility=counterfactual.UtilityConfig(kind=('gated', 'soft')[count % 2]),
    )
    found = _prices(case, config, rho_guess=rho, num_targets=count, seed=seed)
    rows = _slow_prices(
      case, config, share=Fraction(rho), num_targets=count, seed=seed
    )
    self.assertEqual(found.epsilons, tuple(map(Fraction, _EPSILONS)))
    self.assertEqual(found.num_targets, count)
    self.assertEqual(found.ceiling, rows[:, 0].mean())
    self.assertEqual(found.free, rows[:, 1].mean())
    rates = rows[:, 2:]
    np.testing.assert_allclose(
      found.valid_cf_rate, rates.mean(axis=0), rtol=0, atol=1e-12
    )
    error = 0 if count == 1 else rates.std(axis=0, ddof=1) / count**0.5
    np.testing.assert_allclose(
      found.standard_error, error * np.ones(3), rtol=0, atol=1e-12
    )

  def test_is_deterministic_and_seeded(self):
    case = cases.random_case(2)
    np.testing.assert_equal(_prices(case), _prices(case))
    self.assertTrue(
      any(
        not np.array_equal(
          _prices(case, seed=seed).valid_cf_rate, _prices(case).valid_cf_rate
        )
        for seed in (1, 2)
      )
    )

  def test_does_not_read_the_private_graph(self):
    case = cases.random_case(2)
    with self.assertRaisesRegex(TypeError, 'snapshot'):
      _prices(case._replace(snapshot=case.private))

  @parameterized.parameters(*range(4))
  def test_validity_grows_with_epsilon(self, seed):
    # Where w_flip >= w_compact, every candidate that flips has a utility above
    # all that do not, so d/d epsilon of the log odds is the positive difference
    # of two means; an average over stand-ins keeps that.
    for kind in ('gated', 'soft'):
      config = dataclasses.replace(
        cases.CONFIG, utility=counterfactual.UtilityConfig(kind=kind)
      )
      epsilons = ['1/1000', '1', '4', '16', '200']
      found = _prices(cases.random_case(seed), config, epsilons)
      self.assertGreater(np.diff(found.valid_cf_rate).min(), 0)
      self.assertAlmostEqual(found.valid_cf_rate[-1], found.ceiling, 4)

  def test_validity_may_fall_where_flipping_is_worth_less(self):
    # So the condition above is needed.
    config = dataclasses.replace(
      cases.CONFIG,
      utility=counterfactual.UtilityConfig(
        w_flip=Fraction(1, 100),
        w_compact=Fraction(99, 100),
        w_plausible=Fraction(0),
      ),
    )
    rates = [
      _prices(cases.random_case(seed), config, ['1', '16']).valid_cf_rate
      for seed in range(4)
    ]
    self.assertLess(min(rate[1] - rate[0] for rate in rates), 0)

  def test_counts_fewer_nodes_than_asked_for(self):
    self.assertEqual(_prices(cases.random_case(0)).num_targets, 8)

  def test_an_empty_snapshot_has_a_price(self):
    found = _prices(cases.make([(0, 1)], snapshot=[]))
    self.assertEqual(found.num_targets, 8)
    self.assertTrue(np.isfinite(found.valid_cf_rate).all())

  @parameterized.parameters(0, '0', '3/2', 2, -1, float('nan'), True, 'half')
  def test_rho_guess_is_refused(self, rho_guess):
    with self.assertRaisesRegex(ValueError, 'rho_guess'):
      _prices(cases.random_case(0), rho_guess=rho_guess)

  @parameterized.named_parameters(
    ('num_targets', {'num_targets': 0}, 'num_targets'),
    ('num_targets_bool', {'num_targets': True}, 'num_targets'),
    ('seed', {'seed': -1}, 'seed'),
    ('epsilons', {'epsilons': ['1', '0']}, 'epsilon'),
  )
  def test_refuses(self, changed, words):
    with self.assertRaisesRegex(ValueError, words):
      _prices(cases.random_case(0), **changed)


class NearestTest(parameterized.TestCase):
  @parameterized.parameters(*range(4))
  def test_orders_by_margin_on_the_snapshot(self, seed):
    case = cases.random_case(seed)
    margins = _slow_margins(case)
    distance = lambda v: abs(margins[v] - margins[case.target])
    others = set(range(cases.NUM_NODES)) - {case.target}
    expected = [case.target, *sorted(others, key=distance)]
    self.assertEqual(_nearest(case, 8), expected)
    self.assertEqual(_nearest(case, 3), expected[:3])

  def test_ties_go_to_the_lower_id_after_the_target(self):
    alike = cases.csr(np.ones((cases.NUM_NODES, cases.NUM_FEATURES)))
    case = cases.make([], features=alike, target=6)
    self.assertEqual(_nearest(case, 4), [6, 0, 1, 2])

  @parameterized.parameters(-1, cases.NUM_NODES, 1.5, True)
  def test_target_is_refused(self, target):
    case = cases.random_case(0)._replace(target=target)
    with self.assertRaisesRegex(ValueError, 'target'):
      _nearest(case, 2)
