"""Checks of classifiers: probabilities of all classes that hang on training rows and seed alone, and labels kept."""

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

SAME = 1e-6  # differences of probabilities up to this are rounding
_SUMS = 1e-4  # of other orders of summation, and single precision
_LABELS = np.array([30, 10, 20])  # no indices, and not in their order
_SEED = "take a parameter random_state and draw all that is random from numpy.random.default_rng(random_state)"


def fits(subject: MethodUnderTest) -> Iterator[Finding]:
    """Check that a plain fit and plain predictions raise nothing."""
    model = subject.model(subject.fitted(classes()))
    with subject.guarded("predict"):
        model.predict(classes(30, seed=2).X)
    yield from ()


def probabilities(subject: MethodUnderTest) -> Iterator[Finding]:
    """Check that there is a probability for each class, for 1, 7 and 40 rows; the face checks shapes and sums."""
    face = subject.fitted(classes())
    for n in (1, 7, 40):
        with subject.guarded("predict_proba"):
            found = face.predict_dist(classes(n, seed=2).X)
    if isinstance(found, ClassLabels):
        yield Finding(
            "it gives classes without probabilities",
            "predict_proba(X), so that it has a log-likelihood",
            "add predict_proba, or wrap it in sklearn.calibration.CalibratedClassifierCV",
            advice=True,
        )
    elif (found.probabilities == 0.0).any():
        yield Finding(
            f"{np.count_nonzero(found.probabilities == 0.0)} of {found.probabilities.size} probabilities are 0",
            "probabilities above 0: a cell fails whose test rows have a class of probability 0",
            "pull shares towards those of all training rows (a forest's min_samples_leaf), or smooth them",
            advice=True,
        )


def labels(subject: MethodUnderTest) -> Iterator[Finding]:
    """Check that labels other than indices come back."""
    rows = classes()
    given = _LABELS[rows.y.astype(int)]
    model = subject.instance()
    try:
        with subject.guarded("fit with the labels 10, 20 and 30"):
            model.fit(rows.X.copy(), given)
            found = set(np.asarray(model.predict(rows.X.copy())).ravel().tolist())
    except MethodError as error:
        found, why = set(), f": {error}"
    else:
        why = f", predict gives {sorted(found, key=str)[:5]}"
    if not found or not found <= set(_LABELS.tolist()):
        yield Finding(
            f"labels are not kept{why}",
            "predict gives the labels that fit was given; studies give indices from 0",
            "keep numpy.unique(y) as classes_, and fit to the indices that return_inverse gives",
            advice=not subject.registered,
        )


def deterministic(subject: MethodUnderTest) -> Iterator[Finding]:
    """Check that probabilities hang on data and seed alone."""
    rows, X = classes(), classes(30, seed=2).X
    face = subject.fitted(rows, brief=True)
    first, again = _table(subject, face, X), _table(subject, face, X)
    if (size := spread(first, again)) > SAME:
        mend = "draw in predict from a generator that is made anew, from the same seed, at each call"
        yield _differs("predicting the same rows twice", size, mend)
    elif (size := spread(first, _table(subject, subject.fitted(rows, brief=True), X))) > SAME:
        yield _differs("two fresh instances with the same seed, fitted to the same rows", size, _SEED)


def refit(subject: MethodUnderTest) -> Iterator[Finding]:
    """Check that an instance fitted to other rows before is as good as new."""
    rows, X = classes(), classes(30, seed=2).X
    before = classes(55, seed=3)
    used = subject.fitted(ExampleRows(3.0 * before.X + 1.0, (before.y + 1.0) % CLASSES), brief=True)
    fresh = _table(subject, subject.fitted(rows, brief=True), X)
    if (size := spread(fresh, _table(subject, subject.fit(used, rows), X))) > _SUMS:
        mend = "make in fit, not in __init__ and not on the class, what fit adds to or draws from"
        yield _differs("an instance fitted to other rows first, and a fresh one", size, mend)


