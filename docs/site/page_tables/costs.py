"""Tables of costs, of the commands, of the public names and of the methods."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable
from typing import Any

from reference_pages import PAGES

import ep_bench
from ep_bench import methods
from ep_bench.cli import cli

from .forms import Format, of_rows, table
from .stored import FIGURES, cells, methods_of


def peers() -> list[str]:
    """Return the ratios of the times of other programs and ours, measured in one run."""
    columns: dict[str, tuple[str, Format]] = {
        "Method": ("method", "s"), "Measured": ("what", "s"), "Other program": ("program", "s"),
        "Other / ours": ("ratio", ".2g"),
    }  # fmt: skip
    rows = json.loads((FIGURES / "peers.json").read_text(encoding="utf-8"))["rows"]
    return of_rows([row | {"ratio": row["theirs"] / row["ours"]} for row in rows], columns)


def year_like() -> list[str]:
    """Return time, memory and scores on the generated set of the size of year."""
    rows: list[dict[str, Any]] = []
    for method in methods_of("year-like"):
        rows += cells("year-like", method, "year-like")
    columns = {
        "Entry": ("method", "s"), "Wall s, fit": ("fit_seconds", ".3g"), "CPU s, fit": ("fit_cpu_seconds", ".3g"),
        "CPU s, predictions": ("predict_cpu_seconds", ".3g"), "Peak memory, MB": ("peak_mb", ".0f"),
        "RMSE": ("rmse", ".2f"), "LL": ("ll", ".3f"),
    }  # fmt: skip
    return of_rows(rows, columns)


def commands() -> list[str]:
    """Return the commands with the first sentence of their help."""
    helps = {name: (command.help or "").split("\n\n")[0] for name, command in sorted(cli.commands.items())}
    body = [[f"`ep-bench {name}`", " ".join(text.split())] for name, text in helps.items()]
    return table(["Command", "Purpose"], body)


def public_names() -> list[str]:
    """Return the public names of the package with their parameters and the first line of their docstrings."""
    found = {name: getattr(ep_bench, name) for name in sorted(ep_bench.__all__) if not name.startswith("_")}
    body = [[f"`{name}({', '.join(inspect.signature(one).parameters)})`", (one.__doc__ or "").partition("\n")[0]]
            for name, one in found.items()]  # fmt: skip
    return table(["Name", "Purpose"], body)


def method_table() -> list[str]:
    """Return the methods of the registry, linked to their pages."""
    found = {name: methods.get(name) for name in methods.REGISTRY}
    body = [[f"[`{name}`]({PAGES[name]}.md)", one.title, one.paper, one.density, f"`{one.equality}`"]
            for name, one in found.items()]  # fmt: skip
    return table(["Name", "Method", "Source", "Predictive density", "Equality"], body)


TABLES: dict[str, Callable[[], list[str]]] = {
    "peers": peers,
    "year-like": year_like,
    "commands": commands,
    "methods": method_table,
    "public-names": public_names,
}
