"""Checks of classifiers only: probabilities of all classes."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ep_bench.conformance.checks import Finding
from ep_bench.conformance.example_data import classes
from ep_bench.conformance.method_under_test import ExampleRows, MethodUnderTest
from ep_bench.predictions import ClassLabels


def probabilities(subject: MethodUnderTest) -> Iterator[Finding]:
    """Check that there is one probability per class, for 1, 7 and 40 data points."""
    wrapped = subject.fitted(classes())
    has_probabilities = callable(getattr(subject.model(wrapped), "predict_proba", None))
    for n in (1, 7, 40):
        with subject.guarded("predict_proba" if has_probabilities else "predict"):
            found = wrapped.predict_dist(classes(n, seed=2).X)
    if isinstance(found, ClassLabels):
        yield Finding(
            "the method gives classes without probabilities",
            "predict_proba(X), which is needed for a log-likelihood",
            "add predict_proba, or wrap it in sklearn.calibration.CalibratedClassifierCV",
            advice=True,
        )
    elif (found.probabilities == 0.0).any():
        yield Finding(
            f"{np.count_nonzero(found.probabilities == 0.0)} of {found.probabilities.size} probabilities are 0",
            "positive probabilities; a cell fails if the true class of a test point has probability 0",
            "smooth the class frequencies, or regularise the model (min_samples_leaf of a forest)",
            advice=True,
        )


def missing_class(subject: MethodUnderTest) -> Iterator[Finding]:
    """Fit to training data without one of the classes, as may happen for a small data set."""
    rows = classes()
    others = rows.y != 1.0
    part = ExampleRows(rows.X[others], rows.y[others])
    table = subject.answer(subject.fitted(part, brief=True), classes(30, seed=2).X).mean
    if subject.registered and not (table[:, 1] > 0.0).all():
        yield Finding(
            "a class without training data has probability 0",
            "a positive probability, since a test point may belong to it",
            "use train.classes as the number of classes, and a prior on each",
        )
