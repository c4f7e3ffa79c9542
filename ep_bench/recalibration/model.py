"""A method that is recalibrated: the models of one cell, with the interface of the runner."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any, Self

import numpy as np

from ep_bench.recalibration import conformal, isotonic
from ep_bench.types import Array, Indices

VERSION = 1  # raised whenever the results of recalibration change; a factor of its cells
RECALIBRATIONS: Mapping[str, ModuleType] = {"isotonic": isotonic, "conformal": conformal}
ENOUGH = 199  # held-out points; with fewer, conformal prediction has no quantile at the level 0.005
_HELD_OUT = 3  # key of the random stream that selects points, derived from a cell's seed


def held_out_parts(n: int, fraction: float, seed: int, cross: bool | None = None) -> list[tuple[Indices, Indices]]:
    """Return pairs of sorted indices: the points that a model is fitted to, and those that calibrate it.

    Parameters
    ----------
    n : int
        Number of training points.
    fraction : float
        Fraction of the points that calibrate a model.
    seed : int
        Of the selection.
    cross : bool, optional
        Whether every point calibrates one of about ``1 / fraction`` models; otherwise there is one model. By default
        only if there are fewer than ``ENOUGH`` points for one.

    Raises
    ------
    ValueError
        There is only one point.
    """
    if n < 2:
        raise ValueError(f"{n} training point cannot be divided for recalibration; at least 2 are needed")
    count = min(max(round(fraction * n), 1), n - 1)
    order = np.random.default_rng([seed, _HELD_OUT]).permutation(n)
    is_crossed = count < ENOUGH if cross is None else cross
    folds = np.array_split(order, min(n, max(2, round(1.0 / fraction)))) if is_crossed else [order[:count]]
    return [(np.setdiff1d(order, fold), np.sort(fold)) for fold in folds]


class RecalibratedModel:
    """One or several models of a method, and what recalibrates their predictions.

    Trace and diagnostics are those of the first model.

    Parameters
    ----------
    make : callable
        Returns a new model with ``fit`` and ``predict_dist``.
    recalibrate : str
        ``isotonic`` or ``conformal``.
    fraction, seed, cross
        Of ``held_out_parts``.
    refit : bool
        Whether a further model, which is fitted to all points, predicts alone.
    """

    def __init__(
        self,
        make: Callable[[], Any],
        recalibrate: str,
        fraction: float,
        seed: int,
        cross: bool | None = None,
        *,
        refit: bool = False,
    ) -> None:
        self._make, self._kind, self._refit = make, RECALIBRATIONS[recalibrate], refit
        self._fraction, self._seed, self._cross = fraction, seed, cross

    def fit(self, X: Any, y: Array) -> Self:
        """Fit to inputs X (n, d) and targets y (n,)."""
        self.models_, self.evidences_ = [], []
        for fitting, held_out in held_out_parts(len(y), self._fraction, self._seed, self._cross):
            model = self._make()
            model.fit(_points(X, fitting), y[fitting])
            self.evidences_.append(self._kind.evidence(model.predict_dist(_points(X, held_out)), y[held_out]))
            self.models_.append(model)
        if self._refit:
            model = self._make()
            model.fit(X, y)
            self.models_, self.evidences_ = [model], [np.concatenate(self.evidences_, axis=-1)]
        met = [model.converged_ for model in self.models_]
        self.converged_ = None if None in met else all(met)
        return self

    def predict_dist(self, X: Any) -> Any:
        """Return the recalibrated predictive distribution, or quantiles, at inputs X (N, d)."""
        return self._kind.recalibrate([model.predict_dist(X) for model in self.models_], self.evidences_)

    def __getattr__(self, name: str) -> Any:
        if name in {"trace_", "diagnostics_", "diagnose"}:
            return getattr(self.models_[0], name)
        raise AttributeError(f"a recalibrated model has no attribute {name!r}")


def _points(X: Any, rows: Indices) -> Any:
    """Return rows of an array or of a data frame."""
    return X.iloc[rows] if hasattr(X, "iloc") else X[rows]
