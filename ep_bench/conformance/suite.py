"""All checks of a method, run in a child process; a crash, an exit or a time-out is a fault of that check."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from ep_bench.conformance.checks import DEMANDS, Check, CheckOutcome, Finding, checks
from ep_bench.errors import CellError, UserError
from ep_bench.processes.fork_server import ChildRequest
from ep_bench.processes.warm_server import Child, ChildLostError, ServerLostError, WarmServer, ending
from ep_bench.types import Task

_PREPARATION = "ep_bench.conformance.worker:prepare"
STARTING = 120.0  # seconds for the import of the target, in addition to the limit of a check


def examine(
    target: str, options: Mapping[str, Any], base: Path, seconds: float, task: Task | None = None
) -> Iterator[CheckOutcome]:
    """Yield the outcome of each check of a method, in the order of `checks`.

    File names in ``target``, a registry name or a class, and in ``options`` are relative to ``base``; ``seconds`` is
    the time limit of one check. The default of ``task`` is the first task of the target. Raises UserError if the target
    cannot be imported or constructed, or does not have the options.
    """
    examiner = CheckRunner(target, options, base, seconds, task)
    try:
        yield from in_order(checks(examiner.start()), examiner.ask)
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


class CheckRunner:
    """Runs checks in a child process, which is replaced after a crash or a time-out."""

    def __init__(
        self, target: str, options: Mapping[str, Any], base: Path, seconds: float, task: Task | None = None
    ) -> None:
        self._target, self._seconds = target, seconds
        self._arguments = (target, options, base, Path.cwd(), task)
        self._server = WarmServer(_PREPARATION)
        self._child: Child | None = None
        self._is_late = False

    def start(self) -> Task:
        """Start a child process that imports the target; return the task. Raises UserError if this fails."""
        target = self._target
        if not self._server.alive:
            self._server.stop()
            self._server = WarmServer(_PREPARATION)
        try:
            request = ChildRequest("ep_bench.conformance.worker:ServedChecks")
            child = self._child = self._server.start(request, *self._arguments)
            with self._time_limit(STARTING + self._seconds):
                found = child.ask("prepare")
        except (OSError, ServerLostError) as error:
            raise UserError(f"no process can be started: {error}", where=target) from error
        except ChildLostError:
            if self._is_late:
                problem = f"the import takes longer than {STARTING + self._seconds:g} seconds"
                raise UserError(problem, where=target) from None
            code, printed = self._server.code(), self._server.tail().strip()
            raise UserError(
                f"cannot be imported or constructed: {ending(code)}"
                + (f"; it printed: {printed[-500:]}" if printed else ""),
                where=target,
            ) from None
        if isinstance(found, UserError):
            raise found
        task: Task = found
        return task

    def ask(self, name: str) -> CheckOutcome:
        """Return the outcome of a check; a child process is started if there is none."""
        if self._child is None:
            self.start()
        assert self._child is not None  # noqa: S101 set by start
        try:
            with self._time_limit(self._seconds):
                outcome: CheckOutcome = self._child.ask("perform", name)
        except CellError as error:
            outcome = CheckOutcome.of(name, (Finding(str(error), DEMANDS[name], "raise exceptions of plain types"),))
        except ChildLostError as lost:
            outcome = CheckOutcome.of(name, (self._too_slow() if self._is_late else self._died(str(lost)),))
            self._server.end_child()
            self._child = None
        return outcome

    def stop(self) -> None:
        """End the processes."""
        self._server.stop()
        self._child = None

    @contextlib.contextmanager
    def _time_limit(self, seconds: float) -> Iterator[None]:
        """Kill the child after some time."""
        timer = threading.Timer(seconds, self._end_late)
        timer.start()
        try:
            yield
        finally:
            timer.cancel()
            timer.join()  # an end that has begun must not reach the next child

    def _end_late(self) -> None:
        self._is_late = True
        self._server.kill_child()

    def _too_slow(self) -> Finding:
        self._is_late = False
        return Finding(
            f"not finished after {self._seconds:g} seconds; the process was ended",
            f"an end within {self._seconds:g} seconds on small data",
            "look for an infinite loop; if the method is slow, increase --seconds or use options for a shorter fit",
        )

    def _died(self, reason: str) -> Finding:
        code = self._server.code()
        killed = code == -signal.SIGKILL
        found = "the process was killed, possibly because memory was exhausted" if killed else reason or ending(code)
        return Finding(
            found,
            "errors raise exceptions, so that only one cell fails",
            "raise an exception instead of calling exit; check indices, types and pointers of compiled code",
        )
