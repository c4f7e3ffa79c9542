"""Deep Gaussian processes by approximate expectation propagation: Bui, Hernandez-Lobato et al., ICML 2016.

T. D. Bui, D. Hernandez-Lobato, J. M. Hernandez-Lobato, Y. Li and R. E. Turner; section numbers are those of its text
of 2015.

Layers of Gaussian processes of mean 0 with exponentiated quadratic covariances, each output of each layer all but known
from its values u at M inducing inputs (FITC, section 3). The posterior of each u is its prior times a Gaussian factor,
tied over the rows; the factors, inducing inputs and hyperparameters together minimise the energy of power EP (section
4.2) by Adam on minibatches. With ``optimizer: sep`` the factors go to stationary points of the same energy by matching
moments, between steps of Adam on the rest (appendix C, module ``stochastic_ep``). A row goes through the layers as a
Gaussian whose moments are matched at each (section 5). Memory is O(L M^2). Without hidden layers the model is a sparse
Gaussian process by the same energy, which is not FITC's evidence: tying the factors overstates that.

Modules: ``factor`` (cavity, energy and gradient of one output, with the table of symbols), ``network`` (propagation and
back, appendices D and E), ``likelihoods`` (appendix F), ``energy`` (the same for callers outside kernels), ``layout``,
``initialisation``, ``training``, ``stochastic_ep``; ``numerics.psi`` has the expectations of the covariance function.

Deviation: the paper's text leaves steps and minibatches open, and its figures for Gaussian processes cannot be had
with the authors' released program; defaults are that program's: 6000 steps on 50 rows, Adam at 0.005 (text: 0.001),
one set of hyperparameters a layer (text: one a function; ``shared: false``). Inputs are standardised, which that
program leaves out. The starting lengthscale is the median distance of 2,000 rows at most, k-means takes 100 rows a
centre, where that program takes more of both. K^-1 is never formed (``factor``), and the jitter of 1e-6 is no function
of the parameters. Without ``alpha: 1`` the energy is power EP's, at 0 the variational one. With ``optimizer: sep`` a
factor may be of negative precision, as in EP, and hyperparameters move after every minibatch, not once the factors
have settled (appendix C).
"""

from __future__ import annotations

import warnings
from itertools import pairwise
from typing import Literal, NamedTuple

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, PositiveFloat, PositiveInt, model_validator
from scipy.special import ndtr
from threadpoolctl import threadpool_limits

from ep_bench.methods.dgp_ep.energy import (
    DGPProblem,
    evaluator,
    joint_moments,
    log_evidence,
    matcher,
    moments,
    noise_variances,
    normal_draws,
    sampled_moments,
    softmax_probabilities,
    targets,
)  # fmt: skip
from ep_bench.methods.dgp_ep.initialisation import first_inputs, start
from ep_bench.methods.dgp_ep.layout import Structure, layers
from ep_bench.methods.dgp_ep.likelihoods import Likelihood
from ep_bench.methods.dgp_ep.stochastic_ep import MomentMatching
from ep_bench.methods.dgp_ep.training import AdamSchedule, TrainingHistory, run
from ep_bench.predictions import ClassProbabilities, Predictive
from ep_bench.types import Array, Method, Rows

SITE_RATE = 0.01  # of sep; 0.1, 0.03 and 0.02 ended at higher energies of boston's first split without hidden layer

SAMPLES = 100  # of prediction: sampling


