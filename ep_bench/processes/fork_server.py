"""A process that prepares and then forks on request: ``python -m ep_bench.processes.fork_server FD MODULE:FUNCTION``.

The function imports what the forked processes need. The server has one thread and runs nothing else, so that each
forked process begins warm and clean. It adopts the orphans of the processes that it forked, and kills them. It ends,
with all of these processes, when its parent ends.
``forked.ForkServer`` is the other side.
"""

from __future__ import annotations

import contextlib
import faulthandler
import os
import select
import signal
import sys
import time
import traceback
from importlib import import_module
from pathlib import Path
from typing import NoReturn

from ep_bench.processes.channel import Channel, MessageError
from ep_bench.processes.child_process import adopt_orphans, die_with_parent
from ep_bench.processes.process_tree import children, descendants, is_active

START, RELEASE = "start", "release"  # requests
STARTED, ENDED = "started", "ended"  # answers
IDLE = 600.0  # seconds without a request after which the server ends if all forked processes are paused
_INTERVAL = 0.5  # seconds between two checks whether the parent is alive
_KILL_TIMEOUT = 4.0  # seconds to wait until killed processes have ended
_KILL_INTERVAL = 0.002  # seconds between two checks whether they have ended
_UNCATCHABLE = {signal.SIGKILL, signal.SIGSTOP}
_CRASHES = {signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE, signal.SIGILL}


class Server:
    """Answers the requests of the parent, and keeps the list of the processes that were forked for it."""

    def __init__(self, control: Channel) -> None:
        self._control, self._parent = control, os.getppid()
        self._ended: dict[int, bool] = {}  # forked and not released; true if the end was reported
        self._last_request = time.monotonic()
        self._signals, wake = os.pipe()
        for end in (self._signals, wake):
            os.set_blocking(end, False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)

    def serve(self) -> NoReturn:
        """Answer requests until the parent ends or closes the connection."""
        poll = select.poll()
        for descriptor in (self._control.fileno(), self._signals):
            poll.register(descriptor, select.POLLIN)
        with contextlib.suppress(EOFError, OSError, MessageError):
            while os.getppid() == self._parent and not self._is_idle():
                poll.poll(1000.0 * _INTERVAL)
                with contextlib.suppress(BlockingIOError):
                    os.read(self._signals, 2**10)
                while self._control.poll(0.0):
                    self._answer()
                self._collect()
        self._end()

    def _end(self) -> NoReturn:
        """Kill all forked processes and their descendants, then exit."""
        deadline = time.monotonic() + _KILL_TIMEOUT
        while (found := descendants(os.getpid())) and time.monotonic() < deadline:
            _kill(found)
            _reap(found)
            time.sleep(_KILL_INTERVAL)
        os._exit(0)

    def _is_idle(self) -> bool:
        if time.monotonic() - self._last_request < IDLE:
            return False
        return not any(is_active(pid) for pid, ended in self._ended.items() if not ended)

    def _answer(self) -> None:
        message = self._control.receive()
        request, argument = Channel.unpickled(message)
        self._last_request = time.monotonic()
        if request == START:
            self._start(argument, message.descriptors)
        else:
            self._ended.pop(argument, None)
            _kill([argument])
            with contextlib.suppress(ChildProcessError):
                os.waitpid(argument, 0)

    def _start(self, entry: str, descriptors: tuple[int, ...]) -> None:
        pid = os.fork()
        if pid == 0:
            _run(entry, os.getppid(), self._control, *descriptors)
        for descriptor in descriptors:
            os.close(descriptor)
        self._ended[pid] = False
        self._control.send({"answer": STARTED, "pid": pid})

    def _collect(self) -> None:
        """Report forked processes that have ended, after their orphans were killed; reap other children.

        A forked process is reaped when the parent releases it, so that its id is not used again before.
        """
        for pid in [pid for pid, ended in self._ended.items() if not ended]:
            status = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            if status is not None:
                self._ended[pid] = True
                self._kill_orphans()
                code = status.si_status if status.si_code == os.CLD_EXITED else -status.si_status
                self._control.send({"answer": ENDED, "pid": pid, "code": code})
        _reap(self._orphans())

    def _orphans(self) -> list[int]:
        """Return the children that were not forked here; a running forked process keeps its own orphans."""
        return [pid for pid in children(os.getpid()) if pid not in self._ended]

    def _kill_orphans(self) -> None:
        deadline = time.monotonic() + _KILL_TIMEOUT
        while (found := self._orphans()) and time.monotonic() < deadline:
            _kill([*found, *(below for pid in found for below in descendants(pid))])
            _reap(found)
            time.sleep(_KILL_INTERVAL)


def _kill(pids: list[int]) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)


def _reap(pids: list[int]) -> None:
    for pid in pids:
        with contextlib.suppress(ChildProcessError):
            os.waitpid(pid, os.WNOHANG)


def _run(entry: str, server: int, control: Channel, connection: int, printed: int) -> NoReturn:
    """Call ``module:function`` with the channel of a forked process, then exit."""
    code = 1
    try:
        control.forget()
        _separate(server, connection, printed)
        module, _, function = entry.partition(":")
        getattr(import_module(module), function)(Channel(connection, accepts_descriptors=True))
        code = 0
    except SystemExit as exit_:
        code = exit_.code if isinstance(exit_.code, int) else 1
    except BaseException:  # noqa: BLE001 nothing may return to the loop of the server
        with contextlib.suppress(BaseException):
            traceback.print_exc()
    with contextlib.suppress(BaseException):
        sys.stdout.flush()
    os._exit(code & 0xFF)


def _separate(server: int, connection: int, printed: int) -> None:
    """Give a forked process a session and default signals, and close all descriptors except its own connection."""
    os.setsid()
    signal.set_wakeup_fd(-1)
    for number in signal.valid_signals() - _UNCATCHABLE - {signal.SIGINT, signal.SIGPIPE, signal.SIGXFSZ} - _CRASHES:
        with contextlib.suppress(OSError, ValueError):
            signal.signal(number, signal.SIG_DFL)
    die_with_parent()
    if os.getppid() != server:
        os._exit(1)
    adopt_orphans()
    for standard in (1, 2):
        os.dup2(printed, standard)
    for descriptor in _open_descriptors() - {0, 1, 2, connection}:
        with contextlib.suppress(OSError):
            os.close(descriptor)
    faulthandler.enable()


def _open_descriptors() -> set[int]:
    """Return the open descriptors of this process."""
    for folder in ("/proc/self/fd", "/dev/fd"):
        with contextlib.suppress(OSError):
            return {int(path.name) for path in Path(folder).iterdir()}
    return set(range(256))


def main(descriptor: int, preparation: str) -> NoReturn:
    """Call ``module:function``, which imports what the forked processes need, and serve the connection."""
    adopt_orphans()
    # A method may send signals to its parent, which is this process. SIGKILL and SIGSTOP are noticed by the supervisor.
    for number in signal.valid_signals() - _UNCATCHABLE - _CRASHES - {signal.SIGCHLD}:
        with contextlib.suppress(OSError, ValueError):
            signal.signal(number, signal.SIG_IGN)
    control = Channel(descriptor, accepts_descriptors=True)
    name, _, function = preparation.partition(":")
    getattr(import_module(name), function)()
    Server(control).serve()


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2])
