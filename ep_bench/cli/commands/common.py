"""Options, exit codes and helpers that several commands use."""

from __future__ import annotations

import contextlib
import signal
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import click

from ep_bench.processes.output_streams import print_line

if TYPE_CHECKING:
    from ep_bench.cli.output.text import Item

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


def echo(items: Iterable[Item], *, err: bool = False) -> None:
    """Print items as they are produced, wrapped to the terminal; those on stderr need no reader."""
    from ep_bench.cli.output.text import printed

    for item in items:
        for line in printed(item, sys.stderr if err else sys.stdout):
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
