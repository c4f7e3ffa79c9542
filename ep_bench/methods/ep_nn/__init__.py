"""Expectation propagation for neural networks with sparsity-promoting priors: Jylanki, Nummenmaa and Vehtari (2014).

A network of one hidden layer, f(x) = sum_k v_k g(w_k' x) + v_0 with g(h) = (2 Phi(h) - 1) / sqrt(K) and x ending in a
constant 1, has Gaussian noise of unknown variance e^theta. Input weights have Laplace or Gaussian priors of variance
e^phi_l in groups l with unknown phi_l ~ N; output weights v_k >= 0 a half Student-t prior, (5). EP approximates the
posterior by q(v) prod_k q(w_k) q(theta) prod_l q(phi_l), all Gaussian.

A sweep takes the likelihood's terms one after the other: cavities (31, 32), tilted moments of v by joint Gaussians of v
and f (33, 34, 38, 39), of each h_ik = w_k' x_i by a grid (36, 41) and of theta by a grid (37), new sites (42, 43, 46),
damped (44, 45). Then EP runs on the priors of v to convergence, and once over the priors of w and phi (26 to 30).
Predictions integrate over q(theta) (47). ``log_evidence`` is (48), corrected.

The stages are those of section 3.3.1: 20 sweeps with theta and all priors' sites fixed, 20 with the priors of v, 10
with theta, EP on the priors of w and phi alone, at most 40 times over them, then all in turn. In the last stage jumps
along steady steps and Anderson's mixing shorten the way. A fit has converged where the undamped step of every group of
sites is shorter than ``tolerance`` in parts of the sites' own length, in natural parameters, and no site was left
alone. A jump after which the log evidence falls by more than 10 nats is taken back.

Modules: ``sites`` has the symbols; ``tilted`` and ``outputs`` the moments and sites of one term, ``sweeps`` a pass over
the rows; ``priors`` and ``prior_sweeps`` the same of the priors' terms; ``posterior`` q from the sites; ``evidence``;
``approximation`` all of them together, ``initialisation``, ``schedule`` and ``acceleration`` a fit.

Deviation: (32) prints Sigma_w for Sigma_v, and appendix G s_i with a plus; the terms of (48) are (ln Z + Psi(cavity) -
Psi(marginal)) / eta; (36) leaves out v_k g(h). A negative a-hat of (42) makes a site of negative precision: alpha
comes with a sign.
Deviation: a negative tau becomes 0, the tilted mean kept (``clip``); this moves the fixed point a little. What has no
proper cavity or a tilted variance of all but 0 is left alone for a sweep, and a step that would leave no proper
posterior, or raise a variance twentyfold, is halved; both are counted in the trace.
Deviation: q(theta) is released at N(log 0.3^2, 2 / n), not from empty sites, which can end at no noise at all; the
other sites go on meanwhile.
Deviation: the sites of the priors are updated one after the other; those of v undamped, those of w and phi undamped
until they settle, then by ``final_damping``. With ``updates: parallel`` the first 50 sweeps compute q(v), q(w_k) and
q(theta) anew after each of 30 blocks of rows.
Left open by the paper: the bias of a hidden unit shares the common scale of Laplace priors (``bias: shared``). Rows
come in the same order in every sweep, along a direction drawn at random. This, the dampings and the rules of
acceleration were chosen on boston's ten folds and standard splits, by log evidence and convergence.
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
from ep_bench.predictions import Predictive
from ep_bench.types import Array, Indices, Method, Rows

NOISE_START = log(0.3**2)  # theta, fixed at first (section 3.3.1)
NOISE_NODES = 15  # of the integral over theta in predictions
DAMPING = {"sequential": (0.8, 0.5, 0.9), "parallel": (0.4, 0.2, 0.4)}  # input and output sites; all in the last stage
PAPER_UNITS = (10, 30)  # of table 1; 30 on kin40k
Rate = Annotated[float, Field(gt=0, le=1)]


class Config(BaseModel):
    """Options of EP for networks."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    hidden: tuple[PositiveInt] = Field((10,), description="units K of the one hidden layer; section 4.4: 10, kin40k 30")
    linear_units: NonNegativeInt = Field(0, description="how many of them are linear, h / sqrt(K); section 4.1: 1")
    prior: Literal["laplace", "ard", "gaussian"] = Field(
        "laplace",
        description="of input weights: laplace, ard (Gaussian, a scale an input) or gaussian (of fixed "
        "weight_variance); section 4.4: laplace and ard",
    )
    groups: Literal["common", "input", "unit", "weight"] | tuple[NonNegativeInt, ...] | None = Field(
        None,
        description="which weights share a scale: all, those of an input, of a unit, none, or the group of each input "
        "and of the bias, counted from 0; by default common for laplace, input for ard",
    )
    bias: Literal["shared", "own"] = Field(
        "shared",
        description="does a common scale hold for the biases of hidden units, or have they their own? ours",
    )
    updates: Literal["sequential", "parallel"] = Field(
        "sequential", description="of q(w_k): after each row, or after a sweep; section 4.4: sequential"
    )
    fraction: Rate = Field(0.95, description="eta of the likelihood's terms; section 3.3.1: 0.95")
    prior_fraction: Rate = Field(0.8, description="eta of the priors' terms; section 3.3.1: 0.7 to 0.9")
    damping: Rate | None = Field(
        None, description="delta of input and theta sites before priors are released; section 3.3.1: 0.5 to 0.8 "
        "sequential (by default 0.8), below 0.5 parallel (0.4)",
    )  # fmt: skip
    output_damping: Rate | None = Field(
        None, description="delta of output sites before priors are released; section 3.3.1: 0.2; ours: 0.5 sequential, "
        "0.2 parallel",
    )  # fmt: skip
    final_damping: Rate | None = Field(
        None, description="delta of all sites afterwards; ours: 0.9 sequential, 0.4 parallel"
    )
    clip: bool = Field(True, description="keep the precisions of input sites at 0 or above? ours")
    prior_updates: Literal["always", "once"] = Field(
        "always",
        description="of input weights' priors: in every sweep once released, or until they settle and no more",
    )
    release: PositiveFloat | None = Field(
        None,
        description="relative step of EP with Gaussian priors below which input weights' own are released, after half "
        "of the sweeps at the latest; by default after 50 sweeps; section 3.3.1: sufficient, 4.2: converged",
    )
    scale_mean: float = Field(2.0 * log(0.01), description="of the prior of phi; section 4.4: 2 log 0.01")
    scale_deviation: PositiveFloat = Field(2.5, description="of the prior of phi; section 4.4: 2.5")
    noise_mean: float = Field(2.0 * log(0.01), description="of the prior of theta; section 4.4: 2 log 0.01")
    noise_deviation: PositiveFloat = Field(2.0, description="of the prior of theta; section 4.4: 2")
    noise_variance: PositiveFloat | None = Field(None, description="standardised; learned unless given")
    weight_variance: PositiveFloat = Field(
        0.5, description="of input weights, at first, and for good where prior: gaussian; section 3.3.1: 0.5"
    )
    bias_variance: PositiveFloat = Field(4.0, description="the same of the biases; section 3.3.1: 4")
    output_freedom: PositiveFloat = Field(4.0, description="nu of the prior of output weights; section 2.1: 4")
    output_scale: PositiveFloat = Field(1.0, description="sigma of that prior; section 2.1: 1")
    start: Literal["zero", "map"] = Field(
        "zero", description="means of the first priors: 0, or at a maximum of the posterior; section 3.3.1: zero"
    )
    sweeps: PositiveInt = Field(400, description="over the rows, at most; ours")
    tolerance: PositiveFloat = Field(1e-4, description="relative undamped step of all sites; ours")
    accelerate: bool = Field(True, description="jumps and mixing in the last stage? ours")

    @model_validator(mode="after")
    def _possible(self) -> Config:
        if self.linear_units > self.hidden[0]:
            raise ValueError(f"linear_units: {self.linear_units} of {self.hidden[0]} hidden units cannot be linear")
        if self.groups is not None and self.prior == "gaussian":
            raise ValueError("groups share scales, which prior: gaussian has not")
        if self.prior == "gaussian" and (self.release is not None or self.prior_updates == "once"):
            raise ValueError("release and prior_updates: once are of sites of priors, which prior: gaussian has not")
        if self.prior == "gaussian" and self._given("scale_mean", "scale_deviation", "bias"):
            raise ValueError("scale_mean, scale_deviation and bias are of scales, which prior: gaussian has not")
        if self.noise_variance is not None and self._given("noise_mean", "noise_deviation"):
            raise ValueError("noise_mean and noise_deviation are of a noise to be learned: noise_variance is given")
        if isinstance(self.groups, tuple) and self.bias == "own":
            raise ValueError("bias: own is said by groups itself, whose last number is the group of the biases")
        if self.bias == "own" and (self.groups or (self.prior == "ard" and "input")) in {"input", "weight"}:
            raise ValueError("bias: own is for scales that inputs share; an input's own leave the bias its own anyway")
        if isinstance(self.groups, tuple) and set(self.groups) != set(range(max(self.groups, default=0) + 1)):
            raise ValueError(f"groups must count 0, 1, 2, ... without a gap, found {list(self.groups)}")
        return self

    def _given(self, *names: str) -> bool:
        return any(getattr(self, name) != Config.model_fields[name].default for name in names)


