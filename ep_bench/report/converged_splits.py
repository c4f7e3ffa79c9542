"""Converged splits by method and data set. The rule is in ``ep_bench.convergence``.

Rows of older versions have no R-hat of test predictions. It is then read from the chains of ``curves.json``. If these
do not have it either, R-hat of the predictions at training inputs is used.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd

from ep_bench import convergence
from ep_bench.convergence import ConvergedSplits
from ep_bench.results import curves

FALLBACKS = ("r_hat_test_rows", "r_hat_predictions")  # diagnostics of a chain, the preferred one first
COLUMNS = ["method", "dataset", "split", "reason", "converged", "r_hat"]

Entry = tuple[str, str]  # method, data set


def count(rows: pd.DataFrame) -> dict[Entry, ConvergedSplits]:
    """Return the counts of finished cells ``rows`` by entry."""
    return {
        (str(method), str(dataset)): convergence.count(part.reindex(columns=COLUMNS).to_dict("records"))
        for (method, dataset), part in rows.groupby(["method", "dataset"], sort=False)
    }


def with_r_hats(rows: pd.DataFrame, kept: curves.Curves) -> pd.DataFrame:
    """Return ``rows`` with the missing R-hats of finished cells from the curves of all studies."""
    known = curves.index(kept.chains)
    numbers = rows["r_hat"].copy()
    for _, part in rows[rows["status"] == "ok"].groupby(["method", "dataset"], sort=False):
        chains = curves.find(known, dict(zip(part["split"], part["cell"], strict=True)))
        numbers.update(part["split"].map(_r_hats(chains) if chains else {}).astype(float)[part["r_hat"].isna()])
    return rows.assign(r_hat=numbers)


def _r_hats(chains: curves.Entry) -> dict[int, float]:
    """Return R-hat by split of an entry of ``curves.json``."""
    diagnostics: Mapping[str, Sequence[float | None]] = chains["diagnostics"]
    numbers = next((diagnostics[name] for name in FALLBACKS if name in diagnostics), ())
    return {split: float(value) for split, value in zip(chains["splits"], numbers, strict=False) if value is not None}
