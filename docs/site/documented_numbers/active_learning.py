"""Tables of active learning next to table 2 of Hernandez-Lobato and Adams (2015)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import numpy as np

from ep_bench import published
from ep_bench.experiments.pbp_2015.active_learning.paired import LEVEL, PairedComparison, compare

from .markdown import enumerated, table
from .stored import RESULTS

FOLDER, PRIORS = "active-learning", "active-learning-priors"
SOURCE, NUMBER = "hernandez-lobato2015", "2"
METHODS = ("PBP", "HMC", "EP", "LA")
CLAIMED = ("boston", "energy", "power", "yacht")


@cache
def _arrays(folder: str = FOLDER) -> Mapping[str, Any]:
    with np.load(RESULTS / folder / "arrays.npz") as stored:
        return dict(stored)


def final(dataset: str, label: str, folder: str = FOLDER) -> np.ndarray:
    """Return the RMSE after the last addition of each repetition."""
    arrays = _arrays(folder)
    d, m = arrays["datasets"].tolist().index(dataset), arrays["labels"].tolist().index(label)
    scores: np.ndarray = arrays["rmse"][d, m, :, -1]
    return scores


def _printed(dataset: str, label: str) -> str:
    place = (SOURCE, NUMBER, label, dataset, "rmse")
    keys = ("source", "table", "method", "dataset", "metric")
    (row,) = [row for row in published.described_rows() if tuple(row[key] for key in keys) == place]
    return str(row["printed_mean"])


def _mean(scores: np.ndarray) -> str:
    known = scores[np.isfinite(scores)]
    return published.measured(float(known.mean()), float(known.std() / np.sqrt(len(known))))


def _entry(dataset: str, label: str) -> str:
    return f"{_mean(final(dataset, label))} ({_printed(dataset, label)})"


def scores() -> list[str]:
    """Return RMSE after the last addition, ours and in brackets that of the paper."""
    labels = [f"{method}-{rule}" for method in METHODS for rule in "AR"]
    body = [[dataset, *(_entry(dataset, label) for label in labels)] for dataset in _arrays()["datasets"].tolist()]
    return table(["RMSE", *labels], body)


def priors() -> list[str]:
    """Return the RMSE of HMC with its default priors, with those of PBP, and as printed."""
    body = [
        [dataset, label, _mean(final(dataset, label)), _mean(final(dataset, f"{label}, priors of PBP", PRIORS)),
         _printed(dataset, label)]
        for dataset in _arrays(PRIORS)["datasets"].tolist() for label in ("HMC-A", "HMC-R")
    ]  # fmt: skip
    return table(["Data set", "Entry", "Default priors", "Priors of PBP", "Printed"], body)


def gains(method: str) -> dict[str, PairedComparison]:
    """Return the comparison of active and random choice by data set."""
    return {
        dataset: compare(final(dataset, f"{method}-A"), final(dataset, f"{method}-R"))
        for dataset in _arrays()["datasets"].tolist()
    }


def choices() -> list[str]:
    """Return on which data sets active choice has the lower and the higher RMSE, by the paired test."""
    body = []
    for method in METHODS:
        found = gains(method)
        lower = [name for name, one in found.items() if one.p < LEVEL and one.mean < 0.0]
        higher = [name for name, one in found.items() if one.p < LEVEL and one.mean > 0.0]
        differing = sum(one.differing for one in found.values())
        repetitions = sum(one.repetitions for one in found.values())
        means = str(sum(one.mean < 0.0 for one in found.values()))
        body.append([method, means, _names(lower), _names(higher), f"{differing} of {repetitions}"])
    head = ["Method", "Data sets with a lower mean", "Lower, p < 0.05", "Higher, p < 0.05", "Differing repetitions"]
    return table(head, body)


def claim() -> tuple[list[bool], str]:
    """Return which of the paper's significant gains of active choice are significant here, and their numbers."""
    holds: list[bool] = []
    counts = []
    for method in ("HMC", "PBP"):
        found = [gains(method)[name] for name in CLAIMED]
        significant = [one.mean < 0.0 and one.p < LEVEL for one in found]
        holds += significant
        counts.append(f"{method} {sum(one.mean < 0.0 for one in found)} ({sum(significant)} with p < {LEVEL})")
    return holds, f"lower mean on {enumerated(counts)} of the four"


def _names(names: list[str]) -> str:
    return ", ".join(names) or "none"


TABLES: dict[str, Callable[[], list[str]]] = {
    "active-learning": scores,
    "active-learning-choices": choices,
    "active-learning-priors": priors,
}
