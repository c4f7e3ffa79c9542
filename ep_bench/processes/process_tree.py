"""The descendants of a process: which there are, which still run, and how to kill them."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
from pathlib import Path

import psutil

MARK = "EP_BENCH_PROCESS"  # variable that marks all processes that one process has started, with their descendants
_KILL_TIMEOUT = 1.0  # seconds to wait until killed processes have ended
_KILL_INTERVAL = 0.002  # seconds between two checks whether they have ended
_HELPERS = ("multiprocessing.resource_tracker import", "multiprocessing.forkserver import",
            "loky.backend.resource_tracker import")  # fmt: skip
_ENDED = (psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD)


def descendants(pid: int) -> list[int]:
    """Return the ids of all descendants of a process, zombies included.

    On Linux the kernel lists the children of each thread. ``psutil`` scans all processes of the machine for the same
    answer, which takes six to ten times as long; it is used on other systems.
    """
    if sys.platform != "linux":
        with contextlib.suppress(psutil.Error):
            return [process.pid for process in psutil.Process(pid).children(recursive=True)]
        return []
    found = children(pid)
    return found + [grandchild for child in found for grandchild in descendants(child)]


def children(pid: int) -> list[int]:
    """Return the ids of the children of a process, zombies included."""
    if sys.platform != "linux":
        with contextlib.suppress(psutil.Error):
            return [process.pid for process in psutil.Process(pid).children()]
        return []
    found: list[int] = []
    with contextlib.suppress(OSError):  # the process has just ended
        for task in Path(f"/proc/{pid}/task").iterdir():
            with contextlib.suppress(OSError):  # the thread has just ended
                found += [int(child) for child in (task / "children").read_text(encoding="ascii").split()]
    return found


def left_running(pid: int) -> list[int]:
    """Return the ids of the running descendants, without the helpers that Python keeps until its process ends."""
    processes = descendants(pid)
    helpers = {child for child in processes if _is_helper(child, pid)}
    return [process for process in processes if process not in helpers and runs(process)]


def kill_descendants(pid: int) -> None:
    """Kill all descendants of a process. The process itself is stopped first, so that it starts no others."""
    _send(pid, signal.SIGSTOP)
    deadline = time.monotonic() + _KILL_TIMEOUT
    while (processes := [process for process in descendants(pid) if runs(process)]) and time.monotonic() < deadline:
        for process in processes:
            _send(process, signal.SIGKILL)
        time.sleep(_KILL_INTERVAL)


def kill_marked(mark: str) -> None:
    """Kill all processes whose environment has the variable ``MARK`` with this value (Linux)."""
    wanted = f"{MARK}={mark}".encode()
    deadline = time.monotonic() + _KILL_TIMEOUT
    while (found := _marked(wanted)) and time.monotonic() < deadline:
        for process in found:
            _send(process, signal.SIGKILL)
        time.sleep(_KILL_INTERVAL)


def _marked(wanted: bytes) -> list[int]:
    found = []
    for pid in psutil.pids():
        with contextlib.suppress(OSError):
            if wanted in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0"):  # empty for a zombie
                found.append(pid)
    return found


def _send(pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)


def runs(pid: int) -> bool:
    """Return whether a process exists and has not ended; a stopped process has not."""
    with contextlib.suppress(psutil.Error):
        return psutil.Process(pid).status() not in _ENDED
    return False


def is_active(pid: int) -> bool:
    """Return whether a process runs and is not stopped."""
    with contextlib.suppress(psutil.Error):
        return psutil.Process(pid).status() not in {*_ENDED, psutil.STATUS_STOPPED}
    return False


def _is_helper(pid: int, parent: int) -> bool:
    with contextlib.suppress(psutil.Error):
        process = psutil.Process(pid)
        if process.ppid() == parent:
            command = " ".join(process.cmdline())
            return any(helper in command for helper in _HELPERS)
    return False
