"""Hyperparameters (prior variances of groups of weights, noise variance), and moves that leave f unchanged.

    v_g ~ IG(a_w, b_w),   w_i ~ N(0, v_g) for the n_g weights of group g;   s2 ~ IG(a_n, b_n),   y_b ~ N(f_b, s2)

Given the weights, their conditional distributions are inverse gamma, as the priors are conjugate:

    v_g | w ~ IG(a_w + n_g / 2, b_w + sum_g w_i^2 / 2)        s2 | w ~ IG(a_n + N / 2, b_n + sum_b (y_b - f_b)^2 / 2)

The output of a rectified unit is proportional to its incoming weights. If these are multiplied by c and the outgoing
weights are divided by c, the function does not change. Along such an orbit the posterior does not depend on the data.
With t = log c, incoming weights u (n_u, bias included) and outgoing weights v (n_v),

    log p(t) = (n_u - n_v) t - e^{2 t} sum u_i^2 tau_i / 2 - e^{-2 t} sum v_j^2 tau_j / 2 + constant

which is concave. ``rescale`` draws c for each unit by one update of a slice sampler (Neal 2003).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import gammaln

SLICE_WIDTH = 1.0
STEPS_OUT = 60


def groups(layers: Any, prior: str, scales: str) -> Any:
    """Return the group (P,) of each weight, numbered from 0.

    ``layers`` (L, 3) is as in ``models.mlp``. With ``prior`` "ard" there is one group per input, one for the biases of
    the first layer, and one per further layer, as in Neal (1996) and Jylanki et al. (2014). With "gaussian" there is
    one group, or one per layer if ``scales`` is "layer".
    """
    group = np.zeros(int(layers[-1, 0] + layers[-1, 1] + 1), dtype=np.int64)
    if prior == "ard" and len(layers) > 0:
        _, d, units = layers[0].tolist()
        group[: d * units] = np.repeat(np.arange(d), units)
        group[d * units : (d + 1) * units] = d
        first, later = d + 1, layers[1:]
    else:
        first, later = 1, layers[1:] if scales == "layer" else layers[:0]
    for index, (offset, n_in, n_out) in enumerate(later.tolist()):
        group[offset : offset + (n_in + 1) * n_out] = first + index
    return group


def refuse_scales(prior: str, scales: str) -> None:
    """Raise ValueError if ``scales`` is "layer" and ``prior`` has other groups."""
    if prior == "ard" and scales == "layer":
        raise ValueError(
            "prior_scales: layer takes prior: gaussian; ard has one variance per input and per further layer"
        )


def draw_variance(shape: Any, rate: Any, rng: np.random.Generator) -> Any:
    """Return draws of IG(shape, rate), of the common shape of the parameters."""
    return rate / rng.standard_gamma(shape)


def draw_prior_variances(w: Any, group: Any, prior: tuple[float, float], rng: np.random.Generator) -> Any:
    """Return draws (G,) of the prior variances given the weights (P,) and their groups (P,)."""
    counts, squares = np.bincount(group), np.bincount(group, weights=w * w)
    return draw_variance(prior[0] + 0.5 * counts, prior[1] + 0.5 * squares, rng)


def log_inverse_gamma(v: Any, prior: tuple[float, float]) -> float:
    """Return the summed log density (nats) of variances v (G,) under IG(shape, rate)."""
    a, b = prior
    return float(np.sum(a * np.log(b) - gammaln(a) - (a + 1.0) * np.log(v) - b / v))


def rescale(w: Any, layers: Any, tau: Any, rng: np.random.Generator) -> None:
    """Rescale all rectified units in place, layer by layer; the outputs of the network do not change.

    Weights w and prior precisions tau are (P,).
    """
    for (offset, n_in, n_out), (after, _, n_next) in zip(layers[:-1].tolist(), layers[1:].tolist(), strict=True):
        end = offset + (n_in + 1) * n_out
        into = slice(offset, end)
        out = slice(after, after + n_out * n_next)
        u, v = w[into].reshape(n_in + 1, n_out), w[out].reshape(n_out, n_next)
        incoming = 0.5 * np.sum(u * u * tau[into].reshape(u.shape), axis=0)
        outgoing = 0.5 * np.sum(v * v * tau[out].reshape(v.shape), axis=1)
        factor = np.exp(_slice_update(float(n_in + 1 - n_next), incoming, outgoing, rng))
        u *= factor
        v /= factor[:, None]


def _slice_update(power: float, incoming: Any, outgoing: Any, rng: np.random.Generator) -> Any:
    """Return t (K,) after one slice update from 0 of K log densities power t - incoming e^{2 t} - outgoing e^{-2 t}."""

    def log_density(t: Any) -> Any:
        return power * t - incoming * np.exp(2.0 * t) - outgoing * np.exp(-2.0 * t)

    level = log_density(np.zeros_like(incoming)) - rng.standard_exponential(len(incoming))
    low = -SLICE_WIDTH * rng.random(len(incoming))
    high = low + SLICE_WIDTH
    for _ in range(STEPS_OUT):
        inside_low, inside_high = log_density(low) > level, log_density(high) > level
        if not (inside_low.any() or inside_high.any()):
            break
        low, high = low - SLICE_WIDTH * inside_low, high + SLICE_WIDTH * inside_high
    t = low + (high - low) * rng.random(len(incoming))
    outside = ~(log_density(t) > level)
    while outside.any():
        low, high = np.where(outside & (t < 0.0), t, low), np.where(outside & (t >= 0.0), t, high)
        t = np.where(outside, low + (high - low) * rng.random(len(incoming)), t)
        outside &= ~(log_density(t) > level) & (t != 0.0)
    return t
