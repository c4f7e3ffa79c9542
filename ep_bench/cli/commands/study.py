"""``run``, ``plan`` and ``status``: the cells of a study."""

from __future__ import annotations

import os
import shlex
import signal
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from ep_bench.cli.commands.common import (
    EXIT_CELLS,
    FOLDER,
    echo,
    interrupted_by,
    results_option,
    select_option,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from ep_bench.cli.output.text import Item
    from ep_bench.runner.jobs import BasePlan
    from ep_bench.runner.run import RunOutcome

_Command = TypeVar("_Command", bound="Callable[..., Any]")


def jobs_option(text: str) -> Callable[[_Command], _Command]:
    """Return the option ``--jobs`` with a help text."""
    return click.option("--jobs", type=click.IntRange(min=1), default=1, show_default=True, help=text)


@click.command()
@click.argument("study")
@results_option
@jobs_option("Number of cells, or parts of an experiment, that run at a time.")
@click.option(
    "--backend",
    type=click.Choice(["local", "loky", "dask"]),
    default="local",
    show_default=True,
    help="This machine (loky is an older name of local), or a dask cluster.",
)
@click.option("--scheduler", metavar="ADDRESS", help="Dask scheduler.  [default: start a local cluster]")
@select_option
@click.option(
    "--retry-failed",
    is_flag=True,
    help="Also run cells with status failed, timeout or memory, or parts that failed, again.",
)
@click.option("--fail-fast", is_flag=True, help="Stop at the first cell that is not ok.")
@click.option(
    "--stored-only",
    is_flag=True,
    help="Run no cell; only take over those of other studies in --results, finished or failed.",
)
@click.option("--quiet", is_flag=True, help="Print errors only.")
def run(study: str, results: Path, select: tuple[str, ...], quiet: bool, **options: Any) -> int:
    """Run every missing or stale cell of STUDY. Finished cells are never run again.

    STUDY is a YAML file, or the name of a study that is shipped with the package, such as pbp_table1.
    """
    if options["scheduler"] is not None and options["backend"] != "dask":
        raise click.UsageError("--scheduler requires --backend dask")
    from ep_bench.runner.run import RunOptions, run_plan

    plan, started = _make_plan(study, results, select), time.monotonic()
    with interrupted_by(signal.SIGTERM):
        outcome = run_plan(plan, RunOptions(quiet=quiet, **options))
    only_stored = options["stored_only"]
    if not quiet:
        echo(_found(plan, outcome, time.monotonic() - started))
        if only_stored and not outcome.statuses["ok"]:
            echo([f"no other study below {results} has a finished cell of {plan.study.name}"], err=True)
        elif not only_stored:
            echo(_next_step(plan, outcome), err=True)
    return 0 if outcome.complete or only_stored else EXIT_CELLS


def _make_plan(study: str, results: Path, select: Sequence[str]) -> BasePlan:
    """Return the plan of the selected cells, and print the warnings about the study."""
    from ep_bench.runner.plan import make_plan
    from ep_bench.spec import read_study

    plan = make_plan(read_study(study), results)
    plan = plan.select(select) if select else plan
    echo(plan.warnings(), err=True)
    return plan


def _found(plan: BasePlan, outcome: RunOutcome, seconds: float) -> Iterator[Item]:
    """Yield what was run, the scores, and what to do with them after a complete run."""
    from ep_bench.cli.output.scores import score_table
    from ep_bench.runner.progress import clock

    name, counts = plan.study.name, ", ".join(f"{n} {status}" for status, n in outcome.statuses.most_common())
    for folder, n in outcome.taken.items():
        yield f"{name}: {n} cells taken over from {folder}, not computed again"
    spent = f" in {clock(seconds)}" if outcome.ran else ""
    table = plan.folder / plan.table
    place = table if table.exists() else plan.folder  # an experiment has its results when all parts are finished
    yield f"{name}: {outcome.ran} {plan.unit} run; {counts}{spent} -> {place}"
    if plan.study.experiment is None:
        yield from score_table(plan.folder)
    if outcome.ran and outcome.complete and table.exists():
        yield f"next: ep-bench report {shlex.quote(str(plan.folder))}"
    if outcome.ran and not outcome.complete:
        yield from _untested(plan)


def _next_step(plan: BasePlan, outcome: RunOutcome) -> Iterator[str]:
    """Yield what to do after a run that is not complete."""
    if outcome.stopped:
        yield f"stopped: one of the {plan.unit} is not ok; the same command continues"
    elif not outcome.complete:
        listed = f"`ep-bench status {shlex.quote(str(plan.folder))}` lists the {plan.unit} that are not ok"
        yield f"{listed}; --retry-failed runs them again"


def _untested(plan: BasePlan) -> Iterator[str]:
    """Yield the command that tests each selected method that is a class in a file."""
    selected = {planned.job.cell.method for planned in plan.cells}
    entries = [entry for entry in plan.study.methods if entry.label in selected]
    for use in dict.fromkeys(entry.use for entry in entries if ".py:" in entry.use):
        file, _, name = use.rpartition(":")
        path = os.path.relpath(plan.study.path.parent / file)
        yield f"a run does not test units and leaks: ep-bench methods test {shlex.quote(f'{path}:{name}')}"


@click.command()
@click.argument("study")
@results_option
@jobs_option("Number of cells that run at a time, for the estimate.")
@select_option
@click.option("--cells", is_flag=True, help="One line per cell instead of one per method and data set.")
def plan(study: str, results: Path, jobs: int, select: tuple[str, ...], cells: bool) -> int:
    """Print the cells of STUDY and the time left.

    Cells are done, failed, stale, missing, or finished elsewhere: `run` takes them over from the folder of another
    study. Stale cells are listed with the reason. Nothing is run.

    STUDY is a YAML file, or the name of a study that is shipped with the package, such as pbp_table1.
    """
    from ep_bench.cli.output.study import plan_items

    echo(plan_items(_make_plan(study, results, select), jobs, cells=cells))
    return 0


@click.command()
@click.argument("folder", metavar="DIR", type=FOLDER)
def status(folder: Path) -> int:
    """Count the cells of a results folder.

    Lists cells that are not ok or missing. Exits with status 3 if there are any.
    """
    from ep_bench.cli.output.study import status_items

    items, complete = status_items(folder)
    echo(items)
    return 0 if complete else EXIT_CELLS
