"""Which nodes are explained."""

from absl.testing import parameterized
import numpy as np

from privjax import counterfactual

_NODES = np.array([30, 2, 11, 7, 19, 23, 3, 5])


def _margin(values):
  margin = np.full(40, 0.5)
  margin[np.sort(_NODES)] = values
  return margin


class MarginTest(parameterized.TestCase):
  def test_values(self):
    logits = np.log([[0.7, 0.1, 0.2], [0.25, 0.5, 0.25], [0.4, 0.4, 0.2]])
    np.testing.assert_allclose(
      counterfactual.margins(logits), [0.5, 0.25, 0], atol=1e-15
    )

  def test_large_float32_logits(self):
    margin = counterfactual.margins(np.float32([[1e4, 0, 0], [1e4, 1e4, 0]]))
    self.assertEqual(margin.tolist(), [1, 0])
    self.assertEqual(margin.dtype, np.float64)


class RandomTest(parameterized.TestCase):
  def test_is_a_function_of_the_seed_and_the_set(self):
    targets = counterfactual.random_targets(_NODES, count=4, seed=1)
    again = counterfactual.random_targets(np.sort(_NODES), count=4, seed=1)
    np.testing.assert_array_equal(targets, again)
    self.assertLen(set(targets), 4)
    self.assertTrue(np.isin(targets, _NODES).all())
    self.assertTrue((np.diff(targets) > 0).all())

  def test_seeds_differ(self):
    draws = {
      tuple(counterfactual.random_targets(_NODES, count=4, seed=seed))
      for seed in range(10)
    }
    self.assertGreater(len(draws), 5)

  def test_every_node_may_be_drawn(self):
    draws = np.concatenate(
      [
        counterfactual.random_targets(_NODES, count=2, seed=seed)
        for seed in range(60)
      ]
    )
    self.assertEqual(set(draws), set(_NODES))


class BorderlineTest(parameterized.TestCase):
  def test_lowest_margins(self):
    margin = _margin([0.9, 0.1, 0.8, 0.3, 0.2, 0.7, 0.6, 0.5])
    targets = counterfactual.borderline_targets(_NODES, margin, count=3)
    self.assertEqual(targets.tolist(), [3, 7, 11])

  def test_ties_go_to_the_lower_id(self):
    margin = _margin([0.2, 0.1, 0.2, 0.2, 0.2, 0.2, 0.2, 0.2])
    targets = counterfactual.borderline_targets(_NODES, margin, count=3)
    self.assertEqual(targets.tolist(), [2, 3, 5])


class StratifiedTest(parameterized.TestCase):
  def test_takes_from_every_quartile(self):
    margin = _margin([0.9, 0.1, 0.8, 0.3, 0.2, 0.7, 0.6, 0.5])
    by_quartile = [{3, 11}, {7, 30}, {23, 19}, {5, 2}]
    picks = set()
    for seed in range(20):
      targets = counterfactual.stratified_targets(
        _NODES, margin, per_quartile=1, seed=seed
      )
      self.assertLen(targets, 4)
      for quartile in by_quartile:
        self.assertLen(quartile & set(targets), 1)
      picks |= set(targets)
    self.assertEqual(picks, set(_NODES))

  def test_is_a_function_of_the_seed(self):
    draw = lambda seed, nodes: counterfactual.stratified_targets(
      nodes, _margin(np.arange(8)), per_quartile=1, seed=seed
    ).tolist()
    self.assertEqual(draw(3, _NODES), draw(3, _NODES[::-1]))
    self.assertGreater(len({tuple(draw(s, _NODES)) for s in range(10)}), 2)


class ErrorTest(parameterized.TestCase):
  @parameterized.parameters(0, 9, 2.0, True)
  def test_count(self, count):
    message = r'count must be an integer in \[1, 8\]'
    with self.assertRaisesRegex(ValueError, message):
      counterfactual.random_targets(_NODES, count=count, seed=0)
    with self.assertRaisesRegex(ValueError, message):
      counterfactual.borderline_targets(_NODES, np.ones(40), count=count)

  def test_more_than_a_quartile_holds(self):
    with self.assertRaisesRegex(ValueError, r'\[1, 2\], got 3'):
      counterfactual.stratified_targets(
        _NODES, np.ones(40), per_quartile=3, seed=0
      )

  @parameterized.parameters(-1, 2**32, 0.5)
  def test_seed(self, seed):
    with self.assertRaisesRegex(ValueError, 'seed must be'):
      counterfactual.random_targets(_NODES, count=1, seed=seed)

  def test_protocols(self):
    self.assertEqual(
      counterfactual.PROTOCOLS, ('random', 'stratified', 'borderline')
    )
