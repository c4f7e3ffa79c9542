"""Mistakes in a study file, collected so that one message names them all."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from ep_bench import options
from ep_bench.errors import OptionProblem, UnquotedText, UserError, joined, spell

Place = tuple[str | int, ...]
M = TypeVar("M", bound=BaseModel)
_SHOWN = 5  # mistakes that one message lists
_MAX_VALUE = 60  # characters of a value in a message
_MAX_FIELD = 120  # characters of the name of a field


class Problems:
    """The mistakes found so far, each with its place in the file."""

    def __init__(self, where: str, lines: Mapping[Place, int]) -> None:
        self._where = where
        self._lines = lines
        self._found: dict[tuple[Place, str], tuple[int, UserError]] = {}

    def __bool__(self) -> bool:
        return bool(self._found)

    def add(
        self,
        path: Place,
        problem: str,
        *,
        found: Any = None,
        allowed: str | Collection[str] | None = None,
        name: str | None = None,
    ) -> None:
        """Record a mistake; the same mistake at the same place counts once."""
        line = self.line(path)
        error = UserError(
            problem,
            where=f"{self._where}:{line}",
            field=shorten(spell(path)) or None,
            found=shown(found),
            allowed=allowed,
            name=name,
        )
        self._found.setdefault((path, problem), (line, error))

    def known(self, place: Place, name: str, problem: str, choices: Collection[str]) -> bool:
        """Return whether a name is one of the choices; record the problem if not."""
        if name not in choices:
            self.add(place, problem, found=name, allowed=sorted(choices) or "none", name=name)
        return name in choices

    def add_option(self, path: Place, problem: OptionProblem) -> None:
        """Record a problem of the options at ``path``."""
        self.add(
            (*path, *problem.path), problem.problem, found=problem.found, allowed=problem.allowed, name=problem.name
        )

    def refuse(self) -> None:
        """Raise UserError with the first mistakes in the order of the file, if there are any."""
        if not self._found:
            return
        errors = [error for _, error in sorted(self._found.values(), key=lambda item: item[0])]
        raise joined(errors[:_SHOWN], max(0, len(errors) - _SHOWN))

    def line(self, path: Place) -> int:
        """Return the line of the longest known part of a path."""
        for length in range(len(path), -1, -1):
            if path[:length] in self._lines:
                return self._lines[path[:length]]
        return 1


def shorten(text: str, longest: int = _MAX_FIELD) -> str:
    """Return text of at most ``longest`` characters, followed by dots if it was cut."""
    return text if len(text) <= longest else text[:longest] + "..."


def shown(value: Any) -> Any:
    """Return a value for a message: short, and described in words if it has parts."""
    if isinstance(value, dict):
        return UnquotedText("a mapping" if value else "an empty mapping")
    if isinstance(value, list | tuple):
        return UnquotedText("a list" if value else "an empty list")
    if isinstance(value, bool):
        return UnquotedText(str(value).lower())
    if isinstance(value, str) and len(value) > _MAX_VALUE:
        return shorten(value, _MAX_VALUE)
    return value


def validate(model: type[M], raw: Any, place: Place, problems: Problems, allowed: Collection[str] = ()) -> M | None:
    """Return ``raw`` as an instance of the model, or None; mistakes are recorded at ``place``.

    ``allowed`` are the keys that a message lists, by default those of the model. A key without a value is a mistake.
    """
    keys = allowed or tuple(model.model_fields)
    if not isinstance(raw, Mapping):
        problems.add(place, "must be a mapping", found=UnquotedText("null") if raw is None else raw, allowed=keys)
        return None
    unknown = [key for key in raw if key not in model.model_fields]
    empty = [key for key, value in raw.items() if value is None and key not in unknown]
    for key in unknown:
        problems.add((*place, key), "unknown key", allowed=keys, name=str(key))
    for key in empty:
        problems.add((*place, key), "has no value")
    try:
        return model.model_validate({key: value for key, value in raw.items() if key not in (*unknown, *empty)})
    except ValidationError as error:
        for problem in options.problems(model, "this mapping", error):
            if problem.path[0] not in empty:
                problems.add_option(place, _of_study(problem))
        return None


def _of_study(problem: OptionProblem) -> OptionProblem:
    """Adapt a message to keys of a study, which cannot be null, and to YAML, where unquoted digits are a number."""
    message = problem.problem.removesuffix(" or null")
    if message.endswith("must be text") and isinstance(problem.found, int | float):
        message += "; quote it to mean text"
    return replace(problem, problem=message)
