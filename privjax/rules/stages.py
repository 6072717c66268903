"""Labels for what covers a stage of a pipeline, as rows and panels print them.

>>> dp('0.5'), dp(2)
('dp(1/2)', 'dp(2)')
>>> pipeline('1')['mining']
'NOT COVERED'

A stage is `dp(eps)` if it is a mechanism, `post-processing` if it reads only
public inputs and outputs of such stages, and `NOT COVERED` if it reads private
rows in any other way. Everything here is public.
"""

import fractions

from privjax import _validate

POST_PROCESSING = 'post-processing'
NOT_COVERED = 'NOT COVERED'


def dp(epsilon: int | float | str | fractions.Fraction) -> str:
  """Returns the label of a pure epsilon-DP stage, epsilon as a fraction."""
  return f'dp({_validate.rational(epsilon=epsilon)})'


def pipeline(
  epsilon: int | float | str | fractions.Fraction | None,
) -> dict[str, str]:
  """Returns the label of each stage of the published pipeline.

  Only the classifier is private there. The rules are not post-processing of it:
  labels of private rows, the rows themselves and counts over them go in.

  Args:
    epsilon: of the classifier; `None` for one without privacy.

  Returns:
    Labels of 'classifier', 'labels' (of the training rows), 'mining' (forest,
    selection, lists), 'violation' (alpha scores), 'pruning' and 'attack' (its
    success on private rows).
  """
  return {
    'classifier': NOT_COVERED if epsilon is None else dp(epsilon),
    'labels': NOT_COVERED,
    'mining': NOT_COVERED,
    'violation': NOT_COVERED,
    'pruning': NOT_COVERED,
    'attack': NOT_COVERED,
  }
