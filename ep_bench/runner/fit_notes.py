"""Notes of a record besides scores: diagnostics of a sampler."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from ep_bench.types import Array

ROWS = 1000  # largest number of test points whose predictions are diagnosed


def of(model: Any, test: Array) -> dict[str, Any]:
    """Return the note ``diagnostics`` of a fitted model that has an attribute of this name, numbers by name.

    What is no number, or not finite, becomes None. If the model can diagnose predictions, this is done for at most ROWS
    evenly spaced test points of ``test`` (n, d).
    """
    found = getattr(model, "diagnostics_", None)
    if not isinstance(found, Mapping) or not found:
        return {}
    numbers = {str(name): _number(value) for name, value in found.items()}
    if hasattr(model, "diagnose"):
        chosen = np.round(np.linspace(0, len(test) - 1, min(len(test), ROWS))).astype(np.int64)
        numbers |= {name: _number(value) for name, value in model.diagnose(test[chosen], "test_rows").items()}
    return {"diagnostics": numbers}


def of_fit(model: Any) -> dict[str, Any]:
    """Return the criterion that the fit met, and the log evidences of several starts (None if a start failed)."""
    criterion, evidences = getattr(model, "criterion_", ""), getattr(model, "start_evidences_", ())
    notes: dict[str, Any] = {"criterion": str(criterion)} if criterion else {}
    if len(evidences) > 1:
        notes["start_evidences"] = [float(value) if math.isfinite(value) else None for value in evidences]
    return notes


def _number(value: Any) -> float | None:
    try:
        number = float(value)
    except Exception:  # noqa: BLE001 attributes of external methods may have any content; scores do not depend on it
        return None
    return float(f"{number:.6g}") if math.isfinite(number) else None
