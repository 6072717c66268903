"""What a data owner runs: price a release, make it, and be able to prove it.

The one object with state next to the ledger. It holds the public objects, the
private graph and an open ledger; every release is charged before anything is
computed on the private graph, and drawn from the operating system's entropy.
"""

from collections.abc import Callable, Sequence
import fractions
import functools
import json
from typing import NamedTuple

import numpy as np
import scipy.sparse

from privjax import _validate
from privjax import counterfactual
from privjax import graphs
from privjax import models
from privjax import types
from privjax.mechanisms import entropy
from privjax.mechanisms import exact
from privjax.release import certificate
from privjax.release import ledger as ledger_lib
from privjax.release import ledger_records
from privjax.release import public_objects

Rational = int | str | fractions.Fraction

PRICED = ('1/2', '1', '2', '4', '8')
# Covers every neighborhood of a citation graph; wider ones are cut.
CAPACITY = counterfactual.NeighborCapacity(neighbors=64, second=256)


class ReleaseError(RuntimeError):
  """A release failed after its charge, which stays spent.

  The cause is left out on purpose: it may have been private.
  """


class Offer(NamedTuple):
  """What a release about a target would cost and buy. Public; costs nothing.

  Attributes:
    target: node id.
    support_size: number of candidates that the release is drawn from.
    prices: expected validity by epsilon, simulated on the snapshot.
    remaining: what is left of the budget, in `unit`.
    unit: 'epsilon' or 'rho', of the account.
  """

  target: int
  support_size: int
  prices: counterfactual.PriceList
  remaining: fractions.Fraction
  unit: str


class Release(NamedTuple):
  """One release.

  Attributes:
    target: node id.
    delete_pairs: pairs whose edges the explanation deletes, where they exist.
    mask_features: feature ids of the target that it masks.
    epsilon: exact.
    certified: whether it was drawn from the operating system's entropy.
    cached: whether it is an earlier answer to the same query, at no cost.
    certificate: JSON text, or `None` if not certified.
  """

  target: int
  delete_pairs: tuple[tuple[int, int], ...]
  mask_features: tuple[int, ...]
  epsilon: fractions.Fraction
  certified: bool
  cached: bool
  certificate: str | None


