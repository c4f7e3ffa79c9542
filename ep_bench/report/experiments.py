"""Figures of the studies that are no grid of cells, from the arrays that they left."""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

from ep_bench import store
from ep_bench.report.alpha_linear import alpha_linear
from ep_bench.report.figures import STYLE, Picture, finish

Arrays = Mapping[str, Any]
ARRAYS, SUMMARY = "arrays.npz", "summary.csv"


@dataclass(frozen=True)
class Drawn:
    """An experiment as the pages show it: figures and its table."""

    name: str
    study: str
    pictures: list[Picture]
    head: list[str]
    rows: list[list[str]]

    @property
    def title(self) -> str:
        return f"{self.study}: {self.name.replace('_', ' ')}"

    def for_page(self, embedded: Callable[[Picture], dict[str, str]]) -> dict[str, Any]:
        """Return the parts that the template names."""
        return {
            "id": "experiment-" + re.sub(r"\W+", "-", self.study),
            "title": self.title,
            "pictures": [embedded(picture) for picture in self.pictures],
            "head": self.head,
            "rows": self.rows,
            "caption": "Summary",
        }


def draw(study: store.StudyResults) -> Drawn:
    """Return an experiment's figures (none where it has no arrays or nothing is known of it) and its summary table."""
    entry = study.lock["experiment"]
    name = str(entry.get("name", "")) if isinstance(entry, Mapping) else str(entry)
    path = study.folder / ARRAYS
    pictures = []
    if name in DRAWERS and path.exists():
        with np.load(path, allow_pickle=False) as arrays:
            pictures = [DRAWERS[name](dict(arrays), study.name)]
    head, rows = _summary(study)
    return Drawn(name, study.name, pictures, head, rows)


def _summary(study: store.StudyResults) -> tuple[list[str], list[list[str]]]:
    path = study.folder / SUMMARY
    if not path.exists():
        return [], []
    with path.open(encoding="utf-8", newline="") as file:
        lines = list(csv.reader(file))
    return (lines[0], [[_short(text) for text in line] for line in lines[1:]]) if lines else ([], [])


def _short(text: str) -> str:
    try:
        return f"{float(text):.5g}" if re.search(r"[.e]", text) else text
    except ValueError:
        return text


def cubic_toy(arrays: Arrays, study: str) -> Picture:
    """Return one panel a method: mean and 3 standard deviations, data and true function (PBP paper, figure 1).

    Arrays: grid, truth (G,); x, y (n,); labels (M,); mean_i, std_i (G,) of method i.
    """
    labels = [str(label) for label in arrays["labels"]]
    columns = min(len(labels), 4)
    rows = math.ceil(len(labels) / columns)
    grid, truth, x, y = (np.asarray(arrays[name]) for name in ("grid", "truth", "x", "y"))
    low, high = _range(arrays, len(labels))
    with mpl.rc_context(STYLE):
        width = 2.9 if columns > 1 else 4.6  # the legend needs as much
        figure = Figure(figsize=(0.6 + width * columns, 0.5 + 0.8 * width * rows), layout="constrained")
        axes = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False).ravel()
        for i, (label, ax) in enumerate(zip(labels, axes, strict=False)):
            mean, std = np.asarray(arrays[f"mean_{i}"]), np.asarray(arrays[f"std_{i}"])
            ax.fill_between(grid, mean - 3 * std, mean + 3 * std, color="0.85", linewidth=0, label="mean ± 3 sd")
            ax.plot(grid, mean, color="#0072B2", linestyle="--", linewidth=1.3, label="mean")
            ax.plot(grid, truth, color="black", linewidth=1.0, label="true function")
            ax.plot(x, y, "o", color="black", markersize=3, label="data")
            ax.set_title(label)
            ax.set_xlim(grid[0], grid[-1])
            ax.set_ylim(low, high)
        for ax in axes[len(labels) :]:
            ax.set_axis_off()
        figure.supxlabel("input x", fontsize=8)
        figure.supylabel("target y", fontsize=8)
        figure.legend(*axes[0].get_legend_handles_labels(), loc="outside upper center", ncols=4, frameon=False)
    caption = (
        "Predictions on the cubic toy data: mean (dashed), mean ± 3 standard deviations (shaded), true function (line) "
        "and data (points), as in figure 1 of Hernández-Lobato and Adams (2015)."
    )
    return finish(figure, f"cubic-toy-{study}", caption)


def _range(arrays: Arrays, methods: int) -> tuple[float, float]:
    """Return the range of targets to show: every band, but at most half the true function's range beyond it."""
    bands = [(arrays[f"mean_{i}"], 3 * arrays[f"std_{i}"]) for i in range(methods)]
    truth = arrays["truth"]
    room = 0.5 * float(np.ptp(truth))
    low = min(float(np.min(mean - band)) for mean, band in bands)
    high = max(float(np.max(mean + band)) for mean, band in bands)
    low = min(max(low, float(np.min(truth)) - room), float(np.min(truth)))
    high = max(min(high, float(np.max(truth)) + room), float(np.max(truth)))
    return low - 0.05 * (high - low), high + 0.05 * (high - low)


DRAWERS: dict[str, Callable[[Arrays, str], Picture]] = {"cubic_toy": cubic_toy, "alpha_linear": alpha_linear}
