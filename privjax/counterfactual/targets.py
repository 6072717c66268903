"""Which nodes an experiment explains (PrivCFS, Sec. 4.1).

Only `random_targets` is public. The margin-based protocols read the private
graph: they diagnose how heterogeneous a population is, and announcing such a
selection would be a release of its own.
"""

import jax
import numpy as np
import scipy.sparse

from privjax import _validate
from privjax import graphs
from privjax import prng
from privjax import types
from privjax.models import node_model

PROTOCOLS = ('random', 'stratified', 'borderline')


def margins(logits: types.Array) -> np.ndarray:
  """Returns `[N]` float64: the top-two gap of the softmax probabilities."""
  with jax.enable_x64(True):
    probs = np.sort(jax.nn.softmax(np.asarray(logits, np.float64), axis=-1))
  return probs[..., -1] - probs[..., -2]


def node_margins(
  model: node_model.NodeModel,
  graph: graphs.Graph,
  features: scipy.sparse.csr_array,
) -> np.ndarray:
  """Returns `[N]` float64 margins of a whole-graph forward in float64.

  Args:
    model: the frozen classifier.
    graph: the private graph (then: not for release) or a snapshot's.
    features: `[N, F]` public features.
  """
  dense = features.toarray().astype(np.float64)
  with jax.enable_x64(True):
    forward = jax.jit(model.apply_fn)
    return margins(forward(model.params, graphs.to_message_graph(graph, dense)))


def random_targets(nodes: types.Array, *, count: int, seed: int) -> np.ndarray:
  """Returns `count` distinct nodes of `nodes`, ascending, by a public draw."""
  order = prng.permutation(len(nodes), seed, 'targets')
  return np.sort(_first(np.sort(nodes)[order], count))


def borderline_targets(
  nodes: types.Array, margin: types.Array, *, count: int
) -> np.ndarray:
  """Returns the `count` nodes with the lowest margins. Not for release.

  Args:
    nodes: `[T]` node ids.
    margin: `[N]` margins on the private graph; ties go to the lower id.
    count: how many.
  """
  nodes = np.sort(nodes)
  order = nodes[np.argsort(np.asarray(margin)[nodes], kind='stable')]
  return np.sort(_first(order, count))


def stratified_targets(
  nodes: types.Array, margin: types.Array, *, per_quartile: int, seed: int
) -> np.ndarray:
  """Returns `per_quartile` nodes of each margin quartile. Not for release.

  Args:
    nodes: `[T]` node ids.
    margin: `[N]` margins on the private graph.
    per_quartile: how many from each of the four quartiles.
    seed: names the draw inside each quartile.
  """
  nodes = np.sort(nodes)
  order = nodes[np.argsort(np.asarray(margin)[nodes], kind='stable')]
  chosen = []
  for index, part in enumerate(np.array_split(order, 4)):
    drawn = prng.permutation(len(part), seed, 'targets', 'quartile', index)
    # By id within the quartile: a swap of near-ties changes no draw.
    chosen.append(_first(np.sort(part)[drawn], per_quartile))
  return np.sort(np.concatenate(chosen))


def _first(order: np.ndarray, count: int) -> np.ndarray:
  _validate.integer(1, len(order), count=count)
  return order[:count]
