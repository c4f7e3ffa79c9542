"""Tables and sentences on variants of networks: measured by benchmarks into ``docs/figures``."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd

from .markdown import enumerated, table
from .stored import DOCS, TextRow, rows_of

FIGURES = DOCS / "figures"


def laplace_evidence() -> list[str]:
    """Return means over splits of log evidences and CPU seconds, with one and several starts and by laplace-torch."""
    columns = ("starts_0", "starts_15", "laplace_torch", "laplace_torch_at_mode")
    body = []
    for dataset, rows in pd.read_csv(FIGURES / "laplace-evidence.csv").groupby("dataset"):
        means, higher = rows.mean(numeric_only=True), int((rows["starts_15"] > rows["laplace_torch"]).sum())
        seconds = [f"{means[name]:.1f}" for name in ("cpu_seconds", "laplace_torch_cpu_seconds")]
        body.append([str(dataset), *(f"{means[name]:.0f}" for name in columns), f"{higher} of {len(rows)}", *seconds])
    head = ["Data set", "`starts: 0`", "`starts: 15`", "laplace-torch", "laplace-torch, at the mode"]
    return table([*head, "Higher with `starts: 15`", "CPU s, `starts: 15`", "CPU s, laplace-torch"], body)


def laplace_exception() -> str:
    """Return the split of concrete on which several starts end at a lower evidence than laplace-torch."""
    rows = pd.read_csv(FIGURES / "laplace-evidence.csv")
    lower = rows[rows["starts_15"] < rows["laplace_torch"]]
    found = [f"{row.starts_15}, and laplace-torch has {row.laplace_torch}" for row in lower.itertuples()]
    if len(found) != 1 or lower["dataset"].iloc[0] != "concrete":
        return f"other exceptions: {found}"
    return f"on split {lower['split'].iloc[0]} it is {found[0]}"


def vi_depths(dataset: str) -> dict[str, TextRow]:
    """Return the rows of the variants of one and two layers by their names."""
    return {row["variant"]: row for row in rows_of(FIGURES / f"vi-depth-{dataset}.csv")}


def vi_depth() -> list[str]:
    """Return the table of variants of one and two layers on boston."""
    names = ("negative_bound", "divergence", "noise_deviation", "validation_ll")
    body = [[variant, *(f"{float(row[name]):.3f}" for name in names), ", ".join(row["active_units"].split())]
            for variant, row in vi_depths("boston").items()]  # fmt: skip
    head = ["Variant", "Negative bound", "Divergence", "Noise, standard deviation", "Validation log-likelihood"]
    return table([*head, "Active units"], body)


def _gains(dataset: str, variants: tuple[str, ...]) -> list[float]:
    """Return by how much the negative bound of two layers decreases with some variants."""
    rows = vi_depths(dataset)
    bounds = [float(rows[name]["negative_bound"]) for name in ("two layers", *variants)]
    return [bounds[0] - bound for bound in bounds[1:]]


BUDGET = ("two layers, 3 times the epochs", "two layers, initial standard deviations 0.05")
MODEL = ("two layers, 10 units in the second", "two layers, prior variance 1/50")


def vi_budget() -> str:
    """Return by how much epochs and initial values change the bound on boston."""
    change = np.abs(_gains("boston", BUDGET)).max()
    return f"wider initial distributions change the bound by {change:.2f} at most"


def vi_start() -> str:
    """Return the bounds that two layers reach from both starts, and that of one layer, on all three data sets."""
    parts = []
    for dataset in ("boston", "concrete", "wine"):
        rows = vi_depths(dataset)
        names = ("two layers", "two layers, started from one layer", "one layer")
        usual, started, one = (f"{float(rows[name]['negative_bound']):.2f}" for name in names)
        parts.append(f"{usual} and {started} on {dataset} (one layer: {one})")
    return f"The negative bounds of the usual start and of this one are {enumerated(parts)}"


def vi_model() -> str:
    """Return by how much a smaller second layer or prior variance improves the bound on boston."""
    lowest = np.floor(10 * min(_gains("boston", MODEL))) / 10
    return f"a smaller prior variance, improves the bound by more than {lowest:.1f}"


def vi_model_elsewhere() -> str:
    """Return the ranges of the improvements of the bound on concrete and wine, the empirical prior included."""
    parts = []
    for dataset in ("concrete", "wine"):
        gains = _gains(dataset, (*MODEL, "two layers, empirical prior"))
        parts.append(f"{min(gains):.2f} to {max(gains):.2f} on {dataset}")
    return f"improve the bound by {enumerated(parts)}"


def vi_noise_head() -> list[str]:
    """Return the table of fits with heteroscedastic noise by data set and step size."""
    names = ("lowest", "highest", "last", "median_log_variance", "median_spread", "largest_spread", "input_there")
    body = [[row["dataset"], row["rate"], row["end"].partition(":")[0], *(row[name] or "–" for name in names)]
            for row in rows_of(FIGURES / "vi-noise-head.csv")]  # fmt: skip
    head = ["Data set", "Step size", "End", "Lowest objective", "Highest", "Mean of the last 20 epochs"]
    return table([*head, "Log variance, median", "Spread, median", "Spread, largest", "Largest input there"], body)


def vi_noise_step() -> str:
    """Return the step size of the noise head on naval whose objective ends lowest."""
    rows = [row for row in rows_of(FIGURES / "vi-noise-head.csv") if row["dataset"] == "naval"]
    best = min(rows, key=lambda row: float(row["last"]))
    return f"The study has {best['rate']} there, which ends with the lowest objective"


def bb_alpha_samples() -> str:
    """Return the log-likelihoods of black-box alpha with 5,000 and with 50 samples."""
    rows = rows_of(FIGURES / "bb-alpha-samples.csv")
    many, few = (np.array([float(row[name]) for row in rows]) for name in ("ll_5000", "ll_50"))
    worst = int(np.argmax(many - few))
    return (
        f"On split {rows[worst]['split']} the values are {many[worst]:.2f} and {few[worst]:.2f}. The bias is largest "
        f"there: over all {len(rows)} splits, the mean is {many.mean():.2f} with 5,000 samples "
        f"and {few.mean():.2f} with 50"
    )


def vi_samples() -> str:
    """Return the largest changes of log-likelihoods of VI by 100 draws of the weights instead of 5,000."""
    frame = pd.read_csv(FIGURES / "vi-samples.csv")
    change = (frame["ll_100"] - frame["ll_5000"]).groupby([frame["entry"], frame["dataset"]])
    means, lowest = change.mean(), change.min()
    entry, dataset = means.abs().idxmax()
    largest = means["VI-1"].abs().max()
    lowest_there = f"{entry} on {dataset}, one split {lowest[entry, dataset]:.2f}"
    return (
        f"the largest change of a mean over {change.size().iloc[0]} splits is {means[entry, dataset]:.3f} nats "
        f"({lowest_there}). For VI-1, means change by {largest:.3f} nats at most"
    )


TABLES: dict[str, Callable[[], list[str]]] = {
    "laplace-evidence": laplace_evidence,
    "vi-depth": vi_depth,
    "vi-noise-head": vi_noise_head,
}
FACTS: list[tuple[str, Callable[[], str]]] = [
    ("methods/laplace.md", laplace_exception),
    ("methods/vi.md", vi_budget),
    ("methods/vi.md", vi_model),
    ("methods/vi.md", vi_noise_step),
    ("methods/vi.md", vi_model_elsewhere),
    ("methods/vi.md", vi_start),
    ("methods/vi.md", vi_samples),
    ("methods/bb_alpha.md", bb_alpha_samples),
]
