"""The command line. Commands import what they need in their bodies, so that ``--help`` answers at once."""

from __future__ import annotations

import sys
from typing import Any, NoReturn

import click

from ep_bench.cli.commands.authoring import init, schema
from ep_bench.cli.commands.common import EXIT_INTERRUPTED, EXIT_UNREAD, EXIT_USAGE, echo
from ep_bench.cli.commands.compare import compare
from ep_bench.cli.commands.data import data
from ep_bench.cli.commands.doctor import doctor
from ep_bench.cli.commands.methods import methods
from ep_bench.cli.commands.report import check, report
from ep_bench.cli.commands.sharing import cite, submit
from ep_bench.cli.commands.study import plan, run, status
from ep_bench.cli.commands.verify import verify
from ep_bench.processes.output_streams import complete_streams, discard


def main() -> NoReturn:
    """Run the command line and exit with one of the documented exit codes."""
    complete_streams()
    try:
        code = _run()
        sys.stdout.flush()
    except (BrokenPipeError, SystemExit) as error:
        if isinstance(error, SystemExit) and error.code != 1:
            raise  # such as that of a shell's completion
        discard(sys.stdout)  # the reader of the output has exited; Click then raises SystemExit with code 1
        discard(sys.stderr)
        code = EXIT_UNREAD
    sys.exit(code if isinstance(code, int) else 0)


def _run() -> Any:
    """Run the command, print its error if it has one, and return the exit code."""
    try:
        return cli.main(prog_name="ep-bench", standalone_mode=False)
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except (KeyboardInterrupt, click.Abort):
        message = "interrupted; every finished cell or part of an experiment is kept; the same command continues"
        echo([f"ep-bench: {message}"], err=True)
        return EXIT_INTERRUPTED
    except Exception as error:
        from ep_bench.errors import UserError  # imports numpy, which --help does not need

        if isinstance(error, OSError) and not isinstance(error, BrokenPipeError):
            error = UserError(f"{error.strerror or error}", where=str(error.filename or "input or output"))
        if not isinstance(error, UserError):
            raise
        from ep_bench.cli.output.text import error_items

        echo(error_items(error), err=True)
        return EXIT_USAGE


WORKFLOW: dict[str, tuple[click.Command, ...]] = {
    "Run a study": (init, plan, run, status),
    "Look at its results": (report, compare, check, verify),
    "Share it": (cite, submit),
    "What there is": (methods, data, schema, doctor),
}


class Workflow(click.Group):
    """A group of commands that ``--help`` lists in the order of use."""

    def format_commands(self, _ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write one list per step of the workflow."""
        for title, commands in WORKFLOW.items():
            with formatter.section(title):
                formatter.write_dl([(str(one.name), one.get_short_help_str(formatter.width)) for one in commands])


@click.group(cls=Workflow, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="ep-bench", prog_name="ep-bench")
def cli() -> None:
    """Baselines for Bayesian neural networks and Gaussian processes on the UCI regression splits.

    A YAML study names methods, data sets and a split scheme. `run` computes its unfinished cells, `report` writes
    tables and figures, and `check` compares the results with published numbers.

    Exit codes: 0 done, 1 a published or stored number is not reproduced, 2 wrong input, 3 some cells are not ok, 130
    interrupted, 141 the program that reads the output has exited.
    """


for command in sum(WORKFLOW.values(), ()):
    cli.add_command(command)
