"""Descriptions of fits that failed, for the results of an experiment."""

from __future__ import annotations

import sysconfig
import traceback
from pathlib import Path

from ep_bench.errors import UserError, visible

REASON, TRACEBACK = 300, 4000  # largest numbers of characters
_PACKAGE = str(Path(__file__).parents[1])


def reason_of(error: BaseException) -> str:
    """Return an error as one line, with file and line of the user's own code if it was raised there."""
    name = "" if isinstance(error, UserError) else type(error).__name__
    line = " ".join(": ".join(filter(None, [name, str(error)])).split())[:REASON]
    return visible(f"{line} {_place(error)}".rstrip())


def traceback_of(error: BaseException) -> str:
    """Return the end of an error's traceback, which names the place where it was raised."""
    text = "".join(traceback.format_exception(error))[-TRACEBACK:]
    return text.encode("utf-8", "backslashreplace").decode("utf-8")  # names of files may have other bytes


def _place(error: BaseException) -> str:
    """Return file and line of code that is no library, in brackets; empty if there is none."""
    libraries = (*(sysconfig.get_path(name) for name in ("stdlib", "purelib", "platlib")), _PACKAGE, "<")
    own = [frame for frame in traceback.extract_tb(error.__traceback__) if not frame.filename.startswith(libraries)]
    return f"({Path(own[-1].filename).name}:{own[-1].lineno})" if own else ""
