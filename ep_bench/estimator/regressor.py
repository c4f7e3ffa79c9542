"""The scikit-learn regressors of registry methods: inputs and target standardised, predictions in original units."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import RegressorMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import validate_data

from ep_bench.estimator.fitting import MethodEstimator
from ep_bench.estimator.scaling import standardisation
from ep_bench.numerics import mcmc_diagnostics
from ep_bench.types import Array, Predictive, Rows


class MethodRegressor(RegressorMixin, MethodEstimator):  # type: ignore[misc]
    """Common part of the registry methods' regressors; ``Estimator`` says what they have after ``fit``."""

    def fit(self, X: ArrayLike, y: ArrayLike, **extra: Any) -> MethodRegressor:
        """Fit to rows X (n, d) and targets y (n,) in original units.

        ``extra`` goes to the method's own ``fit`` (PBP takes ``start`` and ``orders``).
        Raises ValueError for bad arrays or options, FloatingPointError where the method diverges. Warns by
        scikit-learn's ConvergenceWarning, with the method's name, where it did not reach its own criterion.
        """
        inputs, targets = validate_data(self, X, y, y_numeric=True, dtype=np.float64)
        targets = np.asarray(targets, dtype=np.float64)
        self.x_scaling_, self.y_scaling_ = standardisation(
            inputs, targets, self.constant_inputs, active=self.standardize
        )
        self._fit_rows(Rows(self.x_scaling_.apply(inputs), self.y_scaling_.apply(targets[:, None])[:, 0]), extra)
        return self

    def predict_dist(self, X: ArrayLike) -> Predictive:
        """Return the predictive distribution of rows X (n, d): original units, noise included."""
        standardised: Predictive = self._answer(X)
        return standardised.rescale(float(self.y_scaling_.shift[0]), float(self.y_scaling_.scale[0]))

    def predict(self, X: ArrayLike, return_std: bool = False) -> Array | tuple[Array, Array]:
        """Return means (n,), with ``return_std`` also standard deviations (n,), noise included; original units."""
        distribution = self.predict_dist(X)
        return (distribution.mean(), distribution.std()) if return_std else distribution.mean()

    def diagnose(self, X: ArrayLike, name: str = "predictions") -> dict[str, float]:
        """Return how well a sampler's predictions for rows X (n, d) have mixed; empty for methods that are none.

        By ``r_hat_``, ``ess_bulk_`` and ``ess_tail_`` with ``name``, the worst of the rows, of the draws that are kept
        for predictions: ``numerics.mcmc_diagnostics.measures``.
        """
        distribution = self.predict_dist(X)
        chain = getattr(self.state_, "chain", None)
        if chain is None:
            return {}
        means = distribution.means[:: len(distribution.means) // len(chain)]  # parts of a draw have one mean
        by_chain = np.array([means[chain == place] for place in range(int(chain.max()) + 1)])
        return mcmc_diagnostics.measures(name, by_chain)[0]

    @available_if(lambda self: self.method.latent is not None)  # type: ignore[untyped-decorator]
    def latent(self, X: ArrayLike) -> tuple[Array, Array]:
        """Return means (n,) and variances (n,) of the function at rows X (n, d), noise left out; original units."""
        inputs = self._standardised(X)
        mean, variance = self.method.latent(self.state_, inputs)  # type: ignore[misc]
        scale = float(self.y_scaling_.scale[0])
        return float(self.y_scaling_.shift[0]) + scale * mean, scale**2 * variance
