"""The estimators in scikit-learn's own machinery."""

import fractions

from absl.testing import parameterized
import numpy as np
import pandas as pd
from sklearn import base
from sklearn import calibration
from sklearn import metrics
from sklearn import model_selection
from sklearn import pipeline
from sklearn import preprocessing

from privjax import erm
from privjax import prng
from privjax.erm import estimators
from tests.erm import cases

Fraction = fractions.Fraction

_KINDS = (
  ('logistic', estimators.PrivateLogisticRegression),
  ('svm', estimators.PrivateSVM),
)
_SETTINGS = dict(
  epsilon=None, regularization=1e-3, row_norm=1.0, classes=('no', 'yes')
)


def _table():
  features, labels = cases.table(32)
  return features, np.array(['no', 'yes'])[labels]


class EstimatorsTest(parameterized.TestCase):
  @parameterized.named_parameters(*_KINDS)
  def test_clone_and_parameters(self, kind):
    estimator = kind(**_SETTINGS, random_state=3)
    parameters = estimator.get_params()
    self.assertLessEqual(_SETTINGS.items(), parameters.items())
    self.assertEqual(base.clone(estimator).get_params(), parameters)
    estimator.set_params(epsilon=2)
    self.assertEqual(estimator.epsilon, 2)
    self.assertTrue(base.is_classifier(estimator))

  @parameterized.named_parameters(*_KINDS)
  def test_pipeline_and_cross_validation(self, kind):
    features, labels = _table()
    steps = pipeline.make_pipeline(
      preprocessing.FunctionTransformer(), kind(**_SETTINGS)
    )
    scores = model_selection.cross_val_score(steps, features, labels, cv=8)
    expected = []
    folds = model_selection.StratifiedKFold(8).split(features, labels)
    for train, test in folds:
      model = kind(**_SETTINGS).fit(features[train], labels[train]).model_
      predicted = erm.predict(model, features[test])
      expected.append((predicted == labels[test]).mean())
    np.testing.assert_allclose(scores, expected)
    self.assertGreater(scores.mean(), 0.5)

  @parameterized.named_parameters(*_KINDS)
  def test_fitted_attributes(self, kind):
    features, labels = _table()
    estimator = kind(**(_SETTINGS | dict(epsilon='1/2', intercept=1.0)))
    self.assertIs(estimator.fit(features, labels), estimator)
    self.assertEqual(estimator.coef_.shape, (1, 4))
    self.assertEqual(estimator.intercept_.shape, (1,))
    self.assertEqual(estimator.n_features_in_, 4)
    self.assertEqual(estimator.classes_.tolist(), ['no', 'yes'])
    self.assertEqual(estimator.guarantee_.epsilon, Fraction(1, 2))
    self.assertTrue(estimator.certified_)
    scores = estimator.decision_function(features)
    np.testing.assert_allclose(
      scores, features @ estimator.coef_[0] + estimator.intercept_[0]
    )
    predicted = estimator.predict(features)
    np.testing.assert_array_equal(predicted == 'yes', scores > 0)

  def test_probabilities_belong_to_the_logistic_model(self):
    features, labels = _table()
    estimator = estimators.PrivateLogisticRegression(**_SETTINGS)
    found = estimator.fit(features, labels).predict_proba(features)
    self.assertEqual(found.shape, (32, 2))
    self.assertFalse(hasattr(estimators.PrivateSVM, 'predict_proba'))

  def test_a_seed_repeats_and_is_not_certified(self):
    features, labels = _table()
    settings = _SETTINGS | dict(epsilon=1, random_state=7)
    fits = [
      estimators.PrivateSVM(**settings).fit(features, labels) for _ in range(2)
    ]
    np.testing.assert_array_equal(fits[0].coef_, fits[1].coef_)
    self.assertFalse(fits[0].certified_)
    with self.assertRaisesRegex(ValueError, 'random_state'):
      estimators.PrivateSVM(**(settings | dict(random_state=-1))).fit(
        features, labels
      )

  @parameterized.named_parameters(
    ('classes', dict(classes=None), 'classes must be declared'),
    ('row_norm', dict(row_norm=None), 'row_norm'),
    ('short_bound', dict(row_norm=0.1), 'longer ones'),
    ('other_classes', dict(classes=('no', 'maybe')), 'labels must be in'),
  )
  def test_what_must_be_declared(self, change, message):
    features, labels = _table()
    estimator = estimators.PrivateLogisticRegression(**(_SETTINGS | change))
    with self.assertRaisesRegex(ValueError, message):
      estimator.fit(features, labels)
    self.assertFalse(hasattr(estimator, 'coef_'))

  def test_absent_classes_are_kept(self):
    features, labels = _table()
    labels[:] = 'no'
    estimator = estimators.PrivateSVM(**_SETTINGS).fit(features, labels)
    self.assertEqual(estimator.classes_.tolist(), ['no', 'yes'])


