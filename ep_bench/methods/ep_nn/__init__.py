"""Expectation propagation for neural networks with sparsity-promoting priors: Jylanki, Nummenmaa and Vehtari (2014).

Model: a network of one hidden layer, f(x) = sum_k v_k g(w_k' x) + v_0 with g(h) = (2 Phi(h) - 1) / sqrt(K); the last
input is the constant 1. The Gaussian noise has unknown variance e^theta. Input weights have Laplace or Gaussian priors
of variance e^phi_l in groups l with unknown phi_l ~ N; output weights v_k >= 0 a half Student-t prior, (5). EP
approximates the posterior by q(v) prod_k q(w_k) q(theta) prod_l q(phi_l), all Gaussian.

Classes have the probit likelihood p(y | f) = Phi(y f), y = -1 or 1, an extension that the paper names (section 6).
Its terms have fraction 1, at which the tilted moments of f and v are in closed form (``tilted.class_moments``); there
is no theta. More than two classes have one network each, against all others, whose probabilities are normalised; this
is ours.

A sweep updates the likelihood's terms one after the other: cavities (31, 32), tilted moments of v by joint Gaussians of
v and f (33, 34, 38, 39), of each h_ik = w_k' x_i by a grid (36, 41) and of theta by a grid (37), new sites (42, 43,
46), damped (44, 45). Then EP on the priors of v runs to convergence, and once over the priors of w and phi (26 to 30).
Predictions integrate over q(theta) (47). ``log_evidence`` is (48), corrected.

The stages are those of section 3.3.1:

1. 20 sweeps with theta and the sites of all priors fixed.
2. 20 sweeps with the priors of v.
3. 10 sweeps with theta.
4. EP on the priors of w and phi alone, at most 40 passes.
5. All sites in turn until convergence. Extrapolation along steady steps and Anderson mixing accelerate this stage.

A fit has converged if two conditions hold. The undamped step of every group of sites, relative to the norm of the
sites in natural parameters, is below ``tolerance``. No site was skipped. An extrapolation step is rolled back if the
log evidence then falls by more than 10 nats. With ``stop: evidence``, a log evidence within 0.1 nats over 50 sweeps of
stage 5 is sufficient instead of the first condition. EP has many fixed points, which depend on the order of the data
points: ``restarts`` fits in different orders are compared by their log evidence.

Modules: ``sites`` has the table of symbols; ``tilted`` and ``outputs`` moments and sites of one term; ``sweeps`` a pass
over the data points; ``priors`` and ``prior_sweeps`` the same for the priors; ``posterior`` computes q from the sites;
``evidence`` the log evidence; ``approximation`` has the state of a fit, ``initialisation``, ``schedule`` and
``acceleration`` its course.

Deviation: misprints are corrected. (32) prints Sigma_w for Sigma_v; appendix G has s_i with a plus; the terms of (48)
are (ln Z + Psi(cavity) - Psi(marginal)) / eta; (36) omits v_k g(h). A negative a-hat of (42) gives a site of negative
precision, so that alpha carries a sign.
Deviation: a negative tau is set to 0 and the tilted mean kept (``clip``), which changes the fixed point a little. A
site without a proper cavity, or with a tilted variance close to 0, is skipped for one sweep. A step is halved if it
would leave no proper posterior or multiply a variance by more than 20. The trace counts both.
Deviation: q(theta) is released at N(log 0.3^2, 2 / n). Empty sites, as in the paper, can converge to zero noise. The
other sites are updated meanwhile.
Deviation: the sites of the priors are updated one after the other. Those of v are not damped; those of w and phi are
damped by ``final_damping`` after they have converged once. With ``updates: parallel`` the first 50 sweeps recompute
q(v), q(w_k) and q(theta) after each of 30 blocks of data points.
Left open by the paper: the bias of a hidden unit shares the common scale of Laplace priors (``bias: shared``). The
data points have the same order in every sweep, along a random direction. This, the dampings and the rules of
acceleration were chosen by log evidence and convergence on the ten folds and the standard splits of boston.
"""

from __future__ import annotations

import warnings
from math import log
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr, logsumexp, ndtr
from threadpoolctl import threadpool_limits

