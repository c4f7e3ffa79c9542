"""Progress of a run: a live bar in a terminal, else plain lines; only cells that are not ok if quiet."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Mapping
from typing import Any, Self, TextIO

from ep_bench.processes.output_streams import print_line
from ep_bench.runner.jobs import PARTS, AnyJob
from ep_bench.types import Record

_PLAIN_INTERVAL = 5.0  # seconds between two plain lines at first
_PLAIN_FRACTION = 0.02  # of the time so far, from which the interval is longer: the log of a long run stays short
_MINIMUM_DONE = 0.15  # fraction of the work that must be done before the time left is estimated


class Progress:
    """Counts finished, failed and running cells, and estimates the time left.

    ``work`` is the estimated time of each cell in seconds on one core, or any equal numbers if there are no estimates
    (``estimated``). ``jobs`` is the number of cells that run at a time, or None if unknown. ``unit`` is what they are
    called. Lines name the seed of a cell if ``seeds``, because the study has several.
    """

    def __init__(
        self,
        work: dict[str, float],
        jobs: int | None,
        *,
        estimated: bool = True,
        quiet: bool = False,
        unit: str = "cells",
        seeds: bool = False,
        stream: TextIO | None = None,
    ) -> None:
        self._estimated, self._unit, self._seeds = estimated, unit, seeds
        self._work, self._jobs, self._quiet = dict(work), jobs, quiet
        self._stream = stream or sys.stderr
        self._total, self._done, self._failed = len(work), 0, 0
        self._total_work = sum(work.values()) or 1.0
        self._started = self._last_line = time.monotonic()
        self._announced = False  # whether a plain line has named the first cells
        self._running: dict[str, str] = {}  # cells that were sent, by key; the first ones run
        self._live: Any = None
        self._bar: Any = None

    def __enter__(self) -> Self:
        if not self._quiet and self._stream.isatty():
            self._live = live_bar(self._stream)
            self._live.start()
            self._bar = self._live.add_task("", total=self._total_work, counts=self._counts(), left="")
        return self

    def __exit__(self, *_: object) -> None:
        if self._live is not None:
            self._live.stop()

    def started(self, job: AnyJob) -> None:
        """Note a cell that is sent to a worker, and show the cells that run."""
        self._running[job.cell.key] = self._place(vars(job.cell), job.cell.factors)
        if self._live is not None:
            self._live.update(self._bar, description=self._names(), left=self._left())
        elif not self._quiet and not self._announced and len(self._running) >= min(self._jobs or 1, self._total):
            self._announced = True
            self._print(f"{self._counts()}, {self._left()}: {self._names()}")

    def message(self, line: str) -> None:
        """Print a message, unless quiet."""
        if not self._quiet:
            self._print(line)

    def finished(self, record: Record, by: str = "") -> None:
        """Count a finished cell and show it; ``by`` names another run of the same folder that has finished it."""
        self._done += 1
        row = record.row
        failed = row["status"] != "ok"
        self._failed += failed
        self._work.pop(record.key, None)
        self._running.pop(record.key, None)
        place = f"{self._place(row, record.factors)}{by}"
        if failed:
            self._print(f"{row['status']}: {place}: {row['reason']}")
        if self._quiet:
            return
        if self._live is not None:
            done_work = self._total_work - sum(self._work.values())
            self._live.update(
                self._bar, completed=done_work, counts=self._counts(), left=self._left(), description=self._names()
            )
        elif is_due(self._last_line, self._started) or self._done == self._total:
            self._last_line = time.monotonic()
            running = f"; running: {self._names()}" if self._running else ""
            self._print(f"{self._counts()}, {self._left()}; last: {place}{running}")

    def _print(self, line: str) -> None:
        if self._live is not None:
            self._live.console.print(line, highlight=False, markup=False)
        else:
            print_line(line, self._stream)

    def _place(self, cell: Mapping[str, Any], factors: Mapping[str, Any]) -> str:
        """Return the name of a cell, or of a part of an experiment."""
        if cell["dataset"] == PARTS:
            return f"part {cell['split']} of {cell['method']}"
        place = f"{cell['method']} on {cell['dataset']}, split {cell['split']}"
        return f"{place}, seed {factors['seed']}" if self._seeds else place

    def _counts(self) -> str:
        shown = self._jobs is not None and self._live is None  # the live display has the names of those that run
        running = f", {min(self._jobs or 0, self._total - self._done)} running" if shown else ""
        return f"{self._done}/{self._total} {self._unit}, {self._failed} not ok{running}"

    def _names(self) -> str:
        """Return the cells that run, one or two by name: those sent first and not finished."""
        names = list(self._running.values())[: self._jobs or None]
        return "; ".join(names[:2]) + (f" and {len(names) - 2} more" if len(names) > 2 else "")

    def _left(self) -> str:
        spent = time.monotonic() - self._started
        rest = sum(self._work.values())
        done = self._total_work - rest
        known = done > _MINIMUM_DONE * self._total_work  # before, the time to start processes would dominate
        if known:
            return f"{clock(spent * rest / done)} left"
        return (
            f"about {clock(rest / self._jobs)} left by the plan"
            if self._jobs and self._estimated
            else "time left unknown"
        )


def is_due(last_line: float, started: float) -> bool:
    """Return whether enough time has passed since the last plain line."""
    now = time.monotonic()
    return now - last_line >= max(_PLAIN_INTERVAL, _PLAIN_FRACTION * (now - started))


def clock(seconds: float) -> str:
    """Return a duration in readable form: 45 s, 3 min 20 s, 2 h 05 min."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"


def is_interactive() -> bool:
    """Return whether the stream of errors is a terminal, or is shown in a notebook."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return sys.stderr.isatty() or hasattr(shell, "kernel")


def live_bar(stream: TextIO) -> Any:
    """Return a live display: a bar with the fields ``counts`` and ``left``, and below it what runs, its description."""
    from rich.console import Console, RenderableType
    from rich.progress import BarColumn, TextColumn
    from rich.progress import Progress as RichProgress
    from rich.text import Text

    class BarAndNames(RichProgress):
        def get_renderables(self) -> Iterator[RenderableType]:
            yield from super().get_renderables()
            for task in self.tasks:
                yield Text(task.description, "dim")

    columns = (
        BarColumn(bar_width=None, complete_style="cyan", finished_style="green"),
        TextColumn("{task.fields[counts]}", style="bold"),
        TextColumn("{task.fields[left]}"),
    )
    return BarAndNames(*columns, console=Console(file=stream), transient=True, expand=True)
