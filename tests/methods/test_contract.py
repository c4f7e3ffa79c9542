"""The contract of all methods. New methods of the registry are tested automatically."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from ep_bench import Estimator, methods
from ep_bench.conformance.checks import CheckOutcome, checks
from ep_bench.conformance.method_under_test import MethodUnderTest
from ep_bench.conformance.suite import in_order
from ep_bench.conformance.worker import perform
from ep_bench.estimator import MethodClassifier, MethodEstimator
from ep_bench.types import Rows, Task
from tests.conformance.support import FAST, HERE, UNITS
from tests.methods.support import begun_at, rows

pytestmark = [
    pytest.mark.usefixtures("short_search"), pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
]  # fmt: skip

NAMES = methods.names()
CLASSIFIERS = [name for name in methods.REGISTRY if "classification" in methods.get(name).tasks]
rng = np.random.default_rng(7)
X = rng.normal(size=(40, 3)) * [1.0, 20.0, 0.1] + [0.0, 100.0, -3.0]
y = 50.0 + 8.0 * np.sin(X[:, 0]) + 0.1 * X[:, 1] + rng.normal(size=40)
LABELS = np.array(["low", "middle", "high"])[np.digitize(X[:, 0], [-0.4, 0.4])]
# All other checks, with longer fits: tests/conformance/test_good.py and test_sklearn.py.
EDGE_CASES = {"builds", "fits", "shapes", "finite", "one-row", "constant-input", "wide", "constant-target"}
SHORT = {"deterministic", "no-test-rows", "inputs-unchanged", "missing-class"}
CLASSES = {"probabilities"}


def quick_options(name: str) -> dict[str, Any]:
    return {**methods.get(name).warmup, **UNITS.get(name, {})}


def quick(name: str, **options: object) -> MethodEstimator:
    return Estimator(name, **{**quick_options(name), "random_state": 0, **options})


def conformance(name: str, task: Task) -> Iterator[CheckOutcome]:
    subject = MethodUnderTest(name, quick_options(name), HERE, task)
    subject.prepare()
    names = EDGE_CASES | CLASSES | (set() if name in FAST else SHORT)
    chosen = [check for check in checks(task) if check.name in names]
    return in_order(chosen, lambda check: perform(subject, check))


@pytest.mark.parametrize("name", NAMES)
class TestContract:
    def test_functions_and_config(self, name: str) -> None:
        method = methods.get(name)
        assert method.version >= 1
        assert list(inspect.signature(method.fit).parameters)[:3] == ["train", "config", "rng"]
        assert list(inspect.signature(method.predict).parameters) == ["state", "X", "rng"]
        with pytest.raises(ValidationError):
            method.config().hidden = (1,)
        with pytest.raises(ValidationError):
            method.config(no_such_option=1)

    def test_texts_that_users_see(self, name: str) -> None:
        method = methods.get(name)
        assert method.name == name
        assert all((method.title, method.paper, method.tasks, inspect.getdoc(inspect.getmodule(method.fit))))
        assert all(field.description for field in method.config.model_fields.values())

    @pytest.mark.parametrize("task", ["regression", "classification"])
    def test_conformance_of_the_shortest_fit(self, name: str, task: Task) -> None:
        if task in methods.get(name).tasks:
            assert [outcome for outcome in conformance(name, task) if outcome.status != "ok"] == []

    def test_predictions_do_not_depend_on_units(self, name: str) -> None:
        ours = quick(name).fit(X, y).predict(X)
        theirs = quick(name).fit(1000 * X - 5, 10 * y + 3).predict(1000 * X - 5)
        np.testing.assert_allclose(theirs, 10 * ours + 3, rtol=1e-6)

    def test_invalid_input_raises(self, name: str) -> None:
        with pytest.raises(ValueError, match="NaN"):
            quick(name).fit(np.where(X > 0, X, np.nan), y)
        with pytest.raises(TypeError, match="did you mean"):
            Estimator(name, standardise=True)


VARIANTS: dict[str, list[dict[str, Any]]] = {
    "bb_alpha": [{}, {"covariance": "full", "hidden": ()}],
    "dgp_ep": [
        {"hidden": (), "inducing": 37, "steps": 30}, {"hidden": (2,), "inducing": 66, "steps": 30}, {"hidden": (2, 2)},
        {"prediction": "sampling", "samples": 5},
    ],
    "dvi": [{"hidden": (11, 7)}, {"noise": "homoscedastic"}],
    "gp": [{"steps": 100}, {"steps": 100, "kernel": {"product": ["nn", "linear"]}}],
    "laplace": [{"hessian": form, "hidden": (8,)} for form in ("diag", "full", "kron", "last")],
    "sgld": [{"preconditioner": name, "epochs": 3} for name in ("none", "rmsprop")],
    "sgp": [{"approximation": name, "inducing": 13, "steps": 60} for name in ("fitc", "vfe")],
    "tagi": [{"noise": "homoscedastic"}, {"noise": "heteroscedastic", "hidden": (11, 7)}],
    "vi": [
        {}, {"local_reparameterization": True}, {"prior": "empirical"},
        {"noise": "heteroscedastic", "prior": "empirical"},
    ],
}  # fmt: skip
EXHAUSTIVE: list[dict[str, Any]] = [{"propagation": "full", "hidden": (2, 2)}, {"optimizer": "sep", "alpha": 1}]
VARIED: list[Any] = [(name, options) for name in NAMES for options in VARIANTS.get(name, [{}])]
VARIED += [pytest.param("dgp_ep", options, marks=pytest.mark.exhaustive) for options in EXHAUSTIVE]


def predicted(name: str, options: dict[str, Any], offset: int, seed: int) -> tuple[bytes, bool]:
    """Return the bits of a prediction, and whether fit or prediction draw from their generator or spawn another."""
    train, method, generator = rows(101, 3), methods.get(name), np.random.default_rng(seed)
    before = generator.bit_generator.state
    config = method.config(**{**quick_options(name), **options})
    moved = Rows(begun_at(train.X, offset), begun_at(train.y, offset))
    moved.X.flags.writeable = moved.y.flags.writeable = False  # a fit does not change its data
    state, _ = method.fit(moved, config, generator)
    found = method.predict(state, begun_at(train.X[:41], offset), generator)
    seeds = generator.bit_generator.seed_seq
    drawn = generator.bit_generator.state != before or seeds.n_children_spawned > 0
    return found.mean().tobytes() + found.std().tobytes(), drawn


@pytest.mark.parametrize(("name", "options"), VARIED)
def test_seed_and_data_determine_the_bits_of_a_prediction(name: str, options: dict[str, Any]) -> None:
    """Sums must not depend on the alignment of arrays."""
    first, drawn = predicted(name, options, 0, seed=0)
    kept = []
    for offset in (1, 3, 4, 7):
        kept.append(np.empty(17 * offset + 1))  # shifts later allocations
        assert predicted(name, options, offset, seed=0)[0] == first
    wanted = "differ, as it draws from rng" if drawn else "agree, as it draws nothing from rng"
    other, _ = predicted(name, options, 0, seed=1)
    assert (first == other) != drawn, f"{name}: predictions with two seeds must {wanted}"


@pytest.mark.parametrize("name", CLASSIFIERS)
@pytest.mark.parametrize("labels", [LABELS, LABELS == "low"], ids=["three", "two"])
class TestClassifiers:
    def classifier(self, name: str, **options: object) -> MethodClassifier:
        return Estimator(name, "classification", **{**methods.get(name).warmup, "random_state": 0, **options})

    def test_probabilities_do_not_depend_on_units(self, name: str, labels: np.ndarray) -> None:
        ours = self.classifier(name).fit(X, labels).predict_proba(X)
        assert ours.shape == (40, len(np.unique(labels)))
        np.testing.assert_allclose(ours.sum(axis=1), 1.0)
        theirs = self.classifier(name).fit(1000 * X - 5, labels).predict_proba(1000 * X - 5)
        np.testing.assert_allclose(theirs, ours, rtol=1e-6)

    def test_a_class_without_data_points_has_a_probability(self, name: str, labels: np.ndarray) -> None:
        known = sorted(set(labels.tolist()))
        kept = labels != known[1]
        proba = self.classifier(name, classes=known).fit(X[kept], labels[kept]).predict_proba(X)
        assert proba.shape == (40, len(known))
        assert (proba > 0.0).all()
