"""Trajectories of the hidden weights of a rectified network, with the output weights integrated out.

Given the outputs Phi (N, K + 1) of the hidden units and a constant, the targets are Gaussian with covariance
s2 I + v Phi Phi'. The gradient of their log density by Phi needs a Cholesky factor of size K + 1 and two more products
of matrices than that of all weights. After each trajectory, the output weights are drawn given the hidden ones.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.linalg import cho_solve, cholesky, solve_triangular

from ep_bench.methods.hmc import walker as walkers
from ep_bench.methods.hmc.trajectory import DIVERGENT
from ep_bench.methods.hmc.walker import Walker


class OutputsIntegrated(Walker):
    def _marginal(self, hidden: Any) -> tuple[float, Any, Any, Any]:
        """Return minus the log density (nats), its gradient, and mean and precision factor of the output weights."""
        (X, y), tau = self.model.rows[:2], 1.0 / self.prior[0]
        self.gradients += 1
        weights = hidden.reshape(X.shape[1] + 1, -1)  # the last row has the biases
        a = X @ weights[:-1] + weights[-1]
        Phi = np.column_stack([np.maximum(a, 0.0), np.ones(len(y))])
        L = cholesky(Phi.T @ Phi / self.noise + tau * np.eye(Phi.shape[1]), lower=True)
        mean = cho_solve((L, True), Phi.T @ y) / self.noise
        residual = y - Phi @ mean
        value = np.log(L.diagonal()).sum() + 0.5 * (y @ residual / self.noise + tau * hidden @ hidden)
        by_a = (Phi @ cho_solve((L, True), np.eye(len(L))) - np.outer(residual, mean))[:, :-1] / self.noise * (a > 0.0)
        return value, np.append((X.T @ by_a).ravel(), by_a.sum(axis=0)) + tau * hidden, mean, L

    def move(self, step: float, steps: int) -> float:
        size = int(self.model.rows.layers[1, 0])
        mass = self.curvature[:size] / self.noise + 1.0 / self.prior[0]
        q, p = self.w[:size].copy(), np.sqrt(mass) * self.rng.standard_normal(size)
        step *= math.exp(self.rng.uniform(*walkers.JITTER_LOG_SIZE))
        value, g, *posterior = self._marginal(q)
        before = value + 0.5 * p @ (p / mass)
        for _ in range(max(1, round(steps * (1.0 + walkers.JITTER_STEPS * self.rng.uniform(-1.0, 1.0))))):
            p -= 0.5 * step * g
            q += step * p / mass
            value, g, *proposed = self._marginal(q)
            p -= 0.5 * step * g
            if not (change := value + 0.5 * p @ (p / mass) - before) < DIVERGENT:
                break
        if self.rng.random() < math.exp(min(0.0, -change)):
            self.w[:size], posterior = q, proposed
        mean, L = posterior
        noise = self.rng.standard_normal(len(mean))
        self.w[size:] = mean + solve_triangular(L, noise, trans="T", lower=True)
        self.error = self._potential(self.w)[1]
        return math.exp(min(0.0, -change)) if change < DIVERGENT else math.nan
