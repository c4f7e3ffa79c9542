"""Markov chains: diagnostics over the splits.

Vehtari, Gelman, Simpson, Carpenter and Bürkner (2021), Rank-normalization, folding, and localization: an improved
R-hat for assessing convergence of MCMC, Bayesian Analysis 16: the limits of R-hat and of effective sample sizes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ep_bench.convergence import DAGGER, NEARLY, R_HAT, RING
from ep_bench.plotting.page import Item, Section, Table, item
from ep_bench.report.context import ReportContext
from ep_bench.report.merge import MergedStudies
from ep_bench.types import Array

ORDER = 100
ESS = 400.0  # limit of Vehtari et al. 2021
LOW = "↓"  # marks lower values
MAIN = (
    "r_hat_predictions",
    "r_hat_test_rows",
    "r_hat_training_inputs",
    "r_hat_midpoints",
    "ess_bulk_predictions",
    "ess_tail_predictions",
    "divergences",
    "acceptance",
)
FAMILIES = {"r_hat_": "R-hat", "ess_bulk_": "bulk ESS", "ess_tail_": "tail ESS"}
WORDS = {"test_rows": "test data"}  # names that the page shows differently


@dataclass(frozen=True)
class ChainDiagnostics:
    """Diagnostics of a method on one data set: one number per split and name, NaN for missing ones."""

    method: str
    dataset: str
    splits: int
    numbers: Mapping[str, Array]

    def count(self, name: str) -> int:
        """Return the number of splits with this diagnostic."""
        return int(np.isfinite(self.numbers[name]).sum()) if name in self.numbers else 0

    def has(self, name: str) -> bool:
        """Return whether any split has this diagnostic."""
        return self.count(name) > 0

    def summary(self, name: str) -> tuple[float, float, float]:
        """Return median, minimum and maximum over the splits with this diagnostic."""
        known = self.numbers[name][np.isfinite(self.numbers[name])]
        return float(np.median(known)), float(known.min()), float(known.max())


def collect(merged: MergedStudies) -> list[ChainDiagnostics]:
    """Return the diagnostics of all methods and data sets that have some."""
    known, found = merged.curves.diagnostics, []
    for method, dataset in ((m, d) for m in merged.methods for d in merged.datasets):
        cells = [known.get(key, {}) for _, key in sorted(merged.cells.get((method, dataset), {}).items())]
        names = sorted({name for numbers in cells for name in numbers})
        if names:
            numbers = {name: np.array([one.get(name) for one in cells], dtype=np.float64) for name in names}
            found.append(ChainDiagnostics(method, dataset, len(cells), numbers))
    return found


def title(name: str) -> str:
    """Return the column heading of a diagnostic."""
    for prefix, family in FAMILIES.items():
        if name.startswith(prefix):
            return f"{family}, {_spaced(name.removeprefix(prefix))}"
    return _spaced(name)


def _spaced(name: str) -> str:
    return WORDS.get(name, name.replace("_", " "))


def low_is_bad(name: str) -> bool:
    """Return whether low values of a diagnostic are worse than high ones."""
    return name.startswith("ess_") or name == "acceptance"


def mark(name: str, value: float) -> str:
    """Return the mark of a value beyond the limits of its diagnostic, empty within them or without any."""
    if name.startswith("r_hat_"):
        return DAGGER if value > NEARLY else RING if value > R_HAT else ""
    return LOW if name.startswith("ess_") and value < ESS else ""


def show(name: str, value: float) -> str:
    """Return a diagnostic as text."""
    if name.startswith("r_hat_"):
        return f"{value:.3f}" if value < 100.0 else f"{value:.3g}"
    if name.startswith("ess_") or (value == round(value) and abs(value) < 1e6):
        return f"{value:.0f}"
    return f"{value:.2f}" if name == "acceptance" else f"{value:.3g}"


CAPTION = (
    "Diagnostics of the chains after warm-up: median over the splits, and the worst split. R-hat and effective sample "
    "size (ESS) of predictions are those of the worst monitored input; these are training inputs and midpoints between "
    "training inputs, where chains agree last. For test data they are those of the worst test input. Divergences are "
    f"summed over the chains. On some split: {DAGGER} R-hat above {NEARLY:g}, {RING} R-hat above {R_HAT:g}, {LOW} ESS "
    f"below {ESS:g} (limits of Vehtari, Gelman, Simpson, Carpenter and Bürkner 2021)"
)


def sections(report: ReportContext) -> list[Section]:
    """Return the section of Markov chains, if any method is a sampler."""
    found = collect(report.merged)
    return [Section("chains", "Markov chains", tables=_tables(found))] if found else []


def _tables(found: Sequence[ChainDiagnostics]) -> list[Table]:
    """Return the table of the diagnostics that some chains have."""
    names = [name for name in MAIN if any(one.has(name) for one in found)]
    head = ["method", "data set", "splits", *(title(name) for name in names)]
    rows: list[list[Any]] = [
        [one.method, one.dataset, item(str(one.splits), one.splits), *(_entry(one, name) for name in names)]
        for one in found
    ]
    return [Table(head, rows, CAPTION)] if names else []


def _entry(one: ChainDiagnostics, name: str) -> Item:
    """Return the median, with the worst split and the number of splits in small print, and a mark beyond the limit."""
    if not one.has(name):
        return item("–", "")
    median, low, high = one.summary(name)
    worst, word = (low, "lowest") if low_is_bad(name) else (high, "highest")
    text, small = show(name, median), []
    if show(name, worst) != text:
        small.append(f"{word} {show(name, worst)}")
    if one.count(name) < one.splits:
        small.append(f"{one.count(name)} of {one.splits} splits")
    return item(text + mark(name, worst), median, small=", ".join(small))