class SklearnTest(parameterized.TestCase):
  """What scikit-learn's machinery reads off an estimator."""

  @parameterized.product(
    classes=((0, 1), (1, 0)),
    scoring=('accuracy', 'roc_auc', 'neg_log_loss', 'average_precision'),
  )
  def test_scorers_do_not_depend_on_the_order_of_classes(
    self, classes, scoring
  ):
    features, labels = cases.table(64)
    fit = lambda pair: estimators.PrivateLogisticRegression(
      **(_SETTINGS | dict(classes=pair))
    ).fit(features, labels)
    scorer = metrics.get_scorer(scoring)
    estimator = fit(classes)
    self.assertEqual(estimator.classes_.tolist(), [0, 1])
    found = scorer(estimator, features, labels)
    positive = estimator.decision_function(features)
    expected = {
      'accuracy': lambda: np.mean((positive > 0) == labels),
      'roc_auc': lambda: metrics.roc_auc_score(labels, positive),
      'neg_log_loss': lambda: (
        -np.log1p(np.exp(-(2 * labels - 1) * positive)).mean()
      ),
      'average_precision': lambda: metrics.average_precision_score(
        labels, positive
      ),
    }[scoring]()
    self.assertAlmostEqual(found, expected)
    # Better than a coin: the table is not noise.
    self.assertGreater(found, -0.69 if scoring == 'neg_log_loss' else 0.6)

  def test_calibration_in_either_order(self):
    features, labels = cases.table(64)
    scores = [
      calibration.CalibratedClassifierCV(
        estimators.PrivateSVM(**(_SETTINGS | dict(classes=classes))), cv=4
      )
      .fit(features, labels)
      .score(features, labels)
      for classes in ((0, 1), (1, 0))
    ]
    self.assertEqual(scores[0], scores[1])
    self.assertGreater(scores[0], 0.6)

  def test_two_classes_only(self):
    tags = estimators.PrivateSVM().__sklearn_tags__()
    self.assertFalse(tags.classifier_tags.multi_class)

  @parameterized.named_parameters(*_KINDS)
  def test_columns_keep_their_names_and_order(self, kind):
    features, labels = _table()
    frame = pd.DataFrame(features, columns=list('abcd'))
    estimator = kind(**_SETTINGS).fit(frame, labels)
    self.assertEqual(estimator.feature_names_in_.tolist(), list('abcd'))
    self.assertEqual(estimator.n_features_in_, 4)
    predicted = estimator.predict(frame)
    plain = kind(**_SETTINGS).fit(features, labels).predict(features)
    np.testing.assert_array_equal(predicted, plain)
    for other in (frame[['d', 'c', 'b', 'a']], frame[['a', 'b', 'c']]):
      for method in (estimator.predict, estimator.decision_function):
        with self.assertRaisesRegex(ValueError, 'feature names'):
          method(other)
    with self.assertRaisesRegex(ValueError, 'expecting 4 features'):
      kind(**_SETTINGS).fit(features, labels).predict(features[:, 1:])

  @parameterized.named_parameters(
    ('text', np.array([[0.1, 'SECRET'], [0.2, '0.3']], object), None),
    ('complex', np.array([[0.1, 7.125j], [0.2, 0.3]]), None),
    ('one_axis', np.array([7.125, 0.2]), None),
    ('nan', np.array([[7.125, np.nan], [0.2, 0.3]]), None),
    ('infinite', np.array([[7.125, np.inf], [0.2, 0.3]]), None),
    ('ragged', [[7.125], [0.2, 0.3]], None),
    ('names', {'SECRET': 7.125}, None),
    ('frame', pd.DataFrame({'a': [0.1, 0.2], 'b': ['SECRET', '0.2']}), None),
    ('lengths', np.zeros((2, 2)), ['SECRET']),
    ('label', np.zeros((2, 2)), ['SECRET', 'no']),
    ('absent_label', np.zeros((2, 2)), np.array([pd.NA, 'no'], object)),
    ('label_matrix', np.zeros((2, 2)), [['SECRET', 'no'], ['no', 'no']]),
  )
  def test_errors_hold_no_entry(self, features, labels):
    estimator = estimators.PrivateLogisticRegression(**_SETTINGS)
    wrong = ['no', 'yes'] if labels is None else labels
    errors = []
    with self.assertRaises((ValueError, TypeError)) as caught:
      estimator.fit(features, wrong)
    errors.append(caught.exception)
    self.assertFalse(hasattr(estimator, 'coef_'))
    if labels is None:
      estimator.fit(np.zeros((2, 2)), ['no', 'yes'])
      with self.assertRaises((ValueError, TypeError)) as caught:
        estimator.predict(features)
      errors.append(caught.exception)
    for error in errors:
      self.assertIsNone(error.__cause__)
      self.assertIsNone(error.__context__)
      for entry in ('SECRET', '7.125'):
        self.assertNotIn(entry, str(error))

  @parameterized.product(
    named=_KINDS,
    mode=erm.objective.MODES,
    rule=('paper', 'tight'),
  )
  def test_the_guarantee_is_that_of_the_mode(self, named, mode, rule):
    features, labels = _table()
    settings = _SETTINGS | dict(epsilon='3/2', regularization=0.1)
    estimator = named[1](**settings, mode=mode, calibration=rule)
    estimator.fit(features, labels)
    self.assertEqual(
      estimator.guarantee_,
      erm.objective.guarantee('3/2', mode=mode, calibration=rule),
    )


