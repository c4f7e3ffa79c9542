"""Messages between the suite and its child process, other than names of checks and outcomes."""

from __future__ import annotations

import signal
from collections.abc import Mapping
from typing import Any, NamedTuple

from ep_bench.errors import UnquotedText, UserError
from ep_bench.types import Task

PRINT_STACK = signal.SIGUSR1  # the child process prints its stack on standard error


class CheckRequest(NamedTuple):
    """The first message: the method to test, its options and the task."""

    target: str
    options: Mapping[str, Any]
    base: str  # folder that file names are relative to
    cwd: str  # working directory of the checks
    task: Task | None = None  # None: the first task of the target


class Ready(NamedTuple):
    """The answer: whether the target is in the registry, its source file, and the task of the checks."""

    registered: bool
    source: str
    task: Task = "regression"


def as_plain(error: UserError) -> dict[str, Any]:
    """Return the parts of an error as plain values."""
    found = None if error.found is None else repr(error.found)
    return {"problem": error.head, "found": found, "allowed": error.allowed, "name": error.name}


def from_plain(parts: Any) -> UserError:
    """Return the error of plain values; those of another form become its text."""
    known = parts if isinstance(parts, dict) else {"problem": parts}
    texts = {key: str(known[key]) for key in ("problem", "found", "name") if known.get(key) is not None}
    allowed = known.get("allowed")
    return UserError(
        texts.get("problem", "refused"),
        found=UnquotedText(texts["found"]) if "found" in texts else None,
        allowed=[str(each) for each in allowed] if isinstance(allowed, list) else allowed and str(allowed),
        name=texts.get("name"),
    )
