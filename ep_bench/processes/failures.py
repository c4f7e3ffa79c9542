"""Exceptions of methods as texts: reason, place and traceback, for records and messages."""

from __future__ import annotations

import contextlib
import sysconfig
import traceback
from dataclasses import dataclass
from pathlib import Path

from ep_bench.errors import UserError, visible

REASON_LENGTH, TRACEBACK_LENGTH = 500, 20_000  # largest numbers of characters
_PACKAGE = str(Path(__file__).parents[1])


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
    """Return type and message of an error, also if the error cannot be converted to a text."""
    name = type.__dict__["__name__"].__get__(type(error))
    try:
        text = str(error)
    except BaseException as second:  # noqa: BLE001 a method may define any exception
        return f"{name}; its message cannot be shown: {type(second).__name__}"
    if isinstance(error, UserError | CellError):
        return text
    return f"{name}: {text}" if text else str(name)


def traceback_of(error: BaseException) -> str:
    """Return the end of an error's traceback, empty if it cannot be printed."""
    with contextlib.suppress(Exception):
        return printable("".join(traceback.format_exception(error)))[-TRACEBACK_LENGTH:]
    return ""


def one_line(text: str, length: int = REASON_LENGTH) -> str:
    """Return a text as one line of printable characters, the form stored in a row."""
    return visible(" ".join(printable(text).split())[:length])[:length]


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
