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
import threading
import time
from collections.abc import Iterator
from multiprocessing.connection import Connection, Pipe

from ep_bench.processes.process_tree import kill_descendants, left_running

_ONE_THREAD = dict.fromkeys(
    ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS", "VECLIB_MAXIMUM_THREADS",
     "NUMEXPR_NUM_THREADS", "NUMBA_NUM_THREADS"),
    "1",
)  # fmt: skip
_ENDING = 5.0  # seconds that a process has to end once its connection is closed
_LOOK = 0.005  # seconds between looks at whether it has
_TIDYING = 1.0  # seconds that processes below it have to end by themselves
_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36
_TAIL = 2000  # characters kept of what a process printed
_READ = 2**16  # bytes read for them: a crash's list of modules goes first
_GUARD = "import os, signal, sys; os.read(0, 1); os.killpg(int(sys.argv[1]), signal.SIGKILL)"


class ChildProcess:
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
        self._reaping = threading.Lock()  # the process's number is its own until it is waited for
        try:
            self._guard = _Guard(self._process.pid)
        except BaseException:
            self._end()
            raise

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def alive(self) -> bool:
        return not self._reap()

    def signal(self, number: int) -> None:
        """Send a signal to the process alone."""
        with self._reaping:
            if self._process.returncode is None:
                os.kill(self._process.pid, number)

    def kill(self) -> None:
        """Kill the process and those that it started, also in groups of their own; nothing in it could be lost."""
        with self._reaping:
            if self._process.returncode is None:
                kill_descendants(self._process.pid)
                self._kill_group()

    def stop(self) -> None:
        """Kill the process and let go of what belongs to it."""
        self._end()
        self._guard.stop()

    def wait(self) -> int | None:
        """Return its exit code, or minus the signal that ended it; None where it goes on without its connection."""
        deadline = time.monotonic() + _ENDING
        while not self._reap() and time.monotonic() < deadline:
            time.sleep(_LOOK)
        return self._process.returncode

    def leaves_running(self) -> bool:
        """Return whether processes that it started go on although they had a moment to end."""
        deadline = time.monotonic() + _TIDYING
        while self.alive and left_running(self.pid):
            if time.monotonic() >= deadline:
                return True
            time.sleep(_LOOK)
        return False

    def forget_printed(self) -> None:
        """Drop what the process has printed so far."""
        self._printed.seek(0)
        self._printed.truncate()

    def tail(self) -> str:
        """Return the end of what the process has printed, without the list of modules that ends a crash's stack."""
        file = self._printed.fileno()
        start = max(0, os.fstat(file).st_size - _READ)
        printed = os.pread(file, _READ, start).decode("utf-8", errors="replace")  # the process shares the position
        return re.sub(r"\nExtension modules: .*\n", "\n", printed)[-_TAIL:]

    def _end(self) -> None:
        self.kill()
        while not self._reap():
            time.sleep(_LOOK)
        self.connection.close()
        self._printed.close()

    def _reap(self) -> bool:
        """Return whether the process has ended; what it left in its group ends too, while the number is its own."""
        with self._reaping:
            if self._process.returncode is None:
                if sys.platform != "linux":
                    self._process.poll()
                elif _has_ended(self._process.pid):
                    self._kill_group()
                    self._process.wait()
            return self._process.returncode is not None

    def _kill_group(self) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)


class _Guard:
    """A process that kills a process group should this process be killed, which could not do so itself any more."""

    def __init__(self, group: int) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", _GUARD, str(group)],
            stdin=subprocess.PIPE,  # its end tells
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def stop(self) -> None:
        """End it without a kill of the group."""
        self._process.kill()
        self._process.communicate()


def _has_ended(pid: int) -> bool:
    """Return whether a child has ended, without waiting for it (Linux)."""
    try:
        return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
    except ChildProcessError:  # somebody else waited for it
        return True


def ending(code: int | None) -> str:
    """Return how a method ended its process, in words, from what ``ChildProcess.wait`` returned."""
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
    if sys.platform == "linux":
        _die_with_parent()
        _adopt_orphans()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    return Connection(descriptor)


def _die_with_parent() -> None:
    """Ask the kernel to end this process with its parent, even inside a compiled loop."""
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _adopt_orphans() -> None:
    """Ask the kernel to keep what processes below this one leave behind below this one, where it is found."""
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1)
