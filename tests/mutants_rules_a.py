"""Named wrong versions of rule sets, mining and Bayesian rule lists.

All are about exactness: nothing here is a privacy mechanism. The tests in
`tests/rules/mutants_a_test.py` must catch every one of them.
"""

import json
import math

import numpy as np

from privjax.rules import bayesian_rule_list
from privjax.rules import mining
from privjax.rules import rule_io
from privjax.rules import rule_list_chain
from privjax.rules import rule_list_posterior as posterior
from privjax.rules import rule_set

# Log priors.


def _log_prior(problem, rule_list, *, log_length=None, step):
  """The prior with `step(width, unused, pmf)` as the log factor of a place."""
  unused = list(problem.num_of_width)
  logs = problem.log_length if log_length is None else log_length
  pmf = [math.exp(value) for value in problem.log_width]
  result = logs[len(rule_list)]
  for antecedent in rule_list:
    width = problem.widths[antecedent]
    result += step(width, unused, pmf)
    unused[width] -= 1
  return result


def _correct_step(width, unused, pmf):
  total = sum(p for p, count in zip(pmf, unused) if count)
  return math.log(pmf[width] / total / unused[width])


def length_not_truncated(problem, rule_list):
  """The Poisson of the length as if lists could be of any length."""
  # Of the cases with an expected length of 3.
  logs = [-3 + k * math.log(3) - math.lgamma(k + 1) for k in range(9)]
  return _log_prior(problem, rule_list, log_length=logs, step=_correct_step)


def exhausted_width_stays(problem, rule_list):
  """The width's normalizer keeps widths that have no unused antecedent."""

  def step(width, unused, pmf):
    total = sum(pmf[w] for w in set(problem.widths))
    return math.log(pmf[width] / total / unused[width])

  return _log_prior(problem, rule_list, step=step)


def normalizer_loses_log_pmf(problem, rule_list):
  """An exhausted width's log-pmf is taken from the sum of pmf values."""

  def step(width, unused, pmf):
    total = sum(pmf[w] for w in set(problem.widths))
    for w in set(problem.widths):
      total -= math.log(pmf[w]) if unused[w] == 0 else 0
    return math.log(pmf[width] / total / unused[width])

  return _log_prior(problem, rule_list, step=step)


def used_antecedents_stay(problem, rule_list):
  """Antecedents are drawn with replacement within a width."""

  def step(width, unused, pmf):
    return _correct_step(width, unused, pmf) + math.log(
      unused[width] / problem.num_of_width[width]
    )

  return _log_prior(problem, rule_list, step=step)


# Log posteriors.


def _log_likelihood(problem, counts, constant=True):
  total = 0.0
  for row in counts:
    shifted = [n + a for n, a in zip(row, problem.alpha)]
    total += sum(map(math.lgamma, shifted)) - math.lgamma(sum(shifted))
    if constant:
      total -= sum(map(math.lgamma, problem.alpha))
      total += math.lgamma(sum(problem.alpha))
  return total


def all_matches_count(problem, rule_list):
  """A row counts for every rule that it matches, not for the first."""
  masks = [problem.extents[a] for a in rule_list]
  rest = (1 << len(problem.counts)) - 1
  for mask in masks:
    rest &= ~mask
  counts = [
    problem.counts[mining.from_bits(mask, len(problem.counts))].sum(axis=0)
    for mask in (*masks, rest)
  ]
  return posterior.log_prior(problem, rule_list) + _log_likelihood(
    problem, counts
  )


def default_rule_left_out(problem, rule_list):
  """The default's rows have no likelihood."""
  counts = posterior.class_counts(problem, rule_list)[:-1]
  return posterior.log_prior(problem, rule_list) + _log_likelihood(
    problem, counts
  )


def dirichlet_constant_left_out(problem, rule_list):
  """No B(alpha): right up to a constant per rule, thus wrong across lengths."""
  counts = posterior.class_counts(problem, rule_list)
  return posterior.log_prior(problem, rule_list) + _log_likelihood(
    problem, counts, constant=False
  )


def cells_counted_once(problem, rule_list):
  """A cell counts as one row, whatever its number of rows."""
  return posterior.log_posterior(
    problem._replace(counts=np.minimum(problem.counts, 1), log_betas={}),
    rule_list,
  )


# Proposals.


def ratio_left_out(rule_list, size, step):
  """Accepts by the posterior alone."""
  return rule_list_chain.propose(rule_list, size, step)[0], 0.0


def ratio_upside_down(rule_list, size, step):
  """The ratio's inverse."""
  proposal, log_ratio = rule_list_chain.propose(rule_list, size, step)
  return proposal, -log_ratio


def kinds_always_a_third(rule_list, size, step):
  """The ratio forgets that kinds are likelier where others are impossible."""
  proposal, log_ratio = rule_list_chain.propose(rule_list, size, step)
  change = len(proposal) - len(rule_list)
  if change:
    longer = max(len(proposal), len(rule_list))
    log_ratio = change * math.log(size - longer + 1)
  return proposal, log_ratio


def places_in_the_ratio(rule_list, size, step):
  """Counts the m + 1 places of an addition, but not the m + 1 cuts back."""
  proposal, log_ratio = rule_list_chain.propose(rule_list, size, step)
  change = len(proposal) - len(rule_list)
  longer = max(len(proposal), len(rule_list))
  return proposal, log_ratio + change * math.log(longer)


def additions_at_the_end(rule_list, size, step):
  """Adds at the end only, while any rule may be cut."""
  proposal, log_ratio = rule_list_chain.propose(rule_list, size, step)
  if len(proposal) > len(rule_list):
    (added,) = set(proposal) - set(rule_list)
    proposal = (*rule_list, added)
  return proposal, log_ratio


