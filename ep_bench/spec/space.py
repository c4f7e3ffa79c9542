"""Search spaces: the ranges and choices of options that ``tune`` searches, in studies and declared by methods.

The value of an option is one of ``{log: [low, high]}``, ``{uniform: [low, high]}``, ``{int: [low, high]}``,
``{log_int: [low, high]}`` (both bounds included) and ``{choice: [a, b, ...]}``. A plain list is short for a choice.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from ep_bench.errors import OptionProblem
from ep_bench.spec.problems import Place

# Kind of a range -> condition on its lower bound, in words and as a test.
_RANGES: dict[str, tuple[str, Callable[[float], bool]]] = {
    "log": ("above 0", lambda low: low > 0.0),
    "uniform": ("finite", lambda _: True),
    "int": ("finite", lambda _: True),
    "log_int": ("1 or above", lambda low: low >= 1),
}
KINDS = (*_RANGES, "choice")
_WHOLE = frozenset({"int", "log_int"})
_LARGEST = 2**53  # above it, doubles, in which the search computes, do not represent all whole numbers
_EXAMPLE = "{log: [low, high]}, {uniform: ...}, {int: ...}, {log_int: ...}, {choice: [a, b]} or a list of choices"

Space = dict[str, dict[str, list[Any]]]
# Returns the problems of one value of one option; their paths start at the options.
Check = Callable[[str, Any], Sequence[OptionProblem]]


class _Value(NamedTuple):
    """A bound or a choice, and its place in the space."""

    place: Place
    value: Any


def read_space(raw: Mapping[str, Any], check: Check) -> tuple[Space, list[OptionProblem]]:
    """Return a search space in canonical form, and its problems, each with its place inside the space.

    In canonical form every option names its kind, and bounds of ``log`` and ``uniform`` are floats, so that equal
    spaces have equal factors. ``check`` checks each bound and choice as a value of its option.
    """
    space: Space = {}
    problems: list[OptionProblem] = []
    for name, entry in raw.items():
        try:
            plain = json.loads(json.dumps(entry, allow_nan=False))
        except (TypeError, ValueError, RecursionError):
            problems.append(OptionProblem((name,), "has a value that is not plain text, number, list or mapping"))
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
    """Return the kind of an entry, None if it has none, with its values and their place."""
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
            yield OptionProblem(place, "must be a range or a list of choices", entry, _EXAMPLE)
    elif not isinstance(body, list):
        yield OptionProblem(place, "must be a list", body, _EXAMPLE)
    elif kind == "choice":
        yield from _choice_problems(body, place)
    else:
        yield from _range_problems(kind, body, place)


def _choice_problems(choices: list[Any], place: Place) -> Iterator[OptionProblem]:
    if len(choices) < 2:
        yield OptionProblem(place, "must have at least two choices; set an option with one value outside tune", choices)
    first: dict[str, int] = {}
    for i, choice in enumerate(choices):
        text = json.dumps(choice, sort_keys=True)
        if text in first:
            yield OptionProblem((*place, i), f"is the same as choice {first[text]}", choice)
        first.setdefault(text, i)


def _range_problems(kind: str, bounds: list[Any], place: Place) -> Iterator[OptionProblem]:
    if len(bounds) != 2:
        yield OptionProblem(place, f"must have two bounds, not {len(bounds)}", bounds, "[low, high]")
        return
    wrong = [i for i, bound in enumerate(bounds) if not _usable(bound, whole=kind in _WHOLE)]
    for i in wrong:
        allowed = "a whole number" if kind in _WHOLE else "a finite number"
        hint = "; write the number without quotes" if _is_number_text(bounds[i]) else ""
        yield OptionProblem((*place, i), f"must be {allowed}{hint}", bounds[i])
    if wrong:
        return
    low, high = bounds
    words, is_valid = _RANGES[kind]
    if not is_valid(low):
        yield OptionProblem((*place, 0), f"the lower bound of {kind} must be {words}", low)
    if not low < high:
        yield OptionProblem(place, f"the lower bound must be below the upper bound, found {low!r} and {high!r}")
    elif not math.isfinite(float(high) - float(low)):
        yield OptionProblem(place, f"the range from {low!r} to {high!r} is too wide for double precision")


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
    """Yield the problems of an option's bounds or choices; an unknown option is reported once."""
    for place, value in values:
        for problem in check(name, value):
            if problem.path == (name,) and problem.name == name:
                hint = "; to search a part of an option, list choices of the whole option" if "." in name else ""
                yield replace(problem, problem=problem.problem + hint)
                return
            if problem.path[:1] == (name,):
                inner = (*place, *problem.path[1:])
                yield replace(problem, path=inner)
