"""The contract of all methods. New methods of the registry are tested automatically."""

from __future__ import annotations

import inspect
import pickle

import numpy as np
import pytest
from pydantic import ValidationError
from sklearn.base import clone

from ep_bench import Estimator, methods
from ep_bench.estimator import MethodClassifier
from ep_bench.predictions import Predictive
from ep_bench.types import Rows
from tests.conformance.support import UNITS

pytestmark = pytest.mark.usefixtures("short_search")

NAMES = methods.names()
EDGE_CASES = ["one data point", "constant input", "constant target", "more inputs than data points"]
rng = np.random.default_rng(7)
X = rng.normal(size=(40, 3)) * [1.0, 20.0, 0.1] + [0.0, 100.0, -3.0]
y = 50.0 + 8.0 * np.sin(X[:, 0]) + 0.1 * X[:, 1] + rng.normal(size=40)


def quick_options(name: str) -> dict[str, object]:
    return {**methods.get(name).warmup, **UNITS.get(name, {})}


def quick(name: str, **options: object) -> object:
    return Estimator(name, **{**quick_options(name), "random_state": 0, **options})


def draws(name: str) -> bool:
    """Return whether a fit or a prediction draws random numbers from its generator, or spawns others from it."""
    method, generator = methods.get(name), np.random.default_rng(0)
    before = generator.bit_generator.state
    state, _ = method.fit(Rows(X - X.mean(axis=0), y - y.mean()), method.config(**quick_options(name)), generator)
    method.predict(state, X, generator)
    seeds = generator.bit_generator.seed_seq
    return generator.bit_generator.state != before or seeds.n_children_spawned > 0


@pytest.mark.parametrize("name", NAMES)
class TestContract:
    def test_functions_and_config(self, name: str) -> None:
        method = methods.get(name)
        assert method.name == name
        assert method.version >= 1
        assert list(inspect.signature(method.fit).parameters)[:3] == ["train", "config", "rng"]
        assert list(inspect.signature(method.predict).parameters) == ["state", "X", "rng"]
        assert inspect.getdoc(inspect.getmodule(method.fit))
        for option, field in method.config.model_fields.items():
            assert field.description, f"{option}: the description must state the source of the default"

    def test_config_is_frozen_and_strict(self, name: str) -> None:
        config = methods.get(name).config()
        with pytest.raises(ValidationError):
            config.hidden = (1,)
        with pytest.raises(ValidationError):
            methods.get(name).config(no_such_option=1)

    def test_predictions_in_original_units(self, name: str) -> None:
        model = quick(name).fit(X, y)
        distribution = model.predict_dist(X)
        assert isinstance(distribution, Predictive)
        mean, std = model.predict(X, return_std=True)
        assert mean.shape == std.shape == (40,)
        assert np.all(np.isfinite(mean))
        assert np.all(std > 0)
        assert abs(mean.mean() - y.mean()) < 3 * y.std()

    def test_predictions_do_not_depend_on_units(self, name: str) -> None:
        ours = quick(name).fit(X, y).predict(X)
        theirs = quick(name).fit(1000 * X - 5, 10 * y + 3).predict(1000 * X - 5)
        np.testing.assert_allclose(theirs, 10 * ours + 3, rtol=1e-6)

    def test_equal_seeds_give_equal_predictions(self, name: str) -> None:
        first, again = quick(name).fit(X, y).predict(X), quick(name).fit(X, y).predict(X)
        np.testing.assert_array_equal(first, again)
        other = quick(name, random_state=1).fit(X, y).predict(X)
        drawn = draws(name)
        wanted = "differ, as it draws from rng" if drawn else "agree, as it draws nothing from rng"
        assert np.array_equal(first, other) != drawn, f"{name}: predictions with two seeds must {wanted}"

    def test_arguments_are_not_modified(self, name: str) -> None:
        X_before, y_before = X.copy(), y.copy()
        quick(name).fit(X, y).predict(X)
        np.testing.assert_array_equal(X, X_before)
        np.testing.assert_array_equal(y, y_before)
        rows = Rows(X - X.mean(axis=0), y - y.mean())
        rows.X.flags.writeable = rows.y.flags.writeable = False
        method = methods.get(name)
        method.fit(rows, method.config(**quick_options(name)), np.random.default_rng(0))

    def test_clone_and_pickle(self, name: str) -> None:
        model = quick(name)
        assert clone(model).get_params() == model.get_params()
        fitted = model.fit(X, y)
        np.testing.assert_array_equal(pickle.loads(pickle.dumps(fitted)).predict(X), fitted.predict(X))

    @pytest.mark.parametrize("case", EDGE_CASES)
    def test_edge_cases_of_the_data(self, name: str, case: str) -> None:
        A, b = X.copy(), y.copy()
        if case == "one data point":
            A, b = A[:1], b[:1]
        elif case == "constant input":
            A[:, 1] = 0.998
        elif case == "constant target":
            b[:] = 7.0
        else:
            A, b = np.random.default_rng(1).normal(size=(5, 30)), b[:5]
        distribution = quick(name).fit(A, b).predict_dist(A)
        assert np.all(np.isfinite(distribution.mean()))
        assert np.all(distribution.std() > 0)

    def test_predictions_do_not_depend_on_other_test_points(self, name: str) -> None:
        model = quick(name).fit(X[:30], y[:30])
        np.testing.assert_allclose(model.predict(X[30:])[:2], model.predict(X[30:32]), rtol=1e-12)

    def test_invalid_input_raises(self, name: str) -> None:
        with pytest.raises(ValueError, match="NaN"):
            quick(name).fit(np.where(X > 0, X, np.nan), y)
        with pytest.raises(TypeError, match="did you mean"):
            Estimator(name, standardise=True)


