"""Hyperparameters of highest posterior density: searches over those that are not given."""

from __future__ import annotations

import warnings

import numpy as np

from ep_bench.covariances.hyper import Hyper
from ep_bench.covariances.options import GaussianProcessConfig
from ep_bench.numerics.search import Function, Optimum, least
from ep_bench.types import Array


def learn(
    evidence: Function,
    hyper: Hyper,
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
    free, held = hyper.free, hyper.start()

    def whole(point: Array) -> Array:
        theta = held.copy()
        theta[free] = point
        return theta

    def objective(point: Array) -> tuple[float, Array]:
        theta = whole(point)
        log_evidence, gradient = evidence(theta)
        log_prior, by_prior = hyper.log_prior(theta)
        return -(log_evidence + log_prior), -(gradient + by_prior)[free]

    starts = (
        [start] if start is not None else [hyper.start(), *(hyper.random_start(rng) for _ in range(config.starts - 1))]
    )
    found = least(objective, [start[free] for start in starts], hyper.low[free], hyper.high[free], config.steps)
    found = found._replace(point=whole(found.point), path=[(whole(point), value) for point, value in found.path])
    _warn(found, hyper, config.steps)
    return found


def _warn(found: Optimum, hyper: Hyper, steps: int) -> None:
    stopped = hyper.stopped(found.point)
    if found.converged and not stopped:
        return
    from sklearn.exceptions import ConvergenceWarning

    limit = f"the search for hyperparameters ended after {found.iterations} of at most {steps} steps"
    warnings.warn(stopped or limit, ConvergenceWarning, stacklevel=4)
