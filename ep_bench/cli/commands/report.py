"""``report`` and ``check``: tables and figures, and the comparison with published numbers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ep_bench.cli.commands.common import EXIT_REGRESSION, FOLDER, echo, folders_argument, select_option


@click.command()
@folders_argument
@click.option("--out", type=FOLDER, help="Folder of the report.  [default: report in the first DIR]")
@select_option
@click.option("--pdf", is_flag=True, help="Also write the figures as PDF.")
@click.option("--all-figures", is_flag=True, help="Draw experiments and all panels also in large reports.")
def report(folders: tuple[Path, ...], out: Path | None, all_figures: bool, **options: Any) -> int:
    """Write report.html, tables and figures.

    Several results folders are merged into one report, which is also written as index.html. With --select, the report
    is that of the matching cells, as if no others were planned, and needs --out.
    """
    from ep_bench.report import build

    def log(note: str) -> None:
        echo([f"note: {note}"], err=True)

    written = build(folders, out, all_figures=all_figures or None, log=log, **options)  # None: only for a single study
    page = next((path for path in written if path.name == "report.html"), written[-1])
    echo([f"{len(written)} files written; open {page}"])
    return 0


@click.command()
@folders_argument
@click.option(
    "--against",
    multiple=True,
    metavar="SOURCE",
    help="Compare with this source only. Repeatable.  [default: all that apply]",
)
@click.option("--summary", is_flag=True, help="Print one line per published table.")
@click.option("--out", type=FOLDER, help="Path of check.csv, or its folder.  [default: DIR/check.csv for one DIR]")
def check(
    folders: tuple[Path, ...],
    against: tuple[str, ...],
    summary: bool,
    out: Path | None,
) -> int:
    """Compare results with published numbers and claims.

    Prints the worst first, with the reasons of each verdict below it. A reason of several lines of a table is printed
    once, with a number. Several results folders are merged, and each published number counts once. Files are then
    written with --out only.

    Exits with status 1 if a published number is not reproduced and the study does not accept the difference.
    """
    from ep_bench.cli.output.check import check_folders

    lines, reproduced = check_folders(folders, against, out, summary=summary)
    echo(lines)
    return 0 if reproduced else EXIT_REGRESSION
