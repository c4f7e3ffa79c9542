"""All checks of a method, run in a child process; a crash, an exit or a time-out is a fault of that check."""

from __future__ import annotations

import atexit
import re
import signal
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from ep_bench.conformance.checks import Check, CheckOutcome, Finding, checks
from ep_bench.conformance.messages import PRINT_STACK, CheckRequest, Ready, from_plain
from ep_bench.errors import UserError
from ep_bench.processes.channel import MessageError
from ep_bench.processes.child_process import ending
from ep_bench.processes.forked import ForkedProcess, ForkServer
from ep_bench.types import Task

STARTING = 120.0  # seconds for the import of the target, in addition to the limit of a check
_servers: list[ForkServer] = []  # one at most, kept for the next method until this process ends


def examine(
    target: str, options: Mapping[str, Any], base: Path, seconds: float, task: Task | None = None
) -> Iterator[CheckOutcome]:
    """Yield the outcome of each check of a method, in the order of `checks`.

    Parameters
    ----------
    target : a registry name, or a class as in a study
    options : options of the method
    base : folder that file names are relative to
    seconds : time limit of one check
    task : by default the first task of the target

    Raises
    ------
    UserError
        The target cannot be imported or constructed, or does not have the options.
    """
    examiner = CheckRunner(CheckRequest(target, options, str(base), str(Path.cwd()), task), seconds)
    try:
        ready = examiner.start()
        yield from in_order(checks(registered=ready.registered, task=ready.task), examiner.ask)
    finally:
        examiner.stop()


def in_order(chosen: Iterable[Check], ask: Callable[[str], CheckOutcome]) -> Iterator[CheckOutcome]:
    """Yield outcomes; a check is skipped if a check that must pass before it has a fault, directly or indirectly."""
    causes: dict[str, str] = {}  # failed or skipped check -> the check with the fault
    for check in chosen:
        cause = next((causes[name] for name in check.needs if name in causes), None)
        outcome = CheckOutcome.skipped(check.name, f"see {cause}") if cause else ask(check.name)
        if cause or outcome.status == "FAULT":
            causes[check.name] = cause or check.name
        yield outcome


def _fork_server() -> ForkServer:
    """Return the fork server of this process; it is started if there is none."""
    if not (_servers and _servers[0].alive):
        if not _servers:
            atexit.register(_stop_servers)
        _stop_servers()
        _servers.append(ForkServer("ep_bench.conformance.worker:prepare"))
    return _servers[0]


def _stop_servers() -> None:
    while _servers:
        _servers.pop().stop()


class CheckRunner:
    """Runs checks in a child process, which is replaced after a crash or a time-out."""

    def __init__(self, order: CheckRequest, seconds: float) -> None:
        self._order, self._seconds = order, seconds
        self._child: ForkedProcess | None = None
        self._source = ""

    def start(self) -> Ready:
        """Start a child process that imports the target. Raises UserError if this fails."""
        try:
            child = self._child = _fork_server().start("ep_bench.conformance.worker:main")
        except OSError as error:
            raise UserError(f"no process can be started: {error}", where=self._order.target) from error
        try:
            child.channel.send_object(self._order)
            if not child.channel.poll(STARTING + self._seconds):
                raise UserError(
                    f"the import takes longer than {STARTING + self._seconds:g} seconds", where=self._order.target
                )
            answer = child.channel.receive().header
        except (EOFError, BrokenPipeError, ConnectionResetError, MessageError):
            code, printed = child.wait(), child.tail().strip()
            raise UserError(
                f"cannot be imported or constructed: {ending(code)}"
                + (f"; it printed: {printed[-500:]}" if printed else ""),
                where=self._order.target,
            ) from None
        if "refused" in answer:
            raise from_plain(answer["refused"])
        task: Task = "classification" if answer.get("task") == "classification" else "regression"
        ready = Ready(bool(answer.get("registered")), str(answer.get("source", "")), task)
        self._source = ready.source
        return ready

    def ask(self, name: str) -> CheckOutcome:
        """Return the outcome of a check; a child process is started if there is none."""
        if self._child is None:
            self.start()
        child = self._child
        assert child is not None  # noqa: S101 set by start
        child.forget_printed()
        try:
            child.channel.send_object(name)
            if child.channel.poll(self._seconds):
                return CheckOutcome.from_plain(name, child.channel.receive().header)
            finding = self._too_slow(child)
        except (EOFError, BrokenPipeError, ConnectionResetError, MessageError):
            finding = self._died(child)
        self.stop()
        return CheckOutcome.of(name, (finding,))

    def stop(self) -> None:
        """End the child process, if there is one."""
        if self._child is not None:
            self._child.stop()
            self._child = None

    def _too_slow(self, child: ForkedProcess) -> Finding:
        child.signal(PRINT_STACK)
        time.sleep(0.3)  # the child prints its stack
        return Finding(
            f"not finished after {self._seconds:g} seconds{self._place(child)}; the process was ended",
            f"an end within {self._seconds:g} seconds on small data",
            "look for an infinite loop; if the method is slow, increase --seconds or use options for a shorter fit",
        )

    def _died(self, child: ForkedProcess) -> Finding:
        code = child.wait()
        killed = code == -signal.SIGKILL
        found = "the process was killed, possibly because memory was exhausted" if killed else ending(code)
        return Finding(
            f"{found}{self._place(child)}",
            "errors raise exceptions, so that only one cell fails",
            "raise an exception instead of calling exit; check indices, types and pointers of compiled code",
        )

    def _place(self, child: ForkedProcess) -> str:
        """Return the current line of the child from the stack that it printed, in the method's file if possible."""
        frames = re.findall(r'File "([^"]+)", line (\d+) in (\S+)', child.tail())
        own = [frame for frame in frames if frame[0] == self._source]
        if not (own or frames):
            return ""
        file, line, function = (own or frames)[0]
        return f", in {function} ({Path(file).name}, line {line})"
