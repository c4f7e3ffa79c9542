"""Predictions of a fitted method over a grid, for data sets with one input; kept in the notes of a record."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from ep_bench import data
from ep_bench.results import cell_curves
from ep_bench.types import Array, Dataset, DatasetRef, Split

POINTS = 241
MARGIN = 0.25  # extension of the grid on either side, as a fraction of the range of the inputs
ROWS = 300  # largest number of training or test points kept
DIGITS = 6

Predict = Callable[[Array], Any]  # returns the prediction at inputs (N, d)


def over_grid(predict: Predict, ref: DatasetRef, dataset: Dataset, split: Split) -> dict[str, Any] | None:
    """Return predictions over a grid in original units, or None if there is nothing to draw.

    ``grid``, ``mean`` and ``std`` have POINTS values. ``std`` includes the noise, and is None if the method gives no
    standard deviation. ``truth`` is the noise-free function, or None if unknown. ``x_train``, ``y_train``, ``x_test``
    and ``y_test`` are at most ROWS evenly spaced points of the split. Errors and warnings here do not affect the cell.
    """
    if dataset.task != "regression" or dataset.X.shape[1] != 1:
        return None
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            return _curve(predict, ref, dataset, split)
    except Exception:  # noqa: BLE001 a method may raise any exception; its scores do not depend on this figure
        return None


def _curve(predict: Predict, ref: DatasetRef, dataset: Dataset, split: Split) -> dict[str, Any] | None:
    low, high = float(dataset.X.min()), float(dataset.X.max())
    margin = MARGIN * (high - low) or 1.0
    grid = np.linspace(low - margin, high + margin, POINTS)
    prediction = predict(grid[:, None].copy())
    mean = np.asarray(prediction.mean(), dtype=np.float64)
    if mean.shape != grid.shape or not np.isfinite(mean).all():
        return None
    function = None if ref.csv or ref.target or ref.target_transform != "none" else data.true_function(ref.name)
    curve = {
        "grid": _short(grid),
        "mean": _short(mean),
        "std": _standard_deviations(prediction, grid.shape),
        "truth": None if function is None else _short(function(grid[:, None])),
    }
    for part, rows in (("train", split.train), ("test", split.test)):
        kept = rows[cell_curves.evenly(len(rows), ROWS)]
        curve |= {f"x_{part}": _short(dataset.X[kept, 0]), f"y_{part}": _short(dataset.y[kept])}
    return curve


def _standard_deviations(prediction: Any, shape: tuple[int, ...]) -> list[float] | None:
    """Return the standard deviations, or None if one of them is missing or not finite."""
    if not hasattr(prediction, "std"):
        return None
    std = np.asarray(prediction.std(), dtype=np.float64)
    return _short(std) if std.shape == shape and np.isfinite(std).all() else None


def _short(values: Array) -> list[float]:
    """Return values with enough significant digits for a figure."""
    return [float(f"{value:.{DIGITS}g}") for value in np.asarray(values, dtype=np.float64)]
