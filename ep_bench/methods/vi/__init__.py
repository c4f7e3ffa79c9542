"""Variational inference by reparameterisation: VI(KW) of Bui et al. (2015, section 8), after Kingma and Welling (2014).

Model: a network of rectified linear units with Gaussian noise and weights w ~ N(0, 1). A factorised Gaussian q(w)
maximises the variational bound. Its expected log-likelihood is estimated on minibatches from draws w = m + s e; the
divergence of q from the prior has a closed form. The noise variance is optimised with the bound. Predictions are
mixtures over weight samples.

Options beyond the paper:

- Local reparameterisation (Kingma, Salimans and Welling 2015) draws the inputs of the units instead of the weights.
- ``noise: heteroscedastic`` has a second output for the log variance of the noise, as MCVI of Wu et al. (2019).
- ``covariance: full`` has a Gaussian with all covariances instead of a factorised one.
- ``prior: empirical`` has prior variances that maximise the bound at each step, with the inverse-gamma prior of Wu et
  al. (2019). Version 1 of the method had no inverse-gamma prior, and the prior variances could fall to 0.

Modules: ``models.variational_bound`` has the bound of a minibatch, its gradient and the table of symbols;
``local_reparameterisation`` the same by local reparameterisation, ``heteroscedastic`` with a noise head, and
``full_covariance`` with a full covariance;
``models.empirical_prior`` the prior variances; ``training`` the compiled epochs.

Deviation: the paper does not state optimiser, number of steps or starting point. This implementation uses Adam, with a
step size that falls to 0 over the second half of the epochs. Initial means are N(0, 2 / n_in) (output: N(0, 1 / n_in)),
the initial noise variance is 1, and initial standard deviations are 0.005. With 0.05 instead, the bound on energy is
0.9 nats per data point worse even after 1,000 epochs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, PositiveFloat, PositiveInt, model_validator

from ep_bench.methods.vi import full_covariance, heteroscedastic, local_reparameterisation
from ep_bench.methods.vi.training import full_epoch, local_epoch, weights_epoch
from ep_bench.models import meanfield, mlp, variational_bound
from ep_bench.models.empirical_prior import prior_groups
from ep_bench.numerics.adam import moments
from ep_bench.numerics.minibatch import run_epochs
from ep_bench.numerics.normal_rng import stream
from ep_bench.options import NEUTRAL
from ep_bench.predictions import Predictive
from ep_bench.types import Array, Indices, Method, Rows

INITIAL_STD = 0.005
WORSE = 1.0  # nats per data point by which the objective of a fit may rise
LAST = 20  # epochs at the end of a fit
ONE_LAYER = {(50,), (100,)}
MCVI, HOMOSCEDASTIC = ("MCVI-1 (mean-field reparam S=10)",), ("hoDVI-1 (homoscedastic)",)  # columns of Wu et al. (2019)


class Config(BaseModel):
    """Options of variational inference by reparameterisation."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    hidden: tuple[PositiveInt, ...] = Field(
        (50,), description="units per hidden layer; Bui et al., section 8: 50, and 100 for year and protein"
    )
    epochs: PositiveInt = Field(1000, description="passes over the training data; ours")
    batch_size: PositiveInt = Field(32, description="data points per step; ours")
    samples: PositiveInt = Field(10, description="weight samples per step; ours")
    test_samples: PositiveInt = Field(100, description="weight samples per prediction; ours")
    learning_rate: PositiveFloat = Field(0.01, description="step size of Adam in the first half of the epochs; ours")
    prior: Literal["fixed", "empirical"] = Field(
        "fixed",
        description="prior variance of the weights: fixed (Bui et al.), or by empirical Bayes (Wu et al. 2019)",
    )
    prior_variance: PositiveFloat = Field(
        1.0, description="variance of the weights if the prior is fixed; Bui et al., section 8: 1"
    )
    noise_variance: PositiveFloat | None = Field(
        None, description="fixed noise variance, in squared units of the standardised target; by default learned"
    )
    noise: Literal["homoscedastic", "heteroscedastic"] = Field(
        "homoscedastic",
        json_schema_extra={NEUTRAL: "homoscedastic"},
        description="one noise variance (Bui et al.), or one per input by a second output (Wu et al. 2019)",
    )
    local_reparameterization: bool = Field(
        False, description="draw the inputs of the units instead of the weights; slower per step; Bui et al.: no"
    )
    covariance: Literal["diagonal", "full"] = Field(
        "diagonal",
        json_schema_extra={NEUTRAL: "diagonal"},
        description="covariance of the weights in q: none (Bui et al.), or all; a step takes time and memory "
        "proportional to the square of the number of weights",
    )
    restarts: PositiveInt = Field(
        1,
        json_schema_extra={NEUTRAL: 1},
        description="number of fits from different initial weights, of which the one that ends at the lowest objective "
        "is kept; ours",
    )

    @model_validator(mode="after")
    def _possible(self) -> Config:
        if self.noise == "heteroscedastic" and self.noise_variance is not None:
            raise ValueError("noise: heteroscedastic learns the noise variance; leave noise_variance out")
        if self.noise == "heteroscedastic" and self.local_reparameterization:
            raise ValueError("noise: heteroscedastic draws the weights; leave local_reparameterization out")
        if self.covariance == "full" and (
            self.noise == "heteroscedastic" or self.local_reparameterization or self.prior == "empirical"
        ):
            raise ValueError(
                "covariance: full has one noise variance and a fixed prior, and draws the weights; leave noise, prior "
                "and local_reparameterization out"
            )
        if self.prior == "empirical" and self.prior_variance != 1.0:
            raise ValueError("prior: empirical determines the prior variance; leave prior_variance out")
        return self


