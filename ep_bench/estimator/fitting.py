"""Common base class of the scikit-learn classes of registry methods: the call of the method's fit and its results."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, validate_data

from ep_bench.estimator.config import parse_options
from ep_bench.estimator.scaling import Scaling
from ep_bench.types import OFFERED, Array, Method, Rows

RandomState = int | np.random.Generator | np.random.RandomState | None


class MethodEstimator(BaseEstimator):  # type: ignore[misc]
    """A registry method with the interface of scikit-learn; see ``Estimator`` for the attributes after ``fit``."""

    method: ClassVar[Method]
    standardize: bool
    constant_inputs: Mapping[int, float] | None
    random_state: RandomState
    x_scaling_: Scaling
    only_mean = False  # whether only the predictive mean is needed, so that a method may take less time

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore a pickle; memory-mapped arrays are copied, since kernels are compiled for writable arrays."""
        super().__setstate__(copy.deepcopy(state))

    def _forget(self) -> None:
        """Remove the attributes of a previous fit: after a failed fit, predictions must raise NotFittedError."""
        for name in [name for name in vars(self) if name.endswith("_")]:
            delattr(self, name)

    def _fit_rows(self, rows: Rows, extra: Mapping[str, Any]) -> None:
        """Call the method's fit; ``extra`` are arguments that only some methods have."""
        config = self._config()
        fit = (self.only_mean and self.method.fit_mean) or self.method.fit
        fit_rng, self.predict_seed_ = _streams(self.random_state)
        self.state_, self.trace_ = fit(rows, config, fit_rng, **extra)
        self._expose_state()

    def _expose_state(self) -> None:
        """Set the attributes listed in OFFERED that the state has."""
        for name in OFFERED:
            if hasattr(self.state_, name):
                setattr(self, f"{name}_", getattr(self.state_, name))

    def _standardised(self, X: ArrayLike) -> Array:
        """Return inputs X (n, d) in standardised units."""
        check_is_fitted(self, "state_")
        return self.x_scaling_.apply(validate_data(self, X, dtype=np.float64, reset=False))

    def _answer(self, X: ArrayLike) -> Any:
        """Return the prediction of the method at inputs X (n, d), in standardised units."""
        inputs = self._standardised(X)  # raises NotFittedError before a fit
        return self.method.predict(self.state_, inputs, np.random.default_rng(self.predict_seed_))

    def _config(self) -> Any:
        options = {name: getattr(self, name) for name in self.method.config.model_fields}  # type: ignore[attr-defined]
        return parse_options(self.method, options)


def _streams(random_state: RandomState) -> tuple[np.random.Generator, int]:
    """Return the generator of the fit and the seed of the predictions."""
    if isinstance(random_state, np.random.Generator):
        return random_state, int(random_state.integers(2**63))
    if isinstance(random_state, np.random.RandomState):
        random_state = int(random_state.randint(2**31))
    root = np.random.SeedSequence(random_state)
    fit, predict = root.spawn(2)
    return np.random.default_rng(fit), int(predict.generate_state(1, np.uint64)[0])
