"""A graph convolutional network as dense float64 matrix products."""

import numpy as np


def adjacency_matrix(num_nodes: int, edges: set) -> np.ndarray:
  """Returns the symmetric 0/1 matrix of a set of frozensets {i, j}."""
  matrix = np.zeros((num_nodes, num_nodes))
  for i, j in edges:
    matrix[i, j] = matrix[j, i] = 1.0
  return matrix


def logits(params: dict, adjacency: np.ndarray, features: np.ndarray):
  """Returns `A relu(A X W1 + b1) W2 + b2`, `[N, K]`.

  `A = D^-1/2 (E + I) D^-1/2`, E the adjacency matrix, D the degrees of E + I.
  """
  with_loops = adjacency + np.eye(len(adjacency))
  degree = with_loops.sum(axis=1)
  mixing = with_loops / np.sqrt(np.outer(degree, degree))
  hidden, output = (
    {name: np.asarray(value, np.float64) for name, value in layer.items()}
    for layer in (params['hidden'], params['output'])
  )
  inner = mixing @ (features @ hidden['kernel']) + hidden['bias']
  return mixing @ np.maximum(inner, 0) @ output['kernel'] + output['bias']
