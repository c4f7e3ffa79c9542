"""Black-box alpha: J. M. Hernandez-Lobato, Y. Li, M. Rowland, D. Hernandez-Lobato, T. D. Bui, R. E. Turner, ICML 2016.

Model: a network of rectified linear units with Gaussian noise and weights w ~ N(0, v0). The posterior is approximated
by a factorised Gaussian q(w), proportional to prior(w) f(w)^N: one factor f, tied over the N data points. Its
parameters minimise the energy of power expectation propagation with this factor, (3) of the supplement with one lambda
for all cavities,

    log Z_prior - log Z_q - (1 / alpha) sum_n log E_q[(p(y_n | w) / f(w))^alpha].

The expectations are estimated from K draws of the weights by reparameterisation, the same draws for all data points of
a minibatch. For alpha -> 0 the energy is the variational bound; alpha = 1 resembles expectation propagation; negative
alpha is allowed. The noise variance is learned with q by default. Predictions are mixtures over weight samples.

Without hidden layers the model is linear in the inputs, without a constant. Its energy is exact, and its minimum is the
stationary point (5). The covariance of q is diagonal or full, and predictions are Gaussian. The options samples,
test_samples, epochs, batch_size, learning_rate and schedule are then not used.

Modules: ``energy`` has the energy of a minibatch, its gradient and the table of symbols; ``training`` the compiled
epochs; ``linear`` the fit of the linear model, with its energy in ``linear_energy`` and its search in
``linear_newton``.

The authors' released program decides where the supplement is silent. v = v0 sigmoid(rho); rho starts at -10, the means
at 0.1 N(0, 1) for any number of inputs, and the log noise variance at 0. Each step of Adam draws new ``samples``; its
minibatches have 32 data points.

Deviation: 5,000 weight samples per prediction, where the program has 50. Few samples underestimate the density at test
points that few of them explain: the log-likelihoods of the program have this bias.
Deviation: step sizes start at 0.002 and decrease to 0 along a cosine. That of the log noise variance is ten times as
large. The program's are 0.001 for all parameters. Its log noise variance moves by at most 0.001 per step, and on small
data sets the steps are too few to reach the noise of the data.
The fit ends before the energy of the weights has converged, as in the program. Longer fits, or steps of 0.03, have a
lower energy, but often lower densities of validation points: the prior then removes units that the data need.
With ``schedule: released program``, ``learning_rate: 0.001`` and ``test_samples: 50``, the method is the program.
"""

from __future__ import annotations

import math
import warnings
from typing import Literal, NamedTuple, Protocol

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, PositiveFloat, PositiveInt, model_validator

from ep_bench.methods.bb_alpha.energy import workspace
from ep_bench.methods.bb_alpha.linear import fit_linear
from ep_bench.methods.bb_alpha.training import train_epoch
from ep_bench.models import meanfield, mlp
from ep_bench.numerics.adam import moments
from ep_bench.numerics.minibatch import run_epochs
from ep_bench.numerics.normal_rng import stream
from ep_bench.options import NEUTRAL
from ep_bench.predictions import Predictive
from ep_bench.types import Array, Indices, Method, Rows

INITIAL_RHO, INITIAL_SCALE = -10.0, 0.1  # v = v0 sigmoid(rho); means are INITIAL_SCALE N(0, 1)
NOISE_RATE = 10.0  # step size of the log noise variance with the cosine schedule, relative to the others
STEADY = (
    0.5  # change relative to the sum of step sizes above which the noise moves in one direction: by Adam, at most 1
)
LARGER_RATE = 0.03  # with alpha near 0, 500 epochs then reach the bound of ``vi`` (benchmarks/bb_alpha_rates.py)
SETTLED = 0.5  # change of the log noise variance in the second half of the fit without warning: about 0.06 nats


