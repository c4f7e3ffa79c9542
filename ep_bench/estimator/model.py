"""A registry method with its options: fit and predict in original units, without scikit-learn, whose import is slow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ep_bench.estimator.config import parse_options
from ep_bench.estimator.scaling import Scaling, standardisation
from ep_bench.numerics import mcmc_diagnostics
from ep_bench.predictions import ClassProbabilities, Predictive
from ep_bench.types import OFFERED, Array, Method, Rows

RandomState = int | np.random.Generator | np.random.RandomState | None


class MethodModel:
    """Base class of the models of registry methods; see ``Estimator`` for the attributes after ``fit``."""

    method: ClassVar[Method]
    standardize: bool
    constant_inputs: Mapping[int, float] | None
    random_state: RandomState
    x_scaling_: Scaling
    only_mean = False  # whether only the predictive mean is needed, so that a method may take less time

    def _fit_rows(self, rows: Rows, extra: Mapping[str, Any]) -> None:
        """Call the method's fit; ``extra`` are arguments that only some methods have."""
        fit = (self.only_mean and self.method.fit_mean) or self.method.fit
        fit_rng, self.predict_seed_ = _streams(self.random_state)
        self.state_, self.trace_ = fit(rows, self._config(), fit_rng, **extra)
        offered = {name: getattr(self.state_, name) for name in OFFERED if hasattr(self.state_, name)}
        for name, value in offered.items():
            setattr(self, f"{name}_", value)
        self.converged_ = convergence(offered.get("converged"))

    def _standardised(self, X: ArrayLike) -> Array:
        """Return inputs X (n, d) in standardised units."""
        return self.x_scaling_.apply(np.asarray(X, dtype=np.float64))

    def _answer(self, X: ArrayLike) -> Any:
        """Return the prediction of the method at inputs X (n, d), in standardised units."""
        inputs = self._standardised(X)  # an estimator raises NotFittedError before a fit
        return self.method.predict(self.state_, inputs, np.random.default_rng(self.predict_seed_))

    def _config(self) -> Any:
        options = {name: getattr(self, name) for name in self.method.config.model_fields}  # type: ignore[attr-defined]
        return parse_options(self.method, options)


class RegressionModel(MethodModel):
    """Base class of regression models, with standardised inputs and target."""

    y_scaling_: Scaling

    def fit(self, X: Array, y: Array, **extra: Any) -> Self:
        """Fit to inputs X (n, d) and targets y (n,) in original units."""
        self.x_scaling_, self.y_scaling_ = standardisation(
            X, y, self.constant_inputs, active=self.standardize, allow_nan=self.method.accepts_missing
        )
        self._fit_rows(Rows(self.x_scaling_.apply(X), self.y_scaling_.apply(y[:, None])[:, 0]), extra)
        return self

    def predict_dist(self, X: ArrayLike) -> Predictive:
        """Return the predictive distribution at inputs X (n, d), in original units, noise included."""
        standardised: Predictive = self._answer(X)
        return standardised.rescale(float(self.y_scaling_.shift[0]), float(self.y_scaling_.scale[0]))

    def diagnose(self, X: ArrayLike, name: str = "predictions") -> dict[str, float]:
        """Return convergence diagnostics of a sampler's predictions at inputs X (n, d); empty for other methods.

        The keys are ``r_hat_``, ``ess_bulk_`` and ``ess_tail_`` followed by ``name``. The values are the worst over the
        inputs, computed from the draws used for predictions by ``numerics.mcmc_diagnostics.measures``.
        """
        distribution = self.predict_dist(X)
        chain = getattr(self.state_, "chain", None)
        if chain is None:
            return {}
        means = distribution.means[:: len(distribution.means) // len(chain)]  # components of a draw have equal means
        by_chain = np.array([means[chain == place] for place in range(int(chain.max()) + 1)])
        return mcmc_diagnostics.measures(name, by_chain)[0]


class ClassificationModel(MethodModel):
    """Base class of classification models, with standardised inputs and labels of any type.

    ``classes_`` (C,) are the labels in ascending order: those of the option ``classes``, by default those in y.
    """

    classes: Sequence[Any] | None

    def fit(self, X: Array, y: NDArray[Any], **extra: Any) -> Self:
        """Fit to inputs X (n, d) in original units and labels y (n,)."""
        self.classes_, indices = _indexed(y, self.classes)
        allow_nan = self.method.accepts_missing
        self.x_scaling_ = (
            Scaling.of(X, self.constant_inputs, allow_nan=allow_nan)
            if self.standardize
            else Scaling.none(X.shape[1], allow_nan=allow_nan)
        )
        self._fit_rows(Rows(self.x_scaling_.apply(X), indices, len(self.classes_)), extra)
        return self

    def predict_dist(self, X: ArrayLike) -> ClassProbabilities:
        """Return the probabilities of the classes at inputs X (n, d)."""
        found = self._answer(X)
        if not isinstance(found, ClassProbabilities):
            raise TypeError(f"{self.method.name} must predict ClassProbabilities, found {type(found).__name__}")
        return ClassProbabilities(found.probabilities, self.classes_)


def _indexed(labels: NDArray[Any], classes: Sequence[Any] | None) -> tuple[NDArray[Any], Array]:
    """Return the classes (C,), ascending, and the labels' indices (n,) among them."""
    known, found = np.unique(labels if classes is None else np.asarray(classes)), np.unique(labels)
    if classes is not None and not np.isin(found, known).all():
        unknown = next(label for label in found.tolist() if label not in known.tolist())
        raise ValueError(f"y has the label {unknown!r}, which is none of classes: {known.tolist()}")
    if len(known) < 2:
        raise ValueError(f"there is only one class, {known.tolist()[0]!r}; a classifier needs two or more")
    return known, np.searchsorted(known, labels).astype(np.float64)


def convergence(stated: object) -> bool | None:
    """Return what a fit states of its convergence; None unless it is a truth value."""
    return bool(stated) if isinstance(stated, bool | np.bool_) else None


def _streams(random_state: RandomState) -> tuple[np.random.Generator, int]:
    """Return the generator of the fit and the seed of the predictions."""
    if isinstance(random_state, np.random.Generator):
        return random_state, int(random_state.integers(2**63))
    if isinstance(random_state, np.random.RandomState):
        random_state = int(random_state.randint(2**31))
    root = np.random.SeedSequence(random_state)
    fit, predict = root.spawn(2)
    return np.random.default_rng(fit), int(predict.generate_state(1, np.uint64)[0])
