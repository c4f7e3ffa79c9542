"""Predictions of classes, with and without probabilities."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ep_bench.predictions.mixture import real_array
from ep_bench.types import Array

_SUM = 1e-5  # tolerance for the sum of the probabilities of one observation


class _Classes:
    """The labels (C,) of classes with the indices 0 to C - 1."""

    def __init__(self, classes: ArrayLike) -> None:
        self.classes: NDArray[Any] = np.asarray(classes)
        self._index_of = {label: index for index, label in enumerate(self.classes.tolist())}
        if self.classes.ndim != 1 or len(self._index_of) != len(self.classes):
            raise ValueError(f"classes must be unique labels (C,), found {_listed(self.classes.ravel())}")

    def indices(self, y: ArrayLike) -> NDArray[np.int64]:
        """Return the class indices (N,) of labels (N,). Raises ValueError for an unknown label."""
        labels = np.asarray(y).tolist()
        unknown = next((label for label in labels if label not in self._index_of), None)
        if unknown is not None:
            raise ValueError(f"{unknown!r} is none of the classes {_listed(self.classes)}")
        return np.array([self._index_of[label] for label in labels], dtype=np.int64)


class ClassProbabilities(_Classes):
    """Probabilities of C classes for N observations.

    Parameters
    ----------
    probabilities : array-like of shape (N, C)
        Non-negative; the sum of each row is 1 up to 1e-5, and each row is divided by its sum.
    classes : array-like of shape (C,), optional
        Labels of any type; by default the indices 0 to C - 1.

    Raises
    ------
    ValueError
        The shapes do not match, a label occurs twice, or a row holds no probabilities.
    """

    def __init__(self, probabilities: ArrayLike, classes: ArrayLike | None = None) -> None:
        table = real_array(probabilities, "probabilities")
        if table.ndim != 2 or not table.shape[1]:
            raise ValueError(f"probabilities must have the shape (N, C), found {table.shape}")
        super().__init__(np.arange(table.shape[1]) if classes is None else classes)
        if len(self.classes) != table.shape[1]:
            raise ValueError(f"{table.shape[1]} columns of probabilities for {len(self.classes)} classes")
        if not np.isfinite(table).all():
            row = int(np.argmin(np.isfinite(table).all(axis=1)))
            raise ValueError(f"probabilities must be finite, found {_listed(table[row])} in row {row}")
        if (table < 0.0).any():
            raise ValueError(f"probabilities must be non-negative, found {table.min():g}")
        sums = table.sum(axis=1, keepdims=True)
        off = np.abs(sums - 1.0)
        if (off > _SUM).any():
            row = int(np.argmax(off))
            raise ValueError(f"the probabilities of a row must sum to 1, found {sums[row, 0]:g} in row {row}")
        self.probabilities: Array = table / sums

    def __len__(self) -> int:
        return len(self.probabilities)

    def mode(self) -> NDArray[Any]:
        """Return the labels (N,) of the most probable classes, the first one in a tie."""
        return np.asarray(self.classes[np.argmax(self.probabilities, axis=1)])

    def logpdf(self, y: ArrayLike) -> Array:
        """Return the log probabilities (N,) of the labels y (N,); -inf for a probability of 0."""
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self.probabilities[np.arange(len(self)), self.indices(y)]))

    def sample(self, rng: np.random.Generator, size: int = 1) -> NDArray[Any]:
        """Return drawn labels (size, N)."""
        above = rng.random((size, len(self), 1)) >= np.cumsum(self.probabilities, axis=1)[:, :-1]
        return np.asarray(self.classes[above.sum(axis=2)])


class ClassLabels(_Classes):
    """Predicted classes without probabilities; they have no log-likelihood.

    Parameters
    ----------
    values : array-like of shape (N,)
        Class indices.
    classes : array-like of shape (C,)
        Labels.
    """

    def __init__(self, values: ArrayLike, classes: ArrayLike) -> None:
        super().__init__(classes)
        self.values: NDArray[np.int64] = np.asarray(values, dtype=np.int64)

    def mode(self) -> NDArray[Any]:
        """Return the labels (N,) of the predicted classes."""
        return np.asarray(self.classes[self.values])


def _listed(labels: NDArray[Any]) -> str:
    return ", ".join(map(str, labels[:8].tolist())) + (", ..." if len(labels) > 8 else "")
