"""A warm process that forks one child at a time: ``-m ep_bench.processes.fork_server FD PARENT MODULE:FUNCTION``.

The function imports what the children need. The server runs no code of methods, so that each child begins warm and
clean. A child constructs the object that the request names and answers calls of its methods. When the child has ended,
the server kills the processes that it left, and reports its exit code. ``warm_server`` is the other side.
"""

from __future__ import annotations

import contextlib
import faulthandler
import os
import signal
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from multiprocessing.connection import Connection, wait
from multiprocessing.reduction import ForkingPickler, recv_handle
from typing import Any, NamedTuple, NoReturn

from ep_bench.errors import Failure, one_line
from ep_bench.processes.tree import adopt_orphans, end_with_parent, free_beginning, kill_descendants

_MAX_OUTPUT, _KEPT_OUTPUT = 2**26, 2**16  # bytes of a child's output on the disk; if there are more, the end is kept
_OUTPUT_INTERVAL = 1.0  # seconds between two checks of its size


class ChildRequest(NamedTuple):
    """A request for a child that serves an object of the class ``kind``.

    ``before`` is a function that the server calls with ``arguments`` before it forks; it must not run code of methods.
    Both are named as ``module:name``.
    """

    kind: str
    before: str = ""
    arguments: tuple[Any, ...] = ()


class Answer(NamedTuple):
    """The answer to a call: a value or a failure, and the convergence warnings that were issued."""

    value: Any = None
    failure: Failure | None = None
    warned: Sequence[str] = ()


def main(descriptor: int, parent: int, preparation: str) -> NoReturn:
    """Prepare, and serve the connection until the parent closes it or ends."""
    end_with_parent()
    adopt_orphans()
    if os.getppid() != parent:
        sys.exit(1)
    connection = Connection(descriptor)
    found(preparation)()
    with contextlib.suppress(EOFError, OSError):
        _serve(connection)
    kill_descendants(os.getpid())
    os._exit(0)


def found(name: str) -> Callable[..., Any]:
    """Return what ``module:name`` names."""
    module, _, attribute = name.partition(":")
    function: Callable[..., Any] = getattr(import_module(module), attribute)
    return function


def _serve(connection: Connection) -> NoReturn:
    ended, wake = os.pipe()  # becomes readable when a child has ended
    for end in (ended, wake):
        os.set_blocking(end, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    while True:
        request: ChildRequest = connection.recv()
        handles = recv_handle(connection), recv_handle(connection)
        value = found(request.before)(*request.arguments) if request.before else None
        end_with_parent(0)  # the loop below notices the end of the parent, and then ends the processes of the child
        pid = os.fork()
        if pid == 0:
            for descriptor in (connection.fileno(), ended, wake):
                os.close(descriptor)
            _run(request.kind, *handles)
        answers, printed = handles
        os.close(answers)
        connection.send((pid, value))
        connection.send(_end_of(pid, connection, ended, printed))
        os.close(printed)
        end_with_parent()


def _end_of(pid: int, connection: Connection, ended: int, printed: int) -> int:
    """Return the exit code of a child after its processes were killed. Raises EOFError if the parent has ended.

    Meanwhile the file ``printed`` with its output is kept small.
    """
    code = None
    while code is None:
        ready = wait([connection, ended], _OUTPUT_INTERVAL)
        if os.fstat(printed).st_blocks * 512 > _MAX_OUTPUT:
            free_beginning(printed, os.fstat(printed).st_size - _KEPT_OUTPUT)
        with contextlib.suppress(BlockingIOError):
            os.read(ended, 2**10)
        if connection in ready:  # the parent sends nothing while a child is running
            raise EOFError
        code = _reap(pid)
    kill_descendants(os.getpid())
    _reap(pid)
    return code


def _reap(pid: int) -> int | None:
    """Wait for all children that have ended, orphans included; return the exit code of ``pid`` if it is one of them."""
    code = None
    with contextlib.suppress(ChildProcessError):
        while (waited := os.waitpid(-1, os.WNOHANG))[0]:
            if waited[0] == pid:
                code = os.waitstatus_to_exitcode(waited[1])
    return code


def _run(kind: str, connection: int, printed: int) -> NoReturn:
    """Serve an object in a new child, then exit."""
    code, server = 1, os.getppid()
    try:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        end_with_parent()
        if os.getppid() != server:
            os._exit(1)
        os.setsid()
        for standard in (1, 2):
            os.dup2(printed, standard)
        os.close(printed)
        faulthandler.enable()
        _answer_calls(Connection(connection), found(kind))
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 1
    except BaseException:  # noqa: BLE001 nothing may return to the loop of the server
        with contextlib.suppress(BaseException):
            traceback.print_exc()
    with contextlib.suppress(BaseException):
        sys.stdout.flush()
    os._exit(code & 0xFF)


def _answer_calls(connection: Connection, kind: Callable[..., Any]) -> None:
    """Construct an object with the arguments of the first message; answer each further one, a method and arguments."""
    served: Any = None
    with contextlib.suppress(EOFError, BrokenPipeError, ConnectionResetError):
        while True:
            name, arguments = connection.recv()
            warned: list[str] = []
            with convergence_warnings(warned):
                try:
                    if name is None:
                        served, answer = kind(*arguments), Answer()
                    else:
                        answer = Answer(getattr(served, name)(*arguments))
                except BaseException as error:  # noqa: BLE001 a method may raise anything; the record stores it
                    answer = Answer(failure=Failure.of(error))
            sys.stdout.flush()
            _send(connection, answer._replace(warned=warned[:1]))


@contextlib.contextmanager
def convergence_warnings(texts: list[str]) -> Iterator[None]:
    """Add to ``texts`` what warnings of a class such as scikit-learn's ConvergenceWarning state; print no warning."""
    with warnings.catch_warnings(record=True, action="default") as warned:
        try:
            yield
        finally:
            texts += [one_line(str(w.message)) for w in warned if "Convergence" in w.category.__name__]


def _send(connection: Connection, answer: Answer) -> None:
    """Send an answer, or the failure to convert it to bytes."""
    try:
        content = ForkingPickler.dumps(answer)
    except Exception as error:  # noqa: BLE001 any object of a method may be part of it
        content = ForkingPickler.dumps(Answer(failure=Failure.of(error)))
    connection.send_bytes(content)


if __name__ == "__main__":  # imported again under its own name, which the classes of answers need
    found("ep_bench.processes.fork_server:main")(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3])
