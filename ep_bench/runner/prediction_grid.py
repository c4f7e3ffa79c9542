"""What a fitted method predicts over a grid, for a data set with one input; kept in a record's notes, to be drawn."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from ep_bench import data
from ep_bench.results import curves
from ep_bench.types import Array, Dataset, DatasetRef, Split

POINTS = 241
MARGIN = 0.25  # of the inputs' range, that the grid goes beyond them on either side
ROWS = 300  # training or test rows that are kept to be drawn
DIGITS = 6


def over_grid(model: Any, ref: DatasetRef, dataset: Dataset, split: Split) -> dict[str, Any] | None:
    """Return a fitted model's predictions over a grid, in original units, or None where there is nothing to draw.

    ``grid``, ``mean`` and ``std`` (noise included; None where the method gives none) have POINTS values, and so has
    ``truth``, the noise-free function, None where it is not known. ``x_train``, ``y_train``, ``x_test`` and ``y_test``
    are at most ROWS rows each, spread evenly over the split's. A cell's numbers do not hang on this: whatever goes
    wrong here, warnings too, leaves the cell as it is.
    """
    if dataset.task != "regression" or dataset.X.shape[1] != 1:
        return None
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            return _curve(model, ref, dataset, split)
    except Exception:  # noqa: BLE001 a method may raise anything; its scores stand without a picture
        return None


def _curve(model: Any, ref: DatasetRef, dataset: Dataset, split: Split) -> dict[str, Any] | None:
    low, high = float(dataset.X.min()), float(dataset.X.max())
    margin = MARGIN * (high - low) or 1.0
    grid = np.linspace(low - margin, high + margin, POINTS)
    prediction = model.predict_dist(grid[:, None].copy())
    mean = np.asarray(prediction.mean(), dtype=np.float64)
    if mean.shape != grid.shape or not np.isfinite(mean).all():
        return None
    function = None if ref.csv or ref.target or ref.target_transform != "none" else data.true_function(ref.name)
    curve = {
        "grid": _short(grid),
        "mean": _short(mean),
        "std": _deviations(prediction, grid.shape),
        "truth": None if function is None else _short(function(grid[:, None])),
    }
    for part, rows in (("train", split.train), ("test", split.test)):
        kept = rows[curves.evenly(len(rows), ROWS)]
        curve |= {f"x_{part}": _short(dataset.X[kept, 0]), f"y_{part}": _short(dataset.y[kept])}
    return curve


def _deviations(prediction: Any, shape: tuple[int, ...]) -> list[float] | None:
    """Return the standard deviations where all of them exist."""
    if not hasattr(prediction, "std"):
        return None
    std = np.asarray(prediction.std(), dtype=np.float64)
    return _short(std) if std.shape == shape and np.isfinite(std).all() else None


def _short(values: Array) -> list[float]:
    """Return values to so many significant digits that no picture tells them from the whole."""
    return [float(f"{value:.{DIGITS}g}") for value in np.asarray(values, dtype=np.float64)]