class Config(BaseModel):
    """Options of black-box alpha."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    hidden: tuple[PositiveInt, ...] = Field(
        (100,), description="units per hidden layer, [] for the linear model; released program: 100"
    )
    alpha: FiniteFloat = Field(
        0.5, description="power; 0 is the variational bound, 1 resembles EP; released program: 0.5"
    )
    samples: PositiveInt = Field(50, description="weight samples K per step; released program: 50")
    test_samples: PositiveInt = Field(5000, description="weight samples per prediction; ours; released program: 50")
    epochs: PositiveInt = Field(500, description="passes over the training data; released program: 500")
    batch_size: PositiveInt = Field(32, description="data points per step; released program: 32")
    learning_rate: PositiveFloat = Field(
        2e-3, description="first step size of Adam; chosen on validation points; released program: 0.001"
    )
    schedule: Literal["cosine", "released program"] = Field(
        "cosine",
        description="step sizes: decreasing to 0 along a cosine, ten times as large for the log noise variance; "
        "released program: constant, the same for all parameters",
        json_schema_extra={NEUTRAL: "released program"},
    )
    prior_variance: PositiveFloat = Field(
        1.0, description="prior variance v0 of the weights; supplement, sections B and C: 1"
    )
    noise_variance: PositiveFloat | None = Field(
        None, description="fixed noise variance, in squared units of the standardised target; by default learned"
    )
    covariance: Literal["diagonal", "full"] = Field(
        "diagonal", description="covariance of q; full only without hidden layers (supplement, section B)"
    )

    @model_validator(mode="after")
    def _possible(self) -> Config:
        if self.covariance == "full" and self.hidden:
            raise ValueError("covariance: full requires a model without hidden layers, hidden: []")
        return self


class Posterior(Protocol):
    """A fitted posterior: that of a network (``State``) or of the linear model (``linear.LinearPosterior``)."""

    @property
    def noise_variance(self) -> float:
        """Noise variance, standardised units."""
        ...

    def predict(self, X: Array, rng: np.random.Generator) -> Predictive:
        """Return predictive distributions at inputs X (n, d), standardised units, noise included."""
        ...


class State(NamedTuple):
    """Posterior of the weights of a network, standardised units."""

    layers: Array  # (L, 3) as in ``models.mlp``
    mean: Array  # (P,)
    std: Array  # (P,) standard deviations
    noise_variance: float
    test_samples: int
    converged: bool | None  # False if the noise variance has not settled, else None: the energy is not judged

    @property
    def hyperparameters(self) -> dict[str, float | Array]:
        """Values by name, standardised units."""
        return {"noise_variance": self.noise_variance}

    def predict(self, X: Array, rng: np.random.Generator) -> Predictive:
        """Return mixtures over weight samples at inputs X (n, d), standardised units, noise included."""
        outputs = meanfield.sample_networks(self.mean, self.std, self.test_samples, self.layers, X, rng)
        return Predictive.equal_mixture(outputs, self.noise_variance)


def fit(train: Rows, config: Config, rng: np.random.Generator) -> tuple[Posterior, dict[str, list[float]]]:
    """Fit to standardised data X (n, d), y (n,).

    Returns the state and a trace. For networks the trace has one value per epoch: ``objective`` (the energy, mean over
    minibatches, nats per data point) and ``noise_deviation`` (standard deviation, standardised). For the linear model
    it has ``objective``, one value per Newton step.

    Warns with scikit-learn's ConvergenceWarning if the noise variance of a network still changes at the end, and with a
    UserWarning if most variances of the weights do.

    Raises FloatingPointError if the objective or a parameter is not finite after an epoch, if the fitted network has
    diverged (``mlp.refuse_divergence``), or if the linear model has no stationary point. Raises ValueError for the
    linear model if alpha >= n.
    """
    return _fit_network(train, config, rng) if config.hidden else _fit_linear(train, config)


def _fit_network(train: Rows, config: Config, rng: np.random.Generator) -> tuple[State, dict[str, list[float]]]:
    X, y = np.array(train.X, dtype=np.float64, order="C"), np.array(train.y, dtype=np.float64)
    layers = mlp.layout(X.shape[1], config.hidden)
    size, batch_size = mlp.count(layers), min(config.batch_size, len(y))
    theta = np.full(2 * size + 1, INITIAL_RHO)
    theta[:size] = INITIAL_SCALE * rng.standard_normal(size)
    theta[-1] = np.log(config.noise_variance or 1.0)
    work = workspace(config.samples, batch_size, size, mlp.units(layers), mlp.widest(layers))
    state, gradient, words = moments(len(theta)), np.empty_like(theta), stream(rng)
    halfway = np.empty(size)  # log-odds of the variances

    def run_epoch(epoch: int, order: Indices) -> float:
        energy = train_epoch(
            X, y, order, batch_size, theta, state, gradient, layers, work, words, config.alpha, config.prior_variance,
            *_rates(config, epoch),
        )  # fmt: skip
        if epoch == _half(config.epochs):
            halfway[:] = theta[size:-1]
        return energy / len(y)

    def monitor() -> dict[str, float]:
        return {"noise_deviation": float(np.exp(0.5 * theta[-1]))}

    trace = run_epochs(range(config.epochs), run_epoch, theta, len(y), rng, monitor)
    std = np.sqrt(config.prior_variance / (1.0 + np.exp(-theta[size:-1])))
    mlp.refuse_divergence(theta[:size], layers, X, y)
    largest, largest_noise = _largest_changes(config, -(-len(y) // batch_size))
    _warn_of_moving_variances(float(np.median(np.abs(theta[size:-1] - halfway))), largest)
    converged = False if _noise_still_changes(trace["noise_deviation"], largest_noise) else None
    return State(layers, theta[:size].copy(), std, float(np.exp(theta[-1])), config.test_samples, converged), trace


def _rates(config: Config, epoch: int) -> tuple[float, float]:
    """Return the step sizes of an epoch: that of the weights, and that of the log noise variance, 0 if it is fixed."""
    cosine = config.schedule == "cosine"
    rate = config.learning_rate * (0.5 * (1.0 + math.cos(math.pi * epoch / config.epochs)) if cosine else 1.0)
    factor = NOISE_RATE if cosine else 1.0
    return rate, factor * rate if config.noise_variance is None else 0.0


def _half(epochs: int) -> int:
    """Return the last epoch of the first half, from 0."""
    return (epochs - 1) // 2


def _largest_changes(config: Config, steps: int) -> tuple[float, float]:
    """Return the sums of step sizes in the second half, with ``steps`` per epoch: of weights and log noise variance."""
    rates = [_rates(config, epoch) for epoch in range(_half(config.epochs) + 1, config.epochs)]
    weights, noise = np.sum(rates, axis=0) if rates else (0.0, 0.0)
    return steps * float(weights), steps * float(noise)


def _warn_of_moving_variances(change: float, largest: float) -> None:
    """Warn if the variances of most weights moved in one direction in the second half: the energy is then far too high.

    ``change`` is the median of their changes, in log-odds, and ``largest`` the sum of their step sizes. This is no
    ConvergenceWarning, since the default ends so, as the program does.
    """
    if change > STEADY * largest:
        warnings.warn(
            "most variances of the weights moved in one direction until the end, so that the energy is above its "
            f"minimum; learning_rate: {LARGER_RATE} comes closer in as many epochs",
            UserWarning,
            stacklevel=5,
        )


def _noise_still_changes(noise_deviations: list[float], largest: float) -> bool:
    """Return whether the log noise variance still changed in the second half of the epochs; warn.

    It did if it changed by more than ``SETTLED``, or in one direction: by more than the fraction ``STEADY`` of
    ``largest``, the sum of its step sizes. ``noise_deviations`` are standard deviations after each epoch.
    """
    first, last = noise_deviations[_half(len(noise_deviations))], noise_deviations[-1]
    change = 2.0 * math.log(last / first)
    limit = min(SETTLED, STEADY * largest)
    if abs(change) <= limit:
        return False
    from ep_bench.errors import ConvergenceWarning

    words = "" if limit == SETTLED else f", in almost one direction (the step sizes sum to {largest:.2g})"
    warnings.warn(
        f"the log noise variance changed by {change:+.2f} over the second half of the epochs{words}; "
        "more epochs or larger steps may help",
        ConvergenceWarning,
        stacklevel=4,
    )
    return True


def _fit_linear(train: Rows, config: Config) -> tuple[Posterior, dict[str, list[float]]]:
    posterior = fit_linear(
        train.X, train.y, alpha=config.alpha, prior_variance=config.prior_variance,
        noise_variance=config.noise_variance, covariance=config.covariance,
    )  # fmt: skip
    return posterior, {"objective": [value / len(train.y) for value in posterior.trace]}


def predict(state: Posterior, X: Array, rng: np.random.Generator) -> Predictive:
    """Return predictive distributions at inputs X (n, d), standardised units, noise included.

    Networks give mixtures over weight samples, the linear model Gaussians.
    """
    return state.predict(X, rng)


def _seconds(config: Config, n: int, d: int) -> float:
    """Estimate the time of a fit on one core: draws scale with samples x weights, products also with data points."""
    if not config.hidden:
        return 1e-6 * n * d * d
    weights = mlp.count(mlp.layout(d, config.hidden))
    step = config.samples * (1.7e-9 * weights + config.batch_size * (0.053e-9 * weights + 0.36e-9 * sum(config.hidden)))
    return config.epochs * n / config.batch_size * (step + 7e-6)


def _version(config: Config) -> int:
    """Return 1 for the linear model and for the released program, whose numbers version 2 did not change."""
    return 2 if config.hidden and config.schedule == "cosine" else 1


METHOD = Method(
    name="bb_alpha",
    equality="stable",
    version=2,
    version_of=_version,
    title="Black-box alpha",
    paper="Hernandez-Lobato et al. (2016)",
    style=("EP", "s"),
    density="mixture over weights",
    tasks=("regression",),
    config=Config,
    fit=fit,
    predict=predict,
    seconds=_seconds,
    warmup={"epochs": 1, "samples": 4, "test_samples": 5},
    space={"alpha": {"choice": [1e-6, 0.25, 0.5, 0.75, 1.0]}, "learning_rate": {"log": [3e-4, 1e-2]}},
)
