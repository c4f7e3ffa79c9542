"""The command line. Commands import what they need in their bodies, so that ``--help`` answers at once."""

from __future__ import annotations

import gc
import os
import sys
from typing import NoReturn

import click

from ep_bench.cli.commands.authoring import init, schema
from ep_bench.cli.commands.common import EXIT_INTERRUPTED, EXIT_USAGE
from ep_bench.cli.commands.data import data
from ep_bench.cli.commands.machine import doctor
from ep_bench.cli.commands.methods import methods
from ep_bench.cli.commands.report import check, report, serve
from ep_bench.cli.commands.study import plan, run, status
from ep_bench.cli.commands.verify import verify


def main() -> NoReturn:
    """Run the command line and exit with one of the documented exit codes."""
    gc.set_threshold(50_000)  # by default a tenth of the time of reports and imports is spent on searches for garbage
    try:
        code = cli.main(prog_name="ep-bench", standalone_mode=False)
        sys.stdout.flush()
    except click.ClickException as error:
        error.show()
        code = error.exit_code
    except (KeyboardInterrupt, click.Abort):
        click.echo(
            "ep-bench: interrupted; every finished cell or part of an experiment is kept; the same command continues",
            err=True,
        )
        code = EXIT_INTERRUPTED
    except BrokenPipeError:  # the reader of our output, such as `head`, has exited
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 0
    except Exception as error:
        from ep_bench.errors import UserError  # imports numpy, which --help does not need

        if isinstance(error, OSError):
            error = UserError(f"{error.strerror or error}", where=str(error.filename or "input or output"))
        if not isinstance(error, UserError):
            raise
        from ep_bench.cli.output.errors import error_lines

        click.echo("\n".join(error_lines(error)), err=True)
        code = EXIT_USAGE
    sys.exit(code if isinstance(code, int) else 0)


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="ep-bench", prog_name="ep-bench")
def cli() -> None:
    """Baselines for Bayesian neural networks and Gaussian processes on the UCI regression splits.

    A YAML study names methods, data sets and a split scheme. `run` computes its unfinished cells, `report` writes
    tables and figures, and `check` compares the results with published numbers.

    Exit codes: 0 done, 1 a published or stored number is not reproduced, 2 wrong input, 3 some cells are not ok, 130
    interrupted.
    """


for command in (run, plan, status, report, serve, check, verify, data, methods, init, schema, doctor):
    cli.add_command(command)
