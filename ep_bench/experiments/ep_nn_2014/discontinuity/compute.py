"""A step with noise by a finite network and by one with infinitely many units: case 3 of Jylanki and others (2014).

Their figure 5: a function of one input that jumps at zero, by a network of ten units with Laplace priors, and by a
Gaussian process with the covariance of an infinite network, hyperparameters of highest evidence. Of the mean of f
within the range of the data, in the unit of y:

    fluctuation   its total variation beyond that of a monotone function with the same ends
    overshoot     how far it goes beyond the true values on either side, at most
    width         the distance over which it rises from a tenth to nine tenths of the jump, in the unit of x
    settled       how far from the discontinuity it is last off the truth by more than the noise's deviation

Data are standardised, as the prior of the output weights wants them (the paper's equation 5). It matters to the process
too: with inputs as they are, the jump lies where a bias variance of 0 puts the step of every unit, the search finds
that, and the mean of f then follows the jump without fluctuation.

Deviation: the paper shows function and rows as a picture alone. The embedded data set ``step`` (100 rows in [-2, 2], -1
and 1, noise of deviation 0.1) is the first draw, and the one that is drawn; further ones have new inputs and noise.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from ep_bench import data
from ep_bench.experiments.ep_nn_2014.network_fits import NetworkFit, fitted, noise_deviation, rounded, unconverged
from ep_bench.experiments.method_entries import ExperimentMethod
from ep_bench.types import Array

NAME, HALF_WIDTH, LEVEL = "step", 2.0, 1.0  # of the embedded data set: inputs and f go from minus to plus these
NOISE = 0.1  # deviation, as in the embedded data set


def _entry(use: str, label: str, **options: Any) -> ExperimentMethod:
    return ExperimentMethod.model_validate({"use": use, "label": label, **options})


class Config(BaseModel):
    """Options of the experiment."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    methods: tuple[ExperimentMethod, ...] = Field(
        (
            _entry(
                "ep_nn", "NN-EP", hidden=[10], prior="laplace", scale_mean=2.0 * math.log(0.01), scale_deviation=2.5,
                noise_mean=2.0 * math.log(0.05), noise_deviation=2.0,
            ),
            _entry("gp", "GP", kernel="nn", prior="none"),
        ),
        min_length=1,
        max_length=4,
        description="method entries as in a study: use, label and options (section 4.3)",
    )  # fmt: skip
    standardize: bool = Field(True, description="inputs and target to mean 0 and deviation 1; the paper does not say")
    draws: int = Field(20, ge=1, description="of the data, the first the embedded set, which is drawn; ours")
    points: int = Field(2001, ge=101, description="points of the grid")


class StepShape(NamedTuple):
    """What the mean of f does about the discontinuity; NaN where the fit failed, or where it does not rise so far."""

    rmse: float
    fluctuation: float
    overshoot: float
    width: float
    settled: float


