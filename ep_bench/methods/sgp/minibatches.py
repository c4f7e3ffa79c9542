"""Learning of hyperparameters and inducing inputs on minibatches: Hensman, Fusi and Lawrence (2013).

c       number of data points N, divided by that of a minibatch
T, t    natural parameters of q(w): S^-1 (M, M) and S^-1 m (M,)

The bound of ``covariances.sparse_bound`` at fixed q(w) is a sum over data points. A minibatch estimates it, with each
data point counted c times. Each step moves hyperparameters and inducing inputs by Adam, and then q by its natural
gradient, a fraction rho of the way to the best q of the estimate:

    T <- (1 - rho) T + rho (I + c V' Lambda^-1 V),   t <- (1 - rho) t + rho c V' Lambda^-1 y,

This is the paper's update for Gaussian noise (section 3), with w in place of u. The evidence of FITC has such a bound
as well.

Deviation: the paper does not state its step sizes. Here the start is the end of a search by L-BFGS on a random subset
of the data, with the best q of all data points. Step sizes of Adam are constant for half the epochs, then decrease
linearly to 0.
"""

from __future__ import annotations

import numpy as np

from ep_bench.covariances.map_search import posterior
from ep_bench.covariances.sparse_bound import (
    InducingBasis,
    InducingPosterior,
    RowTerms,
    SparseGPProblem,
    basis,
    bound,
    of_precision,
    precision,
    split,
    sweep,
    terms,
)
from ep_bench.numerics.adam import adam_step, moments
from ep_bench.numerics.lbfgs import Optimum
from ep_bench.types import Array, Decrease, Indices

RHO = 0.1  # step of the natural gradient
SETTLED = Decrease(since=3, limit=0.02)  # of the negative estimates of a converged search, nats per data point


class _StochasticBound:
    """The estimate of the bound on the minibatch ``rows``; each evaluation also updates q(w)."""

    def __init__(self, problem: SparseGPProblem, point: Array) -> None:
        self.problem, self.rows = problem, np.arange(0)
        base = basis(problem, *split(problem, point))
        self.T, self.t = precision(sweep(problem, base), len(base.Z))
        self.q = self._weights(base)

    def __call__(self, point: Array) -> tuple[float, Array]:
        """Return the estimate (nats) at a point and its gradient (P + M d,), then update q."""
        problem, scale = self.problem, len(self.problem.y) / len(self.rows)
        base = basis(problem, *split(problem, point))
        part = terms(problem, base, self.rows)
        found = bound(problem, base, [part], self.q, scale)
        self._update(base, part, scale)
        return found

    def _update(self, base: InducingBasis, part: RowTerms, scale: float) -> None:
        B, b = precision([part], len(base.Z), scale)
        self.T += RHO * (B - self.T)
        self.t += RHO * (b - self.t)
        self.q = self._weights(base)

    def _weights(self, base: InducingBasis) -> InducingPosterior:
        return of_precision(self.problem, base, self.T.copy(), self.t)[0]


def optimise(
    problem: SparseGPProblem, start: Array, epochs: int, batch: int, rate: float, rng: np.random.Generator
) -> Optimum:
    """Return the end of Adam's steps from a point (P + M d,).

    The path has one point per epoch with the mean of the estimates (nats). Raises FloatingPointError as ``bound`` does.
    """
    hyper, count = problem.hyper, len(problem.y)
    estimate = _StochasticBound(problem, start)
    objective, free, whole = posterior(estimate, hyper, start)
    low, high = hyper.low[hyper.free], hyper.high[hyper.free]
    point, state = start[free], moments(int(free.sum()))
    path: list[tuple[Array, float]] = []
    for epoch in range(epochs):
        step, values = rate * min(1.0, 2.0 * (1.0 - epoch / epochs)), []
        for estimate.rows in minibatches(rng.permutation(count), batch):
            value, gradient = objective(point)
            adam_step(point, gradient, state, step)
            point[: len(low)] = np.clip(point[: len(low)], low, high)
            values.append(value)
        path.append((whole(point), float(np.mean(values))))
    last, value = path[-1]
    settled = has_settled([value / problem.replicates.data_points for _, value in path])
    return Optimum(last, value, int(state.steps[0]), settled, path)


def minibatches(order: Indices, size: int) -> list[Indices]:
    """Return the indices in order, split into minibatches of nearly equal size, at most ``size``."""
    return np.array_split(order, -(-len(order) // size))


def has_settled(values: list[float]) -> bool:
    """Return whether negative log densities (nats per data point, one per epoch) meet the criterion."""
    return bool(SETTLED.met(SETTLED.of(values)))
