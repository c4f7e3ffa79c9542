"""Posteriors that predict themselves: the interface of all inferences, and mixtures of Gaussian approximations."""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np

from ep_bench.covariances import Covariance, matrix
from ep_bench.covariances.hyperparameters import Hyperparameters
from ep_bench.covariances.protocol import blocks
from ep_bench.methods.gp_t import scale_mixture
from ep_bench.methods.gp_t.posterior import BLOCK, SiteBlocks
from ep_bench.predictions import Predictive
from ep_bench.types import Array

NEGLIGIBLE = 1e-6  # probability of a part below which predictions omit it


class State(Protocol):
    """A fitted posterior of f, in standardised units. Each inference has its own implementation."""

    @property
    def hyperparameters(self) -> dict[str, float | Array]:
        """Values by name."""

    @property
    def n_iterations(self) -> int:
        """Iterations of the search or of the chains."""

    @property
    def converged(self) -> bool:
        """Whether the inference met its own criterion."""

    def predict(self, X: Array) -> Predictive:
        """Return the predictive distribution at inputs X (n, d), noise included."""

    def latent(self, X: Array) -> tuple[Array, Array]:
        """Return means and variances (n,) of f at inputs X (n, d)."""


class PosteriorPart(NamedTuple):
    """The Gaussian approximation to the posterior of f at one value of the hyperparameters."""

    theta: Array  # (P,) logarithms
    weights: Array  # (N,) K^-1 times the posterior means
    blocks: SiteBlocks  # of (K + S^-1)^-1, S the precisions
    precisions: Array  # (N,) of EP's sites and of the bounds; with Laplace's method the curvatures W
    log_evidence: float  # nats
    n_iterations: int  # of the search, or of the inference if nothing was learned
    converged: bool
    stage: str  # the stage of the inference that converged

    def latent(self, covariance: Covariance, inputs: Array, X: Array) -> tuple[Array, Array]:
        """Return means and variances (n,) of f at X (n, d), for training inputs (N, d)."""
        X = np.ascontiguousarray(X, dtype=np.float64)
        theta = self.theta[:-2]
        mean, variance = np.empty(len(X)), covariance.diagonal(theta, X)
        for rows in blocks(len(X), len(inputs), BLOCK):
            k = matrix(covariance, theta, X[rows], inputs)
            mean[rows] = k @ self.weights
            variance[rows] -= self.blocks.variance_reduction(k)
        return mean, np.maximum(variance, 0.0)


class PosteriorMixture(NamedTuple):
    """A mixture of approximations: one part, or one part per value of nu."""

    covariance: Covariance
    hyper: Hyperparameters
    X: Array  # (N, d) training inputs
    parts: tuple[PosteriorPart, ...]
    probabilities: Array  # (J,) of the parts, with sum 1
    log_evidence: float  # nats; log of the mean over nu if nu is integrated over
    converged: bool

    @property
    def best(self) -> PosteriorPart:
        """The most probable part."""
        return self.parts[int(np.argmax(self.probabilities))]

    @property
    def n_iterations(self) -> int:
        """Iterations of all parts."""
        return sum(part.n_iterations for part in self.parts)

    @property
    def site_precisions(self) -> Array:
        """Precisions (N,) of the most probable part."""
        return self.best.precisions

    @property
    def hyperparameters(self) -> dict[str, float | Array]:
        """Values by name of the most probable part, standardised units."""
        return self.hyper.values(self.best.theta)

    def predict(self, X: Array) -> Predictive:
        """Return mixtures of Gaussians at inputs X (n, d), with the t as a mixture by ``scale_mixture.fine``."""
        weights, means, variances, beyond = [], [], [], 0.0
        for part, probability in zip(self.parts, self.probabilities, strict=True):
            if probability < NEGLIGIBLE:
                continue
            mean, variance = part.latent(self.covariance, self.X, X)
            scale, nu = np.exp(part.theta[-2:]).tolist()
            heights, noise = scale_mixture.fine(nu, scale)
            beyond += probability * scale_mixture.missing_variance(nu, scale, heights, noise)
            weights.append(probability * heights)
            means.append(np.broadcast_to(mean, (len(noise), len(mean))))
            variances.append(variance + noise[:, None])
        joined = np.concatenate(weights)
        total = joined.sum()
        return Predictive(joined / total, np.concatenate(means), np.concatenate(variances), beyond / total)

    def latent(self, X: Array) -> tuple[Array, Array]:
        """Return means and variances (n,) of f at inputs X (n, d), standardised units."""
        found = np.array([part.latent(self.covariance, self.X, X) for part in self.parts])
        means, variances = found.transpose(1, 0, 2)
        mean = self.probabilities @ means
        return mean, self.probabilities @ (variances + (means - mean) ** 2)
