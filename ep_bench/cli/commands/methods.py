"""``methods``: the registry, options of methods, and conformance tests."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ep_bench.cli.commands.common import EXIT_USAGE, echo_lines

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ep_bench.types import Task


@click.group()
def methods() -> None:
    """List, show and test methods."""


@methods.command("list")
def methods_list() -> None:
    """List the methods of the registry and of installed plugins."""
    from ep_bench.cli.output.methods import method_list_lines

    echo_lines(method_list_lines())


@methods.command("show")
@click.argument("name")
def methods_show(name: str) -> None:
    """Show the options of a method, with their defaults and the source of each default."""
    from ep_bench.cli.output.methods import method_lines

    echo_lines(method_lines(name))


@methods.command("test")
@click.argument("target", required=False)
@click.option(
    "--option",
    "options",
    multiple=True,
    metavar="KEY=VALUE",
    help="An option of the method; VALUE is read as YAML. Repeatable.",
)
@click.option(
    "--seconds",
    type=click.FloatRange(min=0.0, min_open=True),
    default=60.0,
    show_default=True,
    help="Time limit of one check.",
)
@click.option(
    "--task",
    type=click.Choice(["regression", "classification"]),
    help="Task of the tests.  [default: the first task of the method]",
)
@click.option("--quiet", is_flag=True, help="Print findings and the last line only.")
@click.option("--list", "listed", is_flag=True, help="Print the checks and their requirements; test nothing.")
def methods_test(
    target: str | None, options: tuple[str, ...], seconds: float, task: Task | None, quiet: bool, listed: bool
) -> int:
    """Test the conformance of TARGET, any method.

    TARGET is a name of the registry, `package.module:Class`, or `./file.py:Class` relative to the current folder.
    Each check runs in a separate process; a crash or an endless loop is a fault in that check. Advice is not a fault.
    Exits with status 2 if there is a fault. --list prints the requirements.
    """
    from ep_bench.conformance.output import list_lines

    if listed:
        echo_lines(list_lines())
        return 0
    if target is None:
        raise click.UsageError("name a TARGET, or use --list")
    return _test_method(target, options, seconds, task, quiet)


def _test_method(target: str, options: Sequence[str], seconds: float, task: Task | None, quiet: bool) -> int:
    import time

    from ep_bench.conformance.output import outcome_lines, summary
    from ep_bench.conformance.suite import examine

    started, outcomes = time.monotonic(), []
    for outcome in examine(target, _parse_options(options), Path.cwd(), seconds, task):
        outcomes.append(outcome)
        if not quiet or outcome.findings:
            echo_lines(outcome_lines(outcome))
    click.echo(summary(target, outcomes, time.monotonic() - started))
    return EXIT_USAGE if any(outcome.status == "FAULT" for outcome in outcomes) else 0


def _parse_options(pairs: Sequence[str]) -> dict[str, Any]:
    from ep_bench.errors import UserError
    from ep_bench.spec.yaml_source import read_value

    options = {}
    for pair in pairs:
        key, equals, text = pair.partition("=")
        if not (key and equals):
            raise UserError("not an option", where="--option", found=pair, allowed="KEY=VALUE")
        options[key] = read_value(text, f"--option {key}")
    return options