CLASSIFIERS = [name for name in methods.REGISTRY if "classification" in methods.get(name).tasks]
LABELS = np.array(["low", "middle", "high"])[np.digitize(X[:, 0], [-0.4, 0.4])]


def classifier(name: str, **options: object) -> MethodClassifier:
    return Estimator(name, "classification", **{**methods.get(name).warmup, "random_state": 0, **options})


@pytest.mark.parametrize("name", CLASSIFIERS)
@pytest.mark.parametrize("labels", [LABELS, LABELS == "low"], ids=["three", "two"])
class TestClassifiers:
    def test_probabilities_of_all_classes(self, name: str, labels: np.ndarray) -> None:
        model = classifier(name).fit(X, labels)
        proba = model.predict_proba(X)
        assert proba.shape == (40, len(np.unique(labels)))
        np.testing.assert_allclose(proba.sum(axis=1), 1.0)
        assert np.isin(model.predict(X), labels).all()
        again = classifier(name).fit(X, labels).predict_proba(X)
        np.testing.assert_array_equal(proba, again)
        np.testing.assert_allclose(model.predict_proba(X[5:9]), proba[5:9], rtol=1e-9)

    def test_probabilities_do_not_depend_on_units(self, name: str, labels: np.ndarray) -> None:
        ours = classifier(name).fit(X, labels).predict_proba(X)
        theirs = classifier(name).fit(1000 * X - 5, labels).predict_proba(1000 * X - 5)
        np.testing.assert_allclose(theirs, ours, rtol=1e-6)

    def test_a_class_without_data_points_has_a_probability(self, name: str, labels: np.ndarray) -> None:
        known = sorted(set(labels.tolist()))
        kept = labels != known[1]
        proba = classifier(name, classes=known).fit(X[kept], labels[kept]).predict_proba(X)
        assert proba.shape == (40, len(known))
        assert (proba > 0.0).all()

    def test_clone_and_pickle(self, name: str, labels: np.ndarray) -> None:
        model = classifier(name)
        assert clone(model).get_params() == model.get_params()
        fitted = model.fit(X, labels)
        again = pickle.loads(pickle.dumps(fitted))
        np.testing.assert_array_equal(again.predict_proba(X), fitted.predict_proba(X))
