"""A Markov chain for the Student-t model as a mixture of normals: Jylanki et al. (2011), section 3.1; Neal (1997).

V      noise variances of the data points (N,), V_i ~ Inv-chi^2(nu, sigma^2);  U = V / sigma^2
K      covariance of f at theta;  C = K + diag(V)
r      y - f

An iteration draws, each conditional on the rest,

    theta, sigma | U           f integrated out: p(y | V) = N(0, C), V = sigma^2 U, by slice sampling of logarithms
    r | V, theta               exactly: with f0 ~ N(0, K), e ~ N(0, V) and u = C^-1 (y - f0 - e), r = e + V u
    sigma, nu | r              V integrated out: t densities of r, by slice sampling of logarithms
    V | r, sigma, nu           1 / V_i ~ Gamma((nu + 1) / 2, (nu sigma^2 + r_i^2) / 2)

The third and the fourth are together one draw of (sigma, nu, V). sigma is drawn with U fixed and then with V integrated
out. This replaces the paper's V = alpha^2 U (Gelman et al. 2004) without a change of the prior. f0 is L g with a
pivoted Cholesky factor L of K that ends at its numerical rank; the remainder is below rounding errors.

Slices are along the axes and, after the first part of the warm-up, also along ellipses that fit its draws
(``numerics.slice_sampling``). Each point of a slice costs one Cholesky factorisation of C. Priors are those of the
other inferences, truncated at the limits of ``covariances.hyperparameters``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import lapack
from scipy.special import gammaln

from ep_bench.covariances import Covariance, matrix
from ep_bench.covariances.hyperparameters import Hyperparameters
from ep_bench.methods.gp_t import fixed_scales
from ep_bench.methods.gp_t.tilted import log_constant
from ep_bench.numerics import slice_sampling, symmetric
from ep_bench.types import Array

LINES = 1  # slices along random axes per iteration, once ellipses are known
ELLIPSES = 4  # slices along ellipses per iteration
TURNS = 3  # slices of sigma and of nu given r, per iteration
FIRST_WIDTH = 1.0  # width of a slice along an axis, natural logarithms
WIDTH = 2.5  # the same after an adaptation, in standard deviations
WINDOWS = (0.125, 0.25, 0.5, 1.0)  # fractions of the warm-up after which the ellipses are fitted to the latest draws


class StudentTModel(NamedTuple):
    """Training data, the covariance and the hyperparameters (log sigma and log nu last)."""

    X: Array  # (N, d)
    y: Array  # (N,)
    covariance: Covariance
    hyper: Hyperparameters


class ChainWalker:
    """Hyperparameters and noise variances of one chain, with their moves."""

    def __init__(self, model: StudentTModel, rng: np.random.Generator) -> None:
        self.model, self.rng = model, rng
        hyper = model.hyper
        self.theta = hyper.random_start(rng)  # (P,) logarithms
        self.theta = np.where(hyper.free, np.clip(self.theta, hyper.low, hyper.high), self.theta)
        self.workspace = symmetric.square(len(model.y))
        self.evaluations = 0  # Cholesky factorisations
        self.free = free = np.flatnonzero(hyper.free)
        self.limits = tuple(part[free] for part in (hyper.median, hyper.std, hyper.low, hyper.high))
        self.sliced = free[free < len(self.theta) - 1]  # indices of theta and sigma
        self.likelihood = free[free >= len(self.theta) - 2]  # indices of sigma and nu
        self.widths = np.full(len(self.theta), FIRST_WIDTH)
        self.approximation: slice_sampling.StudentTApproximation | None = None
        self.V = self.draw_scales(model.y)
        self.weights, self.log_targets = self.factorise()

    def step(self) -> None:
        """Run one iteration."""
        self.draw_hyperparameters()
        r = self.draw_residuals()
        self.draw_likelihood(r)
        self.V = self.draw_scales(r)
        self.weights, self.log_targets = self.factorise()

    def factorise(self) -> tuple[Array, float]:
        """Return w = C^-1 y and log p(y | V) (nats), and write the factor of C to the workspace.

        Raises FloatingPointError, with the hyperparameters, if C cannot be factorised.
        """
        X, y, covariance, _ = self.model
        self.evaluations += 1
        try:
            found = fixed_scales.factorised(covariance, self.theta[:-2], X, y, self.V, self.workspace)
        except FloatingPointError as error:
            raise FloatingPointError(f"{error}; at {self.model.hyper.words(self.theta)}") from None
        return found.weights, found.log_evidence

    def draw_hyperparameters(self) -> None:
        """Draw theta and sigma given U."""
        if len(self.sliced) == 0:
            return
        U, theta = self.V * math.exp(-2.0 * self.theta[-2]), self.theta.copy()

        def log_density(x: Array) -> float:
            theta[self.sliced] = x
            return self._log_density(theta, U)

        at = slice_sampling.ChainPoint(self.theta[self.sliced], self.log_targets + self._log_prior(theta))
        axes = np.arange(len(self.sliced))
        if self.approximation is not None:
            for _ in range(ELLIPSES):
                at = slice_sampling.update_on_ellipse(log_density, at, self.approximation, self.rng)
            axes = self.rng.choice(axes, min(LINES, len(axes)), replace=False)
        for axis in axes:
            direction = np.zeros(len(self.sliced))
            direction[axis] = self.widths[self.sliced[axis]]
            at = slice_sampling.update_along_line(log_density, at, direction, self.rng)
        self.theta[self.sliced] = at.x
        self.V = U * math.exp(2.0 * self.theta[-2])

    def _log_density(self, theta: Array, U: Array) -> float:
        X, y, covariance, _ = self.model
        log_prior = self._log_prior(theta)
        if log_prior == -math.inf:
            return log_prior
        self.evaluations += 1
        V = U * math.exp(2.0 * theta[-2])
        try:
            found = fixed_scales.factorised(covariance, theta[:-2], X, y, V, self.workspace)
        except FloatingPointError:
            return -math.inf
        return found.log_evidence + log_prior

    def _log_prior(self, theta: Array) -> float:
        """Return ``Hyperparameters.log_prior`` up to a constant, and -inf outside the limits."""
        median, std, low, high = self.limits
        x = theta[self.free]
        if (x < low).any() or (x > high).any():
            return -math.inf
        z = (x - median) / std
        return -0.5 * float(z @ z)

    def draw_residuals(self) -> Array:
        """Return a draw of r (N,) given V and theta."""
        X, y, covariance, _ = self.model
        covariance.fill(self.theta[:-2], X, self.workspace)
        f0 = draw_prior(self.workspace, self.rng)
        e = np.sqrt(self.V) * self.rng.standard_normal(len(y))
        self.factorise()
        return np.asarray(e + self.V * symmetric.solve(self.workspace, y - f0 - e))

    def draw_likelihood(self, r: Array) -> None:
        """Draw sigma and nu given r (N,)."""
        theta = self.theta.copy()

        def log_density(x: Array) -> float:
            theta[-2:] = x
            log_prior = self._log_prior(theta)
            return log_prior if log_prior == -math.inf else log_t(r, theta) + log_prior

        at = slice_sampling.ChainPoint(theta[-2:].copy(), log_density(theta[-2:].copy()))
        for _ in range(TURNS):
            for place in self.likelihood:
                direction = np.zeros(2)
                direction[place - len(theta) + 2] = self.widths[place]
                at = slice_sampling.update_along_line(log_density, at, direction, self.rng)
        self.theta[-2:] = at.x

    def draw_scales(self, r: Array) -> Array:
        """Return a draw of V (N,) given r (N,), sigma and nu."""
        scale, nu = np.exp(self.theta[-2:])
        return 0.5 * (nu * scale**2 + r**2) / self.rng.standard_gamma(0.5 * (nu + 1.0), len(r))

    def log_joint(self) -> float:
        """Return the log density (nats) of targets, variances and hyperparameters."""
        scale, nu = np.exp(self.theta[-2:])
        k = 0.5 * nu
        scales = k * math.log(k * scale**2) - gammaln(k) - (k + 1.0) * np.log(self.V) - k * scale**2 / self.V
        return self.log_targets + float(scales.sum()) + self.model.hyper.log_prior(self.theta)[0]

    def adapt(self, thetas: Array) -> None:
        """Fit the ellipses and the widths of the slices to draws (n, P)."""
        if len(self.sliced) and len(thetas) > 1:
            self.approximation = slice_sampling.StudentTApproximation.of(thetas[:, self.sliced])
        stds = thetas.std(axis=0)
        self.widths = np.where(stds > 0.0, WIDTH * stds, FIRST_WIDTH)


def draw_prior(K: Array, rng: np.random.Generator) -> Array:
    """Return a draw (n,) of N(0, K); the lower triangle K (n, n) is overwritten."""
    found, pivots, rank, _ = lapack.dpstrf(K.T, lower=0, overwrite_a=1)
    f = np.empty(len(K))
    f[pivots - 1] = np.tril(found.T)[:, :rank] @ rng.standard_normal(rank)
    return f


def log_t(r: Array, theta: Array) -> float:
    """Return the sum (nats) of the log t densities of r (N,); theta (P,) ends with log sigma and log nu."""
    scale, nu = math.exp(theta[-2]), math.exp(theta[-1])
    s2 = nu * scale**2
    constant = log_constant(nu, scale**2)
    return float(len(r) * constant - 0.5 * (nu + 1.0) * np.log1p(r**2 / s2).sum())


class StudentTChain:
    """A chain for the loop of ``numerics.mcmc``; predictions are monitored at inputs (M, d)."""

    def __init__(self, model: StudentTModel, inputs: Array, rng: np.random.Generator) -> None:
        self.walker, self._inputs = ChainWalker(model, rng), inputs
        names, free = np.array(model.hyper.names), model.hyper.free
        self._entries = {
            name: np.flatnonzero((names == name) & free) for name in dict.fromkeys(names[free].tolist())
        }  # of the sampled hyperparameters, by name

    def warm_up(self, iteration: int) -> None:  # noqa: ARG002
        """Run one iteration; ``PooledAdaptation`` adapts the chains."""
        self.walker.step()

    def step(self) -> None:
        """Run one iteration."""
        self.walker.step()

    def trace(self) -> dict[str, float]:
        """Return the log joint density (nats), sigma and nu."""
        scale, nu = np.exp(self.walker.theta[-2:]).tolist()
        return {"log_joint": self.walker.log_joint(), "scale": scale, "nu": nu}

    def monitor(self) -> dict[str, Any]:
        """Return the sampled hyperparameters by name, and the means (M,) of f."""
        walker, model = self.walker, self.walker.model
        values = {name: np.exp(walker.theta[entries]) for name, entries in self._entries.items()}
        means = matrix(model.covariance, walker.theta[:-2], self._inputs, model.X) @ walker.weights
        return {**values, "predictions": means}

    def draw(self) -> dict[str, Any]:
        """Return copies of theta (P,) and V (N,)."""
        return {"theta": self.walker.theta.copy(), "V": self.walker.V.copy()}


class PooledAdaptation:
    """Fits the ellipses and slice widths of all chains to the draws of all chains, at the ends of windows."""

    def __init__(self, chains: Sequence[StudentTChain], warmup: int) -> None:
        self._chains = chains
        self._ends = [int(warmup * part) for part in WINDOWS]
        self._window: list[Array] = []  # draws (chains, P)

    def __call__(self, iteration: int) -> None:
        """Add the current draws; adapt if the iteration ends a window."""
        self._window.append(np.array([chain.walker.theta for chain in self._chains]))
        if iteration in self._ends:
            late = self._window[len(self._window) // 2 :] if iteration == self._ends[0] else self._window
            for chain in self._chains:
                chain.walker.adapt(np.concatenate(late))
            self._window = []
