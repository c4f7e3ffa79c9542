"""A trust-region Newton search for the minimum of ``linear_energy``.

The unknowns of a step are those of the whitened coordinates at the current point: a symmetric (or diagonal) A and, if
the noise is learned, sqrt(N) a. The curvature of an easy problem is then half the identity. Steihaug's conjugate
gradients minimise the quadratic model inside a ball. If the decrease of the energy is below rounding errors, a step is
accepted if it reduces the gradient.
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

STEPS = 1000  # of Newton, at most; a dozen is usual
SHARP, STATIONARY = (
    1e-13,
    1e-8,
)  # gradient norms at which the search stops, and below which a point counts as stationary
MIN_RADIUS = 1e-12  # of the trust region


class NewtonPoint(NamedTuple):
    """A point with its optimal mean, energy and gradient."""

    at: EnergyPoint
    mu: Array  # (d,)
    energy: float  # nats
    slope: Array  # (d^2 + 1,) gradient in the coordinates of a step
    norm: float  # of the gradient, divided by (1 - beta) / 2, the scale of the curvature


class TrustRegionSearch:
    """The search of one problem, in a family of q.

    A learned noise variance below ``vanished_noise`` raises an error; None fixes the noise variance.
    """

    def __init__(self, problem: LinearRegressionProblem, *, diagonal: bool, vanished_noise: float | None) -> None:
        self._problem = problem
        self._learn_noise = vanished_noise is not None
        self._vanished_noise = vanished_noise or 0.0
        rows, self._d = problem.X.shape
        self._root_rows = math.sqrt(rows)
        self._mask = np.eye(self._d) if diagonal else np.ones((self._d, self._d))

    def fit(self, root: Array, noise_variance: float) -> NewtonPoint | None:
        """Return the point of covariance root root', root (d, d); None if a distribution there is improper."""
        at = point(self._problem, root, noise_variance)
        if at is None:
            return None
        mu = best_mean(self._problem, at)
        slope = gradient(self._problem, at, mu)
        vector = self._vector(slope.covariance, slope.noise)
        norm = 2.0 * float(np.linalg.norm(vector)) / (1.0 - self._problem.beta)
        return NewtonPoint(at, mu, energy(self._problem, at, mu), vector, norm)

    def descend(self, fit: NewtonPoint) -> tuple[NewtonPoint, list[float]]:
        """Return the stationary point reached from a point, and the energies of the accepted steps.

        Raises FloatingPointError if the search finds none.
        """
        trace, radius = [fit.energy], 1.0
        for _ in range(STEPS):
            if fit.norm <= SHARP or radius < MIN_RADIUS:
                break
            step, predicted = self._step(fit, radius)
            trial = self._moved(fit, step)
            if trial is not None and trial.at.noise_variance < self._vanished_noise:
                raise FloatingPointError(self._collapse())
            rounding = predicted <= 1e-14 * (len(self._problem.y) + self._d + abs(fit.energy))
            ratio = _decrease_ratio(fit, trial, predicted, rounding=rounding)
            if rounding and ratio <= 0.0 and fit.norm <= STATIONARY:
                break
            length = float(np.linalg.norm(step))
            radius = 0.25 * length if ratio < 0.25 else max(radius, 3.0 * length) if ratio > 0.75 else radius
            if trial is not None and ratio > 0.1:
                fit = trial
                trace.append(fit.energy)
        if not fit.norm <= STATIONARY:
            raise FloatingPointError(
                f"alpha = {self._problem.alpha:g}: no stationary point found: the gradient has norm {fit.norm:.3g} "
                f"after {len(trace) - 1} steps, at a noise variance of {fit.at.noise_variance:.3g}"
            )
        return fit, trace

    def _collapse(self) -> str:
        alpha = self._problem.alpha
        advice = "set noise_variance" + (" or use a smaller alpha" if alpha > 0.0 else "")
        return (
            f"alpha = {alpha:g}: no stationary point found: the energy falls as the noise variance goes to 0; {advice}"
        )

    def _step(self, fit: NewtonPoint, radius: float) -> tuple[Array, float]:
        """Return the minimiser of the quadratic model inside the radius (Steihaug), and its predicted decrease."""
        curvature = EnergyCurvature(self._problem, fit.at, fit.mu)
        step, curved = np.zeros_like(fit.slope), np.zeros_like(fit.slope)  # curved: curvature times step
        residual, direction = fit.slope.copy(), -fit.slope
        size = float(np.linalg.norm(fit.slope))
        enough = size * min(0.1, math.sqrt(fit.norm))
        for _ in range(2 * len(step)):
            product = self._product(curvature, direction)
            curvature_along, square = float(direction @ product), float(residual @ residual)
            length = square / curvature_along if curvature_along > 0.0 else math.inf
            if curvature_along <= 0.0 or float(np.linalg.norm(step + length * direction)) >= radius:
                length = _length_to_border(step, direction, radius)
                step, curved = step + length * direction, curved + length * product
                break
            step, curved = step + length * direction, curved + length * product
            residual = residual + length * product
            if float(np.linalg.norm(residual)) <= enough:
                break
            direction = -residual + float(residual @ residual) / square * direction
        return step, -float(fit.slope @ step + 0.5 * step @ curved)

    def _product(self, curvature: EnergyCurvature, vector: Array) -> Array:
        """Return the curvature times a direction (d^2 + 1,)."""
        A, a = vector[:-1].reshape(self._d, self._d), float(vector[-1]) / self._root_rows
        return self._vector(*curvature.times(A, a))

    def _vector(self, by_covariance: Array, by_noise: float) -> Array:
        """Return derivatives with respect to A (d, d) and a in the coordinates of a step, (d^2 + 1,)."""
        noise = by_noise / self._root_rows if self._learn_noise else 0.0
        return np.append((by_covariance * self._mask).ravel(), noise)

    def _moved(self, fit: NewtonPoint, step: Array) -> NewtonPoint | None:
        """Return the point T exp(A) T', sigma^2 exp(a), or None if it is improper."""
        A = step[:-1].reshape(self._d, self._d)
        values, vectors = np.linalg.eigh(0.5 * (A + A.T))
        root = fit.at.T @ (vectors * np.exp(0.5 * values)) @ vectors.T
        noise = fit.at.noise_variance * math.exp(float(step[-1]) / self._root_rows)
        return self.fit(root * self._mask, noise) if np.isfinite(root).all() else None


def _decrease_ratio(fit: NewtonPoint, trial: NewtonPoint | None, predicted: float, *, rounding: bool) -> float:
    """Return the actual decrease of the energy divided by the predicted one.

    If that is below rounding errors, return 1 for a smaller gradient, else 0; -inf for an improper trial point.
    """
    if trial is None or not math.isfinite(trial.energy):
        return -math.inf
    return float(trial.norm < fit.norm) if rounding else (fit.energy - trial.energy) / predicted


def _length_to_border(step: Array, direction: Array, radius: float) -> float:
    """Return the positive length at which step + length direction has norm radius."""
    a, b, c = float(direction @ direction), float(step @ direction), float(step @ step) - radius**2
    root = math.sqrt(max(b * b - a * c, 0.0))
    return (root - b) / a if b <= 0.0 else -c / (root + b)
