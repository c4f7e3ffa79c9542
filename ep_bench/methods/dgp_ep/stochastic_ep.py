"""Stochastic EP by moment matching: appendices B and C of Bui et al. (2015), for ``optimizer: sep``.

With K = L L' and u = L w the prior of w is N(0, I). As a function of w, the tied factor g^N has precision T and linear
term t. These are stored in place of the factor and theta_2 of ``layout`` (the upper triangle of T row by row, its
diagonal not logarithmic). With a fraction beta of g^N, 1 for the posterior, (N - 1) / N for the cavity,

    P = I + beta T = J J',   V = P^-1,   m = beta V t,   and in u   A = L'^-1 m,   G = L'^-1 (I - V) L^-1.

Let a and D be the gradients of the mean log Z of the data points with respect to m and I - V of the cavity, and
C = a a' + 2 D. The moments of cavity times likelihood are (appendix C)

    m_new = m + V a,   V_new = V - V C V.

The new factor g_new has V_new^-1 - V^-1 = J (I - X)^-1 X J' with X = J^-1 C J'^-1, without a difference of large
numbers. Then g <- g^(1 - rate) g_new^rate, for all outputs at once.

Step control: a step is halved while it would reduce the precision of the posterior to less than half in some
direction. This ends if V_new is a covariance matrix; otherwise there is no new factor and the fit fails. T itself need
not be positive definite: data points further from their mean than their variance predicts widen the posterior beyond
the prior. The parametrisation R' R that minimises the energy has no such factors. Where they are required, the minimum
over R is on its border, at a higher energy. If the precision is almost 0 in some direction, the steps of a minibatch
are often halved; the resulting bias decreases with the rate.

Averages: the gradients of the mean log Z are those of the averaged moments of the data points. Where these are equal to
the posterior's, the energy is stationary (section 4.2). The SEP of Li et al. averages natural parameters instead. Both
agree if the data points agree. Otherwise T of the former is smaller, to first order by N times the covariance of a over
the data points, for any number of data points. A minibatch of B data points averages moments within, and natural
parameters between minibatches. Its fixed point is at a fraction of about 1 / B - 1 / N between the two.

After every minibatch Adam updates hyperparameters and inducing inputs with the gradient of the energy for fixed T and
t, so that the factor changes with K. Fixed as a function of u, it would remain almost certain of differences between
inducing outputs whose inputs have moved. At a fixed point both gradients are the same.

Linear systems are solved by products with the triangular L^-1; K^-1 is not formed. Variances lose digits if K is almost
singular (1e-7 of them at a condition number of 5e7). Memory is O(M^2) per output. Other symbols and array arguments are
those of ``network``.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ep_bench.methods.dgp_ep import network, outputs
from ep_bench.methods.dgp_ep.likelihoods import LikelihoodTerm
from ep_bench.methods.dgp_ep.network import LayerMoments
from ep_bench.methods.dgp_ep.outputs import DGPModel, OutputParameters, UnpackedParameters
from ep_bench.methods.dgp_ep.whitened_factor import WhitenedCavity, unpack_output, update_factor
from ep_bench.numerics import psi
from ep_bench.numerics.cholesky import inverse_factor
from ep_bench.numerics.copying import copy_matrix, copy_vector
from ep_bench.numerics.jit import FUSE, jit
from ep_bench.types import Array


class WhitenedForwardPass(NamedTuple):
    """Results of the forward pass of U outputs, in the order of the layers, for the backward pass."""

    moments: LayerMoments
    parameters: UnpackedParameters  # with T in place of R and t in place of theta_2
    inverse: Any  # (U, M, M) as in ``WhitenedCavity``, also the next ones
    P: Any  # (U, M, M)
    J_inverse: Any  # (U, M, M)
    V: Any  # (U, M, M)
    mean: Any  # (U, M)
    A: Any  # (U, M)
    G: Any  # (outputs of later layers, M, M)
    k: Any  # (U, B, M) k of the first layer, psi1 of later ones
    white: Any  # (U, B, M) L^-1 k
    excesses: Any  # (outputs of later layers, B, P), as in ``numerics.psi``


def allocate_pass(model: DGPModel, rows: int) -> WhitenedForwardPass:
    """Allocate the arrays for a pass of ``rows`` data points."""
    U, M = int(model.dims[1:].sum()), model.inducing
    later, square = U - model.dims[1], (U, M, M)
    return WhitenedForwardPass(
        network.allocate_moments(model, rows), outputs.allocate_parameters(model, U),
        np.empty(square), np.empty(square), np.empty(square), np.empty(square), np.empty((U, M)), np.empty((U, M)),
        np.empty((later, M, M)), np.empty((U, rows, M)), np.empty((U, rows, M)),
        np.empty((later, rows, M * (M + 1) // 2)),
    )  # fmt: skip


class MomentMatching:
    """The energy of minibatches, with a moment-matching step of the tied factors per evaluation.

    A step takes a fraction ``rate`` of the new factors; 0 leaves them unchanged.
    """

    def __init__(self, model: DGPModel, term: LikelihoodTerm, rate: float) -> None:
        self.model, self.term, self.rate = model, term, rate
        self.halvings: list[int] = []  # per step
        self._reported = 0  # steps in earlier diagnostics
        self._saved: WhitenedForwardPass | None = None

    def __call__(self, theta: Array, X: Array, y: Array, noise: Array, gradient: Array) -> float:
        """Return the energy of a minibatch X (B, d), y (B,), nats; nan if it or a new factor is undefined.

        Writes the gradient (P,) of hyperparameters and inducing inputs, and 0 for the factors, which it updates in
        ``theta`` (P,). ``noise`` (S, C) are standard normal draws for the softmax likelihood.
        """
        if self._saved is None or self._saved.k.shape[1] != len(X):
            self._saved = allocate_pass(self.model, len(X))
        saved = self._saved
        means, variances, d_means, d_variances = saved.moments
        value = forward(self.model, theta, X, saved)
        for zeros in (gradient, d_means, d_variances):
            zeros[:] = 0.0
        likelihood, slope_of_noise = self.term.diagonal(
            means[-1], variances[-1], y, saved.parameters.noise[-1], noise, d_means[-1], d_variances[-1]
        )
        gradient[self.model.offsets[-1, 2]] += slope_of_noise
        halvings = backward(self.model, saved, self.rate, theta, gradient) if np.isfinite(value + likelihood) else -1
        self.halvings.append(max(halvings, 0))
        return float(value + likelihood) if halvings >= 0 else np.nan

    def diagnostics(self) -> dict[str, float]:
        """Return ``halved_steps``, the number of halved steps since the last call."""
        recent, self._reported = self.halvings[self._reported :], len(self.halvings)
        return {"halved_steps": float(np.count_nonzero(recent))}


@jit(relaxed=FUSE)
def _cavity_from_inverse(gp: OutputParameters, inverse: Any, beta: float) -> WhitenedCavity:
    """Return the cavity with a fraction beta of the tied factor; ``inverse`` (M, M) is L^-1."""
    M = len(gp.K)
    P = beta * gp.R
    for i in range(M):
        P[i, i] += 1.0
    J_inverse, log_determinant = inverse_factor(P.copy())
    V = np.dot(J_inverse.T, J_inverse)
    t = beta * gp.theta_2
    mean = np.dot(V, t)
    return WhitenedCavity(
        inverse, P, J_inverse, V, mean, np.dot(inverse.T, mean), 0.5 * (np.dot(t, mean) - log_determinant)
    )


@jit(relaxed=FUSE)
def cavity_of(gp: OutputParameters, beta: float) -> WhitenedCavity:
    """Return the cavity with a fraction beta of the tied factor."""
    inverse, log_determinant = inverse_factor(gp.K.copy())
    if np.isnan(log_determinant):
        inverse[:] = np.nan
    return _cavity_from_inverse(gp, inverse, beta)


@jit(relaxed=FUSE, merged=True)
def _spread_matrix(cavity: WhitenedCavity, G: Any) -> None:
    """Write G = L'^-1 (I - V) L^-1 (M, M)."""
    rest = -cavity.V
    for i in range(len(rest)):
        rest[i, i] += 1.0
    copy_matrix(np.dot(cavity.inverse.T, np.dot(rest, cavity.inverse)), G)


