"""Predictions over one input: one panel per method with mean, standard deviation, data and, if known, the truth."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from ep_bench.plotting import function_panels
from ep_bench.plotting.function_panels import FunctionPanel
from ep_bench.plotting.page import Picture, Section
from ep_bench.plotting.style import COLUMNS
from ep_bench.report.context import ReportContext
from ep_bench.results import curves

ORDER = 80
PANELS = 4 * COLUMNS  # per figure


def sections(report: ReportContext) -> list[Section]:
    """Return the figures of the data sets with one input whose predictions are stored."""
    found = [picture for dataset in report.merged.datasets for picture in pictures(report, dataset)]
    return [Section("functions", "Predictions over one input", pictures=found)] if found else []


def pictures(report: ReportContext, dataset: str) -> list[Picture]:
    """Return the figures of a data set, none without stored predictions."""
    cells, known = report.merged.cells, curves.index(report.curves.panels)
    entries = {m: curves.find(known, cells.get((m, dataset), {})) for m in report.merged.methods}
    found = {method: entry for method, entry in entries.items() if entry}
    splits = {entry["splits"][0] for entry in found.values()}
    panels = [
        _panel(method if len(splits) == 1 else f"{method} (split {entry['splits'][0]})", entry["panel"])
        for method, entry in found.items()
    ]
    where = f"split {min(splits)}" if len(splits) == 1 else "the split in the title of each panel"
    return list(_figures(panels, f"functions-{dataset}", f"Predictions on {dataset}, {where}: ")) if panels else []


def _panel(title: str, kept: Mapping[str, Any]) -> FunctionPanel:
    """Return the panel of one entry of ``curves.json``."""
    arrays = {key: None if value is None else np.asarray(value, dtype=np.float64) for key, value in kept.items()}
    names = {"x": "x_train", "y": "y_train"}
    fields: dict[str, Any] = {name: arrays[names.get(name, name)] for name in FunctionPanel._fields if name != "title"}
    return FunctionPanel(title, **fields)


def _figures(panels: Sequence[FunctionPanel], name: str, about: str) -> Iterator[Picture]:
    """Yield the panels in figures of at most ``PANELS``."""
    parts = [panels[start : start + PANELS] for start in range(0, len(panels), PANELS)]
    for place, part in enumerate(parts):
        yield function_panels.draw(part, f"{name}-{place + 1}" if len(parts) > 1 else name, about)
