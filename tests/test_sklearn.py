"""The estimator by scikit-learn's rules, and against plain training of the same loss."""

import os
import pickle
import subprocess
import sys
from functools import partial

import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
from flax import linen as nn
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_iris, load_wine
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler

import pgeom
from pgeom.losses import catalogue
from pgeom.models.model import MLP
from pgeom.sklearn import ProperLossClassifier
from pgeom.training.trainer import compile_programs

pytestmark = pytest.mark.usefixtures("unchecked_module")

FAST = {"model": "linear", "epochs": 5, "random_state": 0}
CHECKS = """
from sklearn.utils.estimator_checks import check_estimator
from pgeom.sklearn import ProperLossClassifier
results = check_estimator(ProperLossClassifier(), on_skip=None, on_fail=None)
print([(one["check_name"], one["status"]) for one in results if one["status"] != "passed"])
assert len(results) > 50
"""


def negated(logits, labels):
    return -pgeom.losses.cross_entropy(logits, labels)


@pytest.fixture(scope="module")
def iris():
    return load_iris(return_X_y=True)


def proba(classifier, data, **fit):
    X, y = data
    return classifier.fit(X, y, **fit).predict_proba(X)


def test_every_check_of_scikit_learn_passes_and_none_is_skipped():
    # a process of its own: the array checks are skipped unless SciPy was imported with the flag
    environment = os.environ | {"SCIPY_ARRAY_API": "1"}
    environment["JAX_DISABLE_MOST_OPTIMIZATIONS"] = "1"
    command = [sys.executable, "-W", "ignore", "-c", CHECKS]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "[]\n"), done.stderr[-2000:]


@pytest.mark.parametrize("loss", ["ce", "capm", "apms", "logit_adjustment"])
def test_a_weight_is_that_many_examples_in_any_order(iris, loss):
    X, y = iris
    weights = np.random.default_rng(0).integers(0, 4, len(y))
    once = ProperLossClassifier(loss, **FAST).fit(X, y, sample_weight=weights)
    rows = np.random.default_rng(1).permutation(np.repeat(np.arange(len(y)), weights))
    repeated = ProperLossClassifier(loss, **FAST).fit(X[rows], y[rows])
    np.testing.assert_array_equal(once.predict_proba(X), repeated.predict_proba(X))
    assert not np.allclose(once.predict_proba(X), proba(ProperLossClassifier(loss, **FAST), iris))


def test_class_weights_are_weights_of_examples(iris):
    X, y = iris[0][:120], iris[1][:120]  # 50, 50 and 20 of the classes
    settings = {**FAST, "learning_rate": 0.1}
    balanced = ProperLossClassifier(class_weight="balanced", **settings).fit(X, y)
    by_hand = {0: 120 / (3 * 50), 1: 120 / (3 * 50), 2: 120 / (3 * 20)}
    given = ProperLossClassifier(class_weight=by_hand, **settings).fit(X, y)
    np.testing.assert_allclose(balanced.predict_proba(X), given.predict_proba(X), rtol=1e-6)
    plain = ProperLossClassifier(**settings).fit(X, y)
    last = given.predict_proba(X)[:, 2].mean() - plain.predict_proba(X)[:, 2].mean()
    assert last > 0.005


def own_brier(logits, labels):
    return pgeom.losses.brier(logits, labels)


def own_focal(logits, labels, *, gamma):
    return pgeom.losses.focal(logits, labels, gamma=gamma)


@pytest.mark.parametrize(
    "loss", [pgeom.generators.squared_norm, own_brier, catalogue.LOSSES["brier"]]
)
def test_a_generator_a_function_and_a_value_are_losses(iris, loss):
    expected = proba(ProperLossClassifier("brier", **FAST), iris)
    np.testing.assert_allclose(proba(ProperLossClassifier(loss, **FAST), iris), expected, atol=1e-5)


def test_several_seeds_are_an_average(iris):
    X, y = iris
    several = ProperLossClassifier(n_seeds=3, **FAST).fit(X, y)
    assert several.parameters_.shape[0] == 3 and len(np.unique(several.parameters_, axis=0)) == 3
    alone = []
    for vector in several.parameters_:
        one = clone(several).fit(X, y)
        one.parameters_ = vector[None]
        alone.append(one.predict_proba(X))
    np.testing.assert_allclose(several.predict_proba(X), np.mean(alone, axis=0), atol=1e-6)


@pytest.mark.parametrize(
    "loss", [pgeom.generators.quadratic(np.diag([1.0, 2.0, 3.0])), partial(own_focal, gamma=2.0)]
)
def test_clones_share_a_program(iris, loss):
    classifier = ProperLossClassifier(loss, **FAST).fit(*iris)
    before = compile_programs.cache_info().misses
    again = clone(classifier).fit(*iris)
    assert compile_programs.cache_info().misses == before
    np.testing.assert_array_equal(again.parameters_, classifier.parameters_)


def test_early_stopping_keeps_the_best_epoch():
    X, y = load_wine(return_X_y=True)
    stopped = ProperLossClassifier(
        early_stopping=True, epochs=80, learning_rate=3e-2, patience=3, random_state=1
    ).fit(X, y)
    curve = stopped.validation_nll_[0]
    assert stopped.best_epoch_[0] == 1 + np.argmin(curve)
    assert stopped.n_iter_ == stopped.best_epoch_[0] + 3 < 80
    kept = ProperLossClassifier(epochs=3, random_state=1).fit(X, y)
    assert kept.n_iter_ == kept.best_epoch_[0] == 3 and np.isnan(kept.validation_nll_).all()


def test_without_early_stopping_there_are_a_hundred_epochs(iris):
    assert ProperLossClassifier(model="linear", random_state=0).fit(*iris).n_iter_ == 100


