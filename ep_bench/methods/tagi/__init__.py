"""Tractable approximate Gaussian inference: J.-A. Goulet, L. H. Nguyen and S. Amiri, JMLR 22 (251), 2021.

The weights of a network of rectified units have a factorised Gaussian distribution. A data point is used once per
epoch: moments are propagated forward, with the rectifier linearised at the mean of its input, and the weights are then
conditioned on the target layer by layer, backward, as if all quantities were jointly Gaussian (``filtering`` has the
equations). There is no gradient and no learning rate. Each epoch starts from the posterior of the one before, so the
data are counted as often as there are epochs.

With fixed noise of standard deviation s, predictions are N(f, v + s^2). With ``noise: heteroscedastic`` a second output
has the logarithm of the noise variance, learned by approximate Gaussian variance inference (Deka, Nguyen and Goulet,
Neurocomputing 2024, TAGI-V). Predictions are then N(f, v + E[noise variance]), with the mean of the lognormal.

Relation to ``pbp``: the moments of a layer's inputs are the same. PBP has exact moments of the rectifier, and learns
the noise and the prior; its updates use derivatives of log Z, here h has no term from the residual.

Deviation: the paper optimises s on folds of the training data by gradients. Here it is the value of ``NOISE`` with the
highest log-likelihood on validation points, from fits of all epochs; the last fit has all data and the same start.
Deviation: a weight keeps its mean and variance if the updated variance is not positive. That needs two outputs or
several hidden layers. The authors' library sets such a variance to 1e-5.
Deviation: the initial weights of the second output have the variance ``noise_gain`` times that of other weights; the
authors choose it per data set. The default has the highest log-likelihood of validation points on five data sets.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, PositiveFloat, PositiveInt, model_validator

from ep_bench.methods.tagi.filtering import filter_rows, predict_rows
from ep_bench.models import mlp
from ep_bench.numerics.minibatch import hold_out, run_epochs
from ep_bench.predictions import Predictive
from ep_bench.types import Array, Indices, Method, Rows

NOISE = tuple(0.025 * 2.0 ** (k / 2.0) for k in range(11))  # 0.025 to 0.8; the authors' values are 0.063 to 0.75
BIAS_VARIANCE = 0.01  # in the authors' program
NOISE_GAIN = 0.01


class Config(BaseModel):
    """Options of tractable approximate Gaussian inference."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    hidden: tuple[PositiveInt, ...] = Field(
        (50,), description="units per hidden layer; section 4.1: 50, and 100 for protein"
    )
    epochs: PositiveInt = Field(40, description="passes over the training data; section 4.1: 40")
    noise: Literal["homoscedastic", "heteroscedastic"] = Field(
        "homoscedastic", description="one fixed noise variance, or one per input by a second output (Deka et al. 2024)"
    )
    noise_deviation: PositiveFloat | None = Field(
        None,
        description="standard deviation of the noise, standardised; by default chosen on validation points",
    )
    weight_variance: PositiveFloat = Field(
        0.25, description="initial variance of a weight, times its fan-in; the authors' program: 0.25"
    )
    noise_gain: PositiveFloat = Field(
        NOISE_GAIN,
        description="factor of the initial variance of the weights of the second output; ours, the authors tune it",
    )
    validation_fraction: float = Field(
        0.2, gt=0.0, lt=1.0, description="fraction of the training data that the choice of the noise uses; ours"
    )

    @model_validator(mode="after")
    def _possible(self) -> Config:
        if self.noise == "heteroscedastic" and self.noise_deviation is not None:
            raise ValueError("noise: heteroscedastic learns the noise variance; leave noise_deviation out")
        if self.noise == "homoscedastic" and self.noise_gain != NOISE_GAIN:
            raise ValueError("noise_gain is an option of noise: heteroscedastic")
        return self


class State(NamedTuple):
    """Posterior in standardised units."""

    layers: Array  # (L, 3) as in ``models.mlp``, with two outputs if the noise is learned
    mean: Array  # (P,)
    variance: Array  # (P,)
    noise_variance: float  # not used with two outputs

    @property
    def hyperparameters(self) -> dict[str, float]:
        """The fixed noise variance, standardised units; empty if the noise depends on the input."""
        return {"noise_variance": self.noise_variance} if self.layers[-1, 2] == 1 else {}


def fit(
    train: Rows, config: Config, rng: np.random.Generator, start: tuple[Array, Array] | None = None
) -> tuple[State, dict[str, list[float]]]:
    """Fit a network to standardised data.

    Parameters
    ----------
    train : X (n, d) and y (n,), standardised
    config : the options
    rng : generator of the initial means, the validation points and the order of each epoch
    start : means and variances (P,) of the weights before the first data point, as in ``models.mlp``; random by default

    Returns
    -------
    state : the posterior
    trace : one value per epoch of the last fit of ``log_z`` (log predictive density of a data point before its update,
        averaged, nats) and ``undone`` (fraction of rejected weight updates)

    Raises
    ------
    FloatingPointError
        If a mean or variance is not finite after an epoch, or the fit has diverged (``mlp.refuse_residuals``).
    """
    X, y = np.array(train.X, dtype=np.float64, order="C"), np.array(train.y, dtype=np.float64)
    layers = mlp.layout(X.shape[1], config.hidden, 1 if config.noise == "homoscedastic" else 2)
    begin = start or _initial(layers, config, rng)
    noise = config.noise_deviation or 1.0
    if config.noise == "homoscedastic" and config.noise_deviation is None:
        noise = _best_noise(X, y, layers, begin, config, rng)
    state, trace = _filter(X, y, layers, begin, noise, config.epochs, rng)
    mlp.refuse_residuals(y - _outputs(state, X)[0][:, 0], y)
    return state, trace