def moves_forward_only(rule_list, size, step):
  """Never moves a rule towards the end."""
  proposal, log_ratio = rule_list_chain.propose(rule_list, size, step)
  if len(proposal) == len(rule_list):
    source = int(step[1] * len(rule_list))
    rest = rule_list[:source] + rule_list[source + 1 :]
    proposal = (rule_list[source], *rest)
  return proposal, log_ratio


# Chains.


def run_drops_rejections(problem, start, steps, cache):
  """A rejected proposal does not count the current list again."""
  result = rule_list_chain.run(problem, start, steps, cache)
  states = [start, *result.states]
  kept = [b for a, b in zip(states, states[1:]) if a != b]
  return result._replace(states=kept)


# Mining.


def same_feature_combines(cells, items, **arguments):
  """Items of one feature stand in one antecedent."""
  names = type(items)(names=items.names, features=items.names)
  return mining.mine(cells, names, **arguments)


def support_of_cells(cells, items, **arguments):
  """Support is a part of the cells."""
  flat = np.zeros_like(cells.counts)
  flat[:, 0] = 1
  return mining.mine(cells._replace(counts=flat), items, **arguments)


def duplicates_kept(cells, items, *, min_support, max_items):
  """One antecedent for every itemset, equal extents or not."""
  weights = cells.counts.sum(axis=1)
  least = min_support * weights.sum()
  found = list(mining._frequent(cells, items.features, least, max_items))
  return mining.Antecedents(
    items=tuple(itemset for itemset, _ in found),
    extents=tuple(mining.to_bits(mask) for _, mask in found),
    supports=tuple(int(weights @ mask) for _, mask in found),
    num_duplicates=0,
  )


def strictly_above_support(cells, items, *, min_support, max_items):
  """An antecedent of exactly the least support is dropped."""
  return mining.mine(
    cells, items, min_support=min_support * 1.0001, max_items=max_items
  )


# Rule sets.


def no_float32_cast(rules, x):
  """Compares rows in float64."""
  x = np.asarray(x)[:, None, :]
  return ((x > rules.lower) & (x <= rules.upper)).all(axis=2)


def lower_bound_inclusive(rules, x):
  """lower <= x."""
  x = np.asarray(x, np.float32).astype(np.float64)[:, None, :]
  return ((x >= rules.lower) & (x <= rules.upper)).all(axis=2)


def upper_bound_exclusive(rules, x):
  """x < upper."""
  x = np.asarray(x, np.float32).astype(np.float64)[:, None, :]
  return ((x > rules.lower) & (x < rules.upper)).all(axis=2)


def last_match(rules, x):
  """The last rule that applies decides."""
  applies = rule_set.matches(rules, x)[:, ::-1]
  last = rules.num_rules - 1 - np.argmax(applies, axis=1)
  return np.where(applies.any(axis=1), last, rules.num_rules)


def tie_is_negative(rules, x):
  """A tie is -1, whatever the default."""
  return np.where(rule_set.predict_proba(rules, x)[:, 1] > 0.5, 1, -1)


def threshold_of_a_tenth(rules, x):
  """The class is +1 from a probability of .1 on."""
  return np.where(rule_set.predict_proba(rules, x)[:, 1] > 0.1, 1, -1)


def unweighted_vote(rules, x):
  """Every vote counts one."""
  return rule_set.predict(rules.replace(weight=np.ones(rules.num_rules)), x)


# Point estimates and files.


def point_estimate_anywhere(problem, log_posteriors, **_):
  """The best visited list, near the posterior mean or not."""
  return max(log_posteriors, key=log_posteriors.__getitem__)


def point_estimate_by_length_only(
  problem, log_posteriors, *, mean_length, mean_width
):
  """The mean width plays no part."""
  everything = problem._replace(widths=(1,) * problem.num_antecedents)
  return bayesian_rule_list.point_estimate(
    everything, log_posteriors, mean_length=mean_length, mean_width=1
  )


def json_rounds(rules):
  """Six digits of every number."""
  document = json.loads(
    rule_io.to_json(rules), parse_float=lambda text: float(f'{float(text):.6g}')
  )
  return json.dumps(document)


LOG_PRIORS = {
  'length_not_truncated': length_not_truncated,
  'exhausted_width_stays': exhausted_width_stays,
  'normalizer_loses_log_pmf': normalizer_loses_log_pmf,
  'used_antecedents_stay': used_antecedents_stay,
}
LOG_POSTERIORS = {
  'all_matches_count': all_matches_count,
  'cells_counted_once': cells_counted_once,
  'default_rule_left_out': default_rule_left_out,
  'dirichlet_constant_left_out': dirichlet_constant_left_out,
}
PROPOSALS = {
  'additions_at_the_end': additions_at_the_end,
  'kinds_always_a_third': kinds_always_a_third,
  'moves_forward_only': moves_forward_only,
  'places_in_the_ratio': places_in_the_ratio,
  'ratio_left_out': ratio_left_out,
  'ratio_upside_down': ratio_upside_down,
}
MINERS = {
  'duplicates_kept': duplicates_kept,
  'same_feature_combines': same_feature_combines,
  'strictly_above_support': strictly_above_support,
  'support_of_cells': support_of_cells,
}
MATCHES = {
  'lower_bound_inclusive': lower_bound_inclusive,
  'no_float32_cast': no_float32_cast,
  'upper_bound_exclusive': upper_bound_exclusive,
}
PREDICTIONS = {
  'threshold_of_a_tenth': threshold_of_a_tenth,
  'tie_is_negative': tie_is_negative,
  'unweighted_vote': unweighted_vote,
}
POINT_ESTIMATES = {
  'point_estimate_anywhere': point_estimate_anywhere,
  'point_estimate_by_length_only': point_estimate_by_length_only,
}
