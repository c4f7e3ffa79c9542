"""Deep Gaussian processes by approximate expectation propagation: Bui, Hernandez-Lobato et al., ICML 2016.

T. D. Bui, D. Hernandez-Lobato, J. M. Hernandez-Lobato, Y. Li and R. E. Turner; section numbers refer to the version of
2015.

Model: layers of Gaussian processes with mean 0 and exponentiated quadratic covariances. Each output of each layer is
summarised by its values u at M inducing inputs (FITC, section 3). The posterior of each u is its prior times a Gaussian
factor, tied over the data points. Factors, inducing inputs and hyperparameters together minimise the energy of power EP
(section 4.2) by Adam on minibatches. A data point passes through the layers as a Gaussian, with its moments matched at
each layer (section 5). Memory is O(L M^2). Without hidden layers the model is a sparse Gaussian process with the same
energy. This is not the evidence of FITC, which tied factors overstate.

With ``optimizer: sep`` the factors approach stationary points of the same energy by moment matching, alternating with
steps of Adam on the other parameters (appendix C, module ``stochastic_ep``).

Modules: ``factor`` has cavity, energy and gradient of one output, with the table of symbols; ``network`` the forward
and backward pass (appendices D and E), ``joint`` the same with covariances (appendix G); ``outputs`` the parameters of
one output; ``stochastic_ep`` and ``whitened_factor`` moment matching; ``likelihoods`` appendix F; ``energy`` the Python
interface of these kernels; ``layout`` and ``initialisation`` parameters; ``covariances.energy_training`` optimisation.
``fitc_start`` has the initial parameters of regression. ``numerics.psi`` has the expectations of the covariance
function.

Deviation: the paper does not state steps and minibatches, and the authors' released program does not reproduce its
numbers for Gaussian processes. The program takes 6000 steps of constant size from random factors, and its energy still
falls at the end. Here step sizes decrease to 0 along a cosine over 15,000 steps, and regression starts from a sparse
Gaussian process (``fitc_start``). With ``training: released program``, the settings are those of the program. Others of
its defaults are kept: 50 data points per step, one set of hyperparameters per layer (text: ``shared: false``). Step
sizes are 0.005 from random factors, as in the program (text: 0.001), and 0.002 from sparse processes, chosen by the
energy of training data. Unlike the program, this implementation standardises inputs, computes the initial lengthscale
as the median distance of at most 2,000 data points, and runs k-means on 100 data points per centre. K^-1 is never
formed (``factor``), and the jitter of 1e-6 is not a function of the parameters. The energy is that of power EP, with
``alpha: 1`` the paper's and at 0 the variational one. The default of 0.5 was chosen on validation points of regression;
classifiers have 1. With ``optimizer: sep`` a factor may have negative precision, as in EP, and hyperparameters change
after every minibatch, not after the factors have converged (appendix C).
"""

from __future__ import annotations

import warnings
from typing import Literal, NamedTuple

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, PositiveFloat, PositiveInt, model_validator
from scipy.special import ndtr
from threadpoolctl import threadpool_limits

from ep_bench.covariances.energy_training import SETTLED, TrainingHistory, judge, run, warn_unconverged
from ep_bench.covariances.inducing import centres
from ep_bench.methods.dgp_ep import fitc_start, initialisation
from ep_bench.methods.dgp_ep.energy import (
    DGPProblem,
    evaluator,
    joint_moments,
    log_evidence,
    moment_matcher,
    moments,
    noise_variances,
    normal_draws,
    rounding_error,
    sampled_moments,
    softmax_probabilities,
    targets,
)
from ep_bench.methods.dgp_ep.layout import Structure, layers
from ep_bench.methods.dgp_ep.likelihoods import Likelihood
from ep_bench.numerics.minibatch import AdamSchedule
from ep_bench.options import NEUTRAL
from ep_bench.predictions import ClassProbabilities, Predictive
from ep_bench.types import Array, Method, Rows

SITE_RATE = 0.01  # larger rates (0.02 to 0.1) gave higher energies on boston's first split without hidden layers

RANDOM_RATE, FITC_RATE = 0.005, 0.002  # first step sizes of Adam by default, by start

RELEASED = {"alpha": 1.0, "steps": 6000, "learning_rate": RANDOM_RATE, "schedule": "constant", "start": "random"}

NO_GAIN = 0.02  # log evidence above that of the class frequencies, nats per data point; less is no fit

SAMPLES = 100  # for prediction: sampling


