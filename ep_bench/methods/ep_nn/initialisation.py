"""Where EP starts: the priors' sites of section 3.3.1, about 0 or about a maximum of the posterior."""

from __future__ import annotations

import numpy as np
from scipy.special import erf

from ep_bench.methods.ep_nn.approximation import NetworkApproximation
from ep_bench.types import Array, Indices

OUTPUT_MEANS = (1.0, 2.0)  # ends of the linear spacing of the means of v
OUTPUT_VARIANCE = 0.2**2
BIAS_VARIANCE = 1.0  # of the output bias v_0, its prior (section 2.1)
ITERATIONS = 500  # of the search for a maximum


def start(approximation: NetworkApproximation, weight_variance: float, bias_variance: float) -> None:
    """Fill the priors' sites with Gaussians and compute q."""
    prior = approximation.prior
    prior.tau[:] = 1.0 / weight_variance
    prior.tau[:, -1] = 1.0 / bias_variance
    prior.output_tau[:-1], prior.output_tau[-1] = 1.0 / OUTPUT_VARIANCE, 1.0 / BIAS_VARIANCE
    prior.output_nu[:-1] = np.linspace(*OUTPUT_MEANS, len(prior.output_nu) - 1) / OUTPUT_VARIANCE
    approximation.refresh()


def along_a_direction(X: Array, rng: np.random.Generator) -> Indices:
    """Return the order (n,) of the rows of X (n, d + 1) along a direction drawn at random.

    Sequential sweeps of rows in such an order end at fixed points of far higher evidence than sweeps in a random order:
    units find regions of their own. The order of the rows in a file does not matter, but for ties.
    """
    inputs = X[:, :-1]
    direction = inputs.T @ (inputs @ rng.standard_normal(inputs.shape[1]))  # leans to those of largest variance
    return np.argsort(inputs @ direction, kind="stable")


def start_at_maximum(approximation: NetworkApproximation, rng: np.random.Generator) -> None:
    """Move the means of the priors' sites to a maximum of the posterior under these priors, found by L-BFGS.

    Output weights are made positive by turning units round, which changes no prediction.
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
    turned = np.where(v[:K] < 0.0, -1.0, 1.0)
    prior.nu[:] = prior.tau * turned[:, None] * w
    prior.output_nu[:K] = prior.output_tau[:K] * np.abs(v[:K])
    approximation.refresh()


def log_posterior(
    theta: Array, X: Array, y: Array, linear: Array, noise: float, approximation: NetworkApproximation
) -> tuple[float, Array]:
    """Return minus the log posterior density of w (K, D) and v (K + 1,), one after the other, and its gradient."""
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
