"""The descendants of a process: what they use, and how to end them."""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import psutil

_KILL_SECONDS = 5.0  # how long killed processes may take to end
_KILL_INTERVAL = 0.002  # seconds between two checks whether they have ended
_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36
_PUNCH_HOLE = 1 | 2  # of fallocate, with the size of the file kept
_ENDED = (psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD)


def descendants(pid: int) -> list[psutil.Process]:
    """Return all descendants of a process, also those that have ended and were not waited for.

    ``psutil`` scans all processes of the machine; on Linux, the kernel lists the children of a process that has any.
    """
    with contextlib.suppress(psutil.Error):
        return psutil.Process(pid).children(recursive=True) if _may_have_children(pid) else []
    return []


def _may_have_children(pid: int) -> bool:
    with contextlib.suppress(OSError):
        return any((task / "children").read_bytes() for task in Path(f"/proc/{pid}/task").iterdir())
    return True


def running(pid: int) -> list[psutil.Process]:
    """Return the descendants of a process that have not ended."""
    return [process for process in descendants(pid) if _runs(process)]


def kill_descendants(pid: int) -> None:
    """Kill all descendants of a process, and those that they start meanwhile."""
    deadline = time.monotonic() + _KILL_SECONDS
    while (found := running(pid)) and time.monotonic() < deadline:
        for process in found:
            with contextlib.suppress(psutil.Error):
                process.kill()
        time.sleep(_KILL_INTERVAL)


def _runs(process: psutil.Process) -> bool:
    with contextlib.suppress(psutil.Error):
        return process.status() not in _ENDED
    return False


def adopt_orphans() -> None:
    """Make orphaned descendants children of this process, so that they can still be found (Linux)."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def end_with_parent(signal_number: int = signal.SIGKILL) -> None:
    """Let the kernel send this process a signal when its parent ends, 0 for none; even in a compiled loop (Linux)."""
    _prctl(_PR_SET_PDEATHSIG, signal_number)


@contextlib.contextmanager
def ignoring_interrupts() -> Iterator[None]:
    """Start processes that ignore Ctrl-C, which a terminal sends to all of them; only the run reacts to it."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _prctl(option: int, value: int) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(option, value)


def free_beginning(descriptor: int, size: int) -> None:
    """Free the disk space of the first bytes of a file, which read as zeros then; its size is the same (Linux)."""
    if sys.platform == "linux":
        fallocate = ctypes.CDLL(None, use_errno=True).fallocate
        fallocate(descriptor, _PUNCH_HOLE, ctypes.c_int64(0), ctypes.c_int64(size))


def cpu_seconds_below(pid: int) -> float:
    """Return the CPU time of the descendants of a process, user and system, in seconds.

    A process that has ended counts if its parent has waited for it and still runs.
    """
    return _total(descendants(pid), lambda process: float(sum(process.cpu_times()[:4])))


def own_cpu_seconds() -> float:
    """Return the CPU time of this process and of its descendants, user and system, in seconds."""
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + ended.ru_utime + ended.ru_stime + cpu_seconds_below(os.getpid())


def memory_below(pid: int, limit: float) -> float:
    """Return the memory of the descendants of a process in GiB.

    Resident memory (RSS) counts a shared page once per process. It is quick to read, and enough while the sum is at
    most ``limit``. Above it, the proportional set size (PSS) divides each shared page by the number of its users.
    """
    processes = descendants(pid)
    resident = _total(processes, lambda process: process.memory_info().rss) / 1024**3
    if resident <= limit or sys.platform != "linux":
        return resident
    return _total(processes, lambda process: process.memory_full_info().pss) / 1024**3


def _total(processes: Sequence[psutil.Process], quantity: Callable[[psutil.Process], float]) -> float:
    """Return the sum of a quantity over processes; one that has ended counts as 0."""
    total = 0.0
    for process in processes:
        with contextlib.suppress(psutil.Error):
            total += quantity(process)
    return total


def peak_megabytes() -> float:
    """Return the largest resident memory of this process in MiB since it was forked."""
    unit = 1024**2 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit
