"""Types that every part of privjax shares.

`PrivacyGuarantee` is data, not prose: an experiment prints it, a certificate
stores it and an accountant composes it.

>>> from fractions import Fraction
>>> PrivacyGuarantee(
...   epsilon=Fraction(1, 2),
...   relation=NeighboringRelation.ADD_REMOVE_ONE_EDGE,
...   theorem='McSherry & Talwar (2007), Theorem 6',
... ).unit
'edge'
"""

import dataclasses
import enum
import fractions
from typing import Any, TypeAlias

import jax
import numpy as np

Array: TypeAlias = np.ndarray | jax.Array
KeyArray: TypeAlias = jax.Array
Params: TypeAlias = dict[str, Any]


class NeighboringRelation(enum.Enum):
  """When two private inputs count as neighbors.

  ADD_REMOVE_ONE_EDGE: two graphs on the same nodes whose sets of undirected
    edges differ in exactly one edge. Replacing one edge is distance 2.
  REPLACE_ONE_ROW: two tables of equal, public length that differ in one row.
  """

  ADD_REMOVE_ONE_EDGE = 'add_remove_one_edge'
  REPLACE_ONE_ROW = 'replace_one_row'

  @property
  def unit(self) -> str:
    """What one unit of change is: 'edge' or 'row'."""
    return 'edge' if self is self.ADD_REMOVE_ONE_EDGE else 'row'


@dataclasses.dataclass(frozen=True, kw_only=True)
class PrivacyGuarantee:
  """An (epsilon, delta) differential privacy statement.

  Attributes:
    epsilon: exact, > 0; `None` says that no bound is claimed.
    delta: exact, in [0, 1); 0 is pure differential privacy.
    relation: the neighboring relation that the statement is about.
    theorem: the source that the statement rests on.
  """

  epsilon: fractions.Fraction | None
  relation: NeighboringRelation
  theorem: str
  delta: fractions.Fraction = fractions.Fraction(0)

  def __post_init__(self):
    if not isinstance(self.relation, NeighboringRelation):
      raise ValueError(
        f'relation must be a NeighboringRelation, got {self.relation!r}'
      )
    if self.epsilon is not None and not (
      isinstance(self.epsilon, fractions.Fraction) and self.epsilon > 0
    ):
      raise ValueError(f'epsilon must be a Fraction > 0, got {self.epsilon!r}')
    if not (isinstance(self.delta, fractions.Fraction) and 0 <= self.delta < 1):
      raise ValueError(
        f'delta must be a Fraction in [0, 1), got {self.delta!r}'
      )

  @property
  def unit(self) -> str:
    """What one unit of change is: 'edge' or 'row'."""
    return self.relation.unit
