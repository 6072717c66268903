"""Differentially private mechanisms; they know no graphs, rules or models."""

from privjax.mechanisms.exponential import log_law
from privjax.mechanisms.exponential import probabilities
from privjax.mechanisms.exponential import simulate

__all__ = (
  'log_law',
  'probabilities',
  'simulate',
)
