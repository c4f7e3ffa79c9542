"""Converged splits by method and data set. The rule is in ``ep_bench.convergence``.

Rows of older versions do not state whether they have converged. ``completed`` fills in what ``curves.json`` has:

- the R-hat of test predictions from the chains, or else that of predictions at training inputs;
- whether the median over splits of the training objective meets the criterion of the method, which the lock file has
  (``types.Decrease``). All splits of this median get the same statement, with ``by_median`` true. ``curves.json`` has
  some epochs of a long curve only; values in between are interpolated linearly.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from ep_bench import convergence
from ep_bench.convergence import ConvergedSplits
from ep_bench.results import cell_curves, curves
from ep_bench.types import Array, Decrease

FALLBACKS = ("r_hat_test_rows", "r_hat_predictions")  # diagnostics of a chain, the preferred one first
COLUMNS = ["method", "dataset", "split", "reason", "converged", "r_hat", "by_median"]

Entry = tuple[str, str]  # method, data set


def count(rows: pd.DataFrame) -> dict[Entry, ConvergedSplits]:
    """Return the counts of finished cells ``rows`` by entry."""
    found: defaultdict[Entry, list[Mapping[Any, Any]]] = defaultdict(list)
    for row in rows.reindex(columns=COLUMNS).to_dict("records"):
        found[str(row["method"]), str(row["dataset"])].append(row)
    return {entry: convergence.count(part) for entry, part in found.items()}


def completed(rows: pd.DataFrame, kept: curves.Curves, locks: Iterable[Mapping[str, Any]]) -> pd.DataFrame:
    """Return ``rows`` with the missing statements of finished cells from the curves and lock files of all studies."""
    chains, traces, criteria = curves.index(kept.chains), curves.index(kept.traces), _criteria(locks)
    by_median = rows.get("by_median", pd.Series(index=rows.index, dtype=object)).eq(True)
    found = rows.assign(
        by_median=by_median, converged=rows.get("converged", pd.Series(index=rows.index)).astype(object)
    )
    for _, part in rows[rows["status"] == "ok"].groupby(["method", "dataset"], sort=False):
        cells = dict(zip(part["split"], part["cell"], strict=True))
        if entry := curves.find(chains, cells):
            r_hats = part["split"].map(_r_hats(entry)).astype(float)[part["r_hat"].isna()]
            found.loc[r_hats.index, "r_hat"] = r_hats
        criterion = criteria.get(part["cell"].iloc[0])
        if criterion and (entry := curves.find(traces, cells)) and (met := _met(criterion, entry)) is not None:
            stated = found.loc[part.index].reindex(columns=COLUMNS).to_dict("records")
            states = [convergence.judge(row) for row in stated]
            judged = part.index[part["split"].isin(entry["splits"]) & (np.array(states) == "unknown")]
            found.loc[judged, "converged"] = str(met).lower()
            found.loc[judged, "by_median"] = True
    return found


def _criteria(locks: Iterable[Mapping[str, Any]]) -> dict[str, Decrease]:
    """Return the criteria of the planned cells by their hashes."""
    return {
        key: Decrease(**group["criterion"])
        for lock in locks
        for group in lock.get("groups") or ()
        if "criterion" in group
        for key in group["cells"].values()
    }


def _met(criterion: Decrease, traces: cell_curves.Entry) -> bool | None:
    """Return whether the median objective meets the criterion, None if it is missing, not finite or too short."""
    objective = traces["traces"].get("objective")
    if not objective or None in objective["median"]:
        return None
    return criterion.met(criterion.of(_every_epoch(objective)))


def _every_epoch(curve: Mapping[str, Any]) -> Array:
    """Return the median of a stored curve at all epochs, from 1 to the last."""
    return np.asarray(np.interp(np.arange(1, curve["epoch"][-1] + 1), curve["epoch"], curve["median"]))


def _r_hats(chains: cell_curves.Entry) -> dict[int, float]:
    """Return R-hat by split of an entry of ``curves.json``."""
    diagnostics: Mapping[str, Sequence[float | None]] = chains["diagnostics"]
    numbers = next((diagnostics[name] for name in FALLBACKS if name in diagnostics), ())
    return {
        split: math.nan if value is None else float(value)
        for split, value in zip(chains["splits"], numbers, strict=False)
    }
