"""``cite``: BibTeX entries."""

from __future__ import annotations

from pathlib import Path

import click

from ep_bench.cli.commands.common import FOLDER


@click.command()
@click.argument("folders", metavar="[DIR]...", nargs=-1, type=FOLDER)
def cite(folders: tuple[Path, ...]) -> None:
    """Print BibTeX entries of ep-bench, and of the methods and data sets in results folders."""
    from ep_bench.cli.output.cite import entries

    for entry in entries(folders):
        click.echo(f"{entry}\n")
