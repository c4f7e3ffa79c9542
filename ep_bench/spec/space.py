"""Search spaces: what ``tune`` may vary and between which values; the language of studies and of declared spaces.

An option is followed by one of ``{log: [low, high]}``, ``{uniform: [low, high]}``, ``{int: [low, high]}``,
``{log_int: [low, high]}`` (both ends belong to it) and ``{choice: [a, b, ...]}``; a plain list is short for a choice.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from ep_bench.spec.problems import Place
from ep_bench.types import OptionProblem

# Kind of a range -> what must hold of its lower end, in words and as a test.
_RANGES: dict[str, tuple[str, Callable[[float], bool]]] = {
    "log": ("above 0", lambda low: low > 0.0),
    "uniform": ("finite", lambda _: True),
    "int": ("finite", lambda _: True),
    "log_int": ("1 or above", lambda low: low >= 1),
}
KINDS = (*_RANGES, "choice")
_WHOLE = frozenset({"int", "log_int"})
_LARGEST = 2**53  # beyond it doubles, in which the search computes, skip whole numbers
_EXAMPLE = "{log: [low, high]}, {uniform: ...}, {int: ...}, {log_int: ...}, {choice: [a, b]} or a list of choices"

Space = dict[str, dict[str, list[Any]]]
# Answers what is wrong with one value of one option, places relative to the options.
Check = Callable[[str, Any], Sequence[OptionProblem]]


class _Value(NamedTuple):
    """A bound or a choice, and where it stands."""

    place: Place
    value: Any


def read_space(raw: Mapping[str, Any], check: Check) -> tuple[Space, list[OptionProblem]]:
    """Return a search space in canonical form, and what is wrong with it, each at its place inside the space.

    Canonical: every option names its kind, bounds of ``log`` and ``uniform`` are floats, so that two spellings of one
    space are the same factors. ``check`` judges each bound and choice as a value of its option.
    """
    space: Space = {}
    problems: list[OptionProblem] = []
    for name, entry in raw.items():
        try:
            plain = json.loads(json.dumps(entry, allow_nan=False))
        except (TypeError, ValueError, RecursionError):
            problems.append(OptionProblem((name,), "holds a value that is no plain text, number, list or mapping"))
            continue
        kind, body, place = _kind(plain, (name,))
        found = list(_shape_problems(kind, body, plain, place))
        if not found and kind is not None:
            values = [float(v) for v in body] if kind in {"log", "uniform"} else list(body)
            found = list(_value_problems(name, [_Value((*place, i), v) for i, v in enumerate(values)], check))
            space[name] = {kind: values}
        problems += found
    return space, problems


def _kind(entry: Any, place: Place) -> tuple[str | None, Any, Place]:
    """Return an entry's kind, None where it has none, with its values and their place."""
    if isinstance(entry, list):
        return "choice", entry, place
    if isinstance(entry, dict) and len(entry) == 1:
        ((kind, body),) = entry.items()
        return (kind if kind in KINDS else None), body, (*place, kind)
    return None, None, place


def _shape_problems(kind: str | None, body: Any, entry: Any, place: Place) -> Iterator[OptionProblem]:
    if kind is None:
        if isinstance(entry, dict) and len(entry) == 1:
            yield OptionProblem(place, "unknown kind of range", None, KINDS, str(place[-1]))
        else:
            yield OptionProblem(place, "must say which values to try", entry, _EXAMPLE)
    elif not isinstance(body, list):
        yield OptionProblem(place, "must be a list", body, _EXAMPLE)
    elif kind == "choice":
        yield from _choice_problems(body, place)
    else:
        yield from _range_problems(kind, body, place)


def _choice_problems(choices: list[Any], place: Place) -> Iterator[OptionProblem]:
    if len(choices) < 2:
        yield OptionProblem(
            place, "must have at least two choices; an option with one value stands beside tune", choices
        )
    first: dict[str, int] = {}
    for i, choice in enumerate(choices):
        text = json.dumps(choice, sort_keys=True)
        if text in first:
            yield OptionProblem((*place, i), f"is the same as choice {first[text]}", choice)
        first.setdefault(text, i)


def _range_problems(kind: str, bounds: list[Any], place: Place) -> Iterator[OptionProblem]:
    if len(bounds) != 2:
        yield OptionProblem(place, f"must have two bounds, it has {len(bounds)}", bounds, "[low, high]")
        return
    wrong = [i for i, bound in enumerate(bounds) if not _usable(bound, whole=kind in _WHOLE)]
    for i in wrong:
        allowed = "a whole number" if kind in _WHOLE else "a finite number"
        hint = "; text of a number needs no quotes" if _is_number_text(bounds[i]) else ""
        yield OptionProblem((*place, i), f"must be {allowed}{hint}", bounds[i])
    if wrong:
        return
    low, high = bounds
    words, holds = _RANGES[kind]
    if not holds(low):
        yield OptionProblem((*place, 0), f"the lower bound of {kind} must be {words}", low)
    if not low < high:
        yield OptionProblem(place, f"the lower bound must be below the upper, found {low!r} and {high!r}")
    elif not math.isfinite(float(high) - float(low)):
        yield OptionProblem(place, f"the range from {low!r} to {high!r} is too wide for a double")


def _usable(bound: Any, *, whole: bool) -> bool:
    if isinstance(bound, bool) or not isinstance(bound, int if whole else int | float):
        return False
    try:
        return math.isfinite(float(bound)) and (not whole or abs(bound) <= _LARGEST)
    except OverflowError:
        return False


def _is_number_text(bound: Any) -> bool:
    try:
        return isinstance(bound, str) and math.isfinite(float(bound))
    except ValueError:
        return False


def _value_problems(name: str, values: Sequence[_Value], check: Check) -> Iterator[OptionProblem]:
    """Yield what is wrong with an option's bounds or choices; an option that does not exist once."""
    for place, value in values:
        for problem in check(name, value):
            if problem.path == (name,) and problem.name == name:
                hint = "; a part of an option is searched by choices of the whole" if "." in name else ""
                yield replace(problem, problem=problem.problem + hint)
                return
            if problem.path[:1] == (name,):
                inner = (*place, *problem.path[1:])
                yield replace(problem, path=inner)
