"""Errors reported to the user, and the parts of their messages.

This module imports nothing from ep_bench, so every module can import it.
"""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

INSTALL_EXTRA = "install ep-bench"  # followed by the name of an extra in brackets, if a package is not installed


class UserError(Exception):
    """An error in the usage, a study, a data set or a method; printed without a traceback, exit status 2.

    The message is ``where: field: problem; found ...; allowed: ...; did you mean ...?``. Its parts are attributes:
    ``where``, ``field``, ``problem``, ``head`` (these three), ``found``, ``choices`` (what is allowed, as text),
    ``suggestion``, and ``causes`` (the single errors of a message of several lines).

    Parameters
    ----------
    problem : what is wrong
    where : a file, or ``file:line``
    field : the place inside the file
    found : the value that was found
    allowed : a sentence, or the allowed names
    name : the wrong name; the message suggests the most similar name in ``allowed``
    """

    def __init__(
        self,
        problem: str,
        *,
        where: str | None = None,
        field: str | None = None,
        found: Any = None,
        allowed: str | Iterable[str] | None = None,
        name: str | None = None,
    ) -> None:
        choices = None if allowed is None or isinstance(allowed, str) else sorted(allowed)
        self.causes: tuple[UserError, ...] = ()
        self.problem, self.where, self.field, self.found, self.name = problem, where, field, found, name
        self.head = ": ".join(part for part in (where, field, problem) if part)
        self.choices = allowed if allowed is None or isinstance(allowed, str) else ", ".join(choices or ())
        parts = [self.head]
        if found is not None:
            parts.append(f"found {found!r}")
        if allowed is not None:
            parts.append(f"allowed: {self.choices}")
        self.suggestion = nearest(name, choices) if name is not None and choices else None
        if self.suggestion:
            parts.append(f"did you mean {self.suggestion!r}?")
        super().__init__(visible("; ".join(parts)))
        self.allowed = allowed if isinstance(allowed, str) else choices  # as given, a list sorted

    def within(self, where: str, field: str, known: Collection[str] = ()) -> UserError:
        """Return this error at a place in a study; its own place becomes part of the problem, except known names."""
        own = [part for part in (self.where, self.field) if part and part not in known]
        problem = ": ".join([*own, self.problem])
        return UserError(problem, where=where, field=field, found=self.found, allowed=self.allowed, name=self.name)


def joined(errors: Sequence[UserError], hidden: int = 0) -> UserError:
    """Return one error for several, which are its causes; ``hidden`` is the number of further ones not shown."""
    if len(errors) == 1 and not hidden:
        return errors[0]
    whole = UserError("\n".join([*map(str, errors), *([f"... and {hidden} more"] if hidden else [])]))
    whole.causes = tuple(errors)
    return whole


@dataclass(frozen=True)
class OptionProblem:
    """One problem found in the options of a method or an experiment.

    ``path`` holds the keys inside the options, or ``("use",)`` if the method itself is not available. The other fields
    are those of `UserError`.
    """

    path: tuple[str | int, ...]
    problem: str
    found: Any = None
    allowed: str | Collection[str] | None = None
    name: str | None = None

    @classmethod
    def of(cls, path: tuple[str | int, ...], error: UserError) -> OptionProblem:
        """Return an error as a problem at ``path``."""
        return cls(path, error.head, error.found, error.allowed, error.name)

    def error(self, where: str | None = None) -> UserError:
        """Return the problem as an error; ``where`` is a file or the name of a method."""
        field = spell(self.path) or None
        return UserError(self.problem, where=where, field=field, found=self.found, allowed=self.allowed, name=self.name)


class UnquotedText(str):
    """Text whose representation has no quotes."""

    __slots__ = ()
    __repr__ = str.__str__


def visible(text: str) -> str:
    """Return a text with control characters, which could change a terminal, as escapes of Python.

    Line ends are kept.
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c == "\n" else c.encode("unicode_escape").decode() for c in text)


def spell(path: Iterable[str | int]) -> str:
    """Return the place in a study or among options as ``datasets[1].name``."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            text += f".{part}" if text else part
    return text


def nearest(name: str, choices: Iterable[str]) -> str | None:
    """Return the choice most similar to ``name``, or None if no choice is similar."""
    folded = {choice.lower(): choice for choice in choices}
    close = difflib.get_close_matches(name.lower(), folded, n=1, cutoff=0.5)
    return folded[close[0]] if close else None
