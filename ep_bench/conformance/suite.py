"""All checks of a method, each in a child process that may crash, hang or end itself: that is a fault of that check."""

from __future__ import annotations

import re
import signal
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from ep_bench.conformance.checks import Check, CheckOutcome, Finding, checks
from ep_bench.conformance.messages import WHERE_ARE_YOU, CheckRequest, Ready, Refused
from ep_bench.processes.child_process import ChildProcess, ending
from ep_bench.types import Task, UserError

STARTING = 120.0  # seconds for the import of the target, beyond the limit of a check


def examine(
    target: str, options: Mapping[str, Any], base: Path, seconds: float, task: Task | None = None
) -> Iterator[CheckOutcome]:
    """Yield the outcome of each check of a target, in the order of the catalogue.

    ``target`` is a registry name or names a class, files relative to ``base``; ``seconds`` is the limit of one check.
    ``task`` is what it is tested in, by default what it does first.
    Raises UserError where the target cannot be imported or built, or has not the options.
    """
    examiner = CheckRunner(CheckRequest(target, options, str(base), task), seconds)
    try:
        ready = examiner.start()
        yield from in_order(checks(registered=ready.registered, task=ready.task), examiner.ask)
    finally:
        examiner.stop()


def in_order(chosen: Iterable[Check], ask: Callable[[str], CheckOutcome]) -> Iterator[CheckOutcome]:
    """Yield outcomes; a check that rests on one that found a fault is skipped, since it would say the same again."""
    lost: dict[str, str] = {}  # check without an answer -> the fault that is to blame
    for check in chosen:
        blame = next((lost[name] for name in check.needs if name in lost), None)
        outcome = CheckOutcome.skipped(check.name, f"see {blame}") if blame else ask(check.name)
        if blame or outcome.status == "FAULT":
            lost[check.name] = blame or check.name
        yield outcome


class CheckRunner:
    """Hands checks to a child process, and starts another where one has ended or had to be ended."""

    def __init__(self, order: CheckRequest, seconds: float) -> None:
        self._order, self._seconds = order, seconds
        self._child: ChildProcess | None = None
        self._source = ""

    def start(self) -> Ready:
        """Start a child and let it import the target. Raises UserError where that fails."""
        child = self._child = ChildProcess("ep_bench.conformance.worker")
        try:
            child.connection.send(self._order)
            if not child.connection.poll(STARTING + self._seconds):
                raise UserError(f"not imported after {STARTING + self._seconds:g} seconds", where=self._order.target)
            answer = child.connection.recv()
        except (EOFError, BrokenPipeError, ConnectionResetError):
            code, printed = child.wait(), child.tail().strip()
            raise UserError(
                f"cannot be imported or built: {ending(code)}" + (f"; it printed: {printed[-500:]}" if printed else ""),
                where=self._order.target,
            ) from None
        if isinstance(answer, Refused):
            raise UserError(answer.problem)
        self._source = answer.source
        return Ready(*answer)

    def ask(self, name: str) -> CheckOutcome:
        """Return the outcome of a check, in a fresh child if there is none."""
        if self._child is None:
            self.start()
        child = self._child
        assert child is not None  # noqa: S101 start has made one
        child.forget_printed()
        try:
            child.connection.send(name)
            if child.connection.poll(self._seconds):
                outcome: CheckOutcome = child.connection.recv()
                return outcome
            finding = self._too_slow(child)
        except (EOFError, BrokenPipeError, ConnectionResetError):
            finding = self._died(child)
        self.stop()
        return CheckOutcome.of(name, (finding,))

    def stop(self) -> None:
        """End the child, if there is one."""
        if self._child is not None:
            self._child.stop()
            self._child = None

    def _too_slow(self, child: ChildProcess) -> Finding:
        child.signal(WHERE_ARE_YOU)
        time.sleep(0.3)  # for the stack to be printed
        return Finding(
            f"not done after {self._seconds:g} seconds{self._place(child)}; its process was ended",
            f"an end within {self._seconds:g} seconds on so few rows",
            "look for a loop without end; if it is merely slow, give --seconds, or options that make it quicker",
        )

    def _died(self, child: ChildProcess) -> Finding:
        code = child.wait()
        killed = code == -signal.SIGKILL
        found = "its process was killed, as by the kernel where memory runs out" if killed else ending(code)
        return Finding(
            f"{found}{self._place(child)}",
            "errors are exceptions, so that one cell fails and the rest goes on",
            "raise an exception where it calls exit; a crash in compiled code is a wrong index, type or pointer",
        )

    def _place(self, child: ChildProcess) -> str:
        """Return where the child was, from the stack that it printed: the line of the method's file if it is there."""
        frames = re.findall(r'File "([^"]+)", line (\d+) in (\S+)', child.tail())
        own = [frame for frame in frames if frame[0] == self._source]
        if not (own or frames):
            return ""
        file, line, function = (own or frames)[0]
        return f", in {function} ({Path(file).name}, line {line})"