class Config(BaseModel):
    """Options of deep Gaussian processes."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    hidden: tuple[PositiveInt, ...] = Field(
        (2,), description="dimensions of the hidden layers, [] for a sparse Gaussian process; section 8: 1, 2 or 3"
    )
    inducing: PositiveInt = Field(
        50, description="inducing inputs M per output, at most the number of distinct inputs; section 8: 50, 100"
    )
    alpha: float | None = Field(None, ge=0, le=1, description="power of EP; default 0.5, with classes 1; section 4: 1")
    steps: PositiveInt = Field(15_000, description="steps of Adam, at most; ours; released program: 6000")
    schedule: Literal["cosine", "constant"] = Field(
        "cosine",
        description="step sizes: decreasing to 0 along a cosine, or constant; ours; released program: constant",
        json_schema_extra={NEUTRAL: "constant"},
    )
    start: Literal["random", "fitc"] = Field(
        "fitc",
        description="initial parameters: random factors, or, in regression, those of sparse Gaussian processes, layer "
        "by layer; ours; released program: random",
        json_schema_extra={NEUTRAL: "random"},
    )
    starts: PositiveInt = Field(
        1,
        description="number of random starts; if several, each is trained for a tenth of the steps, and then that of "
        "lowest energy for all; ours",
        json_schema_extra={NEUTRAL: 1},
    )
    training: Literal["own", "released program"] = Field(
        "own",
        description="released program: alpha, steps, schedule, start and learning_rate have its values",
        json_schema_extra={NEUTRAL: "own"},
    )
    plateau: PositiveInt | None = Field(
        None,
        description="stop if the mean energy of this many steps is not below that of as many before; by default never",
    )
    batch_size: PositiveInt = Field(50, description="data points per step, at most; released program: 50")
    learning_rate: PositiveFloat | None = Field(
        None,
        description="first step size of Adam; null: 0.002 from sparse processes, 0.005 from random factors; released "
        "program: 0.005, section 8.1: 0.001",
    )
    shared: bool = Field(
        True,
        description="one set of hyperparameters per layer, not one per output; released program: yes, section 8.1: no",
    )
    propagation: Literal["diagonal", "full"] = Field(
        "diagonal",
        description="covariances of the outputs of later layers: ignored (diagonal) or included (full, appendix G); "
        "section 5: diagonal",
    )
    optimizer: Literal["energy", "sep"] = Field(
        "energy", description="minimise the energy, or match moments by stochastic EP (appendix C); section 4.2: energy"
    )
    site_rate: float = Field(
        SITE_RATE,
        gt=0,
        le=1,
        description="for optimizer: sep, the fraction of a new factor in each step of the tied one; ours",
    )
    draws: PositiveInt = Field(
        50,
        description="Monte Carlo draws per step for more than two classes (appendix F), else unused; ours",
    )
    prediction: Literal["moments", "sampling"] = Field(
        "moments",
        description="match moments layer by layer, or sample through the hidden layers; section 7: moments",
    )
    samples: PositiveInt = Field(SAMPLES, description="samples through the layers for prediction: sampling; ours")

    @model_validator(mode="after")
    def _released(self) -> Config:
        """Set the options of the released program."""
        for name, value in RELEASED.items() if self.training == "released program" else ():
            if getattr(self, name) not in {value, type(self).model_fields[name].default}:
                raise ValueError(f"training: released program has {name}: {value}; leave one of them out")
            self.__dict__[name] = value  # the model is frozen
        return self

    @model_validator(mode="after")
    def _possible(self) -> Config:
        if self.optimizer == "sep" and self.alpha != 1.0:
            raise ValueError(f"optimizer: sep requires alpha: 1, found {self.alpha}")
        if self.optimizer == "sep" and self.propagation == "full":
            raise ValueError("optimizer: sep requires propagation: diagonal")
        if self.optimizer == "energy" and self.site_rate != SITE_RATE:
            raise ValueError("site_rate requires optimizer: sep")
        if self.prediction == "moments" and self.samples != SAMPLES:
            raise ValueError("samples requires prediction: sampling")
        return self


class State(NamedTuple):
    """The fitted network, standardised units."""

    structure: Structure
    likelihood: Likelihood
    propagation: Literal["diagonal", "full"]
    theta: Array  # (P,) as in ``layout``
    samples: int  # through the layers per prediction; 0 for matched moments
    log_evidence: float  # minus the energy of all data, nats
    n_iterations: int  # steps of Adam
    converged: bool | None  # None without a criterion

    @property
    def hyperparameters(self) -> dict[str, Array]:
        """Lengthscales (G, D_in), magnitudes (variances) and noise standard deviations (G,) per layer, standardised."""
        found: dict[str, Array] = {}
        for index, layer in enumerate(layers(self.structure, self.theta), start=1):
            found |= {
                f"lengthscale_{index}": np.exp(layer.log_lengthscales),
                f"magnitude_{index}": np.exp(2.0 * layer.log_magnitude),
                f"noise_deviation_{index}": np.exp(layer.log_noise),
            }
        return found


def fit(train: Rows, config: Config, rng: np.random.Generator) -> tuple[State, dict[str, list[float]]]:
    """Fit to standardised data X (n, d), y (n,) or, with ``train.classes``, class indices.

    Returns the state and a trace with one value per epoch, of which the last may be incomplete: ``objective`` (the
    energy, mean over the steps, nats per data point), in regression ``noise_deviation`` (standard deviation of the last
    layer's noise, standardised) and with ``optimizer: sep`` ``halved_steps`` (number of halved steps).

    Warns with scikit-learn's ConvergenceWarning if the energy still falls, if there is no plateau, or if the
    energy of a classifier is that of the class frequencies, and with a UserWarning if rounding errors of the energy are
    large.

    Raises FloatingPointError, with the step, if the energy, its gradient or a Cholesky factor is not finite.
    """
    X, y = np.array(train.X, dtype=np.float64, order="C"), np.array(train.y, dtype=np.float64)
    likelihood, outputs = likelihood_of(train.classes)
    inducing = centres(X, config.inducing, rng)
    structure = Structure(
        (X.shape[1], *config.hidden, outputs), len(inducing), config.shared, config.optimizer == "sep"
    )
    alpha = (1.0 if train.classes else 0.5) if config.alpha is None else config.alpha
    problem = DGPProblem(structure, likelihood, len(y), alpha, config.propagation)
    with threadpool_limits(1):  # optimisation amplifies rounding errors, which depend on the number of threads
        theta = _best_start(problem, config, X, y, inducing, rng)
        history = _train(problem, config, theta, X, y, rng)
        noise = normal_draws(outputs, rng)
        evidence = log_evidence(problem, theta, X, y, noise)
        error = rounding_error(problem, theta, X, y, rng, noise) / len(y)
    if not np.isfinite(evidence):
        raise FloatingPointError(f"step {history.steps}: the energy of all data is not finite after the last step")
    converged = judge(history, config.plateau)
    if train.classes and evidence / len(y) < _frequencies(train.y) + NO_GAIN:
        converged = False
        warn_unconverged(
            "the energy is not below that of the class frequencies; several starts may find a better optimum"
        )
    if error > SETTLED.limit / 2.0:
        warnings.warn(
            f"rounding errors change the energy by about {error:.2g} nats per data point, as a noise is close to 0; "
            "the log evidence is no more precise than that",
            UserWarning,
            stacklevel=3,
        )
    samples = config.samples if config.prediction == "sampling" else 0
    state = State(structure, likelihood, config.propagation, theta, samples, evidence, history.steps, converged)
    return state, history.trace


def _best_start(
    problem: DGPProblem, config: Config, X: Array, y: Array, inducing: Array, rng: np.random.Generator
) -> Array:
    """Return initial parameters (P,); of several starts, those of lowest energy after a tenth of the steps."""
    if config.starts == 1:
        return _initial(problem, config, X, y, inducing, rng)
    noise, screening = normal_draws(problem.structure.dims[-1], rng), max(config.steps // 10, 1)
    found = []
    for _ in range(config.starts):
        theta = _initial(problem, config, X, y, inducing, rng)
        _train(problem, config.model_copy(update={"steps": screening}), theta, X, y, rng)
        found.append((log_evidence(problem, theta, X, y, noise), theta))
    return max(found, key=lambda start: start[0])[1]


def _initial(
    problem: DGPProblem, config: Config, X: Array, y: Array, inducing: Array, rng: np.random.Generator
) -> Array:
    """Return the initial parameters (P,). Classifiers start from random factors."""
    if _from_sparse(config, problem.likelihood):
        return fitc_start.start(problem.structure, X, y, inducing, problem.alpha, rng)
    return initialisation.start(problem.structure, X, inducing, rng)


def _from_sparse(config: Config, likelihood: Likelihood) -> bool:
    return config.start == "fitc" and likelihood == "gaussian"


def _frequencies(y: Array) -> float:
    """Return the mean log-likelihood of the class frequencies of labels y (n,)."""
    counts = np.unique(y, return_counts=True)[1]
    return float(counts @ np.log(counts / len(y))) / len(y)


def _train(
    problem: DGPProblem, config: Config, theta: Array, X: Array, y: Array, rng: np.random.Generator
) -> TrainingHistory:
    """Optimise the parameters theta (P,) in place."""
    structure, regression = problem.structure, problem.likelihood == "gaussian"
    rate = config.learning_rate or (FITC_RATE if _from_sparse(config, problem.likelihood) else RANDOM_RATE)
    schedule = AdamSchedule(config.steps, config.batch_size, rate, config.plateau, config.schedule == "cosine")
    noise = layers(structure, theta)[-1].log_noise
    draws = config.draws if problem.likelihood == "softmax" else 0, structure.dims[-1]
    evaluate = moment_matcher(problem, theta, config.site_rate) if structure.whitened else evaluator(problem)

    def monitor() -> dict[str, float]:
        return ({"noise_deviation": float(np.exp(noise[0]))} if regression else {}) | evaluate.diagnostics()

    return run(evaluate, theta, X, targets(problem, y), schedule, draws, rng, monitor)


def likelihood_of(classes: int) -> tuple[Likelihood, int]:
    """Return likelihood and number of outputs for a number of classes, 0 for regression."""
    if classes == 0:
        return "gaussian", 1
    return ("probit", 1) if classes == 2 else ("softmax", classes)


def predict(state: State, X: Array, rng: np.random.Generator) -> Predictive | ClassProbabilities:
    """Return predictive distributions at inputs X (n, d), standardised units, noise included.

    Regression gives Gaussians, or mixtures with one Gaussian per sample. Classification gives probabilities, computed
    from quasi-random draws for more than two classes.
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
    """Return means (S, N, C) and variances (S, N, C) or covariances (S, N, C, C) of the last layer, without noise."""
    if state.samples:
        return sampled_moments(state.structure, state.theta, X, state.samples, rng)
    mean, variance = _matched(state, X)
    return mean[None], variance[None]


def _matched(state: State, X: Array) -> tuple[Array, Array]:
    """Return means (N, C) and variances (N, C) or covariances (N, C, C) of the last layer by moment matching."""
    propagate = joint_moments if state.propagation == "full" else moments
    return propagate(state.structure, state.theta, X)[-1]


def latent(state: State, X: Array) -> tuple[Array, Array]:
    """Return means and variances (n,) of the last layer's f at inputs X (n, d), standardised units, by moment matching.

    Raises ValueError for more than two classes, which have several latent functions.
    """
    if state.structure.dims[-1] > 1:
        raise ValueError(f"a single latent function is required, found {state.structure.dims[-1]}, one per class")
    mean, variance = _matched(state, X)
    return mean[:, 0], variance.reshape(len(X))


def _seconds(config: Config, n: int, d: int) -> float:
    """Estimate the time of a fit on one core: M^3 per output, M^2 per data point and output of later layers."""
    M = min(config.inducing, n)
    outputs, later = sum(config.hidden) + 1, (sum(config.hidden[1:]) + 1 if config.hidden else 0)
    step = (
        2e-5
        + outputs * (2e-5 + 5e-10 * M**3 + 3e-9 * M * config.batch_size * d)
        + later * 1.3e-9 * M**2 * config.batch_size
    )
    steps = config.steps * (1.0 + 0.1 * config.starts if config.starts > 1 else 1.0)
    training = steps * step * (2.2 if config.optimizer == "sep" else 1.6)
    search = 3e-4 + min(n, fitc_start.MAX_ROWS) * M * (1e-8 + 1.2e-9 * d + 2.5e-10 * M)  # as in ``sgp``
    starts = len(config.hidden) + 1 if config.start == "fitc" else 0
    return training + starts * 1.6 * fitc_start.SEARCH_STEPS * search


def _published(config: Config) -> tuple[str, ...]:
    """Return the published columns that match a configuration."""
    names = {(): "GP", (1,): "DGP-1", (2,): "DGP-2", (3,): "DGP-3"}
    as_published = config.alpha == 1.0 and (config.optimizer, config.propagation, config.prediction) == (
        "energy", "diagonal", "moments",
    )  # fmt: skip
    if config.hidden not in names or not as_published:
        return ()
    return (f"{names[config.hidden]}-{config.inducing}", names[config.hidden])


def _version(config: Config) -> int:
    """Return 1 for the settings of the released program, whose numbers version 2 did not change."""
    return 2 if config.schedule == "cosine" or config.start == "fitc" else 1


METHOD = Method(
    name="dgp_ep",
    version=2,
    version_of=_version,
    title="Deep Gaussian process by approximate EP",
    paper="Bui et al. (2015)",
    style=("deep GP", "o"),
    density="Gaussian with matched moments, or mixture over samples",
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
