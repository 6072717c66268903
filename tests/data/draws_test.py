"""Tests of the public draws: balanced sets and stratified folds."""

from absl.testing import parameterized
import hypothesis
from hypothesis import strategies as st
import numpy as np

from privjax.data import draws

_LABELS = st.lists(st.sampled_from((-1, 1)), min_size=2, max_size=40)
_BIG = np.repeat([-1, 1], [700, 300])


def _spread(counts) -> int:
  return int(counts.max() - counts.min())


class FoldsTest(parameterized.TestCase):
  @hypothesis.settings(max_examples=60)
  @hypothesis.given(_LABELS, st.integers(2, 10), st.integers(0, 2**32 - 1))
  def test_sizes_and_strata_are_even(self, labels, num_folds, seed):
    labels = np.array(labels)
    hypothesis.assume(num_folds <= len(labels))
    folds = draws.stratified_folds(labels, num_folds, seed)
    sizes = np.bincount(folds, minlength=num_folds)
    self.assertLen(sizes, num_folds)
    # Fixed by n alone: a label never changes the number of training rows.
    n = len(labels)
    self.assertEqual(
      sizes.tolist(),
      [n // num_folds + (k < n % num_folds) for k in range(num_folds)],
    )
    for label in (-1, 1):
      of_class = np.bincount(folds[labels == label], minlength=num_folds)
      self.assertLessEqual(_spread(of_class), 1)

  @hypothesis.settings(max_examples=40)
  @hypothesis.given(_LABELS, st.randoms(use_true_random=False))
  def test_interleaving_the_classes_changes_nothing(self, labels, random):
    labels = np.array(labels)
    shuffled = labels.tolist()
    random.shuffle(shuffled)
    shuffled = np.array(shuffled)
    first = draws.stratified_folds(labels, 2, 3)
    second = draws.stratified_folds(shuffled, 2, 3)
    for label in (-1, 1):
      np.testing.assert_array_equal(
        first[labels == label], second[shuffled == label]
      )

  def test_deterministic_and_seeded(self):
    first = draws.stratified_folds(_BIG, 10, 0)
    np.testing.assert_array_equal(first, draws.stratified_folds(_BIG, 10, 0))
    other = draws.stratified_folds(_BIG, 10, 1)
    agreement = (first == other).mean()  # 0.1 expected, s.d. 0.0095.
    self.assertBetween(agreement, 0.05, 0.15)

  def test_folds_are_not_runs_of_rows(self):
    folds = draws.stratified_folds(_BIG, 10, 0)
    self.assertGreater(np.count_nonzero(np.diff(folds)), 800)
    self.assertLess((folds == np.arange(1000) % 10).mean(), 0.2)

  def test_frozen(self):
    folds = draws.stratified_folds(np.array([-1, 1] * 5), 5, 7)
    self.assertEqual(folds.tolist(), _FROZEN_FOLDS)

  def test_one_class(self):
    folds = draws.stratified_folds(np.ones(7, np.int64), 3, 0)
    self.assertEqual(np.bincount(folds).tolist(), [3, 2, 2])

  @parameterized.parameters(
    ({'num_folds': 1}, r'num_folds must be an integer in \[2, 4\], got 1'),
    ({'num_folds': 5}, r'num_folds must be an integer in \[2, 4\], got 5'),
    ({'num_folds': 2.0}, 'num_folds must be an integer'),
    ({'seed': -1}, 'seed must be'),
    ({'seed': 2**32}, 'seed must be'),
    ({'labels': np.array([0, 1, 1, 1])}, 'labels must be -1 or .1, got 1'),
    ({'labels': np.array([np.nan, 1, 1, 1])}, 'got 1 others'),
    ({'labels': np.ones((2, 2))}, 'labels must have shape'),
  )
  def test_refuses(self, changes, message):
    good = {'labels': np.array([1, 1, -1, 1]), 'num_folds': 2, 'seed': 0}
    draws.stratified_folds(**good)
    with self.assertRaisesRegex(ValueError, message):
      draws.stratified_folds(**(good | changes))


class BalancedTest(parameterized.TestCase):
  @hypothesis.settings(max_examples=60)
  @hypothesis.given(_LABELS, st.integers(0, 2**32 - 1))
  def test_keeps_the_smaller_class_and_as_many_others(self, labels, seed):
    labels = np.array(labels)
    hypothesis.assume(abs(labels.sum()) < len(labels))
    index = draws.balanced_index(labels, seed)
    self.assertTrue((np.diff(index) > 0).all())
    size = min((labels == -1).sum(), (labels == 1).sum())
    self.assertEqual(np.bincount(labels[index] + 1).tolist(), [size, 0, size])

  def test_deterministic_seeded_and_spread(self):
    first = draws.balanced_index(_BIG, 0)
    np.testing.assert_array_equal(first, draws.balanced_index(_BIG, 0))
    np.testing.assert_array_equal(first[300:], np.arange(700, 1000))
    # 300 of 700: mean 350, s.d. 8.8 for the mean of the kept rows.
    self.assertBetween(first[:300].mean(), 305, 395)
    both = np.isin(first[:300], draws.balanced_index(_BIG, 1)).mean()
    self.assertBetween(both, 0.3, 0.56)  # 3/7 expected.

  @parameterized.parameters(([1, 1],), ([-1],), ([],))
  def test_refuses_one_class(self, labels):
    with self.assertRaisesRegex(ValueError, 'both classes'):
      draws.balanced_index(np.array(labels, np.int64), 0)

  def test_refuses_a_bad_seed(self):
    with self.assertRaisesRegex(ValueError, 'seed must be'):
      draws.balanced_index(_BIG, 2**32)


_FROZEN_FOLDS = [3, 0, 4, 3, 0, 1, 2, 4, 1, 2]
