"""Searches for hyperparameters and inducing inputs by L-BFGS, continued from the better of two trials.

The trials start with hyperparameters after searches with fixed inducing inputs. ``FEW`` is for up to some thousand data
points. ``MANY`` stores more corrections, ends later, and its first trial starts at the given point. On many data points
it ends at a higher variational bound after about the same time, on few it takes longer for the same value. The evidence
of FITC is not reliably higher.

Both scale inducing inputs by the roots of the shortest lengthscales, which needs fewer steps.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from ep_bench.covariances.hyperparameters import role
from ep_bench.covariances.map_search import search
from ep_bench.covariances.sparse_bound import SparseGPProblem, evidence_by_bound, split
from ep_bench.covariances.sparse_evidence import evidence
from ep_bench.numerics import lbfgs
from ep_bench.numerics.lbfgs import Optimum
from ep_bench.types import Array


class SearchSettings(NamedTuple):
    """Settings of the searches."""

    evidence: Callable[[SparseGPProblem, Array], tuple[float, Array]]
    fixed: tuple[int, ...]  # maximum iterations with fixed inducing inputs before each trial
    settled: float  # gain (nats per data point) of the last hundred steps below which the search ends
    pairs: int  # stored corrections


FEW = SearchSettings(evidence_by_bound, (10, 100), 5e-4, lbfgs.PAIRS)
MANY = SearchSettings(evidence, (0, 100), 2e-4, 100)
TRIAL = 100  # iterations of the trials


def by_trials(problem: SparseGPProblem, starts: Sequence[Array], steps: int, settings: SearchSettings = FEW) -> Optimum:
    """Return the end of the search from points (P + M d,).

    Raises the FloatingPointError of the last start if there is no evidence at any start.
    """
    points, error = [], FloatingPointError("no starting point")
    for start in starts:
        try:
            points += [_with_fixed_inputs(problem, settings, start, min(count, steps)) for count in settings.fixed]
        except FloatingPointError as failure:
            error = failure
    if not points:
        raise error
    return _joint_search(problem, settings, points, steps)


def _joint_search(problem: SparseGPProblem, settings: SearchSettings, points: Sequence[Array], steps: int) -> Optimum:
    """Return the end of a search over all parameters, continued from the best of the trials from points (P + M d,)."""
    hyper, size = problem.hyper, len(problem.hyper.names)
    theta, Z = split(problem, points[0])
    unit = np.append(np.ones(size), np.tile(step_scales(hyper.values(theta), Z.shape[1]), len(Z)))

    def scaled(point: Array) -> tuple[float, Array]:
        value, gradient = settings.evidence(problem, point * unit)
        return value, gradient * unit

    found = search(scaled, hyper, [point / unit for point in points], min(TRIAL, steps), pairs=settings.pairs)
    if steps > found.iterations and not found.converged:
        gain = settings.settled * len(problem.y)
        more = search(scaled, hyper, [found.point], steps - found.iterations, gain, settings.pairs)
        found = more._replace(iterations=found.iterations + more.iterations, path=found.path + more.path)
    return found._replace(point=found.point * unit, path=[(point * unit, value) for point, value in found.path])


def _with_fixed_inputs(problem: SparseGPProblem, settings: SearchSettings, start: Array, steps: int) -> Array:
    """Return the end (P + M d,) of a search over the hyperparameters alone."""
    if steps == 0:
        return start
    size = len(problem.hyper.names)

    def objective(point: Array) -> tuple[float, Array]:
        value, gradient = settings.evidence(problem, point)
        gradient[size:] = 0.0
        return value, gradient

    return search(objective, problem.hyper, [start], steps).point


def step_scales(values: Mapping[str, float | Array], d: int) -> Array:
    """Return the scale (d,) of inducing inputs in the search: the root of the shortest lengthscale, or 1."""
    found = [np.broadcast_to(value, d) for name, value in values.items() if role(name) == "lengthscale"]
    return np.sqrt(np.min(found, axis=0)) if found else np.ones(d)
