"""Breast cancer: the embedded table, which needs no file.

It is scikit-learn's copy of the Wisconsin diagnostic data: 569 masses, here
with the ten means over their cell nuclei. Class +1 is malignant.

The bounds are round numbers around the ranges that the data's documentation
prints, written down here; they are not computed from the rows, and a value
outside is clipped. The sensitive column is the mean texture (the standard
deviation of gray levels) in four bands.

>>> table = load()
>>> table.num_rows, int((table.labels == 1).sum())
(569, 212)

References: Street, Wolberg and Mangasarian (1993), "Nuclear feature extraction
for breast tumor diagnosis".
"""

from typing import Any

from privjax.data import schema as schema_lib
from privjax.data import table as table_lib


def _numeric(name: str, lower: float, upper: float, *cuts: float):
  return schema_lib.NumericColumn(
    name=name, lower=lower, upper=upper, clip=True, cuts=cuts
  )


SCHEMA = schema_lib.Schema(
  name='breast_cancer',
  columns=(
    _numeric('mean radius', 5, 30, 12, 15),
    schema_lib.NominalColumn(
      name='mean texture',
      levels=('<= 16', '16-19', '19-22', '> 22'),
      cuts=(16, 19, 22),
    ),
    _numeric('mean perimeter', 40, 200, 80, 100),
    _numeric('mean area', 100, 2600, 450, 700),
    _numeric('mean smoothness', 0.04, 0.18, 0.09, 0.1),
    _numeric('mean compactness', 0, 0.4, 0.07, 0.12),
    _numeric('mean concavity', 0, 0.5, 0.04, 0.1),
    _numeric('mean concave points', 0, 0.25, 0.025, 0.06),
    _numeric('mean symmetry', 0.1, 0.35, 0.17, 0.19),
    _numeric('mean fractal dimension', 0.04, 0.1, 0.06, 0.065),
  ),
  label=schema_lib.LabelColumn(
    name='diagnosis', negative='benign', positive='malignant'
  ),
  sensitive='mean texture',
)


def load() -> table_lib.Table:
  """Loads the embedded table: 569 rows, of which 212 are of class +1."""
  import sklearn.datasets  # Here, since it takes a second.

  bunch: Any = sklearn.datasets.load_breast_cancer()
  raw = dict(zip(bunch.feature_names.tolist(), bunch.data.T))
  raw[SCHEMA.label.name] = bunch.target_names[bunch.target]
  return table_lib.from_raw(SCHEMA, raw)
