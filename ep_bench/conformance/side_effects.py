"""Checks of side effects: on arguments, parameters and copies."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator
from pickle import dumps, loads
from typing import Any

import numpy as np
from sklearn.base import clone as sklearn_clone

from ep_bench.adapters import best_prediction
from ep_bench.conformance.basics import difference
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


def clone(subject: MethodUnderTest) -> Iterator[Finding]:
    """Copy an unfitted instance, as hyperparameter searches do, and check that its parameters do not change."""
    rows, X = example(subject), example(subject, 30, seed=2).X
    wrapped = subject.new(brief=True)
    model = subject.model(wrapped)
    has_parameters = callable(getattr(model, "get_params", None))
    step = "sklearn.base.clone" if has_parameters else "copy.deepcopy"
    try:
        copied = sklearn_clone(model) if has_parameters else copy.deepcopy(model)
    except Exception as error:  # noqa: BLE001 a copy may fail in any way
        text = " ".join(f"{type(error).__name__}: {error}".split())
        yield Finding(f"{step} fails: {text[:300]}", "a copy with the same parameters", _REMEDY)
        return
    if has_parameters and (words := _differing(_parameters(model), _parameters(copied))):
        yield Finding(f"{step} changes parameters: {words}", "a copy with the same parameters", _REMEDY)
    before = _parameters(model) if has_parameters else {}
    first = subject.answer(subject.fit(wrapped, rows), X)
    if has_parameters and (words := _differing(before, _parameters(model))):
        yield Finding(f"fit changes parameters of the constructor: {words}", "unchanged parameters", _FIT_REMEDY)
    if words := difference(first, subject.answer(subject.fit(subject.replaced(copied), rows), X), rows.y):
        yield Finding(f"predictions of the copy differ: {words}", "the same predictions", _REMEDY)


_REMEDY = "store each argument unchanged under its own name in __init__ (self.alpha = alpha); validate in fit"
_FIT_REMEDY = "store values that fit derives from a parameter under another name that ends in _"


def _parameters(model: Any) -> dict[str, str]:
    return {key: _words(value) for key, value in model.get_params(deep=False).items()}


def _words(value: Any) -> str:
    """Return a parameter's value as text, the same for lists and tuples, without memory addresses."""
    if isinstance(value, list | tuple):
        return f"[{', '.join(_words(item) for item in value)}]"
    words = f"array {value.tolist()}" if isinstance(value, np.ndarray) else repr(value)
    return re.sub(r"( at)? 0x[0-9a-fA-F]+", "", words)


def _differing(one: dict[str, str], other: dict[str, str]) -> str:
    changed = [key for key in one if one[key] != other.get(key)]
    return ", ".join(f"{key} {one[key][:60]} became {other.get(key, 'nothing')[:60]}" for key in changed)


def pickle(subject: MethodUnderTest) -> Iterator[Finding]:
    """Pickle a fitted model and compare its predictions."""
    rows, X = example(subject), example(subject, 30, seed=2).X
    wrapped = subject.fitted(rows, brief=True)
    before = subject.answer(wrapped, X)
    expected = "a model that can be stored and sent to another process"
    try:
        returned = loads(dumps(subject.model(wrapped)))  # noqa: S301 our own bytes
    except Exception as error:  # noqa: BLE001 pickle passes on all exceptions of the object
        text = " ".join(f"{type(error).__name__}: {error}".split())
        remedy = "store no lambda, open file, lock, generator or local class on the instance"
        yield Finding(f"pickle fails: {text[:300]}", expected, remedy)
        return
    if words := difference(before, subject.answer(subject.replaced(returned, wrapped), X), rows.y):
        remedy = "store on the instance all that predict uses; check __getstate__ and state outside the instance"
        yield Finding(f"predictions before and after pickle differ: {words}", expected, remedy)
