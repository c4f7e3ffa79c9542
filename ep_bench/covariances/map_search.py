"""Hyperparameters of highest posterior density: searches over those that are not given."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence

import numpy as np

from ep_bench.covariances.from_options import build
from ep_bench.covariances.hyperparameters import PRIORS, Hyperparameters
from ep_bench.covariances.options import GaussianProcessConfig
from ep_bench.covariances.protocol import Covariance
from ep_bench.numerics.lbfgs import Function, Optimum, minimise
from ep_bench.types import Array, Rows


def prepared(
    train: Rows, config: GaussianProcessConfig, *likelihood: str, **given: float | None
) -> tuple[Array, Array, Covariance, Hyperparameters]:
    """Return rows X (n, d), y (n,), and the covariance and hyperparameters that the options name.

    ``likelihood`` are the names of the hyperparameters behind the covariance's, ``given`` values that stand for those
    among the options. Raises FloatingPointError where a
    number among the rows is not finite, ValueError as ``Hyperparameters.of`` does.
    """
    X, y = np.array(train.X, dtype=np.float64, order="C"), np.array(train.y, dtype=np.float64)
    if not (np.isfinite(X).all() and np.isfinite(y).all()):
        raise FloatingPointError("inputs or targets are not finite")
    covariance = build(config.kernel, X.shape[1], config.ard)
    values = {name: getattr(config, name, None) for name in PRIORS} | given
    names = (*covariance.names, *likelihood)
    return X, y, covariance, Hyperparameters.of(names, X.shape[1], values, flat=config.prior == "none")


def learn(
    evidence: Function,
    hyper: Hyperparameters,
    config: GaussianProcessConfig,
    rng: np.random.Generator,
    start: Array | None = None,
) -> Optimum:
    """Return the end of the best search, its points (P,) in full and its values negative log posterior densities.

    ``evidence`` returns the log evidence (nats) and its gradient (P,) by the logarithms (P,), or raises
    FloatingPointError where there is none. ``start`` (P,), where it is given, is the one starting point. Warns by
    scikit-learn's ConvergenceWarning where the search ended at its limit of steps or a variance at a limit of the
    search. Raises FloatingPointError where no start has an evidence.
    """
    found = search(evidence, hyper, starting_points(hyper, config, rng, start), config.steps)
    warn(found, hyper, config.steps)
    return found


def starting_points(
    hyper: Hyperparameters, config: GaussianProcessConfig, rng: np.random.Generator, start: Array | None = None
) -> list[Array]:
    """Return ``start`` (P,) alone, with what is held, where it is given, else the priors' medians and random points."""
    if start is not None:
        return [np.where(hyper.free, start, hyper.start())]
    return [hyper.start(), *(hyper.random_start(rng) for _ in range(config.starts - 1))]


def search(
    evidence: Function, hyper: Hyperparameters, starts: Sequence[Array], steps: int, gain: float = 0.0
) -> Optimum:
    """Return the end of the best search as ``learn`` does, without its warnings; ``gain`` as in ``numerics.lbfgs``.

    Points may be longer than the hyperparameters: (P + Q,), the rest without prior and limits.
    """
    rest = len(starts[0]) - len(hyper.names)
    low, high = (np.append(limits, np.full(rest, end)) for limits, end in ((hyper.low, -np.inf), (hyper.high, np.inf)))
    objective, free, whole = posterior(evidence, hyper, starts[0])
    found = minimise(objective, [start[free] for start in starts], low[free], high[free], steps, gain)
    return found._replace(point=whole(found.point), path=[(whole(point), value) for point, value in found.path])


def posterior(
    evidence: Function, hyper: Hyperparameters, held: Array
) -> tuple[Function, Array, Callable[[Array], Array]]:
    """Return the negative log posterior density of what is learned, where in a point that is, and the way back.

    ``held`` (P + Q,) has the values of what is not learned.
    """
    size = len(hyper.names)
    free = np.append(hyper.free, np.ones(len(held) - size, dtype=bool))

    def whole(point: Array) -> Array:
        full = held.copy()
        full[free] = point
        return full

    def objective(point: Array) -> tuple[float, Array]:
        full = whole(point)
        log_evidence, gradient = evidence(full)
        log_prior, by_prior = hyper.log_prior(full[:size])
        by_point = gradient.copy()
        by_point[:size] += by_prior
        return -(log_evidence + log_prior), -by_point[free]

    return objective, free, whole


def warn(found: Optimum, hyper: Hyperparameters, steps: int, words: str = "") -> None:
    """Warn, in words of its own if it has any, where a search did not converge or a variance stands at its limit."""
    stopped = hyper.stopped(found.point[: len(hyper.names)])
    if found.converged and not stopped:
        return
    from sklearn.exceptions import ConvergenceWarning

    limit = f"the search for hyperparameters ended after {found.iterations} of at most {steps} steps"
    if found.iterations < steps:
        limit += ", at no optimum: before points without a solution, or on a slope that no step leads down"
    warnings.warn(stopped or words or limit, ConvergenceWarning, stacklevel=4)
