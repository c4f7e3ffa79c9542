"""One writer at a time for the tables of a results folder."""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from collections.abc import Iterator
from pathlib import Path

WAIT = 60.0  # seconds to wait for another writer; one that takes longer is suspended
_POLL_INTERVAL = 0.05


@contextlib.contextmanager
def sole_writer(folder: Path) -> Iterator[None]:
    """Wait, at most ``WAIT`` seconds, until no other process or thread writes the tables of a folder.

    Two writers at the same time could leave a lock file that lists rows which results.csv does not have. A writer must
    read the rows while it is the only one, so that the last one has all of them. There is no wait on file systems
    without locks. The kernel releases the lock of a process that is killed.
    """
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        _take(descriptor)
        yield
    finally:
        os.close(descriptor)


def _take(descriptor: int) -> None:
    end = time.monotonic() + WAIT
    while time.monotonic() < end:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(_POLL_INTERVAL)
        except OSError:
            return
        else:
            return
