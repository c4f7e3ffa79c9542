"""Hyperparameters and inducing inputs by steps on minibatches: Hensman, Fusi and Lawrence (2013).

c       rows N over those of a minibatch
T, t    natural parameters of q(w): S^-1 (M, M) and S^-1 m (M,)

The bound of module ``bound`` at fixed q(w) is a sum over rows. Each step takes a minibatch, moves hyperparameters and
inducing inputs by Adam up the bound's estimate, the minibatch's rows counted c times, then q by its natural gradient:
a share rho of the way to the best q for that estimate,

    T <- (1 - rho) T + rho (I + c V' Lambda^-1 V),   t <- (1 - rho) t + rho c V' Lambda^-1 y,

the paper's update for Gaussian noise (section 3), w in place of u. FITC's evidence has such a bound as well.

Deviation: the paper moves q and the rest by steps that it does not state. Here the start is the end of a search by
L-BFGS on some rows drawn at random, with the best q of all rows; step sizes of Adam stay for half the epochs, then
fall to 0 in a straight line.
"""

from __future__ import annotations

import numpy as np

from ep_bench.covariances.map_search import posterior
from ep_bench.methods.sgp.bound import (
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
from ep_bench.types import Array, Indices

SHARE = 0.1  # rho
SETTLED = 0.02  # nats a row that the last quarter of the epochs may gain on the one before


class _Steps:
    """q(w) and the minibatch at hand."""

    def __init__(self, problem: SparseGPProblem, point: Array) -> None:
        self.problem, self.rows = problem, np.arange(0)
        base = basis(problem, *split(problem, point))
        self.T, self.t = precision(sweep(problem, base), len(base.Z))
        self.q = self._weights(base)

    def __call__(self, point: Array) -> tuple[float, Array]:
        """Return the estimate at a point and its gradient (P + M d,), then move q."""
        problem, scale = self.problem, len(self.problem.y) / len(self.rows)
        base = basis(problem, *split(problem, point))
        part = terms(problem, base, problem.X[self.rows], problem.y[self.rows])
        found = bound(problem, base, [part], self.q, scale)
        self._move(base, part, scale)
        return found

    def _move(self, base: InducingBasis, part: RowTerms, scale: float) -> None:
        B, b = precision([part], len(base.Z), scale)
        self.T += SHARE * (B - self.T)
        self.t += SHARE * (b - self.t)
        self.q = self._weights(base)

    def _weights(self, base: InducingBasis) -> InducingPosterior:
        return of_precision(self.problem, base, self.T.copy(), self.t)[0]


def optimise(
    problem: SparseGPProblem, start: Array, epochs: int, batch: int, rate: float, rng: np.random.Generator
) -> Optimum:
    """Return where Adam comes to from a point (P + M d,), its path by epochs with the means of their estimates.

    It has converged where the estimates had settled. Raises FloatingPointError as ``bound`` does.
    """
    hyper, count = problem.hyper, len(problem.y)
    steps = _Steps(problem, start)
    objective, free, whole = posterior(steps, hyper, start)
    low, high = hyper.low[hyper.free], hyper.high[hyper.free]
    point, state = start[free], moments(int(free.sum()))
    path: list[tuple[Array, float]] = []
    for epoch in range(epochs):
        step, values = rate * min(1.0, 2.0 * (1.0 - epoch / epochs)), []
        for steps.rows in minibatches(rng.permutation(count), batch):
            value, gradient = objective(point)
            adam_step(point, gradient, state, step)
            point[: len(low)] = np.clip(point[: len(low)], low, high)
            values.append(value)
        path.append((whole(point), float(np.mean(values))))
    last, value = path[-1]
    return Optimum(last, value, int(state.steps[0]), has_settled([value / count for _, value in path]), path)


def minibatches(order: Indices, size: int) -> list[Indices]:
    """Return the rows in their order, in minibatches of nearly the same number of rows, ``size`` at most."""
    return np.array_split(order, -(-len(order) // size))


def has_settled(values: list[float]) -> bool:
    """Return whether estimates, nats a row, fell by no more than SETTLED from the last but one quarter to the last."""
    quarter = len(values) // 4
    if quarter == 0:
        return False
    return float(np.mean(values[-2 * quarter : -quarter]) - np.mean(values[-quarter:])) <= SETTLED
