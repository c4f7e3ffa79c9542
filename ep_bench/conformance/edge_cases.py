"""Checks on awkward rows: few, constant, wide, repeated, of many scales. Studies meet them all."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ep_bench.conformance.basics import unusable
from ep_bench.conformance.checks import Finding
from ep_bench.conformance.example_data import ordinary
from ep_bench.conformance.method_under_test import ExampleRows, MethodError, MethodUnderTest
from ep_bench.types import Array


def one_row(subject: MethodUnderTest) -> Iterator[Finding]:
    """One row of one input. Refusing it in so many words is advice; so is a deviation of 0."""
    try:
        answer = subject.answer(subject.fitted(ordinary(1, d=1)), ordinary(10, seed=2, d=1).X)
    except MethodError as error:
        yield _raised(error, "fall back on a prior, or on the row's own target", advice=_names_row_count(error))
        return
    yield from unusable(answer, zero_is_advice=True)


def _names_row_count(error: MethodError) -> bool:
    """Tell whether a method refuses the number of rows in words, as scikit-learn's do."""
    text = str(error.error)
    return isinstance(error.error, ValueError) and ("sample" in text or "row" in text)


def _raised(error: MethodError, instead: str, *, advice: bool = False) -> Finding:
    return Finding(str(error), "finite means, and deviations above 0 if there are any", instead, advice)


def constant_input(subject: MethodUnderTest) -> Iterator[Finding]:
    """Predictions of rows that share the constant, and of others."""
    rows, test = ordinary(), ordinary(30, seed=2).X.copy()
    X = rows.X.copy()
    X[:, 1] = 0.998
    test[:15, 1] = 0.998
    mend = "do not divide by a deviation of 0: take 1 where max == min, since rounding can leave it just above 0"
    yield from _usable(subject, ExampleRows(X, rows.y), test, mend)


def wide(subject: MethodUnderTest) -> Iterator[Finding]:
    """Thirty inputs, eight rows."""
    rows = ordinary(8, d=30)
    mend = "regularise: X.T @ X has no inverse here; lstsq, a ridge or a prior has an answer"
    yield from _usable(subject, rows, ordinary(20, seed=2, d=30).X, mend)


def constant_target(subject: MethodUnderTest) -> Iterator[Finding]:
    """Fit to equal targets, where a deviation of 0 is advice."""
    X = ordinary().X
    mend = "do not divide by a deviation of 0 of the targets: take 1 instead"
    yield from _usable(
        subject, ExampleRows(X, np.full(len(X), 7.0)), ordinary(30, seed=2).X, mend, zero_is_advice=True
    )  # fmt: skip


def duplicate_rows(subject: MethodUnderTest) -> Iterator[Finding]:
    """Equal inputs with unequal targets, as wine has."""
    rows = ordinary(20)
    twice = ExampleRows(np.repeat(rows.X, 2, axis=0), np.repeat(rows.y, 2) + np.tile([0.5, -0.5], 20))
    mend = "a covariance with two equal rows is singular without noise: add the noise, or a jitter, to its diagonal"
    yield from _usable(subject, twice, ordinary(30, seed=2).X, mend)


def many_scales(subject: MethodUnderTest) -> Iterator[Finding]:
    """Fit to inputs that only standardisation brings together; what fails is advice."""
    rows, scales = ordinary(), np.array([1e-6, 1.0, 1e6])
    mend = "standardise the inputs in fit, or use the method with standardize: true"
    found = _usable(subject, ExampleRows(rows.X * scales, rows.y), ordinary(30, seed=2).X * scales, mend)
    for finding in found:
        yield finding._replace(advice=True)


def _usable(
    subject: MethodUnderTest, rows: ExampleRows, X: Array, mend: str, *, zero_is_advice: bool = False
) -> Iterator[Finding]:  # fmt: skip
    try:
        answer = subject.answer(subject.fitted(rows), X)
    except MethodError as error:
        yield _raised(error, mend)
        return
    for finding in unusable(answer, zero_is_advice=zero_is_advice):
        yield finding._replace(mend=mend)
