"""Common base class of the scikit-learn classes of registry methods: the call of the method's fit and its results."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, validate_data

from ep_bench.estimator.model import MethodModel
from ep_bench.types import Array


class MethodEstimator(MethodModel, BaseEstimator):  # type: ignore[misc]
    """A registry method with the interface of scikit-learn; see ``Estimator`` for the attributes after ``fit``."""

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore a pickle; memory-mapped arrays are copied, since kernels are compiled for writable arrays."""
        super().__setstate__(copy.deepcopy(state))

    def _forget(self) -> None:
        """Remove the attributes of a previous fit: after a failed fit, predictions must raise NotFittedError."""
        for name in [name for name in vars(self) if name.endswith("_")]:
            delattr(self, name)

    def _standardised(self, X: ArrayLike) -> Array:
        """Return inputs X (n, d) in standardised units."""
        check_is_fitted(self, "state_")
        return super()._standardised(validate_data(self, X, dtype=np.float64, reset=False))
