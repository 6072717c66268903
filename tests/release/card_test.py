"""Tests of the page about a certificate."""

import fractions
import functools
import json
import math
import re
from xml.etree import ElementTree

from absl.testing import parameterized
import numpy as np
import scipy.sparse

from privjax import counterfactual
from privjax import graphs
from privjax import models
from privjax.release import card
from privjax.release import certificate
from privjax.release import explainer
from privjax.release import ledger_records
from privjax.release import public_objects

HOSTILE = '<script src="https://evil.example/x.js">alert(\'1\')</script>&amp;'


@functools.cache
def _certificate(epsilon='1', subsets=(1, 1)):
  """A certificate as `release` makes it; nothing is scored or charged."""
  graph, _ = graphs.from_pairs(4, [[0, 1], [0, 2], [2, 3]])
  features = scipy.sparse.csr_array(np.eye(4, 3, dtype=np.float32))
  layer = lambda a, b: {
    'kernel': np.ones((a, b), np.float32),
    'bias': np.zeros(b, np.float32),
  }
  public = public_objects.PublicObjects(
    snapshot=graphs.Snapshot(graph, 'external'),
    features=features,
    model=models.gcn.model({'hidden': layer(3, 2), 'output': layer(2, 2)}),
    first_layer=np.ones((3, 2), np.float32),
    config=counterfactual.PrivCFSConfig(),
    capacity=explainer.CAPACITY,
  )
  support = counterfactual.support(
    public.snapshot, features, public.first_layer, 0, public.config
  )
  query = certificate.query(public, support, epsilon, 'a-dataset')
  charge = ledger_records.Charge(
    dataset_id='a-dataset',
    analyst=None,
    query_digest=certificate.query_digest(query),
    epsilon=fractions.Fraction(epsilon),
    cost=fractions.Fraction(epsilon),
    receipt=ledger_records.Receipt(
      ledger_id='ab' * 16, sequence=7, hash='cd' * 32
    ),
  )
  assert support.edge_valid[subsets[0]] and support.feature_valid[subsets[1]]
  index = subsets[0] * len(support.feature_valid) + subsets[1]
  return certificate.build(query, support, index, charge)


def _resealed(**changes):
  """A certificate with other fields and the seal that fits them."""
  content = json.loads(_certificate()) | changes
  return json.dumps(content | {'sha256': certificate.seal(content)})


def _offer(**changes):
  prices = counterfactual.PriceList(
    epsilons=(fractions.Fraction(1, 2), fractions.Fraction(1)),
    valid_cf_rate=np.array([0.25, 0.375]),
    standard_error=np.array([0.0625, 0.03125]),
    free=0.125,
    ceiling=0.875,
    num_targets=32,
  )
  values = dict(
    target=0,
    support_size=8,
    prices=prices,
    remaining=fractions.Fraction(7, 3),
    unit='epsilon',
  )
  return explainer.Offer(**(values | changes))


def _parsed(page):
  """Parses the page as XML, stricter than any browser."""
  head, _, rest = page.partition('\n')
  assert head == '<!DOCTYPE html>'
  return ElementTree.fromstring(rest)


def _words(page):
  """The text of the page, as a reader sees it."""
  body = _parsed(page).find('body')
  return re.sub(r'\s+', ' ', ' '.join(body.itertext()))


