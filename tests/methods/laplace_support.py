"""Shared by the tests of the Laplace approximation: random networks with their curvature by loops, data, fits."""

from __future__ import annotations

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from ep_bench.methods import laplace
from ep_bench.methods.laplace import curvature, network
from ep_bench.models import mlp
from ep_bench.models.residuals import ACTIVATIONS
from ep_bench.types import Rows
from tests.twins import plain_networks as plain

FORMS = ["diag", "full", "kron", "last"]
SHAPES = [(), (5,), (4, 3), (19,), (9, 17)]
NETWORKS = [*((hidden, "relu") for hidden in SHAPES), *((hidden, "tanh") for hidden in SHAPES if hidden)]
ALPHAS = np.array([0.7, 1.9, 0.3])  # prior precisions by layer
BETA = 2.5


class Case:
    """A random network and data."""

    def __init__(self, hidden, seed, d=4, rows=13, activation="relu"):
        self.activation, self.kind = activation, ACTIVATIONS[activation]
        rng = self.rng = np.random.default_rng(seed)
        self.sizes, self.layers = (d, *hidden, 1), mlp.layout(d, hidden)
        self.P = mlp.count(self.layers)
        self.w, self.X, self.y = rng.normal(size=self.P), rng.normal(size=(rows, d)), rng.normal(size=rows)
        self.alpha = ALPHAS[: len(self.layers)]

    @property
    def prior(self):
        """Prior precisions (P,), one per weight."""
        return np.concatenate([np.full((i + 1) * j, a) for (_, i, j), a in zip(self.layers, self.alpha, strict=True)])

    def outputs(self, w=None):
        return plain.outputs(self.X, self.w if w is None else w, self.sizes, activation=self.activation)

    def jacobian(self):
        """The Jacobian (N, P): by the kernel of stochastic gradient descent, of smooth units by differences."""
        if self.activation != "relu":
            steps = 1e-6 * np.eye(self.P)
            return np.column_stack([(self.outputs(self.w + e) - self.outputs(self.w - e)) / 2e-6 for e in steps])
        J = np.empty((len(self.X), self.P))
        Z, f, D = np.empty(mlp.units(self.layers)), np.empty(1), np.empty((2, mlp.widest(self.layers)))
        for n in range(len(self.X)):
            mlp.row_gradient(self.X[n : n + 1], self.w, self.layers, Z, f, J[n], D)
        return J

    def factors(self):
        return network.factors(self.X, self.w, self.layers, self.kind)

    def posterior(self, form):
        return curvature.curvature(form, self.X, self.w, self.layers).posterior(self.alpha, BETA)

    def covariance(self, form):
        """The inverse of A by the formulas, from explicit Jacobians."""
        J, start = self.jacobian(), int(self.layers[-1, 0])
        if form == "last":
            return np.linalg.inv(np.diag(self.prior[start:]) + BETA * J[:, start:].T @ J[:, start:])
        if form == "diag":
            return np.diag(1 / (self.prior + BETA * (J**2).sum(axis=0)))
        H = J.T @ J if form == "full" else self.kronecker()
        return np.linalg.inv(np.diag(self.prior) + BETA * H)

    def kronecker(self):
        """Blocks sum a a' (x) sum s s' / N, by loops over rows; slopes are the derivatives by the biases."""
        H, J = np.zeros((self.P, self.P)), self.jacobian()
        inputs = self.X
        for index, ((W, b), (at, i, j)) in enumerate(
            zip(plain.matrices(self.w, self.sizes), self.layers.tolist(), strict=True)
        ):
            end = at + (i + 1) * j
            slopes = J[:, end - j : end]
            left, right = np.zeros((i + 1, i + 1)), np.zeros((j, j))
            for x, s in zip(inputs, slopes, strict=True):
                left += np.outer(np.append(x, 1), np.append(x, 1))
                right += np.outer(s, s)
            H[at:end, at:end] = np.kron(left, right / len(self.X))
            inputs = np.maximum(inputs @ W + b, 0) if index < len(self.layers) - 1 else None
        return H


def fitted(rows, seed=0, starts=0, **options):
    return laplace.fit(rows, laplace.Config(starts=starts, **options), np.random.default_rng(seed))


def wave(n=60, seed=3, noise=0.1):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2, 2, size=(n, 1))
    return Rows(X, np.sin(2 * X[:, 0]) + noise * rng.normal(size=n))


def largest_gain(rows, layers, weights, noise_variance=0.05):
    """Return the largest gain of log joint density (nats) by a step along the gradient or Newton's direction."""
    slope = network.HalfSquaresGradient(rows.X, rows.y, layers)

    def loss(w):
        return slope(w)[0] / noise_variance + 0.5 * w @ w

    gradient = slope(weights)[1] / noise_variance + weights
    upper = np.triu(network.gram(rows.X, weights, layers, 0)) / noise_variance + np.eye(len(weights))
    newton = cho_solve(cho_factor(upper), gradient)
    steps = [s * gradient for s in np.logspace(-8, -2, 13)] + [s * newton for s in np.logspace(-4, 0, 9)]
    return max(loss(weights) - loss(weights - step) for step in steps)
