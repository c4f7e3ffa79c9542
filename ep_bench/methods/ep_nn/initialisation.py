"""Initial sites of the priors: section 3.3.1, with means 0 or at a maximum of the posterior."""

from __future__ import annotations

import numpy as np
from scipy.special import erf

from ep_bench.methods.ep_nn.approximation import NetworkApproximation
from ep_bench.types import Array, Indices

OUTPUT_MEANS = (1.0, 2.0)  # range of the equally spaced means of v
OUTPUT_VARIANCE = 0.2**2
ITERATIONS = 500  # of L-BFGS, at most


def start(
    approximation: NetworkApproximation, weight_variance: float, bias_variance: float, output_bias_variance: float = 1.0
) -> None:
    """Set the sites of the priors to Gaussians and compute q; that of the bias of the output is its prior."""
    prior = approximation.prior
    prior.tau[:] = 1.0 / weight_variance
    prior.tau[:, -1] = 1.0 / bias_variance
    prior.output_tau[:-1], prior.output_tau[-1] = 1.0 / OUTPUT_VARIANCE, 1.0 / output_bias_variance
    prior.output_nu[:-1] = np.linspace(*OUTPUT_MEANS, len(prior.output_nu) - 1) / OUTPUT_VARIANCE
    approximation.refresh()


def along_a_direction(X: Array, rng: np.random.Generator) -> Indices:
    """Return the order (n,) of the data points X (n, d + 1) along a random direction.

    Sequential sweeps in such an order reach fixed points of much higher evidence than sweeps in a random order, because
    units specialise on regions. The order of the input does not matter, except for ties.
    """
    inputs = X[:, :-1]
    direction = inputs.T @ (
        inputs @ rng.standard_normal(inputs.shape[1])
    )  # weighted towards directions of large variance
    return np.argsort(inputs @ direction, kind="stable")


def start_at_maximum(approximation: NetworkApproximation, rng: np.random.Generator) -> None:
    """Set the means of the prior sites to a maximum of the posterior under these priors, found by L-BFGS.

    Units with negative output weights have the signs of all their weights flipped, which changes no prediction.
    """
    from scipy.optimize import minimize

    prior, problem = approximation.prior, approximation.problem
    K, D = prior.tau.shape
    noise = float(np.exp(approximation.post.noise[0]))
    first = np.concatenate(
        [0.5 * rng.standard_normal(K * D) / np.sqrt(D), prior.output_nu / prior.output_tau]
    )  # fmt: skip
    found = minimize(
        log_posterior, first, args=(problem.X, problem.y, problem.linear, noise, approximation), jac=True,
        method="L-BFGS-B", options={"maxiter": ITERATIONS},
    ).x  # fmt: skip
    w, v = found[: K * D].reshape(K, D), found[K * D :]
    signs = np.where(v[:K] < 0.0, -1.0, 1.0)
    prior.nu[:] = prior.tau * signs[:, None] * w
    prior.output_nu[:K] = prior.output_tau[:K] * np.abs(v[:K])
    approximation.refresh()


def log_posterior(
    theta: Array, X: Array, y: Array, linear: Array, noise: float, approximation: NetworkApproximation
) -> tuple[float, Array]:
    """Return minus the log posterior density at theta, w (K, D) followed by v (K + 1,), and its gradient.

    X (n, D), y (n,), ``linear`` (K,) flags, ``noise`` the noise variance.
    """
    prior = approximation.prior
    K, D = prior.tau.shape
    w, v, scale = theta[: K * D].reshape(K, D), theta[K * D :], K**-0.5
    h = X @ w.T
    g = np.where(linear, h, erf(h / np.sqrt(2.0))) * scale
    slope = np.where(linear, 1.0, np.sqrt(2.0 / np.pi) * np.exp(-0.5 * h * h)) * scale
    residual = (g @ v[:K] + v[K] - y) / noise
    from_w, from_v = w - prior.nu / prior.tau, v - prior.output_nu / prior.output_tau
    value = 0.5 * noise * residual @ residual + 0.5 * (prior.tau * from_w**2).sum()
    value += 0.5 * (prior.output_tau * from_v**2).sum()
    by_w = (residual[:, None] * slope * v[:K]).T @ X + prior.tau * from_w
    by_v = np.append(g.T @ residual, residual.sum()) + prior.output_tau * from_v
    return float(value), np.concatenate([by_w.ravel(), by_v])
