"""CPU time of a process and of its descendants."""

from __future__ import annotations

import contextlib
import os
import resource
import time

import psutil

from ep_bench.processes.process_tree import descendants


class CPUTimer:
    """CPU time, user and system, of this process and its descendants since the object was created.

    A descendant counts while it is running, and after its end if its parent has waited for it. ``other`` is another
    process that counts with its descendants.
    """

    def __init__(self, other: int | None = None) -> None:
        self._other = other
        self._start = self._now()

    def seconds(self) -> float:
        """Return the CPU time in seconds."""
        return self._now() - self._start

    def _now(self) -> float:
        ended = resource.getrusage(resource.RUSAGE_CHILDREN)
        own = time.process_time() + ended.ru_utime + ended.ru_stime + sum(map(_cpu_seconds, descendants(os.getpid())))
        return own if self._other is None else own + used_cpu_seconds(self._other)


def used_cpu_seconds(pid: int) -> float:
    """Return the CPU time of a process and its descendants in seconds; a process that has ended counts as 0."""
    return _cpu_seconds(pid) + sum(map(_cpu_seconds, descendants(pid)))


def _cpu_seconds(pid: int) -> float:
    with contextlib.suppress(psutil.Error):
        return float(sum(psutil.Process(pid).cpu_times()[:4]))  # user, system, and the same of children that have ended
    return 0.0
