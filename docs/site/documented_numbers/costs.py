"""The computing time of each study in the repository."""

from __future__ import annotations

from collections.abc import Callable

from ep_bench.results import store

from .markdown import table
from .stored import RESULTS, finished, stored_study

PARTS = ("tune", "fit", "predict")
NOT_LISTED = ("suite", "quickstart")  # copies of other studies' cells, and results that are not committed


def _row_hours(row: dict[str, object]) -> tuple[float, bool]:
    """Return the hours of a cell, and whether they are wall hours because its CPU times are not stored."""
    wall = row.get("fit_cpu_seconds") is None
    kind = "seconds" if wall else "cpu_seconds"
    return sum(float(row.get(f"{part}_{kind}") or 0.0) for part in PARTS) / 3600.0, wall


def _text(hours: float) -> str:
    return f"{hours:.2g}" if hours >= 0.01 else "< 0.01"


def computing_time() -> list[str]:
    """Return the command, the finished cells and the hours of each study."""
    body = []
    for folder in sorted(path.parent for path in RESULTS.glob(f"*/{store.LOCK}")):
        name = folder.name
        if name in NOT_LISTED:
            continue
        command = f"`ep-bench run {name.replace('-', '_').replace('table_1', 'table1')}`"
        lock = stored_study(name).lock
        if "experiment" in lock:
            hours = f"{_text(lock['seconds'] / 3600.0)} *" if "seconds" in lock else "–"
            body.append([f"[{name}](../results/{name})", command, "experiment", hours])
            continue
        spent = [_row_hours(row) for row in finished(name)]
        star = " *" if any(wall for _, wall in spent) else ""
        hours = f"{_text(sum(hours for hours, _ in spent))}{star}"
        body.append([f"[{name}](../results/{name})", command, f"{len(spent):,}", hours])
    return table(["Results", "Command", "Finished cells", "CPU hours"], body)


TABLES: dict[str, Callable[[], list[str]]] = {"computing-time": computing_time}