@jit(relaxed=FUSE, merged=True)
def _moments_from_k(gp: OutputParameters, cavity: WhitenedCavity, k: Any, m: Any, v: Any, o: int) -> Any:
    """Write mean and variance of output o for known k (B, M); return L^-1 k of each data point (B, M)."""
    white = np.dot(k, cavity.inverse.T)
    mean, spread = np.dot(white, cavity.mean), np.dot(white, cavity.J_inverse.T)
    for n in range(len(k)):
        known, left = 0.0, 0.0
        for i in range(k.shape[1]):
            known += white[n, i] * white[n, i]
            left += spread[n, i] * spread[n, i]
        m[n, o] = mean[n]
        v[n, o] = (gp.s2 - known) + left
    return white


@jit(relaxed=FUSE)
def layer_moments(
    model: DGPModel, theta: Any, layer: int, x: Any, parameters: UnpackedParameters, m: Any, v: Any
) -> None:
    """Write the moments (B, D_out) of one layer under the posterior at known inputs x (B, D_in).

    They include noise except for the last layer. ``parameters`` is a workspace for one output.
    """
    k = np.empty((len(x), model.inducing))
    for o in range(model.dims[layer + 1]):
        gp = unpack_output(model, theta, layer, o, parameters, 0)
        psi.psi1(x, np.zeros(x.shape), gp.Zt, gp.l2, gp.s2, k)
        _moments_from_k(gp, cavity_of(gp, 1.0), k, m, v, o)
        if layer < len(model.dims) - 2:
            network.add_noise(gp.noise, v, o)


