"""Every release that shows more than its draw is caught by the comparison.

A mutant is a patch under which something beside the drawn candidate depends on
the private graph; `_CAUGHT_IN` names the fields of the observation that differ.
"""

from collections.abc import Callable, Iterator
import contextlib
import dataclasses
import functools
import hashlib
import json
import logging
from unittest import mock
import warnings

from absl.testing import parameterized

from privjax import counterfactual
from privjax import graphs
from privjax import release
from privjax.mechanisms import exact
from privjax.release import certificate
from privjax.release import explainer as explainer_lib
from tests.counterfactual import cases
from tests.counterfactual import checks
from tests.release import neighbor_runs

_Explainer = explainer_lib.PrivateExplainer


def _around_release(
  patch: Callable[[_Explainer, int], contextlib.AbstractContextManager],
) -> contextlib.AbstractContextManager:
  """Holds a patch, which may see the private graph, during every release."""
  original = _Explainer.release

  def leaking(self, target, *, epsilon):
    with patch(self, target):
      return original(self, target, epsilon=epsilon)

  return mock.patch.object(_Explainer, 'release', leaking)


def _degree(owner: _Explainer, target: int) -> int:
  return int(owner._private.graph.degree[target])


def capacity_follows_private_degree():
  """Pads the neighborhood to what this graph needs."""

  def evaluate(model, graph, *args, **kwargs):
    target = args[1].universe.target
    needed = int(graph.graph.degree[target]) + 1
    capacity = counterfactual.NeighborCapacity(needed, cases.NUM_NODES)
    return counterfactual.evaluate_factored(
      model, graph, *args, capacity=capacity, **kwargs
    )

  return mock.patch.object(explainer_lib, '_evaluator', lambda *args: evaluate)


def _charged(epsilon_of) -> contextlib.AbstractContextManager:
  charge = release.Ledger.charge

  def patch(owner, target):
    def wrong(ledger, dataset_id, epsilon, *args, **kwargs):
      epsilon = epsilon_of(epsilon, _degree(owner, target))
      return charge(ledger, dataset_id, epsilon, *args, **kwargs)

    return mock.patch.object(release.Ledger, 'charge', wrong)

  return _around_release(patch)


def charge_depends_on_the_neighborhood():
  """A target without neighbors costs less."""
  return _charged(lambda epsilon, degree: epsilon / (1 if degree else 2))


def _with_query(change) -> contextlib.AbstractContextManager:
  digest = certificate.query_digest

  def patch(owner, target):
    wrong = lambda query: digest(query | change(owner, target))
    return mock.patch.object(certificate, 'query_digest', wrong)

  return _around_release(patch)


def query_digest_with_the_number_of_edges():
  """The name of the query has the private edge count in it."""
  return _with_query(
    lambda owner, target: {'num_edges': owner._private.graph.num_edges}
  )


def cache_keyed_by_the_private_graph():
  """An edited graph is not served from the cache, and the key says so."""

  def change(owner, target):
    del target
    edges = hashlib.sha256(owner._private.graph.pairs.tobytes())
    return {'graph': edges.hexdigest()}

  return _with_query(change)


def _certified(change) -> contextlib.AbstractContextManager:
  build = certificate.build

  def patch(owner, target):
    def wrong(query, support, index, charge):
      content = json.loads(build(query, support, index, charge))
      change(content, owner, support, index)
      content['sha256'] = certificate.seal(content)
      return json.dumps(content, indent=2) + '\n'

    return mock.patch.object(certificate, 'build', wrong)

  return _around_release(patch)


def _scored(owner, support) -> counterfactual.CandidateEvaluation:
  public = owner.public
  return counterfactual.score(
    public.model,
    owner._private,
    public.features,
    support,
    public.config,
    evaluator=owner._evaluator,
  ).evaluation


def certificate_with_the_original_label():
  """The prediction of the target is told for free."""

  def change(content, owner, support, index):
    del index
    label = _scored(owner, support).label[0, 0]
    content['original_label'] = int(label)

  return _certified(change)


def certificate_with_the_validity():
  """Whether the released candidate flips the prediction."""

  def change(content, owner, support, index):
    flips = _scored(owner, support).flips
    content['release']['valid'] = bool(flips.flat[index])

  return _certified(change)


def certificate_with_the_number_of_edges():
  """One of the public sizes is not public."""

  def change(content, owner, support, index):
    del support, index
    content['config']['num_edges'] = owner._private.graph.num_edges

  return _certified(change)


def _on_failure(wrap) -> contextlib.AbstractContextManager:
  """Fails as `wrap(error)` does when scoring fails."""
  draw = _Explainer._draw

  def wrong(self, support, epsilon, *, source):
    try:
      self._evaluator(
        self._public.model, self._private, None, support, feature_masks=None
      )
    except ValueError as error:
      if 'there is a bug' in str(error):
        wrap(error)
    return draw(self, support, epsilon, source=source)

  return mock.patch.object(_Explainer, '_draw', wrong)


def exception_text_with_private_values():
  """The cause is told in words."""

  def wrap(error):
    raise explainer_lib.ReleaseError(f'scoring failed: {error}') from None

  return _on_failure(wrap)


def exception_with_its_context():
  """The cause is suppressed when printed, and is still there."""

  def wrap(error):
    del error
    raise explainer_lib.ReleaseError('scoring failed') from None

  return _on_failure(wrap)


