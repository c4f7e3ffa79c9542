"""The scores of a report: names, units, and whether lower or higher is better."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Literal

from ep_bench.types import Task


@dataclass(frozen=True)
class Score:
    """One score.

    Attributes
    ----------
    better : ``lower`` or ``higher``; empty for scores that are neither marked nor ranked, such as coverage and times
    task : task of the data sets that have this score, None for both; no table or rank mixes tasks
    column : column of results.csv, if it differs from ``name``
    """

    name: str
    title: str
    unit: str
    better: Literal["lower", "higher", ""] = ""
    task: Task | None = None
    column: str = ""

    @property
    def source(self) -> str:
        """Return the column of results.csv."""
        return self.column or self.name

    @property
    def axis(self) -> str:
        """Return the label of an axis: title and unit."""
        return f"{self.title} ({self.unit})" if self.unit else self.title

    @property
    def inline(self) -> str:
        """Return the title as written within a sentence."""
        return self.title if self.title[1].isupper() else self.title[0].lower() + self.title[1:]

    @property
    def direction(self) -> str:
        """Return whether lower or higher is better, in words; empty for neither."""
        return f"{self.better} is better" if self.better else ""


TARGET = "units of the target"
MAIN = (
    Score("rmse", "RMSE", TARGET, "lower", "regression"),
    Score("ll", "Mean test log-likelihood", "nats", "higher", "regression"),
    Score("crps", "CRPS", TARGET, "lower", "regression"),
    Score("ll-classes", "Mean log-likelihood", "nats", "higher", "classification", "ll"),
    Score("error_rate", "Error rate", "fraction", "lower", "classification"),
    Score("brier", "Brier score", "sum over classes", "lower", "classification"),
)
MORE = (
    Score("mae", "MAE", TARGET, "lower", "regression"),
    Score("coverage50", "Coverage of the central 50 % interval", "fraction"),
    Score("coverage90", "Coverage of the central 90 % interval", "fraction"),
    Score("coverage95", "Coverage of the central 95 % interval", "fraction"),
    Score("width50", "Mean width of the central 50 % interval", TARGET, task="regression"),
    Score("width90", "Mean width of the central 90 % interval", TARGET, task="regression"),
    Score("width95", "Mean width of the central 95 % interval", TARGET, task="regression"),
    Score("pit_error", "Calibration error of the PIT", "", "lower"),
    Score("ll_unseen", "Mean log-likelihood at inputs without an equal training point", "nats"),
    Score("ll_min", "Log-likelihood of the worst test point", "nats"),
    Score("r_hat", "R-hat of the worst test prediction", ""),
    Score("tune_cpu_seconds", "CPU time of tuning", "s"),
    Score("fit_cpu_seconds", "CPU time of the fit", "s"),
    Score("predict_cpu_seconds", "CPU time of the prediction", "s"),
)
FIGURES = ("rmse", "ll", "crps", "error_rate", "brier")  # columns with panels and critical-difference diagrams
BY_NAME = {score.name: score for score in MAIN + MORE}


def main_scores(tasks: Collection[Task]) -> tuple[Score, ...]:
    """Return the main scores of a report. With classification only, its log-likelihood is named ``ll``."""
    if "regression" in tasks:
        return MAIN
    return tuple(replace(score, name=score.source) for score in MAIN if score.task == "classification")
