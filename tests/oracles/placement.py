"""Laws of noisy graphs by enumeration and numerical integration.

A graph is a tuple of bits, one per unordered pair in lexicographic order, and a
law a dictionary of probabilities.
"""

import itertools
import math

from scipy import integrate
from scipy import stats


def all_pairs(num_nodes):
  """Returns the unordered pairs in lexicographic order."""
  return list(itertools.combinations(range(num_nodes), 2))


def bits_of(num_nodes, pairs):
  """Returns the bits of a graph that is given by its pairs."""
  edges = {frozenset(map(int, pair)) for pair in pairs}
  return tuple(int(frozenset(p) in edges) for p in all_pairs(num_nodes))


def channel_law(bits, keep_prob, false_prob):
  """Returns the law of a channel per bit over all outputs."""
  law = {}
  for output in itertools.product((0, 1), repeat=len(bits)):
    chances = [
      (p if out else 1 - p)
      for out, p in zip(
        output, (keep_prob if bit else false_prob for bit in bits)
      )
    ]
    law[output] = math.prod(chances)
  return law


def worst_log_ratio(bits, keep_prob, false_prob):
  """Returns the largest |log ratio| over outputs and one-bit neighbors."""
  own, worst = channel_law(bits, keep_prob, false_prob), 0.0
  for position in range(len(bits)):
    other = list(bits)
    other[position] = 1 - other[position]
    law = channel_law(other, keep_prob, false_prob)
    worst = max(worst, *(abs(math.log(own[o] / law[o])) for o in own))
  return worst


def field_law(num_nodes, bits, target, num_hops, keep_prob, false_prob):
  """Returns the law of `field_key` of the target's ball."""
  law = {}
  for output, chance in channel_law(bits, keep_prob, false_prob).items():
    pairs = [p for p, bit in zip(all_pairs(num_nodes), output) if bit]
    degree = [sum(v in p for p in pairs) for v in range(num_nodes)]
    ball = {target}
    for _ in range(num_hops):
      ball |= {v for p in pairs if ball & set(p) for v in p}
    inside = tuple(p for p in pairs if set(p) <= ball)
    key = (tuple(sorted(ball)), inside, tuple(degree[v] for v in sorted(ball)))
    law[key] = law.get(key, 0.0) + chance
  return law


def retained_law(num_ones, num_zeros, count, noise, scale):
  """Returns P(r of the ones are among the `count` largest), r = 0..count.

  Integrates over the value of the smallest entry that is kept.
  """
  base = (
    stats.norm(scale=scale)
    if noise == 'gaussian'
    else (stats.laplace(scale=scale))
  )

  def entry(t, r, last_is_one):
    # The last kept entry, the r and z kept above it, the others below.
    z = count - r
    ones_above, zeros_above = r - last_is_one, z - (not last_is_one)
    if min(ones_above, zeros_above) < 0 or r > num_ones or z > num_zeros:
      return 0.0
    shift, group = (1, num_ones) if last_is_one else (0, num_zeros)
    ways = group * math.comb(num_ones - last_is_one, ones_above)
    ways *= math.comb(num_zeros - (not last_is_one), zeros_above)
    above = base.sf(t - 1) ** ones_above * base.sf(t) ** zeros_above
    below = base.cdf(t - 1) ** (num_ones - r) * base.cdf(t) ** (num_zeros - z)
    return ways * base.pdf(t - shift) * above * below

  law = []
  for r in range(count + 1):
    both = lambda t, r=r: entry(t, r, True) + entry(t, r, False)
    law.append(
      integrate.quad(both, -12 * scale, 1 + 12 * scale, points=(0, 1))[0]
    )
  return law


def gaussian_delta(sigma, epsilon):
  """Returns the integral of max(0, p - exp(epsilon) q) over the real line."""
  p, q = stats.norm(1, sigma), stats.norm(0, sigma)
  start = (
    0.5 + epsilon * sigma**2
  )  # Where the densities' ratio is exp(epsilon).
  excess = lambda t: p.pdf(t) - math.exp(epsilon) * q.pdf(t)
  stop = max(start, 1) + 12 * sigma
  return integrate.quad(excess, start, stop, epsabs=1e-14)[0]
