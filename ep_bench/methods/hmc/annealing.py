"""Log evidence of a network with known variances, by annealed importance sampling (Neal 2001).

The likelihood is raised to the inverse temperatures t_0 = 0 < t_1 < ... < t_K = 1. With Gaussian noise of variance s2,
this is noise of variance s2 / t, so the moves of a chain (``walker``) serve for each p_k(w) ~ p(w) p(y | w)^t_k.

    log r = sum_k (t_k+1 - t_k) log p(y | w_k),   w_0 from the prior, w_k+1 by moves from w_k that keep p_k+1 invariant

has E[r] = p(y). On the way back, from a draw of the posterior, the same sum is the log of a ratio r' of mean 1 / p(y).
In expectation, log r is a lower bound on the log evidence and -log r' an upper one (Grosse et al. 2015). The draw of
the posterior is the end of the way there after further moves, so the upper bound is only as good as these.

Step sizes and masses are those of a first path, which is not used otherwise: they are constant in each of ``BLOCKS``
equal parts of the path. Inverse temperatures are geometric from ``FIRST`` s2 / n on, because the standard deviation of
the log-likelihood is about proportional to 1 / t.

``bound`` is the variational lower bound of a Gaussian approximation of the same posterior.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from scipy.special import logsumexp

from ep_bench.methods.hmc.adaptation import RunningCurvature, StepSize, pooled
from ep_bench.methods.hmc.chain import FIRST_PROBES, FIRST_STEP
from ep_bench.methods.hmc.model import NetworkModel
from ep_bench.methods.hmc.walker import Walker
from ep_bench.models import meanfield, residuals

BLOCKS = 50
DRAWS = 2000  # of the expected log-likelihood of a variational bound
FIRST = 0.02
SETTLE = 0.1  # moves at the posterior before the way back, as a fraction of those of a path


class AnnealingPath(NamedTuple):
    """Inverse temperatures, and the settings of the moves at each of them."""

    t: Any  # (K + 1,)
    block: Any  # (K + 1,) part of the path of each
    sizes: Any  # (BLOCKS,) step sizes
    curvatures: Any  # (BLOCKS, P)
    steps: int  # leapfrog steps per trajectory


def temperatures(model: NetworkModel, count: int) -> Any:
    """Return the inverse temperatures (count + 1,)."""
    first = FIRST * float(model.noise_variance or 1.0) / len(model.rows.y)
    return np.append(0.0, np.geomspace(first, 1.0, count))


def adapted(model: NetworkModel, count: int, steps: int, target: float, rng: np.random.Generator) -> AnnealingPath:
    """Return a path of ``count`` steps with the step sizes and masses of a run along it."""
    t = temperatures(model, count)
    block = np.minimum(np.arange(count + 1) * BLOCKS // count, BLOCKS - 1)
    walker, size = _from_prior(model, rng), StepSize(FIRST_STEP, target)
    sizes, curvatures, found = [], [], RunningCurvature(len(walker.w))
    found.add(model.rows, walker.w, walker.work, rng, FIRST_PROBES)
    for part in range(BLOCKS):
        curvatures.append(pooled(found.mean(), model.rows.layers))
        found = RunningCurvature(len(walker.w))
        for at in t[block == part]:
            size.update(_moved(walker, at, curvatures[-1], size.trial, steps))
            found.add(model.rows, walker.w, walker.work, rng)
        sizes.append(size.averaged)
        size.restart(size.averaged)
    return AnnealingPath(t, block, np.array(sizes), np.array(curvatures), steps)


def log_ratios(model: NetworkModel, path: AnnealingPath, rng: np.random.Generator) -> tuple[float, float]:
    """Return log r on the way from the prior to the posterior, and log r' on the way back."""
    walker, last = _from_prior(model, rng), len(path.t) - 1
    there = _run(walker, path, range(last + 1))
    for _ in range(round(SETTLE * last)):
        _moved(walker, 1.0, path.curvatures[-1], path.sizes[-1], path.steps)
    return there, _run(walker, path, range(last, -1, -1))


def bound(model: NetworkModel, mean: Any, factor: Any, rng: np.random.Generator) -> tuple[float, float]:
    """Return the variational lower bound of a Gaussian with means (P,), and its standard error.

    ``factor`` has the standard deviations (P,), or the Cholesky factor (P, P) of a full covariance. The expected
    log-likelihood is a mean over draws from the Gaussian.
    """
    rows, size = model.rows, len(mean)
    noise = rng.standard_normal((DRAWS, size))
    W = mean + (noise * factor if factor.ndim == 1 else noise @ factor.T)
    errors = 0.5 * ((rows.y - residuals.outputs(rows.X, W, rows.layers, rows.kind)) ** 2).sum(axis=1)
    logs = _log_likelihood(model, errors)
    std, conditional = (factor, factor) if factor.ndim == 1 else (np.linalg.norm(factor, axis=1), np.diag(factor))
    distance = meanfield.divergence(mean, std, np.full(size, model.prior_variance)) + np.log(std / conditional).sum()
    return float(logs.mean() - distance), float(logs.std() / np.sqrt(DRAWS))


def log_mean(ratios: Any) -> tuple[float, float]:
    """Return the log of the mean of ratios, given their logs (R,), and its standard error by the delta method."""
    logs = np.asarray(ratios, dtype=float)
    mean = float(logsumexp(logs) - np.log(len(logs)))
    return mean, float(np.exp(logs - mean).std(ddof=1) / np.sqrt(len(logs)))


def _run(walker: Walker, path: AnnealingPath, places: range) -> float:
    """Move a walker along places of the path and return the sum of the log ratios."""
    total = 0.0
    for at, following in pairwise(places):
        total += (path.t[following] - path.t[at]) * _log_likelihood(walker.model, walker.error)
        part = path.block[following]
        _moved(walker, path.t[following], path.curvatures[part], path.sizes[part], path.steps)
    return float(total)


def _from_prior(model: NetworkModel, rng: np.random.Generator) -> Walker:
    walker = Walker(model, rng)
    walker.draw_from_prior()
    return walker


def _moved(walker: Walker, t: float, curvature: Any, size: float, steps: int) -> float:
    """Move a walker at an inverse temperature and return the acceptance probability; at 0 nothing moves."""
    if t == 0.0:
        return 1.0
    walker.noise, walker.curvature = float(walker.model.noise_variance or 1.0) / t, curvature
    walker.draw_hyperparameters()
    return float(np.nan_to_num(walker.move(size, steps)))


def _log_likelihood(model: NetworkModel, error: Any) -> Any:
    """Return the log-likelihood for half the sum of squared residuals."""
    noise = float(model.noise_variance or 1.0)
    return -0.5 * len(model.rows.y) * np.log(2.0 * np.pi * noise) - error / noise
