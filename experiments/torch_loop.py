"""Mask optimization as a PyTorch user would write it: one target, one loop.

The loop that `bench_explainers` states speed against, and an independent
implementation for the tests of the batched search.
"""

import numpy as np

from privjax import explainers
from privjax import graphs


def optimize(
  torch,
  params: dict,
  graph: graphs.Graph,
  features,
  space: explainers.OperationSpace,
  config: explainers.MaskConfig,
):
  """Returns (smallest valid keep mask or None, last logits), both `[P + Q]`."""
  forward = _model(torch, params, graph, features, space)
  size = space.num_operations
  logits = torch.full(
    (size,), config.initial_logit, dtype=torch.float64, requires_grad=True
  )
  optimizer = torch.optim.Adam([logits], lr=config.learning_rate)
  with torch.no_grad():
    clean = forward(torch.ones(size, dtype=torch.float64))
  original, runner_up = torch.argsort(-clean)[:2].tolist()
  best, last = None, None
  for _ in range(config.num_steps + 1):
    keep = logits.detach() > 0
    with torch.no_grad():
      flipped = int(forward(keep.double()).argmax()) != original
    if flipped and (best is None or (~keep).sum() < (~best).sum()):
      best = keep
    last = logits.detach().numpy().copy()
    optimizer.zero_grad()
    soft = torch.sigmoid(logits)
    loss = config.size_weight * (1 - soft).sum()
    if not flipped:
      loss = loss - torch.log_softmax(forward(soft), 0)[runner_up]
    loss.backward()
    optimizer.step()
  return None if best is None else best.numpy(), last


def _model(torch, params, graph, features, space):
  """Returns the target's logits as a function of `[P + Q]` masks."""
  field = graphs.extract_receptive_field(graph, space.target, num_hops=2)
  tensor = lambda x: torch.tensor(np.asarray(x), dtype=torch.float64)
  index = lambda x: torch.tensor(np.asarray(x), dtype=torch.long)
  ids, v, num_pairs = field.node_ids, field.target_index, len(space.pairs)
  local = {int(node): place for place, node in enumerate(ids)}
  row_of = {tuple(pair): row for row, pair in enumerate(space.pairs.tolist())}
  senders, receivers = index(field.graph.senders), index(field.graph.receivers)
  names = np.sort(
    np.stack([ids[field.graph.senders], ids[field.graph.receivers]], 1), axis=1
  )
  # Row P of the masks is a constant 1, for edges outside the space.
  edge_row = index([row_of.get(tuple(p), num_pairs) for p in names.tolist()])
  ends = [
    (row, local[node])
    for pair, row in row_of.items()
    for node in pair
    if node in local
  ]
  ends = index(ends).reshape(-1, 2)
  x = tensor(graphs.field_features(field, features))
  degree = tensor(field.boundary_degree)
  layers = [
    (tensor(params[name]['kernel']), tensor(params[name]['bias']))
    for name in ('hidden', 'output')
  ]

  def forward(masks):
    edge = torch.cat([masks[:num_pairs], masks.new_ones(1)])
    d = degree.index_add(0, ends[:, 1], edge[ends[:, 0]] - 1)
    r = (d + 1).rsqrt()
    row = x[v].index_put(
      (index(space.features),), x[v, space.features] * masks[num_pairs:]
    )
    h = torch.cat([x[:v], row[None], x[v + 1 :]])
    weight = (r[senders] * r[receivers] * edge[edge_row])[:, None]
    for depth, (kernel, bias) in enumerate(layers):
      h = h @ kernel
      total = torch.zeros_like(h).index_add(0, receivers, weight * h[senders])
      h = total + (r * r)[:, None] * h + bias
      h = torch.relu(h) if depth == 0 else h
    return h[v]

  return forward
