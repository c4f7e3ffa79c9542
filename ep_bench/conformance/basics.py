"""Basic checks: construction, fit, shapes, finite and reproducible predictions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ep_bench.adapters.best_prediction import PREDICTION_METHODS, can_predict
from ep_bench.conformance.checks import Finding
from ep_bench.conformance.example_data import example, ordinary
from ep_bench.conformance.method_under_test import SEED, Answer, MethodUnderTest
from ep_bench.types import Array

SAME = 1e-6  # largest rounding error, in standard deviations of the targets


def builds(subject: MethodUnderTest) -> Iterator[Finding]:
    """Check that the instance can predict."""
    model = subject.model(subject.new())
    if not can_predict(model):
        yield Finding(
            f"{type(model).__name__} has none of {', '.join(PREDICTION_METHODS)}",
            "predict(X, return_std=True), or predict_dist(X) returning an ep_bench.Predictive",
            "add one of these",
        )


def fits(subject: MethodUnderTest) -> Iterator[Finding]:
    """Check that a fit and predictions raise no exception."""
    subject.predict(subject.model(subject.fitted(example(subject))), example(subject, 30, seed=2).X)
    yield from ()


def shapes(subject: MethodUnderTest) -> Iterator[Finding]:
    """Check the shapes of all predictions of the instance, then those of the runner's interface."""
    rows = ordinary()
    wrapped = subject.fitted(rows, brief=True)
    wrong: dict[str, Finding] = {}
    for X in (rows.X[:1], ordinary(7, seed=2).X, rows.X):
        for what, _, value in subject.raw_answers(subject.model(wrapped), X):
            if what not in wrong and (problem := _misshapen(value, len(X))):
                wrong[what] = Finding(f"{what} {problem}", f"numbers of shape ({len(X)},)", _shape_remedy(value))
    yield from wrong.values()
    if not wrong:
        subject.answer(wrapped, rows.X[:1])


def _misshapen(value: Any, n: int) -> str:
    if isinstance(value, tuple):
        return f"is a tuple of {len(value)} values"
    try:
        found = np.asarray(value, dtype=np.float64).shape
    except (TypeError, ValueError):
        return f"has the type {type(value).__name__}, not an array of numbers"
    return "" if found == (n,) else f"has the shape {found} for {n} data points"


def _shape_remedy(value: Any) -> str:
    if isinstance(value, tuple):
        return "return the mean alone unless return_std=True; return_std must default to False"
    shape = np.shape(value)
    if len(shape) == 2 and 1 in shape:
        return "return it with .ravel()"
    return "return one number per row of X, in the order of the rows"


def finite(subject: MethodUnderTest) -> Iterator[Finding]:
    """Check means, standard deviations and log densities of test points."""
    test = ordinary(30, seed=2)
    wrapped = subject.fitted(ordinary())
    answer = subject.answer(wrapped, test.X)
    bad_numbers = list(unusable(answer))
    yield from bad_numbers
    if hasattr(answer.distribution, "logpdf") and not bad_numbers:
        with np.errstate(all="ignore"):
            densities = np.asarray(answer.distribution.logpdf(test.y), float)
        if bad := np.count_nonzero(~np.isfinite(densities)):
            yield Finding(
                f"the log density of {bad} of 30 targets is not finite",
                "a finite number per target",
                "compute the log density directly, not as the logarithm of a density that may underflow",
            )


def unusable(answer: Answer, *, zero_is_advice: bool = False) -> Iterator[Finding]:
    """Yield wrong means and standard deviations; an infinite standard deviation is allowed, as for a Student-t."""
    n = len(answer.mean)
    if bad := np.count_nonzero(~np.isfinite(answer.mean)):
        yield Finding(
            f"{bad} of {n} predicted means are not finite",
            "a finite number per data point",
            "look for a division by 0 or an overflow; raise an exception if there is no prediction",
        )
    if answer.std is None:
        return
    if bad := np.count_nonzero(np.isnan(answer.std) | (answer.std < 0.0)):
        yield Finding(
            f"{bad} of {n} standard deviations are nan or negative",
            "a positive number per data point",
            "look for the square root of a negative variance, or a division by 0",
        )
    elif bad := np.count_nonzero(answer.std == 0.0):
        yield Finding(
            f"{bad} of {n} standard deviations are 0; log densities may then be infinite, and the cell fails",
            "a positive number per data point",
            "add the noise variance; if the data do not determine it, use a prior or a positive minimum",
            advice=zero_is_advice,
        )


def deterministic(subject: MethodUnderTest) -> Iterator[Finding]:
    """Check that predictions depend on data and seed only."""
    rows, X = example(subject), example(subject, 30, seed=2).X
    wrapped = subject.fitted(rows, brief=True)
    first = subject.answer(wrapped, X)
    again = subject.answer(wrapped, X)
    fresh = subject.answer(subject.fitted(rows, brief=True), X)
    expected = "equal predictions, so that a cell has the same scores when it is run again"
    if words := difference(first, again, rows.y):
        yield Finding(
            f"two predictions at the same inputs differ: {words}",
            expected,
            "create the random generator of predict from the same seed in each call",
        )
    elif words := difference(first, fresh, rows.y):
        yield Finding(
            f"two new instances with the same seed, fitted to the same data, differ: {words}",
            expected,
            "add a parameter random_state and draw all random numbers from numpy.random.default_rng(random_state)",
        )
    elif subject.takes_seed():
        other = subject.fit(subject.new(brief=True), rows, global_seed=SEED + 1)
        if words := difference(first, subject.answer(other, X), rows.y):
            yield Finding(
                f"predictions with the same random_state depend on numpy's global generator: {words}",
                "predictions that depend on random_state only",
                "create one generator from random_state and pass it to all code that draws random numbers",
            )


def difference(one: Answer, other: Answer, y: Array, tolerance: float = SAME) -> str:
    """Return a description of the difference of two predictions; empty if it is within the tolerance."""
    if one.mean.ndim == 2:  # of a classifier
        size = spread(one.mean, other.mean)
        return f"probabilities by up to {size:.2g}" if size > tolerance else ""
    for what, words in (("mean", "means"), ("std", "standard deviations")):
        size = spread(getattr(one, what), getattr(other, what)) / float(np.std(y))
        if size > tolerance:
            return f"{words} by up to {size:.2g} standard deviations of the targets"
    return ""


def spread(one: Array | None, other: Array | None) -> float:
    """Return the largest absolute difference; 0 if both are nan or the same infinity."""
    if one is None or other is None:
        return 0.0 if one is other else np.inf
    alike = (one == other) | (np.isnan(one) & np.isnan(other))
    with np.errstate(invalid="ignore"):
        size = np.where(alike, 0.0, np.abs(one - other))
    return float(np.nan_to_num(size, nan=np.inf).max())
