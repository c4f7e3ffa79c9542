"""``compare``: differences of the scores of methods, in pairs."""

from __future__ import annotations

from pathlib import Path

import click

from ep_bench.cli.commands.common import FOLDER, echo, folders_argument, select_option


@click.command()
@folders_argument
@click.option("--methods", required=True, metavar="A,B,...", help="Labels of two or more methods.")
@click.option("--score", default="ll", show_default=True, help="Score to compare, such as ll, rmse or crps.")
@click.option("--rope", type=float, default=0.0, help="Differences up to this size count as equal.  [default: 0]")
@click.option("--out", type=FOLDER, help="Also write the table, with all columns, to this CSV file.")
@select_option
def compare(
    folders: tuple[Path, ...], methods: str, score: str, rope: float, out: Path | None, select: tuple[str, ...]
) -> None:
    """Compare methods in pairs, on each data set and over all of them.

    For each pair: the mean difference of the score on common splits, its 95 % interval and the p-value of the corrected
    resampled t-test with Holm's correction, the splits that each method wins, the posterior probability that the first
    method is better, and the difference that this number of splits can detect with 80 % power.
    """
    from ep_bench.cli.output.compare import compare_folders

    echo(compare_folders(folders, methods, score=score, rope=rope, out=out, select=select))
