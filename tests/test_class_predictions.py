"""Probabilities of classes: what they answer, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import brier_score_loss, log_loss, zero_one_loss

from ep_bench import scoring
from ep_bench.predictions import ClassLabels, ClassProbabilities, PointPrediction, Predictive, missing_density
from ep_bench.runner.cell import why_not_finite

P = np.array([[0.7, 0.2, 0.1], [0.1, 0.1, 0.8], [0.4, 0.4, 0.2], [0.0, 1.0, 0.0]])


def draw(n: int, classes: int, seed: int = 0) -> tuple[ClassProbabilities, np.ndarray]:
    rng = np.random.default_rng(seed)
    return ClassProbabilities(rng.dirichlet(np.ones(classes), size=n)), rng.integers(classes, size=n).astype(float)


def test_answers_are_in_the_labels_given() -> None:
    prediction = ClassProbabilities(P, ["b", "a", "c"])
    assert len(prediction) == 4
    assert prediction.mode().tolist() == ["b", "c", "b", "a"]  # the first of equals
    np.testing.assert_allclose(prediction.logpdf(["a", "c", "c", "a"]), np.log([0.2, 0.8, 0.2, 1.0]))
    assert prediction.logpdf(["b", "b", "b", "b"])[3] == -np.inf
    with pytest.raises(ValueError, match="'d' is none of the classes b, a, c"):
        prediction.logpdf(["d"] * 4)


def test_without_labels_classes_are_indices_of_any_type() -> None:
    prediction = ClassProbabilities(P)
    np.testing.assert_array_equal(prediction.indices([0.0, 2.0, 1, 1]), [0, 2, 1, 1])
    with pytest.raises(ValueError, match=r"0\.5 is none"):
        prediction.indices([0.5])


def test_draws_have_the_probabilities() -> None:
    draws = ClassProbabilities(P, [10, 20, 30]).sample(np.random.default_rng(0), size=40_000)
    assert draws.shape == (40_000, 4)
    for place, label in enumerate((10, 20, 30)):
        np.testing.assert_allclose((draws == label).mean(axis=0), P[:, place], atol=0.01)
    assert not (draws[:, 3] != 20).any()


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ([0.5, 0.5], r"must have the shape \(N, C\), found \(2,\)"),
        ([[0.5, 0.4]], r"must sum to 1, found 0.9 in row 0"),
        ([[0.5, 0.5], [1.2, -0.2]], "must be non-negative, found -0.2"),
        ([[0.5, 0.5], [np.nan, 1.0]], "must be finite, found nan, 1.0 in row 1"),
    ],
)
def test_what_are_no_probabilities_is_refused(table: list, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        ClassProbabilities(table)
    with pytest.raises(ValueError, match="2 columns of probabilities for 3 classes"):
        ClassProbabilities([[0.5, 0.5]], [1, 2, 3])
    with pytest.raises(ValueError, match="unique labels"):
        ClassProbabilities([[0.5, 0.5]], [1, 1])


def test_sums_that_single_precision_leaves_are_made_one() -> None:
    given = np.random.default_rng(1).dirichlet(np.ones(7), size=50).astype(np.float32)
    np.testing.assert_allclose(ClassProbabilities(given).probabilities.sum(axis=1), 1.0, rtol=1e-15)


@pytest.mark.parametrize("classes", [2, 3, 6])
def test_scores_are_those_of_scikit_learn(classes: int) -> None:
    pytest.importorskip("sklearn", minversion="1.7", reason="brier_score_loss of several classes")
    prediction, y = draw(80, classes)
    scores = scoring.score(prediction, y)
    labels = np.arange(classes)
    table = prediction.probabilities
    assert scores.keys() == {"ll", "error_rate", "brier"}
    assert scores["ll"] == pytest.approx(-log_loss(y, table, labels=labels), rel=1e-12)
    assert scores["error_rate"] == pytest.approx(zero_one_loss(y, labels[table.argmax(axis=1)]), rel=1e-12)
    whole = brier_score_loss(y, table, labels=labels, scale_by_half=False)
    assert scores["brier"] == pytest.approx(whole, rel=1e-12)
    if classes == 2:
        assert scores["brier"] == pytest.approx(2.0 * np.mean((table[:, 1] - y) ** 2), rel=1e-12)


def test_a_class_without_data_points_in_the_test_set_does_no_harm() -> None:
    prediction, y = draw(30, 4)
    scores = scoring.score(prediction, np.minimum(y, 2.0))
    assert np.isfinite(list(scores.values())).all()


def test_scores_of_rows_have_the_scores_as_means() -> None:
    prediction, y = draw(40, 3)
    rows, scores = scoring.by_row(prediction, y), scoring.score(prediction, y)
    assert rows.keys() == {"error", "ll"}
    assert rows["error"].mean() == pytest.approx(scores["error_rate"])
    assert rows["ll"].mean() == pytest.approx(scores["ll"])
    assert scoring.score_training(prediction, y) == {"train_ll": pytest.approx(scores["ll"])}


def test_an_impossible_class_is_named() -> None:
    prediction = ClassProbabilities(P)
    assert scoring.score(prediction, np.array([0.0, 2.0, 0.0, 2.0]))["ll"] == -np.inf
    assert why_not_finite(prediction, np.array([0.0, 2.0, 0.0, 2.0]), ["a", "b", "c"]) == (
        "1 of 4 test points belong to classes with predicted probability 0: c"
    )
    assert why_not_finite(prediction, np.array([0.0, 2.0, 0.0, 1.0]), ["a", "b", "c"]) == ""


def test_labels_alone_have_an_error_rate_and_no_more() -> None:
    prediction = ClassLabels([0, 2, 1, 1], np.arange(3))
    assert scoring.score(prediction, np.array([0.0, 2.0, 2.0, 1.0])) == {"error_rate": 0.25}
    assert scoring.score_training(prediction, np.array([0.0, 2.0, 2.0, 1.0])) == {}
    assert missing_density(prediction).startswith("no log-likelihood")
    assert missing_density(ClassProbabilities(P)) == ""


def test_what_makes_scores_not_finite_is_named() -> None:
    y = np.zeros(3)
    prediction = Predictive.gaussian([np.nan, 0.0, np.nan], [1.0, 0.0, np.inf])
    assert why_not_finite(prediction, y, ()) == (
        "2 of 3 predictive means are not finite, 1 of 3 predictive standard deviations are 0"
    )
    assert why_not_finite(PointPrediction(np.array([np.inf, 0.0, 0.0])), y, ()) == (
        "1 of 3 predictive means are not finite"
    )
    assert why_not_finite(Predictive.gaussian(y, y + 1.0), y, ()) == ""