def invalid_candidates_filtered():
  """Candidates that name a pair that is no edge have weight 0."""

  def patch(owner, target):
    support, sample = owner._support(target), exact.sample
    exist = owner._private.graph.has_pairs(support.universe.pairs)
    real = ~(support.edge_subsets & ~exist).any(axis=1)
    keep = (support.valid & real[:, None]).reshape(-1)
    wrong = lambda utility, *, weights, **kwargs: sample(
      utility, weights=weights * keep, **kwargs
    )
    return mock.patch.object(exact, 'sample', wrong)

  return _around_release(patch)


def levels_that_occur():
  """The public levels are those that this graph takes."""

  def patch(owner, target):
    del owner, target
    sample = exact.sample
    wrong = lambda utility, *, levels, **kwargs: sample(
      utility, levels=sorted(set(utility.tolist())), **kwargs
    )
    return mock.patch.object(exact, 'sample', wrong)

  return _around_release(patch)


def universe_from_the_private_graph():
  """The candidate pairs are the target's real edges."""

  def support(self, target):
    public = self._public
    return counterfactual.support(
      graphs.Snapshot(self._private.graph, 'external'),
      public.features,
      public.first_layer,
      target,
      public.config,
    )

  return mock.patch.object(_Explainer, '_support', support)


def snapshot_digest_of_the_private_graph():
  """Commits to the private edges."""

  def change(content, owner, support, index):
    del support, index
    snapshot = graphs.Snapshot(owner._private.graph, 'external')
    public = dataclasses.replace(owner.public, snapshot=snapshot)
    content['public_objects'] = public.digests()

  return _certified(change)


def _telling(tell) -> contextlib.AbstractContextManager:
  @contextlib.contextmanager
  def patch(owner, target):
    tell(f'degree {_degree(owner, target)}')
    yield

  return _around_release(patch)


def log_with_the_degree():
  """A log line that helps to debug."""
  return _telling(logging.getLogger('privjax').warning)


def warning_about_the_degree():
  """A warning that the target has few neighbors."""
  return _telling(lambda text: warnings.warn(text, stacklevel=1))


def print_of_the_degree():
  """A left-over print."""
  return _telling(print)


_CAUGHT_IN = {
  capacity_follows_private_degree: {'compiled'},
  charge_depends_on_the_neighborhood: {'rows', 'balance', 'certificates'},
  query_digest_with_the_number_of_edges: {'rows', 'certificates'},
  cache_keyed_by_the_private_graph: {'rows', 'certificates'},
  certificate_with_the_original_label: {'certificates', 'rows', 'files'},
  certificate_with_the_validity: {'certificates'},
  certificate_with_the_number_of_edges: {'certificates', 'rows', 'files'},
  exception_text_with_private_values: {'errors'},
  exception_with_its_context: {'errors'},
  invalid_candidates_filtered: {'sampled'},
  levels_that_occur: {'sampled'},
  universe_from_the_private_graph: {'certificates', 'rows'},
  snapshot_digest_of_the_private_graph: {'certificates', 'files'},
  log_with_the_degree: {'logs'},
  warning_about_the_degree: {'warned'},
  print_of_the_degree: {'printed'},
}
# The target's only edge goes, and the prediction changes with it.
_PROBLEM = neighbor_runs.problem(
  cases.make([(0, 1), (1, 2), (2, 3)], snapshot=[(0, 1), (0, 2)], seed=14)
)
_PAIR = (0, 1)


def _observations() -> Iterator[neighbor_runs.Observation]:
  private = _PROBLEM.case.private
  toggled = graphs.toggle_pair(private.graph, _PAIR)
  for graph in (private, graphs.PrivateGraph(toggled)):
    yield neighbor_runs.observe(_PROBLEM, graph)


@functools.cache
def _compile() -> None:
  for _ in _observations():
    pass


def _fields(mutant) -> set[str]:
  _compile()
  with mutant():
    found = neighbor_runs.differences(_PROBLEM, *_observations())
  return {line.partition(':')[0] for line in found}


class MutantsTest(parameterized.TestCase):
  @parameterized.named_parameters((m.__name__, m) for m in _CAUGHT_IN)
  def test_is_caught(self, mutant):
    self.assertContainsSubset(_CAUGHT_IN[mutant], _fields(mutant))

  def test_the_library_passes(self):
    self.assertEqual(_fields(contextlib.nullcontext), set())

  def test_the_patches_alone_are_not_caught(self):
    nothing = lambda *args: None
    for patch in (
      _certified(nothing),
      _charged(lambda epsilon, degree: epsilon),
      _with_query(lambda owner, target: {}),
      _on_failure(nothing),
      _telling(nothing),
    ):
      self.assertEqual(_fields(lambda patch=patch: patch), set())

  def test_the_two_graphs_predict_differently(self):
    # Else a certificate with the label could not be caught.
    this, labels = _PROBLEM, set()
    toggled = graphs.toggle_pair(this.case.private.graph, _PAIR)
    for graph in (this.case.private, graphs.PrivateGraph(toggled)):
      scored = checks.score(this.case, graph, this.config)
      labels.add(int(scored.evaluation.label[0, 0]))
    self.assertLen(labels, 2)
