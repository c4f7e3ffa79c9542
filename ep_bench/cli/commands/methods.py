"""``methods``: the registry, options of methods, and conformance tests."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ep_bench.cli.commands.common import EXIT_USAGE, echo

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ep_bench.cli.output.text import Columns, Item
    from ep_bench.types import Task

_COMMON = {
    "standardize": "standardise inputs and target by the training data; predictions are always in original units"
}


@click.group()
def methods() -> None:
    """List, show and test methods."""


@methods.command("list")
def methods_list() -> None:
    """List the methods of the registry."""
    echo([method_table()])


@methods.command("show")
@click.argument("name")
def methods_show(name: str) -> None:
    """Show the options of a method, with their defaults and the source of each default."""
    echo(method_items(name))


@methods.command("test")
@click.argument("target")
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
def methods_test(target: str, options: tuple[str, ...], seconds: float, task: Task | None, quiet: bool) -> int:
    """Test the conformance of TARGET, any method.

    TARGET is a name of the registry, `package.module:Class`, or `./file.py:Class` relative to the current folder.
    Each check runs in a separate process; a crash or an endless loop is a fault in that check. Advice is not a fault.
    Exits with status 2 if there is a fault.
    """
    import time

    from ep_bench.cli.output.conformance import outcome_items, summary
    from ep_bench.conformance.suite import examine

    started, outcomes = time.monotonic(), []
    for outcome in examine(target, _parse_options(options), Path.cwd(), seconds, task):
        outcomes.append(outcome)
        if not quiet or outcome.findings:
            echo(outcome_items(outcome))
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


def method_table() -> Columns:
    """Return a table of the methods with title, tasks and paper."""
    from ep_bench import methods as registry
    from ep_bench.cli.output.text import Columns

    found = [registry.get(name) for name in registry.REGISTRY]
    tasks = ["both" if len(one.tasks) > 1 else one.tasks[0] for one in found]
    rows = [(name, task, one.title, one.paper) for name, task, one in zip(registry.REGISTRY, tasks, found, strict=True)]
    return Columns([("name", "task", "method", "paper"), *rows], drop=["paper", "task"])


def method_items(name: str) -> list[Item]:
    """Return the options of a method with defaults, allowed values and sources, and its documentation.

    ``name`` is in the registry, or an external class.
    """
    from ep_bench import adapters
    from ep_bench import methods as registry
    from ep_bench.cli.output.study import space_text
    from ep_bench.cli.output.text import fields, indented
    from ep_bench.estimator import COMMON_OPTIONS
    from ep_bench.options import Option, table, written
    from ep_bench.spec import read_space

    if adapters.is_target(name):
        return _target_items(name)
    method = registry.get(name)
    about = [method.paper, f"version {method.version}; {', '.join(method.tasks)}"]
    common = [Option(key, written(value), "true or false", _COMMON[key]) for key, value in COMMON_OPTIONS.items()]
    options = fields(
        [
            (f"{option.name}: {option.default}".rstrip(), f"{option.takes}\n{option.description}")
            for option in [*table(method.config), *common]
        ]
    )
    items: list[Item] = [f"{name}: {method.title}", *(indented(text, 2) for text in about), "", options]
    if method.space:
        space, _ = read_space(method.space, lambda *_: [])
        items += ["", fields([("tune searches", space_text(space))])]
    return [*items, "", _documentation(inspect.getmodule(method.fit))]


def _documentation(of: object) -> str:
    """Return a docstring whose paragraphs are one line each: a long line continues on the next one."""
    return re.sub(r"(?<=.{85})\n(?=\S)(?!Deviation)", " ", inspect.getdoc(of) or "")


def _target_items(use: str) -> list[Item]:
    """Return the version of an external class, its parameters with defaults, and its documentation."""
    from ep_bench import adapters

    target = adapters.resolve(use, Path.cwd())
    lines = [f"{use}: an external class", f"  version {adapters.version(use, Path.cwd())}", ""]
    known = adapters.parameters(target)
    for key, default in (known or {}).items():
        lines.append(key if default is inspect.Parameter.empty else f"{key}: {default}")
    lines += ["any keyword"] if known is None else []
    return [*lines, f"{adapters.STANDARDIZE}: False", "", _documentation(target)]
