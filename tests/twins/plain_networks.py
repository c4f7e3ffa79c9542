"""Slow twins of the neural-network methods: NumPy and Python loops that follow the printed formulas."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from scipy.special import erf


def matrices(w, sizes):
    """Weights (n_in, n_out) and biases (n_out,) of each layer, from the vector."""
    layers, at = [], 0
    for n_in, n_out in pairwise(sizes):
        W = np.array([[w[at + i * n_out + j] for j in range(n_out)] for i in range(n_in)])
        at += n_in * n_out
        layers.append((W, np.array([w[at + j] for j in range(n_out)])))
        at += n_out
    assert at == len(w)
    return layers


def flat(layers):
    return np.concatenate([np.append(W.ravel(), b) for W, b in layers])


def activate(a, activation):
    """Outputs of a hidden layer's units (n,) for their inputs (n,)."""
    if activation == "relu":
        return np.array([max(one, 0.0) for one in a])
    if activation == "tanh":
        return np.tanh(a)
    return erf(a / np.sqrt(2)) / np.sqrt(len(a))


def outputs(X, w, sizes, masks=None, activation="relu"):
    """Outputs (B,); ``masks``, one (B, units) per hidden layer, multiply the outputs of the hidden units."""
    return all_outputs(X, w, sizes, masks, activation)[:, 0]


def all_outputs(X, w, sizes, masks=None, activation="relu"):
    """Outputs (B, outputs) of a network with any number of outputs."""
    layers, F = matrices(w, sizes), []
    for row, x in enumerate(X):
        z = np.array(x)
        for index, (W, b) in enumerate(layers):
            a = np.array([sum(z[i] * W[i, j] for i in range(len(z))) + b[j] for j in range(len(b))])
            if index < len(layers) - 1:
                z = activate(a, activation)
                if masks is not None:
                    z = z * masks[index][row]
        F.append(a)
    return np.array(F).reshape(len(X), sizes[-1])


def local_outputs(X, mean, deviation, sizes, noise):
    """Outputs (R,) with a random input of each unit, given the layer below; ``noise``, one (R, n_out) per layer."""
    f = []
    pairs = list(zip(matrices(mean, sizes), matrices(deviation**2, sizes), strict=True))
    for row, x in enumerate(X):
        z = np.array(x)
        for index, ((M, m), (S, s)) in enumerate(pairs):
            a = z @ M + m + np.sqrt(z**2 @ S + s) * noise[index][row]
            z = np.maximum(a, 0.0)
        f.append(a[0])
    return np.array(f)


def log_normal(x, mean, variance):
    return -0.5 * (np.log(2 * np.pi * variance) + (x - mean) ** 2 / variance)


def divergence(mean, deviation, prior_variance):
    """KL(N(m, s^2) || N(0, v0)), summed."""
    v = deviation**2
    return sum(
        0.5 * (v / v0 + m * m / v0 - 1 - np.log(v / v0)) for m, v, v0 in zip(mean, v, prior_variance, strict=True)
    )


def negative_bound(theta, X, y, sizes, n, prior_variance, noise):
    """For a batch of n data points; expectations over the draws m + s e, where e are the rows of ``noise`` (K, P)."""
    P = (len(theta) - 1) // 2
    m, s, sigma2 = theta[:P], np.exp(theta[P:-1]), np.exp(theta[-1])
    total = 0.0
    for e in noise:
        total += log_normal(y, outputs(X, m + s * e, sizes), sigma2).sum() / len(noise)
    return divergence(m, s, prior_variance) - n / len(y) * total


def heteroscedastic_bound(theta, X, y, sizes, n, prior_variance, noise):
    """The negative bound with a noise head, whose weights follow those of the network."""
    drawn = (len(theta) - 1) // 2
    m, s, H = theta[:drawn], np.exp(theta[drawn:-1]), sizes[-2] + 1
    P, total = drawn - H, 0.0
    for e in noise:
        w = m + s * e
        log_variance = theta[-1] + outputs(X, np.append(w[: P - H], w[P:]), sizes)
        total += log_normal(y, outputs(X, w[:P], sizes), np.exp(log_variance)).sum() / len(noise)
    return divergence(m, s, prior_variance) - n / len(y) * total


def local_negative_bound(theta, X, y, sizes, n, prior_variance, noise):
    """The same by local reparameterisation, with separate draws for every row of X (R, d)."""
    P = (len(theta) - 1) // 2
    m, s, sigma2 = theta[:P], np.exp(theta[P:-1]), np.exp(theta[-1])
    total = log_normal(y, local_outputs(X, m, s, sizes, noise), sigma2).sum()
    return divergence(m, s, prior_variance) - n / len(y) * total


def alpha_parts(theta, X, y, sizes, n, prior_variance, noise):
    """log p(y_b | w_k) (K, B), log f(w_k) (K,) and log Z_prior - log Z_q of black-box alpha."""
    P = (len(theta) - 1) // 2
    m, v, sigma2 = theta[:P], prior_variance / (1 + np.exp(-theta[P:-1])), np.exp(theta[-1])
    factor_variance = 1 / ((1 / v - 1 / prior_variance) / n)
    shift = m / (n * v)  # m_f / v_f
    log_p, log_f = [], []
    for e in noise:
        w = m + np.sqrt(v) * e
        log_p.append(log_normal(y, outputs(X, w, sizes), sigma2))
        log_f.append(sum(-w * w / (2 * factor_variance) + w * shift))
    log_z_q = sum(0.5 * np.log(2 * np.pi * v) + m * m / (2 * v))
    log_z_prior = P * 0.5 * np.log(2 * np.pi * prior_variance)
    return np.array(log_p), np.array(log_f), log_z_prior - log_z_q


def alpha_energy(theta, X, y, sizes, n, alpha, prior_variance, noise):
    """Energy of black-box alpha as printed in its notes; alpha = 0 is the limit."""
    log_p, log_f, normalisers = alpha_parts(theta, X, y, sizes, n, prior_variance, noise)
    K, total = len(noise), 0.0
    for b in range(len(y)):
        ratio = log_p[:, b] - log_f
        if alpha == 0:
            total += ratio.mean()
        else:
            top = (alpha * ratio).max()
            total += (top + np.log(np.exp(alpha * ratio - top).sum()) - np.log(K)) / alpha
    return normalisers - n / len(y) * total


def adam(theta, gradients, rates):
    """Algorithm 1 of Kingma and Ba (2015), one step per gradient; one step size for all steps, or a list of them."""
    m, v = np.zeros_like(theta), np.zeros_like(theta)
    rates = rates if isinstance(rates, list) else [rates] * len(gradients)
    for t, (g, rate) in enumerate(zip(gradients, rates, strict=True), start=1):
        m = 0.9 * m + 0.1 * g
        v = 0.999 * v + 0.001 * g**2
        theta = theta - rate * (m / (1 - 0.9**t)) / (np.sqrt(v / (1 - 0.999**t)) + 1e-8)
    return theta


def check_gradient(function, point, gradient, rng, *, directions=8, step=1e-5, rel=1e-6):
    """Compare a gradient with central differences of a function along random directions."""
    for _ in range(directions):
        direction = rng.normal(size=len(point)) * np.maximum(np.abs(point), 0.1)
        expected = float(gradient @ direction)
        # Richardson extrapolation cancels the error of second order
        coarse, fine = (
            (function(point + h * direction) - function(point - h * direction)) / (2 * h) for h in (2 * step, step)
        )
        found = (4 * fine - coarse) / 3
        scale = np.linalg.norm(gradient * direction)
        assert abs(found - expected) <= rel * scale, (found, expected)
