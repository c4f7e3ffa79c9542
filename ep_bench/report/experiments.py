"""Figures of the studies that are no grid of cells, from the arrays that they left."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ep_bench import store
from ep_bench.report import functions
from ep_bench.report.alpha_linear import alpha_linear
from ep_bench.report.figures import Picture

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
            pictures = [DRAWERS[name](dict(arrays), study)]
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


def cubic_toy(arrays: Arrays, study: store.StudyResults) -> Picture:
    """Return one panel a method: mean and 3 standard deviations, data and true function.

    Arrays: grid, truth (G,); x, y (n,); labels (M,); mean_i, std_i (G,) of method i.
    """
    grid, truth, x, y = (np.asarray(arrays[name]) for name in ("grid", "truth", "x", "y"))
    none = np.empty(0)
    panels = [
        functions.Panel(str(label), grid, arrays[f"mean_{i}"], arrays[f"std_{i}"], truth, x, y, none, none)
        for i, label in enumerate(arrays["labels"])
    ]
    entries = study.lock.get("options", {}).get("methods", ())
    figures = "figure 1 of Hernández-Lobato and Adams (2015)"
    if any(entry.get("use") == "bb_alpha" for entry in entries):
        figures += " and the toy figure of black-box alpha (Hernández-Lobato et al. 2016, supplement, figure 5)"
    return functions.draw(panels, f"cubic-toy-{study.name}", f"Predictions on the cubic toy data, as in {figures}: ")


DRAWERS: dict[str, Callable[[Arrays, store.StudyResults], Picture]] = {
    "cubic_toy": cubic_toy,
    "alpha_linear": lambda arrays, study: alpha_linear(arrays, study.name),
}
