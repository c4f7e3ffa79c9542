"""The command line. Every command imports what it needs in its own body, so that ``--help`` answers at once."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ep_bench.types import Task


FOLDER = click.Path(path_type=Path)
results_option = click.option(
    "--results", type=FOLDER, default=Path("results"), show_default=True, help="Folder of the results."
)
select_option = click.option(
    "--select",
    multiple=True,
    metavar="KEY=GLOB",
    help="Only matching cells; KEY: method, dataset or split; repeatable.",
)
EXIT_REGRESSION, EXIT_USAGE, EXIT_CELLS, EXIT_INTERRUPTED = 1, 2, 3, 130


def main() -> NoReturn:
    """Run the command line and exit with one of the interface's codes."""
    try:
        code = cli.main(prog_name="ep-bench", standalone_mode=False)
        sys.stdout.flush()
    except click.ClickException as error:
        error.show()
        code = error.exit_code
    except (KeyboardInterrupt, click.Abort):
        click.echo("ep-bench: interrupted; every finished cell or piece is kept", err=True)
        code = EXIT_INTERRUPTED
    except BrokenPipeError:  # the reader of our output has enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 0
    except Exception as error:
        from ep_bench.types import UserError  # not above: it would load numpy before the first word of help

        if isinstance(error, OSError):
            error = UserError(f"{error.strerror or error}", where=str(error.filename or "input or output"))
        if not isinstance(error, UserError):
            raise
        click.echo(f"ep-bench: {error}", err=True)
        code = EXIT_USAGE
    sys.exit(code if isinstance(code, int) else 0)


@contextlib.contextmanager
def interrupted_by(number: int) -> Iterator[None]:
    """Take a signal (a scheduler's SIGTERM) as Ctrl-C is taken: stop, and keep what is finished."""

    def interrupt(*_: object) -> NoReturn:
        raise KeyboardInterrupt

    before = signal.signal(number, interrupt)
    try:
        yield
    finally:
        signal.signal(number, before)


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="ep-bench", prog_name="ep-bench")
def cli() -> None:
    """Honest baselines for Bayesian neural networks and Gaussian processes on the UCI regression splits.

    A YAML study names methods, data sets and a split scheme; `run` computes what is missing of it, `report` writes
    tables and figures, `check` holds the numbers against the published ones.

    Exit codes: 0 done, 1 a published number is lost, 2 bad input, 3 some cells are not ok, 130 interrupted.
    """


@cli.command()
@click.argument("study")
@results_option
@click.option(
    "--jobs",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="Cells, or pieces of an experiment, at a time.",
)
@click.option("--backend", type=click.Choice(["loky", "dask"]), default="loky", show_default=True)
@click.option("--scheduler", metavar="ADDRESS", help="Dask scheduler; without it a local cluster is started.")
@select_option
@click.option("--retry-failed", is_flag=True, help="Run cells again that ended failed, timeout or memory.")
@click.option("--fail-fast", is_flag=True, help="Stop at the first cell that is not ok.")
@click.option("--quiet", is_flag=True, help="Say nothing but errors.")
def run(study: str, results: Path, select: tuple[str, ...], quiet: bool, **options: Any) -> int:
    """Run every missing or stale cell of STUDY; finished cells are never run again.

    STUDY is a YAML file, or the name of a study that ships with the package, such as pbp_table1.
    """
    from ep_bench.catalogue import InstalledCatalogue
    from ep_bench.spec import read_study

    if options["scheduler"] is not None and options["backend"] != "dask":
        raise click.UsageError("--scheduler goes with --backend dask")
    read = read_study(study, InstalledCatalogue())
    if read.experiment is not None:
        return _run_experiment(read, results, quiet, options["jobs"])
    return _run_cells(read, results, select, quiet=quiet, **options)


def _run_cells(study: Any, results: Path, select: Sequence[str], **options: Any) -> int:
    from ep_bench.runner.plan import make_plan
    from ep_bench.runner.run import RunOptions, run_plan

    whole = make_plan(study, results)
    plan = whole.select(select) if select else whole
    for line in whole.warnings():
        click.echo(line, err=True)
    with interrupted_by(signal.SIGTERM):
        outcome = run_plan(plan, whole, RunOptions(**options))
    if not options["quiet"]:
        counts = ", ".join(f"{n} {status}" for status, n in sorted(outcome.statuses.items(), key=lambda item: -item[1]))
        click.echo(f"{study.name}: {outcome.ran} cells run; {counts} -> {plan.folder / 'results.csv'}")
        if not outcome.complete:
            hint = f"`ep-bench status {plan.folder}` lists those that are not ok; --retry-failed runs them again"
            click.echo(hint, err=True)
    return 0 if outcome.complete else EXIT_CELLS


