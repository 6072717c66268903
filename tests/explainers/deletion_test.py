"""Random and greedy deletion, and the smallest candidate of a support."""

from absl.testing import parameterized
import numpy as np

from privjax import counterfactual
from privjax import explainers
from privjax import prng
from tests import statistics
from tests.counterfactual import cases
from tests.explainers import checks


def _large_space(size):
  return explainers.OperationSpace(
    target=0, pairs=np.zeros((0, 2), np.int64), features=np.arange(size)
  )


def triple_counts(bits) -> np.ndarray:
  """Counts the 8 patterns of disjoint triples of bits."""
  return np.bincount(bits.reshape(-1, 3) @ [1, 2, 4], minlength=8)


def triple_law(chance) -> np.ndarray:
  """Returns the law of the patterns if bits are set independently."""
  ones = np.array([bin(index).count('1') for index in range(8)])
  return chance**ones * (1 - chance) ** (3 - ones)


class RandomTest(parameterized.TestCase):
  @parameterized.parameters(0.5, 0.3)
  def test_law(self, probability):
    """Power against a probability of .55 (or .33) is above .999."""
    space = _large_space(30_000)
    (mask,) = explainers.random_masks(
      prng.key(1), [space], probability=probability
    )
    counts = triple_counts(~mask.feature)
    law = triple_law(probability)
    self.assertFalse(statistics.chi_square_rejects(counts, law))
    power = statistics.chi_square_power(
      law, triple_law(1.1 * probability), num_draws=10_000
    )
    self.assertGreater(power, 0.999)

  def test_draws_and_targets_differ(self):
    space = _large_space(64)
    draw = lambda k: explainers.random_masks(prng.key(1), [space], draw=k)[0]
    np.testing.assert_array_equal(draw(0).feature, draw(0).feature)
    self.assertTrue((draw(0).feature != draw(1).feature).any())

  def test_certain_deletion(self):
    (mask,) = explainers.random_masks(
      prng.key(1), [_large_space(20)], probability=1.0
    )
    self.assertFalse(mask.feature.any())

  def test_refuses(self):
    with self.assertRaisesRegex(ValueError, '^probability must'):
      explainers.random_masks(prng.key(1), [], probability=0.0)


class GreedyTest(parameterized.TestCase):
  def _oracle(self, case, space, max_size):
    """Greedy deletion by one dense forward per candidate."""
    chosen_pairs, chosen_dims = [], []
    cut = lambda pairs, dims: explainers.Intervention(
      target=case.target,
      pairs=tuple(sorted(pairs)),
      features=tuple(sorted(dims)),
    )
    original = int(np.argmax(checks.oracle_logits(case, cut([], []))))

    def gap(pairs, dims):
      out = checks.oracle_logits(case, cut(pairs, dims))
      return out[original] - np.delete(out, original).max()

    pairs = list(map(tuple, space.pairs.tolist()))
    dims = space.features.tolist()
    for _ in range(max_size):
      options = [
        (gap([*chosen_pairs, p], chosen_dims), 0, p)
        for p in pairs
        if p not in chosen_pairs
      ] + [
        (gap(chosen_pairs, [*chosen_dims, d]), 1, d)
        for d in dims
        if d not in chosen_dims
      ]
      if not options:
        break
      best, kind, name = min(options)
      (chosen_dims if kind else chosen_pairs).append(name)
      if best < 0:
        break
    return cut(chosen_pairs, chosen_dims)

  def test_equals_the_oracle(self):
    sizes = set()
    for seed in range(8):
      case = cases.random_case(seed, density=0.3)
      space = checks.space_of(case, feature_masks=bool(seed % 2))
      (found,) = explainers.greedy(*checks.about(case), [space], max_size=4)
      expected = self._oracle(case, space, 4)
      self.assertEqual(found.intervention, expected)
      self.assertEqual(found.num_steps, expected.size)
      sizes.add(expected.size)
    self.assertGreater(len(sizes), 1)

  def test_isolated_target_has_nothing_to_delete(self):
    case = cases.make([(1, 2)], target=0)
    space = checks.space_of(case, feature_masks=False)
    (found,) = explainers.greedy(*checks.about(case), [space], max_size=4)
    self.assertFalse(found.valid)
    self.assertEqual((found.intervention.size, found.num_steps), (0, 0))

  def test_refuses(self):
    with self.assertRaisesRegex(ValueError, '^max_size must'):
      explainers.greedy(*checks.about(cases.random_case(0)), [], max_size=0)


class MinimalTest(parameterized.TestCase):
  def test_equals_brute_force(self):
    valid = []
    for seed in range(12):
      case = cases.random_case(seed)
      candidates = case.support()
      scored = counterfactual.evaluate_full_graph(
        case.model, case.private, case.features, candidates
      )
      found = explainers.minimal_counterfactual(scored, candidates)
      pairs, dims = case.subsets()
      scores = case.scores()
      sizes = [
        len(edge) + len(feature)
        for a, edge in enumerate(pairs)
        for b, feature in enumerate(dims)
        if scores.flips[a][b]
      ]
      self.assertEqual(found.valid, bool(sizes))
      self.assertEqual(found.intervention.size, min(sizes, default=0))
      self.assertEqual(found.num_steps, len(pairs) * len(dims))
      labels = explainers.predict(*checks.about(case), [found.intervention])
      self.assertEqual(labels.new[0], found.new_label)
      self.assertEqual(labels.original[0], found.original_label)
      valid.append(found.valid)
    self.assertEqual(set(valid), {True, False})