from ep_bench.methods.ep_nn import schedule
from ep_bench.methods.ep_nn.approximation import NetworkApproximation, NetworkProblem
from ep_bench.methods.ep_nn.config import Config
from ep_bench.methods.ep_nn.initialisation import along_a_direction, start, start_at_maximum
from ep_bench.methods.ep_nn.posterior import marginals
from ep_bench.methods.ep_nn.prediction import function_moments
from ep_bench.methods.ep_nn.priors import GAUSSIAN, LAPLACE
from ep_bench.predictions import ClassProbabilities, Predictive
from ep_bench.types import Array, Indices, Method, Rows

NOISE_START = log(0.3**2)  # initial theta, fixed in the first stages (section 3.3.1)
NOISE_NODES = 15  # quadrature nodes of the integral over theta in predictions
DAMPING = {
    "sequential": (0.8, 0.5, 0.9),
    "parallel": (0.4, 0.2, 0.4),
}  # input, output and final sites
PAPER_UNITS = (10, 30)  # table 1; 30 for kin40k


class State(NamedTuple):
    """The approximate posterior, standardised units; the bias is the last input."""

    linear: NDArray[np.bool_]  # (K,)
    groups: Indices  # (K, d + 1) group of each input weight
    weight_means: Array  # (K, d + 1)
    weight_covariances: Array  # (K, d + 1, d + 1)
    output_mean: Array  # (K + 1,) of v_1, ..., v_K, v_0
    output_covariance: Array  # (K + 1, K + 1)
    noise_mean: float  # of theta, the log of the noise variance
    noise_variance: float  # of theta; 0 if theta is fixed or not released yet
    scale_means: Array  # (L,) of phi, the logs of prior variances; empty if these are fixed or not released yet
    scale_variances: Array  # (L,)
    log_evidence: float  # nats; nan if a term has no proper cavity, which can happen after few sweeps
    n_iterations: int  # sweeps
    converged: bool
    criterion: str  # that the fit met: step or evidence; empty if it has not converged
    start_evidences: tuple[float, ...]  # log evidence of each restart, nats; -inf if it failed

    @property
    def hyperparameters(self) -> dict[str, Array | float]:
        """Return the standard deviations, at the posterior means of their logarithms, standardised units."""
        return {
            "noise_deviation": float(np.exp(0.5 * self.noise_mean)),
            "weight_deviations": np.exp(0.5 * self.scale_means),
        }


class ClassState(NamedTuple):
    """Networks of a classifier: one for the second of two classes, else one per class against all others."""

    networks: tuple[State, ...]
    log_evidence: float  # nats; the sum over the networks
    n_iterations: int  # sweeps of all networks
    converged: bool


def fit(train: Rows, config: Config, rng: np.random.Generator) -> tuple[State | ClassState, dict[str, list[float]]]:
    """Fit to standardised data X (n, d), y (n,) or, with ``train.classes``, class indices.

    Returns the state and a trace with one value per sweep; the trace of a classifier is that of its first network.
    Groups of sites are ``input``, ``output``, ``noise``,
    ``weight_prior``, ``scale`` and ``output_prior``. Names of the trace:

    - ``sum_log_z``: sum of ln Z_i, nats; ``log_evidence``: nats
    - ``noise_deviation``: standard deviation of the noise, standardised
    - ``step_<group>``: relative undamped step
    - ``least_cavity_<group>``: minimum precision of a cavity, relative to the marginal
    - ``skipped``, ``shortened``: numbers of skipped sites and of shortened steps
    - ``negative``, ``clipped``: numbers of negative precisions of h and of prior terms, and of those set to 0
    - ``negative_output``, ``negative_noise``: numbers of sites of negative precision of v and theta
    - ``damping``

    With several restarts, the trace is that of the fit that is kept.

    ``rng`` draws the order of the data points and the starting point of ``start: map``. Raises FloatingPointError if no
    proper posterior is left in any restart, and ValueError for ``start: map`` and classes.
    """
    X = np.column_stack([np.asarray(train.X, dtype=np.float64), np.ones(len(train.X))])
    y = np.array(train.y, dtype=np.float64)
    if not train.classes:
        return _fit_network(problem(X, y, config), config, rng)
    if config.start == "map":
        raise ValueError("start: map requires regression")
    config = config.model_copy(update={"fraction": 1.0, "noise_variance": 1.0})
    labels = [1] if train.classes == 2 else range(train.classes)
    found = [
        _fit_network(problem(X, np.where(y == label, 1.0, -1.0), config)._replace(probit=True), config, rng)
        for label in labels
    ]
    networks = tuple(state for state, _ in found)
    total = sum(network.log_evidence for network in networks), sum(network.n_iterations for network in networks)
    return ClassState(networks, *total, all(network.converged for network in networks)), found[0][1]


