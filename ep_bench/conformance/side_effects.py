"""Checks of what a method does to others: its arguments, its parameters, the global generators, copies of itself."""

from __future__ import annotations

import copy
import pickle
import random
import re
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from sklearn.base import clone as sklearn_clone

from ep_bench import adapters
from ep_bench.adapters import best_prediction
from ep_bench.conformance.basics import difference
from ep_bench.conformance.checks import Finding
from ep_bench.conformance.example_data import ordinary
from ep_bench.conformance.method_under_test import ExampleRows, MethodError, MethodUnderTest
from ep_bench.runner.records import seed_globals
from ep_bench.types import Array


def inputs_unchanged(subject: MethodUnderTest) -> Iterator[Finding]:
    """Call the instance itself, first with arrays that can be written, then with read-only ones."""
    written = list(_written(subject))
    for step, name in written:
        yield Finding(
            f"{step} writes into {name}", f"{name} as it was", f"work on a copy in {step}: {name} = {name}.copy()"
        )
    if written:
        return
    rows, X = _copies()
    for array in (*rows, X):
        array.flags.writeable = False
    try:
        model = subject.model(subject.face(brief=True))
        _fit(subject, model, rows)
        _predict(subject, model, X)
    except MethodError as error:
        yield Finding(
            f"read-only arrays are refused: {error}",
            "fit and predict take read-only arrays, as a study's data are",
            "write into no argument, and declare compiled arguments as const or read-only",
        )


def _written(subject: MethodUnderTest) -> Iterator[tuple[str, str]]:
    rows, X = _copies()
    before = ExampleRows(rows.X.copy(), rows.y.copy()), X.copy()
    model = subject.model(subject.face(brief=True))
    _fit(subject, model, rows)
    for name in ("X", "y"):
        if not np.array_equal(getattr(rows, name), getattr(before[0], name)):
            yield "fit", name
    _predict(subject, model, X)
    if not np.array_equal(X, before[1]):
        yield "predict", "X"


def _copies() -> tuple[ExampleRows, Array]:
    rows = ordinary()
    return ExampleRows(rows.X.copy(), rows.y.copy()), ordinary(30, seed=2).X.copy()


def _fit(subject: MethodUnderTest, model: Any, rows: ExampleRows) -> None:
    with subject.guarded("fit"):
        best_prediction.fit(model, rows.X, rows.y)


def _predict(subject: MethodUnderTest, model: Any, X: Array) -> None:
    for _ in subject.raw_answers(model, X):
        pass


def clone(subject: MethodUnderTest) -> Iterator[Finding]:
    """Copy an unfitted instance as searches do, and see whether parameters stay what they were given as."""
    rows, X = ordinary(), ordinary(30, seed=2).X
    face = subject.face(brief=True)
    model = subject.model(face)
    has_parameters = callable(getattr(model, "get_params", None))
    step = "sklearn.base.clone" if has_parameters else "copy.deepcopy"
    try:
        copied = sklearn_clone(model) if has_parameters else copy.deepcopy(model)
    except Exception as error:  # noqa: BLE001 a copy may fail in any way
        text = " ".join(f"{type(error).__name__}: {error}".split())
        yield Finding(f"{step} fails: {text[:300]}", "a copy with the same parameters", _MEND)
        return
    if has_parameters and (words := _differing(_parameters(model), _parameters(copied))):
        yield Finding(f"{step} gives other parameters: {words}", "a copy with the same parameters", _MEND)
    yield from _altered_arguments(subject)
    before = _parameters(model) if has_parameters else {}
    first = subject.answer(subject.fit(face, rows), X)
    if has_parameters and (words := _differing(before, _parameters(model))):
        yield Finding(f"fit alters parameters of the constructor: {words}", "they stay as they were given", _MEND_FIT)
    if words := difference(first, subject.answer(subject.fit(subject.replaced(copied), rows), X), rows.y):
        yield Finding(f"the copy predicts other numbers: {words}", "the same numbers", _MEND)


