"""Memory of a process, read from the kernel where it tells."""

from __future__ import annotations

import contextlib
import os
import resource
import sys
from pathlib import Path

from ep_bench.processes.process_tree import descendants

_PAGE = os.sysconf("SC_PAGE_SIZE")


class PeakMemory:
    """Largest resident memory of this process since the object was made.

    Linux lets a process reset its own high-water mark; elsewhere the mark is of the process's whole life.
    """

    def __init__(self) -> None:
        with contextlib.suppress(OSError):
            Path("/proc/self/clear_refs").write_text("5", encoding="ascii")

    def megabytes(self) -> float:
        """Return the peak in MiB."""
        with contextlib.suppress(OSError):
            for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
                if line.startswith("VmHWM:"):
                    return int(line.split()[1]) / 1024
        unit = 1024**2 if sys.platform == "darwin" else 1024
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit


def used_gb(pid: int, limit: float) -> float:
    """Return the memory of a process and those below it in GiB, 0 where it cannot be told.

    Resident memory counts a page once for every process that shares it; it is quickly read, and says enough where it
    is not over ``limit``. Where it is, a process counts with its proportional share of such pages, if the kernel tells.
    """
    processes = [pid, *descendants(pid)]
    resident = sum(map(_resident_gb, processes))
    return resident if resident <= limit else sum(map(_proportional_gb, processes))


def _resident_gb(pid: int) -> float:
    with contextlib.suppress(OSError, IndexError, ValueError):
        return int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1]) * _PAGE / 1024**3
    return 0.0


def _proportional_gb(pid: int) -> float:
    with contextlib.suppress(OSError, IndexError, ValueError):
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii").splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) / 1024**2
    return _resident_gb(pid)
