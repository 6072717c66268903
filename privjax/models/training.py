"""Full-batch training of the frozen backbone (PrivCFS, Sec. 4.1)."""

import dataclasses
import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import jraph
import optax

from privjax import prng
from privjax import types
from privjax.models import gcn


@dataclasses.dataclass(frozen=True, kw_only=True)
class TrainingConfig:
  """Hyperparameters; the defaults are the paper's.

  Attributes:
    num_hidden: hidden units H.
    num_steps: full-batch Adam steps; the last iterate is kept.
    learning_rate: Adam's step size.
    l2: added to the gradient of the first layer, as `l2 * parameter`.
  """

  num_hidden: int = 32
  num_steps: int = 200
  learning_rate: float = 0.01
  l2: float = 5e-4


class _State(NamedTuple):
  params: Any
  optimizer: optax.OptState


def train(
  key: types.KeyArray,
  graph: jraph.GraphsTuple,
  labels: types.Array,
  train_index: types.Array,
  *,
  num_classes: int,
  config: TrainingConfig = TrainingConfig(),
) -> types.Params:
  """Trains a GCN on the labeled nodes, with no dropout and raw features.

  Reads the edges of `graph`: if they are private, the parameters are a second
  channel that no PrivCFS guarantee covers.

  Args:
    key: names the initialization; folded, not consumed.
    graph: the whole graph, on the contract of `graphs.message_graph`.
    labels: `[N]` integer classes in [0, K).
    train_index: `[T]` ids of the training nodes.
    num_classes: K >= 2.
    config: hyperparameters.

  Returns:
    Float32 parameters, on the layout of `models.gcn`.
  """
  nodes: Any = graph.nodes
  params = gcn.init(
    prng.stream(key, 'init'),
    num_features=nodes['features'].shape[1],
    num_hidden=config.num_hidden,
    num_classes=num_classes,
  )
  optimizer = _optimizer(config)
  loss_fn = functools.partial(
    _loss,
    graph=graph,
    labels=jnp.asarray(labels),
    index=jnp.asarray(train_index),
  )

  def step(state: _State, _):
    gradient = jax.grad(loss_fn)(state.params)
    update, opt_state = optimizer.update(
      gradient, state.optimizer, state.params
    )
    return _State(optax.apply_updates(state.params, update), opt_state), None

  start = _State(params, optimizer.init(params))
  run = jax.jit(lambda s: jax.lax.scan(step, s, length=config.num_steps)[0])
  return run(start).params


def _optimizer(config: TrainingConfig) -> optax.GradientTransformation:
  # L2 goes into the gradient, before Adam's scaling: not decoupled decay.
  return optax.chain(
    optax.add_decayed_weights(
      config.l2, mask={'hidden': True, 'output': False}
    ),
    optax.adam(config.learning_rate),
  )


def _loss(params, *, graph, labels, index):
  logits = gcn.apply(params, graph)[index]
  return optax.softmax_cross_entropy_with_integer_labels(
    logits, labels[index]
  ).mean()
