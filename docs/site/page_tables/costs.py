"""Tables of costs, of the commands, of the public names and of the methods."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable

from reference_pages import PAGES

import ep_bench
from ep_bench import methods
from ep_bench.cli import cli
from ep_bench.runner.earlier_results import measured_costs

from .forms import NONE, table
from .stored import FIGURES


def peers() -> list[str]:
    """Return the ratios of the times of other programs and ours, measured in one run."""
    files = [FIGURES / name for name in ("peers.json", "step-peers.json")]
    rows = [row for file in files for row in json.loads(file.read_text(encoding="utf-8"))["rows"]]
    ratios = (float(f"{row['theirs'] / row['ours']:.2g}") for row in rows)
    body = [[row["method"], row["what"], row["program"], f"{ratio:g}"] for row, ratio in zip(rows, ratios, strict=True)]
    return table(["Method", "Measured", "Other program", "Other / ours"], body)


def costs_by_points() -> list[str]:
    """Return the CPU seconds of one fit by the number of training points, and the peak memory of the largest fit."""
    found = measured_costs()
    counts = sorted({row["n"] for row in found["rows"]})
    body = []
    for name in sorted({row["method"] for row in found["rows"]}):
        rows = {row["n"]: row for row in found["rows"] if row["method"] == name}
        times = [_seconds(rows[n], found["limit"]) if n in rows else NONE for n in counts]
        body.append([f"`{name}`", *times, f"{max(row.get('peak_mb', 0) for row in rows.values()):,}"])
    return table(["Method", *(f"{n:,}" for n in counts), "MiB"], body)


def _seconds(row: dict[str, float], limit: float) -> str:
    """Return the CPU seconds of a fit with two digits, or that they exceed the limit."""
    seconds = row.get("fit_cpu_seconds")
    if seconds is None:
        return f"> {limit:g}"
    return "< 0.01" if seconds < 0.01 else f"{float(f'{seconds:.2g}'):g}"


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
    "costs-by-points": costs_by_points,
    "commands": commands,
    "methods": method_table,
    "public-names": public_names,
}