class State(NamedTuple):
    """The approximate posterior, in the units that the method sees; the bias is the last input."""

    linear: NDArray[np.bool_]  # (K,)
    groups: Indices  # (K, d + 1) scales of the input weights
    weight_means: Array  # (K, d + 1)
    weight_covariances: Array  # (K, d + 1, d + 1)
    output_mean: Array  # (K + 1,) of v_1, ..., v_K, v_0
    output_covariance: Array  # (K + 1, K + 1)
    noise_mean: float  # of theta, the log of the noise variance
    noise_variance: float  # of theta; 0 where it was given, or not released in as few sweeps
    scale_means: Array  # (L,) of phi, the logs of prior variances; empty where prior: gaussian, or not released yet
    scale_variances: Array  # (L,)
    log_evidence: float  # nats; nan where a term has no proper cavity, as a fit of few sweeps may end
    n_iterations: int  # sweeps
    converged: bool

    @property
    def hyperparameters(self) -> dict[str, Array | float]:
        """Deviations at the posterior means of their logarithms, standardised units."""
        return {
            "noise_deviation": float(np.exp(0.5 * self.noise_mean)),
            "weight_deviations": np.exp(0.5 * self.scale_means),
        }


def fit(train: Rows, config: Config, rng: np.random.Generator) -> tuple[State, dict[str, list[float]]]:
    """Fit to standardised rows X (n, d), y (n,); ``rng`` draws the order of the rows, and the start of a map.

    Returns the state, and one value a sweep of ``sum_log_z`` (the sum of ln Z_i, nats), ``log_evidence`` (nats),
    ``noise_deviation`` (standardised), the relative undamped steps of the sites' groups (``step_input``, ...), the
    least precision of a cavity of each in parts of the marginal's (``least_cavity_input``, ...), numbers of ``skipped``
    sites, of ``shortened`` steps, of ``negative`` precisions of h and the priors' terms and of those ``clipped``, of
    sites of negative precision of v and theta (``negative_output``, ``negative_noise``), and ``damping``. Raises
    FloatingPointError where no proper posterior is left.
    """
    X = np.column_stack([np.asarray(train.X, dtype=np.float64), np.ones(len(train.X))])
    approximation = NetworkApproximation(
        problem(X, np.array(train.y, dtype=np.float64), config),
        NOISE_START if config.noise_variance is None else log(config.noise_variance),
        along_a_direction(X, rng),
    )
    with threadpool_limits(1):  # the way of a fit hangs on last bits, and these on the number of threads
        start(approximation, config.weight_variance, config.bias_variance)
        if config.start == "map":
            start_at_maximum(approximation, rng)
        path, converged = schedule.run(approximation, schedule_of(config))
    if not converged:
        from sklearn.exceptions import ConvergenceWarning

        warnings.warn(path.reason(), ConvergenceWarning, stacklevel=2)
    return _state(approximation, path, converged), dict(path.trace)


