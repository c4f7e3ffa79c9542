"""Tables of what benchmarks measured into ``docs/figures``: other programs, and step sizes."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

from .markdown import table
from .stored import DOCS

FIGURES = DOCS / "figures"
NONE = "–"
DEFAULT_STEPS = {"bb_alpha": 0.002, "dropout": 0.005, "ensemble": 0.01, "dgp_ep": 0.002}


def peers() -> list[str]:
    """Return processor times of ours and of other programs in one run, and the evidences that both reach."""
    body = []
    for row in _peers():
        reached = [f"{row[name]:.1f}" if name in row else NONE for name in ("our_value", "their_value")]
        times = [f"{row[name]:.3g} {row['unit'].removeprefix('CPU ')}" for name in ("ours", "theirs")]
        body.append([f"`{row['method']}`", row["what"], row["program"], *times, _ratio(row), *reached])
    head = ["Method", "Measured", "Other program", "Ours", "Other", "Other / ours"]
    return table([*head, "Evidence, ours", "Evidence, other"], body)


def _peers() -> list[dict[str, Any]]:
    return json.loads((FIGURES / "peers.json").read_text(encoding="utf-8"))["rows"]


def _ratio(row: dict[str, Any]) -> str:
    return f"{row['theirs'] / row['ours']:.2g}"


def environment() -> list[str]:
    """Return the packages, the BLAS kernels and the processor of that run."""
    lines = json.loads((FIGURES / "peers.json").read_text(encoding="utf-8"))["environment"]
    return table(["", ""], [line.split(": ", 1) for line in lines])


def sparse_fits() -> str:
    """Return how much longer GPy takes for whole sparse fits, and the differences of the evidences or bounds."""
    rows = [row for row in _peers() if row["method"] == "sgp"]
    ratios = [row["theirs"] / row["ours"] for row in rows]
    higher = {row["what"]: row["our_value"] - row["their_value"] for row in rows}
    few = [value for what, value in higher.items() if " 50 " in what]
    more = [-value for what, value in higher.items() if " 50 " not in what]
    return (
        f"GPy takes {min(ratios):.1f} to {max(ratios):.1f} times as long. With 50 inducing inputs, our evidence or "
        f"bound is higher by {min(few):.1f} to {max(few):.1f} nats; with 100 and 200, that of GPy is higher by "
        f"{min(more):.1f} to {max(more):.1f} nats"
    )


def step_sizes() -> list[str]:
    """Return the mean log density of validation points by method and step size, with the number of failed fits."""
    rows = pd.read_csv(FIGURES / "step-sizes.csv")
    datasets = list(dict.fromkeys(rows["dataset"]))
    body = []
    for (method, option, value), part in rows.groupby(["method", "option", "value"], sort=False):
        found = part.groupby("dataset")["validation_ll"]
        means = [_mean_of_all(found.get_group(dataset)) for dataset in datasets]
        body.append([str(method), f"`{option}: {value:g}`", *means])
    return table(["Method", "Step size", *datasets], body)


def step_size_gains() -> list[str]:
    """Return the paired difference of each step size from the default, over all data sets and splits."""
    rows = pd.read_csv(FIGURES / "step-sizes.csv")
    body = []
    for method, default in DEFAULT_STEPS.items():
        found = rows[rows["method"] == method].set_index(["dataset", "split", "value"])["validation_ll"].unstack()  # noqa: PD010
        gains = found.drop(columns=default).sub(found[default], axis=0)
        for value, gain in gains.items():
            known = gain.dropna()
            error = known.std(ddof=0) / np.sqrt(len(known))
            higher = f"{int((known > 0.0).sum())} of {len(known)}"
            body.append([method, f"{default:g}", f"{value:g}", f"{known.mean():+.3f} ± {error:.3f}", higher])
    return table(["Method", "Default", "Step size", "Difference from the default", "Higher on"], body)


def _mean_of_all(values: pd.Series) -> str:
    """Return the mean with its standard error over splits, or how many fits failed."""
    if values.isna().any():
        return f"{int(values.isna().sum())} of {len(values)} fits failed"
    return f"{values.mean():.3f} ± {values.std(ddof=0) / np.sqrt(len(values)):.3f}"


TABLES: dict[str, Callable[[], list[str]]] = {
    "peers": peers,
    "peers-environment": environment,
    "step-sizes": step_sizes,
    "step-size-gains": step_size_gains,
}
FACTS: list[tuple[str, Callable[[], str]]] = [("methods/sgp.md", sparse_fits)]
