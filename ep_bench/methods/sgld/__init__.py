"""Stochastic gradient Langevin dynamics: Welling and Teh (2011), as the SGLD of Bui et al. (2015, section 8).

A network of rectified linear units with Gaussian noise, weights w ~ N(0, 1), noise variance log(1 + exp(kappa)) with a
broad Gaussian prior of kappa. Steps on minibatches of B of the N rows sample weights and kappa together:

    theta <- theta + eps_t / 2 (grad log p(theta) + N / B sum_b grad log p(y_b | theta)) + N(0, eps_t)
    eps_t = a (b + t)^-gamma

with one a for the weights and another for kappa. After a burn-in the samples at S evenly spaced steps are kept; the
predictive distribution is the mixture of N(f_s, sigma2_s), weighted by eps_t as Welling and Teh average (section 4.2).
As with them no step is ever rejected: the samples are the posterior's up to errors of the order of eps_t, of the steps
themselves and of the minibatches' noise.

Step sizes are given for t = 0 and times N, so that one number serves data sets of all sizes: eps_0 = ``step_size`` / N.
b is such that the last step has ``final_step`` of the first one's size.

``preconditioner: rmsprop`` is the method of Li, Chen, Carlson and Carin (2016): weight i steps by eps_t G_i, with
G = 1 / (lambda + sqrt(V)), V a running mean of the squared gradient a row. G is adapted in the burn-in, then kept.
Kappa has a step size of its own and no preconditioner.

Module ``sampling``: log joint density, gradient, steps, and the table of symbols.

Deviation: Bui et al. tuned both step sizes by hand for each data set, and state neither schedule, minibatch, length,
start nor kappa's prior. ``tune`` searches both step sizes on validation rows; the rest is ours. The start is that of
the networks by optimisation (``mlp.initial_weights``), sigma2 = 1: started from the prior, 30,000 steps leave
validation rows of boston at an RMSE of 4.6 instead of 3.5, since such steps hardly move the weights that the rows
leave free. For the same reason the chain hardly ever mixes: the samples stay narrower than the posterior, and R-hat of
predictions between their halves says so.
Deviation: Li et al. adapt G to the end, and leave out the term Gamma(theta), the divergence of G, that would make up
for it. G that is constant while samples are kept has no such term. lambda is 0.1 and the memory of V 1,000 steps,
where they have 1e-5 and 100: a weight whose gradient happened to be small when G was last adapted would else be thrown
about (energy diverged).
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
from ep_bench.types import Array, Indices, Method, Predictive, Rows

STEPS = 100_000  # that are made unless the epochs are given
DRIFT = 0.1  # nats a row between the halves of what is kept: more is not settled
JUDGED = 20  # kept epochs from which on settling is judged, ten batches a half at most
BATCHES = 10


class Config(BaseModel):
    """Options of stochastic gradient Langevin dynamics."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    hidden: tuple[PositiveInt, ...] = Field(
        (50,), description="units of each hidden layer; Bui et al., section 8: 50, and 100 for year and protein"
    )
    epochs: PositiveInt | None = Field(
        None, description="passes over the training rows, burn-in included; unless given, what 100,000 steps take; ours"
    )
    batch_size: PositiveInt = Field(32, description="rows a step; ours")
    step_size: PositiveFloat = Field(
        0.01, description="of the weights at the first step, times the number of rows; tuned by hand in the paper"
    )
    noise_step_size: PositiveFloat = Field(
        0.05, description="of kappa at the first step, times the number of rows; tuned by hand in the paper"
    )
    final_step: float = Field(0.3, gt=0.0, le=1.0, description="size of the last step over that of the first; ours")
    decay: float = Field(0.55, gt=0.0, le=1.0, description="gamma of the schedule; Welling and Teh: 0.55")
    burn_in: float = Field(0.5, ge=0.0, lt=1.0, description="share of the steps before samples are kept; ours")
    samples: PositiveInt = Field(100, description="weight samples kept, at most; ours")
    preconditioner: Literal["none", "rmsprop"] = Field(
        "none", description="none, or of Li et al. (2016), adapted in the burn-in; Bui et al.: none"
    )
    prior_variance: PositiveFloat = Field(1.0, description="of the weights; Bui et al., section 8: 1")
    noise_prior_variance: PositiveFloat = Field(
        100.0, description="of kappa, mean 0; Bui et al., section 8: broad, the number is ours"
    )
    noise_variance: PositiveFloat | None = Field(
        None, description="variance, in squared units of the standardised target; sampled unless given"
    )

    @model_validator(mode="after")
    def _possible(self) -> Config:
        if self.preconditioner != "none" and self.burn_in == 0.0:
            raise ValueError(
                "preconditioner: rmsprop is adapted in the burn-in, and burn_in is 0; allowed: more than 0"
            )
        return self