def no_test_rows(subject: MethodUnderTest) -> Iterator[Finding]:
    """Check other orders, parts and single rows of what is predicted."""
    X = classes(24, seed=2).X
    face = subject.fitted(classes(), brief=True)
    whole = _table(subject, face, X)
    order = np.random.default_rng(0).permutation(len(X))
    others = {
        "in another order": (whole[order], _table(subject, face, X[order])),
        "in halves": (whole[:12], _table(subject, face, X[:12])),
        "one by one": (whole[:4], np.concatenate([_table(subject, face, X[i : i + 1]) for i in range(4)])),
    }
    for how, (expected, found) in others.items():
        if (size := spread(expected, found)) > _SUMS:
            mend = "let predict compute nothing from the rows given to it but each row's own answer"
            yield _differs(f"predicted {how}, the same rows", size, mend)
            return


def inputs_unchanged(subject: MethodUnderTest) -> Iterator[Finding]:
    """Check that arguments are left alone, and may be read-only."""
    rows = classes()
    X, y = rows.X.copy(), rows.y.astype(np.int64)
    model = subject.instance()
    with subject.guarded("fit"):
        model.fit(X, y)
    if not (np.array_equal(X, rows.X) and np.array_equal(y, rows.y)):
        yield Finding("fit writes into its arguments", "X and y as they were", "work on copies in fit")
        return
    X.flags.writeable = y.flags.writeable = False
    with subject.guarded("fit and predict with read-only arrays"):
        model.fit(X, y)
        model.predict(X)


def clone(subject: MethodUnderTest) -> Iterator[Finding]:
    """Copy an unfitted instance as searches do."""
    rows, X = classes(), classes(30, seed=2).X
    face = subject.face(brief=True)
    model = subject.model(face)
    with subject.guarded("the copy of an unfitted instance"):
        copied = sklearn_clone(model) if callable(getattr(model, "get_params", None)) else copy.deepcopy(model)
    first = _table(subject, subject.fit(face, rows), X)
    if (size := spread(first, _table(subject, subject.fit(subject.replaced(copied), rows), X))) > SAME:
        mend = "let __init__ keep each argument unaltered under its own name; convert, check and build in fit"
        yield _differs("an instance and its copy", size, mend)


def pickled(subject: MethodUnderTest) -> Iterator[Finding]:
    """Send a fitted model through pickle and let it predict again."""
    X = classes(30, seed=2).X
    face = subject.fitted(classes(), brief=True)
    before = _table(subject, face, X)
    with subject.guarded("pickle"):
        returned = pickle.loads(pickle.dumps(subject.model(face)))  # noqa: S301 our own bytes
    if (size := spread(before, _table(subject, subject.replaced(returned, face), X))) > SAME:
        yield _differs("before and after pickle", size, "keep on the instance all that predict needs")


def missing_class(subject: MethodUnderTest) -> Iterator[Finding]:
    """Check training rows that lack one of the classes, as those of a small data set may."""
    rows = classes()
    kept = rows.y != 1.0
    table = _table(subject, subject.fitted(ExampleRows(rows.X[kept], rows.y[kept]), brief=True), classes(30, seed=2).X)
    if subject.registered and not (table[:, 1] > 0.0).all():
        yield Finding(
            "a class that the training rows lack has probability 0",
            "a probability above 0: the method is told of all classes, and a test row may be of it",
            "count the classes by train.classes, and give each a prior",
        )


def _table(subject: MethodUnderTest, face: Any, X: Array) -> Array:
    """Return probabilities (n, C), of a method without them 1 for its class and 0 for others."""
    with subject.guarded("predict"):
        found = face.predict_dist(X.copy())
        if isinstance(found, ClassProbabilities):
            return found.probabilities
        return np.asarray(np.eye(len(found.classes))[found.values])


def _differs(what: str, size: float, mend: str) -> Finding:
    return Finding(f"{what} differ in probabilities, by up to {size:.2g}", "the same probabilities", mend)
