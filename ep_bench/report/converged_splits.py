"""Converged splits by method and data set. The rule is in ``ep_bench.convergence``.

Rows of older versions have no R-hat of test predictions. It is then read from the chains of ``curves.json``. If these
do not have it either, R-hat of the predictions at training inputs is used.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from ep_bench import convergence
from ep_bench.convergence import ConvergedSplits
from ep_bench.results import curves

FALLBACKS = ("r_hat_test_rows", "r_hat_predictions")  # diagnostics of a chain, the preferred one first
COLUMNS = ["method", "dataset", "split", "reason", "converged", "r_hat"]

Entry = tuple[str, str]  # method, data set


def count(rows: pd.DataFrame, kept: curves.Curves) -> dict[Entry, ConvergedSplits]:
    """Return the counts of finished cells ``rows`` by entry; ``kept`` are the curves of all studies."""
    if not len(rows):
        return {}
    known = curves.index(kept.chains)
    found = {}
    for (method, dataset), part in rows.groupby(["method", "dataset"], sort=False):
        cells = part.reindex(columns=COLUMNS).to_dict("records")
        chains = curves.find(known, dict(zip(part["split"], part["cell"], strict=True)))
        r_hats = _r_hats(chains) if chains else {}
        found[str(method), str(dataset)] = convergence.count(_with_r_hat(cell, r_hats) for cell in cells)
    return found


def _with_r_hat(cell: Mapping[Any, Any], r_hats: Mapping[int, float]) -> Mapping[Any, Any]:
    if math.isnan(cell["r_hat"]) and cell["split"] in r_hats:
        return {**cell, "r_hat": r_hats[cell["split"]]}
    return cell


def _r_hats(chains: curves.Entry) -> dict[int, float]:
    """Return R-hat by split of an entry of ``curves.json``."""
    diagnostics: Mapping[str, Sequence[float | None]] = chains["diagnostics"]
    numbers = next((diagnostics[name] for name in FALLBACKS if name in diagnostics), ())
    return {split: float(value) for split, value in zip(chains["splits"], numbers, strict=False) if value is not None}