class State(NamedTuple):
    """Posterior of the weights, standardised units; the H weights of a noise head follow the P of the network."""

    layers: Array  # (L, 3) as in ``models.mlp``
    mean: Array  # (P + H,)
    std: Array  # (P + H,) standard deviations
    factor: Array  # std, or the Cholesky factor (P, P) of a full covariance
    prior_variance: Array  # (P + H,) of the last step
    noise_variance: float  # multiplied by the exponential of the noise head, if there is one
    test_samples: int
    start_evidences: tuple[float, ...]  # bound at the end of each restart, nats; -inf if it failed

    @property
    def hyperparameters(self) -> dict[str, float | Array]:
        """Values by name, standardised units; ``prior_variance`` (P + H,) has one value per weight."""
        return {"noise_variance": self.noise_variance, "prior_variance": self.prior_variance}


def fit(train: Rows, config: Config, rng: np.random.Generator) -> tuple[State, dict[str, list[float]]]:
    """Fit to standardised data X (n, d), y (n,).

    Returns the state and a trace with one value per epoch: ``objective`` (the negative bound, mean over minibatches,
    nats per data point), ``noise_deviation`` (standard deviation, standardised; with a noise head the root mean square
    over the training points, at the mean weights) and, if the prior is empirical, ``prior_variance`` (mean over the
    weights). With an empirical prior, the objective contains its log density. With several restarts, the trace is that
    of the fit that is kept.

    Raises FloatingPointError if, in every restart, the objective or a parameter is not finite after an epoch, or the
    fit has diverged (``mlp.refuse_divergence``, ``refuse_divergence``).
    """
    fits, failure = {}, FloatingPointError()
    for number in range(config.restarts):
        try:
            fits[number] = _single_fit(train, config, rng)
        except FloatingPointError as error:
            failure = error
    if not fits:
        raise failure
    bounds = {number: -len(train.y) * end_of(trace["objective"]) for number, (_, trace) in fits.items()}
    state, trace = fits[max(bounds, key=lambda number: bounds[number])]
    return state._replace(start_evidences=tuple(bounds.get(one, -np.inf) for one in range(config.restarts))), trace


def _single_fit(train: Rows, config: Config, rng: np.random.Generator) -> tuple[State, dict[str, list[float]]]:
    """Return a fit from random initial weights, and its trace."""
    X, y = np.array(train.X, dtype=np.float64, order="C"), np.array(train.y, dtype=np.float64)
    layers = mlp.layout(X.shape[1], config.hidden)
    head = heteroscedastic.head_size(layers) if config.noise == "heteroscedastic" else 0
    theta, batch_size = initial_parameters(config, layers, head, rng), min(config.batch_size, len(y))
    size, groups = len(theta) // 2, prior_groups(layers, head)
    prior_variance = np.full(size, config.prior_variance)
    epoch_kernel, workspace, extra = _epoch_kernel(config, layers, batch_size, head)
    state, gradient, words = moments(len(theta)), np.empty_like(theta), stream(rng)
    empirical, learn_noise = config.prior == "empirical", config.noise_variance is None

    def run_epoch(epoch: int, order: Indices) -> float:
        negative_bound = epoch_kernel(
            X, y, order, batch_size, theta, state, gradient, layers, workspace, words, prior_variance, groups,
            empirical, learn_noise, _rate(config, epoch), extra,
        )  # fmt: skip
        return float(negative_bound / len(y))

    def monitor() -> dict[str, float]:
        noise = np.exp(theta[-1])
        if head:
            noise *= np.exp(heteroscedastic.evaluate(X, theta[None, :size], layers)[1]).mean()
        found = {"noise_deviation": float(np.sqrt(noise))}
        return found | ({"prior_variance": float(prior_variance.mean())} if empirical else {})

    trace = run_epochs(range(config.epochs), run_epoch, theta, len(y), rng, monitor)
    mean, std = theta[:size].copy(), np.exp(theta[size:-1])
    factor = std
    if config.covariance == "full":
        factor = full_covariance.cholesky_factor(std, extra.values)
        std = np.linalg.norm(factor, axis=1)
    mlp.refuse_divergence(mean[: size - head], layers, X, y)
    refuse_divergence(trace["objective"])
    noise_variance = float(np.exp(theta[-1]))
    return State(layers, mean, std, factor, prior_variance, noise_variance, config.test_samples, ()), trace


