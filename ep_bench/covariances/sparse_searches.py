"""Searches for hyperparameters and inducing inputs by L-BFGS, continued from the better of two trials.

``by_trials``, the default: the starts have hyperparameters after a short and a long search with fixed inducing inputs.
It stores 20 corrections.

``from_subset``: one start has hyperparameters after a few iterations with fixed inducing inputs, the other those of an
exact process on a random subset of the data. Neither of the two is always better. The search stores 100 corrections and
ends later. It usually takes longer, and can reach a higher evidence, but does not always.

Both scale inducing inputs by the roots of the shortest lengthscales, which needs fewer steps.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import NamedTuple

import numpy as np

from ep_bench.covariances.exact_evidence import GPProblem
from ep_bench.covariances.exact_evidence import evidence as exact_evidence
from ep_bench.covariances.hyperparameters import role
from ep_bench.covariances.map_search import search
from ep_bench.covariances.sparse_bound import SparseGPProblem, evidence_by_bound, split
from ep_bench.covariances.sparse_evidence import evidence
from ep_bench.numerics import lbfgs, symmetric
from ep_bench.numerics.lbfgs import Optimum
from ep_bench.types import Array


class SearchSettings(NamedTuple):
    """Settings of the search over all parameters."""

    evidence: Callable[[SparseGPProblem, Array], tuple[float, Array]]
    trial: int  # iterations of the trials
    settled: float  # gain (nats per data point) of the last hundred steps below which the search ends
    pairs: int  # stored corrections


FROM_SUBSET = SearchSettings(evidence, 50, 2e-5, 100)
BY_TRIALS = SearchSettings(evidence_by_bound, 100, 5e-4, lbfgs.PAIRS)
FIXED_INPUTS_STEPS = 10  # maximum iterations of the search with fixed inducing inputs
SUBSET, SUBSET_STEPS = 500, 40  # data points and maximum iterations of the exact process
TRIALS_STEPS = (10, 100)  # maximum iterations of both searches with fixed inducing inputs of ``by_trials``


def from_subset(problem: SparseGPProblem, starts: Sequence[Array], steps: int, rng: np.random.Generator) -> Optimum:
    """Return the end of the search from points (P + M d,).

    Raises the FloatingPointError of the last start if there is no evidence at any start.
    """
    points, error = [], FloatingPointError("no starting point")
    for start in starts:
        try:
            points.append(_with_fixed_inputs(problem, FROM_SUBSET, start, min(FIXED_INPUTS_STEPS, steps)))
        except FloatingPointError as failure:
            error = failure
        if problem.hyper.free.any():
            with suppress(FloatingPointError):
                points.append(_with_exact_hyperparameters(problem, start, min(SUBSET_STEPS, steps), rng))
    if not points:
        raise error
    return _joint_search(problem, FROM_SUBSET, points, steps)


def by_trials(problem: SparseGPProblem, starts: Sequence[Array], steps: int, rng: np.random.Generator) -> Optimum:  # noqa: ARG001
    """Return the end of the search, and raise, as ``from_subset`` does; ``rng`` is not used."""
    points, error = [], FloatingPointError("no starting point")
    for start in starts:
        try:
            points += [_with_fixed_inputs(problem, BY_TRIALS, start, min(count, steps)) for count in TRIALS_STEPS]
        except FloatingPointError as failure:
            error = failure
    if not points:
        raise error
    return _joint_search(problem, BY_TRIALS, points, steps)


def _joint_search(problem: SparseGPProblem, settings: SearchSettings, points: Sequence[Array], steps: int) -> Optimum:
    """Return the end of a search over all parameters, continued from the best of the trials from points (P + M d,)."""
    hyper, size = problem.hyper, len(problem.hyper.names)
    theta, Z = split(problem, points[0])
    unit = np.append(np.ones(size), np.tile(step_scales(hyper.values(theta), Z.shape[1]), len(Z)))

    def scaled(point: Array) -> tuple[float, Array]:
        value, gradient = settings.evidence(problem, point * unit)
        return value, gradient * unit

    found = search(scaled, hyper, [point / unit for point in points], min(settings.trial, steps), pairs=settings.pairs)
    if steps > found.iterations and not found.converged:
        gain = settings.settled * len(problem.y)
        more = search(scaled, hyper, [found.point], steps - found.iterations, gain, settings.pairs)
        found = more._replace(iterations=found.iterations + more.iterations, path=found.path + more.path)
    return found._replace(point=found.point * unit, path=[(point * unit, value) for point, value in found.path])


def _with_fixed_inputs(problem: SparseGPProblem, settings: SearchSettings, start: Array, steps: int) -> Array:
    """Return the end (P + M d,) of a search over the hyperparameters alone."""
    size = len(problem.hyper.names)

    def objective(point: Array) -> tuple[float, Array]:
        value, gradient = settings.evidence(problem, point)
        gradient[size:] = 0.0
        return value, gradient

    return search(objective, problem.hyper, [start], steps).point


def _with_exact_hyperparameters(problem: SparseGPProblem, start: Array, steps: int, rng: np.random.Generator) -> Array:
    """Return ``start`` (P + M d,) with the hyperparameters of an exact process on some of the data points."""
    size = len(problem.hyper.names)
    some = np.sort(rng.permutation(len(problem.y))[:SUBSET])
    exact = GPProblem(
        problem.X[some], problem.y[some], problem.covariance, problem.hyper, symmetric.square(len(some)),
        problem.replicates.part(some),
    )  # fmt: skip
    theta = search(partial(exact_evidence, exact), problem.hyper, [start[:size]], steps).point
    return np.append(theta, start[size:])


def step_scales(values: Mapping[str, float | Array], d: int) -> Array:
    """Return the scale (d,) of inducing inputs in the search: the root of the shortest lengthscale, or 1."""
    found = [np.broadcast_to(value, d) for name, value in values.items() if role(name) == "lengthscale"]
    return np.sqrt(np.min(found, axis=0)) if found else np.ones(d)
