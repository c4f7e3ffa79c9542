"""Predictions over one input: a panel a method with mean, deviations, data and, where it is known, the truth."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from ep_bench.plotting import function_panels
from ep_bench.plotting.page import Picture
from ep_bench.plotting.style import COLUMNS
from ep_bench.report.merge import MergedStudies
from ep_bench.results import curves

PANELS = 4 * COLUMNS  # of one figure


def collect(merged: MergedStudies, kept: curves.Curves) -> list[Picture]:
    """Return the figures of the data sets that have one input, as far as their predictions are known."""
    cells, known = merged.cells(), curves.index(kept.panels)
    pictures: list[Picture] = []
    for dataset in merged.datasets:
        entries = {m: curves.find(known, cells.get((m, dataset), {})) for m in merged.methods}
        found = {method: entry for method, entry in entries.items() if entry}
        splits = {entry["splits"][0] for entry in found.values()}
        panels = [
            _panel(method if len(splits) == 1 else f"{method} (split {entry['splits'][0]})", entry["panel"])
            for method, entry in found.items()
        ]
        where = f"split {min(splits)}" if len(splits) == 1 else "the split that each panel names"
        pictures += _several(panels, f"functions-{dataset}", f"Predictions on {dataset}, {where}: ") if panels else []
    return pictures


def _panel(title: str, kept: Mapping[str, Any]) -> function_panels.FunctionPanel:
    arrays = {key: None if value is None else np.asarray(value, dtype=np.float64) for key, value in kept.items()}
    test = {"x_test": arrays["x_test"], "y_test": arrays["y_test"]}
    main: dict[str, Any] = {key: arrays[key] for key in ("grid", "mean", "std", "truth")}
    return function_panels.FunctionPanel(title=title, **main, x=arrays["x_train"], y=arrays["y_train"], **test)  # type: ignore[arg-type]


def _several(panels: Sequence[function_panels.FunctionPanel], name: str, about: str) -> Iterator[Picture]:
    parts = [panels[start : start + PANELS] for start in range(0, len(panels), PANELS)]
    for place, part in enumerate(parts):
        yield function_panels.draw(part, f"{name}-{place + 1}" if len(parts) > 1 else name, about)