def _run_experiment(study: Any, results: Path, quiet: bool, jobs: int) -> int:
    from ep_bench import experiments

    what = study.experiment, study.options, study.seed, results / study.name
    stood = experiments.is_computed(*what)
    kept = experiments.checkpoints_kept(results / study.name)
    if kept and not stood and not quiet:
        click.echo(f"{study.name}: goes on, {kept} pieces of an earlier run are there")
    with interrupted_by(signal.SIGTERM):
        folder = experiments.run(*what, study.name, jobs)
    if not quiet:
        note = ", which stood there already" if stood else ""
        click.echo(f"{study.name}: experiment {study.experiment} -> {folder}{note}")
    return 0


@cli.command()
@click.argument("study")
@results_option
@click.option(
    "--jobs", type=click.IntRange(min=1), default=1, show_default=True, help="Cells at a time, for the estimate."
)
@select_option
@click.option("--cells", is_flag=True, help="One line a cell instead of one a method and data set.")
def plan(study: str, results: Path, jobs: int, select: tuple[str, ...], cells: bool) -> int:
    """Print the cells of STUDY, which are done, which are stale and why, and how long the rest takes.

    STUDY is a YAML file, or the name of a study that ships with the package, such as pbp_table1.
    """
    from ep_bench.catalogue import InstalledCatalogue
    from ep_bench.cli.output import plan_lines
    from ep_bench.runner.plan import make_plan
    from ep_bench.spec import read_study

    read = read_study(study, InstalledCatalogue())
    if read.experiment is not None:
        from ep_bench import experiments

        done = experiments.is_computed(read.experiment, read.options, read.seed, results / read.name)
        kept = experiments.checkpoints_kept(results / read.name)
        state = "done" if done else f"to run, {kept} pieces are there" if kept else "to run"
        click.echo(f"{read.name}: the experiment {read.experiment}, one run, no cells: {state}")
        return 0
    made = make_plan(read, results)
    chosen = made.select(select) if select else made
    for line in made.warnings():
        click.echo(line, err=True)
    for name in chosen.absent():
        click.echo(f"warning: {name} has no data file; run `ep-bench data fetch {name}` before `run`", err=True)
    for line in plan_lines(chosen, jobs, cells=cells):
        click.echo(line)
    return 0


@cli.command()
@click.argument("folder", metavar="DIR", type=FOLDER)
def status(folder: Path) -> int:
    """Count the done, failed and missing cells of a study's results folder; list those that are not ok."""
    from ep_bench.cli.output import status_lines

    lines, complete = status_lines(folder)
    for line in lines:
        click.echo(line)
    return 0 if complete else EXIT_CELLS


@cli.command()
@click.argument("folders", metavar="DIR...", nargs=-1, required=True, type=FOLDER)
@click.option("--out", type=FOLDER, help="Where to write.  [default: report in the first DIR]")
@click.option("--pdf", is_flag=True, help="Figures as PDF too, for papers.")
def report(folders: tuple[Path, ...], out: Path | None, pdf: bool) -> int:
    """Write tables, figures and one self-contained report.html of one or more results folders."""
    from ep_bench import report as package

    written = package.build(folders, out, pdf=pdf, log=lambda note: click.echo(f"note: {note}", err=True))
    page = next((path for path in written if path.name == "report.html"), written[-1])
    click.echo(f"{len(written)} files; open {page}")
    return 0


@cli.command()
@click.argument("folders", metavar="DIR...", nargs=-1, required=True, type=FOLDER)
@click.option(
    "--against", multiple=True, metavar="SOURCE", help="Only this source; repeatable.  [default: all that apply]"
)
@click.option("--out", type=FOLDER, help="Where to write check.csv.  [default: DIR/check.csv]")
def check(folders: tuple[Path, ...], against: tuple[str, ...], out: Path | None) -> int:
    """Compare with the published numbers; exit code 1 where one is lost and the study does not accept it."""
    from ep_bench.cli.output import check_folders

    lines, lost = check_folders(folders, against, out)
    for line in lines:
        click.echo(line)
    return EXIT_REGRESSION if lost else 0


@cli.group()
def data() -> None:
    """List, show, fetch and verify data sets."""


@data.command("list")
def data_list() -> None:
    """List the data sets and whether they are on this machine."""
    from ep_bench.cli.output import dataset_lines

    for line in dataset_lines():
        click.echo(line)


@data.command("show")
@click.argument("name")
def data_show(name: str) -> None:
    """Show the card of a data set: source, licence, citation, oddities, checksum."""
    from ep_bench.cli.output import card_lines

    for line in card_lines(name):
        click.echo(line)


