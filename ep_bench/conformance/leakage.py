"""Checks of what a prediction may hang on: the training rows, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ep_bench.conformance.basics import difference, spread
from ep_bench.conformance.checks import Finding
from ep_bench.conformance.example_data import ordinary
from ep_bench.conformance.method_under_test import Answer, ExampleRows, MethodUnderTest
from ep_bench.types import Array

_ROUNDING = 1e-4  # in deviations of the targets: single precision, other orders of summation
_SAMPLING = 5.0  # times what another order of the rows does, where that does anything


def refit(subject: MethodUnderTest) -> Iterator[Finding]:
    """Check that an instance fitted to other rows before is as good as new."""
    rows, X = ordinary(), ordinary(30, seed=2).X
    before = ordinary(55, seed=3)
    before = ExampleRows(3.0 * before.X + 1.0, 40.0 - 6.0 * before.y)
    fresh = subject.answer(subject.fitted(rows, brief=True), X)
    used = subject.fit(subject.fitted(before, brief=True), rows)
    if words := difference(fresh, subject.answer(used, X), rows.y, _ROUNDING):
        yield Finding(
            f"fitted to other rows first, then to these, an instance predicts other numbers than a fresh one: {words}",
            "fit starts from nothing, whatever was fitted before",
            "make in fit, not in __init__ and not on the class, what fit adds to or draws from",
        )


def no_test_rows(subject: MethodUnderTest) -> Iterator[Finding]:
    """Check batches against single rows, other orders and outliers beside them."""
    rows, X = ordinary(), ordinary(20, seed=2).X
    face = subject.fitted(rows, brief=True)
    whole = subject.answer(face, X)
    outliers = np.concatenate([X, 100.0 * ordinary(10, seed=4).X])
    together = {
        "one by one": _joined([subject.answer(face, X[i : i + 1]) for i in range(6)]),
        "in halves": _joined([subject.answer(face, X[:10]), subject.answer(face, X[10:])]),
        "beside ten outliers": _first(subject.answer(face, outliers), len(X)),
    }
    unit = float(np.std(rows.y))
    allowed = max(_ROUNDING, _SAMPLING * _by_order(subject, face, X, whole) / unit)
    for how, answer in together.items():
        if (size := _size(_first(whole, len(answer.mean)), answer) / unit) > allowed:
            yield Finding(
                f"predicted {how}, the same rows get other numbers, by up to {size:.2g} standard deviations of the "
                "targets",
                "the prediction of a row hangs on that row and on the fit alone",
                "standardise, centre or select in predict with what fit has kept, never with the rows to predict",
            )
            return


def _by_order(subject: MethodUnderTest, face: object, X: Array, whole: Answer) -> float:
    """Return what shuffling the rows does: nothing, unless predict draws random numbers row by row."""
    sizes = []
    for seed in range(3):
        order = np.random.default_rng(seed).permutation(len(X))
        back = np.argsort(order)
        shuffled = subject.answer(face, X[order])
        deviation = None if shuffled.deviation is None else shuffled.deviation[back]
        sizes.append(_size(whole, Answer(shuffled.mean[back], deviation, None)))
    return max(sizes)


def _size(one: Answer, other: Answer) -> float:
    return max(spread(one.mean, other.mean), spread(one.deviation, other.deviation))


def _joined(answers: list[Answer]) -> Answer:
    deviations = [answer.deviation for answer in answers if answer.deviation is not None]
    mean = np.concatenate([answer.mean for answer in answers])
    return Answer(mean, np.concatenate(deviations) if deviations else None, None)


def _first(answer: Answer, n: int) -> Answer:
    return Answer(answer.mean[:n], None if answer.deviation is None else answer.deviation[:n], None)
