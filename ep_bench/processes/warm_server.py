"""A fork server and its child, as the process sees them that started the server."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import tempfile
from functools import partial
from multiprocessing import Pipe
from multiprocessing.reduction import send_handle
from pathlib import Path
from typing import IO, Any

from ep_bench.errors import CellError
from ep_bench.processes.fork_server import Answer, ChildRequest
from ep_bench.processes.tree import kill_descendants

_ONE_THREAD = dict.fromkeys(
    ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS", "VECLIB_MAXIMUM_THREADS",
     "NUMEXPR_NUM_THREADS", "NUMBA_NUM_THREADS"),
    "1",
)  # fmt: skip
_EXIT_SECONDS = 5.0  # how long a child may take to exit after it has closed its connection
_END_SECONDS = 0.1  # the same if the server has closed it
_TAIL = 2000  # characters of a child's output that ``tail`` returns
_READ = 2**16  # bytes of output read for them, because the list of modules of a crash is removed first


class ChildLostError(BaseException):
    """The child has ended, or its answer cannot be read.

    It is a ``BaseException`` so that no handler of a method's exceptions catches it.
    """


class ServerLostError(ChildLostError):
    """No child can be started."""


class WarmServer:
    """A fork server with one child at a time. One thread uses it; any thread may call ``kill`` and ``kill_child``.

    The server and its children have one BLAS thread and one numba thread.
    """

    def __init__(self, preparation: str) -> None:
        self._connection, other = Pipe()
        self._printed = tempfile.TemporaryFile()  # noqa: SIM115 lives as long as the server
        self._child: Child | None = None  # the latest one
        self._has_child = False
        self._killed = False
        descriptor = other.fileno()
        words = [str(descriptor), str(os.getpid()), preparation]
        with other:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", "ep_bench.processes.fork_server", *words],
                pass_fds=[descriptor],
                stdin=subprocess.DEVNULL,
                stdout=self._printed,
                stderr=self._printed,
                env={**os.environ, **_ONE_THREAD, "PYTHONPATH": module_path()},
                start_new_session=True,  # Ctrl-C at the terminal reaches the command only, which then ends its children
            )

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def alive(self) -> bool:
        return not self._killed and self._process.poll() is None

    def start(self, request: ChildRequest, *arguments: Any) -> Child:
        """Return a new child whose object is constructed with these arguments, once the former child has ended.

        Raises ServerLostError if the server does not answer, and CellError if the constructor raises an exception.
        """
        self.end_child()
        try:
            mine, other = Pipe()
            printed = tempfile.TemporaryFile()  # noqa: SIM115 lives as long as the child
            with other:
                self._connection.send(request)
                for handle in (other.fileno(), printed.fileno()):
                    send_handle(self._connection, handle, self.pid)
            pid, prepared = self._connection.recv()
        except (EOFError, OSError) as error:
            self.kill()
            lines = _tail(self._printed).strip().splitlines()
            raise ServerLostError(f"no process can be started: {lines[-1] if lines else error}") from error
        self._close_printed()
        self._child, self._has_child = Child(pid, mine, printed, prepared), True
        self._child.ask(None, *arguments)
        return self._child

    def release_child(self) -> None:
        """Let the child exit while this process does other work; ``end_child`` waits for its end."""
        if self._has_child and self._child is not None:
            self._child.connection.close()

    def end_child(self) -> None:
        """End the child, if there is one, with all processes that it started."""
        self.release_child()
        if self._has_child:
            self.code(_END_SECONDS)

    def code(self, seconds: float = _EXIT_SECONDS) -> int | None:
        """Return the exit code of a child that ends, or minus the signal number; None if it had to be killed."""
        self._has_child = False
        try:
            if self._connection.poll(seconds):
                return int(self._connection.recv())
            kill_descendants(self.pid)
            self._connection.recv()
        except (EOFError, OSError):
            self.kill()
            return -signal.SIGKILL
        return None

    def tail(self) -> str:
        """Return the end of the output of the latest child, without the list of modules that ends a crash's stack."""
        return "" if self._child is None else _tail(self._child.printed)

    def _close_printed(self) -> None:
        """Close the file with the output of the latest child."""
        if self._child is not None:
            self._child.printed.close()

    def kill_child(self) -> None:
        """Kill the child and its descendants; the server itself if it is preparing a child."""
        if self._has_child:
            kill_descendants(self.pid)
        else:
            self.kill()

    def kill(self) -> None:
        """Kill the server and all processes that it or its child started."""
        self._killed = True
        kill_descendants(self.pid)
        self._process.kill()

    def stop(self) -> None:
        """Kill the server and release its resources."""
        self.kill()
        self._process.wait()
        self._connection.close()
        self._printed.close()
        self._close_printed()


class Child:
    """The object in a child: ``ask`` calls its methods. The output of the process is kept in the file ``printed``.

    ``prepared`` is the value of the function that the server called before it forked.
    """

    def __init__(self, pid: int, connection: Any, printed: IO[bytes], prepared: Any) -> None:
        self.pid, self.connection, self.printed, self.prepared = pid, connection, printed, prepared
        self.warned: list[str] = []

    def ask(self, name: str | None, *arguments: Any) -> Any:
        """Call a method and return its value; its convergence warnings are added to ``warned``.

        Raises CellError if the method raises an exception, and ChildLostError if the child has ended.
        """
        try:
            self.connection.send((name, arguments))
            answer = self.connection.recv()
        except (EOFError, OSError) as error:
            raise ChildLostError("") from error
        except Exception as error:
            raise ChildLostError(f"its process sent an invalid answer: {type(error).__name__}: {error}") from error
        if not isinstance(answer, Answer):
            raise ChildLostError("its process sent an invalid answer")
        self.warned += answer.warned
        if answer.failure is not None:
            raise CellError(answer.failure.status, answer.failure.reason, answer.failure.traceback)
        return answer.value


class RemoteObject:
    """The object in a child; calls of its methods are passed on."""

    def __init__(self, child: Child) -> None:
        self._child, self.warned = child, child.warned

    def __getattr__(self, name: str) -> Any:
        return partial(self._child.ask, name)


def _tail(printed: IO[bytes]) -> str:
    size = os.fstat(printed.fileno()).st_size
    content = os.pread(printed.fileno(), _READ, max(0, size - _READ)).decode("utf-8", errors="backslashreplace")
    return re.sub(r"\nExtension modules: .*\n", "\n", content.lstrip("\0"))[-_TAIL:]


def module_path() -> str:
    """Return ``sys.path`` as ``PYTHONPATH``; its empty entry, as in a notebook, is the current folder."""
    return os.pathsep.join(entry or str(Path.cwd()) for entry in sys.path)


def ending(code: int | None) -> str:
    """Return a description of how a method ended its process, from ``WarmServer.code``."""
    if code is None:
        return "the method closed the connection of its process"
    if code >= 0:
        return f"the method ended its process with exit code {code}"
    with contextlib.suppress(ValueError):
        return f"the method crashed: {signal.Signals(-code).name}"
    return f"the method crashed: signal {-code}"