@data.command("fetch")
@click.argument("names", nargs=-1)
@click.option("--all", "everything", is_flag=True, help="Every data set that has a source.")
@click.option("--quiet", is_flag=True, help="No progress.")
def data_fetch(names: tuple[str, ...], everything: bool, quiet: bool) -> None:
    """Download data sets into the cache folder, checked by their checksums."""
    from ep_bench import data as package

    if not names and not everything:
        raise click.UsageError("name data sets, or give --all")
    wanted = [name for name in package.names() if not package.card(name).embedded] if everything else list(names)
    for item in package.fetch(wanted, progress=not quiet):
        click.echo(f"{item}")


@data.command("verify")
@click.argument("names", nargs=-1)
def data_verify(names: tuple[str, ...]) -> int:
    """Check the data files on this machine against their cards; exit code 2 where one differs."""
    from ep_bench import data as package

    found = package.verify(list(names) or list(package.names()))
    for name, state, detail in found:
        click.echo(f"{name:<17} {state:<9} {detail}")

    def is_bad(name: str, state: str) -> bool:
        return state == "changed" or (state == "missing" and (name in names or package.card(name).sha256 is not None))

    return EXIT_USAGE if any(is_bad(name, state) for name, state, _ in found) else 0


@cli.group("methods")
def methods_group() -> None:
    """List methods, show one with its options and defaults, test any for conformance."""


@methods_group.command("list")
def methods_list() -> None:
    """List the methods of the registry, and those that installed packages bring."""
    from ep_bench.cli.output import method_list_lines

    for line in method_list_lines():
        click.echo(line)


@methods_group.command("show")
@click.argument("name")
def methods_show(name: str) -> None:
    """Show a method's options, their defaults and where these come from."""
    from ep_bench.cli.output import method_lines

    for line in method_lines(name):
        click.echo(line)


@methods_group.command("test")
@click.argument("target", required=False)
@click.option(
    "--option",
    "options",
    multiple=True,
    metavar="KEY=VALUE",
    help="An option of the method, VALUE as in YAML; repeatable.",
)
@click.option(
    "--seconds",
    type=click.FloatRange(min=0.0, min_open=True),
    default=60.0,
    show_default=True,
    help="Limit of one check, enforced.",
)
@click.option(
    "--task",
    type=click.Choice(["regression", "classification"]),
    help="What to test it in; by default what it does first, of a classifier classification.",
)
@click.option("--quiet", is_flag=True, help="Only what is wrong, and the last line.")
@click.option("--list", "listed", is_flag=True, help="Print the checks and what each demands; test nothing.")
def methods_test(
    target: str | None, options: tuple[str, ...], seconds: float, task: Task | None, quiet: bool, listed: bool
) -> int:
    """Test whether TARGET keeps to what studies rest on, and say in plain words what is wrong.

    TARGET is a name of the registry, `package.module:Class`, or `./file.py:Class` relative to the current folder.
    Checks run in a separate process: a crash or an endless loop is a fault of the check that met it. Advice is no
    fault. Exit code 2 where there is a fault. --list says what each check demands.
    """
    from ep_bench.conformance.output import list_lines

    if listed:
        for line in list_lines():
            click.echo(line)
        return 0
    if target is None:
        raise click.UsageError("name a TARGET, or give --list")
    return _test_method(target, options, seconds, task, quiet)


def _test_method(target: str, options: Sequence[str], seconds: float, task: Task | None, quiet: bool) -> int:
    import time

    from ep_bench.conformance.output import outcome_lines, summary
    from ep_bench.conformance.suite import examine

    begun, outcomes = time.monotonic(), []
    for outcome in examine(target, _yaml_options(options), Path.cwd(), seconds, task):
        outcomes.append(outcome)
        if not quiet or outcome.findings:
            for line in outcome_lines(outcome):
                click.echo(line)
    click.echo(summary(target, outcomes, time.monotonic() - begun))
    return EXIT_USAGE if any(outcome.status == "FAULT" for outcome in outcomes) else 0


def _yaml_options(pairs: Sequence[str]) -> dict[str, Any]:
    from ep_bench.spec.yaml_source import read_value
    from ep_bench.types import UserError

    options = {}
    for pair in pairs:
        key, equals, text = pair.partition("=")
        if not (key and equals):
            raise UserError("no option", where="--option", found=pair, allowed="KEY=VALUE")
        options[key] = read_value(text, f"--option {key}")
    return options


@cli.command()
def doctor() -> None:
    """Print versions, BLAS and threads, cores, data found, cache folders."""
    from ep_bench.cli.output import doctor_lines

    for line in doctor_lines():
        click.echo(line)
