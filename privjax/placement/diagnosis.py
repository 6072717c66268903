"""What graph-level placement does to explanations (PrivCFS, Sec. 3.2, 4.4).

An explainer that runs on a noisy graph explains the noisy prediction:

  polluted  the noisy graph's prediction differs from the private graph's, so
            the wrong thing is explained before the explainer has started
  spurious  the intervention that was found flips the noisy prediction but, on
            the private graph, not the private one

>>> import numpy as np
>>> from privjax.placement import edge_rand
>>> star, _ = graphs.from_pairs(4, [[0, 1], [0, 2], [0, 3]])
>>> private = graphs.PrivateGraph(star)
>>> noisy = edge_rand.privatize(private, epsilon=40, seed=0)
>>> x = scipy.sparse.csr_array(np.eye(4)[:, :2])
>>> layer = {'kernel': np.eye(2), 'bias': np.zeros(2)}
>>> model = models.gcn.model({'hidden': layer, 'output': layer})
>>> report = diagnose(model, private, noisy, x, np.array([0, 1]))
>>> report.pollution, report.num_retained
(0.0, 3)

Features, models and targets are public; the private edges reach every field of
the report. Not for release.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import scipy.sparse

from privjax import _validate
from privjax import explainers
from privjax import graphs
from privjax import models
from privjax.placement import forward
from privjax.placement import noisy_graph

Finder = Callable[
  [noisy_graph.NoisyGraph, np.ndarray],
  Sequence[explainers.Intervention | None],
]


class Diagnosis(NamedTuple):
  """The report, over T targets. Not for release.

  Attributes:
    targets: `[T]` node ids.
    clean_label: `[T]` predictions on the private graph.
    noisy_label: `[T]` predictions on the noisy graph.
    noisy_flips: `[T]` bool, an intervention was found and changes the noisy
      prediction; all False without a finder.
    clean_flips: `[T]` bool, that intervention changes the private prediction.
    num_retained: private edges that the noisy graph has.
    num_edges: edges of the noisy graph.
  """

  targets: np.ndarray
  clean_label: np.ndarray
  noisy_label: np.ndarray
  noisy_flips: np.ndarray
  clean_flips: np.ndarray
  num_retained: int
  num_edges: int

  @property
  def polluted(self) -> np.ndarray:
    """`[T]` bool, the noisy prediction differs from the private one."""
    return self.clean_label != self.noisy_label

  @property
  def spurious(self) -> np.ndarray:
    """`[T]` bool, the intervention flips the noisy prediction only."""
    return self.noisy_flips & ~self.clean_flips

  @property
  def pollution(self) -> float:
    """Share of targets that are polluted."""
    return float(self.polluted.mean())

  @property
  def spurious_rate(self) -> float:
    """Share of *all* targets whose flip is spurious."""
    return float(self.spurious.mean())

  @property
  def spurious_on_polluted(self) -> float | None:
    """Share of the spurious flips on polluted targets; `None` without any."""
    if not self.spurious.any():
      return None
    return float(self.polluted[self.spurious].mean())


def diagnose(
  model: models.NodeModel,
  private: graphs.PrivateGraph,
  noisy: noisy_graph.NoisyGraph,
  features: scipy.sparse.csr_array,
  targets: np.ndarray,
  *,
  finder: Finder | None = None,
  noisy_model: models.NodeModel | None = None,
) -> Diagnosis:
  """Compares predictions and interventions on the noisy and the private graph.

  Forwards run in float64 on the union of the targets' receptive fields.

  Args:
    model: the frozen classifier.
    private: the private graph.
    noisy: what a placement made of it.
    features: `[N, F]` public features.
    targets: `[T]` node ids, T >= 1.
    finder: `(noisy, targets) -> one intervention per target`, `None` where it
      finds none. It explains the *noisy* graph; whether an intervention flips
      anything is decided here.
    noisy_model: the classifier on the noisy graph, where that is another one
      (model-level placement); `model` by default.

  Raises:
    ValueError: if a target is not in the graph, the two graphs have different
      sizes, or the finder returns another number of interventions.
  """
  targets = np.asarray(targets)
  num_nodes = private.graph.num_nodes
  _validate.integer(num_nodes, num_nodes, noisy_num_nodes=noisy.graph.num_nodes)
  _validate.integer(1, num_targets=len(targets))
  noisy_model = model if noisy_model is None else noisy_model
  clean = forward.graph_view(private.graph)
  shown = forward.noisy_view(noisy)
  found = [None] * len(targets)
  if finder is not None:
    found = list(finder(noisy, targets))
    _validate.integer(len(targets), len(targets), num_interventions=len(found))
  clean_label, clean_after = _labels(model, clean, features, targets, found)
  noisy_label, noisy_after = _labels(
    noisy_model, shown, features, targets, found
  )
  return Diagnosis(
    targets=targets,
    clean_label=clean_label,
    noisy_label=noisy_label,
    noisy_flips=noisy_after != noisy_label,
    clean_flips=clean_after != clean_label,
    num_retained=noisy_graph.retained_edges(private, noisy),
    num_edges=noisy.graph.num_edges,
  )


def field_labels(
  model: models.NodeModel,
  fields: Sequence[graphs.ReceptiveField],
  features: scipy.sparse.csr_array,
) -> np.ndarray:
  """Returns the `[T]` predictions of the targets of T receptive fields.

  For graphs too large to be drawn whole: compare the labels on fields from
  `edge_rand.sample_field` with those from `graphs.extract_receptive_field`.
  Each target's chance to be polluted is that of the whole noisy graph. One
  float64 forward on the disjoint union of the fields.

  Args:
    model: the frozen classifier.
    fields: T >= 1 fields of at least `model.num_hops` hops.
    features: `[N, F]` public features.
  """
  _validate.integer(1, num_fields=len(fields))
  return forward.field_logits(model, fields, features).argmax(axis=-1)


def _labels(model, view, features, targets, found):
  """Returns `[T]` labels before and after each target's own intervention."""
  union = forward.union_field(view, features, targets, model.num_hops)
  before = forward.logits(model, union)[union.target_index].argmax(axis=-1)
  after = before.copy()
  for position, intervention in enumerate(found):
    if intervention is not None:
      edited = forward.intervene(union, position, intervention)
      row = forward.logits(model, edited)[union.target_index[position]]
      after[position] = row.argmax()
  return before, after