@jit(relaxed=FUSE)
def forward(model: DGPModel, theta: Any, X: Any, saved: WhitenedForwardPass) -> float:
    """Return the energy of a minibatch X (B, d) without its likelihood term, nats; write the moments of every layer.

    They include noise except for the last layer. Moments and energy are nan if a matrix has no Cholesky factor.
    """
    L, i, value, N = len(model.dims) - 1, 0, 0.0, model.power.n
    means, variances = saved.moments.means, saved.moments.variances
    network.copy_inputs(X, means[0])
    for layer in range(L):
        m, v = means[layer + 1], variances[layer + 1]
        for o in range(model.dims[layer + 1]):
            gp = unpack_output(model, theta, layer, o, saved.parameters, i)
            cavity = cavity_of(gp, model.power.beta)
            value += (N - 1.0) * _cavity_from_inverse(gp, cavity.inverse, 1.0).phi - N * cavity.phi
            psi.psi1(means[layer], variances[layer], gp.Zt, gp.l2, gp.s2, saved.k[i])
            copy_matrix(_moments_from_k(gp, cavity, saved.k[i], m, v, o), saved.white[i])
            if layer > 0:
                G, excesses = saved.G[i - model.dims[1]], saved.excesses[i - model.dims[1]]
                _spread_matrix(cavity, G)
                network.add_spread(gp, cavity.A, G, saved.k[i], means[layer], variances[layer], v, o, excesses)
            if np.isnan(cavity.phi):
                m[:, o] = np.nan
            if layer < L - 1:
                network.add_noise(gp.noise, v, o)
            _save(cavity, saved, i)
            i += 1
    return value


@jit(relaxed=FUSE, merged=True)
def _save(cavity: WhitenedCavity, saved: WhitenedForwardPass, i: int) -> None:
    """Copy the cavity of one output to index i."""
    copy_matrix(cavity.inverse, saved.inverse[i])
    copy_matrix(cavity.P, saved.P[i])
    copy_matrix(cavity.J_inverse, saved.J_inverse[i])
    copy_matrix(cavity.V, saved.V[i])
    copy_vector(cavity.mean, saved.mean[i])
    copy_vector(cavity.A, saved.A[i])


