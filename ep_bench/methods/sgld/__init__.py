"""Stochastic gradient Langevin dynamics: Welling and Teh (2011), as the SGLD of Bui et al. (2015, section 8).

The model is a network of rectified linear units with Gaussian noise, weights w ~ N(0, 1) and noise variance
log(1 + exp(kappa)), where kappa has a broad Gaussian prior. Steps on minibatches of B of the N data points sample the
weights and kappa, theta = (w, kappa), jointly:

    theta <- theta + eps_t / 2 (grad log p(theta) + N / B sum_b grad log p(y_b | theta)) + N(0, eps_t)
    eps_t = a (b + t)^-gamma

The weights and kappa have separate values of a. After a burn-in, the samples at S evenly spaced steps are kept. The
predictive distribution is the mixture of N(f_s, sigma2_s), weighted by eps_t as in Welling and Teh (section 4.2). No
step is rejected, as in their paper. The samples therefore have errors of the order of eps_t from the discretisation,
and errors from the noise of the minibatches.

The options for step sizes refer to t = 0 and are multiplied by N, so that one value serves data sets of all sizes:
eps_0 = ``step_size`` / N. The last step has ``final_step`` times the size of the first one; this determines b.

``preconditioner: rmsprop`` is the method of Li, Chen, Carlson and Carin (2016). The step size of weight i is eps_t G_i,
with G = 1 / (lambda + sqrt(V)) and V a running mean of the squared gradient per data point. G is adapted in the burn-in
and constant afterwards. Kappa has its own step size and no preconditioner.

Module ``sampling``: log joint density, gradient, steps, and the table of symbols.

Deviation: Bui et al. tuned both step sizes by hand for each data set. They do not state the schedule, minibatch size,
number of steps, initial weights or prior of kappa. ``tune`` searches both step sizes on validation data points; the
other values are ours. The initial weights are those of the optimised networks (``mlp.initial_weights``), with
sigma2 = 1. From a draw of the prior, 30,000 steps reach a validation RMSE of 4.6 on boston instead of 3.5, because such
steps hardly move the weights that the data do not determine. For the same reason the chain rarely mixes: the samples
are narrower than the posterior, and R-hat of predictions between the halves of the chain shows it.
Deviation: Li et al. adapt G until the end and omit the correction term Gamma(theta), the divergence of G. A constant G
has no such term. lambda is 0.1 and the memory of V is 1,000 steps, where they have 1e-5 and 100. With their values, a
weight whose gradient was small when G was last adapted makes very large steps (energy diverged).
"""

from __future__ import annotations

import warnings
from typing import Literal, NamedTuple

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, PositiveFloat, PositiveInt, model_validator

from ep_bench.methods.sgld.sampling import NetworkPrior, StepSizeSchedule, epoch, factor, softplus, workspace
from ep_bench.models import mlp
from ep_bench.numerics import mcmc_diagnostics
from ep_bench.numerics.normal_rng import stream
from ep_bench.predictions import Predictive
from ep_bench.types import Array, Indices, Method, Rows

STEPS = 100_000  # default length of a chain
DRIFT = 0.1  # nats per data point between the halves of the kept epochs: a larger drift is not stationary
MIN_EPOCHS = 20  # minimum number of kept epochs for the test of stationarity
BATCHES = 10  # batch means per half