class PrivateExplainer:
  """Releases counterfactual explanations of one private graph.

  Formal guarantees:
    Every new `release(target, epsilon)` is epsilon-DP, delta 0, under
    ADD_REMOVE_ONE_EDGE (`counterfactual.guarantee`), given that the public
    objects were fixed independently of the private edges; all of them together
    meet the guarantee of the ledger's account (`account().guarantee`).
    Everything else it returns or raises is a function of public objects and of
    the ledger. Not covered: `certificate.NOT_COVERED`.
  """

  def __init__(
    self,
    *,
    private: graphs.PrivateGraph,
    snapshot: graphs.Snapshot,
    features: scipy.sparse.csr_array,
    model: models.NodeModel,
    ledger: ledger_lib.Ledger,
    dataset_id: str,
    analyst: str | None = None,
    first_layer=None,
    config: counterfactual.PrivCFSConfig | None = None,
    capacity: public_objects.Capacity = CAPACITY,
  ):
    """Checks the public objects; reads nothing private and spends nothing.

    Args:
      private: the graph whose edges are secret.
      snapshot: the public graph, on the same node ids.
      features: `[N, F]` float32 CSR features.
      model: the frozen classifier.
      ledger: an open ledger with an account for the dataset.
      dataset_id: the owner's name of the data, the same for all its versions.
      analyst: the sub-account that pays as well, if any.
      first_layer: `[F, H]` kernel that ranks candidate features; `None` takes
        the model's, if it is a `models.gcn`.
      config: settings of the mechanism; `None` is the paper's, but with the
        tight sensitivity.
      capacity: public sizes of a scored neighborhood: `NeighborCapacity` for a
        `models.gcn`, `graphs.Capacity` for another model.

    Raises:
      TypeError, ValueError: naming the argument.
      UnknownAccountError: if the ledger has no such account or analyst.
    """
    config = _default_config() if config is None else config
    _check_type(graphs.PrivateGraph, private=private)
    _check_type(graphs.Snapshot, snapshot=snapshot)
    _check_type(models.NodeModel, model=model)
    _check_type(ledger_lib.Ledger, ledger=ledger)
    _check_type(counterfactual.PrivCFSConfig, config=config)
    num_nodes = snapshot.graph.num_nodes
    if private.graph.num_nodes != num_nodes:
      raise ValueError(
        'snapshot must be on the nodes of the private graph, got '
        f'{num_nodes} nodes instead of {private.graph.num_nodes}'
      )
    is_gcn = model.apply_fn is models.gcn.apply
    if first_layer is None:
      if not is_gcn:
        raise ValueError('first_layer must be given for a model of your own')
      first_layer = model.params['hidden']['kernel']
    self._evaluator = _evaluator(is_gcn, capacity)
    self._public = public_objects.PublicObjects(
      snapshot=snapshot,
      features=features,
      model=model,
      first_layer=first_layer,
      config=config,
      capacity=capacity,
    )
    if not is_gcn:
      # Public: a model that breaks its contract is refused before any charge.
      nodes = np.flatnonzero(snapshot.graph.degree)[:2]
      models.check_locality(
        model,
        snapshot.graph,
        features,
        nodes if len(nodes) else np.array([0]),
        tolerance=1e-5,
      )
    if is_gcn:
      num_features = np.shape(model.params['hidden']['kernel'])[0]
      _validate.shape((num_nodes, num_features), features=features)
    self._private = private
    self._ledger = ledger
    self._dataset_id = ledger_records.identifier(dataset_id=dataset_id)
    if analyst is not None:
      ledger_records.identifier(analyst=analyst)
    self._analyst = analyst
    relation = self.account().guarantee.relation
    if relation is not types.NeighboringRelation.ADD_REMOVE_ONE_EDGE:
      raise ValueError(
        'dataset_id must have an account for add_remove_one_edge, got '
        f'{relation.value}'
      )

  @property
  def public(self) -> public_objects.PublicObjects:
    """The public objects, for a verifier."""
    return self._public

  def account(self) -> ledger_records.Balance:
    """Returns how the account (or the analyst's share) stands."""
    return self._ledger.balance(self._dataset_id, self._analyst)

  def price_list(
    self,
    target: int,
    epsilons: Sequence[Rational] = PRICED,
    *,
    rho_guess: Rational = '1/2',
  ) -> Offer:
    """Says what a release would buy, from public objects alone.

    Args:
      target: node id.
      epsilons: exact privacy parameters to price.
      rho_guess: a public guess of the share of the private edges that the
        snapshot discloses; the true one is private.
    """
    support = self._support(target)
    prices = counterfactual.simulate_price_list(
      self._public.model,
      self._public.snapshot,
      self._public.features,
      self._public.first_layer,
      target,
      epsilons,
      self._public.config,
      rho_guess=rho_guess,
      evaluator=self._evaluator,
    )
    balance = self.account()
    return Offer(
      target, support.support_size, prices, balance.remaining, balance.unit
    )

  def release(self, target: int, *, epsilon: Rational) -> Release:
    """Releases one explanation: charges, scores, draws, certifies.

    The same public query of the same account gets the stored answer, at no
    cost. An interrupt after the charge leaves the charge.

    Args:
      target: node id, chosen by a public rule.
      epsilon: exact, in [2^-40, 10^4].

    Returns:
      A certified release.

    Raises:
      ValueError: on a bad argument or a simulated snapshot; nothing spent.
      InsufficientBudgetError: nothing spent.
      LedgerStorageError: says whether something was spent.
      EntropyError, ReleaseError: after the charge, which stays.
    """
    exact_epsilon = _checked_epsilon(epsilon)
    if self._public.snapshot.origin != 'external':
      raise ValueError(
        'snapshot must be external for a release (nothing was spent); a '
        'simulated one serves `simulate`'
      )
    support = self._support(target)
    query = certificate.query(
      self._public, support, str(exact_epsilon), self._dataset_id
    )
    digest = certificate.query_digest(query)
    stored = self._ledger.cached(
      self._dataset_id, digest, analyst=self._analyst
    )
    if stored is not None:
      return _from_certificate(stored, cached=True)
    charge = self._ledger.charge(
      self._dataset_id,
      exact_epsilon,
      digest,
      analyst=self._analyst,
      bounded_range=True,
    )
    draw = self._draw(support, exact_epsilon, source=None)
    text = certificate.build(query, support, draw.index, charge)
    self._ledger.record_release(charge, text)
    return _from_certificate(text, cached=False)

  def simulate(self, target: int, *, epsilon: Rational, seed: int) -> Release:
    """Draws with a seed, for research: charges nothing and certifies nothing.

    The result is a function of the private graph and of a seed that somebody
    knows: it must not leave the owner.
    """
    exact_epsilon = _checked_epsilon(epsilon)
    support = self._support(target)
    source = entropy.seeded(seed, 'simulate', int(target), exact_epsilon)
    draw = self._draw(support, exact_epsilon, source=source)
    a, b = divmod(draw.index, len(support.feature_subsets))
    pairs = support.universe.pairs[support.edge_subsets[a]]
    features = support.universe.features[support.feature_subsets[b]]
    return Release(
      target=int(target),
      delete_pairs=tuple((int(u), int(v)) for u, v in pairs),
      mask_features=tuple(int(d) for d in features),
      epsilon=exact_epsilon,
      certified=False,
      cached=False,
      certificate=None,
    )

  def _support(self, target: int) -> counterfactual.CandidateSet:
    """Builds the support from public objects."""
    public = self._public
    return counterfactual.support(
      public.snapshot,
      public.features,
      public.first_layer,
      target,
      public.config,
    )

  def _draw(self, support, epsilon, *, source) -> exact.Draw:
    """Scores the private graph and draws; errors carry nothing private."""
    config = self._public.config
    try:
      # Whether a private value warns is private as well.
      with np.errstate(all='ignore'):
        scored = counterfactual.score(
          self._public.model,
          self._private,
          self._public.features,
          support,
          config,
          evaluator=self._evaluator,
        )
      return exact.sample(
        scored.utility.reshape(-1),
        levels=counterfactual.utility_levels(
          config.utility,
          max_edges=config.max_edges,
          max_features=config.max_features,
        ),
        epsilon=epsilon,
        sensitivity=config.sensitivity,
        denominator=config.denominator,
        weights=support.valid.reshape(-1).astype(int),
        source=source,
      )
    except entropy.EntropyError:
      raise
    except Exception:
      pass
    # Raised out here, so that it does not carry the cause, which may show
    # private values, even as its context.
    spent = ' after the charge, which stays'
    if source is not None:
      spent = '; nothing was charged'
    raise ReleaseError(
      f'scoring failed{spent}; try the model on the snapshot with '
      'models.check_locality'
    ) from None