def predict(state: State, X: Array, rng: np.random.Generator) -> Predictive:  # noqa: ARG001
    """Return one Gaussian per data point of X (n, d), standardised units, noise included; ``rng`` is not used."""
    mean, variance = _outputs(state, X)
    noise = np.exp(mean[:, 1] + 0.5 * variance[:, 1]) if mean.shape[1] == 2 else state.noise_variance
    return Predictive.gaussian(mean[:, 0], variance[:, 0] + noise)


def latent(state: State, X: Array) -> tuple[Array, Array]:
    """Return mean and variance of the function without noise at X (n, d)."""
    mean, variance = _outputs(state, X)
    return mean[:, 0], variance[:, 0]


def _outputs(state: State, X: Array) -> tuple[Array, Array]:
    """Return means and variances (n, K) of the outputs of the network."""
    mlp.check_inputs(X, state.layers)
    mean, variance = np.empty((2, len(X), int(state.layers[-1, 2])))
    rows = np.array(X, dtype=np.float64, order="C")
    predict_rows(rows, state.mean, state.variance, state.layers, mean, variance)
    return mean, variance


def _initial(layers: Array, config: Config, rng: np.random.Generator) -> tuple[Array, Array]:
    """Return initial means (P,), drawn from their distribution as in the authors' program, and variances (P,)."""
    variances = []
    for _, n_in, n_out in layers.tolist():
        weights = np.full((n_in, n_out), config.weight_variance / n_in)
        variances += [weights, np.full((1, n_out), BIAS_VARIANCE)]
    means = np.concatenate([(np.sqrt(one) * rng.standard_normal(one.shape)).ravel() for one in variances])
    if layers[-1, 2] == 2:
        variances[-2][:, 1] *= config.noise_gain
    return means, np.concatenate([one.ravel() for one in variances])


def _best_noise(
    X: Array, y: Array, layers: Array, begin: tuple[Array, Array], config: Config, rng: np.random.Generator
) -> float:
    """Return the standard deviation of the noise with the highest log-likelihood of the validation points."""
    fitted, held_out = hold_out(len(y), config.validation_fraction, rng)
    scores = {}
    for noise in NOISE:
        try:
            state, _ = _filter(X[fitted], y[fitted], layers, begin, noise, config.epochs, rng)
        except FloatingPointError:
            continue
        scores[noise] = float(predict(state, X[held_out], rng).logpdf(y[held_out]).mean())
    return max(scores, key=lambda noise: scores[noise], default=1.0)


def _filter(
    X: Array, y: Array, layers: Array, begin: tuple[Array, Array], noise: float, epochs: int, rng: np.random.Generator
) -> tuple[State, dict[str, list[float]]]:
    """Return the posterior after all epochs with a fixed noise, and the trace."""
    mean, variance = (one.copy() for one in begin)
    undone = 0.0

    def run_epoch(epoch: int, order: Indices) -> float:  # noqa: ARG001
        nonlocal undone
        log_z, undone = filter_rows(X, y, order, mean, variance, layers, noise * noise)
        return float(log_z / len(y))

    def monitor() -> dict[str, float]:
        return {"undone": undone / (len(y) * len(mean))}

    trace = run_epochs(range(epochs), run_epoch, mean, len(y), rng, monitor)
    return State(layers, mean, variance, noise * noise), {"log_z": trace.pop("objective"), **trace}


def _seconds(config: Config, n: int, d: int) -> float:
    """Return the expected seconds of all fits on one core."""
    weights = mlp.count(mlp.layout(d, config.hidden))
    fits = 1.0
    if config.noise == "homoscedastic" and config.noise_deviation is None:
        fits += len(NOISE) * (1.0 - config.validation_fraction)
    return fits * config.epochs * n * (3e-9 * weights + 0.5e-6)


def _published(config: Config) -> tuple[str, ...]:
    """Return the published columns of a configuration, by its noise."""
    if config.hidden not in {(50,), (100,)}:
        return ()
    if config.noise == "homoscedastic":
        return ("TAGI",)
    return ("TAGI-V (gain 1)",) if config.noise_gain == config.weight_variance == 1.0 else ("TAGI-V",)


METHOD = Method(
    name="tagi",
    equality="stable",
    version=1,
    title="Tractable approximate Gaussian inference",
    paper="Goulet, Nguyen and Amiri (2021)",
    style=("EP", "^"),
    bibtex="""
    @article{goulet2021, author = {Goulet, James-A. and Nguyen, Luong Ha and Amiri, Saeid},
      title = {{Tractable Approximate Gaussian Inference for Bayesian Neural Networks}},
      journal = {Journal of Machine Learning Research}, volume = {22}, year = {2021}}""",
    density="Gaussian",
    tasks=("regression",),
    config=Config,
    fit=fit,
    predict=predict,
    latent=latent,
    seconds=_seconds,
    warmup={"epochs": 1},
    published=_published,
    validated=lambda config: (
        "" if config.noise == "heteroscedastic" or config.noise_deviation is not None else "noise_deviation"
    ),
    space={
        "epochs": {"log_int": [5, 100]},
        "weight_variance": {"log": [0.03, 3.0]},
    },
)