def problem(X: Array, y: Array, config: Config) -> NetworkProblem:
    """Return the rows X (n, d + 1), y (n,) with network and priors. Raises ValueError for groups that do not fit."""
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
    """Return the group (K, D) of every weight. Raises ValueError where ``groups`` names another number of inputs."""
    groups = config.groups or ("input" if config.prior == "ard" else "common")
    if isinstance(groups, tuple):
        if len(groups) != D:
            raise ValueError(f"groups: {D} expected, one an input and one for the bias, found {len(groups)}")
        return np.tile(np.array(groups, dtype=np.int64), (K, 1))
    unit, each = np.indices((K, D))
    found = {"common": 0 * unit, "input": each, "unit": unit, "weight": unit * D + each}[groups]
    if config.bias == "own" and groups in {"common", "unit"}:
        found[:, -1] = found.max() + 1
    return found


def schedule_of(config: Config) -> schedule.SweepSchedule:
    """Return how a fit goes."""
    given = config.damping, config.output_damping, config.final_damping
    first, output, final = (
        usual if one is None else one for one, usual in zip(given, DAMPING[config.updates], strict=True)
    )
    return schedule.SweepSchedule(
        config.sweeps, config.tolerance, first, output, final, config.prior == "gaussian",
        config.prior_updates == "once", config.release or np.inf, config.noise_variance is None, config.accelerate,
    )  # fmt: skip


