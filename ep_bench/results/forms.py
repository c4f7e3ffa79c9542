"""Forms of values read from JSON files: which keys and types they must have, so that readers need no further checks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

NUMBER = (int, float)
_NAMES = {str: "a text", int: "an integer", float: "a number", dict: "an object", list: "a list", bool: "true or false",
          type(None): "null"}  # fmt: skip


@dataclass(frozen=True)
class Each:
    """An object with any keys whose values have one form."""

    value: Any


@dataclass(frozen=True)
class ListOf:
    """A list of at least ``minimum`` elements of one form. If ``equal``, they are lists of one length."""

    element: Any
    equal: bool = False
    minimum: int = 0


@dataclass(frozen=True)
class Within:
    """A finite number of a type, or of a tuple of types, between two limits."""

    kind: Any
    low: float
    high: float


@dataclass(frozen=True)
class OrNull:
    """A value of one form, or null."""

    value: Any


@dataclass(frozen=True)
class Keys:
    """An object with required and optional keys; further keys are allowed.

    The lists of each group of keys in ``equal`` have one length. Keys that are absent or null do not count.
    """

    required: Mapping[str, Any]
    optional: Mapping[str, Any] = field(default_factory=dict)
    equal: Sequence[Sequence[str]] = ()


def problem(value: Any, form: Any, place: str = "") -> str:
    """Return where and how a value differs from a form, empty if it does not.

    A form is a type, a tuple of types, or an ``Each``, ``ListOf``, ``Within``, ``OrNull`` or ``Keys``.
    """
    if isinstance(form, Within):
        wrong = problem(value, form.kind, place)
        return wrong or ("" if form.low <= value <= form.high else f"{place} is not in the allowed range")
    if isinstance(form, OrNull):
        return "" if value is None else problem(value, form.value, place)
    if isinstance(form, type | tuple):
        types = form if isinstance(form, tuple) else (form,)
        if isinstance(value, types) and (not isinstance(value, bool) or bool in types):
            return ""
        allowed = " or ".join(_NAMES[each] for each in types)
        return f"{place or 'the content'} is {_NAMES.get(type(value), 'a value')}, not {allowed}"
    if isinstance(form, ListOf):
        if not isinstance(value, list):
            return problem(value, list, place)
        if len(value) < form.minimum:
            return f"{place} has {len(value)} values, fewer than {form.minimum}" if value else f"{place} is empty"
        if set(map(type, value)) <= _types(form.element):  # quickly, for long lists of numbers
            return _unequal(value, form, place)
        parts = ((f"{place}[{i}]", element, form.element) for i, element in enumerate(value))
    elif not isinstance(value, dict):
        return problem(value, dict, place)
    elif isinstance(form, Each):
        parts = ((f"{place}.{key}".lstrip("."), element, form.value) for key, element in value.items())
    else:
        missing = [key for key in form.required if key not in value]
        if missing:
            return f"{place or 'the content'} has no {missing[0]}"
        known = {**form.required, **form.optional}
        parts = ((f"{place}.{key}".lstrip("."), value[key], known[key]) for key in known if key in value)
    found = next((found for part in parts if (found := problem(part[1], part[2], part[0]))), "")
    return found or _unequal(value, form, place)


def _types(form: Any) -> set[type]:
    """Return the types of all values of a form that is a type, a tuple of types, or one of them or null; else none."""
    if isinstance(form, OrNull):
        return {*_types(form.value), type(None)}
    if isinstance(form, tuple):
        return set(form)
    return {form} if isinstance(form, type) else set()


def _unequal(value: Any, form: Any, place: str) -> str:
    """Return which lists of a value should have one length and do not, empty if there are none."""
    groups: list[dict[str, Any]] = []
    if isinstance(form, ListOf) and form.equal:
        groups = [{f"{place}[{i}]": element for i, element in enumerate(value)}]
    elif isinstance(form, Keys):
        groups = [{f"{place}.{key}".lstrip("."): value.get(key) for key in keys} for keys in form.equal]
    for group in groups:
        (first, length), *others = [(name, len(each)) for name, each in group.items() if each is not None] or [("", 0)]
        for name, other in others:
            if other != length:
                return f"{name} has {other} values, {first} has {length}"
    return ""
