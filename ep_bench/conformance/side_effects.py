"""The check that arguments are not changed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ep_bench.adapters import best_prediction
from ep_bench.conformance.checks import Finding
from ep_bench.conformance.example_data import example
from ep_bench.conformance.method_under_test import ExampleRows, MethodError, MethodUnderTest
from ep_bench.types import Array


def inputs_unchanged(subject: MethodUnderTest) -> Iterator[Finding]:
    """Check that fit and predict do not change their arguments, and accept read-only arrays."""
    written = list(_written(subject))
    for step, name in written:
        yield Finding(
            f"{step} changes {name}", f"unchanged {name}", f"work on a copy in {step}: {name} = {name}.copy()"
        )
    if written:
        return
    rows, X = _copies(subject)
    for array in (*rows, X):
        array.flags.writeable = False
    try:
        model = subject.model(subject.new(brief=True))
        _fit(subject, model, rows)
        subject.predict(model, X)
    except MethodError as error:
        yield Finding(
            f"read-only arrays are not accepted: {error}",
            "fit and predict accept read-only arrays, which studies use",
            "do not write to arguments, and declare arguments of compiled code as const or read-only",
        )


def _written(subject: MethodUnderTest) -> Iterator[tuple[str, str]]:
    rows, X = _copies(subject)
    before = ExampleRows(rows.X.copy(), rows.y.copy()), X.copy()
    model = subject.model(subject.new(brief=True))
    _fit(subject, model, rows)
    for name in ("X", "y"):
        if not np.array_equal(getattr(rows, name), getattr(before[0], name)):
            yield "fit", name
    subject.predict(model, X)
    if not np.array_equal(X, before[1]):
        yield "predict", "X"


def _copies(subject: MethodUnderTest) -> tuple[ExampleRows, Array]:
    rows = example(subject)
    y: Any = rows.y.astype(np.int64) if subject.task == "classification" else rows.y.copy()
    return ExampleRows(rows.X.copy(), y), example(subject, 30, seed=2).X.copy()


def _fit(subject: MethodUnderTest, model: Any, rows: ExampleRows) -> None:
    with subject.guarded("fit"):
        best_prediction.fit(model, rows.X, rows.y)
