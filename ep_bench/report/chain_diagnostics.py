"""Markov chains: diagnostics over the splits, and of one split a trace and the ranks of what each chain monitors.

Vehtari, Gelman, Simpson, Carpenter and Buerkner (2021), Rank-normalization, folding, and localization: an improved
R-hat for assessing convergence of MCMC, Bayesian Analysis 16: the limits of R-hat and of effective sample sizes.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ep_bench.plotting.page import Picture
from ep_bench.report import chain_figures
from ep_bench.report.chain_figures import MonitoredDraws
from ep_bench.report.merge import MergedStudies
from ep_bench.report.training_curves import WORDS
from ep_bench.report.training_curves import words as words_of
from ep_bench.results import curves
from ep_bench.types import Array

R_HAT, ESS = 1.01, 400.0  # the limits of Vehtari et al. 2021
MAIN = (
    "r_hat_predictions",
    "r_hat_test_rows",
    "ess_bulk_predictions",
    "ess_tail_predictions",
    "divergences",
    "acceptance",
)
FAMILIES = {"r_hat_": "R-hat", "ess_bulk_": "bulk ESS", "ess_tail_": "tail ESS"}
CAPTION = (
    "Diagnostics of the chains after warm-up: the median over the splits and the worst of them. R-hat and effective "
    "sample sizes (ESS) of predictions are those of the worst of the watched rows (training rows, and midpoints of "
    "two, where chains agree last), those of test rows of the worst of these; divergences are counted over all chains. "
    f"Bold: an R-hat above {R_HAT:g} or an effective sample size below {ESS:g} on some split (limits of Vehtari, "
    "Gelman, Simpson, Carpenter and Bürkner 2021)"
)


@dataclass(frozen=True)
class ChainDiagnostics:
    """What a method's chains are like on one data set: by name one number a split, NaN where there is none."""

    method: str
    dataset: str
    splits: int
    numbers: Mapping[str, Array]

    def count(self, name: str) -> int:
        """Return how many splits have this number."""
        return int(np.isfinite(self.numbers[name]).sum()) if name in self.numbers else 0

    def has(self, name: str) -> bool:
        """Tell whether any split has this number."""
        return self.count(name) > 0

    def summary(self, name: str) -> tuple[float, float, float]:
        """Return the median, the lowest and the highest number of the splits that have one."""
        known = self.numbers[name][np.isfinite(self.numbers[name])]
        return float(np.median(known)), float(known.min()), float(known.max())


@dataclass(frozen=True)
class ChainReport:
    """The part of a report on samplers: diagnostics, lines of text and figures."""

    diagnostics: list[ChainDiagnostics]
    lines: list[str]
    pictures: list[Picture]


def collect(merged: MergedStudies, kept: curves.Curves) -> ChainReport | None:
    """Return the diagnostics and chains of merged studies, or None where no method has any."""
    cells, known = merged.cells(), curves.index(kept.chains)
    found = ChainReport([], [], [])
    for method in merged.methods:
        monitored: list[MonitoredDraws] = []
        for dataset in merged.datasets:
            entry = curves.find(known, cells.get((method, dataset), {}))
            if entry is not None:
                found.diagnostics.append(_diagnostics(method, dataset, entry))
                monitored += _monitored(dataset, entry)
        moving = [one for one in monitored if one.moves()]
        found.lines.extend(_constant_lines(method, [one for one in monitored if not one.moves()]))
        found.pictures.extend(chain_figures.several(method, moving))
    return found if found.diagnostics else None


def _diagnostics(method: str, dataset: str, entry: curves.Entry) -> ChainDiagnostics:
    values = {name: np.array(numbers, dtype=np.float64) for name, numbers in entry["diagnostics"].items()}
    return ChainDiagnostics(method, dataset, len(entry["splits"]), values)


def _monitored(dataset: str, entry: curves.Entry) -> Iterator[MonitoredDraws]:
    """Yield what the chains of one split monitor, in the order of the report's words."""
    order = {name: place for place, name in enumerate(WORDS)}
    for name in sorted(entry["chains"], key=lambda name: (order.get(name, len(order)), name)):
        kept = entry["chains"][name]
        title, unit = words_of(name) or (name.replace("_", " "), "as the method has it")
        values = np.array(kept["values"], dtype=np.float64)
        r_hat = _r_hat(entry, name)
        yield MonitoredDraws(name, title, unit, dataset, int(entry["split"]), int(kept["draws"]), values, r_hat)


def _r_hat(entry: Mapping[str, Any], name: str) -> float:
    """Return R-hat of a quantity on the split that is drawn, NaN where it is not known."""
    place = entry["splits"].index(entry["split"])
    for key in (f"r_hat_{name}", f"r_hat_{name}s"):
        value = entry["diagnostics"].get(key, [None] * (place + 1))[place]
        if value is not None:
            return float(value)
    return math.nan


def _constant_lines(method: str, found: Sequence[MonitoredDraws]) -> Iterator[str]:
    """Yield one line for every quantity and value that no chain leaves."""
    datasets: dict[tuple[str, str], list[str]] = {}
    for one in found:
        known = one.values[np.isfinite(one.values)]
        says = f"is {known[0]:g} in every draw" if len(known) else "has no finite draw"
        datasets.setdefault((one.title, says), []).append(one.dataset)
    for (title, says), names in datasets.items():
        yield f"{method}: {title[0].lower()}{title[1:]} {says} on {', '.join(names)}: not drawn."


# Words and limits of diagnostics


def words(name: str) -> str:
    """Return the head of a diagnostic's column."""
    for start, title in FAMILIES.items():
        if name.startswith(start):
            return f"{title}, {_spaced(name.removeprefix(start))}"
    return _spaced(name)


def _spaced(name: str) -> str:
    return name.replace("_", " ")


def low_is_bad(name: str) -> bool:
    """Tell whether the worst split of a diagnostic is the one with the lowest number."""
    return name.startswith("ess_") or name == "acceptance"


def exceeds_limit(name: str, value: float) -> bool:
    """Tell whether a number is beyond the usual limit, where there is one."""
    return (name.startswith("r_hat_") and value > R_HAT) or (name.startswith("ess_") and value < ESS)


def show(name: str, value: float) -> str:
    """Return a diagnostic as text."""
    if name.startswith("r_hat_"):
        return f"{value:.3f}" if value < 100.0 else f"{value:.3g}"
    if name.startswith("ess_") or (value == round(value) and abs(value) < 1e6):
        return f"{value:.0f}"
    return f"{value:.2f}" if name == "acceptance" else f"{value:.3g}"
