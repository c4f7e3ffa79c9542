"""The scores that a report shows: their names, units and which way is better."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Score:
    """One column of results.csv as a report speaks of it.

    ``better`` is ``lower``, ``higher``, or empty where neither is (coverage, times): such a score is neither marked nor
    ranked.
    """

    name: str
    title: str
    unit: str
    better: Literal["lower", "higher", ""] = ""

    @property
    def axis(self) -> str:
        """Return the label of an axis: title and unit."""
        return f"{self.title} ({self.unit})" if self.unit else self.title

    @property
    def inline(self) -> str:
        """Return the title as it stands within a sentence."""
        return self.title if self.title[1].isupper() else self.title[0].lower() + self.title[1:]

    @property
    def direction(self) -> str:
        """Return which way is better, in words; empty where neither is."""
        return f"{self.better} is better" if self.better else ""


TARGET = "units of the target"
MAIN = (
    Score("rmse", "RMSE", TARGET, "lower"),
    Score("ll", "Mean log density", "nats", "higher"),
    Score("crps", "CRPS", TARGET, "lower"),
    Score("error_rate", "Error rate", "fraction", "lower"),
    Score("brier", "Brier score", "", "lower"),
)
MORE = (
    Score("mae", "MAE", TARGET, "lower"),
    Score("coverage50", "Coverage of the central 50 % interval", "fraction"),
    Score("coverage90", "Coverage of the central 90 % interval", "fraction"),
    Score("coverage95", "Coverage of the central 95 % interval", "fraction"),
    Score("pit_error", "Calibration error of the PIT", "", "lower"),
    Score("tune_seconds", "Tuning time", "s"),
    Score("fit_seconds", "Fit time", "s"),
    Score("predict_seconds", "Prediction time", "s"),
)
FIGURES = ("rmse", "ll", "error_rate")  # drawn as panels and critical-difference diagrams
BY_NAME = {score.name: score for score in MAIN + MORE}
