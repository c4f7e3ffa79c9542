"""The state of a chain and its moves.

An iteration consists of ``draw_hyperparameters``, which also rescales rectified units, and ``move``, one trajectory of
the weights with a Metropolis test (Neal 2011, section 3.2; Duane et al. 1987). The number of leapfrog steps is jittered
so that no direction returns to its start every time. The step size is jittered widely: the curvature varies much within
the posterior, and small steps free a chain that would be stuck.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ep_bench.methods.hmc import hyperparameters
from ep_bench.methods.hmc.model import NetworkModel, log_joint
from ep_bench.methods.hmc.trajectory import leapfrog, potential
from ep_bench.models import mlp, rectified, residuals

START_ROUNDS = 3  # of the search for a starting point
FASTEST = 10.0  # largest factor by which the noise precision grows from one round to the next
JITTER_STEPS = 0.3  # relative half-width of the number of leapfrog steps
JITTER_LOG_SIZE = (-1.0, 0.5)  # range of the logarithm of the step size's factor


class Walker:
    """Weights, hyperparameters and masses of one chain.

    ``is_single``: whether gradients of trajectories are in single precision if the network permits it.
    """

    def __init__(self, model: NetworkModel, rng: np.random.Generator, *, is_single: bool = False) -> None:
        self.model, self.rng = model, rng
        layers = model.rows.layers
        self.work = residuals.workspace(layers, model.rows.kind, len(model.rows.y))
        is_single = is_single and model.rows.kind == residuals.RELU
        self.single = rectified.single_precision(model.rows.X, model.rows.y, layers) if is_single else None
        self.w = mlp.initial_weights(layers, rng)  # (P,)
        groups = int(model.group.max()) + 1
        self.noise = model.noise_variance or 1.0  # variance
        self.prior = np.full(groups, model.prior_variance or 1.0)  # (G,) variances
        self.gradients = 0  # evaluations
        self.curvature = np.ones_like(self.w)  # (P,)
        self._g = np.empty_like(self.w)
        self.error = self._potential(self.w)[1]  # half the sum of squared residuals

    def _potential(self, w: Any) -> tuple[float, float]:
        self.gradients += 1
        return potential(self.model.rows, w, 1.0 / self.noise, self.tau, self.work, self._g)

    @property
    def tau(self) -> Any:
        """Prior precisions (P,) of the weights."""
        return (1.0 / self.prior)[self.model.group]

    def draw_from_prior(self) -> None:
        """Replace the weights by a draw from their prior."""
        self.w = self.rng.standard_normal(len(self.w)) / np.sqrt(self.tau)
        self.error = self._potential(self.w)[1]

    def start(self, iterations: int) -> None:
        """Move close to a mode: in turns, L-BFGS on the weights and updates of the hyperparameters.

        ``iterations`` limits L-BFGS per round. Chains start from different weights and so close to different modes.
        """
        from scipy.optimize import minimize

        model = self.model
        for _ in range(START_ROUNDS if iterations else 0):
            found = minimize(self._objective, self.w, jac=True, method="L-BFGS-B", options={"maxiter": iterations})
            if np.isfinite(found.x).all() and found.fun < np.inf:
                self.w = np.array(found.x)
            self.error = self._potential(self.w)[1]
            if model.noise_variance is None:
                a, b = model.noise_prior
                mean = (b + self.error) / (a + 0.5 * len(model.rows.y))
                self.noise = max(mean, self.noise / FASTEST)
            if model.prior_variance is None:
                a, b = model.weight_prior
                counts = np.bincount(model.group)
                squares = np.bincount(model.group, weights=self.w**2)
                self.prior = (b + 0.5 * squares) / (a + 0.5 * counts)

    def _objective(self, w: Any) -> tuple[float, Any]:
        return self._potential(np.ascontiguousarray(w))[0], self._g.copy()

    def draw_hyperparameters(self) -> None:
        """Rescale rectified units and draw the variances that are not fixed, given the weights."""
        model = self.model
        if model.rows.kind == residuals.RELU:
            hyperparameters.rescale(self.w, model.rows.layers, self.tau, self.rng)
        if model.prior_variance is None:
            self.prior = hyperparameters.draw_prior_variances(self.w, model.group, model.weight_prior, self.rng)
        if model.noise_variance is None:
            a, b = model.noise_prior
            self.noise = float(hyperparameters.draw_variance(a + 0.5 * len(model.rows.y), b + self.error, self.rng))

    def move(self, step: float, steps: int) -> float:
        """Propose weights by one trajectory and accept or reject them.

        Returns the acceptance probability, NaN for a divergent trajectory.
        """
        tau, beta = self.tau, 1.0 / self.noise
        mass = beta * self.curvature + tau
        p = np.sqrt(mass) * self.rng.standard_normal(len(mass))
        size = step * math.exp(self.rng.uniform(*JITTER_LOG_SIZE))
        count = max(1, round(steps * (1.0 + JITTER_STEPS * self.rng.uniform(-1.0, 1.0))))
        w = self.w.copy()
        change, error, gradients = leapfrog(
            self.model.rows, w, p, beta, tau, 1.0 / mass, size, count, self.work, self.single
        )
        self.gradients += gradients
        accepted = self.rng.random() < math.exp(min(0.0, -change))
        if accepted:
            self.w, self.error = w, error
        return math.exp(min(0.0, -change)) if change < np.inf else math.nan

    def log_joint(self) -> float:
        """Return the log density (nats) of weights, variances and targets."""
        return log_joint(self.model, self.w, self.error, self.noise, self.prior)
