"""Errors reported to the user, and the parts of their messages.

This module imports nothing from ep_bench, so every module can import it.
"""

from __future__ import annotations

import contextlib
import difflib
import sys
import sysconfig
import traceback
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

INSTALL_EXTRA = "install ep-bench"  # followed by the name of an extra in brackets, if a package is not installed


class UserError(Exception):
    """An error in the usage, a study, a data set or a method; printed without a traceback, exit status 2.

    The message is ``where: field: problem; found ...; allowed: ...; did you mean ...?``. Its parts are attributes:
    ``where``, ``field``, ``problem``, ``head`` (these three), ``found``, ``choices`` (what is allowed, as text),
    ``suggestion``, and ``causes`` (the single errors of a message of several lines).

    Parameters
    ----------
    problem : str
        What is wrong.
    where : str, optional
        A file, or ``file:line``.
    field : str, optional
        The place inside the file.
    found : object, optional
        The value that was found.
    allowed : str or iterable of str, optional
        A sentence, or the allowed names.
    name : str, optional
        The wrong name; the message suggests the most similar name in ``allowed``.
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


REASON_LENGTH, TRACEBACK_LENGTH = 500, 20_000  # largest numbers of characters
_PACKAGE = str(Path(__file__).parent)


class CellError(Exception):
    """Ends a cell without scores; has its ``status`` and reason, and the traceback if it was raised elsewhere."""

    def __init__(self, status: str, reason: str, traceback_text: str = "") -> None:
        super().__init__(reason)
        self.status, self.traceback_text = status, traceback_text


@dataclass(frozen=True)
class Failure:
    """A described exception: the status of its cell, the reason on one line, and the end of the traceback."""

    status: str
    reason: str
    traceback: str

    @classmethod
    def of(cls, error: BaseException) -> Failure:
        """Describe an exception; the reason ends with file and line of the user's own code if it was raised there."""
        if isinstance(error, CellError):
            return cls(error.status, one_line(str(error)), error.traceback_text or traceback_of(error))
        status = "memory" if isinstance(error, MemoryError) else "failed"
        return cls(status, one_line(f"{reason_of(error)} {_place(error)}"), traceback_of(error))


def reason_of(error: BaseException) -> str:
    """Return type and message of an error."""
    name, text = type(error).__name__, str(error)
    if isinstance(error, UserError | CellError):
        return text
    return f"{name}: {text}" if text else name


def traceback_of(error: BaseException) -> str:
    """Return the end of an error's traceback, empty if it cannot be printed."""
    with contextlib.suppress(Exception):
        return printable("".join(traceback.format_exception(error)))[-TRACEBACK_LENGTH:]
    return ""


def one_line(text: str) -> str:
    """Return a text as one line of printable characters, the form stored in a row."""
    return visible(" ".join(printable(text).split())[:REASON_LENGTH])[:REASON_LENGTH]


def printable(text: str) -> str:
    """Return a text that can be encoded in UTF-8; it may contain file names that cannot."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def _place(error: BaseException) -> str:
    """Return file and line of code that is no library, in brackets; empty if there is none."""
    own: list[traceback.FrameSummary] = []
    libraries = (*(sysconfig.get_path(name) for name in ("stdlib", "purelib", "platlib")), _PACKAGE, "<")
    with contextlib.suppress(Exception):  # a method may raise an object of any kind
        own = [frame for frame in traceback.extract_tb(error.__traceback__) if not frame.filename.startswith(libraries)]
    return f"({Path(own[-1].filename).name}:{own[-1].lineno})" if own else ""


_ConvergenceWarning = type("ConvergenceWarning", (UserWarning,), {"__doc__": "A fit that has not converged."})


def __getattr__(name: str) -> Any:
    """Return scikit-learn's ``ConvergenceWarning``, or its namesake if scikit-learn, a slow import, is not loaded."""
    if name != "ConvergenceWarning":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    loaded = sys.modules.get("sklearn.exceptions")
    return _ConvergenceWarning if loaded is None else loaded.ConvergenceWarning
