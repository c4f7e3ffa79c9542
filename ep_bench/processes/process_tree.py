"""The processes below a process, read from the kernel where it tells (Linux); elsewhere none are known."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from pathlib import Path

_DYING = 1.0  # seconds that killed processes have to be gone
_LOOK = 0.002  # seconds between looks at whether they are
_HELPERS = (b"multiprocessing.resource_tracker import", b"multiprocessing.forkserver import",
            b"loky.backend.resource_tracker import")  # fmt: skip


def descendants(pid: int) -> list[int]:
    """Return the processes that a process and those below it have started, ended ones that nobody waited for too."""
    found: list[int] = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(OSError):  # a thread that has just ended
            found += [int(child) for child in task.read_text(encoding="ascii").split()]
    return found + [further for child in found for further in descendants(child)]


def left_running(pid: int) -> list[int]:
    """Return the processes below one that go on, without the small ones that Python keeps for as long as it runs."""
    helpers = {child for child in descendants(pid) if _parent(child) == pid and _is_helper(child)}
    return [process for process in descendants(pid) if process not in helpers and _runs(process)]


def kill_descendants(pid: int) -> None:
    """Kill all processes below one, which is halted so that it starts no more."""
    _send(pid, signal.SIGSTOP)
    deadline = time.monotonic() + _DYING
    while (processes := [process for process in descendants(pid) if _runs(process)]) and time.monotonic() < deadline:
        for process in processes:
            _send(process, signal.SIGKILL)
        time.sleep(_LOOK)


def _send(pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)


def _runs(pid: int) -> bool:
    return _stat(pid)[:1] not in ([], ["Z"], ["X"])


def _parent(pid: int) -> int | None:
    fields = _stat(pid)
    return int(fields[1]) if fields else None


def _stat(pid: int) -> list[str]:
    """Return what the kernel says of a process, from its state on; nothing where it is gone."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return []
    return text.rpartition(")")[2].split()  # before it stands a name, in which anything may stand


def _is_helper(pid: int) -> bool:
    with contextlib.suppress(OSError):
        command = Path(f"/proc/{pid}/cmdline").read_bytes()
        return any(helper in command for helper in _HELPERS)
    return False
