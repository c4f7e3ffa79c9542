"""Checks of classifiers: probabilities of all classes, which depend on training data and seed only, and labels."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.base import clone as sklearn_clone

from ep_bench.conformance.basics import spread
from ep_bench.conformance.checks import Finding
from ep_bench.conformance.example_data import classes
from ep_bench.conformance.method_under_test import CLASSES, ExampleRows, MethodError, MethodUnderTest
from ep_bench.predictions import ClassLabels, ClassProbabilities
from ep_bench.types import Array

SAME = 1e-6  # largest rounding error of probabilities
_SUMS = 1e-4  # tolerance for another order of summation, and for single precision
PREDICTIONS = ("predict", "predict_proba", "predict_dist")
_LABELS = np.array([30, 10, 20])  # labels of the classes 0, 1 and 2, not in ascending order
_SEED = "add a parameter random_state and draw all random numbers from numpy.random.default_rng(random_state)"


def fits(subject: MethodUnderTest) -> Iterator[Finding]:
    """Check that a fit and predictions raise no exception."""
    model = subject.model(subject.fitted(classes()))
    name = _prediction(model)
    with subject.guarded(name):
        getattr(model, name)(classes(30, seed=2).X)
    yield from ()


def _prediction(model: Any) -> str:
    """Return the name of a method that predicts; one is enough."""
    return next((name for name in PREDICTIONS if callable(getattr(model, name, None))), PREDICTIONS[0])


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


def labels(subject: MethodUnderTest) -> Iterator[Finding]:
    """Check that predict returns the labels that were passed to fit."""
    rows = classes()
    original = _LABELS[rows.y.astype(int)]
    model = subject.instance()
    if not callable(getattr(model, "predict", None)):
        return
    try:
        with subject.guarded("fit with the labels 10, 20 and 30"):
            model.fit(rows.X.copy(), original)
            found = set(np.asarray(model.predict(rows.X.copy())).ravel().tolist())
    except MethodError as error:
        found, why = set(), f": {error}"
    else:
        why = f", predict returns {sorted(found, key=str)[:5]}"
    if not found or not found <= set(_LABELS.tolist()):
        yield Finding(
            f"predict does not return the labels passed to fit{why}",
            "the labels passed to fit; in studies these are indices from 0",
            "store numpy.unique(y) as classes_, and fit to the indices of return_inverse",
            advice=not subject.registered,
        )


def deterministic(subject: MethodUnderTest) -> Iterator[Finding]:
    """Check that probabilities depend on data and seed only."""
    rows, X = classes(), classes(30, seed=2).X
    wrapped = subject.fitted(rows, brief=True)
    first, again = _table(subject, wrapped, X), _table(subject, wrapped, X)
    if (size := spread(first, again)) > SAME:
        remedy = "create the random generator of predict from the same seed in each call"
        yield _differs("two predictions at the same inputs", size, remedy)
    elif (size := spread(first, _table(subject, subject.fitted(rows, brief=True), X))) > SAME:
        yield _differs("two new instances with the same seed, fitted to the same data,", size, _SEED)


def refit(subject: MethodUnderTest) -> Iterator[Finding]:
    """Check that a fit does not depend on a previous fit to other data."""
    rows, X = classes(), classes(30, seed=2).X
    before = classes(55, seed=3)
    used = subject.fitted(ExampleRows(3.0 * before.X + 1.0, (before.y + 1.0) % CLASSES), brief=True)
    fresh = _table(subject, subject.fitted(rows, brief=True), X)
    if (size := spread(fresh, _table(subject, subject.fit(used, rows), X))) > _SUMS:
        remedy = "create in fit, not in __init__ or on the class, all objects that fit changes"
        yield _differs("an instance fitted to other data before, and a new one,", size, remedy)


def no_test_rows(subject: MethodUnderTest) -> Iterator[Finding]:
    """Compare predictions for all inputs with those in another order, in halves and one by one."""
    X = classes(24, seed=2).X
    wrapped = subject.fitted(classes(), brief=True)
    whole = _table(subject, wrapped, X)
    order = np.random.default_rng(0).permutation(len(X))
    others = {
        "in another order": (whole[order], _table(subject, wrapped, X[order])),
        "in halves": (whole[:12], _table(subject, wrapped, X[:12])),
        "one by one": (whole[:4], np.concatenate([_table(subject, wrapped, X[i : i + 1]) for i in range(4)])),
    }
    for how, (expected, found) in others.items():
        if (size := spread(expected, found)) > _SUMS:
            remedy = "compute each prediction from its own inputs and the fitted model only"
            yield _differs(f"predictions at the same inputs, together and {how},", size, remedy)
            return


def inputs_unchanged(subject: MethodUnderTest) -> Iterator[Finding]:
    """Check that arguments are not changed, and may be read-only."""
    rows = classes()
    X, y = rows.X.copy(), rows.y.astype(np.int64)
    model = subject.instance()
    with subject.guarded("fit"):
        model.fit(X, y)
    if not (np.array_equal(X, rows.X) and np.array_equal(y, rows.y)):
        yield Finding("fit changes its arguments", "unchanged X and y", "work on copies in fit")
        return
    X.flags.writeable = y.flags.writeable = False
    with subject.guarded("fit and predict with read-only arrays"):
        model.fit(X, y)
        getattr(model, _prediction(model))(X)


def clone(subject: MethodUnderTest) -> Iterator[Finding]:
    """Copy an unfitted instance, as hyperparameter searches do."""
    rows, X = classes(), classes(30, seed=2).X
    wrapped = subject.new(brief=True)
    model = subject.model(wrapped)
    with subject.guarded("the copy of an unfitted instance"):
        copied = sklearn_clone(model) if callable(getattr(model, "get_params", None)) else copy.deepcopy(model)
    first = _table(subject, subject.fit(wrapped, rows), X)
    if (size := spread(first, _table(subject, subject.fit(subject.replaced(copied), rows), X))) > SAME:
        remedy = "store each argument unchanged under its own name in __init__; convert and validate in fit"
        yield _differs("an instance and its copy", size, remedy)


def pickled(subject: MethodUnderTest) -> Iterator[Finding]:
    """Pickle a fitted model and compare its predictions."""
    X = classes(30, seed=2).X
    wrapped = subject.fitted(classes(), brief=True)
    before = _table(subject, wrapped, X)
    with subject.guarded("pickle"):
        returned = pickle.loads(pickle.dumps(subject.model(wrapped)))  # noqa: S301 our own bytes
    if (size := spread(before, _table(subject, subject.replaced(returned, wrapped), X))) > SAME:
        yield _differs("predictions before and after pickle", size, "store on the instance all that predict uses")


def missing_class(subject: MethodUnderTest) -> Iterator[Finding]:
    """Fit to training data without one of the classes, as may happen for a small data set."""
    rows = classes()
    others = rows.y != 1.0
    part = ExampleRows(rows.X[others], rows.y[others])
    table = _table(subject, subject.fitted(part, brief=True), classes(30, seed=2).X)
    if subject.registered and not (table[:, 1] > 0.0).all():
        yield Finding(
            "a class without training data has probability 0",
            "a positive probability, since a test point may belong to it",
            "use train.classes as the number of classes, and a prior on each",
        )


def _table(subject: MethodUnderTest, wrapped: Any, X: Array) -> Array:
    """Return probabilities (n, C); without probabilities 1 for the predicted class and 0 for the others."""
    with subject.guarded("predict"):
        found = wrapped.predict_dist(X.copy())
        if isinstance(found, ClassProbabilities):
            return found.probabilities
        return np.asarray(np.eye(len(found.classes))[found.values])


def _differs(what: str, size: float, remedy: str) -> Finding:
    return Finding(f"{what} differ in probabilities, by up to {size:.2g}", "the same probabilities", remedy)
