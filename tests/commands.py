"""The command line, called in this process to save the start-up of another one."""

from __future__ import annotations

import contextlib
import io
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from subprocess import CompletedProcess
from unittest import mock

from ep_bench import cli
from ep_bench.cli.output.text import Item, printed
from ep_bench.runner import run, verify
from ep_bench.runner.cell import run_cell
from ep_bench.runner.jobs import AnyJob, PartJob
from ep_bench.runner.supervisor import run_part
from ep_bench.types import Record


def ep_bench(*words: object, cwd: Path | None = None) -> CompletedProcess[str]:
    """Run a command as `ep-bench` does; return its exit code and its output."""
    command = ["ep-bench", *map(str, words)]
    printed, errors = io.StringIO(), io.StringIO()
    with (
        mock.patch.object(sys, "argv", command),
        contextlib.chdir(cwd or Path.cwd()),
        contextlib.redirect_stdout(printed),
        contextlib.redirect_stderr(errors),
    ):
        try:
            cli.main()
        except SystemExit as end:
            code = end.code
    return CompletedProcess(command, code, printed.getvalue(), errors.getvalue())


@contextlib.contextmanager
def cells_in_this_process() -> Iterator[None]:
    """Run cells in this process, without limits, to save the start-up of a worker process."""

    def run_jobs(
        jobs: Sequence[AnyJob], *, wanted: Callable[[AnyJob], bool] = lambda _: True, **_: object
    ) -> Iterator[Record]:
        for job in jobs:
            if wanted(job):
                yield run_part(job) if isinstance(job, PartJob) else run_cell(job)

    with mock.patch.object(run, "run_jobs", run_jobs), mock.patch.object(verify, "run_jobs", run_jobs):
        yield


def lines_of(items: Iterable[Item]) -> list[str]:
    """Return the lines that a command prints for its items."""
    return [line for item in items for line in printed(item)]
