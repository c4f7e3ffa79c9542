"""Classifiers: good ones pass, each fault is found by the check that is meant for it."""

from __future__ import annotations

from pathlib import Path

import pytest

from ep_bench import methods
from ep_bench.conformance.checks import CheckOutcome, checks
from ep_bench.conformance.method_under_test import MethodUnderTest
from ep_bench.conformance.suite import in_order
from ep_bench.conformance.worker import perform
from ep_bench.errors import UserError
from ep_bench.types import Task
from tests.conformance.support import findings, having

BASE = """
import numpy as np
from sklearn.base import ClassifierMixin, BaseEstimator


class Shares(ClassifierMixin, BaseEstimator):
    def fit(self, X, y):
        self.classes_, counts = np.unique(y, return_counts=True)
        self.shares_ = counts / len(y)
        return self

    def predict_proba(self, X):
        return np.tile(self.shares_, (len(X), 1))

    def predict(self, X):
        return self.classes_[self.predict_proba(X).argmax(axis=1)]
"""
BAD = {
    "no-sum": (
        "probabilities",
        "    def predict_proba(self, X):\n        return np.ones((len(X), len(self.classes_)))",
    ),
    "dice": (
        "deterministic",
        (
            "    def predict_proba(self, X):\n"
            "        return np.random.default_rng().dirichlet(np.ones(len(self.classes_)), size=len(X))"
        ),
    ),
    "batch": (
        "no-test-rows",
        (
            "    def predict_proba(self, X):\n"
            "        p = super().predict_proba(X)\n"
            "        p[:, 0] += (X[:, 0] > X[:, 0].mean())\n"
            "        return p / p.sum(axis=1, keepdims=True)"
        ),
    ),
    "memory": (
        "refit",
        (
            "    def fit(self, X, y):\n"
            "        self.seen_ = np.concatenate([getattr(self, 'seen_', y), y])\n"
            "        return super().fit(X, self.seen_)"
        ),
    ),
    "writer": ("inputs-unchanged", "    def fit(self, X, y):\n        X[0] = 0.0\n        return super().fit(X, y)"),
    "three": (
        "missing-class",
        "    def fit(self, X, y):\n        assert len(set(y)) == 3\n        return super().fit(X, y)",
    ),
}


def outcomes(target: str, base: Path, task: Task | None = None) -> dict[str, CheckOutcome]:
    subject = MethodUnderTest(target, {}, base, task)
    subject.prepare()
    assert subject.task == "classification"
    chosen = checks(subject.task)
    return {outcome.check: outcome for outcome in in_order(chosen, lambda name: perform(subject, name))}


@pytest.mark.parametrize("use", ["sklearn.linear_model:LogisticRegression", "ep_bench.baselines:ConstantClassifier"])
def test_good_classifiers_are_recognised_and_pass(use: str, tmp_path: Path) -> None:
    found = outcomes(use, tmp_path)
    assert having(found, "ok") == found.keys(), findings(found)


@pytest.mark.parametrize("answer", ["predict_proba", "predict_dist"])
def test_one_way_to_predict_is_enough(answer: str, tmp_path: Path) -> None:
    table = "np.tile(self.rates, (len(X), 1))"
    returned = table if answer == "predict_proba" else f"ClassProbabilities({table})"
    (tmp_path / "m.py").write_text(
        "import numpy as np\nfrom ep_bench import ClassProbabilities\n\nclass Only:\n    tasks = ('classification',)\n"
        "    def fit(self, X, y):\n        self.classes_ = np.arange(int(y.max()) + 1)\n"
        "        self.rates = (np.bincount(y, minlength=len(self.classes_)) + 1.0) / (len(y) + len(self.classes_))\n"
        f"        return self\n    def {answer}(self, X):\n        return {returned}\n"
    )
    found = outcomes("./m.py:Only", tmp_path)
    assert not having(found, "FAULT"), findings(found)


def test_probabilities_of_0_and_none_at_all_are_advice(tmp_path: Path) -> None:
    for use in ("sklearn.svm:LinearSVC", "sklearn.tree:DecisionTreeClassifier"):
        found = outcomes(use, tmp_path)
        assert having(found, "advice") == {"probabilities"}, findings(found)
        assert not having(found, "FAULT"), findings(found)


@pytest.mark.parametrize("name", BAD)
def test_a_fault_is_found_by_its_check(name: str, tmp_path: Path) -> None:
    check, code = BAD[name]
    (tmp_path / "m.py").write_text(f"{BASE}\n\nclass Bad(Shares):\n{code}\n")
    found = outcomes("./m.py:Bad", tmp_path)
    assert having(found, "FAULT") == {check}, findings(found)


def test_a_method_of_the_registry(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(methods.REGISTRY, "discriminant", "tests.discriminant")
    found = outcomes("discriminant", tmp_path)
    assert having(found, "ok") == found.keys(), findings(found)


def test_the_task_of_a_method_with_both_tasks_can_be_chosen(tmp_path: Path) -> None:
    code = BASE.replace("ClassifierMixin, ", "")
    (tmp_path / "m.py").write_text(code)
    assert not having(outcomes("./m.py:Shares", tmp_path, "classification"), "FAULT")
    both = MethodUnderTest("./m.py:Shares", {}, tmp_path)
    both.prepare()
    assert both.task == "regression"
    with pytest.raises(UserError, match="pbp: --task: supports regression only"):
        MethodUnderTest("pbp", {}, tmp_path, "classification").prepare()
