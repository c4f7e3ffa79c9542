"""A trajectory of Hamiltonian dynamics of the weights at given hyperparameters.

    U(w) = beta / 2 sum_b (f(x_b; w) - y_b)^2 + 1 / 2 sum_i tau_i w_i^2,    K(p) = 1 / 2 sum_i p_i^2 / m_i

beta is the noise precision, tau (P,) the weights' prior precisions, m (P,) the masses. One leapfrog step is a half step
of the momentum, a whole one of the weights, a half one of the momentum; neighbouring halves are taken as one.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ep_bench.models.residuals import ResidualsWorkspace, half_squares
from ep_bench.numerics.jit import REORDER, jit

LOST = 1000.0  # a rise of the energy over so many nats is a divergence


class NetworkRows(NamedTuple):
    """Standardised rows and the network that answers them."""

    X: Any  # (N, d)
    y: Any  # (N,)
    layers: Any  # (L, 3) as in ``models.mlp``
    kind: int  # activation, as in ``models.residuals``


@jit(relaxed=REORDER)
def potential(
    rows: NetworkRows, w: Any, beta: float, tau: Any, work: ResidualsWorkspace, g: Any
) -> tuple[float, float]:
    """Return U(w) and half the sum of squared residuals, and write the gradient g (P,) of U."""
    error = half_squares(rows.X, rows.y, w, rows.layers, rows.kind, work, g)
    for i in range(w.size):
        g[i] = beta * g[i] + tau[i] * w[i]
    return beta * error + kinetic(w, tau), error


@jit(relaxed=REORDER)
def kinetic(p: Any, inverse_mass: Any) -> float:
    """Return K(p)."""
    total = 0.0
    for i in range(p.size):
        total += p[i] * p[i] * inverse_mass[i]
    return 0.5 * total


@jit(relaxed=REORDER)
def leapfrog(
    rows: NetworkRows,
    w: Any,
    p: Any,
    beta: float,
    tau: Any,
    inverse_mass: Any,
    step: float,
    count: int,
    work: ResidualsWorkspace,
) -> tuple[float, float, int]:
    """Move w and p (P,) by ``count`` leapfrog steps, in place.

    Returns the change of the energy, half the sum of squared residuals at the end, and the gradients taken. A
    trajectory that diverges is left where it does, its energy infinite.
    """
    g = np.empty_like(w)
    before, error = potential(rows, w, beta, tau, work, g)
    before += kinetic(p, inverse_mass)
    _kick(p, g, 0.5 * step)
    for k in range(count):
        for i in range(w.size):
            w[i] += step * inverse_mass[i] * p[i]
        energy, error = potential(rows, w, beta, tau, work, g)
        if not energy - before < LOST:
            return np.inf, error, k + 2
        _kick(p, g, step if k < count - 1 else 0.5 * step)
    change = energy + kinetic(p, inverse_mass) - before
    return (change if change < LOST else np.inf), error, count + 1


@jit(relaxed=REORDER, inline=True)
def _kick(p: Any, g: Any, step: float) -> None:
    for i in range(p.size):
        p[i] -= step * g[i]