def _fit_network(
    data: NetworkProblem, config: Config, rng: np.random.Generator
) -> tuple[State, dict[str, list[float]]]:
    """Return the fit of the highest log evidence, and its trace."""
    fits: list[NetworkFit | FloatingPointError] = [_attempt(data, config, rng) for _ in range(config.restarts)]
    kept = [fit for fit in fits if isinstance(fit, NetworkFit)]
    if not kept:
        raise next(fit for fit in fits if isinstance(fit, FloatingPointError))
    evidences = tuple(fit.log_evidence if isinstance(fit, NetworkFit) else -np.inf for fit in fits)
    best = max(kept, key=lambda fit: np.nan_to_num(fit.log_evidence, nan=-np.inf))
    if not best.converged:
        from ep_bench.errors import ConvergenceWarning

        warnings.warn(best.history.reason(), ConvergenceWarning, stacklevel=3)
    return _state(best, evidences), dict(best.history.trace)


class NetworkFit(NamedTuple):
    """One restart."""

    approximation: NetworkApproximation
    history: schedule.ConvergenceHistory
    converged: bool
    log_evidence: float  # nats; nan if a term has no proper cavity


def _attempt(data: NetworkProblem, config: Config, rng: np.random.Generator) -> NetworkFit | FloatingPointError:
    """Return a fit in an order of its own, or the error if no proper posterior is left."""
    noise = NOISE_START if config.noise_variance is None else log(config.noise_variance)
    approximation = NetworkApproximation(data, noise, along_a_direction(data.X, rng))
    with threadpool_limits(1):  # a fit depends on rounding errors, and these on the number of threads
        start(approximation, config.weight_variance, config.bias_variance, config.output_bias_variance)
        if config.start == "map":
            start_at_maximum(approximation, rng)
        try:
            history, converged = schedule.run(approximation, schedule_of(config))
        except FloatingPointError as error:
            return error
        return NetworkFit(approximation, history, converged, approximation.evidence()[0])


def problem(X: Array, y: Array, config: Config) -> NetworkProblem:
    """Return the problem for data X (n, d + 1), y (n,). Raises ValueError if ``groups`` has a wrong length."""
    K = config.hidden[0]
    return NetworkProblem(
        np.ascontiguousarray(X),
        y,
        np.arange(K) < config.linear_units,
        weight_groups(config, K, X.shape[1]),
        LAPLACE if config.prior == "laplace" else GAUSSIAN,
        (config.scale_mean, config.scale_deviation**2),
        (config.noise_mean, config.noise_deviation**2),
        (config.output_freedom, config.output_scale**2),
        config.fraction,
        config.prior_fraction,
        config.updates == "sequential",
        config.clip,
    )


def weight_groups(config: Config, K: int, D: int) -> Indices:
    """Return the group (K, D) of every weight. Raises ValueError if ``groups`` has a wrong length."""
    groups = config.groups or ("input" if config.prior == "ard" else "common")
    if isinstance(groups, tuple):
        if len(groups) != D:
            raise ValueError(f"groups must have {D} entries, one per input and one for the bias, found {len(groups)}")
        return np.tile(np.array(groups, dtype=np.int64), (K, 1))
    unit, each = np.indices((K, D))
    found = {"common": 0 * unit, "input": each, "unit": unit, "weight": unit * D + each}[groups]
    if config.bias == "own" and groups in {"common", "unit"}:
        found[:, -1] = found.max() + 1
    return found


def schedule_of(config: Config) -> schedule.SweepSchedule:
    """Return the schedule of a fit."""
    options = config.damping, config.output_damping, config.final_damping
    first, output, final = (
        default if option is None else option for option, default in zip(options, DAMPING[config.updates], strict=True)
    )
    return schedule.SweepSchedule(
        config.sweeps, config.tolerance, first, output, final, config.prior == "gaussian",
        config.prior_updates == "once", config.release or np.inf, config.noise_variance is None, config.accelerate,
        config.stop == "evidence", config.final_output_damping, config.prior_damping,
    )  # fmt: skip


