"""Checks of what everything else rests on: building, fitting, shapes, finite numbers, repeatable numbers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ep_bench.adapters.best_prediction import FACES
from ep_bench.conformance.checks import Finding
from ep_bench.conformance.example_data import ordinary
from ep_bench.conformance.method_under_test import SEED, Answer, MethodUnderTest
from ep_bench.types import Array

SAME = 1e-6  # differences up to this, in deviations of the targets, are rounding


def builds(subject: MethodUnderTest) -> Iterator[Finding]:
    """Check that the instance can predict and can be built again."""
    model = subject.model(subject.face())
    if not any(callable(getattr(model, name, None)) for name in FACES):
        yield Finding(
            f"{type(model).__name__} has none of {', '.join(FACES)}",
            "predict(X, return_std=True), or predict_dist(X) returning an ep_bench.Predictive",
            "add one of these",
        )
    if subject.model(subject.face()) is model:
        yield Finding(
            "building it twice gave the same object", "a new object each time", "return a new instance from __new__"
        )


def fits(subject: MethodUnderTest) -> Iterator[Finding]:
    """Check that a plain fit and plain predictions raise nothing."""
    face = subject.fitted(ordinary())
    for _ in subject.raw_answers(subject.model(face), ordinary(30, seed=2).X):
        pass
    yield from ()


def shapes(subject: MethodUnderTest) -> Iterator[Finding]:
    """Check the shapes of all that the instance answers, then that the runner's face takes it."""
    rows = ordinary()
    face = subject.fitted(rows, brief=True)
    wrong: dict[str, Finding] = {}
    for X in (rows.X[:1], ordinary(7, seed=2).X, rows.X):
        for what, _, value in subject.raw_answers(subject.model(face), X):
            if what not in wrong and (problem := _misshapen(value, len(X))):
                wrong[what] = Finding(f"{what} {problem}", f"numbers of shape ({len(X)},)", _mend_shape(value))
    yield from wrong.values()
    if not wrong:
        subject.answer(face, rows.X[:1])


def _misshapen(value: Any, n: int) -> str:
    try:
        found = np.asarray(value, dtype=np.float64).shape
    except (TypeError, ValueError):
        return f"is no array of numbers but a {type(value).__name__}"
    return "" if found == (n,) else f"has the shape {found} for {n} rows"


def _mend_shape(value: Any) -> str:
    shape = np.shape(value)
    if len(shape) == 2 and 1 in shape:
        return "return it with .ravel()"
    return "return one number for each row of X, in the order of the rows"


def finite(subject: MethodUnderTest) -> Iterator[Finding]:
    """Check means, deviations and log densities of rows that the method has not seen."""
    test = ordinary(30, seed=2)
    face = subject.fitted(ordinary())
    answer = subject.answer(face, test.X)
    bad_numbers = list(unusable(answer))
    yield from bad_numbers
    if hasattr(answer.distribution, "logpdf") and not bad_numbers:
        with np.errstate(all="ignore"):
            densities = np.asarray(answer.distribution.logpdf(test.y), float)
        if bad := _count(~np.isfinite(densities)):
            yield Finding(
                f"the log density of {bad} of 30 targets is not finite",
                "a finite number for each",
                "compute the log density itself, not the logarithm of a density that may underflow",
            )


def unusable(answer: Answer, *, zero_is_advice: bool = False) -> Iterator[Finding]:
    """Yield what is wrong with means and deviations; an infinite deviation is allowed, as of a Student-t's."""
    n = len(answer.mean)
    if bad := _count(~np.isfinite(answer.mean)):
        yield Finding(
            f"{bad} of {n} predicted means are not finite",
            "a finite number for each row",
            "look for a division by 0 or an overflow; where there is no answer, raise an exception instead",
        )
    if answer.deviation is None:
        return
    if bad := _count(np.isnan(answer.deviation) | (answer.deviation < 0.0)):
        yield Finding(
            f"{bad} of {n} deviations are nan or below 0",
            "a number above 0 for each row",
            "look for the root of a negative variance, or a division by 0",
        )
    elif bad := _count(answer.deviation == 0.0):
        yield Finding(
            f"{bad} of {n} deviations are 0: the log density of a target is not finite there, and a cell fails",
            "a number above 0 for each row",
            "add the noise's variance; from so few rows it can only come from a prior",
            advice=zero_is_advice,
        )


def deterministic(subject: MethodUnderTest) -> Iterator[Finding]:
    """Check that the numbers hang on data and seed alone."""
    rows, X = ordinary(), ordinary(30, seed=2).X
    face = subject.fitted(rows, brief=True)
    first = subject.answer(face, X)
    again = subject.answer(face, X)
    fresh = subject.answer(subject.fitted(rows, brief=True), X)
    expected = "the same numbers, so that a cell that is run again gives the same scores"
    if words := difference(first, again, rows.y):
        yield Finding(
            f"predicting the same rows twice gave different numbers: {words}",
            expected,
            "draw in predict from a generator that is made anew, from the same seed, at each call",
        )
    elif words := difference(first, fresh, rows.y):
        yield Finding(
            f"two fresh instances with the same seed, fitted to the same rows, differ: {words}",
            expected,
            "take a parameter random_state and draw all that is random from numpy.random.default_rng(random_state)",
        )
    elif subject.takes_seed():
        other = subject.fit(subject.face(brief=True), rows, global_seed=SEED + 1)
        if words := difference(first, subject.answer(other, X), rows.y):
            yield Finding(
                f"with the same random_state the numbers still hang on numpy's global generator: {words}",
                "random_state alone decides",
                "draw from a generator made of random_state; pass it on to whatever else draws",
            )


def difference(one: Answer, other: Answer, y: Array, most: float = SAME) -> str:
    """Return by how much two answers differ, in words; empty where that is rounding."""
    for what in ("mean", "deviation"):
        size = spread(getattr(one, what), getattr(other, what)) / float(np.std(y))
        if size > most:
            return f"{what}s by up to {size:.2g} standard deviations of the targets"
    return ""


def spread(one: Array | None, other: Array | None) -> float:
    """Return the largest absolute difference; where both are nan or infinite alike there is none."""
    if one is None or other is None:
        return 0.0 if one is other else np.inf
    alike = (one == other) | (np.isnan(one) & np.isnan(other))
    with np.errstate(invalid="ignore"):
        size = np.where(alike, 0.0, np.abs(one - other))
    return float(np.nan_to_num(size, nan=np.inf).max())


def _count(mask: NDArray[np.bool_]) -> int:
    return int(np.count_nonzero(mask))
