"""A child process that can be killed at any moment, and the connection to it."""

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
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from ep_bench.processes.channel import Channel
from ep_bench.processes.process_tree import MARK, kill_descendants, kill_marked

_ONE_THREAD = dict.fromkeys(
    ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS", "VECLIB_MAXIMUM_THREADS",
     "NUMEXPR_NUM_THREADS", "NUMBA_NUM_THREADS"),
    "1",
)  # fmt: skip
_EXIT_TIMEOUT = 5.0  # seconds that a process has to exit once its connection is closed
_CHECK_INTERVAL = 0.005  # seconds between two checks whether it has exited
_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36
_TAIL = 2000  # characters of the process's output that ``tail`` returns
_READ = 2**16  # bytes of output read for them, because the list of modules of a crash is removed first
_GUARD = """
import glob, os, signal, sys, time
os.read(0, 1)
if sys.platform != "linux":
    os.killpg(int(sys.argv[1]), signal.SIGKILL)
    sys.exit()
spared = sys.argv[3].encode()
deadline = time.monotonic() + 5.0
while time.monotonic() < deadline:
    found = []
    for path in glob.glob("/proc/[0-9]*/environ"):
        try:
            if sys.argv[2].encode() not in open(path, "rb").read().split(b"\\0"):
                continue
            if spared and spared in open(path.replace("environ", "cmdline"), "rb").read():
                continue
            found.append(int(path.split("/")[2]))
            os.kill(found[-1], signal.SIGKILL)
        except OSError:
            pass
    if not found:
        break
    time.sleep(0.05)
"""


class ChildProcess:
    """A process that runs ``python -P -m MODULE FD ARGUMENTS`` with one BLAS thread and one numba thread.

    FD is the descriptor of the child's end of ``channel``. The output of the process is kept for ``tail``. All
    descendants of the process have a mark in their environment, by which they are found when it has ended.
    """

    def __init__(self, module: str, *arguments: str) -> None:
        self.channel, child_end = Channel.pair()
        self._mark = uuid.uuid4().hex
        self._printed = tempfile.TemporaryFile()  # noqa: SIM115 lives as long as the process
        descriptor = child_end.fileno()
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", module, str(descriptor), *arguments],
            pass_fds=[descriptor],
            stdin=subprocess.DEVNULL,
            stdout=self._printed,
            stderr=self._printed,
            env={
                **os.environ,
                **_ONE_THREAD,
                "PYTHONPATH": module_path(),
                MARK: self._mark,
            },
            start_new_session=True,  # Ctrl-C at the terminal reaches the command only, which then ends its children
        )
        child_end.close()
        self._reaping = threading.Lock()  # the process id is not reused before the process has been waited for
        try:
            self._guard = _Guard(self._process.pid, self._mark)
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
        """Kill the process and its descendants, including those in other process groups."""
        with self._reaping:
            if self._process.returncode is None:
                kill_descendants(self._process.pid)
                self._kill_group()

    def stop(self) -> None:
        """Kill the process and release its resources."""
        self._end()
        self._guard.stop()

    def wait(self) -> int | None:
        """Return the exit code, or minus the signal number; None if the process still runs without its connection."""
        deadline = time.monotonic() + _EXIT_TIMEOUT
        while not self._reap() and time.monotonic() < deadline:
            time.sleep(_CHECK_INTERVAL)
        return self._process.returncode

    def forget_printed(self) -> None:
        """Delete the output of the process so far."""
        forget(self._printed)

    def tail(self) -> str:
        """Return the end of the process's output, without the list of modules that ends the stack of a crash."""
        return tail(self._printed)

    def _end(self) -> None:
        self.kill()
        while not self._reap():
            time.sleep(_CHECK_INTERVAL)
        if sys.platform == "linux":
            kill_marked(self._mark)
        self.channel.close()
        self._printed.close()

    def _reap(self) -> bool:
        """Return whether the process has exited; kill its group before its id can be reused."""
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


def module_path() -> str:
    """Return ``sys.path`` as ``PYTHONPATH``; its empty entry, as in a notebook, is the current folder."""
    return os.pathsep.join(entry or str(Path.cwd()) for entry in sys.path)


def forget(printed: IO[bytes]) -> None:
    """Delete the output in a file."""
    printed.seek(0)
    printed.truncate()


def tail(printed: IO[bytes]) -> str:
    """Return the end of the output in a file, without the list of modules that ends the stack of a crash."""
    file = printed.fileno()
    start = max(0, os.fstat(file).st_size - _READ)
    found = os.pread(file, _READ, start).decode("utf-8", errors="replace")  # the process uses the same offset
    return re.sub(r"\nExtension modules: .*\n", "\n", found)[-_TAIL:]


class _Guard:
    """A process that kills marked processes if the present process is killed; without Linux, a process group.

    Processes with ``spared`` in their command line are not killed. The guard has no mark itself, because another guard
    might kill it before it has killed a process that is stopped and cannot end by itself.
    """

    def __init__(self, group: int, mark: str, spared: str = "") -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", _GUARD, str(group), f"{MARK}={mark}", spared],
            env={name: value for name, value in os.environ.items() if name != MARK},
            stdin=subprocess.PIPE,  # closed by the kernel when the present process ends
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def stop(self) -> None:
        """End the guard without killing the group."""
        self._process.kill()
        self._process.communicate()


def _has_ended(pid: int) -> bool:
    """Return whether a child has exited, without waiting for it (Linux)."""
    try:
        return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
    except ChildProcessError:  # another thread has waited for it
        return True


def ending(code: int | None) -> str:
    """Return a description of how a method ended its process, from the result of ``ChildProcess.wait``."""
    if code is None:
        return "the method closed the connection of its process"
    if code >= 0:
        return f"the method ended its process with exit code {code}"
    return f"the method crashed: {signal.Signals(-code).name if -code in set(signal.Signals) else f'signal {-code}'}"


@contextlib.contextmanager
def ending_with_this_process() -> Iterator[None]:
    """Let all processes that are started in this context be killed if this process is killed (Linux).

    They may still be importing modules. Resource trackers of multiprocessing are left, because they clean up and exit.
    """
    if sys.platform != "linux":
        yield
        return
    mark, before = uuid.uuid4().hex, os.environ.get(MARK)
    guard = _Guard(0, mark, spared="resource_tracker")
    os.environ[MARK] = mark
    try:
        yield
    finally:
        if before is None:
            os.environ.pop(MARK, None)
        else:
            os.environ[MARK] = before
        guard.stop()


@contextlib.contextmanager
def ignoring_interrupts() -> Iterator[None]:
    """Start processes that ignore Ctrl-C, which a terminal sends to all of them; only the run reacts to it."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def die_with_parent() -> None:
    """Ask the kernel to kill this process when its parent ends, even inside a compiled loop (Linux)."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def adopt_orphans() -> None:
    """Make orphaned descendants children of this process, so that they can still be found (Linux)."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1)