def _state(fit: NetworkFit, evidences: tuple[float, ...]) -> State:
    approximation, history = fit.approximation, fit.history
    problem, post = approximation.problem, approximation.post
    released = approximation.released.weights
    precisions, locations = post.scales if released else np.empty((2, 0))
    return State(
        problem.linear, problem.groups, post.weight_mean, post.weight_covariance, post.output_mean,
        post.output_covariance, float(post.noise[0]), float(post.noise[1]), locations / precisions, 1.0 / precisions,
        fit.log_evidence, len(history.sizes), fit.converged, history.criterion if fit.converged else "", evidences,
    )  # fmt: skip


def latent(state: State | ClassState, X: Array) -> tuple[Array, Array]:
    """Return means and variances (n,) of f at inputs X (n, d), standardised units, (34).

    Raises ValueError if X has another shape, and for more than two classes, which have several latent functions.
    """
    if isinstance(state, ClassState):
        if len(state.networks) > 1:
            raise ValueError(f"a single latent function is required, found {len(state.networks)}, one per class")
        state = state.networks[0]
    d = state.weight_means.shape[1] - 1
    if X.ndim != 2 or X.shape[1] != d:
        raise ValueError(f"X must have shape (n, {d}), found {X.shape}")
    inputs = np.column_stack([X, np.ones(len(X))])
    m, V = marginals(inputs, state.weight_means, state.weight_covariances)
    mean, variance = np.empty(len(X)), np.empty(len(X))
    function_moments(m, V, state.linear, state.output_mean, state.output_covariance, mean, variance)
    return mean, variance


def predict(state: State | ClassState, X: Array, rng: np.random.Generator) -> Predictive | ClassProbabilities:  # noqa: ARG001
    """Return mixtures over theta at inputs X (n, d), standardised units, noise included, or class probabilities."""
    if isinstance(state, ClassState):
        return _probabilities(state, X)
    mean, variance = latent(state, X)
    nodes, weights = np.polynomial.hermite_e.hermegauss(NOISE_NODES if state.noise_variance > 0.0 else 1)
    noise = np.exp(state.noise_mean + np.sqrt(state.noise_variance) * nodes)
    return Predictive(weights / weights.sum(), np.tile(mean, (len(nodes), 1)), variance + noise[:, None])


def _probabilities(state: ClassState, X: Array) -> ClassProbabilities:
    """Return E Phi(f) of two classes; of more, these numbers of all networks, normalised."""
    moments = [latent(network, X) for network in state.networks]
    z = np.column_stack([mean / np.sqrt(1.0 + variance) for mean, variance in moments])
    if z.shape[1] == 1:
        return ClassProbabilities(ndtr(np.column_stack([-z, z])))
    logs = log_ndtr(z)
    return ClassProbabilities(np.exp(logs - logsumexp(logs, axis=1, keepdims=True)))


def _seconds(config: Config, n: int, d: int) -> float:
    """Estimate the time of a fit on one core: grids and matrices per data point and unit, matrices per weight."""
    K, D = config.hidden[0], d + 1
    return config.restarts * config.sweeps * K * (n * (1e-6 + 1.5e-9 * D**2) + D * (1e-5 + 1.5e-9 * D**2))


def _published(config: Config) -> tuple[str, ...]:
    """Return the published columns that match a configuration: by priors and units of the paper, for any schedule."""
    if config.groups is not None or config.noise_variance is not None or config.hidden[0] not in PAPER_UNITS:
        return ()
    return {"laplace": ("NN-EP-LA",), "ard": ("NN-EP-ARD",)}.get(config.prior, ())


METHOD = Method(
    name="ep_nn",
    equality="stable",
    version=3,
    title="EP for networks with sparsity-promoting priors",
    paper="Jylanki, Nummenmaa and Vehtari (2014)",
    style=("EP", "D"),
    density="mixture over the noise variance",
    tasks=("regression", "classification"),
    config=Config,
    fit=fit,
    predict=predict,
    latent=latent,
    seconds=_seconds,
    warmup={"sweeps": 52, "hidden": (2,)},
    published=_published,
    space={"hidden": {"choice": [[5], [10], [20], [30]]}, "fraction": {"choice": [0.7, 0.95]}},
)