def _check_type(wanted: type, **kwargs) -> None:
  """Checks the type of an argument; its value may be private."""
  ((name, value),) = kwargs.items()
  if not isinstance(value, wanted):
    raise TypeError(
      f'{name} must be a {wanted.__name__}, got {type(value).__name__}'
    )


def _default_config() -> counterfactual.PrivCFSConfig:
  return counterfactual.PrivCFSConfig(
    utility=counterfactual.UtilityConfig(sensitivity='tight')
  )


def _evaluator(is_gcn: bool, capacity: public_objects.Capacity):
  """Returns the evaluator that scores at a fixed public capacity."""
  wanted: type = graphs.Capacity
  evaluate: Callable = counterfactual.evaluate_subgraph
  if is_gcn:
    wanted = counterfactual.NeighborCapacity
    evaluate = counterfactual.evaluate_factored
  if not isinstance(capacity, wanted):
    raise TypeError(
      f'capacity must be a {wanted.__name__} for this model, got {capacity!r}'
    )
  for size in capacity:
    _validate.integer(1, capacity=size)
  return functools.partial(evaluate, capacity=capacity)


def _checked_epsilon(epsilon: Rational) -> fractions.Fraction:
  value = _validate.rational(epsilon=epsilon)
  if not fractions.Fraction(1, 2**40) <= value <= 10**4:
    raise ValueError(f'epsilon must be in [2^-40, 10^4], got {epsilon!r}')
  return value


def _from_certificate(text: str, *, cached: bool) -> Release:
  content = json.loads(text)
  released = content['release']
  return Release(
    target=content['target'],
    delete_pairs=tuple((u, v) for u, v in released['delete_pairs']),
    mask_features=tuple(released['mask_features']),
    epsilon=fractions.Fraction(content['guarantee']['epsilon']),
    certified=True,
    cached=cached,
    certificate=text,
  )
