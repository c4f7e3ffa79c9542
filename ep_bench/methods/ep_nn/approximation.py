"""The state of a fit: sites, posterior and their updates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ep_bench.methods.ep_nn import evidence, posterior, sites
from ep_bench.methods.ep_nn.prior_sweeps import output_priors, weight_priors
from ep_bench.methods.ep_nn.sites import (
    SHORTENED,
    LikelihoodSites,
    NetworkPosterior,
    PriorSites,
    SweepOptions,
    SweepRecord,
)
from ep_bench.methods.ep_nn.sweeps import sweep
from ep_bench.types import Array, Indices

INNER_SWEEPS, INNER_TOLERANCE = 30, 1e-8  # EP on the priors of v after every update of q(v)
HALVINGS = 20  # of a step, at most
ADVICE = "; a smaller damping, output_damping or final_damping may help"
Point = tuple[Array, Array]  # vector of sites, and signs (n,) of the sites of v


class NetworkProblem(NamedTuple):
    """Data, network and priors."""

    X: Array  # (n, D), with the constant 1 as last input
    y: Array  # (n,)
    linear: NDArray[np.bool_]  # (K,) whether a unit is linear
    groups: Indices  # (K, D) group of each weight, 0 to L - 1
    kind: int  # prior of the weights: priors.LAPLACE or GAUSSIAN
    scale_prior: tuple[float, float]  # mean and variance of phi
    noise_prior: tuple[float, float]  # mean and variance of theta
    output_prior: tuple[float, float]  # degrees of freedom and squared scale of the Student-t
    fraction: float  # eta of the likelihood terms
    prior_fraction: float  # eta of the prior terms
    sequential: bool  # update q(w_k) and q(theta) after each data point
    clip: bool  # set negative precisions of input sites to 0
    probit: bool = False  # y holds classes, -1 or 1; e^theta is fixed to 1


@dataclass
class ReleasedSites:
    """Groups of sites that EP updates; the others are fixed Gaussian terms."""

    noise: bool = False
    outputs: bool = False
    weights: bool = False
    settled: bool = False  # the sites of the weights are fixed again


class NetworkApproximation:
    """Sites of all terms in one vector, and the posterior that they define.

    Begins with empty sites and theta fixed to ``noise``; the caller fills the sites of the priors. A sweep visits the
    data points in the given ``order`` (n,).
    """

    vector: Array
    sites: LikelihoodSites
    prior: PriorSites
    post: NetworkPosterior

    def __init__(self, problem: NetworkProblem, noise: float, order: Indices) -> None:
        n, D = problem.X.shape
        K, L = len(problem.linear), int(problem.groups.max()) + 1
        self.problem, self.order, self.released = problem, order, ReleasedSites()
        self.vector, self.sites, self.prior = sites.empty(n, K, D)
        self.post = NetworkPosterior(
            np.zeros((K, D)), np.zeros((K, D, D)), np.zeros(K + 1), np.zeros((K + 1, K + 1)), np.array([noise, 0.0]),
            np.zeros((2, L)),
        )  # fmt: skip

    def release_noise(self, mean: float, variance: float) -> None:
        """Learn theta from now on, beginning at q(theta) = N(mean, variance) with equal sites."""
        m, V = self.problem.noise_prior
        n = len(self.problem.y)
        self.sites.noise_precision[:] = (1.0 / variance - 1.0 / V) / n
        self.sites.noise_location[:] = (mean / variance - m / V) / n
        self.released.noise = True
        self.post.noise[:] = mean, variance

    def refresh(self) -> bool:
        """Recompute q from the sites; return whether it is proper. If a q(w_k) is not, all remain unchanged."""
        problem, post = self.problem, self.post
        if self.released.noise:
            post.noise[:] = posterior.noise(self.sites, *problem.noise_prior)
        post.scales[...] = posterior.scales(self.prior, problem.groups, post.scales.shape[1], *problem.scale_prior)
        if not (post.noise[1] >= 0.0 and (post.scales[0] > 0.0).all() and np.isfinite(post.scales).all()):
            return False
        if not np.isfinite(post.noise).all():
            return False
        sums = posterior.output_sums(self.sites)
        prior = self.prior.output_tau, self.prior.output_nu
        found = posterior.outputs(*sums, *prior, post.output_mean, post.output_covariance)
        found = found and bool(np.isfinite(post.output_mean).all())
        return found and posterior.weights(problem.X, self.sites, self.prior, post.weight_mean, post.weight_covariance)

    def snapshot(self) -> Point:
        """Return a copy of the sites."""
        return self.vector.copy(), self.sites.sign.copy()

    def restore(self, point: Point) -> bool:
        """Restore the sites of a snapshot and recompute q; return whether it is proper."""
        self.vector[:], self.sites.sign[:] = point
        return self.refresh()

    def recover(self, before: Point, record: SweepRecord) -> bool:
        """Recompute q; while it is not proper, halve the step since ``before``.

        Returns whether the full step was possible. Raises FloatingPointError if halving does not help.
        """
        for turn in range(HALVINGS):
            if self.refresh():
                return turn == 0
            self._halve(before, record)
        raise FloatingPointError(f"no step of the sites, however short, leaves a proper posterior{ADVICE}")

    def _halve(self, before: Point, record: SweepRecord) -> None:
        """Halve the step since ``before``; undo it for sites of v whose sign has changed."""
        record.counts[SHORTENED] += 1
        vector, signs = before
        changed, place = self.sites.sign != signs, 2 * self.sites.tau.size
        self.vector[:] = 0.5 * (vector + self.vector)
        for array in (self.sites.alpha, self.sites.beta):
            array[changed] = vector[place : place + array.size].reshape(array.shape)[changed]
            place += array.size
        self.sites.sign[:] = signs

    def sweep(self, damping: float, output_damping: float, prior_damping: float, blocks: int = 1) -> SweepRecord:
        """Update all released sites once; return statistics of the sweep.

        The data points are visited in ``blocks`` blocks; parallel updates recompute q after each. Sequential sweeps
        update q(w_k) by changes of rank one; recompute it (``recover``) before the next sweep. Raises
        FloatingPointError if no step leaves a proper posterior.
        """
        before, record = self.snapshot(), sites.record()
        options = SweepOptions(
            self.problem.fraction, damping, output_damping, damping if self.released.noise else 0.0,
            self.problem.sequential, self.problem.clip, self.problem.probit,
        )  # fmt: skip
        for part in np.array_split(self.order, blocks):
            m, V = self._marginals()
            sweep(
                self.problem.X, self.problem.y, part, self.problem.linear, m, V, self.sites, self.post, options, record
            )
            if not self.problem.sequential:
                self.recover(before, record)
        self._settle_outputs(before, record)
        if self.released.weights and not self.released.settled:
            self.sweep_weight_priors(prior_damping, record)
        return record

    def sweep_weight_priors(self, damping: float, record: SweepRecord) -> None:
        """Update the sites of the priors of input weights and of the scales once."""
        problem = self.problem
        weight_priors(problem.groups, self.prior, self.post, problem.prior_fraction, damping, problem.kind, record)

    def _marginals(self) -> tuple[Array, Array]:
        """Return means and variances (n, K) of h."""
        if self.problem.sequential:  # the sweep computes them per data point
            shape = self.sites.tau.shape
            return np.empty(shape), np.empty(shape)
        return posterior.marginals(self.problem.X, self.post.weight_mean, self.post.weight_covariance)

    def _settle_outputs(self, before: Point, record: SweepRecord) -> None:
        """Recompute q(v), and run EP on its priors if released; halve the step while q(v) is not proper."""
        turns = INNER_SWEEPS if self.released.outputs else 0
        for _ in range(HALVINGS):
            found = output_priors(
                *posterior.output_sums(self.sites), self.prior, self.post, self.problem.prior_fraction,
                *self.problem.output_prior, turns, INNER_TOLERANCE, record,
            )  # fmt: skip
            if found:
                return
            self._halve(before, record)
            self.refresh()
        raise FloatingPointError(f"the sites of the output weights leave no proper posterior{ADVICE}")

    def evidence(self) -> tuple[float, float]:
        """Return log Z_EP, (48), and the sum of ln Z_i, (37), nats; nan if a cavity is not proper."""
        problem, post, eta = self.problem, self.post, self.problem.prior_fraction
        log_z = np.full(len(problem.y), np.nan)
        m, V = posterior.marginals(problem.X, post.weight_mean, post.weight_covariance)
        total = evidence.likelihood_terms(
            m, V, problem.y, problem.linear, self.sites, post, problem.fraction, problem.probit, log_z
        )
        total += evidence.log_partition(post.output_mean, post.output_covariance)
        total += sum(map(evidence.log_partition, post.weight_mean, post.weight_covariance))
        if self.released.noise:
            total += evidence.scalar_partition(*post.noise) - evidence.scalar_partition(*problem.noise_prior)
        if self.released.outputs:
            total += evidence.output_prior_terms(self.prior, post, eta, *problem.output_prior)
            total -= evidence.site_partition(self.prior.output_tau[-1:], self.prior.output_nu[-1:])
        else:
            total -= evidence.site_partition(self.prior.output_tau, self.prior.output_nu)
        if not self.released.weights:
            return total - evidence.site_partition(self.prior.tau, self.prior.nu), float(log_z.sum())
        for precision, location in post.scales.T:
            total += evidence.scalar_partition(location / precision, 1.0 / precision)
            total -= evidence.scalar_partition(*problem.scale_prior)
        return total + evidence.weight_prior_terms(
            problem.groups, self.prior, post, eta, problem.kind
        ), float(log_z.sum())  # fmt: skip
