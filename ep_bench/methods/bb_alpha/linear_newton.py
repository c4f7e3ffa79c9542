"""A trust-region Newton search for the least energy of ``linear_energy``.

The unknowns of a step are those of the whitened coordinates at the present point: a symmetric (or diagonal) A and,
where the noise is learned, sqrt(N) a, so that the curvature of an easy problem is half the identity. Steihaug's
conjugate gradients minimise the quadratic model inside a ball. Where the energy's fall drowns in rounding, a step
counts if the gradient shrinks.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ep_bench.methods.bb_alpha.linear_energy import (
    EnergyCurvature,
    EnergyPoint,
    LinearRegressionProblem,
    best_mean,
    energy,
    gradient,
    point,
)
from ep_bench.types import Array

STEPS = 1000  # of Newton; a dozen is usual
SHARP, STATIONARY = 1e-13, 1e-8  # gradient norms: no further step is tried, and what counts as a stationary point
NARROWEST = 1e-12  # radius of the trust region


class NewtonPoint(NamedTuple):
    """A point with its best mean, the energy there, its gradient as a step's vector, and the gradient's norm."""

    at: EnergyPoint
    mu: Array
    energy: float
    slope: Array
    norm: float  # over (1 - beta) / 2, the scale of the energy's curvature


class TrustRegionSearch:
    """The search of one problem, in a family of q.

    ``least_noise`` is the noise variance below which a learned one counts as vanishing; None where it is not learned.
    """

    def __init__(self, problem: LinearRegressionProblem, *, diagonal: bool, least_noise: float | None) -> None:
        self._problem = problem
        self._learn_noise = least_noise is not None
        self._least_noise = least_noise or 0.0
        rows, self._d = problem.X.shape
        self._root_rows = math.sqrt(rows)
        self._mask = np.eye(self._d) if diagonal else np.ones((self._d, self._d))

    def fit(self, root: Array, noise_variance: float) -> NewtonPoint | None:
        """Return the fit of covariance root root'; None where q, a cavity or a tilted distribution is improper."""
        at = point(self._problem, root, noise_variance)
        if at is None:
            return None
        mu = best_mean(self._problem, at)
        slope = gradient(self._problem, at, mu)
        vector = self._vector(slope.covariance, slope.noise)
        norm = 2.0 * float(np.linalg.norm(vector)) / (1.0 - self._problem.beta)
        return NewtonPoint(at, mu, energy(self._problem, at, mu), vector, norm)

    def descend(self, fit: NewtonPoint) -> tuple[NewtonPoint, list[float]]:
        """Return the stationary point below a fit and the energies on the way.

        Raises FloatingPointError where there is none.
        """
        trace, radius = [fit.energy], 1.0
        for _ in range(STEPS):
            if fit.norm <= SHARP or radius < NARROWEST:
                break
            step, fall = self._step(fit, radius)
            trial = self._moved(fit, step)
            if trial is not None and trial.at.noise_variance < self._least_noise:
                raise FloatingPointError(self._collapse())
            drowned = fall <= 1e-14 * (len(self._problem.y) + self._d + abs(fit.energy))
            share = _fall_ratio(fit, trial, fall, drowned=drowned)
            if drowned and share <= 0.0 and fit.norm <= STATIONARY:
                break
            length = float(np.linalg.norm(step))
            radius = 0.25 * length if share < 0.25 else max(radius, 3.0 * length) if share > 0.75 else radius
            if trial is not None and share > 0.1:
                fit = trial
                trace.append(fit.energy)
        if not fit.norm <= STATIONARY:
            raise FloatingPointError(
                f"alpha = {self._problem.alpha:g}: no stationary point found: after {len(trace) - 1} steps, at a noise "
                f"variance of {fit.at.noise_variance:.3g}, the gradient still has norm {fit.norm:.3g}"
            )
        return fit, trace

    def _collapse(self) -> str:
        alpha = self._problem.alpha
        advice = "fix the noise variance" + (" or take a smaller alpha" if alpha > 0.0 else "")
        return (
            f"alpha = {alpha:g}: no stationary point found: the energy falls as the noise variance goes to 0; {advice}"
        )

    def _step(self, fit: NewtonPoint, radius: float) -> tuple[Array, float]:
        """Return the step of least quadratic model inside the radius (Steihaug), and how far the model falls."""
        curvature = EnergyCurvature(self._problem, fit.at, fit.mu)
        step, bent = np.zeros_like(fit.slope), np.zeros_like(fit.slope)  # bent: curvature times step
        residual, direction = fit.slope.copy(), -fit.slope
        size = float(np.linalg.norm(fit.slope))
        enough = size * min(0.1, math.sqrt(fit.norm))
        for _ in range(2 * len(step)):
            product = self._product(curvature, direction)
            bend, square = float(direction @ product), float(residual @ residual)
            length = square / bend if bend > 0.0 else math.inf
            if bend <= 0.0 or float(np.linalg.norm(step + length * direction)) >= radius:
                length = _to_border(step, direction, radius)
                step, bent = step + length * direction, bent + length * product
                break
            step, bent = step + length * direction, bent + length * product
            residual = residual + length * product
            if float(np.linalg.norm(residual)) <= enough:
                break
            direction = -residual + float(residual @ residual) / square * direction
        return step, -float(fit.slope @ step + 0.5 * step @ bent)

    def _product(self, curvature: EnergyCurvature, vector: Array) -> Array:
        A, a = vector[:-1].reshape(self._d, self._d), float(vector[-1]) / self._root_rows
        return self._vector(*curvature.times(A, a))

    def _vector(self, by_covariance: Array, by_noise: float) -> Array:
        noise = by_noise / self._root_rows if self._learn_noise else 0.0
        return np.append((by_covariance * self._mask).ravel(), noise)

    def _moved(self, fit: NewtonPoint, step: Array) -> NewtonPoint | None:
        """Return the fit at T exp(A) T' and sigma^2 exp(a), or None."""
        A = step[:-1].reshape(self._d, self._d)
        values, vectors = np.linalg.eigh(0.5 * (A + A.T))
        root = fit.at.T @ (vectors * np.exp(0.5 * values)) @ vectors.T
        noise = fit.at.noise_variance * math.exp(float(step[-1]) / self._root_rows)
        return self.fit(root * self._mask, noise) if np.isfinite(root).all() else None


def _fall_ratio(fit: NewtonPoint, trial: NewtonPoint | None, fall: float, *, drowned: bool) -> float:
    """Return the energy's fall over the model's; 1 or 0 by the gradient's where that drowns in rounding."""
    if trial is None or not math.isfinite(trial.energy):
        return -math.inf
    return float(trial.norm < fit.norm) if drowned else (fit.energy - trial.energy) / fall


def _to_border(step: Array, direction: Array, radius: float) -> float:
    """Return the positive length at which step + length direction has norm radius."""
    a, b, c = float(direction @ direction), float(step @ direction), float(step @ step) - radius**2
    root = math.sqrt(max(b * b - a * c, 0.0))
    return (root - b) / a if b <= 0.0 else -c / (root + b)
