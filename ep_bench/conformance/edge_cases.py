"""Checks of difficult data that occur in studies: few, constant, wide, repeated or badly scaled."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ep_bench.conformance.basics import unusable
from ep_bench.conformance.checks import Finding
from ep_bench.conformance.example_data import ordinary
from ep_bench.conformance.method_under_test import ExampleRows, MethodError, MethodUnderTest
from ep_bench.types import Array


def one_row(subject: MethodUnderTest) -> Iterator[Finding]:
    """Fit to one data point; a ValueError about the number of samples, or a standard deviation of 0, is advice."""
    try:
        answer = subject.answer(subject.fitted(ordinary(1, d=1)), ordinary(10, seed=2, d=1).X)
    except MethodError as error:
        yield _raised(error, "use a prior, or the target of the data point", advice=_names_row_count(error))
        return
    yield from unusable(answer, zero_is_advice=True)


def _names_row_count(error: MethodError) -> bool:
    """Return whether the error is about the number of samples or rows, as those of scikit-learn are."""
    text = str(error.error)
    return isinstance(error.error, ValueError) and ("sample" in text or "row" in text)


def _raised(error: MethodError, remedy: str, *, advice: bool = False) -> Finding:
    return Finding(str(error), "finite means, and positive standard deviations if there are any", remedy, advice)


def constant_input(subject: MethodUnderTest) -> Iterator[Finding]:
    """Fit with a constant input; predict at the same and at another value of it."""
    rows, test = ordinary(), ordinary(30, seed=2).X.copy()
    X = rows.X.copy()
    X[:, 1] = 0.998
    test[:15, 1] = 0.998
    remedy = "do not divide by a standard deviation of 0: use 1 if max == min, since rounding can make it positive"
    yield from _usable(subject, ExampleRows(X, rows.y), test, remedy)


def wide(subject: MethodUnderTest) -> Iterator[Finding]:
    """Fit to 8 data points with 30 inputs."""
    rows = ordinary(8, d=30)
    remedy = "X.T @ X is singular here: use lstsq, ridge regularisation or a prior"
    yield from _usable(subject, rows, ordinary(20, seed=2, d=30).X, remedy)


def constant_target(subject: MethodUnderTest) -> Iterator[Finding]:
    """Fit to equal targets; a standard deviation of 0 is advice."""
    X = ordinary().X
    remedy = "do not divide by the standard deviation of the targets if it is 0: use 1"
    yield from _usable(
        subject, ExampleRows(X, np.full(len(X), 7.0)), ordinary(30, seed=2).X, remedy, zero_is_advice=True
    )  # fmt: skip


def duplicate_rows(subject: MethodUnderTest) -> Iterator[Finding]:
    """Fit to repeated inputs with different targets, as in wine."""
    rows = ordinary(20)
    twice = ExampleRows(np.repeat(rows.X, 2, axis=0), np.repeat(rows.y, 2) + np.tile([0.5, -0.5], 20))
    remedy = "the covariance matrix is singular without noise: add the noise variance or a jitter to its diagonal"
    yield from _usable(subject, twice, ordinary(30, seed=2).X, remedy)


def many_scales(subject: MethodUnderTest) -> Iterator[Finding]:
    """Fit to inputs of very different scales; all findings are advice."""
    rows, scales = ordinary(), np.array([1e-6, 1.0, 1e6])
    remedy = "standardise the inputs in fit, or use the option standardize: true"
    found = _usable(subject, ExampleRows(rows.X * scales, rows.y), ordinary(30, seed=2).X * scales, remedy)
    for finding in found:
        yield finding._replace(advice=True)


def _usable(
    subject: MethodUnderTest, rows: ExampleRows, X: Array, remedy: str, *, zero_is_advice: bool = False
) -> Iterator[Finding]:  # fmt: skip
    try:
        answer = subject.answer(subject.fitted(rows), X)
    except MethodError as error:
        yield _raised(error, remedy)
        return
    for finding in unusable(answer, zero_is_advice=zero_is_advice):
        yield finding if finding.advice else finding._replace(remedy=remedy)
