"""The limits of a running cell: wall time, CPU time and memory of all processes below the fork server."""

from __future__ import annotations

import os
import threading
import time
from typing import Self

from ep_bench.processes.tree import cpu_seconds_below, memory_below
from ep_bench.processes.warm_server import WarmServer
from ep_bench.runner.jobs import AnyJob

POLL = 0.05  # minimum seconds between two checks of memory or CPU time
PAUSE_FACTOR = 10  # ratio of the pause to the duration of a check
STARTUP_SECONDS = 120.0  # additional time of a cell for libraries, data and compilation, wall and CPU


class CellLimits:
    """The limits of one cell, counted from the creation of the object.

    With ``startup``, they are those of loading and compilation, which do not count as work of the cell.
    """

    def __init__(self, job: AnyJob, pid: int, *, startup: bool = False) -> None:
        self._job, self._pid = job, pid
        self._extra = STARTUP_SECONDS if startup else 0.0
        self._before = f" and {STARTUP_SECONDS:g} for loading before its work began" if startup else ""
        self._started = time.monotonic()
        self._cpu_started = 0.0 if job.cpu_seconds is None else cpu_seconds_below(pid)
        self._check_pause = POLL
        self._cpu_left = 0.0 if job.cpu_seconds is None else job.cpu_seconds + self._extra

    def pause(self) -> float | None:
        """Return the seconds until the next check; None if there are no limits."""
        waits = [] if self._job.memory_gb is None else [self._check_pause]
        # All cores may work for the cell, so the CPU time that is left may pass in a fraction of the wall time.
        if self._job.cpu_seconds is not None:
            waits.append(max(self._check_pause, self._cpu_left / (os.cpu_count() or 1)))
        if self._job.seconds is not None:
            waits.append(max(0.0, self._started + self._job.seconds + self._extra - time.monotonic()))
        return min(waits, default=None)

    def exceeded(self) -> tuple[str, str] | None:
        """Return the status and the reason of a cell that is over a limit, else None."""
        started = time.monotonic()
        found = self._wall_time() or self._cpu_time() or self._memory()
        self._check_pause = max(POLL, PAUSE_FACTOR * (time.monotonic() - started))
        return found

    def _wall_time(self) -> tuple[str, str] | None:
        limit = self._job.seconds
        if limit is None or time.monotonic() - self._started < limit + self._extra:
            return None
        return "timeout", f"over the limit of {limit:g} seconds{self._before}"

    def _cpu_time(self) -> tuple[str, str] | None:
        limit = self._job.cpu_seconds
        if limit is None:
            return None
        self._cpu_left = limit + self._extra - (cpu_seconds_below(self._pid) - self._cpu_started)
        return None if self._cpu_left > 0.0 else ("timeout", f"over the limit of {limit:g} CPU seconds{self._before}")

    def _memory(self) -> tuple[str, str] | None:
        limit = self._job.memory_gb
        if limit is None:
            return None
        used = memory_below(self._pid, limit)
        return None if used <= limit else ("memory", f"{used:.1f} GiB, over the limit of {limit:g} GiB")


class LimitWatch:
    """Kills the child of a server when its cell exceeds a limit; ``exceeded`` then has status and reason."""

    def __init__(self, job: AnyJob, server: WarmServer) -> None:
        self._job, self._server = job, server
        self._limits = CellLimits(job, server.pid, startup=True)
        self._wake, self._ended = threading.Event(), False
        self._thread = threading.Thread(target=self._watch, name="limits", daemon=True)
        self.exceeded: tuple[str, str] | None = None

    def __enter__(self) -> Self:
        if self._limits.pause() is not None:
            self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended = True
        self._wake.set()
        if self._thread.ident is not None:
            self._thread.join()

    def work_begins(self) -> None:
        """Count from now on: loading and compilation have ended."""
        self._limits = CellLimits(self._job, self._server.pid)
        self._wake.set()

    def _watch(self) -> None:
        while not self._ended:
            if self._wake.wait(self._limits.pause()):
                self._wake.clear()  # the cell has ended, or its work begins and has other limits
                continue
            self.exceeded = self._limits.exceeded()
            if self.exceeded is not None:
                self._server.kill_child()
                return
