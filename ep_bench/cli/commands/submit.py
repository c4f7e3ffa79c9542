"""``submit``: results for the leaderboard."""

from __future__ import annotations

from pathlib import Path

import click

from ep_bench.cli.commands.common import EXIT_CELLS, EXIT_REGRESSION, FOLDER, echo
from ep_bench.cli.commands.study import jobs_option


@click.command()
@click.argument("folder", metavar="DIR", type=FOLDER)
@click.option("--by", required=True, metavar="NAME", help="Who submits, or verifies a submission.")
@click.option("--study", type=FOLDER, help="The YAML file of the study, if a method is a class in a file.")
@click.option("--cells", type=click.IntRange(min=1), default=5, show_default=True, help="Cells to compute again.")
@click.option("--seed", type=int, help="Seed of the random choice of cells.  [default: another one each time]")
@jobs_option("Number of cells that run at a time.")
def submit(folder: Path, by: str, study: Path | None, cells: int, seed: int | None, jobs: int) -> int:
    """Check the results in DIR, compute a sample again, and prepare them for a pull request.

    Writes submission.json, and pull-request.md with the text. If DIR was submitted, the sample is another verification,
    by NAME. Classes in files of DIR are then imported: do so for code that you would run.

    Exits with status 2 if rows, data or methods cannot be submitted, 1 if a score is not reproduced, and 3 if nothing
    could be compared.
    """
    import secrets

    from ep_bench.cli.output.submit import submit_folder
    from ep_bench.runner.verify import Sample

    sample = Sample(secrets.randbelow(10**6) if seed is None else seed, cells, files=True)
    lines, equal = submit_folder(folder, by, study, sample, jobs)
    echo(lines)
    return EXIT_CELLS if equal is None else 0 if equal else EXIT_REGRESSION
