"""Progress of an experiment that is computed in parts: a live line on a terminal, plain lines otherwise."""

from __future__ import annotations

import sys
import time
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Any, Self, TextIO

from ep_bench.processes.output_streams import print_line
from ep_bench.runner.progress import clock, is_due, live_bar


class PartsProgress(AbstractContextManager["PartsProgress"]):
    """Shows how many parts are finished, and the time left by the mean time of those of this run."""

    def __init__(self, name: str, stream: TextIO | None = None) -> None:
        self._name, self._stream = name, stream or sys.stderr
        self._before = -1  # parts of an earlier run
        self._started = self._last_line = time.monotonic()
        self._live: Any = None
        self._bar: Any = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.stop()

    def __call__(self, done: int, total: int) -> None:
        """Show the number of finished parts; the first call of a sequence is before a part is computed."""
        if self._before < 0:
            self._before, self._started = done, time.monotonic()
            if self._stream.isatty():
                self._live = live_bar(self._stream)
                self._live.start()
                self._bar = self._live.add_task("", total=total, completed=done, counts="", left="", running="")
        counts, left = f"{done}/{total} parts", self._left(done, total)
        if self._live is not None:
            self._live.update(self._bar, total=total, completed=done, counts=counts, left=left)
        elif done in {self._before, total} or is_due(self._last_line, self._started):
            self._last_line = time.monotonic()
            print_line(f"{self._name}: {counts}{', ' * bool(left)}{left}", self._stream)

    def _left(self, done: int, total: int) -> str:
        computed = done - self._before
        if computed < 1 or done == total:
            return ""
        return f"{clock((time.monotonic() - self._started) * (total - done) / computed)} left"
