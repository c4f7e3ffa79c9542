"""The rule of convergence, the same in reports and in comparisons with published numbers.

A sampler is judged by R-hat of its worst test prediction (column ``r_hat``): at most ``R_HAT`` is converged, at most
``NEARLY`` is nearly converged. Other methods are judged by their own criterion (column ``converged``), and a warning in
``reason`` means that a cell has not converged. A method without a criterion states nothing.

Source of the limits: Vehtari, Gelman, Simpson, Carpenter and Bürkner (2021), Rank-normalization, folding, and
localization: an improved R-hat for assessing convergence of MCMC, Bayesian Analysis 16.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from ep_bench.types import UNCONVERGED

R_HAT, NEARLY = 1.01, 1.05
DAGGER, RING = "†", "°"  # some splits have not converged; some have nearly converged

Convergence = Literal["converged", "nearly", "not", "unknown"]


@dataclass(frozen=True)
class ConvergedSplits:
    """How many splits of one entry are converged, nearly converged and not converged; 0 without a statement."""

    converged: int = 0
    nearly: int = 0
    unconverged: int = 0

    @property
    def judged(self) -> int:
        """Return the number of splits whose rows state whether they have converged."""
        return self.converged + self.nearly + self.unconverged

    @property
    def mark(self) -> str:
        """Return the mark of the entry: a dagger, a ring or nothing."""
        return DAGGER if self.unconverged else RING if self.nearly else ""

    @property
    def shortfall(self) -> str:
        """Return all counts in words, empty if all splits that state it have converged."""
        return self.counts if self.converged < self.judged else ""

    @property
    def counts(self) -> str:
        """Return all counts in words, such as ``14 of 20 converged, 2 nearly, 4 not``; empty without a statement."""
        if not self.judged:
            return ""
        nearly = f", {self.nearly} nearly" if self.nearly else ""
        return f"{self.converged} of {self.judged} converged{nearly}, {self.unconverged} not"

    def __add__(self, other: ConvergedSplits) -> ConvergedSplits:
        return ConvergedSplits(
            self.converged + other.converged,
            self.nearly + other.nearly,
            self.unconverged + other.unconverged,
        )


def judge(row: Mapping[Any, Any]) -> Convergence:
    """Return whether a finished cell has converged, from its row of results.csv.

    A warning about something other than R-hat, such as a drift of the log joint density, overrides R-hat.
    """
    reason = row.get("reason")
    warned = isinstance(reason, str) and reason.startswith(UNCONVERGED)
    r_hat = number(row.get("r_hat"))
    if not math.isnan(r_hat):
        if r_hat > NEARLY or (warned and "R-hat" not in str(reason)):
            return "not"
        return "converged" if r_hat <= R_HAT else "nearly"
    met = str(row.get("converged")).lower()
    if warned or met == "false":
        return "not"
    return "converged" if met == "true" else "unknown"


def count(rows: Iterable[Mapping[Any, Any]]) -> ConvergedSplits:
    """Return the counts over finished cells."""
    found = Counter(judge(row) for row in rows)
    return ConvergedSplits(found["converged"], found["nearly"], found["not"])


def number(value: Any) -> float:
    """Return an entry of results.csv as a number, NaN if it is empty."""
    try:
        return float(value)
    except (TypeError, ValueError):
        return math.nan


def mark_note(marks: Collection[str]) -> str:
    """Return sentences, after a space, that explain the marks in a figure, empty if there are none."""
    words = {DAGGER: "some splits have not converged", RING: "some splits have nearly converged"}
    return "".join(f" {mark}: {text}." for mark, text in words.items() if mark in marks)