def compute(config: Config, seed: int) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return the arrays of the figure and one summary row a method.

    ``x`` and ``y`` (n,) are the first draw's rows; ``grid`` (G,), ``truth`` (G,), ``mean_<i>`` and ``std_<i>`` (G,) of
    the i-th method's f after that draw, ``labels`` (M,) their names, ``unconverged`` (M,) which fits ended too early.
    Of ``shapes`` (draws, M, K), ``shaped`` (K,) are the names: those of ``StepShape``.
    """
    grid = np.linspace(-HALF_WIDTH, HALF_WIDTH, config.points)
    function = data.true_function(NAME)
    assert function is not None  # noqa: S101 an embedded toy has one
    truth = function(grid[:, None])
    arrays: dict[str, Any] = {
        "labels": np.array([entry.name for entry in config.methods]), "grid": grid, "truth": truth,
        "shaped": np.array(StepShape._fields),
    }  # fmt: skip
    fits, shapes = [], []
    for draw, (X, y) in enumerate(_data(np.random.default_rng(seed).spawn(config.draws))):
        fits.append([fitted(one, X, y, standardize=config.standardize, seed=seed + draw) for one in config.methods])
        found = [fit.latent(grid[:, None]) for fit in fits[-1]]
        shapes.append([shape(grid, mean, truth) for mean, _ in found])
        if draw == 0:
            arrays |= {"x": X[:, 0], "y": y, "unconverged": unconverged(fits[0])}
            for i, (mean, std) in enumerate(found):
                arrays |= {f"mean_{i}": mean, f"std_{i}": std}
    arrays["shapes"] = np.array(shapes)
    rows = [_row(entry, [draw[i] for draw in fits], arrays["shapes"], i) for i, entry in enumerate(config.methods)]
    return arrays, rows


def _data(streams: list[np.random.Generator]) -> Iterator[tuple[Array, Array]]:
    """Yield inputs and targets of the embedded data set, then of new draws like it, one a stream but the first."""
    embedded = data.load_dataset(NAME)
    yield embedded.X, embedded.y
    function = data.true_function(NAME)
    assert function is not None  # noqa: S101
    for rng in streams[1:]:
        X = rng.uniform(-HALF_WIDTH, HALF_WIDTH, embedded.X.shape)
        yield X, function(X) + NOISE * rng.standard_normal(len(X))


def shape(grid: Array, mean: Array, truth: Array) -> StepShape:
    """Return what a mean (G,) over a grid (G,) does about the step at 0 of the truth (G,)."""
    if not np.isfinite(mean).all():
        return StepShape(*(math.nan,) * len(StepShape._fields))
    off = np.abs(mean - truth)
    return StepShape(
        rmse=float(np.sqrt(np.mean(off**2))),
        fluctuation=float(np.abs(np.diff(mean)).sum() - abs(mean[-1] - mean[0])),
        overshoot=max(0.0, float(np.max(mean * np.sign(truth) - LEVEL))),
        width=_width(grid, mean),
        settled=float(np.abs(grid[off > NOISE]).max(initial=0.0)),
    )


def _width(grid: Array, mean: Array) -> float:
    """Return the distance between the last point at a tenth and the first at nine tenths of the jump about its middle.

    NaN where the mean does not reach either on its side.
    """
    ends = 0.8 * LEVEL
    crossings = np.flatnonzero((mean[:-1] < 0.0) & (mean[1:] >= 0.0))
    if not len(crossings):
        return math.nan
    middle = crossings[np.argmin(np.abs(grid[crossings]))]
    below, above = np.flatnonzero(mean[: middle + 1] <= -ends), middle + 1 + np.flatnonzero(mean[middle + 1 :] >= ends)
    if not (len(below) and len(above)):
        return math.nan
    left, right = below[-1], above[0] - 1  # the level lies between each of these points and the next
    start, end = (_between(grid[i : i + 2], mean[i : i + 2], v) for i, v in ((left, -ends), (right, ends)))
    return end - start


def _between(x: Array, y: Array, level: float) -> float:
    """Return where a line through two points has a level."""
    return float(x[0] + (level - y[0]) / (y[1] - y[0]) * (x[1] - x[0]))


def _row(entry: ExperimentMethod, fits: list[NetworkFit], shapes: Array, place: int) -> dict[str, Any]:
    """Return the shape after the first draw, medians over the draws, and on how many draws none fluctuates less."""
    own, model = shapes[:, place], fits[0].model
    at = StepShape._fields.index("fluctuation")
    least = np.array([np.isfinite(draw[place, at]) and draw[place, at] <= np.nanmin(draw[:, at]) for draw in shapes])
    known = own[np.isfinite(own).any(axis=1)]
    medians = np.nanmedian(known, axis=0) if len(known) else np.full(own.shape[1], math.nan)
    return {
        "method": entry.name,
        **{name: rounded(value) for name, value in zip(StepShape._fields, own[0], strict=True)},
        **{f"{name}_median": rounded(value) for name, value in zip(StepShape._fields, medians, strict=True)},
        "draws": len(fits),
        "failed": sum(fit.model is None for fit in fits),
        "converged": sum(bool(fit.converged) for fit in fits),
        "least_fluctuation": int(least.sum()),
        "noise": "" if model is None else rounded(noise_deviation(model)),
        "log_evidence": rounded(getattr(model, "log_evidence_", None)),
        "seconds": rounded(float(np.mean([fit.seconds for fit in fits]))),
        "reason": next((fit.reason for fit in fits if fit.reason), ""),
    }
