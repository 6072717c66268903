"""Regularized linear models with plain NumPy and SciPy's optimizers.

Rows carry no labels here, losses are written by cases, and the density of a
perturbed minimizer takes its Jacobian from finite differences.
"""

import math

import numpy as np
from scipy import optimize


def loss(name, z, smoothing=0.5):
  """Returns (value, slope, curvature) of one margin."""
  if name == 'logistic':
    value = math.log1p(math.exp(-z)) if z > 0 else -z + math.log1p(math.exp(z))
    p = 1 / (1 + math.exp(z)) if z < 700 else 0.0
    return value, -p, p * (1 - p)
  if z > 1 + smoothing:
    return 0.0, 0.0, 0.0
  if z < 1 - smoothing:
    return 1 - z, -1.0, 0.0
  gap = 1 + smoothing - z
  return gap**2 / (4 * smoothing), -gap / (2 * smoothing), 1 / (2 * smoothing)


def objective(name, rows, labels, weights, penalty, linear):
  """Returns (value, gradient, Hessian) of the mean loss and its terms."""
  n, d = rows.shape
  value = linear @ weights + 0.5 * penalty @ weights**2
  gradient = linear + penalty * weights
  hessian = np.diag(np.asarray(penalty, float))
  for x, y in zip(rows, labels):
    v, s, c = loss(name, y * (x @ weights))
    value += v / n
    gradient = gradient + s * y * x / n
    hessian = hessian + c * np.outer(x, x) / n
  return value, gradient, hessian


def minimize(name, rows, labels, penalty, linear=None):
  """Returns the minimizer, by SciPy's trust-region Newton method."""
  d = rows.shape[1]
  linear = np.zeros(d) if linear is None else linear
  at = lambda w: objective(name, rows, labels, w, penalty, linear)
  result = optimize.minimize(
    lambda w: at(w)[0],
    np.zeros(d),
    jac=lambda w: at(w)[1],
    hess=lambda w: at(w)[2],
    method='trust-exact',
    options={'gtol': 1e-11, 'maxiter': 500},
  )
  # The trust region stops at the rounding of the value; plain Newton goes on.
  weights = result.x
  for _ in range(5):
    _, gradient, hessian = at(weights)
    weights = weights - np.linalg.solve(hessian, gradient)
  assert np.linalg.norm(at(weights)[1]) < 1e-12
  return weights


def log_density(name, rows, labels, weights, *, penalty, scale, step=1e-6):
  """Returns the log density of the perturbed minimizer, up to a constant."""
  n, d = rows.shape

  def noise(w):
    return -n * objective(name, rows, labels, w, penalty, np.zeros(d))[1]

  jacobian = np.empty((d, d))
  for j in range(d):
    ahead, behind = weights.copy(), weights.copy()
    ahead[j] += step
    behind[j] -= step
    jacobian[:, j] = (noise(ahead) - noise(behind)) / (2 * step)
  norm = np.linalg.norm(noise(weights))
  return -norm / scale, math.log(abs(np.linalg.det(jacobian)))
