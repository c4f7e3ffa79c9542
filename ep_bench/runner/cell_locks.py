"""Locks on cells, so that several runs can share a results folder without repeating work.

A run that computes a cell holds a lock on the file ``cells/locks/<cell>.lock``, which names the run. The kernel
releases the lock however the run ends. On a file system without locks, two runs may compute the same cell; both store
the same numbers.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import socket
import time
from collections import Counter
from pathlib import Path
from typing import NamedTuple, Self

from ep_bench.results.store import CELLS

_LOCKS, _MODE = "locks", 0o666  # restricted by the umask: several users may share a folder


class LiveRun(NamedTuple):
    """A run that holds locks: its host and process, its start (UTC), and its number of cells."""

    host: str
    pid: int
    started: str
    cells: int


class CellLocks:
    """The locks of this run on the cells of a results folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder / CELLS / _LOCKS
        self._held: dict[str, int] = {}  # file descriptors
        started = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        self._about = json.dumps([socket.gethostname(), os.getpid(), started]).encode()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for key in tuple(self._held):
            self.release(key)

    def take(self, key: str) -> bool:
        """Lock a cell; False if a live run has it. Raises OSError if the folder is not writable."""
        while key not in self._held:
            self._folder.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(self._path(key), os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, _MODE)
            if not _lock(descriptor):
                os.close(descriptor)
                return False
            if _is_same(descriptor, self._path(key)):  # otherwise another run has removed the file meanwhile
                os.truncate(descriptor, 0)
                os.pwrite(descriptor, self._about, 0)
                self._held[key] = descriptor
            else:
                os.close(descriptor)
        return True

    def release(self, key: str) -> None:
        """Release a cell after it is stored, or if it will not be computed."""
        descriptor = self._held.pop(key, None)
        if descriptor is not None:
            with contextlib.suppress(OSError):
                self._path(key).unlink()
            os.close(descriptor)

    def _path(self, key: str) -> Path:
        return self._folder / f"{key}.lock"


def running(folder: Path) -> list[LiveRun]:
    """Return the live runs of a results folder, without writing to it."""
    found: Counter[tuple[str, int, str]] = Counter()
    for path in (folder / CELLS / _LOCKS).glob("*.lock"):
        with contextlib.suppress(OSError, ValueError), path.open("rb") as file:
            if not _lock(file.fileno(), fcntl.LOCK_SH):
                host, pid, started = json.loads(file.read())
                found[host, pid, started] += 1
    return [LiveRun(*run, cells) for run, cells in sorted(found.items())]


def _lock(descriptor: int, kind: int = fcntl.LOCK_EX) -> bool:
    """Lock a file if no other process has locked it; without effect on a file system that has no locks."""
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return True
    return True


def _is_same(descriptor: int, path: Path) -> bool:
    with contextlib.suppress(FileNotFoundError):
        return os.path.samestat(os.fstat(descriptor), path.stat())
    return False
