"""The scikit-learn classifiers of registry methods: labels, classes that are missing, scikit-learn's own checks."""

from __future__ import annotations

import pickle
import sys
from collections.abc import Callable
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone, is_classifier
from sklearn.exceptions import NotFittedError
from sklearn.utils.estimator_checks import parametrize_with_checks

from ep_bench import Estimator, methods
from ep_bench.errors import UserError
from ep_bench.types import Rows
from tests import discriminant

NAME = "discriminant"
rng = np.random.default_rng(3)
X = rng.normal(size=(60, 3)) * [1.0, 50.0, 0.01] + [0.0, 7.0, 2.0]
KIND = (X[:, 0] > 0.5).astype(int) + (X[:, 0] > -0.5)  # 0, 1 or 2
TEXTS = np.array(["no", "maybe", "yes"])[KIND]


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(methods.REGISTRY, NAME, "tests.discriminant")


def altered(monkeypatch: pytest.MonkeyPatch, name: str, **changes: Any) -> Any:
    """Return an estimator of the method with other parts, under another name."""
    method = discriminant.METHOD.__class__(**{**vars(discriminant.METHOD), "name": name, **changes})
    monkeypatch.setitem(sys.modules, name, SimpleNamespace(METHOD=method))
    monkeypatch.setitem(methods.REGISTRY, name, name)
    return partial(Estimator, name, task="classification")


def _unregistered() -> Any:
    methods.REGISTRY[NAME] = "tests.discriminant"
    try:
        return Estimator(NAME, task="classification")
    finally:
        del methods.REGISTRY[NAME]


@parametrize_with_checks([_unregistered()])
def test_scikit_learns_checks(estimator: Any, check: Callable[[Any], None]) -> None:
    check(estimator)


def test_labels_of_any_kind_come_back() -> None:
    model = Estimator(NAME, task="classification").fit(X, TEXTS)
    assert is_classifier(model)
    assert type(model).__name__ == "DiscriminantClassifier"
    assert model.classes_.tolist() == ["maybe", "no", "yes"]
    proba = model.predict_proba(X)
    assert proba.shape == (60, 3)
    np.testing.assert_array_equal(model.predict(X), model.classes_[proba.argmax(axis=1)])
    assert np.mean(model.predict(X) == TEXTS) > 0.8
    densities = model.predict_dist(X).logpdf(TEXTS)
    np.testing.assert_allclose(densities, np.log(proba[np.arange(60), np.searchsorted(model.classes_, TEXTS)]))
    numbers = Estimator(NAME, task="classification").fit(X, KIND)
    np.testing.assert_allclose(numbers.predict_proba(X), proba[:, [1, 0, 2]])


def test_a_method_sees_standardised_inputs_and_plain_indices(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Rows] = []

    def fit(train: Rows, config: Any, rng: Any) -> Any:
        seen.append(train)
        return discriminant.fit(train, config, rng)

    altered(monkeypatch, "monitored", fit=fit)(classes=range(4)).fit(X, KIND)
    (rows,) = seen
    np.testing.assert_allclose(rows.X.mean(axis=0), 0.0, atol=1e-12)
    np.testing.assert_allclose(rows.X.std(axis=0), 1.0)
    np.testing.assert_array_equal(rows.y, KIND)
    assert rows.classes == 4


def test_a_class_without_training_points_has_a_column() -> None:
    model = Estimator(NAME, task="classification", classes=["maybe", "never", "no", "yes"]).fit(X, TEXTS)
    assert model.classes_.tolist() == ["maybe", "never", "no", "yes"]
    proba = model.predict_proba(X)
    assert proba.shape == (60, 4)
    assert (proba[:, 1] > 0.0).all()
    with pytest.raises(ValueError, match="'yes', which is none of classes"):
        Estimator(NAME, task="classification", classes=["no", "maybe"]).fit(X, TEXTS)
    with pytest.raises(ValueError, match="only one class"):
        Estimator(NAME, task="classification").fit(X, np.zeros(60))


def test_clone_and_pickle() -> None:
    model = Estimator(NAME, task="classification", ridge=0.5, random_state=0)
    assert clone(model).get_params() == model.get_params()
    fitted = model.fit(X, TEXTS)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(fitted)).predict_proba(X), fitted.predict_proba(X))


def test_a_task_that_a_method_has_not_is_refused() -> None:
    with pytest.raises(UserError, match=r"pbp supports regression only.*found 'classification'"):
        Estimator("pbp", task="classification")
    with pytest.raises(UserError, match="discriminant supports classification only"):
        Estimator(NAME, task="regression")
    assert type(Estimator(NAME)).__name__ == "DiscriminantClassifier"  # its first and only task
    assert type(Estimator("pbp", task="regression")) is type(Estimator("pbp"))


def test_what_is_no_probability_is_a_mistake_of_the_method(monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = altered(monkeypatch, "wrong", predict=lambda *_: np.ones((60, 3)) / 3)
    with pytest.raises(TypeError, match="wrong must predict ClassProbabilities, found ndarray"):
        wrong().fit(X, KIND).predict(X)


def test_a_failed_refit_is_no_fit() -> None:
    model = Estimator(NAME, task="classification").fit(X, TEXTS)
    with pytest.raises(ValueError, match="only one class"):
        model.fit(X, np.full(len(X), "no"))
    with pytest.raises(NotFittedError):
        model.predict(X)
