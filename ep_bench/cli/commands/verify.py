"""``verify``: stored results computed again."""

from __future__ import annotations

import math
from pathlib import Path

import click

from ep_bench.cli.commands.common import EXIT_CELLS, EXIT_REGRESSION, echo, folders_argument, select_option
from ep_bench.cli.commands.study import jobs_option

_CELLS = 10  # cells per folder without --cells, --budget and --all


@click.command()
@folders_argument
@click.option("--cells", type=click.IntRange(min=1), help="Number of random cells per folder.  [default: 10]")
@click.option("--all", "every", is_flag=True, help="All cells.")
@click.option("--budget", type=click.FloatRange(min=0.0), help="Seconds for all folders together.  [default: no limit]")
@click.option("--seed", type=int, help="Seed of the random choice of cells.  [default: another one each time]")
@select_option
@jobs_option("Number of cells that run at a time.")
def verify(
    folders: tuple[Path, ...], cells: int | None, every: bool, budget: float | None, seed: int | None,
    select: tuple[str, ...], jobs: int,
) -> int:  # fmt: skip
    """Compute stored cells again, and compare scores.

    The choice of cells is random; cheap cells are more probable. With --budget, cells are computed until the time is
    used. Nothing is written. Exits with status 1 if a score differs. With the same processor and libraries, scores may
    differ by 1e-6, and not at all for exact methods. Elsewhere exact methods may differ by 1e-6, and stable ones by
    0.001 standard deviations over the splits. For searches for options, three or more layers, and methods that optimise
    or sample, means over the splits may differ by 0.2 standard errors, except for one cell, which may differ by 1.5
    standard deviations. Exits with status 3 if nothing could be compared.
    """
    import secrets

    from ep_bench.cli.output.verify import verify_folders
    from ep_bench.results import store
    from ep_bench.runner.verify import Sample

    if every and cells is not None:
        raise click.UsageError("--all and --cells exclude each other")
    count = None if every or (cells is None and budget is not None) else cells or _CELLS
    sample = Sample(secrets.randbelow(10**6) if seed is None else seed, count, select)
    studies = [store.read_intact(folder) for folder in folders]
    lines, equal = verify_folders(studies, sample, jobs=jobs, budget=math.inf if budget is None else budget)
    echo(lines)
    return EXIT_CELLS if equal is None else 0 if equal else EXIT_REGRESSION
