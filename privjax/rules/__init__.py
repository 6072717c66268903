"""Rules that explain a classifier: records, miners, and what they give away."""

from privjax.rules import bayes_attack
from privjax.rules import bayesian_rule_list
from privjax.rules import forest_rules
from privjax.rules import instance_transparency
from privjax.rules import inversion
from privjax.rules import items
from privjax.rules import mining
from privjax.rules import panel
from privjax.rules import selection
from privjax.rules import sensitive
from privjax.rules import stages
from privjax.rules import violation
from privjax.rules.panel import html_panel
from privjax.rules.rule_io import from_json
from privjax.rules.rule_io import to_frame
from privjax.rules.rule_io import to_json
from privjax.rules.rule_io import to_text
from privjax.rules.rule_set import coverage
from privjax.rules.rule_set import first_match
from privjax.rules.rule_set import make
from privjax.rules.rule_set import matches
from privjax.rules.rule_set import predict
from privjax.rules.rule_set import predict_proba
from privjax.rules.rule_set import RuleSet
from privjax.rules.rule_set import take
from privjax.rules.rule_set import uses

__all__ = (
  'RuleSet',
  'bayes_attack',
  'bayesian_rule_list',
  'coverage',
  'first_match',
  'forest_rules',
  'from_json',
  'html_panel',
  'instance_transparency',
  'inversion',
  'items',
  'make',
  'matches',
  'mining',
  'panel',
  'predict',
  'predict_proba',
  'selection',
  'sensitive',
  'stages',
  'take',
  'to_frame',
  'to_json',
  'to_text',
  'uses',
  'violation',
)
