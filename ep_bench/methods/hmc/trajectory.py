"""A trajectory of Hamiltonian dynamics of the weights at fixed hyperparameters.

    U(w) = beta / 2 sum_b (f(x_b; w) - y_b)^2 + 1 / 2 sum_i tau_i w_i^2,    K(p) = 1 / 2 sum_i p_i^2 / m_i

beta is the noise precision, tau (P,) the prior precisions of the weights, m (P,) the masses. A leapfrog step is a half
step of the momentum, a full step of the weights and a half step of the momentum. Adjacent half steps are merged.

Gradients may be computed in single precision. Any function of w in the place of the gradient gives a map that is
reversible and preserves volume (Neal 2011, section 5), and the energies of the Metropolis test are computed in double
precision. Rounding errors of the gradient therefore change the acceptance, not the distribution.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ep_bench.models.rectified import single_half_squares
from ep_bench.models.residuals import ResidualsWorkspace, chosen_half_squares
from ep_bench.numerics.jit import REORDER, jit

DIVERGENT = 1000.0  # increase of the energy (nats) from which on a trajectory counts as divergent


class NetworkRows(NamedTuple):
    """Standardised training data and the structure of the network."""

    X: Any  # (N, d)
    y: Any  # (N,)
    layers: Any  # (L, 3) as in ``models.mlp``
    kind: int  # activation, as in ``models.residuals``


@jit(relaxed=REORDER, merged=True)
def potential(
    rows: NetworkRows, w: Any, beta: float, tau: Any, work: ResidualsWorkspace, g: Any
) -> tuple[float, float]:
    """Return U(w) and half the sum of squared residuals, and write the gradient of U to g (P,).

    Weights w and prior precisions tau are (P,).
    """
    error = chosen_half_squares(rows.X, rows.y, w, rows.layers, rows.kind, work, work.rectified, work.S, g)
    for i in range(w.size):
        g[i] = beta * g[i] + tau[i] * w[i]
    return beta * error + kinetic(w, tau), error


@jit(relaxed=REORDER, merged=True)
def _approximate_potential(
    rows: NetworkRows, w: Any, beta: float, tau: Any, work: ResidualsWorkspace, single: Any, g: Any
) -> tuple[float, float]:
    """Do the same as ``potential``, in single precision if ``single`` is a ``SinglePrecision``, not None."""
    if single is None:
        return potential(rows, w, beta, tau, work, g)
    error = single_half_squares(w, single, g)
    for i in range(w.size):
        g[i] = beta * g[i] + tau[i] * w[i]
    return beta * error + kinetic(w, tau), error


@jit(relaxed=REORDER)
def kinetic(p: Any, inverse_mass: Any) -> float:
    """Return K(p) for momenta and inverse masses (P,)."""
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
    single: Any,
) -> tuple[float, float, int]:
    """Move w and p (P,) by ``count`` leapfrog steps, in place; tau and ``inverse_mass`` are (P,).

    ``single``, a ``SinglePrecision`` or None, is the scratch of gradients in single precision.
    Returns the change of the energy, half the sum of squared residuals at the end, and the number of gradients. A
    divergent trajectory stops at once, and its change is infinite.
    """
    g = np.empty_like(w)
    before, error = potential(rows, w, beta, tau, work, g)
    further = 0
    if single is not None:
        _approximate_potential(rows, w, beta, tau, work, single, g)
        further = 2
    before += kinetic(p, inverse_mass)
    _kick(p, g, 0.5 * step)
    for k in range(count):
        for i in range(w.size):
            w[i] += step * inverse_mass[i] * p[i]
        energy, error = _approximate_potential(rows, w, beta, tau, work, single, g)
        if not energy - before < DIVERGENT:
            return np.inf, error, k + 2 + further
        _kick(p, g, step if k < count - 1 else 0.5 * step)
    if single is not None:
        energy, error = potential(rows, w, beta, tau, work, g)
    change = energy + kinetic(p, inverse_mass) - before
    return (change if change < DIVERGENT else np.inf), error, count + 1 + further


@jit(relaxed=REORDER, inline=True)
def _kick(p: Any, g: Any, step: float) -> None:
    """Move the momenta p (P,) along the negative gradient g (P,), in place."""
    for i in range(p.size):
        p[i] -= step * g[i]
