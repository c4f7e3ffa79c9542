"""Processes forked from a warm server: how a supervisor starts, monitors and ends them."""

from __future__ import annotations

import contextlib
import os
import signal
import tempfile
import threading
import time
from collections.abc import Sequence
from typing import IO

from ep_bench.processes.channel import Channel, MessageError
from ep_bench.processes.child_process import ChildProcess, forget, tail
from ep_bench.processes.fork_server import ENDED, RELEASE, START, STARTED
from ep_bench.processes.process_tree import kill_descendants, left_running, runs

_IMPORT_TIMEOUT = 600.0  # seconds that the import in the server may take; minutes at low priority on a busy machine
_ANSWER_TIMEOUT = 60.0  # seconds that a later answer may take
_WAIT = 1.0  # seconds of one wait for an answer
_EXIT_TIMEOUT = 5.0  # seconds that a process has to exit once its connection is closed
_REPORT_TIMEOUT = 30.0  # seconds that the server has to report that a process has ended
_CHECK_INTERVAL = 0.005  # seconds between two checks whether it has exited
_DESCENDANTS_TIMEOUT = 1.0  # seconds that its descendants have to exit by themselves


class ForkServer:
    """A fork server that calls ``module:function`` first. One thread uses it; ``kill`` may be called by any thread."""

    def __init__(self, preparation: str) -> None:
        self._child = ChildProcess("ep_bench.processes.fork_server", preparation)
        self.channel = self._child.channel
        self._codes: dict[int, int] = {}  # exit codes of the processes that have ended
        self._timeout = _IMPORT_TIMEOUT
        self._killed = False  # a killed process may exist for a moment longer

    @property
    def alive(self) -> bool:
        return not self._killed and self._child.alive

    def start(self, entry: str) -> ForkedProcess:
        """Return a new process that calls ``module:function`` with its channel. Raises OSError if there is none."""
        printed = tempfile.TemporaryFile()  # noqa: SIM115 lives as long as the process
        mine, other = Channel.pair()
        try:
            with other:
                self._send(START, entry, [other.fileno(), printed.fileno()])
            pid = self._started()
        except (EOFError, MessageError, OSError) as error:
            mine.close()
            self.kill()  # a later answer would be taken for that to the next request
            found = self._child.tail().strip().splitlines()
            printed.close()
            raise OSError(f"the fork server does not answer: {found[-1] if found else error}") from error
        self._timeout = _ANSWER_TIMEOUT
        return ForkedProcess(self, pid, mine, printed)

    def collect(self, timeout: float = 0.0) -> None:
        """Receive reports of processes that have ended, for at most ``timeout`` seconds."""
        if not self.alive:
            return
        with contextlib.suppress(EOFError, MessageError, OSError):
            while self.channel.poll(timeout):
                self._note(self.channel.receive().header)
                timeout = 0.0

    def code(self, pid: int) -> int | None:
        """Return the exit code of a process, or minus the signal number; None while it runs.

        The kernel kills the processes of a server that has been killed.
        """
        self.collect()
        return self._codes.get(pid, None if self.alive else -signal.SIGKILL)

    def resume(self) -> None:
        """Continue the server: a method may have stopped its parent."""
        self._child.signal(signal.SIGCONT)

    def forget(self, pid: int) -> None:
        """Let the server reap a process."""
        with contextlib.suppress(OSError, MessageError):
            self._send(RELEASE, pid)
        self._codes.pop(pid, None)

    def kill(self) -> None:
        """Kill the server and all of its processes."""
        self._killed = True
        self._child.kill()

    def stop(self) -> None:
        """Kill the server and all of its processes, and release its resources."""
        self._child.stop()

    def _send(self, what: str, argument: str | int, descriptors: Sequence[int] = ()) -> None:
        self.resume()
        self.channel.send_object((what, argument), descriptors)

    def _started(self) -> int:
        waited = 0.0
        while waited < self._timeout:
            began = time.monotonic()
            if self.channel.poll(_WAIT):
                header = self.channel.receive().header
                if header["answer"] == STARTED:
                    return int(header["pid"])
                self._note(header)
            # If both processes were stopped meanwhile, with the whole run, that time does not count.
            waited += min(time.monotonic() - began, 2.0 * _WAIT)
        raise TimeoutError(f"nothing within {self._timeout:g} s")

    def _note(self, header: dict[str, object]) -> None:
        if header["answer"] == ENDED:
            self._codes[int(str(header["pid"]))] = int(str(header["code"]))


class ForkedProcess:
    """A process that a server has forked, and the channel to it. Its output is kept for ``tail``."""

    def __init__(self, server: ForkServer, pid: int, channel: Channel, printed: IO[bytes]) -> None:
        self._server, self.pid, self.channel, self._printed = server, pid, channel, printed
        self._valid = True  # whether the id is that of the process: the server reaps it after ``stop``
        self._killing = threading.Lock()

    @property
    def alive(self) -> bool:
        return self._server.code(self.pid) is None

    def kill(self) -> None:
        """Kill the process and its descendants, including those in other process groups."""
        with self._killing:
            if self._valid and self._server.alive:  # the kernel kills the processes of a server that has ended
                kill_descendants(self.pid)
                for send in (os.killpg, os.kill):
                    with contextlib.suppress(ProcessLookupError, PermissionError):
                        send(self.pid, signal.SIGKILL)

    def stop(self) -> None:
        """Kill the process and release its resources."""
        self.kill()
        self.wait()
        with self._killing:
            self._valid = False
        self._server.forget(self.pid)
        self.channel.close()
        self._printed.close()

    def wait(self) -> int | None:
        """Return the exit code, or minus the signal number; None if the process still runs after five seconds."""
        self._server.resume()
        started = time.monotonic()
        while self.alive and time.monotonic() - started < (_EXIT_TIMEOUT if runs(self.pid) else _REPORT_TIMEOUT):
            self._server.collect(_CHECK_INTERVAL)
        return self._server.code(self.pid)

    def signal(self, number: int) -> None:
        """Send a signal to the process alone."""
        with self._killing, contextlib.suppress(ProcessLookupError):
            if self._valid and self._server.alive:
                os.kill(self.pid, number)

    def leaves_running(self) -> bool:
        """Return whether descendants of the process still run after a second."""
        deadline = time.monotonic() + _DESCENDANTS_TIMEOUT
        while self.alive and left_running(self.pid):
            if time.monotonic() >= deadline:
                return True
            time.sleep(_CHECK_INTERVAL)
        return False

    def forget_printed(self) -> None:
        """Delete the output of the process so far."""
        forget(self._printed)

    def tail(self) -> str:
        """Return the end of the process's output, without the list of modules that ends the stack of a crash."""
        return tail(self._printed)
