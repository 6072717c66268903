"""Differentially private explanations as pure functions in JAX.

privjax releases explanations of models that were built from sensitive data,
and says exactly what each release costs. It covers counterfactual explanations
of a frozen graph neural network, released by the exponential mechanism over a
public set of candidates, and rule explanations of a private linear model.
Mechanisms return exact distributions; drawing from one is the last step.

>>> import privjax
>>> root = privjax.prng.key(0)
>>> privjax.types.NeighboringRelation.ADD_REMOVE_ONE_EDGE.unit
'edge'
"""

from privjax import audit
from privjax import counterfactual
from privjax import data
from privjax import erm
from privjax import explainers
from privjax import graphs
from privjax import mechanisms
from privjax import models
from privjax import placement
from privjax import prng
from privjax import release
from privjax import rules
from privjax import types
from privjax._version import __version__ as __version__

__all__ = [
  'audit',
  'counterfactual',
  'data',
  'erm',
  'explainers',
  'graphs',
  'mechanisms',
  'models',
  'placement',
  'prng',
  'release',
  'rules',
  'types',
]
