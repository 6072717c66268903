"""The estimators in scikit-learn's own machinery."""

import fractions

from absl.testing import parameterized
import numpy as np
from sklearn import base
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
