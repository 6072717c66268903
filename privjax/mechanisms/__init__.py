"""Differentially private mechanisms; they know no graphs, rules or models."""

from privjax.mechanisms import accounting
from privjax.mechanisms import entropy
from privjax.mechanisms import exact
from privjax.mechanisms import gaussian
from privjax.mechanisms import permute_and_flip
from privjax.mechanisms import randomized_response
from privjax.mechanisms import vector_noise
from privjax.mechanisms.exponential import log_law
from privjax.mechanisms.exponential import probabilities
from privjax.mechanisms.exponential import simulate

__all__ = (
  'accounting',
  'entropy',
  'exact',
  'gaussian',
  'log_law',
  'permute_and_flip',
  'probabilities',
  'randomized_response',
  'simulate',
  'vector_noise',
)
