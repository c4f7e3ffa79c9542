"""Hyperparameters of highest posterior density (type-II MAP), by searches over those that are not fixed."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence

import numpy as np

from ep_bench.covariances.from_options import candidates
from ep_bench.covariances.gaussian_process_config import GaussianProcessConfig
from ep_bench.covariances.hyperparameters import PRIORS, Hyperparameters
from ep_bench.covariances.protocol import Covariance
from ep_bench.numerics.lbfgs import PAIRS, Function, Optimum, minimise
from ep_bench.types import Array, Rows

SMALL_NOISE = 1e-6  # noise variance, divided by the variance of the targets, below which there is a warning


def prepared(
    train: Rows, config: GaussianProcessConfig, *likelihood: str, **fixed: float | None
) -> tuple[Array, Array, Covariance, Hyperparameters]:
    """Return the data X (n, d), y (n,), and the (first) covariance and hyperparameters that the options define.

    ``likelihood`` are the names of the likelihood's hyperparameters, ``fixed`` values that replace those of the
    options. Raises FloatingPointError if the data are not finite, and ValueError as ``Hyperparameters.of`` does.
    """
    X, y = np.array(train.X, dtype=np.float64, order="C"), np.array(train.y, dtype=np.float64)
    if not (np.isfinite(X).all() and np.isfinite(y).all()):
        raise FloatingPointError("inputs or targets are not finite")
    covariance = candidates(config.kernel, X.shape[1], config.ard)[0]
    values = {name: getattr(config, name, None) for name in PRIORS} | fixed
    names = (*covariance.names, *likelihood)
    return X, y, covariance, Hyperparameters.of(names, X.shape[1], values, flat=config.prior == "none")


def learn(
    evidence: Function,
    hyper: Hyperparameters,
    config: GaussianProcessConfig,
    rng: np.random.Generator,
    start: Array | None = None,
    repeats: str = "",
) -> Optimum:
    """Return the end of the best search: full points (P,) and negative log posterior densities (nats).

    ``evidence`` returns the log evidence (nats) and its gradient (P,) at logarithms (P,), or raises FloatingPointError.
    ``start`` (P,) is the only starting point, by default those of ``starting_points`` are used. The end is ``judged``.
    Warns as ``warn`` does, with ``repeats``. Raises FloatingPointError if there is no evidence at any start.
    """
    found = judged(search(evidence, hyper, starting_points(hyper, config, rng, start), config.steps), hyper)
    warn(found, hyper, config.steps, repeats=repeats, stacklevel=5)
    return found


def starting_points(
    hyper: Hyperparameters, config: GaussianProcessConfig, rng: np.random.Generator, start: Array | None = None
) -> list[Array]:
    """Return starting points (P,): ``start`` with the fixed values, or the medians of the priors and random points."""
    if start is not None:
        return [np.where(hyper.free, start, hyper.start())]
    return [hyper.start(), *(hyper.random_start(rng) for _ in range(config.starts - 1))]


def search(
    evidence: Function, hyper: Hyperparameters, starts: Sequence[Array], steps: int, gain: float = 0.0,
    pairs: int = PAIRS,
) -> Optimum:  # fmt: skip
    """Return the end of the best search as ``learn`` does, without warnings.

    ``gain`` and ``pairs`` are as in ``numerics.lbfgs``.
    Points may have further entries without prior and limits: (P + Q,).
    """
    rest = len(starts[0]) - len(hyper.names)
    low, high = (np.append(limits, np.full(rest, end)) for limits, end in ((hyper.low, -np.inf), (hyper.high, np.inf)))
    objective, free, whole = posterior(evidence, hyper, starts[0])
    found = minimise(objective, [start[free] for start in starts], low[free], high[free], steps, gain, pairs)
    return found._replace(point=whole(found.point), path=[(whole(point), value) for point, value in found.path])


def posterior(
    evidence: Function, hyper: Hyperparameters, template: Array
) -> tuple[Function, Array, Callable[[Array], Array]]:
    """Return the negative log posterior density of the free entries, their mask (P + Q,), and a map to full points.

    ``template`` (P + Q,) has the values of the fixed entries.
    """
    size = len(hyper.names)
    free = np.append(hyper.free, np.ones(len(template) - size, dtype=bool))

    def whole(point: Array) -> Array:
        full = template.copy()
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


def judged(found: Optimum, hyper: Hyperparameters) -> Optimum:
    """Return the end of a search as not converged if a variance is at its limit (``Hyperparameters.stopped``)."""
    return found._replace(converged=found.converged and not hyper.stopped(found.point[: len(hyper.names)]))


def warn_of_small_noise(log_noise: float, hyper: Hyperparameters, y: Array) -> None:
    """Warn with UserWarning if the learned noise variance is below 1e-6 of the variance of the targets y (n,).

    A noise at its limit is left out, because ``warn`` names it.
    """
    noise, scale = float(np.exp(log_noise)), float(np.var(y))
    if not np.isnan(hyper.fixed[-1]) or noise >= SMALL_NOISE * scale or log_noise <= hyper.low[-1]:
        return
    words = f"the noise variance is {noise / scale:.2g} of the variance of the target, close to 0; predictions may "
    warnings.warn(words + "be too certain, for example if data points repeat", UserWarning, stacklevel=4)


def warn(
    found: Optimum, hyper: Hyperparameters, steps: int, words: str = "", repeats: str = "", stacklevel: int = 4
) -> None:
    """Warn with scikit-learn's ConvergenceWarning if a search did not converge or a variance is at its limit.

    ``words`` replace the message on a search that did not converge. ``repeats`` is a message on data points with the
    same inputs (``replicates.unbounded_evidence``). It explains a noise that falls to 0; otherwise it is a UserWarning.
    """
    stopped = hyper.stopped(found.point[: len(hyper.names)])
    if repeats and stopped.startswith("noise_variance runs to 0"):
        stopped += f": {repeats}"
    elif repeats:
        warnings.warn(repeats, UserWarning, stacklevel=stacklevel)
    if found.converged and not stopped:
        return
    from ep_bench.errors import ConvergenceWarning

    limit = f"the search for hyperparameters ended after {found.iterations} of at most {steps} steps"
    if found.iterations < steps:
        limit += ", not at an optimum: the next points have no solution, or no step lowers the objective"
        limit += "; other starts or a fixed noise_variance or scale may help"
    else:
        limit += "; raise steps"
    hint = "; a fixed value excludes this limit" if stopped else ""
    hint += ", as does noise_floor of sgp" if stopped.startswith("noise_variance") else ""
    warnings.warn((stopped or words or limit) + hint, ConvergenceWarning, stacklevel=stacklevel)
