"""Measured costs of fits with default options, for plans without earlier times; ``benchmarks.fit_costs`` wrote them."""

from __future__ import annotations

import json
import math
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from ep_bench import methods

COSTS = Path(__file__).with_suffix(".json")
_SHORTEST = 0.001  # CPU seconds; shorter ones are not resolved


@cache
def measured() -> dict[str, Any]:
    """Return the content of the file of costs: ``environment``, ``inputs``, ``limit`` and ``rows``."""
    return dict(json.loads(COSTS.read_text(encoding="utf-8")))


def ratio(name: str, n: int) -> float:
    """Return the ratio of measured times and those that a method estimates for n points; 1 if one is not known.

    It is interpolated in log n. Beyond the measured numbers of points, it is that of the nearest one.
    """
    points, logs = _ratios(name)
    return math.exp(np.interp(math.log(n), points, logs)) if points else 1.0


@cache
def _ratios(name: str) -> tuple[list[float], list[float]]:
    """Return the logarithms of the measured numbers of points of a method and of the ratios of times."""
    found = measured()
    points, logs = [], []
    for row in found["rows"]:
        estimate = methods.get(name).seconds
        if row["method"] == name and estimate is not None and row.get("fit_cpu_seconds", 0.0) >= _SHORTEST:
            own = estimate(methods.get(name).config(), row["n"], found["inputs"])
            points.append(math.log(row["n"]))
            logs.append(math.log(row["fit_cpu_seconds"] / own))
    return points, logs
