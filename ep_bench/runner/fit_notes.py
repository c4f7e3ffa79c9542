"""Notes of a record besides scores: chains and diagnostics of a sampler."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ep_bench.results import cell_curves
from ep_bench.types import Array

DRAWS = 200  # draws kept per chain
ROWS = 1000  # largest number of test points whose predictions are diagnosed
STEPS = 3  # decimal digits that resolve the range of a chain
DIGITS = 9  # largest number of significant digits


def of(model: Any, test: Array) -> dict[str, Any]:
    """Return the notes ``chains`` and ``diagnostics`` of a fitted model that has attributes of these names.

    ``chains`` maps names to ``draws``, the number of monitored draws per chain, and ``values``, at most DRAWS
    evenly spaced draws per chain. ``diagnostics`` maps names to numbers. Non-finite values become None. If the model
    can diagnose predictions, this is done for at most ROWS test points of ``test`` (n, d). Attributes of any other
    shape are ignored: the scores of the cell do not depend on them.
    """
    notes: dict[str, Any] = {}
    for name, keep in (("chains", _chain), ("diagnostics", _number)):
        found = getattr(model, f"{name}_", None)
        kept = {} if not isinstance(found, Mapping) else {str(key): _try(keep, value) for key, value in found.items()}
        kept = {key: value for key, value in kept.items() if value is not None or name == "diagnostics"}
        if kept:
            notes[name] = kept
    if "diagnostics" in notes and hasattr(model, "diagnose"):
        diagnosed = model.diagnose(test[cell_curves.evenly(len(test), ROWS)], "test_rows")
        notes["diagnostics"] |= {name: _number(value) for name, value in diagnosed.items()}
    return notes


def of_fit(model: Any) -> dict[str, Any]:
    """Return the criterion that the fit met, and the log evidences of several starts (None if a start failed)."""
    criterion, evidences = getattr(model, "criterion_", ""), getattr(model, "start_evidences_", ())
    notes: dict[str, Any] = {"criterion": str(criterion)} if criterion else {}
    if len(evidences) > 1:
        notes["start_evidences"] = [float(value) if math.isfinite(value) else None for value in evidences]
    return notes


def _try(keep: Any, value: Any) -> Any:
    try:
        return keep(value)
    except Exception:  # noqa: BLE001 attributes of external methods may have any content; scores do not depend on it
        return None


def _number(value: Any) -> float | None:
    number = float(value)
    return float(f"{number:.6g}") if math.isfinite(number) else None


def _chain(values: ArrayLike) -> dict[str, Any] | None:
    """Return the summary of draws (chains, draws), or None for an empty array or any other shape."""
    table = np.asarray(values, dtype=np.float64)
    if table.ndim != 2 or table.size == 0:
        return None
    draws = table.shape[1]
    return {"draws": draws, "values": _short(table[:, cell_curves.evenly(draws, DRAWS)])}


def _short(table: Array) -> list[list[float | None]]:
    """Return chains (chains, draws), rounded to resolve the chain with the smallest range.

    A log density is large compared with its changes, so that a fixed number of significant digits would hide them.
    """
    finite = [row[np.isfinite(row)] for row in table]
    largest = max((float(np.abs(row).max()) for row in finite if len(row)), default=0.0)
    spans = [float(np.ptp(row)) for row in finite if len(row) and np.ptp(row) > 0.0]
    if largest == 0.0 or not math.isfinite(min(spans, default=0.0)):
        decimals = 0
    else:
        wanted = STEPS - _exponent(min(spans, default=largest))
        decimals = min(wanted, DIGITS - 1 - _exponent(largest))
    return [[round(value, decimals) if math.isfinite(value) else None for value in row] for row in table.tolist()]


def _exponent(value: float) -> int:
    return math.floor(math.log10(value))
