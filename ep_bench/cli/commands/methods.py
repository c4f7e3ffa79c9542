"""``methods``: the registry, options of methods, and conformance tests."""

from __future__ import annotations

import inspect
import textwrap
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ep_bench.cli.commands.common import EXIT_USAGE, echo_lines

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ep_bench.options import Option
    from ep_bench.types import Task

_COMMON = {
    "standardize": "standardise inputs and target by the training data; predictions are always in original units"
}


@click.group()
def methods() -> None:
    """List, show and test methods."""


@methods.command("list")
def methods_list() -> None:
    """List the methods of the registry and of installed plugins."""
    echo_lines(method_list_lines())


@methods.command("show")
@click.argument("name")
def methods_show(name: str) -> None:
    """Show the options of a method, with their defaults and the source of each default."""
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


def method_list_lines() -> list[str]:
    """Return a table of the methods with title, tasks and paper; the package and reference of a plugin.

    The papers are left out on a terminal that is too narrow for them.
    """
    from ep_bench import methods as registry
    from ep_bench import plugins
    from ep_bench.cli.output.text import columns, terminal_width

    found = [registry.get(name) for name in registry.REGISTRY]
    rows = [(name, one.title, _tasks(one.tasks), one.paper) for name, one in zip(registry.REGISTRY, found, strict=True)]
    rows += [(name, about, "", "") for name, about in plugins.described(plugins.METHODS, registry.REGISTRY)]
    lines = columns([("name", "method", "task", "paper"), *rows])
    narrow = terminal_width() < max(map(len, lines))
    return columns([("name", "method", "task"), *(row[:3] for row in rows)]) if narrow else lines


def _tasks(tasks: Sequence[str]) -> str:
    return "both" if len(tasks) > 1 else tasks[0]


def method_lines(name: str) -> list[str]:
    """Return the options of a method with defaults, allowed values and sources, and its documentation.

    ``name`` is in the registry, or is a plugin or an external class.
    """
    from ep_bench import adapters
    from ep_bench import methods as registry
    from ep_bench.cli.output.study import space_text
    from ep_bench.cli.output.text import field_lines
    from ep_bench.estimator import COMMON_OPTIONS
    from ep_bench.options import Option, table, written
    from ep_bench.spec import read_space

    if adapters.is_target(name):
        return _target_lines(name)
    method, plugin = registry.get(name), registry.plugin(name)
    lines = [
        f"{name}: {method.title}",
        f"  {method.paper}",
        f"  version {method.version}; {', '.join(method.tasks)}",
        *([f"  of {plugin}: {plugin.reference}"] if plugin else []),
        "",
    ]
    common = [Option(key, written(value), "true or false", _COMMON[key]) for key, value in COMMON_OPTIONS.items()]
    lines += _option_lines([*table(method.config), *common])
    if method.space:
        space, _ = read_space(method.space, lambda *_: [])
        lines += ["", *field_lines("tune searches", space_text(space))]
    doc = inspect.getdoc(inspect.getmodule(method.fit)) or ""
    return [*lines, "", *doc.splitlines()]


def _option_lines(options: Sequence[Option]) -> list[str]:
    """Return each option with its default and, in a second column, its allowed values; the description is below."""
    from ep_bench.cli.output.text import MIN_WIDTH, paragraph, width

    heads = [f"{option.name}: {option.default}".rstrip() for option in options]
    column = max(map(len, heads)) + 2
    lines = []
    for head, option in zip(heads, options, strict=True):
        allowed = textwrap.wrap(option.takes, max(width() - column, MIN_WIDTH)) or [""]
        lines += [f"{first:{column}}{part}".rstrip() for first, part in zip_longest([head], allowed, fillvalue="")]
        lines += paragraph(option.description, "    ")
    return lines


def _target_lines(use: str) -> list[str]:
    """Return the package or version of an external class, its parameters with defaults, and its documentation."""
    from ep_bench import adapters
    from ep_bench import methods as registry

    target = adapters.resolve(use, Path.cwd())
    plugin = None if ":" in use else registry.plugin(use)
    origin = f"class {plugin.reference} of {plugin}" if plugin else "an external class"
    lines = [f"{use}: {origin}", f"  version {adapters.version(use, Path.cwd())}", ""]
    known = adapters.parameters(target)
    for key, default in (known or {}).items():
        lines.append(key if default is inspect.Parameter.empty else f"{key}: {default}")
    lines += ["any keyword"] if known is None else []
    return [*lines, f"{adapters.STANDARDIZE}: False", "", *(inspect.getdoc(target) or "").splitlines()]
