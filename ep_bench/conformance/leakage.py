"""Checks that a prediction depends on the training data only."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ep_bench.conformance.basics import difference, spread
from ep_bench.conformance.checks import Finding
from ep_bench.conformance.example_data import example
from ep_bench.conformance.method_under_test import CLASSES, Answer, ExampleRows, MethodUnderTest
from ep_bench.types import Array

_ROUNDING = 1e-4  # in standard deviations of the targets: single precision, another order of summation
_SAMPLING = 5.0  # tolerance relative to the effect of another order of the inputs
_LARGEST = 0.1  # of the tolerance, in standard deviations of the targets: more is no noise of a few hundred draws
_OF_UNIT = " standard deviations of the targets"


def refit(subject: MethodUnderTest) -> Iterator[Finding]:
    """Check that a fit does not depend on a previous fit to other data."""
    rows, X = example(subject), example(subject, 30, seed=2).X
    before = example(subject, 55, seed=3)
    y = (before.y + 1.0) % CLASSES if subject.task == "classification" else 40.0 - 6.0 * before.y
    before = ExampleRows(3.0 * before.X + 1.0, y)
    fresh = subject.answer(subject.fitted(rows, brief=True), X)
    used = subject.fit(subject.fitted(before, brief=True), rows)
    if words := difference(fresh, subject.answer(used, X), rows.y, _ROUNDING):
        yield Finding(
            f"an instance fitted to other data before, and a new one, have different predictions: {words}",
            "a fit that does not depend on previous fits",
            "create in fit, not in __init__ or on the class, all objects that fit changes",
        )


def no_test_rows(subject: MethodUnderTest) -> Iterator[Finding]:
    """Compare predictions for all inputs with those one by one, in halves and together with outliers.

    Predictions that depend on the order of the inputs, as those of methods that draw random numbers in ``predict`` do,
    have a larger tolerance, and an advice.
    """
    rows, X = example(subject), example(subject, 20, seed=2).X
    wrapped = subject.fitted(rows, brief=True)
    whole = subject.answer(wrapped, X)
    outliers = np.concatenate([X, 100.0 * example(subject, 10, seed=4).X])
    together = {
        "one by one": _joined([subject.answer(wrapped, X[i : i + 1]) for i in range(6)]),
        "in halves": _joined([subject.answer(wrapped, X[:10]), subject.answer(wrapped, X[10:])]),
        "with ten outliers": _first(subject.answer(wrapped, outliers), len(X)),
    }
    unit, of_unit = (1.0, "") if whole.mean.ndim == 2 else (float(np.std(rows.y)), _OF_UNIT)
    by_order = _by_order(subject, wrapped, X, whole) / unit
    allowed = max(_ROUNDING, min(_SAMPLING * by_order, _LARGEST))
    for how, answer in together.items():
        if (size := _size(_first(whole, len(answer.mean)), answer) / unit) > allowed:
            yield Finding(
                f"predictions at the same inputs, together and {how}, differ by up to {size:.2g}{of_unit}",
                "predictions that depend on their own inputs and the fit only",
                "standardise, centre or select in predict with values from fit, not from the inputs of predict",
            )
            return
    if by_order > _ROUNDING:
        yield Finding(
            f"predictions depend on the order of the inputs: up to {by_order:.2g}{of_unit}",
            "predictions that do not, unless predict draws random numbers per input",
            "no change if it draws them; else use the input of each prediction only",
            advice=True,
        )


def _by_order(subject: MethodUnderTest, wrapped: object, X: Array, whole: Answer) -> float:
    """Return the effect of the order of the inputs, which is 0 unless predict draws random numbers per input."""
    sizes = []
    for seed in range(3):
        order = np.random.default_rng(seed).permutation(len(X))
        back = np.argsort(order)
        shuffled = subject.answer(wrapped, X[order])
        std = None if shuffled.std is None else shuffled.std[back]
        sizes.append(_size(whole, Answer(shuffled.mean[back], std, None)))
    return max(sizes)


def _size(one: Answer, other: Answer) -> float:
    return max(spread(one.mean, other.mean), spread(one.std, other.std))


def _joined(answers: list[Answer]) -> Answer:
    stds = [answer.std for answer in answers if answer.std is not None]
    mean = np.concatenate([answer.mean for answer in answers])
    return Answer(mean, np.concatenate(stds) if stds else None, None)


def _first(answer: Answer, n: int) -> Answer:
    return Answer(answer.mean[:n], None if answer.std is None else answer.std[:n], None)
