"""Tables on classification by deep Gaussian processes: fits that ended at the class frequencies; length of training."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache

import numpy as np

from ep_bench import data
from ep_bench.convergence import count

from .markdown import table, with_error
from .stored import Row, cells, checked, planned, published_number

FOLDER, TRAINING, SEED = "dgp-classes", "dgp-classes-training", "dgp-classes-seed"
MODELS = ("GP", "DGP-1", "DGP-2", "DGP-3")
NEAR = 0.02  # nats; a training log-likelihood this close to that of the class frequencies, or below it


@cache
def _frequencies(dataset: str) -> float:
    """Return the mean log-likelihood of the class frequencies."""
    counts = np.unique(data.load_dataset(dataset).y, return_counts=True)[1]
    return float(np.sum(counts / counts.sum() * np.log(counts / counts.sum())))


def _at_frequencies(dataset: str, row: Row) -> bool:
    return bool(row["train_ll"] < _frequencies(dataset) + NEAR)


def at_frequencies() -> list[str]:
    """Return the models of which fits ended at the class frequencies, with the means over all fits and the others."""
    body = []
    for method, dataset in planned(FOLDER):
        rows = cells(FOLDER, method, dataset)
        others = [row for row in rows if not _at_frequencies(dataset, row)]
        if len(others) == len(rows):
            continue
        found = published_number(
            checked(FOLDER), "published_mean", "published_stderr", method=method, dataset=dataset, metric="ll"
        )
        body.append([
            dataset, method, f"{len(rows) - len(others)} of {len(rows)}",
            _with_another_seed(method, dataset, rows),
            _mean(rows), _mean(others), found,
        ])  # fmt: skip
    return table(
        [
            "Data set",
            "Model",
            "At the class frequencies",
            "Also with another seed",
            "LL, all splits",
            "LL, other splits",
            "Paper",
        ],
        body,
    )


def _with_another_seed(method: str, dataset: str, rows: list[Row]) -> str:
    """Return how many of the fits at the class frequencies are there with another seed, too."""
    others = {row["split"]: row for row in cells(SEED, f"{method}, seed 1", dataset)}
    both = [_at_frequencies(dataset, others[row["split"]])
            for row in rows if _at_frequencies(dataset, row) and row["split"] in others]  # fmt: skip
    return f"{sum(both)} of {len(both)}" if both else "–"


def training_lengths() -> list[str]:
    """Return log-likelihoods on test and training data by the number of steps, with the printed numbers."""
    body = []
    for dataset in dict.fromkeys(dataset for _, dataset in planned(TRAINING)):
        for model in ("GP", "DGP-2"):
            steps = {"1,000": cells(TRAINING, f"{model}, 1000 steps", dataset), "6,000": cells(FOLDER, model, dataset)}
            steps["15,000"] = cells(TRAINING, f"{model}, 15000 steps", dataset)
            printed = published_number(
                checked(FOLDER), "published_mean", "published_stderr", method=model, dataset=dataset, metric="ll"
            )
            found = [f"{_mean(rows, 20)}; {_training(rows)}" if rows else "–" for rows in steps.values()]
            body.append([dataset, model, *found, printed])
        rows = cells(TRAINING, "Logistic regression", dataset)
        control = f"{_mean(rows, 20)}; {_training(rows)}"
        body.append([dataset, "Logistic regression", control, "", "", ""])
    return table(["Data set", "Model", "1,000 steps", "6,000 steps", "15,000 steps, decreasing", "Paper"], body)


def _mean(rows: list[Row], planned_splits: int = 0) -> str:
    """Return the mean test log-likelihood with its error, and the mark of splits that have not converged."""
    return with_error([row["ll"] for row in rows], planned_splits, count(rows).mark)


def _training(rows: list[Row]) -> str:
    mean = math.fsum(row["train_ll"] for row in rows) / len(rows)
    return f"{mean:.3f}"


TABLES: dict[str, Callable[[], list[str]]] = {
    "classes-frequencies": at_frequencies,
    "classes-training": training_lengths,
}
