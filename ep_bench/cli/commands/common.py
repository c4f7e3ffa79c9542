"""Options, exit codes and helpers that several commands use."""

from __future__ import annotations

import contextlib
import signal
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NoReturn

import click

from ep_bench.processes.output_streams import print_line

FOLDER = click.Path(path_type=Path)
EXIT_REGRESSION, EXIT_USAGE, EXIT_CELLS, EXIT_INTERRUPTED = 1, 2, 3, 130
EXIT_UNREAD = 141  # as of a program that SIGPIPE ends: the reader of the output has exited

results_option = click.option(
    "--results", type=FOLDER, default=Path("results"), show_default=True, help="Folder of the results."
)
select_option = click.option(
    "--select",
    multiple=True,
    metavar="KEY=GLOB",
    help="Select matching cells. KEY is method, dataset or split. Repeatable; patterns of one key are alternatives.",
)
folders_argument = click.argument("folders", metavar="DIR...", nargs=-1, required=True, type=FOLDER)


def echo_lines(lines: Iterable[str], *, err: bool = False) -> None:
    """Print lines as they are produced; those on stderr end no command if nothing reads them."""
    for line in lines:
        if err:
            print_line(line, sys.stderr)
        else:
            click.echo(line)


@contextlib.contextmanager
def interrupted_by(number: int) -> Iterator[None]:
    """Treat a signal, such as a scheduler's SIGTERM, like Ctrl-C: stop, and keep what is finished."""

    def interrupt(*_: object) -> NoReturn:
        raise KeyboardInterrupt

    before = signal.signal(number, interrupt)
    try:
        yield
    finally:
        signal.signal(number, before)
