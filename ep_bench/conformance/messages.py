"""Messages between the suite and its child process, other than names of checks and outcomes."""

from __future__ import annotations

import signal
from collections.abc import Mapping
from typing import Any, NamedTuple

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
