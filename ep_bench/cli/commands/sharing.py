"""``submit`` and ``cite``: results for the leaderboard, and BibTeX entries."""

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
@click.option(
    "--longest",
    type=click.FloatRange(min=0, min_open=True),
    default=300,
    show_default=True,
    metavar="SECONDS",
    help="The sample is of all cells whose stored time is at most so long.",
)
@click.option("--seed", type=int, help="Seed of the sample of a verification.  [default: another one each time]")
@jobs_option("Number of cells that run at a time.")
def submit(folder: Path, by: str, study: Path | None, cells: int, longest: float, seed: int | None, jobs: int) -> int:
    """Check the results in DIR, compute a sample again, and prepare them for a pull request.

    Writes submission.json, and pull-request.md with the text. If somebody else has submitted DIR, writes a verification
    by NAME into verified.json, for maintainers. Classes in files of DIR are imported: run only code that you trust.

    Exits with status 2 if rows, data or methods cannot be submitted, 1 if a score is not reproduced, and 3 if nothing
    could be compared.
    """
    import secrets

    from ep_bench.cli.output.submit import submit_folder
    from ep_bench.runner.submission import SEEDS
    from ep_bench.runner.verify import Sample

    chosen = secrets.randbelow(SEEDS) if seed is None else seed
    sample = Sample(chosen, cells, files=True, longest=longest)
    lines, equal = submit_folder(folder, by, study, sample, jobs)
    echo(lines)
    return EXIT_CELLS if equal is None else 0 if equal else EXIT_REGRESSION


@click.command()
@click.argument("folders", metavar="[DIR]...", nargs=-1, type=FOLDER)
def cite(folders: tuple[Path, ...]) -> None:
    """Print BibTeX entries of ep-bench, and of the methods and data sets in results folders."""
    from ep_bench.cli.output.cite import entries

    for entry in entries(folders):
        click.echo(f"{entry}\n")
