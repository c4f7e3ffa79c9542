"""Memory of a process, read from the kernel where it tells."""

from __future__ import annotations

import contextlib
import os
import resource
import sys
from pathlib import Path

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


def resident_gb(pid: int) -> float:
    """Return the resident memory of a process and those below it in GiB, 0 where it cannot be told."""
    own, below = 0.0, []
    with contextlib.suppress(OSError, IndexError, ValueError):
        own = int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1]) * _PAGE / 1024**3
        tasks = Path(f"/proc/{pid}/task").glob("*/children")
        below = [int(child) for task in tasks for child in task.read_text(encoding="ascii").split()]
    return own + sum(resident_gb(child) for child in below)
