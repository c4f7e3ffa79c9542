"""Training traces for the script of the page: few points of each known quantity, by method and data set."""

from __future__ import annotations

from typing import Any

import numpy as np

from ep_bench.report import traced_quantities
from ep_bench.report.context import ReportContext
from ep_bench.results import curves

POINTS = 20  # of a trace


def page_traces(report: ReportContext) -> dict[tuple[str, str], list[list[Any]]]:
    """Return lists of title, unit, steps and medians over splits of each quantity, by method and data set.

    Quantities without a title are internal and are omitted.
    """
    cells, entries = report.merged.cells, curves.index(report.curves.traces)
    found: dict[tuple[str, str], list[list[Any]]] = {}
    for place, mine in cells.items():
        entry = curves.find(entries, mine) if mine else None
        if entry is not None:
            names = sorted(filter(traced_quantities.words, entry["traces"]), key=traced_quantities.order)
            traces = [_trace(name, entry["traces"][name]) for name in names]
            found[place] = [trace for trace in traces if len(trace[2]) > 1]
    return found


def _trace(name: str, summary: dict[str, Any]) -> list[Any]:
    title, unit = traced_quantities.words(name) or (name, "")
    epochs = np.asarray(summary["epoch"], dtype=float)
    medians = np.asarray(summary["median"], dtype=float)
    kept = np.unique(np.linspace(0, len(epochs) - 1, POINTS).round().astype(int))
    kept = kept[np.isfinite(medians[kept])]
    return [title, "" if name == "objective" else unit, epochs[kept].astype(int).tolist(),
            [float(f"{value:.4g}") for value in medians[kept].tolist()]]  # fmt: skip