class Net(nn.Module):
    classes: int

    @nn.compact
    def __call__(self, x, train):
        x = nn.Dropout(0.2, deterministic=not train)(nn.relu(nn.Dense(16)(x)))
        return nn.Dense(self.classes)(x)


def small(shape, classes):
    return MLP(shape[0], classes, hidden=8)


@pytest.mark.parametrize("model", [Net, Net(3), small, "mlp"])
def test_models_of_ones_own_learn(iris, model):
    settings = {"epochs": 40, "learning_rate": 1e-2, "random_state": 0}
    assert ProperLossClassifier(model=model, **settings).fit(*iris).score(*iris) > 0.9


def test_an_image_model_takes_the_shape_of_the_image():
    X, y = np.random.default_rng(0).normal(size=(40, 64)), np.arange(40) % 2
    classifier = ProperLossClassifier(model="cnn", image_shape=(8, 8), epochs=2, random_state=0)
    assert classifier.fit(X, y).predict_proba(X).shape == (40, 2)


def test_it_works_in_the_company_of_scikit_learn(iris):
    X, names = iris[0], np.array(["setosa", "versicolor", "virginica"])[iris[1]]
    frame = pd.DataFrame(X, columns=list("abcd"))
    settings = {**FAST, "learning_rate": 0.1, "epochs": 20}
    pipeline = make_pipeline(MinMaxScaler(), ProperLossClassifier(**settings))
    folds = StratifiedKFold(3, shuffle=True, random_state=0)
    assert cross_val_score(pipeline, frame, names, cv=folds).mean() > 0.9
    search = GridSearchCV(ProperLossClassifier(**settings), {"loss": ["ce", "brier"]}, cv=folds)
    search.fit(frame, names)
    assert set(search.predict(frame)) == set(names)
    assert list(search.best_estimator_.feature_names_in_) == list("abcd")
    calibrated = CalibratedClassifierCV(ProperLossClassifier(**settings), cv=folds)
    assert calibrated.fit(frame, names).predict_proba(frame).shape == (150, 3)


def test_a_pickled_estimator_predicts_the_same(iris):
    classifier = ProperLossClassifier(pgeom.generators.tsallis(1.5), **FAST).fit(*iris)
    again = pickle.loads(pickle.dumps(classifier))
    np.testing.assert_array_equal(again.predict_proba(iris[0]), classifier.predict_proba(iris[0]))


def concave(p):
    return -(p @ p)


@pytest.mark.usefixtures("unchecked_annotations")
@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"loss": "brierr"}, "did you mean 'brier'"),
        ({"loss": concave}, "concave.* convex"),
        ({"loss": lambda: 0}, "a generator"),
        ({"loss": lambda logits, labels: 0.0}, "one number per example"),
        ({"model": "cnn"}, "image_shape"),
        ({"model": "resnet"}, "mlp, linear, cnn"),
        ({"model": "cnn", "image_shape": (3, 3)}, "4 entries"),
        ({"model": nn.Dense(2)}, "logits"),
        ({"model": 3}, "Flax module"),
        ({"epochs": 0}, "epochs == 0, must be >= 1"),
        ({"batch_size": 2.5}, "batch_size must be an instance of int"),
        ({"learning_rate": -1.0}, "learning_rate == -1.0, must be > 0"),
        ({"validation_fraction": 1.0}, "validation_fraction == 1.0, must be < 1"),
        ({"class_weight": {"dog": 2}}, "are not in class_weight"),
        ({"class_weight": "even"}, "'balanced'"),
        ({"learning_rate": 1e30, "epochs": 30}, "diverged"),
    ],
)
def test_bad_parameters_are_refused_in_one_line(iris, given, message):
    with pytest.raises((TypeError, ValueError), match=message) as raised:
        ProperLossClassifier(**{"epochs": 2, "random_state": 0, **given}).fit(*iris)
    assert "\n" not in str(raised.value)


def test_a_generator_is_rescaled_unless_it_is_to_be_left_as_it_is(iris):
    """Of a multiple, where no gradient is so long that it is clipped."""

    def cubic(p):
        return 0.1 * jnp.sum(p**3)

    def double(p):
        return 2 * cubic(p)

    def forecast(loss, match):
        classifier = ProperLossClassifier(loss, match=match, **FAST)
        return clone(classifier).fit(*iris).predict_proba(iris[0])

    np.testing.assert_allclose(forecast(cubic, True), forecast(double, True), rtol=1e-5)
    as_written = pgeom.on_logits(pgeom.bregman_score(cubic))
    np.testing.assert_allclose(forecast(cubic, False), forecast(as_written, True), rtol=1e-4)
    assert ProperLossClassifier(match=False).get_params()["match"] is False


def test_a_negated_loss_is_refused(iris):
    with pytest.raises(ValueError, match=r"^negated grows as the label's probability grows"):
        ProperLossClassifier(negated, **FAST).fit(*iris)


@pytest.mark.parametrize("power", [-60, 400])
def test_the_units_of_a_feature_change_nothing(power):
    X, y = load_wine(return_X_y=True)
    units = np.where(np.arange(X.shape[1]) == 0, np.exp2(power), 1.0)
    plain, scaled = (ProperLossClassifier(**FAST).fit(data, y) for data in (X, X * units))
    np.testing.assert_array_equal(plain.scale_ * units, scaled.scale_)
    np.testing.assert_array_equal(plain.predict_proba(X), scaled.predict_proba(X * units))


def test_features_whose_squares_overflow_are_refused():
    X, y = load_wine(return_X_y=True)
    with pytest.raises(ValueError, match="X must be within"):
        ProperLossClassifier(**FAST).fit(X * 1e200, y)
