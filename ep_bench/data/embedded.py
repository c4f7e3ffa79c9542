"""Data sets without a file: scikit-learn's diabetes, and functions with noise.

Random numbers are drawn from ``RandomState`` with fixed seeds, whose streams are the same in all releases of numpy.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable

import numpy as np

from ep_bench.types import Array

TrueFunction = Callable[[Array], Array]
_LARGE = 100_000  # data points above which the checksum is that of a sample
YEAR_LIKE_SLOPES = tuple(3.0 / (1 + j) for j in range(12))
ADDITIVE_SLOPES = (0.25, 0.5, 0.75, 1.0)
ADDITIVE_CURVES: tuple[TrueFunction, ...] = (
    lambda x: np.tanh(2.0 * x),
    np.cos,
    np.sin,
    lambda x: np.cos(2.0 * x),
    lambda x: np.sin(2.0 * x),
)


def generate(name: str) -> tuple[Array, Array]:
    """Return inputs (n, d) and targets (n,) of an embedded data set, in original units."""
    return _GENERATORS[name]()


def true_function(name: str) -> TrueFunction | None:
    """Return the noise-free function of a data set, from inputs (n, d) to targets (n,), or None if it is unknown."""
    return _TRUE_FUNCTIONS.get(name)


def checksum(X: Array, y: Array) -> str:
    """Return the sha256 of X (n, d) and y (n,) at 10 significant digits, which ignores rounding errors of libm.

    Of more than 100,000 data points, each hundredth counts.
    """
    step = 1 if len(y) <= _LARGE else 100
    table = np.column_stack([X[::step], y[::step]]) + 0.0  # no negative zero
    text = "\n".join(" ".join(f"{value:.9e}" for value in row) for row in table.tolist())
    return hashlib.sha256(text.encode()).hexdigest()


def _diabetes() -> tuple[Array, Array]:
    from sklearn.datasets import load_diabetes

    X, y = load_diabetes(return_X_y=True, scaled=False)
    return np.asarray(X, dtype=np.float64), np.asarray(y, dtype=np.float64)


def _friedman(which: int, noise: float) -> tuple[Array, Array]:
    from sklearn import datasets

    X, y = getattr(datasets, f"make_friedman{which}")(n_samples=500, noise=noise, random_state=which)
    return np.asarray(X, dtype=np.float64), np.asarray(y, dtype=np.float64)


def _friedman1_function(X: Array) -> Array:
    return np.asarray(
        10.0 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 20.0 * (X[:, 2] - 0.5) ** 2 + 10.0 * X[:, 3] + 5.0 * X[:, 4]
    )


def _friedman_outliers() -> tuple[Array, Array]:
    """Return ten data sets, each of 100 data points with noise, 10 of them outliers, and 1,000 without noise."""
    stream = np.random.RandomState(6)
    blocks: list[tuple[Array, Array]] = []
    for _ in range(10):
        X = stream.uniform(size=(100, 10))
        y = _friedman1_function(X) + stream.standard_normal(100)
        y[stream.choice(100, 10, replace=False)] = 15.0 + 3.0 * stream.standard_normal(10)
        test = stream.uniform(size=(1000, 10))
        blocks += [(X, y), (test, _friedman1_function(test))]
    return np.concatenate([X for X, _ in blocks]), np.concatenate([y for _, y in blocks])


def _reactance(X: Array) -> Array:
    return np.asarray(X[:, 1] * X[:, 2] - 1.0 / (X[:, 1] * X[:, 3]))


def _toy(n: int, d: int, bound: float, noise: float, function: TrueFunction, seed: int) -> tuple[Array, Array]:
    """Return inputs uniform in [-bound, bound] and targets with Gaussian noise of standard deviation ``noise``."""
    stream = np.random.RandomState(seed)
    X = stream.uniform(-bound, bound, size=(n, d))
    return X, function(X) + noise * stream.standard_normal(n)


def _cubic_function(X: Array) -> Array:
    return np.asarray(X[:, 0] ** 3)


def _step_function(X: Array) -> Array:
    return np.where(X[:, 0] < 0.0, -1.0, 1.0)


def _additive_function(X: Array) -> Array:
    linear = X[:, 1:5] @ np.array(ADDITIVE_SLOPES)
    curves = [curve(X[:, 5 + j]) for j, curve in enumerate(ADDITIVE_CURVES)]
    return np.asarray(linear + np.sum(curves, axis=0))


def _year_like_function(X: Array) -> Array:
    found = 1998.0 + 6.0 * X[:, 12] * X[:, 13] + 8.0 * (X[:, 14] ** 2 - 1.0 / 3.0)
    for j, slope in enumerate(YEAR_LIKE_SLOPES):
        found += slope * X[:, j]
    return np.asarray(found)


_TRUE_FUNCTIONS: dict[str, TrueFunction] = {
    "friedman1": _friedman1_function,
    "friedman-outliers": _friedman1_function,
    "friedman2": lambda X: np.hypot(X[:, 0], _reactance(X)),
    "friedman3": lambda X: np.arctan(_reactance(X) / X[:, 0]),
    "cubic": _cubic_function,
    "step": _step_function,
    "additive": _additive_function,
    "year-like": _year_like_function,
}
_GENERATORS: dict[str, Callable[[], tuple[Array, Array]]] = {
    "diabetes": _diabetes,
    "friedman1": lambda: _friedman(1, noise=1.0),
    "friedman-outliers": _friedman_outliers,
    "friedman2": lambda: _friedman(2, noise=125.0),
    "friedman3": lambda: _friedman(3, noise=0.1),
    "cubic": lambda: _toy(20, 1, 4.0, 3.0, _cubic_function, seed=1),
    "step": lambda: _toy(100, 1, 2.0, 0.1, _step_function, seed=3),
    "additive": lambda: _toy(200, 10, np.pi, 0.2, _additive_function, seed=2),
    "year-like": lambda: _toy(515_345, 90, 1.0, 8.5, _year_like_function, seed=7),
}