class ContentTest(parameterized.TestCase):
  def test_what_was_released(self):
    released = json.loads(_certificate())['release']
    self.assertLen(released['delete_pairs'], 1)
    self.assertLen(released['mask_features'], 1)
    text = _words(card.html_card(_certificate()))
    ((u, v),) = released['delete_pairs']
    self.assertIn(f'without a connection between nodes {u} and {v}', text)
    (dim,) = released['mask_features']
    self.assertIn(f'without feature {dim} of the node', text)
    self.assertIn('Private release about node 0 of a-dataset', text)
    self.assertIn('drawn at random from 8 possible explanations', text)
    self.assertIn('neither that a connection named above exists', text)

  def test_the_empty_explanation(self):
    text = _words(card.html_card(_certificate(subsets=(0, 0))))
    self.assertIn('nothing is taken away', text)
    self.assertNotIn('without a connection', text)
    self.assertNotIn('without feature', text)

  def test_every_line_that_is_not_covered(self):
    page = _parsed(card.html_card(_certificate()))
    lines = [''.join(item.itertext()) for item in page.iter('li')]
    self.assertNotEmpty(certificate.NOT_COVERED)
    for line in certificate.NOT_COVERED:
      self.assertIn(line, lines)

  def test_what_a_verifier_needs(self):
    content = json.loads(_certificate())
    text = _words(card.html_card(_certificate()))
    for value in (
      *content['public_objects'].values(),
      *content['code'].values(),
      content['support']['sha256'],
      content['charge']['query_sha256'],
      content['charge']['receipt'],
      content['guarantee']['theorem'],
      content['mechanism']['sensitivity'],
      content['sha256'],
      'privjax-verify certificate.json public.npz',
    ):
      self.assertIn(value, text)

  @parameterized.parameters('1/1099511627776', '1/10', '1', '3', '8')
  def test_odds_and_certainty_are_upper_bounds(self, epsilon):
    value = fractions.Fraction(epsilon)
    text = _words(card.html_card(_certificate(epsilon)))
    self.assertIn(f'epsilon {value} , delta 0', text)
    odds = float(re.search(r'at most ([0-9.]+) \(e to the', text)[1])
    percent = float(re.search(r'at most ([0-9.]+) % sure', text)[1])
    exact = math.exp(value)
    # Three and four digits, never rounded down.
    self.assertGreaterEqual(odds, exact)
    self.assertLessEqual(odds, exact * 1.01)
    self.assertGreaterEqual(percent, 100 * exact / (1 + exact))
    self.assertLessEqual(percent, 100 * exact / (1 + exact) * 1.001)

  def test_a_large_epsilon_is_not_prettified(self):
    text = _words(card.html_card(_certificate('10000')))
    self.assertIn('at most 8.81e+4342 (e to the', text)
    self.assertIn('at most practically 100 % sure', text)

  def test_the_offer(self):
    text = _words(card.html_card(_certificate(), _offer()))
    for part in (
      '32 similar nodes',
      'epsilon 1/2 epsilon 1 0.25 (0.06) 0.38 (0.03)',
      'For free, from public data alone: 0.12',
      'any epsilon could reach: 0.88',
      'Budget left when this was offered: 7/3 epsilon',
    ):
      self.assertIn(part, text)
    without = _words(card.html_card(_certificate()))
    self.assertNotIn('Expected before the release', without)
    self.assertNotIn('Budget left', without)

  def test_nothing_but_the_input_and_fixed_words(self):
    # Two certificates differ, on the page, in what differs in the JSON.
    pages = [
      re.findall(r'[\w/.+-]+', card.html_card(_certificate(subsets=subsets)))
      for subsets in ((0, 0), (1, 1))
    ]
    new = set(pages[1]) - set(pages[0])
    known = set(re.findall(r'[\w/.+-]+', _certificate()))
    words = 'without a connection between nodes and feature'.split()
    self.assertContainsSubset(new, known | set(words))
    self.assertNotEmpty(new)


class PageTest(parameterized.TestCase):
  def test_same_input_same_bytes(self):
    first = card.html_card(_certificate(), _offer())
    self.assertEqual(first, card.html_card(_certificate(), _offer()))
    self.assertNotEqual(first, card.html_card(_certificate()))

  @parameterized.parameters(
    dict(dataset_id=HOSTILE),
    dict(target=HOSTILE),
    dict(not_covered=[HOSTILE]),
    dict(code={'privjax': HOSTILE}),
    dict(public_objects={HOSTILE: HOSTILE}),
    dict(randomness=HOSTILE),
    dict(release={'delete_pairs': [[HOSTILE, 1]], 'mask_features': [HOSTILE]}),
    dict(support={'size': HOSTILE, 'sha256': HOSTILE}),
    dict(charge={'cost': '1', 'query_sha256': HOSTILE, 'receipt': HOSTILE}),
    dict(
      guarantee={
        'epsilon': '1',
        'delta': '0',
        'relation': HOSTILE,
        'unit': HOSTILE,
        'theorem': HOSTILE,
      }
    ),
    dict(mechanism={'sensitivity': HOSTILE}),
  )
  def test_escapes_everything(self, **changes):
    page = card.html_card(_resealed(**changes))
    self.assertIn(HOSTILE, ''.join(_parsed(page).itertext()))
    self.assertNotIn('<script', page)

  def test_no_scripts_and_no_outside_resources(self):
    page = card.html_card(_certificate(), _offer())
    tags = {element.tag for element in _parsed(page).iter()}
    allowed = 'html head meta title style body h1 h2 p b ul li table tr td code'
    self.assertContainsSubset(tags, allowed.split())
    for element in _parsed(page).iter():
      self.assertContainsSubset(
        element.attrib, {'lang', 'charset', 'content', 'http-equiv'}
      )
    self.assertNotRegex(page, r'://|url\(|@import')


class RefusalTest(parameterized.TestCase):
  @parameterized.parameters('', '{}', '[]', 'null', '{"schema": 1}', 'NaN')
  def test_no_certificate(self, text):
    with self.assertRaisesRegex(ValueError, 'must be a certificate$'):
      card.html_card(text)

  def test_another_schema(self):
    with self.assertRaisesRegex(ValueError, "got 'privjax-certificate/2'"):
      card.html_card(_resealed(schema='privjax-certificate/2'))

  def test_a_changed_certificate(self):
    self.assertIn('"cost": "1/1"', _certificate())
    changed = _certificate().replace('"cost": "1/1"', '"cost": "0/1"')
    with self.assertRaisesRegex(ValueError, 'certified and unchanged'):
      card.html_card(changed)

  @parameterized.parameters(False, 1, 'true')
  def test_a_release_that_is_not_certified(self, certified):
    with self.assertRaisesRegex(ValueError, 'certified and unchanged'):
      card.html_card(_resealed(certified=certified))

  def test_an_offer_about_another_target(self):
    with self.assertRaisesRegex(ValueError, 'about target 0, got 3'):
      card.html_card(_certificate(), _offer(target=3))
