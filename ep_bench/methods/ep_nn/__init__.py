"""Expectation propagation for neural networks with sparsity-promoting priors: Jylanki, Nummenmaa and Vehtari (2014).

Model: a network of one hidden layer, f(x) = sum_k v_k g(w_k' x) + v_0 with g(h) = (2 Phi(h) - 1) / sqrt(K); the last
input is the constant 1. The Gaussian noise has unknown variance e^theta. Input weights have Laplace or Gaussian priors
of variance e^phi_l in groups l with unknown phi_l ~ N; output weights v_k >= 0 a half Student-t prior, (5). EP
approximates the posterior by q(v) prod_k q(w_k) q(theta) prod_l q(phi_l), all Gaussian.

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
from typing import Annotated, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, NonNegativeInt, PositiveFloat, PositiveInt, model_validator
from threadpoolctl import threadpool_limits

from ep_bench.methods.ep_nn import schedule
from ep_bench.methods.ep_nn.approximation import NetworkApproximation, NetworkProblem
from ep_bench.methods.ep_nn.initialisation import along_a_direction, start, start_at_maximum
from ep_bench.methods.ep_nn.posterior import marginals
from ep_bench.methods.ep_nn.prediction import function_moments
from ep_bench.methods.ep_nn.priors import GAUSSIAN, LAPLACE
from ep_bench.options import NEUTRAL
from ep_bench.predictions import Predictive
from ep_bench.types import Array, Indices, Method, Rows

NOISE_START = log(0.3**2)  # initial theta, fixed in the first stages (section 3.3.1)
NOISE_NODES = 15  # quadrature nodes of the integral over theta in predictions
DAMPING = {
    "sequential": (0.8, 0.5, 0.9),
    "parallel": (0.4, 0.2, 0.4),
}  # input, output and final sites
PAPER_UNITS = (10, 30)  # table 1; 30 for kin40k
Rate = Annotated[float, Field(gt=0, le=1)]


class Config(BaseModel):
    """Options of EP for networks."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    hidden: tuple[PositiveInt] = Field((10,), description="units K of the hidden layer; section 4.4: 10, kin40k 30")
    linear_units: NonNegativeInt = Field(0, description="number of them that are linear, h / sqrt(K); section 4.1: 1")
    prior: Literal["laplace", "ard", "gaussian"] = Field(
        "laplace",
        description="prior of input weights: laplace, ard (Gaussian, one scale per input) or gaussian (with fixed "
        "weight_variance); section 4.4: laplace and ard",
    )
    groups: Literal["common", "input", "unit", "weight"] | tuple[NonNegativeInt, ...] | None = Field(
        None,
        description="weights with a common scale: all, those of an input, those of a unit, none, or the group of each "
        "input and of the bias, counted from 0; by default common for laplace, input for ard",
    )
    bias: Literal["shared", "own"] = Field(
        "shared",
        description="biases of hidden units have the common scale of the weights (shared) or their own scale; ours",
    )
    updates: Literal["sequential", "parallel"] = Field(
        "sequential", description="update q(w_k) after each data point or after a sweep; section 4.4: sequential"
    )
    fraction: Rate = Field(0.95, description="fraction eta of the likelihood terms; section 3.3.1: 0.95")
    prior_fraction: Rate = Field(0.8, description="fraction eta of the prior terms; section 3.3.1: 0.7 to 0.9")
    damping: Rate | None = Field(
        None, description="damping delta of input and theta sites before priors are released; section 3.3.1: 0.5 to "
        "0.8 sequential (by default 0.8), below 0.5 parallel (0.4)",
    )  # fmt: skip
    output_damping: Rate | None = Field(
        None, description="damping delta of output sites before priors are released; section 3.3.1: 0.2; ours: 0.5 "
        "sequential, 0.2 parallel",
    )  # fmt: skip
    final_damping: Rate | None = Field(
        None, description="damping delta of all sites afterwards; ours: 0.9 sequential, 0.4 parallel"
    )
    final_output_damping: Rate = Field(
        1.0, json_schema_extra={NEUTRAL: 1.0}, description="upper limit of that of output sites; section 3.3.1: 0.2"
    )
    prior_damping: Rate = Field(
        1.0, json_schema_extra={NEUTRAL: 1.0}, description="the same for the priors of input weights; section 3.3.1: "
        "0.5 to 0.7",
    )  # fmt: skip
    clip: bool = Field(True, description="set negative precisions of input sites to 0; ours")
    prior_updates: Literal["always", "once"] = Field(
        "always",
        description="update the priors of input weights in every sweep after their release, or only until they "
        "converge; ours",
    )
    release: PositiveFloat | None = Field(
        None,
        description="relative step of EP with Gaussian priors below which the priors of input weights are released, "
        "after half of the sweeps at the latest; by default after 50 sweeps; section 3.3.1: sufficient, 4.2: converged",
    )
    scale_mean: float = Field(2.0 * log(0.01), description="mean of the prior of phi; section 4.4: 2 log 0.01")
    scale_deviation: PositiveFloat = Field(2.5, description="standard deviation of the prior of phi; section 4.4: 2.5")
    noise_mean: float = Field(2.0 * log(0.01), description="mean of the prior of theta; section 4.4: 2 log 0.01")
    noise_deviation: PositiveFloat = Field(2.0, description="standard deviation of the prior of theta; section 4.4: 2")
    noise_variance: PositiveFloat | None = Field(
        None, description="fixed noise variance, in squared units of the standardised target; by default learned"
    )
    weight_variance: PositiveFloat = Field(
        0.5, description="initial prior variance of input weights, fixed for prior: gaussian; section 3.3.1: 0.5"
    )
    bias_variance: PositiveFloat = Field(4.0, description="the same for the biases; section 3.3.1: 4")
    output_freedom: PositiveFloat = Field(
        4.0, description="degrees of freedom nu of the prior of output weights; section 2.1: 4"
    )
    output_scale: PositiveFloat = Field(1.0, description="scale sigma of that prior; section 2.1: 1")
    start: Literal["zero", "map"] = Field(
        "zero", description="means of the initial priors: 0, or a maximum of the posterior; section 3.3.1: zero"
    )
    sweeps: PositiveInt = Field(400, description="sweeps over the data points, at most; ours")
    tolerance: PositiveFloat = Field(1e-4, description="relative undamped step of all sites at convergence; ours")
    stop: Literal["step", "evidence"] = Field(
        "step",
        json_schema_extra={NEUTRAL: "step"},
        description="criterion of convergence: the relative step of all sites, or (evidence) either this or a log "
        "evidence that is stable to 0.1 nats over 50 sweeps; ours",
    )
    restarts: PositiveInt = Field(
        1,
        json_schema_extra={NEUTRAL: 1},
        description="number of fits with different orders of the data points, of which the one of the highest log "
        "evidence is kept; ours",
    )
    accelerate: bool = Field(True, description="use extrapolation and Anderson mixing in the last stage; ours")

    @model_validator(mode="after")
    def _possible(self) -> Config:
        if self.linear_units > self.hidden[0]:
            raise ValueError(
                f"linear_units must be at most {self.hidden[0]}, the number of hidden units, found {self.linear_units}"
            )
        if self.groups is not None and self.prior == "gaussian":
            raise ValueError("groups requires a prior with scales, prior: laplace or ard")
        if self.prior == "gaussian" and (self.release is not None or self.prior_updates == "once"):
            raise ValueError("release and prior_updates: once require a prior with sites, prior: laplace or ard")
        if self.prior == "gaussian" and self._changed("scale_mean", "scale_deviation", "bias"):
            raise ValueError("scale_mean, scale_deviation and bias require a prior with scales, prior: laplace or ard")
        if self.noise_variance is not None and self._changed("noise_mean", "noise_deviation"):
            raise ValueError("noise_mean and noise_deviation require learned noise: remove noise_variance")
        if isinstance(self.groups, tuple) and self.bias == "own":
            raise ValueError(
                "bias: own cannot be combined with a list of groups, whose last number is the group of the biases"
            )
        if self.bias == "own" and (self.groups or (self.prior == "ard" and "input")) in {"input", "weight"}:
            raise ValueError(
                "bias: own requires scales that inputs share; with one scale per input the bias already has its own"
            )
        if isinstance(self.groups, tuple) and set(self.groups) != set(range(max(self.groups, default=0) + 1)):
            raise ValueError(f"groups must be numbered 0, 1, 2, ... without gaps, found {list(self.groups)}")
        return self

    def _changed(self, *names: str) -> bool:
        """Return whether an option differs from its default."""
        return any(getattr(self, name) != Config.model_fields[name].default for name in names)


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