class Config(BaseModel):
    """Options of deep Gaussian processes."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    hidden: tuple[PositiveInt, ...] = Field(
        (2,), description="dimensions of the hidden layers, none for a sparse Gaussian process; section 8: 1, 2 or 3"
    )
    inducing: PositiveInt = Field(
        50, description="inducing inputs M of every output, at most the number of distinct rows; section 8: 50, 100"
    )
    alpha: float = Field(1.0, ge=0, le=1, description="power of EP, 0 the variational limit; section 4: 1")
    steps: PositiveInt = Field(6000, description="of Adam, at most; released program: 6000")
    plateau: PositiveInt | None = Field(
        None, description="end where this many steps did not lower the mean energy of as many before; ours: never"
    )
    batch_size: PositiveInt = Field(50, description="rows a step, at most; released program: 50")
    learning_rate: PositiveFloat = Field(0.005, description="of Adam; released program: 0.005, section 8.1: 0.001")
    shared: bool = Field(
        True,
        description="have the outputs of a layer one set of hyperparameters? released program: yes, section 8.1: no",
    )
    propagation: Literal["diagonal", "full"] = Field(
        "diagonal",
        description="covariances of the outputs of later layers: left out, or kept (appendix G); section 5: out",
    )
    optimizer: Literal["energy", "sep"] = Field(
        "energy", description="minimise the energy, or match moments by stochastic EP (appendix C); section 4.2: energy"
    )
    site_rate: float = Field(
        SITE_RATE,
        gt=0,
        le=1,
        description="where optimizer: sep, the share of a new factor that the tied one takes at each step; ours",
    )
    draws: PositiveInt = Field(
        50, description="a step, of the Monte Carlo over more than two classes (appendix F), else unused; ours"
    )
    prediction: Literal["moments", "sampling"] = Field(
        "moments",
        description="moments matched layer by layer, or samples through the hidden layers; section 7: moments",
    )
    samples: PositiveInt = Field(SAMPLES, description="through the layers, where prediction: sampling; ours")

    @model_validator(mode="after")
    def _possible(self) -> Config:
        if self.optimizer == "sep" and self.alpha != 1.0:
            raise ValueError(f"optimizer: sep matches moments with whole likelihoods, alpha: 1, found {self.alpha:g}")
        if self.optimizer == "sep" and self.propagation == "full":
            raise ValueError("optimizer: sep takes propagation: diagonal")
        if self.optimizer == "energy" and self.site_rate != SITE_RATE:
            raise ValueError("site_rate is an option of optimizer: sep")
        if self.prediction == "moments" and self.samples != SAMPLES:
            raise ValueError("samples is an option of prediction: sampling")
        return self


class State(NamedTuple):
    """The network, in the units that the method sees."""

    structure: Structure
    likelihood: Likelihood
    propagation: Literal["diagonal", "full"]
    theta: Array  # (P,) as in ``layout``
    samples: int  # through the layers, of a prediction; 0: matched moments
    log_evidence: float  # minus the energy of all rows, nats
    n_iterations: int  # steps of Adam
    converged: bool

    @property
    def hyperparameters(self) -> dict[str, Array]:
        """Values by name and layer, (G, D_in) and (G,), standardised units; deviations."""
        found: dict[str, Array] = {}
        for index, layer in enumerate(layers(self.structure, self.theta), start=1):
            found |= {
                f"lengthscale_{index}": np.exp(layer.log_lengthscales),
                f"magnitude_{index}": np.exp(layer.log_magnitude),
                f"noise_deviation_{index}": np.exp(layer.log_noise),
            }
        return found


def fit(train: Rows, config: Config, rng: np.random.Generator) -> tuple[State, dict[str, list[float]]]:
    """Fit to standardised rows X (n, d), y (n,) or, with ``train.classes``, class indices.

    Returns the state, and one value a pass over the rows, the last one perhaps cut short, of ``objective`` (the mean
    over its steps of the energy estimate, nats, divided by n) and, in regression, ``noise_deviation`` (last layer,
    standardised). With ``optimizer: sep`` there is also ``halved_steps``, how many steps of the pass were. Raises
    FloatingPointError with the step at which the energy or its gradient is not finite or a matrix has no Cholesky
    factor.
    """
    X, y = np.array(train.X, dtype=np.float64, order="C"), np.array(train.y, dtype=np.float64)
    likelihood, outputs = likelihood_of(train.classes)
    inducing = first_inputs(X, config.inducing, rng)
    structure = Structure(
        (X.shape[1], *config.hidden, outputs), len(inducing), config.shared, config.optimizer == "sep"
    )
    theta = start(structure, X, inducing, rng)
    problem = DGPProblem(structure, likelihood, len(y), config.alpha, config.propagation)
    schedule = AdamSchedule(config.steps, config.batch_size, config.learning_rate, config.plateau)
    noise = layers(structure, theta)[-1].log_noise
    draws = (config.draws, outputs) if likelihood == "softmax" else (0, outputs)
    evaluate = matcher(problem, theta, config.site_rate) if structure.whitened else evaluator(problem)
    with threadpool_limits(1):  # steps magnify last bits, which hang on the number of threads
        path = run(evaluate, theta, X, targets(problem, y), schedule, draws, rng, lambda: float(np.exp(noise[0])))
        evidence = log_evidence(problem, theta, X, y, normal_draws(outputs, rng))
    samples = config.samples if config.prediction == "sampling" else 0
    converged = config.plateau is None or path.settled
    if not converged:
        from sklearn.exceptions import ConvergenceWarning

        warnings.warn(f"no plateau of the energy in {config.steps} steps", ConvergenceWarning, stacklevel=2)
    if not np.isfinite(evidence):
        raise FloatingPointError(f"step {len(path.energies)}: after it the energy of all rows is not finite")
    state = State(structure, likelihood, config.propagation, theta, samples, evidence, len(path.energies), converged)
    trace = _trace(path, len(y), likelihood)
    if isinstance(evaluate, MomentMatching):
        ends = pairwise([0, *path.epochs])
        trace["halved_steps"] = [float(np.count_nonzero(evaluate.halvings[a:b])) for a, b in ends]
    return state, trace


def likelihood_of(classes: int) -> tuple[Likelihood, int]:
    """Return the likelihood of a number of classes, 0 for regression, and how many outputs it takes."""
    if classes == 0:
        return "gaussian", 1
    return ("probit", 1) if classes == 2 else ("softmax", classes)


def predict(state: State, X: Array, rng: np.random.Generator) -> Predictive | ClassProbabilities:
    """Return the distributions of rows X (n, d), standardised units, noise included.

    In regression Gaussians, or mixtures of one a sample; in classification probabilities, of more than two classes by
    quasi-random draws.
    """
    m, V = _last_layer(state, X, rng)
    v = np.einsum("snoo->sno", V) if V.ndim == 4 else V
    if state.likelihood == "gaussian":
        noisy = v[:, :, 0] + noise_variances(state.structure, state.theta)
        return Predictive(np.full(len(m), 1.0 / len(m)), m[:, :, 0], noisy)
    if state.likelihood == "probit":
        z = m[:, :, 0] / np.sqrt(1.0 + v[:, :, 0])
        return ClassProbabilities(np.column_stack([ndtr(-z).mean(axis=0), ndtr(z).mean(axis=0)]))
    return ClassProbabilities(softmax_probabilities(m, V, normal_draws(m.shape[2], rng)))


def _last_layer(state: State, X: Array, rng: np.random.Generator) -> tuple[Array, Array]:
    """Return means (S, N, C) and variances (S, N, C) or covariances (S, N, C, C) of the last layer without noise."""
    if state.samples:
        return sampled_moments(state.structure, state.theta, X, state.samples, rng)
    mean, variance = _matched(state, X)
    return mean[None], variance[None]


def _matched(state: State, X: Array) -> tuple[Array, Array]:
    """Return means (N, C) and variances (N, C) or covariances (N, C, C) of the last layer, moments matched."""
    way = joint_moments if state.propagation == "full" else moments
    return way(state.structure, state.theta, X)[-1]


def latent(state: State, X: Array) -> tuple[Array, Array]:
    """Return means and variances (n,) of the last layer's f at rows X (n, d), standardised units, moments matched.

    Raises ValueError where there are several, as with more than two classes.
    """
    if state.structure.dims[-1] > 1:
        raise ValueError(f"{state.structure.dims[-1]} classes have as many latent functions, not one")
    mean, variance = _matched(state, X)
    return mean[:, 0], variance.reshape(len(X))


def _trace(path: TrainingHistory, n: int, likelihood: Likelihood) -> dict[str, list[float]]:
    ends = [0, *path.epochs]
    means = [float(path.energies[a:b].mean()) / n for a, b in pairwise(ends)]
    return {"objective": means} | ({"noise_deviation": path.values} if likelihood == "gaussian" else {})


def _seconds(config: Config, n: int, d: int) -> float:
    """Time of a fit on one core: matrices of M^2 an output, M^2 a row and output of later layers."""
    M = min(config.inducing, n)
    outputs, later = sum(config.hidden) + 1, (sum(config.hidden[1:]) + 1 if config.hidden else 0)
    step = (
        2e-5
        + outputs * (2e-5 + 5e-10 * M**3 + 3e-9 * M * config.batch_size * d)
        + later * 1.3e-9 * M**2 * config.batch_size
    )
    return config.steps * step * (1.4 if config.optimizer == "sep" else 1.0)


def _published(config: Config) -> tuple[str, ...]:
    """Return the columns that a configuration answers to."""
    names = {(): "GP", (1,): "DGP-1", (2,): "DGP-2", (3,): "DGP-3"}
    as_there = config.alpha == 1.0 and (config.optimizer, config.propagation, config.prediction) == (
        "energy", "diagonal", "moments",
    )  # fmt: skip
    if config.hidden not in names or not as_there:
        return ()
    return (f"{names[config.hidden]}-{config.inducing}", names[config.hidden])


METHOD = Method(
    name="dgp_ep",
    version=1,
    title="Deep Gaussian process by approximate EP",
    paper="Bui et al. (2015)",
    tasks=("regression", "classification"),
    config=Config,
    fit=fit,
    predict=predict,
    latent=latent,
    seconds=_seconds,
    warmup={"steps": 2, "inducing": 3},
    published=_published,
    space={"hidden": {"choice": [[], [1], [2], [3]]}, "learning_rate": {"log": [1e-3, 2e-2]}},
)