class Config(BaseModel):
    """Options of stochastic gradient Langevin dynamics."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    hidden: tuple[PositiveInt, ...] = Field(
        (50,), description="units per hidden layer; Bui et al., section 8: 50, and 100 for year and protein"
    )
    epochs: PositiveInt | None = Field(
        None, description="passes over the training data, burn-in included; default: at least 100,000 steps; ours"
    )
    batch_size: PositiveInt = Field(32, description="data points per step; ours")
    step_size: PositiveFloat = Field(
        0.01, description="first step size of the weights, times the number of data points; tuned by hand in the paper"
    )
    noise_step_size: PositiveFloat = Field(
        0.05, description="first step size of kappa, times the number of data points; tuned by hand in the paper"
    )
    final_step: float = Field(0.3, gt=0.0, le=1.0, description="size of the last step, relative to the first; ours")
    decay: float = Field(0.55, gt=0.0, le=1.0, description="gamma of the schedule; Welling and Teh: 0.55")
    burn_in: float = Field(0.5, ge=0.0, lt=1.0, description="fraction of the steps before samples are kept; ours")
    samples: PositiveInt = Field(100, description="maximum number of samples that are kept; ours")
    preconditioner: Literal["none", "rmsprop"] = Field(
        "none", description="none, or that of Li et al. (2016), adapted in the burn-in; Bui et al.: none"
    )
    prior_variance: PositiveFloat = Field(1.0, description="prior variance of the weights; Bui et al., section 8: 1")
    noise_prior_variance: PositiveFloat = Field(
        100.0, description="prior variance of kappa, mean 0; Bui et al., section 8: broad, the value is ours"
    )
    noise_variance: PositiveFloat | None = Field(
        None, description="noise variance, squared units of the standardised target; sampled by default"
    )

    @model_validator(mode="after")
    def _possible(self) -> Config:
        if self.preconditioner != "none" and self.burn_in == 0.0:
            raise ValueError("preconditioner: rmsprop is adapted in the burn-in, so burn_in must be above 0, found 0")
        return self


class State(NamedTuple):
    """Samples of weights and noise variance, standardised units."""

    layers: Array  # (L, 3) as in ``models.mlp``
    weights: Array  # (S, P)
    noise_variances: Array  # (S,)
    mixture: Array  # (S,) weights of the samples, summing to 1
    chain: Indices  # (S,) index of the chain of each sample, 0
    chains: dict[str, Array]  # name -> (1, S): ``noise_deviation`` and ``prediction``, as in ``hmc``
    diagnostics: dict[str, float]  # ``mcmc_diagnostics.measures`` of the kept samples
    converged: bool  # whether the kept epochs are stationary and R-hat of the predictions is below its limit


def fit(train: Rows, config: Config, rng: np.random.Generator) -> tuple[State, dict[str, list[float]]]:
    """Sample weights and noise variance for standardised data X (n, d), y (n,).

    Returns
    -------
    state : the samples
    trace : one value per epoch of ``log_joint_a_row`` (mean over minibatches of the estimated log joint density of
        data, weights and kappa, nats, divided by n), ``noise_deviation`` (standard deviation, standardised) and
        ``step_size`` (eps_t of the weights), the last two at the last step of the epoch

    Raises
    ------
    FloatingPointError
        If an epoch ends with a number that is not finite. Also if the mean squared residual of an epoch after the
        burn-in exceeds 1,000 times the variance of the targets, or 1,000 if that variance is below 1.

    Warns
    -----
    ConvergenceWarning
        If the kept epochs are not stationary (``not_stationary``), or if R-hat between the two halves of the samples
        is too large at the monitored inputs (``numerics.mcmc_diagnostics``).
    """
    X, y = np.array(train.X, dtype=np.float64, order="C"), np.array(train.y, dtype=np.float64)
    layers = mlp.layout(X.shape[1], config.hidden)
    run = _sampled(X, y, layers, config, rng)
    variances = np.array([softplus(kappa) for kappa in run.samples[:, -1].tolist()])
    weights = run.samples[:, :-1].copy()
    chains, found = _monitored(mcmc_diagnostics.monitored_inputs(X, rng), weights, variances, layers)
    kept = slice(int(np.ceil(config.burn_in * len(run.squares))), None)
    reason = not_stationary(np.array(run.trace["log_joint_a_row"][kept]), np.array(run.squares[kept]), y)
    reason = reason or mcmc_diagnostics.unmixed(found, f"{len(weights)} samples of one chain; more epochs may help")
    _warn(reason)
    mixture, chain = run.step_sizes / run.step_sizes.sum(), np.zeros(len(weights), dtype=np.int64)
    return State(layers, weights, variances, mixture, chain, chains, found, not reason), run.trace


class ChainRun(NamedTuple):
    """The samples of a run, and its values per epoch."""

    samples: Array  # (S, P + 1) weights and kappa
    step_sizes: Array  # (S,) relative to the first one
    trace: dict[str, list[float]]
    squares: list[float]  # mean squared residuals


def _sampled(X: Array, y: Array, layers: Indices, config: Config, rng: np.random.Generator) -> ChainRun:
    """Run the chain on data X (n, d), y (n,). Raises FloatingPointError as ``fit`` does."""
    rows = min(config.batch_size, len(y))
    steps, epochs = -(-len(y) // rows), passes(config, len(y))
    due = _sample_steps(config, steps * epochs)
    schedule, prior = _schedule(config, len(y), steps * epochs), _prior(config)
    start = config.noise_variance or 1.0
    theta = np.append(mlp.initial_weights(layers, rng), start + np.log(-np.expm1(-start)))
    samples, stored = np.empty((len(due), len(theta))), 0
    work, words = workspace(layers, rows), stream(rng)
    trace: dict[str, list[float]] = {"log_joint_a_row": [], "noise_deviation": [], "step_size": []}
    squares = []
    for number in range(epochs):
        energy, square, stored = epoch(
            X, y, rng.permutation(len(y)), number * steps, theta, layers, prior, schedule, words, work, due, stored,
            samples,
        )  # fmt: skip
        _check(theta, energy, square if stored else 0.0, y, number + 1)
        squares.append(square)
        trace["log_joint_a_row"].append(-energy / len(y))
        trace["noise_deviation"].append(float(np.sqrt(softplus(theta[-1]))))
        trace["step_size"].append(schedule.weights * factor(schedule, (number + 1) * steps - 1))
    return ChainRun(samples, np.array([factor(schedule, t) for t in due.tolist()]), trace, squares)


def passes(config: Config, n: int) -> int:
    """Return the number of passes over n data points."""
    return config.epochs or -(-STEPS // -(-n // min(config.batch_size, n)))


def _monitored(
    inputs: Array, weights: Array, variances: Array, layers: Array
) -> tuple[dict[str, Array], dict[str, float]]:
    """Return the monitored chains, and diagnostics of their mixing.

    ``inputs`` (R, d) are the monitored inputs, ``weights`` (S, P) and ``variances`` (S,) the samples.
    """
    predictions, noise = mlp.evaluate(inputs, weights, layers)[None], np.sqrt(variances)[None]
    found, worst = mcmc_diagnostics.measures("predictions", predictions)
    found |= mcmc_diagnostics.measures("noise_deviation", noise[:, :, None])[0]
    return {"noise_deviation": noise, "prediction": predictions[:, :, worst]}, found


def predict(state: State, X: Array, rng: np.random.Generator) -> Predictive:  # noqa: ARG001
    """Return mixtures over the samples at X (n, d), standardised units, noise included; ``rng`` is not used."""
    outputs = mlp.evaluate(X, state.weights, state.layers)
    return Predictive(state.mixture, outputs, np.repeat(state.noise_variances[:, None], len(X), axis=1))


def not_stationary(log_joint: Array, squares: Array, y: Array) -> str:
    """Return why the K kept epochs are not stationary, or an empty string.

    ``log_joint`` (K,) is in nats per data point, ``squares`` (K,) are mean squared residuals, ``y`` (n,) the targets.
    The epochs are not stationary if the means of ``log_joint`` over both halves differ by more than 0.1 nats per data
    point and by more than three standard errors (from ten batch means per half), or if the fit is worse than a
    constant. Fewer than 20 epochs are not tested.
    """
    if len(log_joint) < MIN_EPOCHS:
        return ""
    spread = float(np.var(y))
    if 0.0 < spread < float(np.mean(squares)):
        return (
            f"mean squared residual {np.mean(squares):.3g} on the training data exceeds their variance {spread:.3g}; "
            "another step_size or more epochs may help"
        )
    halves = np.array_split(log_joint, 2)
    drift = float(halves[1].mean() - halves[0].mean())
    means = [[part.mean() for part in np.array_split(half, BATCHES)] for half in halves]
    error = float(np.sqrt(np.var(means, axis=1, ddof=1).sum() / BATCHES))
    if abs(drift) <= max(DRIFT, 3.0 * error):
        return ""
    return f"log joint density drifts by {drift:+.2g} nats per data point between the halves of the kept epochs"


def _sample_steps(config: Config, total: int) -> Indices:
    """Return the steps (S,), of ``total`` steps, after which a sample is kept; the last one ends the chain."""
    burn = int(config.burn_in * total)
    kept = min(config.samples, total - burn)
    return burn + np.arange(1, kept + 1) * (total - burn) // kept - 1


def _schedule(config: Config, n: int, total: int) -> StepSizeSchedule:
    """Return the step sizes of a chain of ``total`` steps."""
    slope = (config.final_step ** (-1.0 / config.decay) - 1.0) / max(total - 1, 1)
    noise = 0.0 if config.noise_variance is not None else config.noise_step_size / n
    adapting = 0 if config.preconditioner == "none" else int(config.burn_in * total)
    return StepSizeSchedule(config.step_size / n, noise, slope, config.decay, adapting)


def _prior(config: Config) -> NetworkPrior:
    return NetworkPrior(config.prior_variance, config.noise_prior_variance, config.noise_variance is not None)


def _check(theta: Array, energy: float, square: float, y: Array, number: int) -> None:
    """Raise FloatingPointError if numbers of an epoch are not finite, or if its residuals exceed the limit."""
    if not (np.isfinite(theta).all() and np.isfinite(energy)):
        what = "the log joint density" if np.isfinite(theta).all() else "a weight or kappa"
        raise FloatingPointError(f"epoch {number}: {what} is not finite; a smaller step_size may help")
    largest = mlp.DIVERGENCE_LIMIT * max(float(np.var(y)), 1.0)
    if not square <= largest:
        raise FloatingPointError(
            f"epoch {number}: diverged: mean squared residual {square:.3g} on the training data (standardised units), "
            f"the limit is {largest:.3g}; a smaller step_size may help"
        )


def _warn(reason: str) -> None:
    if reason:
        from ep_bench.errors import ConvergenceWarning

        warnings.warn(reason, ConvergenceWarning, stacklevel=3)


def _seconds(config: Config, n: int, d: int) -> float:
    """Return the expected seconds of a fit on one core: draws and steps by weights, products by data points."""
    weights = mlp.count(mlp.layout(d, config.hidden))
    step = 1e-8 * weights + config.batch_size * (0.3e-9 * weights + 2e-9 * sum(config.hidden)) + 3e-6
    return passes(config, n) * -(-n // config.batch_size) * step


def _published(config: Config) -> tuple[str, ...]:
    """Return the published columns of a configuration: those of Bui et al., if the method is theirs."""
    as_published = config.preconditioner == "none" and config.prior_variance == 1.0 and config.noise_variance is None
    if not as_published:
        return ()
    if config.hidden in {(50,), (100,)}:
        return ("SGLD-1",)
    return ("SGLD-2",) if config.hidden in {(50, 50), (100, 100)} else ()


METHOD = Method(
    name="sgld",
    equality="sampled",
    version=2,
    title="Stochastic gradient Langevin dynamics",
    paper="Welling and Teh (2011), after Bui et al. (2015)",
    style=("sampling", "s"),
    bibtex="""
    @inproceedings{welling2011, author = {Welling, Max and Teh, Yee Whye},
      title = {{Bayesian Learning via Stochastic Gradient Langevin Dynamics}},
      booktitle = {Proceedings of the 28th International Conference on Machine Learning}, year = {2011},
      pages = {681--688}}""",
    density="mixture over draws",
    tasks=("regression",),
    config=Config,
    fit=fit,
    predict=predict,
    seconds=_seconds,
    warmup={"epochs": 1, "samples": 5},
    published=_published,
    space={
        "step_size": {"log": [1e-3, 0.1]},
        "noise_step_size": {"log": [5e-3, 0.5]},
    },
)
