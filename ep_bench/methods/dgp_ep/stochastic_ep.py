"""Stochastic EP by moment matching: appendices B and C of Bui et al. (2015), a second way to the tied posterior.

With K = L L' and u = L w the prior of w is N(0, I). The tied factor g^N has, as a function of w, the precision T and
the linear term t: what stands in the places of ``layout``'s factor (the upper triangle of T row by row, its diagonal as
it is) and theta_2. With a share beta of it, 1 for the posterior, (N - 1) / N for the cavity,

    P = I + beta T = J J',   V = P^-1,   m = beta V t,   and in u   A = L'^-1 m,   G = L'^-1 (I - V) L^-1.

The gradients a and D of the rows' mean log Z with respect to the cavity's m and I - V give, with C = a a' + 2 D, the
moments of cavity times likelihood,

    m_new = m + V a,   V_new = V - V C V   (appendix C),

and the new factor g_new has V_new^-1 - V^-1 = J (I - X)^-1 X J' with X = J^-1 C J'^-1, no difference of large numbers;
then g <- g^(1 - rate) g_new^rate, for every output at once. Such a step is halved while the posterior's precision would
fall below half of what it was in some direction; halved often enough it never does, if V_new is a covariance matrix,
and where it is none there is no new factor and the fit ends. T itself need not be positive definite: rows farther off
than their variance says widen the posterior beyond the prior. R' R, of which the energy is minimised, has no such
factors; where they are wanted, the minimum over R ends on its border, at a higher energy. Along directions that are all
but at the end of their precision a minibatch's step is halved often; that bias falls with the rate.

Which average: the gradients of the mean log Z are those of the rows' *averaged moments*, and where these are the
posterior's the energy is stationary (section 4.2). Li et al.'s SEP averages the rows' natural parameters instead. They
agree where rows agree; else T of the former is smaller, to first order by N times the covariance of a over the rows,
and no number of rows makes that small. A minibatch of B rows averages moments within and natural parameters between
minibatches: its fixed point lies a share of about 1 / B - 1 / N of the way to Li et al.'s.

After every minibatch hyperparameters and inducing inputs move too, by Adam on the energy's gradient with T and t held
fixed, so that the factor goes with K; held fixed as a function of u it would stay all but certain of differences
between inducing outputs that have moved. At a fixed point the gradient is the same, whatever is held fixed.

Solves are products with the triangular L^-1; K^-1 is not formed, but L^-1 is, and variances lose digits where K is all
but singular (1e-7 of them at a condition of 5e7). Memory is O(M^2) an output.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ep_bench.methods.dgp_ep import network
from ep_bench.methods.dgp_ep.likelihoods import LikelihoodTerm
from ep_bench.methods.dgp_ep.network import DGPModel, LayerMoments, Unit, Units
from ep_bench.numerics import psi
from ep_bench.numerics.cholesky import factorise, inverse_factor
from ep_bench.numerics.copying import copy_matrix, copy_vector
from ep_bench.numerics.jit import FUSE, jit
from ep_bench.types import Array

KEPT = 0.5  # of the posterior's precision in every direction, by one step
HALVINGS = 60  # of a step, before it counts as impossible


class WhitenedCavity(NamedTuple):
    """The cavity (or, with beta = 1, the posterior) of one output; a view of ``WhitenedForwardPass`` but for phi."""

    inverse: Any  # (M, M) L^-1
    P: Any  # (M, M)
    back: Any  # (M, M) J^-1
    V: Any  # (M, M)
    mean: Any  # (M,) m
    A: Any  # (M,)
    phi: float  # (m' P m - log|P|) / 2; nan where K or P has no factor


class WhitenedForwardPass(NamedTuple):
    """What the backward pass needs of the forward pass of U outputs, in the order of the layers."""

    moments: LayerMoments
    units: Units  # R is T, theta_2 is t
    inverse: Any  # (U, M, M) as in ``WhitenedCavity``, also the next ones
    P: Any  # (U, M, M)
    back: Any  # (U, M, M)
    V: Any  # (U, M, M)
    mean: Any  # (U, M)
    A: Any  # (U, M)
    G: Any  # (outputs of later layers, M, M)
    k: Any  # (U, B, M) k of the first layer, psi1 of later ones
    white: Any  # (U, B, M) L^-1 k
    excesses: Any  # (outputs of later layers, B, P), as in ``numerics.psi``


def passes(model: DGPModel, rows: int) -> WhitenedForwardPass:
    """Return room for a pass of B rows."""
    U, M = int(model.dims[1:].sum()), model.inducing
    later, square = U - model.dims[1], (U, M, M)
    return WhitenedForwardPass(
        network.moments(model, rows), network.units(model, U),
        np.empty(square), np.empty(square), np.empty(square), np.empty(square), np.empty((U, M)), np.empty((U, M)),
        np.empty((later, M, M)), np.empty((U, rows, M)), np.empty((U, rows, M)),
        np.empty((later, rows, M * (M + 1) // 2)),
    )  # fmt: skip


class MomentMatching:
    """The energy as a function that writes its gradient, and matches moments on the way."""

    def __init__(self, model: DGPModel, term: LikelihoodTerm, rate: float) -> None:
        """Take steps of a share ``rate`` of a new factor."""
        self.model, self.term, self.rate = model, term, rate
        self.halvings: list[int] = []  # of each step
        self._passes: WhitenedForwardPass | None = None

    def __call__(self, theta: Array, X: Array, y: Array, noise: Array, gradient: Array) -> float:
        """Return the energy of a minibatch at the parameters given, nan where it or a new factor does not exist.

        Writes the gradient of hyperparameters and inducing inputs, 0 for the factors, which have moved.
        """
        if self._passes is None or self._passes.k.shape[1] != len(X):
            self._passes = passes(self.model, len(X))
        done = self._passes
        means, variances, d_means, d_variances = done.moments
        value = forward(self.model, theta, X, done)
        for zeros in (gradient, d_means, d_variances):
            zeros[:] = 0.0
        likelihood, slope_of_noise = self.term.diagonal(
            means[-1], variances[-1], y, done.units.noise[-1], noise, d_means[-1], d_variances[-1]
        )
        gradient[self.model.offsets[-1, 2]] += slope_of_noise
        halvings = backward(self.model, done, self.rate, theta, gradient) if np.isfinite(value + likelihood) else -1
        self.halvings.append(max(halvings, 0))
        return float(value + likelihood) if halvings >= 0 else np.nan


@jit(relaxed=FUSE, merged=True)
def unit_of(model: DGPModel, theta: Any, layer: int, output: int, units: Units, i: int) -> Unit:
    """Unpack one output's parameters to place i, with T in the place of R and t in that of theta_2."""
    M = model.inducing
    T, at = units.R[i], model.offsets[layer, 4] + output * (M * (M + 1) // 2)
    for row in range(M):
        for j in range(row, M):
            T[row, j] = theta[at + j - row]
            T[j, row] = T[row, j]
        at += M - row
    return network.unit_with(model, theta, layer, output, units, i)


@jit(relaxed=FUSE)
def whitened(unit: Unit, inverse: Any, beta: float) -> WhitenedCavity:
    """Return the state with a share beta of the tied factor; ``inverse`` is L^-1."""
    M = len(unit.K)
    P = beta * unit.R
    for i in range(M):
        P[i, i] += 1.0
    back, log_determinant = inverse_factor(P.copy())
    V = np.dot(back.T, back)
    t = beta * unit.theta_2
    mean = np.dot(V, t)
    return WhitenedCavity(inverse, P, back, V, mean, np.dot(inverse.T, mean), 0.5 * (np.dot(t, mean) - log_determinant))


@jit(relaxed=FUSE)
def state_of(unit: Unit, beta: float) -> WhitenedCavity:
    """Return the state with a share beta of the tied factor."""
    inverse, log_determinant = inverse_factor(unit.K.copy())
    if np.isnan(log_determinant):
        inverse[:] = np.nan
    return whitened(unit, inverse, beta)


@jit(relaxed=FUSE)
def _spread_matrix(own: WhitenedCavity, G: Any) -> None:
    """Write G = L'^-1 (I - V) L^-1 (M, M)."""
    rest = -own.V
    for i in range(len(rest)):
        rest[i, i] += 1.0
    copy_matrix(np.dot(own.inverse.T, np.dot(rest, own.inverse)), G)


@jit(relaxed=FUSE)
def _given_k(unit: Unit, own: WhitenedCavity, k: Any, m: Any, v: Any, o: int) -> Any:
    """Write mean and variance of output o where k (B, M) is certain; return L^-1 k of each row."""
    white = np.dot(k, own.inverse.T)
    mean, spread = np.dot(white, own.mean), np.dot(white, own.back.T)
    for n in range(len(k)):
        known, left = 0.0, 0.0
        for i in range(k.shape[1]):
            known += white[n, i] * white[n, i]
            left += spread[n, i] * spread[n, i]
        m[n, o] = mean[n]
        v[n, o] = (unit.s2 - known) + left
    return white


@jit(relaxed=FUSE)
def layer_moments(model: DGPModel, theta: Any, layer: int, x: Any, units: Units, m: Any, v: Any) -> None:
    """Write one layer's moments (B, D_out) by the posterior at inputs x (B, D_in) that are known.

    Those of the last layer are without noise. ``units`` has room for one output.
    """
    k = np.empty((len(x), model.inducing))
    for o in range(model.dims[layer + 1]):
        unit = unit_of(model, theta, layer, o, units, 0)
        psi.psi1(x, np.zeros(x.shape), unit.Zt, unit.l2, unit.s2, k)
        _given_k(unit, state_of(unit, 1.0), k, m, v, o)
        if layer < len(model.dims) - 2:
            network.add_noise(unit.noise, v, o)


@jit(relaxed=FUSE)
def forward(model: DGPModel, theta: Any, X: Any, done: WhitenedForwardPass) -> float:
    """Return the energy of a minibatch X (B, d) but for the likelihood; write the moments of every layer.

    Those of the last layer are without noise. Moments and energy are nan where a matrix has no factor.
    """
    L, i, value, N = len(model.dims) - 1, 0, 0.0, model.power.n
    means, variances = done.moments.means, done.moments.variances
    network.place(X, means[0])
    for layer in range(L):
        m, v = means[layer + 1], variances[layer + 1]
        for o in range(model.dims[layer + 1]):
            unit = unit_of(model, theta, layer, o, done.units, i)
            own = state_of(unit, model.power.beta)
            value += (N - 1.0) * whitened(unit, own.inverse, 1.0).phi - N * own.phi
            psi.psi1(means[layer], variances[layer], unit.Zt, unit.l2, unit.s2, done.k[i])
            copy_matrix(_given_k(unit, own, done.k[i], m, v, o), done.white[i])
            if layer > 0:
                G, excesses = done.G[i - model.dims[1]], done.excesses[i - model.dims[1]]
                _spread_matrix(own, G)
                network.add_spread(unit, own.A, G, done.k[i], means[layer], variances[layer], v, o, excesses)
            if np.isnan(own.phi):
                m[:, o] = np.nan
            if layer < L - 1:
                network.add_noise(unit.noise, v, o)
            _keep(own, done, i)
            i += 1
    return value


@jit(relaxed=FUSE, merged=True)
def _keep(own: WhitenedCavity, done: WhitenedForwardPass, i: int) -> None:
    """Write an output's state to place i."""
    copy_matrix(own.inverse, done.inverse[i])
    copy_matrix(own.P, done.P[i])
    copy_matrix(own.back, done.back[i])
    copy_matrix(own.V, done.V[i])
    copy_vector(own.mean, done.mean[i])
    copy_vector(own.A, done.A[i])


@jit(relaxed=FUSE)
def backward(model: DGPModel, done: WhitenedForwardPass, rate: float, theta: Any, gradient: Any) -> int:
    """Add to the gradient (P,), given that of the last layer's moments, and move the factors in ``theta``.

    The factors take a share ``rate`` of the new ones; their gradient is left at 0. Returns how many times steps were
    halved, -1 where V_new is no covariance matrix.
    """
    L, M, i, halvings = len(model.dims) - 1, model.inducing, len(done.A), 0
    moments, D = done.moments, np.empty((M, M))
    for layer in range(L - 1, -1, -1):
        x, w, dx, dw = (
            moments.means[layer],
            moments.variances[layer],
            moments.d_means[layer],
            moments.d_variances[layer],
        )
        for o in range(model.dims[layer + 1] - 1, -1, -1):
            i -= 1
            unit, k = network.unit_at(done.units, i, model.dims[layer]), done.k[i]
            own = WhitenedCavity(done.inverse[i], done.P[i], done.back[i], done.V[i], done.mean[i], done.A[i], 0.0)
            gm, gv = moments.d_means[layer + 1, :, o].copy(), moments.d_variances[layer + 1, :, o].copy()
            dZt, dlog_l = np.zeros(unit.Zt.shape), np.zeros(len(unit.l2))
            a, weights = _back_from_k(own, k, done.white[i], gm, gv, D)
            dlog_s = 2.0 * unit.s2 * gv.sum()
            if layer > 0:
                Q = network.spread_weights(own.A, done.G[i - model.dims[1]])
                excesses = done.excesses[i - model.dims[1]]
                dQ = network.spread_back(unit, k, Q, excesses, x, w, gv, dx, dw, dZt, dlog_l, weights)
                a += 2.0 * np.dot(own.inverse, np.dot(dQ, own.A))
                D -= np.dot(own.inverse, np.dot(dQ, own.inverse.T))
            noise = 2.0 * unit.noise * gv.sum() if layer < L - 1 else 0.0
            dlog_s += psi.psi1_back(x, w, unit.Zt, unit.l2, weights, dx, dw, dZt, dlog_l)
            dK = _covariance_gradient(own, D, a)
            network.covariance_back(model, unit, layer, o, dK, dZt, dlog_l, dlog_s, noise, gradient)
            done_here = _match(model, unit, own, D, a, rate, theta, layer, o) if rate > 0.0 else 0
            if done_here < 0:
                return -1
            halvings += done_here
    return halvings


@jit(relaxed=FUSE)
def _back_from_k(own: WhitenedCavity, k: Any, white: Any, gm: Any, gv: Any, D: Any) -> tuple[Any, Any]:
    """Return the gradient with respect to m, and k times that with respect to k (B, M); write that of I - V."""
    rest = np.dot(white, own.V)
    scaled = np.empty(k.shape)
    for n in range(len(k)):
        scaled[n] = -gv[n] * white[n]
        rest[n] = gm[n] * own.mean - 2.0 * gv[n] * (white[n] - rest[n])
    D[:] = np.dot(white.T, scaled)
    return np.dot(gm, white), k * np.dot(rest, own.inverse)


@jit(relaxed=FUSE)
def _covariance_gradient(own: WhitenedCavity, D: Any, a: Any) -> Any:
    """Return the gradient with respect to K (M, M), symmetric, every element counted once, for fixed T and t.

    dL = L tril(L^-1 dK L'^-1), with half its diagonal, moves A = L'^-1 m and G = L'^-1 (I - V) L^-1.
    """
    M = len(D)
    moved = np.dot(D, own.V)
    lower = np.empty((M, M))
    for i in range(M):
        for j in range(i + 1):
            half = -0.5 * (a[j] * own.mean[i] + 2.0 * (D[j, i] - moved[j, i]))
            lower[i, j] = half
            lower[j, i] = half
    return np.dot(own.inverse.T, np.dot(lower, own.inverse))


@jit(relaxed=FUSE)
def _match(
    model: DGPModel, unit: Unit, own: WhitenedCavity, D: Any, a: Any, rate: float, theta: Any, layer: int, o: int
) -> int:
    """Move one output's factor in ``theta``; return how many times its step was halved, -1 where there is none.

    ``D`` and ``a`` are gradients of the energy, -N times those of the mean log Z.
    """
    M, N, T = len(D), model.power.n, unit.R
    mean_a = a / -N
    X = D * (-2.0 / N)
    for i in range(M):
        for j in range(M):
            X[i, j] += mean_a[i] * mean_a[j]
    X = np.dot(own.back, np.dot(X, own.back.T))
    left = -X
    for i in range(M):
        left[i, i] += 1.0
    inverse, log_determinant = inverse_factor(left)
    if np.isnan(log_determinant):
        return -1
    J = np.dot(own.P, own.back.T)
    site = np.dot(J, np.dot(np.dot(inverse.T, np.dot(inverse, X)), J.T))
    t_new = N * (np.dot(site, own.mean + np.dot(own.V, mean_a)) + mean_a)
    change = np.empty((M, M))
    for i in range(M):
        for j in range(M):
            change[i, j] = 0.5 * N * (site[i, j] + site[j, i]) - T[i, j]
    halvings = _halvings(T, change, rate)
    if halvings < 0:
        return -1
    rate *= 0.5**halvings
    at, packed = model.offsets[layer], model.offsets[layer, 4] + o * (M * (M + 1) // 2)
    for i in range(M):
        theta[at[5] + o * M + i] += rate * (t_new[i] - unit.theta_2[i])
        for j in range(i, M):
            theta[packed + j - i] += rate * change[i, j]
        packed += M - i
    return halvings


@jit(relaxed=FUSE)
def _halvings(T: Any, change: Any, rate: float) -> int:
    """Return how many times a step must be halved for the posterior's precision to keep its share; -1 for never."""
    for count in range(HALVINGS):
        left = (1.0 - KEPT) * T + rate * change
        for i in range(len(T)):
            left[i, i] += 1.0 - KEPT
        if not np.isnan(inverse_factor(left)[1]):
            return count
        rate *= 0.5
    return -1


@jit(relaxed=FUSE)
def whiten(model: DGPModel, theta: Any, units: Units) -> None:
    """Write T = L' R' R L and t = L' theta_2 in the places of R, its diagonal as logarithms, and theta_2.

    ``units`` has room for one output.
    """
    M = model.inducing
    for layer in range(len(model.dims) - 1):
        at = model.offsets[layer]
        for o in range(model.dims[layer + 1]):
            unit = network.unit_of(model, theta, layer, o, units, 0)
            L = unit.K.copy()
            factorise(L)
            for i in range(M):
                L[i, i + 1 :] = 0.0
            RL, packed = np.dot(unit.R, L), at[4] + o * (M * (M + 1) // 2)
            T = np.dot(RL.T, RL)
            theta[at[5] + o * M : at[5] + (o + 1) * M] = np.dot(L.T, unit.theta_2)
            for i in range(M):
                for j in range(i, M):
                    theta[packed + j - i] = T[i, j]
                packed += M - i