@jit(relaxed=FUSE)
def backward(model: DGPModel, saved: WhitenedForwardPass, rate: float, theta: Any, gradient: Any) -> int:
    """Add to the gradient (P,) from the gradients of the last layer's moments; update the factors in ``theta``.

    The gradient of the factors remains 0. Returns the number of halvings of all steps, -1 if a V_new is not a
    covariance matrix.
    """
    L, M, i, halvings = len(model.dims) - 1, model.inducing, len(saved.A), 0
    moments, D = saved.moments, np.empty((M, M))
    for layer in range(L - 1, -1, -1):
        x, w, dx, dw = (
            moments.means[layer],
            moments.variances[layer],
            moments.d_means[layer],
            moments.d_variances[layer],
        )
        for o in range(model.dims[layer + 1] - 1, -1, -1):
            i -= 1
            gp, k = outputs.output_at(saved.parameters, i, model.dims[layer]), saved.k[i]
            cavity = WhitenedCavity(
                saved.inverse[i], saved.P[i], saved.J_inverse[i], saved.V[i], saved.mean[i], saved.A[i], 0.0
            )
            gm, gv = moments.d_means[layer + 1, :, o].copy(), moments.d_variances[layer + 1, :, o].copy()
            dZt, dlog_l = np.zeros(gp.Zt.shape), np.zeros(len(gp.l2))
            a, weights = _back_from_k(cavity, k, saved.white[i], gm, gv, D)
            dlog_s = 2.0 * gp.s2 * gv.sum()
            if layer > 0:
                Q = network.pair_weights(cavity.A, saved.G[i - model.dims[1]])
                excesses = saved.excesses[i - model.dims[1]]
                dQ = network.spread_back(gp, k, Q, excesses, x, w, gv, dx, dw, dZt, dlog_l, weights)
                a += 2.0 * np.dot(cavity.inverse, np.dot(dQ, cavity.A))
                D -= np.dot(cavity.inverse, np.dot(dQ, cavity.inverse.T))
            noise = 2.0 * gp.noise * gv.sum() if layer < L - 1 else 0.0
            dlog_s += psi.psi1_back(x, w, gp.Zt, gp.l2, weights, dx, dw, dZt, dlog_l)
            dK = _covariance_gradient(cavity, D, a)
            outputs.covariance_back(model, gp, layer, o, dK, dZt, dlog_l, dlog_s, noise, gradient)
            step_halvings = update_factor(model, gp, cavity, D, a, rate, theta, layer, o) if rate > 0.0 else 0
            if step_halvings < 0:
                return -1
            halvings += step_halvings
    return halvings


@jit(relaxed=FUSE, merged=True)
def _back_from_k(cavity: WhitenedCavity, k: Any, white: Any, gm: Any, gv: Any, D: Any) -> tuple[Any, Any]:
    """Return the gradient with respect to m (M,), and k times that with respect to k (B, M); write that of I - V to D.

    ``white`` (B, M) is L^-1 k.
    """
    rest = np.dot(white, cavity.V)
    scaled = np.empty(k.shape)
    for n in range(len(k)):
        minus, twice = -gv[n], 2.0 * gv[n]
        for i in range(k.shape[1]):
            scaled[n, i] = minus * white[n, i]
            rest[n, i] = gm[n] * cavity.mean[i] - twice * (white[n, i] - rest[n, i])
    copy_matrix(np.dot(white.T, scaled), D)
    return np.dot(gm, white), k * np.dot(rest, cavity.inverse)


@jit(relaxed=FUSE, merged=True)
def _covariance_gradient(cavity: WhitenedCavity, D: Any, a: Any) -> Any:
    """Return the gradient with respect to K (M, M), symmetric, every element counted once, for fixed T and t.

    It follows from dL = L tril(L^-1 dK L'^-1), with half its diagonal, in A = L'^-1 m and G = L'^-1 (I - V) L^-1.
    """
    M = len(D)
    moved = np.dot(D, cavity.V)
    lower = np.empty((M, M))
    for i in range(M):
        for j in range(i + 1):
            half = -0.5 * (a[j] * cavity.mean[i] + 2.0 * (D[j, i] - moved[j, i]))
            lower[i, j] = half
            lower[j, i] = half
    return np.dot(cavity.inverse.T, np.dot(lower, cavity.inverse))