class State(NamedTuple):
    """Samples of weights and noise, standardised units."""

    layers: Array  # (L, 3) as in ``models.mlp``
    weights: Array  # (S, P)
    noise_variances: Array  # (S,)
    mixture: Array  # (S,) weights of the samples, summing to 1
    chain: Indices  # (S,) of which chain each sample is: there is one
    chains: dict[str, Array]  # name -> (1, S): ``noise_deviation`` and ``prediction``, as of ``hmc``
    diagnostics: dict[str, float]  # ``mixing.measures`` of the kept samples


def fit(train: Rows, config: Config, rng: np.random.Generator) -> tuple[State, dict[str, list[float]]]:
    """Sample given standardised rows X (n, d), y (n,).

    Returns the state, and one value an epoch of ``log_joint_a_row`` (the mean over minibatches of the estimate of
    the log joint density of rows, weights and kappa, nats, divided by n), ``noise_deviation`` (standardised) and
    ``step_size`` (eps_t of the weights), both of the epoch's last step.

    Raises FloatingPointError where an epoch ends with a number that is not finite, or where in an epoch whose samples
    may be kept the mean squared residual is over 1,000 times the targets' variance (or 1,000 where that is below 1).
    Warns with sklearn's ConvergenceWarning where the kept part had not settled (see ``not_stationary``), or the two
    halves of its samples predict differently by R-hat at the watched rows (``mixing``).
    """
    X, y = np.array(train.X, dtype=np.float64, order="C"), np.array(train.y, dtype=np.float64)
    layers, rows = mlp.layout(X.shape[1], config.hidden), min(config.batch_size, len(y))
    steps = -(-len(y) // rows)  # an epoch
    epochs = passes(config, len(y))
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
    kept = slice(int(np.ceil(config.burn_in * epochs)), None)
    sizes = np.array([factor(schedule, t) for t in due.tolist()])
    variances = np.array([softplus(kappa) for kappa in samples[:, -1].tolist()])
    weights = samples[:, :-1].copy()
    chains, found = _monitored(mcmc_diagnostics.monitored_inputs(X, rng), weights, variances, layers)
    reason = not_stationary(np.array(trace["log_joint_a_row"][kept]), np.array(squares[kept]), y)
    _warn(reason or mcmc_diagnostics.unmixed(found, f"{len(samples)} samples of one chain; more epochs may help"))
    return State(
        layers, weights, variances, sizes / sizes.sum(), np.zeros(len(samples), dtype=np.int64), chains, found
    ), trace


def passes(config: Config, n: int) -> int:
    """Return how many passes over n rows are made."""
    return config.epochs or -(-STEPS // -(-n // min(config.batch_size, n)))


def _monitored(
    rows: Array, weights: Array, variances: Array, layers: Array
) -> tuple[dict[str, Array], dict[str, float]]:
    """Return what the samples monitor, and how well they have mixed."""
    predictions, noise = mlp.evaluate(rows, weights, layers)[None], np.sqrt(variances)[None]
    found, worst = mcmc_diagnostics.measures("predictions", predictions)
    found |= mcmc_diagnostics.measures("noise_deviation", noise[:, :, None])[0]
    return {"noise_deviation": noise, "prediction": predictions[:, :, worst]}, found


def predict(state: State, X: Array, rng: np.random.Generator) -> Predictive:  # noqa: ARG001
    """Return mixtures over the kept samples for rows X (n, d), standardised units, noise included; no ``rng`` used."""
    outputs = mlp.evaluate(X, state.weights, state.layers)
    return Predictive(state.mixture, outputs, np.repeat(state.noise_variances[:, None], len(X), axis=1))


def not_stationary(log_joint: Array, squares: Array, y: Array) -> str:
    """Return why the kept epochs are no samples of one distribution, or nothing.

    ``log_joint`` (K,) nats a row, ``squares`` (K,) mean squared residuals. Their log joint densities have not settled
    where the two halves' means differ by more than 0.1 nats a row and three standard errors (of ten batch means a
    half), or where the rows are fitted worse than by a constant. Fewer than 20 epochs are not judged.
    """
    if len(log_joint) < JUDGED:
        return ""
    spread = float(np.var(y))
    if 0.0 < spread < float(np.mean(squares)):
        return (
            f"mean squared residual {np.mean(squares):.3g} on the training rows, of variance {spread:.3g}; "
            "another step_size or more epochs may help"
        )
    halves = np.array_split(log_joint, 2)
    drift = float(halves[1].mean() - halves[0].mean())
    means = [[part.mean() for part in np.array_split(half, BATCHES)] for half in halves]
    error = float(np.sqrt(np.var(means, axis=1, ddof=1).sum() / BATCHES))
    if abs(drift) <= max(DRIFT, 3.0 * error):
        return ""
    return f"log joint density drifts by {drift:+.2g} nats a row between the halves of the kept samples"


def _sample_steps(config: Config, total: int) -> Indices:
    """Return the steps (S,) after which a sample is kept, of ``total``; the last is the chain's last."""
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
    """Raise FloatingPointError where an epoch's numbers are not finite, or its residuals are nonsense."""
    if not (np.isfinite(theta).all() and np.isfinite(energy)):
        what = "the log joint density" if np.isfinite(theta).all() else "a weight or kappa"
        raise FloatingPointError(f"epoch {number}: {what} is not finite; a smaller step_size may help")
    largest = mlp.NONSENSE * max(float(np.var(y)), 1.0)
    if not square <= largest:
        raise FloatingPointError(
            f"epoch {number}: diverged: mean squared residual {square:.3g} on the training rows (standardised units), "
            f"at most {largest:.3g} is taken for a fit; a smaller step_size may help"
        )


def _warn(reason: str) -> None:
    if reason:
        from sklearn.exceptions import ConvergenceWarning

        warnings.warn(reason, ConvergenceWarning, stacklevel=3)


def _seconds(config: Config, n: int, d: int) -> float:
    """Time of a fit on one core: draws and steps by weights, products by rows."""
    weights = mlp.count(mlp.layout(d, config.hidden))
    step = 1e-8 * weights + config.batch_size * (0.3e-9 * weights + 2e-9 * sum(config.hidden)) + 3e-6
    return passes(config, n) * -(-n // config.batch_size) * step


def _published(config: Config) -> tuple[str, ...]:
    """Return the columns that a configuration answers to: Bui et al.'s, by its layers, where it is their method."""
    theirs = config.preconditioner == "none" and config.prior_variance == 1.0 and config.noise_variance is None
    if not theirs:
        return ()
    if config.hidden in {(50,), (100,)}:
        return ("SGLD-1",)
    return ("SGLD-2",) if config.hidden in {(50, 50), (100, 100)} else ()


METHOD = Method(
    name="sgld",
    version=2,
    title="Stochastic gradient Langevin dynamics",
    paper="Welling and Teh (2011), after Bui et al. (2015)",
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