def _state(approximation: NetworkApproximation, path: schedule.ConvergenceHistory, converged: bool) -> State:
    problem, post = approximation.problem, approximation.post
    released = approximation.released.weights
    precisions, locations = post.scales if released else np.empty((2, 0))
    return State(
        problem.linear, problem.groups, post.weight_mean, post.weight_covariance, post.output_mean,
        post.output_covariance, float(post.noise[0]), float(post.noise[1]), locations / precisions, 1.0 / precisions,
        approximation.evidence()[0], len(path.sizes), converged,
    )  # fmt: skip


def latent(state: State, X: Array) -> tuple[Array, Array]:
    """Return means and variances (n,) of f at rows X (n, d), standardised units, (34)."""
    d = state.weight_means.shape[1] - 1
    if X.ndim != 2 or X.shape[1] != d:
        raise ValueError(f"X must have shape (n, {d}), found {X.shape}")
    inputs = np.column_stack([X, np.ones(len(X))])
    m, V = marginals(inputs, state.weight_means, state.weight_covariances)
    mean, variance = np.empty(len(X)), np.empty(len(X))
    function_moments(m, V, state.linear, state.output_mean, state.output_covariance, mean, variance)
    return mean, variance


def predict(state: State, X: Array, rng: np.random.Generator) -> Predictive:  # noqa: ARG001
    """Return the distributions of rows X (n, d), standardised units, noise included: Gaussians, one a theta."""
    mean, variance = latent(state, X)
    nodes, weights = np.polynomial.hermite_e.hermegauss(NOISE_NODES if state.noise_variance > 0.0 else 1)
    noise = np.exp(state.noise_mean + np.sqrt(state.noise_variance) * nodes)
    return Predictive(weights / weights.sum(), np.tile(mean, (len(nodes), 1)), variance + noise[:, None])


def _seconds(config: Config, n: int, d: int) -> float:
    """Time of a fit on one core: grids and matrices of each row and unit, matrices of each weight."""
    K, D = config.hidden[0], d + 1
    return config.sweeps * K * (n * (1e-6 + 1.5e-9 * D**2) + D * (1e-5 + 1.5e-9 * D**2))


def _published(config: Config) -> tuple[str, ...]:
    """Return the column that a configuration answers to: the paper's priors and units, whatever the scheme."""
    if config.groups is not None or config.noise_variance is not None or config.hidden[0] not in PAPER_UNITS:
        return ()
    return {"laplace": ("NN-EP-LA",), "ard": ("NN-EP-ARD",)}.get(config.prior, ())


METHOD = Method(
    name="ep_nn",
    version=3,
    title="EP for networks with sparsity-promoting priors",
    paper="Jylanki, Nummenmaa and Vehtari (2014)",
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