_MEND = (
    "let __init__ keep each argument unaltered under its own name (self.alpha = alpha); convert, check and build in fit"
)
_MEND_FIT = "keep what fit derives from a parameter under another name, one that ends in _"


def _altered_arguments(subject: MethodUnderTest) -> Iterator[Finding]:
    """Build from options that we hold, and look at them afterwards."""
    if subject.registered:
        return
    held = {key: value for key, value in subject.options.items() if key != adapters.STANDARDIZE}
    if any(isinstance(value, dict) for value in held.values()):
        return  # objects that a study spells out are built anew each time
    before = _snapshot(held)
    with subject.guarded("the constructor"):
        adapters.resolve(subject.target, subject.base)(**held)
    if words := _differing(before, _snapshot(held)):
        yield Finding(f"the constructor alters its arguments: {words}", "they stay as they were given", _MEND)


def _parameters(model: Any) -> dict[str, str]:
    return _snapshot(model.get_params(deep=False))


def _snapshot(parameters: Mapping[str, Any]) -> dict[str, str]:
    return {key: _words(value) for key, value in parameters.items()}


def _words(value: Any) -> str:
    """Return a parameter's value in words: lists and tuples alike, no address that an object may have in them."""
    if isinstance(value, list | tuple):
        return f"[{', '.join(_words(item) for item in value)}]"
    words = f"array {value.tolist()}" if isinstance(value, np.ndarray) else repr(value)
    return re.sub(r"( at)? 0x[0-9a-fA-F]+", "", words)


def _differing(one: dict[str, str], other: dict[str, str]) -> str:
    changed = [key for key in one if one[key] != other.get(key)]
    return ", ".join(f"{key} {one[key][:60]} became {other.get(key, 'nothing')[:60]}" for key in changed)


def pickled(subject: MethodUnderTest) -> Iterator[Finding]:
    """Send a fitted model through pickle and let it predict again."""
    rows, X = ordinary(), ordinary(30, seed=2).X
    face = subject.fitted(rows, brief=True)
    before = subject.answer(face, X)
    expected = "a model that can be stored and sent to another process"
    try:
        returned = pickle.loads(pickle.dumps(subject.model(face)))  # noqa: S301 our own bytes
    except Exception as error:  # noqa: BLE001 pickle raises whatever the object raises
        text = " ".join(f"{type(error).__name__}: {error}".split())
        mend = "keep no lambda, open file, lock, generator function or class made in a function on the instance"
        yield Finding(f"pickle fails: {text[:300]}", expected, mend)
        return
    if words := difference(before, subject.answer(subject.replaced(returned, face), X), rows.y):
        mend = "keep on the instance all that predict needs; look at __getstate__ and at state outside the instance"
        yield Finding(f"after pickle it predicts other numbers: {words}", expected, mend)


def global_rng(subject: MethodUnderTest) -> Iterator[Finding]:
    """Look whether numpy's or Python's global generator is where it was."""
    rows, X = ordinary(), ordinary(30, seed=2).X
    touched = [_moved_generators(subject, rows, X, seed) for seed in (1, 2)]
    for name in touched[0]:
        both = [after.get(name) for after in touched]
        verb = "reseeds" if both[0] == both[1] else "draws from"
        yield Finding(
            f"it {verb} {name}",
            "its numbers and everybody else's do not hang on each other",
            "draw from numpy.random.default_rng(random_state) instead",
            advice=True,
        )


def _moved_generators(subject: MethodUnderTest, rows: ExampleRows, X: Array, seed: int) -> dict[str, str]:
    """Return the generators that a fit and a prediction have moved, with where they stand."""
    model = subject.model(subject.face(brief=True))
    seed_globals(seed)
    before = _states()
    _fit(subject, model, ExampleRows(rows.X.copy(), rows.y.copy()))
    _predict(subject, model, X.copy())
    return {name: state for name, state in _states().items() if state != before[name]}


def _states() -> dict[str, str]:
    numpy_state = np.random.get_state()  # noqa: NPY002
    return {"numpy's global generator": repr([np.asarray(part).tolist() for part in numpy_state]),
            "Python's global generator": repr(random.getstate())}  # fmt: skip
