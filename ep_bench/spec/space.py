"""Search spaces: the ranges and choices of options that ``tune`` searches, in studies and declared by methods.

The value of an option is one of ``{log: [low, high]}``, ``{uniform: [low, high]}``, ``{int: [low, high]}``,
``{log_int: [low, high]}`` (both bounds included) and ``{choice: [a, b, ...]}``. A plain list is short for a choice.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from ep_bench.errors import OptionProblem, UnquotedText
from ep_bench.spec.problems import Place

# Kind of a range -> what its bounds are, and the condition on the lower bound.
_RANGES: dict[str, tuple[str, Callable[[float], bool]]] = {
    "log": ("two numbers above 0", lambda low: low > 0.0),
    "uniform": ("two numbers", lambda _: True),
    "int": ("two whole numbers", lambda _: True),
    "log_int": ("two whole numbers of at least 1", lambda low: low >= 1),
}
KINDS = (*_RANGES, "choice")
_WHOLE = frozenset({"int", "log_int"})
_WIDEST = 1e300  # of a bound, so that the range is finite
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
    elif kind == "choice" and len(body) < 2:
        yield OptionProblem(place, "must have at least two choices; set an option with one value outside tune", body)
    elif kind != "choice":
        yield from _range_problems(kind, body, place)


def _range_problems(kind: str, bounds: list[Any], place: Place) -> Iterator[OptionProblem]:
    words, is_valid = _RANGES[kind]
    allowed = int if kind in _WHOLE else int | float
    plain = all(isinstance(bound, allowed) and not isinstance(bound, bool) for bound in bounds)
    if len(bounds) == 2 and plain and max(map(abs, bounds)) <= (_LARGEST if kind in _WHOLE else _WIDEST):
        low, high = bounds
        if is_valid(low) and low < high:
            return
    found = UnquotedText(json.dumps(bounds))
    yield OptionProblem(place, f"must be {words}, the lower one first", found, "[low, high]")


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