def fit(train: Rows, config: Config, rng: np.random.Generator) -> tuple[State, dict[str, list[float]]]:
    """Fit to standardised data X (n, d), y (n,).

    Returns the state and a trace with one value per sweep. Groups of sites are ``input``, ``output``, ``noise``,
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
    proper posterior is left in any restart.
    """
    X = np.column_stack([np.asarray(train.X, dtype=np.float64), np.ones(len(train.X))])
    data = problem(X, np.array(train.y, dtype=np.float64), config)
    fits: list[NetworkFit | FloatingPointError] = [_attempt(data, config, rng) for _ in range(config.restarts)]
    kept = [fit for fit in fits if isinstance(fit, NetworkFit)]
    if not kept:
        raise next(fit for fit in fits if isinstance(fit, FloatingPointError))
    evidences = tuple(fit.log_evidence if isinstance(fit, NetworkFit) else -np.inf for fit in fits)
    best = max(kept, key=lambda fit: np.nan_to_num(fit.log_evidence, nan=-np.inf))
    if not best.converged:
        from ep_bench.errors import ConvergenceWarning

        warnings.warn(best.history.reason(), ConvergenceWarning, stacklevel=2)
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
        start(approximation, config.weight_variance, config.bias_variance)
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


def latent(state: State, X: Array) -> tuple[Array, Array]:
    """Return means and variances (n,) of f at inputs X (n, d), standardised units, (34).

    Raises ValueError if X has another shape.
    """
    d = state.weight_means.shape[1] - 1
    if X.ndim != 2 or X.shape[1] != d:
        raise ValueError(f"X must have shape (n, {d}), found {X.shape}")
    inputs = np.column_stack([X, np.ones(len(X))])
    m, V = marginals(inputs, state.weight_means, state.weight_covariances)
    mean, variance = np.empty(len(X)), np.empty(len(X))
    function_moments(m, V, state.linear, state.output_mean, state.output_covariance, mean, variance)
    return mean, variance


def predict(state: State, X: Array, rng: np.random.Generator) -> Predictive:  # noqa: ARG001
    """Return mixtures over theta at inputs X (n, d), standardised units, noise included."""
    mean, variance = latent(state, X)
    nodes, weights = np.polynomial.hermite_e.hermegauss(NOISE_NODES if state.noise_variance > 0.0 else 1)
    noise = np.exp(state.noise_mean + np.sqrt(state.noise_variance) * nodes)
    return Predictive(weights / weights.sum(), np.tile(mean, (len(nodes), 1)), variance + noise[:, None])


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
    density="mixture over the noise variance",
    tasks=("regression",),
    config=Config,
    fit=fit,
    predict=predict,
    latent=latent,
    seconds=_seconds,
    warmup={"sweeps": 52, "hidden": (2,)},
    published=_published,
    space={"hidden": {"choice": [[5], [10], [20], [30]]}, "fraction": {"choice": [0.7, 0.95]}},
)
