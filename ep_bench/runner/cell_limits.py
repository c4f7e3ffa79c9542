"""The limits of a running cell: wall time, CPU time and memory of its processes and of all their descendants."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence

from ep_bench.processes.cpu_time import used_cpu_seconds
from ep_bench.processes.memory import used_gb
from ep_bench.runner.jobs import Job

POLL = 0.05  # minimum seconds between two checks of memory or CPU time
PAUSE_FACTOR = 10  # ratio of the pause to the duration of a memory check: a check of PSS halts the method
STARTUP_SECONDS = 120.0  # additional time of a cell for libraries, data and compilation, wall and CPU


class CellLimits:
    """The limits of one cell, counted from the creation of the object.

    With ``startup``, they are those of loading and compilation, which do not count as work of the cell.
    """

    def __init__(self, job: Job, pids: Sequence[int], *, startup: bool = False) -> None:
        self._job, self._pids = job, pids
        self._extra = STARTUP_SECONDS if startup else 0.0
        self._before = " before its work began" if startup else ""
        self._started = time.monotonic()
        self._cpu_started = 0.0 if job.cpu_seconds is None else self._used_cpu_seconds()
        self._memory_pause = POLL
        self._cpu_left = 0.0 if job.cpu_seconds is None else job.cpu_seconds + self._extra

    def pause(self) -> float | None:
        """Return the seconds until the next check; None if there are no limits."""
        waits = [] if self._job.memory_gb is None else [self._memory_pause]
        # All cores may work for the cell, so the CPU time that is left may pass in a fraction of the wall time.
        waits += [] if self._job.cpu_seconds is None else [max(POLL, self._cpu_left / (os.cpu_count() or 1))]
        if self._job.seconds is not None:
            waits.append(max(0.0, self._started + self._job.seconds + self._extra - time.monotonic()))
        return min(waits, default=None)

    def exceeded(self) -> tuple[str, str] | None:
        """Return the status and the reason of a cell that is over a limit, else None."""
        return self._wall_time() or self._cpu_time() or self._memory()

    def _wall_time(self) -> tuple[str, str] | None:
        limit = self._job.seconds
        if limit is None or time.monotonic() - self._started < limit + self._extra:
            return None
        return "timeout", f"over the limit of {limit:g} seconds{self._before}"

    def _cpu_time(self) -> tuple[str, str] | None:
        limit = self._job.cpu_seconds
        if limit is None:
            return None
        self._cpu_left = limit + self._extra - (self._used_cpu_seconds() - self._cpu_started)
        return None if self._cpu_left > 0.0 else ("timeout", f"over the limit of {limit:g} CPU seconds{self._before}")

    def _used_cpu_seconds(self) -> float:
        return sum(map(used_cpu_seconds, self._pids))

    def _memory(self) -> tuple[str, str] | None:
        limit = self._job.memory_gb
        if limit is None:
            return None
        started = time.monotonic()
        used = used_gb(self._pids, limit)
        self._memory_pause = max(POLL, PAUSE_FACTOR * (time.monotonic() - started))
        return None if used <= limit else ("memory", f"{used:.1f} GiB, over the limit of {limit:g} GiB")