def end_of(objective: Sequence[float]) -> float:
    """Return the median of the last epochs, since a single draw can dominate the objective of one epoch."""
    return float(np.median(objective[-min(LAST, 1 + len(objective) // 10) :]))


def refuse_divergence(objective: Sequence[float]) -> None:
    """Raise FloatingPointError if the objective, nats per data point, ends more than 1 above its lowest value.

    Residuals of a diverged fit can look normal: only the noise variance or the spread of the weights has diverged.
    """
    lowest, last = min(objective), end_of(objective)
    if last > lowest + WORSE:
        raise FloatingPointError(
            f"diverged: the objective ends at {last:.3g} nats per data point, above {lowest:.3g} of an earlier epoch; "
            "a smaller learning_rate may help"
        )


def predict(state: State, X: Array, rng: np.random.Generator) -> Predictive:
    """Return mixtures over weight samples at inputs X (n, d), standardised units, noise included."""
    if state.mean.size == mlp.count(state.layers):
        outputs = meanfield.sample_networks(state.mean, state.factor, state.test_samples, state.layers, X, rng)
        return Predictive.equal_mixture(outputs, state.noise_variance)
    W = state.mean + state.std * rng.standard_normal((state.test_samples, state.mean.size))
    means, logs = heteroscedastic.evaluate(X, W, state.layers)
    return Predictive(np.full(len(W), 1.0 / len(W)), means, state.noise_variance * np.exp(logs))


def initial_parameters(config: Config, layers: Array, head: int, rng: np.random.Generator) -> Array:
    """Return means, log standard deviations and log noise variance (2 (P + H) + 1,); the means of the head are 0."""
    means = np.concatenate([mlp.initial_weights(layers, rng), np.zeros(head)])
    return np.concatenate([means, np.full(len(means), np.log(INITIAL_STD)), [np.log(config.noise_variance or 1.0)]])


def _epoch_kernel(config: Config, layers: Array, batch_size: int, head: int) -> tuple[Any, Any, Any]:
    """Return the kernel of an epoch, its workspace and its last argument."""
    size, units, widest = mlp.count(layers), mlp.units(layers), mlp.widest(layers)
    if config.local_reparameterization:
        copies = config.samples * batch_size
        return (
            local_epoch,
            local_reparameterisation.workspace(copies, size, units + 1, widest, int(layers[0, 1])),
            config.samples,
        )
    work = variational_bound.workspace(config.samples, batch_size, size, units, widest, head)
    if config.covariance == "full":
        return full_epoch, work, full_covariance.correlations(config.samples, size)
    return weights_epoch, work, True if head else None


def _rate(config: Config, epoch: int) -> float:
    """Return the step size of an epoch: constant for the first half, then decreasing linearly to 0."""
    return config.learning_rate * min(1.0, 2.0 * (1.0 - epoch / config.epochs))


def _seconds(config: Config, n: int, d: int) -> float:
    """Estimate the time of a fit on one core: draws scale with samples x weights, products also with data points."""
    weights = mlp.count(mlp.layout(d, config.hidden))
    step = config.samples * (7e-9 * weights + config.batch_size * (0.22e-9 * weights + 1.5e-9 * sum(config.hidden)))
    slower = 4.0 if config.local_reparameterization else 1.0
    if config.noise == "heteroscedastic":
        slower = 0.45
    if config.covariance == "full":
        step += 3e-10 * config.samples * weights * weights
    return config.restarts * slower * config.epochs * n / config.batch_size * (step + 2e-8 * weights + 5e-6)


def _published(config: Config) -> tuple[str, ...]:
    """Return the published columns that match a configuration: by its layers, noise and prior."""
    if config.noise_variance is not None or config.epochs < Config().epochs or config.covariance == "full":
        return ()
    if config.noise == "heteroscedastic":
        return MCVI if config.hidden in ONE_LAYER and config.prior == "empirical" else ()
    as_published = config.prior == "fixed" and config.prior_variance == 1.0 and not config.local_reparameterization
    if config.hidden in ONE_LAYER:
        return ("VI(KW)-1", *HOMOSCEDASTIC) if as_published else HOMOSCEDASTIC
    return ("VI(KW)-2",) if as_published and config.hidden in {(50, 50), (100, 100)} else ()


def _version(config: Config) -> int:
    """Return the version that last changed the numbers: the empirical prior has changed, the fixed one has not."""
    return 2 if config.prior == "empirical" else 1


METHOD = Method(
    name="vi",
    equality="stable",
    version=2,
    version_of=_version,
    title="Variational inference by reparameterisation",
    paper="Bui et al. (2015), after Kingma and Welling (2014)",
    style=("variational", "o"),
    bibtex="""
    @inproceedings{kingma2014, author = {Kingma, Diederik P. and Welling, Max},
      title = {{Auto-Encoding Variational Bayes}}, booktitle = {International Conference on Learning
        Representations},
      year = {2014}}""",
    density="mixture over weights",
    tasks=("regression",),
    config=Config,
    fit=fit,
    predict=predict,
    seconds=_seconds,
    warmup={"epochs": 1, "samples": 2, "test_samples": 5},
    published=_published,
    space={
        "learning_rate": {"log": [1e-3, 3e-2]},
        "prior_variance": {"log": [0.03, 3.0]},
    },
)
