"""Memory of a process and of its descendants."""

from __future__ import annotations

import contextlib
import resource
import sys
from collections.abc import Sequence
from pathlib import Path

import psutil

from ep_bench.processes.process_tree import descendants


class PeakMemory:
    """Largest resident memory of this process since the object was created.

    Linux allows a process to reset its own high-water mark. On other systems the mark covers the whole life of the
    process.
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


def used_gb(pids: Sequence[int], limit: float) -> float:
    """Return the memory of processes and their descendants in GiB; a process that has ended counts as 0.

    Resident memory (RSS) counts a shared page once per process. It is quick to read, and enough while the sum is at
    most ``limit``. Above it, the proportional set size (PSS) divides each shared page by the number of its users.
    """
    processes = [*pids, *(below for pid in pids for below in descendants(pid))]
    resident = sum(map(_resident_gb, processes))
    return resident if resident <= limit else sum(map(_proportional_gb, processes))


def _resident_gb(pid: int) -> float:
    with contextlib.suppress(psutil.Error):
        return float(psutil.Process(pid).memory_info().rss) / 1024**3
    return 0.0


def _proportional_gb(pid: int) -> float:
    """Return the PSS of a process, or its RSS on systems that report no PSS."""
    with contextlib.suppress(psutil.Error, AttributeError):
        return float(psutil.Process(pid).memory_full_info().pss) / 1024**3
    return _resident_gb(pid)
