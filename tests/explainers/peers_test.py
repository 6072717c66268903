"""The batched search equals a per-target loop in PyTorch, step for step."""

import warnings

import numpy as np
import pytest

from experiments import torch_loop
from privjax import explainers
from tests.counterfactual import cases
from tests.explainers import checks


@pytest.mark.peers
def test_search_equals_the_torch_loop():
  with warnings.catch_warnings():
    warnings.simplefilter('ignore')
    torch = pytest.importorskip('torch')
  config = explainers.MaskConfig(num_steps=60)
  found_valid = set()
  for seed in range(4):
    case = cases.random_case(seed, density=0.3)
    spaces = [checks.space_of(case._replace(target=t)) for t in range(8)]
    found = explainers.search(*checks.about(case), spaces, config=config)
    for space, own in zip(spaces, found):
      best, last = torch_loop.optimize(
        torch, case.params, case.private.graph, case.features, space, config
      )
      assert bool(own.valid) == (best is not None)
      if best is not None:
        np.testing.assert_array_equal(np.concatenate(own.keep), best)
      np.testing.assert_allclose(np.concatenate(own.logits), last, atol=1e-6)
      found_valid.add(bool(own.valid))
  assert True in found_valid