_TUNED = _SETTINGS | dict(
  epsilon='1/2', tune='private', regularization_grid=(1.0, 0.1, 0.01)
)


class TuningTest(parameterized.TestCase):
  @parameterized.named_parameters(*_KINDS)
  def test_clone_and_parameters(self, kind):
    estimator = kind(**_TUNED)
    self.assertLessEqual(_TUNED.items(), estimator.get_params().items())
    self.assertEqual(base.clone(estimator).get_params(), estimator.get_params())

  @parameterized.named_parameters(*_KINDS)
  def test_states_and_costs_what_the_tuning_does(self, kind):
    features, labels = _table()
    estimator = kind(**_TUNED, calibration='paper').fit(features, labels)
    self.assertEqual(
      estimator.guarantee_, erm.tuning.guarantee('1/2', calibration='paper')
    )
    self.assertEqual(estimator.guarantee_.epsilon, Fraction(1, 2))
    self.assertIn(estimator.regularization_, _TUNED['regularization_grid'])
    self.assertTrue(estimator.certified_)

  def test_is_the_tuned_model(self):
    features, labels = _table()
    estimator = estimators.PrivateSVM(**_TUNED, smoothing=0.25, random_state=4)
    estimator.fit(features, labels)
    tuned = erm.tuning.tune(
      features,
      labels,
      config=erm.ErmConfig(
        loss=erm.losses.huber_hinge(0.25),
        regularization=1.0,
        row_norm=1.0,
        classes=('no', 'yes'),
      ),
      regularizations=_TUNED['regularization_grid'],
      epsilon='1/2',
      key=prng.stream(prng.key(4), 'estimator'),
    )
    np.testing.assert_array_equal(estimator.coef_[0], tuned.model.weights)
    self.assertEqual(estimator.regularization_, tuned.regularization)
    self.assertFalse(estimator.certified_)

  def test_the_fixed_value_is_an_attribute_too(self):
    features, labels = _table()
    estimator = estimators.PrivateSVM(**_SETTINGS).fit(features, labels)
    self.assertEqual(estimator.regularization_, 1e-3)

  @parameterized.named_parameters(*_KINDS)
  def test_pipeline_and_cross_validation(self, kind):
    features, labels = _table()
    settings = _TUNED | dict(epsilon=1000)
    steps = pipeline.make_pipeline(
      preprocessing.FunctionTransformer(), kind(**settings)
    )
    scores = model_selection.cross_val_score(steps, features, labels, cv=4)
    self.assertLen(scores, 4)
    self.assertTrue(((scores >= 0) & (scores <= 1)).all())

  @parameterized.named_parameters(
    ('no_grid', dict(regularization_grid=None), 'regularization_grid must be'),
    ('no_tuning', dict(tune=None), 'regularization_grid must be'),
    ('another_tuning', dict(tune='best'), 'tune must be one of'),
    ('empty_grid', dict(regularization_grid=()), 'regularizations'),
    ('non_private', dict(epsilon=None), 'epsilon'),
    (
      'few_rows',
      dict(regularization_grid=tuple(range(1, 33))),
      'at least 33 rows',
    ),
  )
  def test_refused(self, change, message):
    features, labels = _table()
    estimator = estimators.PrivateLogisticRegression(**(_TUNED | change))
    with self.assertRaisesRegex(ValueError, message):
      estimator.fit(features, labels)
    self.assertFalse(hasattr(estimator, 'coef_'))
