"""Output of ``methods list`` and ``methods show``."""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Sequence
from itertools import zip_longest
from pathlib import Path

from ep_bench import adapters, methods, plugins
from ep_bench.cli.output.plugins import plugin_rows
from ep_bench.cli.output.study import space_text
from ep_bench.cli.output.text import MIN_WIDTH, columns, docstring_lines, field_lines, paragraph, terminal_width, width
from ep_bench.estimator import COMMON_OPTIONS
from ep_bench.options import Option, table, written
from ep_bench.spec import read_space

_COMMON = {
    "standardize": "standardise inputs and target by the training data; predictions are always in original units"
}


def method_list_lines() -> list[str]:
    """Return a table of the methods with title, tasks and paper; the package and reference of a plugin.

    The papers are left out on a terminal that is too narrow for them.
    """
    found = [methods.get(name) for name in methods.REGISTRY]
    rows = [(name, one.title, _tasks(one.tasks), one.paper) for name, one in zip(methods.REGISTRY, found, strict=True)]
    rows += [(name, about, "", "") for name, about in plugin_rows(plugins.METHODS, methods.REGISTRY)]
    lines = columns([("name", "method", "task", "paper"), *rows])
    narrow = terminal_width() < max(map(len, lines))
    return columns([("name", "method", "task"), *(row[:3] for row in rows)]) if narrow else lines


def _tasks(tasks: Sequence[str]) -> str:
    return "both" if len(tasks) > 1 else tasks[0]


def method_lines(name: str) -> list[str]:
    """Return the options of a method with defaults, allowed values and sources, and its documentation.

    ``name`` is in the registry, or is a plugin or an external class.
    """
    if adapters.is_target(name):
        return _target_lines(name)
    method, plugin = methods.get(name), methods.plugin(name)
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
    return [*lines, "", *docstring_lines(doc)]


def _option_lines(options: Sequence[Option]) -> list[str]:
    """Return each option with its default and, in a second column, its allowed values; the description is below."""
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
    target = adapters.resolve(use, Path.cwd())
    plugin = None if ":" in use else methods.plugin(use)
    origin = f"class {plugin.reference} of {plugin}" if plugin else "an external class"
    lines = [f"{use}: {origin}", f"  version {adapters.version(use, Path.cwd())}", ""]
    known = adapters.parameters(target)
    for key, default in (known or {}).items():
        lines.append(key if default is inspect.Parameter.empty else f"{key}: {default}")
    lines += ["any keyword"] if known is None else []
    return [*lines, f"{adapters.STANDARDIZE}: False", "", *(inspect.getdoc(target) or "").splitlines()]
