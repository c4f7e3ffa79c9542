"""External classifiers: probabilities of all classes of the data set from all kinds of predictions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ep_bench import ClassProbabilities, adapters
from ep_bench.predictions import ClassLabels

HERE = Path()
rng = np.random.default_rng(0)
X = rng.normal(size=(50, 2)) * [1.0, 1000.0] + 5.0
y = (X[:, 0] > 5.5).astype(float) + 2.0 * (X[:, 0] < 4.0)  # 0, 1 or 2


class Fake:
    """Returns the predictions passed to the constructor; stores the training data."""

    def __init__(self, classes: Any = None, **answers: Any) -> None:
        if classes is not None:
            self.classes_ = classes
        for name, value in answers.items():
            setattr(self, name, lambda _, value=value: value)

    def fit(self, X: Any, y: Any) -> None:
        self.seen = X, y


def adapted(model: Any, classes: int = 4) -> adapters.ExternalClassifier:
    return adapters.ExternalClassifier(model, classes).fit(X, y)


@pytest.mark.parametrize("use", ["sklearn.linear_model:LogisticRegression", "ep_bench.baselines:ConstantClassifier"])
def test_columns_are_put_in_their_places(use: str) -> None:
    kept = np.where(y == 1.0, 3.0, y)  # classes 0, 2 and 3 of 5
    model = adapters.build(use, {"standardize": True}, HERE, classes=5)
    found = model.fit(X, kept).predict_dist(X)
    assert isinstance(found, ClassProbabilities)
    assert found.probabilities.shape == (50, 5)
    np.testing.assert_array_equal(found.probabilities[:, [1, 4]], 0.0)
    np.testing.assert_allclose(
        found.probabilities[:, [0, 2, 3]], model.model.predict_proba((X - X.mean(axis=0)) / X.std(axis=0))
    )


def test_labels_are_whole_numbers_and_inputs_standardised_on_request() -> None:
    model = Fake(predict=np.zeros(50))
    adapters.ExternalClassifier(model, 3, standardize=True).fit(X, y)
    np.testing.assert_allclose(model.seen[0].std(axis=0), 1.0)
    assert model.seen[1].dtype == np.int64
    np.testing.assert_array_equal(model.seen[1], y)


def test_without_classes_columns_are_all_classes_or_those_seen() -> None:
    three, four = np.full((50, 3), 1 / 3), np.full((50, 4), 0.25)
    assert adapted(Fake(predict_proba=three)).predict_dist(X).probabilities[0].tolist() == [1 / 3, 1 / 3, 1 / 3, 0.0]
    np.testing.assert_array_equal(adapted(Fake(predict_proba=four)).predict_dist(X).probabilities, four)


def test_a_distribution_comes_first_and_classes_alone_last() -> None:
    table = np.tile([0.9, 0.1], (50, 1))
    both = Fake(predict_dist=ClassProbabilities(table, [2, 0]), predict_proba=table, predict=np.zeros(50))
    assert adapted(both).predict_dist(X).probabilities[0].tolist() == [0.1, 0.0, 0.9, 0.0]
    alone = adapted(Fake(predict=np.ones(50))).predict_dist(X)
    assert isinstance(alone, ClassLabels)
    assert alone.mode().tolist() == [1] * 50


@pytest.mark.parametrize(
    ("model", "error", "words"),
    [
        (
            Fake(predict_proba=np.full(50, 0.5)),
            ValueError,
            r"the shape \(50,\), expected \(50, number of classes\)",
        ),
        (Fake(predict_proba=np.full((50, 4), 0.5)), ValueError, "must sum to 1, found 2"),
        (Fake([0, 7], predict_proba=np.full((50, 2), 0.5)), ValueError, "7.* is not a class; the classes are 0 to 3"),
        (Fake(predict=np.zeros((50, 2))), ValueError, r"returned the shape \(50, 2\)"),
        (Fake(predict_dist=np.zeros((50, 2))), TypeError, "must return ep_bench.ClassProbabilities, found ndarray"),
    ],
)
def test_what_is_no_answer_is_refused(model: Fake, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        adapted(model).predict_dist(X)


def test_what_a_class_can_do() -> None:
    both = ("regression", "classification")
    assert adapters.tasks("sklearn.svm:SVC", HERE) == ("classification",)
    assert adapters.tasks("sklearn.svm:SVR", HERE) == ("regression",)
    assert adapters.tasks("sklearn.pipeline:Pipeline", HERE) == both
    assert adapters.tasks("sklearn.pipeline:make_pipeline", HERE) == both
