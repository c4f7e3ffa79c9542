"""What the suite and its child process say to each other, beside names of checks and their outcomes."""

from __future__ import annotations

import signal
from collections.abc import Mapping
from typing import Any, NamedTuple

from ep_bench.types import Task

WHERE_ARE_YOU = signal.SIGUSR1  # answered by the stack, on stderr


class CheckRequest(NamedTuple):
    """What to test: the first message."""

    target: str
    options: Mapping[str, Any]
    base: str
    task: Task | None = None  # None: what the target does first


class Ready(NamedTuple):
    """The answer to it: whether the target is of the registry, the file that it stands in, the task of the checks."""

    registered: bool
    source: str
    task: Task = "regression"


class Refused(NamedTuple):
    """Or why there is nothing to test."""

    problem: str
