"""What a method's complete release is certified for, as data.

The certification column of a table is `ReleaseGuarantee.certified`, and its
guarantee column is `ReleaseGuarantee.label`: both follow from the mechanism's
settings and from whether its operation space is public; neither is typed in.

>>> nothing = uncertified('no noise')
>>> nothing.certified, nothing.label
(False, 'none')
>>> nothing.require()
Traceback (most recent call last):
  ...
ValueError: no guarantee: NOT COVERED: no noise

All inputs are public.
"""

import dataclasses
import decimal
import fractions

from privjax import types

PRIVATE_SPACE = (
  'the operation space is read from the private graph: its pairs and their '
  'number leak edges'
)
FLOATING_POINT = (
  'noise is drawn in floating point from a seeded key: a simulation of the '
  'mechanism, not a certified draw'
)
_RELATION = types.NeighboringRelation.ADD_REMOVE_ONE_EDGE

# Six digits, rounded up: a label must not promise more than its guarantee.
_UPWARD = decimal.Context(prec=6, rounding=decimal.ROUND_CEILING)


@dataclasses.dataclass(frozen=True, kw_only=True)
class ReleaseGuarantee:
  """The statement about one complete release.

  k releases about one graph compose, whatever their targets.

  Attributes:
    privacy: the (epsilon, delta) statement; epsilon `None` claims nothing.
    not_covered: what the statement leaves out, or why there is none.
    data_independent: the release reads public inputs only: epsilon is 0.
  """

  privacy: types.PrivacyGuarantee
  not_covered: tuple[str, ...] = ()
  data_independent: bool = False

  def __post_init__(self):
    if not (self.certified or self.not_covered):
      raise ValueError('not_covered must say why no epsilon is claimed, got ()')

  @property
  def certified(self) -> bool:
    """Whether the complete release carries a bound."""
    return self.data_independent or self.privacy.epsilon is not None

  @property
  def label(self) -> str:
    """A short text: '0 (public)', 'pure 8', '(8, 1e-05)' or 'none'.

    Six digits, rounded up.
    """
    if self.data_independent:
      return '0 (public)'
    if self.privacy.epsilon is None:
      return 'none'
    epsilon = _rounded_up(self.privacy.epsilon)
    delta = self.privacy.delta
    return f'({epsilon}, {_rounded_up(delta)})' if delta else f'pure {epsilon}'

  def require(self) -> types.PrivacyGuarantee:
    """Returns the statement, for an account or a certificate.

    Raises:
      ValueError: if there is none, saying why, or nothing to account for.
    """
    if self.data_independent:
      raise ValueError(f'nothing to account for: {self.privacy.theorem}')
    if self.privacy.epsilon is None:
      reasons = '; '.join(self.not_covered) or self.privacy.theorem
      raise ValueError(f'no guarantee: NOT COVERED: {reasons}')
    return self.privacy


def _rounded_up(value: fractions.Fraction) -> str:
  exact = decimal.Decimal(value.numerator), decimal.Decimal(value.denominator)
  return f'{float(_UPWARD.divide(*exact)):g}'


def uncertified(*reasons: str) -> ReleaseGuarantee:
  """Returns the guarantee of a release without a bound, and why."""
  privacy = types.PrivacyGuarantee(
    epsilon=None, relation=_RELATION, theorem='none'
  )
  return ReleaseGuarantee(privacy=privacy, not_covered=reasons)


def public_input() -> ReleaseGuarantee:
  """Returns the guarantee of a release that reads no private input."""
  privacy = types.PrivacyGuarantee(
    epsilon=None, relation=_RELATION, theorem='reads public inputs only'
  )
  return ReleaseGuarantee(privacy=privacy, data_independent=True)


def certified(
  *,
  epsilon: fractions.Fraction,
  delta: fractions.Fraction,
  theorem: str,
  space_is_public: bool,
) -> ReleaseGuarantee:
  """Returns the guarantee of a noisy mask over an operation space.

  Args:
    epsilon: bound for the mask *given* its list of elements.
    delta: in [0, 1).
    theorem: the source of the bound.
    space_is_public: if false, the list itself is not covered and so nothing is
      claimed about the complete release.
  """
  if not space_is_public:
    return uncertified(
      PRIVATE_SPACE,
      f'({float(epsilon):g}, {float(delta):g}) would hold for the mask of a '
      f'public list of elements only ({theorem})',
    )
  privacy = types.PrivacyGuarantee(
    epsilon=epsilon, delta=delta, relation=_RELATION, theorem=theorem
  )
  return ReleaseGuarantee(privacy=privacy, not_covered=(FLOATING_POINT,))
