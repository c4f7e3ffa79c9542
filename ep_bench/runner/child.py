"""A process that computes and may be killed at any moment, and the connection to it."""

from __future__ import annotations

import contextlib
import ctypes
import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from multiprocessing.connection import Connection, Pipe

_ONE_THREAD = dict.fromkeys(
    ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS", "VECLIB_MAXIMUM_THREADS",
     "NUMEXPR_NUM_THREADS", "NUMBA_NUM_THREADS"),
    "1",
)  # fmt: skip
_ENDING = 5.0  # seconds that a process has to end once its connection is closed
_PR_SET_PDEATHSIG = 1
_TAIL = 2000  # characters kept of what a process printed


class Child:
    """A process that runs ``python -P -m MODULE FD`` with one BLAS and one numba thread.

    ``connection`` leads to the descriptor FD that it is told; what it prints is kept for ``tail``.
    """

    def __init__(self, module: str) -> None:
        self.connection, theirs = Pipe()
        self._printed = tempfile.TemporaryFile()  # noqa: SIM115 lives as long as the process
        descriptor = theirs.fileno()
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", module, str(descriptor)],
            pass_fds=[descriptor],
            stdin=subprocess.DEVNULL,
            stdout=self._printed,
            stderr=self._printed,
            env={**os.environ, **_ONE_THREAD, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            start_new_session=True,  # a Ctrl-C at the terminal reaches the command, which decides
        )
        theirs.close()

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    def signal(self, number: int) -> None:
        """Send a signal to the process alone."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(self._process.pid, number)

    def kill(self) -> None:
        """Kill the process and those that it started; it keeps nothing that could be lost."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)

    def stop(self) -> None:
        """Kill the process and let go of what belongs to it."""
        self.kill()
        self._process.wait()
        self.connection.close()
        self._printed.close()

    def wait(self) -> int | None:
        """Return its exit code, or minus the signal that ended it; None where it goes on without its connection."""
        try:
            return self._process.wait(_ENDING)
        except subprocess.TimeoutExpired:
            return None

    def forget_printed(self) -> None:
        """Drop what the process has printed so far."""
        self._printed.seek(0)
        self._printed.truncate()

    def tail(self) -> str:
        """Return the end of what the process has printed, without the list of modules that ends a crash's stack."""
        self._printed.seek(0)
        printed = self._printed.read().decode("utf-8", errors="replace")
        return re.sub(r"\nExtension modules: .*\n", "\n", printed)[-_TAIL:]


def ending(code: int | None) -> str:
    """Return how a method ended its process, in words, from what ``Child.wait`` returned."""
    if code is None:
        return "the method closed the connection of its process"
    if code >= 0:
        return f"the method ended its process with exit code {code}"
    return f"the method crashed: {signal.Signals(-code).name if -code in set(signal.Signals) else f'signal {-code}'}"


@contextlib.contextmanager
def deaf_to_interrupts() -> Iterator[None]:
    """Let processes that are started here be deaf to Ctrl-C, which reaches all of a terminal: the run alone decides."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def serve(descriptor: int) -> Connection:
    """Return the connection of this process to its parent, with which it ends from now on; Ctrl-C is the parent's."""
    _die_with_parent()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    return Connection(descriptor)


def _die_with_parent() -> None:
    """Ask the kernel to end this process with its parent, even inside a compiled loop (Linux)."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
