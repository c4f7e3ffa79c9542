"""What a sampler's chains did after warm-up, and its diagnostics; kept in a record's notes, to be drawn."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ep_bench.results import curves
from ep_bench.types import Array

DRAWS = 200  # of a chain that are kept
ROWS = 1000  # test rows that are judged
STEPS = 3  # decimal digits of what a chain's values span
DIGITS = 9  # significant digits at most


def of(model: Any, test: Array) -> dict[str, Any]:
    """Return the notes ``chains`` and ``diagnostics`` of a fitted model, as far as it has such attributes.

    Diagnostics get those of the predictions for the test rows (n, d), of ROWS of them at most, where a model has any.

    ``chains`` has by name ``draws``, how many a chain has after warm-up, and ``values``, at most DRAWS of each chain,
    spread evenly; ``diagnostics`` has a number by name. None stands for what is not finite. A cell's numbers do not
    hang on this: what is not of this shape is left out.
    """
    notes: dict[str, Any] = {}
    for name, keep in (("chains", _chain), ("diagnostics", _number)):
        found = getattr(model, f"{name}_", None)
        kept = {} if not isinstance(found, Mapping) else {str(key): _tried(keep, value) for key, value in found.items()}
        kept = {key: value for key, value in kept.items() if value is not None or name == "diagnostics"}
        if kept:
            notes[name] = kept
    if "diagnostics" in notes and hasattr(model, "diagnose"):
        judged = model.diagnose(test[curves.evenly(len(test), ROWS)], "test_rows")
        notes["diagnostics"] |= {name: _number(value) for name, value in judged.items()}
    return notes


def _tried(keep: Any, value: Any) -> Any:
    try:
        return keep(value)
    except Exception:  # noqa: BLE001 a method may leave anything; its scores stand without a picture
        return None


def _number(value: Any) -> float | None:
    number = float(value)
    return float(f"{number:.6g}") if math.isfinite(number) else None


def _chain(values: ArrayLike) -> dict[str, Any] | None:
    """Return what is kept of draws (chains, draws), None where there are none or the shape is another."""
    table = np.asarray(values, dtype=np.float64)
    if table.ndim != 2 or table.size == 0:
        return None
    draws = table.shape[1]
    return {"draws": draws, "values": _short(table[:, curves.evenly(draws, DRAWS)])}


def _short(table: Array) -> list[list[float | None]]:
    """Return chains with the decimals that show how the one that moves least moves.

    A log density is large beside what it changes: a fixed number of significant digits would make steps of it.
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
