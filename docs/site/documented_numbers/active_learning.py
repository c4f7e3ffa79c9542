"""Tables of active learning next to table 2 of Hernandez-Lobato and Adams (2015)."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import numpy as np

from ep_bench import data, published
from ep_bench.experiments.pbp_2015.active_learning.compute import Sizes, divide
from ep_bench.experiments.pbp_2015.active_learning.paired import LEVEL, PairedComparison, compare

from .markdown import enumerated, table
from .stored import RESULTS, stored_study

FOLDER, PRIORS = "active-learning", "active-learning-priors"
SOURCE, NUMBER = "hernandez-lobato2015", "2"
METHODS = ("PBP", "HMC", "EP", "LA")
SAME = 1e-6  # relative difference up to which a fit predicts the mean of its training targets
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


def constant_scores(dataset: str) -> np.ndarray:
    """Return the RMSE of the mean of the training targets after the last random addition, for each repetition."""
    lock = stored_study(FOLDER).lock
    sizes = Sizes(*(lock["options"][name] for name in Sizes._fields))
    y, found = data.load_dataset(dataset).y, []
    for repetition in range(len(final(dataset, "LA-R"))):
        stream = np.random.default_rng([lock["seed"], zlib.crc32(dataset.encode()), repetition])
        division = divide(len(y), sizes, stream)
        train = np.concatenate([division.train, division.pool[: sizes.additions]])
        found.append(np.sqrt(np.mean((y[division.test] - y[train].mean()) ** 2)))
    return np.array(found)


def constants() -> list[str]:
    """Return how close random choice with Laplace and EP is to a constant prediction, here and in the paper."""
    body = []
    for dataset in _arrays()["datasets"].tolist():
        constant = constant_scores(dataset)
        equal = int(np.isclose(final(dataset, "LA-R"), constant, rtol=SAME, atol=0.0).sum())
        ours = [_mean(constant), f"{equal} of {len(constant)}", _mean(final(dataset, "EP-R"))]
        body.append([dataset, *ours, _printed(dataset, "LA-R"), _printed(dataset, "EP-R")])
    head = ["RMSE", "Constant", "LA-R at the constant", "EP-R", "LA-R, printed", "EP-R, printed"]
    return table(head, body)


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


def order_of_methods() -> tuple[list[bool], str]:
    """Return whether PBP is better than EP and LA on most data sets, by means, and on how many."""
    datasets = _arrays()["datasets"].tolist()
    counts = []
    for rule in "AR":
        means = {m: [final(name, f"{m}-{rule}").mean() for name in datasets] for m in ("PBP", "EP", "LA")}
        counts.append(sum(p < min(e, a) for p, e, a in zip(means["PBP"], means["EP"], means["LA"], strict=True)))
    holds = [2 * number > len(datasets) for number in counts]
    return holds, f"lower mean than both: PBP-A {counts[0]} of {len(datasets)}, PBP-R {counts[1]}"


def smaller_gains() -> tuple[list[bool], str]:
    """Return whether EP and LA gain less from active choice than PBP and HMC, on the data sets of figure 2."""
    holds, texts = [], []
    for dataset in ("boston", "yacht", "energy"):
        gain = {method: -gains(method)[dataset].mean for method in METHODS}
        holds.append(max(gain["EP"], gain["LA"]) < min(gain["PBP"], gain["HMC"]))
        texts.append(f"{dataset} {', '.join(f'{name} {value:.2f}' for name, value in gain.items())}")
    return holds, f"mean reduction of the RMSE: {'; '.join(texts)}"


def _names(names: list[str]) -> str:
    return ", ".join(names) or "none"


TABLES: dict[str, Callable[[], list[str]]] = {
    "active-learning": scores,
    "active-learning-choices": choices,
    "active-learning-constants": constants,
    "active-learning-priors": priors,
}
