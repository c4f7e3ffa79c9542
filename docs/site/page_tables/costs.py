"""Tables of costs, of the commands and of the methods."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from committed_results import committed_folders
from reference_pages import PAGES

from ep_bench import methods
from ep_bench.cli import cli
from ep_bench.report.merge import cpu_seconds

from .forms import NONE, of_rows, table
from .stored import FIGURES, cells, merged, methods_of, stored_study, with_cells

COPIES = ("suite",)  # of other studies' cells


def computing_time() -> list[str]:
    """Return the command, the finished cells, the hours and the processors of each study."""
    body = []
    for name in (folder.name for folder in committed_folders()):
        if name not in COPIES:
            command = f"`ep-bench run {name.replace('-', '_').replace('table_1', 'table1')}`"
            body.append([f"[{name}](../results/{name})", command, *_cells_and_hours(name), _processors(name)])
    return table(["Results", "Command", "Finished cells", "CPU hours", "Processors"], body)


def _cells_and_hours(folder: str) -> list[str]:
    if folder not in with_cells():
        seconds = stored_study(folder).lock.get("seconds")
        return ["experiment", NONE if seconds is None else _hours(seconds)]
    rows = merged(folder).ok()
    return [f"{len(rows):,}", _hours(float(cpu_seconds(rows).sum()))]


def _hours(seconds: float) -> str:
    return f"{seconds / 3600.0:.2g}" if seconds >= 36.0 else "< 0.01"


def _processors(folder: str) -> str:
    machines = [one.get("machine") or {} for one in (stored_study(folder).lock.get("environments") or {}).values()]
    return "; ".join(sorted({one["processor"] for one in machines if "processor" in one})) or "not recorded"


def peers() -> list[str]:
    """Return CPU times of ours and of other programs in one run, and the evidences that both reach."""
    columns = {
        "Method": ("method", "s"), "Measured": ("what", "s"), "Other program": ("program", "s"), "Unit": ("unit", "s"),
        "Ours": ("ours", ".3g"), "Other": ("theirs", ".3g"), "Other / ours": ("ratio", ".2g"),
        "Evidence, ours": ("our_value", _evidence), "Evidence, other": ("their_value", _evidence),
    }  # fmt: skip
    rows = json.loads((FIGURES / "peers.json").read_text(encoding="utf-8"))["rows"]
    none = {"our_value": None, "their_value": None}
    return of_rows([none | row | {"ratio": row["theirs"] / row["ours"]} for row in rows], columns)


def _evidence(value: float | None) -> str:
    return NONE if value is None else f"{value:.1f}"


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


def method_table() -> list[str]:
    """Return the methods of the registry, linked to their pages."""
    found = {name: methods.get(name) for name in methods.REGISTRY}
    body = [[f"[`{name}`]({PAGES[name]}.md)", one.title, one.paper, one.density, f"`{one.equality}`"]
            for name, one in found.items()]  # fmt: skip
    return table(["Name", "Method", "Source", "Predictive density", "Equality"], body)


TABLES: dict[str, Callable[[], list[str]]] = {
    "computing-time": computing_time,
    "peers": peers,
    "year-like": year_like,
    "commands": commands,
    "methods": method_table,
}
