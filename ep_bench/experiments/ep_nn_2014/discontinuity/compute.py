"""A noisy step by a finite network and by a network with infinitely many units (case 3, figure 5).

A function of one input with a jump at zero is fitted by a network of ten units with Laplace priors, and by a Gaussian
process with the covariance of an infinite network and the hyperparameters of highest evidence. Measures of the mean of
f within the range of the data, in the unit of y:

    fluctuation   total variation beyond that of a monotone function with the same ends
    overshoot     largest excess over the true values on either side
    width         distance over which it rises from 10 to 90 percent of the jump, in the unit of x
    settled       largest distance from the discontinuity at which the error exceeds the noise's standard deviation

Data are standardised, as required by the prior of the output weights (the paper's equation 5). This also matters for
the Gaussian process: with original inputs, the jump is where a bias variance of 0 puts the step of every unit. The
search finds this solution, whose mean of f follows the jump without fluctuation.

Deviation: the paper shows function and data only as a picture. The embedded data set ``step`` (100 points in [-2, 2],
values -1 and 1, noise with standard deviation 0.1) is the first draw and is shown; further draws have new inputs and
noise.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from pydantic import Field

from ep_bench import data
from ep_bench.experiments.ep_nn_2014.network_fits import NetworkFit, fitted, noise_deviation, rounded, unconverged
from ep_bench.experiments.method_entries import ExperimentMethod, Options
from ep_bench.types import Array

NAME, HALF_WIDTH, LEVEL = "step", 2.0, 1.0  # embedded data set; ranges of inputs and f are symmetric around 0
NOISE = 0.1  # standard deviation, as in the embedded data set


class Config(Options):
    """Options of the experiment."""

    methods: tuple[ExperimentMethod, ...] = Field(
        (
            ExperimentMethod.named(
                "ep_nn", "NN-EP", hidden=[10], prior="laplace", scale_mean=2.0 * math.log(0.01), scale_deviation=2.5,
                noise_mean=2.0 * math.log(0.05), noise_deviation=2.0,
            ),
            ExperimentMethod.named("gp", "GP", kernel="nn", prior="none"),
        ),
        min_length=1,
        max_length=4,
        description="method entries as in a study: use, label and options (section 4.3)",
    )  # fmt: skip
    standardize: bool = Field(True, description="standardise inputs and target; not stated in the paper")
    draws: int = Field(20, ge=1, description="draws of the data; the first is the embedded data set; ours")
    points: int = Field(2001, ge=101, description="points of the grid")


class StepShape(NamedTuple):
    """Shape of the mean of f near the discontinuity; NaN if the fit failed or the measure is undefined."""

    rmse: float
    fluctuation: float
    overshoot: float
    width: float
    settled: float


def compute(config: Config, seed: int) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return the arrays of the figure, and one summary row per method.

    ``x`` and ``y`` (n,): data of the first draw. ``grid`` (G,), ``truth`` (G,), ``mean_<i>`` and ``std_<i>`` (G,) of f
    by method i on this draw. ``labels`` (M,): names of the methods. ``unconverged`` (M,): which fits did not converge.
    ``shapes`` (draws, M, K) have the names ``shaped`` (K,), those of ``StepShape``.
    """
    grid = np.linspace(-HALF_WIDTH, HALF_WIDTH, config.points)
    function = data.true_function(NAME)
    assert function is not None  # noqa: S101 this embedded data set has a true function
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
    """Yield inputs and targets of the embedded data set, then of one new draw per stream after the first."""
    embedded = data.load_dataset(NAME)
    yield embedded.X, embedded.y
    function = data.true_function(NAME)
    assert function is not None  # noqa: S101
    for rng in streams[1:]:
        X = rng.uniform(-HALF_WIDTH, HALF_WIDTH, embedded.X.shape)
        yield X, function(X) + NOISE * rng.standard_normal(len(X))


def shape(grid: Array, mean: Array, truth: Array) -> StepShape:
    """Return the shape of a mean (G,) over a grid (G,) near the step at 0 of the truth (G,)."""
    if not np.isfinite(mean).all():
        return StepShape(*(math.nan,) * len(StepShape._fields))
    error = np.abs(mean - truth)
    return StepShape(
        rmse=float(np.sqrt(np.mean(error**2))),
        fluctuation=float(np.abs(np.diff(mean)).sum() - abs(mean[-1] - mean[0])),
        overshoot=max(0.0, float(np.max(mean * np.sign(truth) - LEVEL))),
        width=_width(grid, mean),
        settled=float(np.abs(grid[error > NOISE]).max(initial=0.0)),
    )


def _width(grid: Array, mean: Array) -> float:
    """Return the distance between the last point below 10 and the first above 90 percent of the jump.

    NaN if the mean does not reach these levels.
    """
    ends = 0.8 * LEVEL
    crossings = np.flatnonzero((mean[:-1] < 0.0) & (mean[1:] >= 0.0))
    if not len(crossings):
        return math.nan
    middle = crossings[np.argmin(np.abs(grid[crossings]))]
    below, above = np.flatnonzero(mean[: middle + 1] <= -ends), middle + 1 + np.flatnonzero(mean[middle + 1 :] >= ends)
    if not (len(below) and len(above)):
        return math.nan
    left, right = below[-1], above[0] - 1  # the level is between each of these points and the next
    start, end = (_between(grid[i : i + 2], mean[i : i + 2], v) for i, v in ((left, -ends), (right, ends)))
    return end - start


def _between(x: Array, y: Array, level: float) -> float:
    """Return where the line through two points has a level."""
    return float(x[0] + (level - y[0]) / (y[1] - y[0]) * (x[1] - x[0]))


def _row(entry: ExperimentMethod, fits: list[NetworkFit], shapes: Array, place: int) -> dict[str, Any]:
    """Return the shape on the first draw, medians over the draws, and on how many draws no method fluctuates less."""
    own, model = shapes[:, place], fits[0].model
    at = StepShape._fields.index("fluctuation")
    minimum = np.array([np.isfinite(draw[place, at]) and draw[place, at] <= np.nanmin(draw[:, at]) for draw in shapes])
    known = own[np.isfinite(own).any(axis=1)]
    medians = np.nanmedian(known, axis=0) if len(known) else np.full(own.shape[1], math.nan)
    return {
        "method": entry.name,
        **{name: rounded(value) for name, value in zip(StepShape._fields, own[0], strict=True)},
        **{f"{name}_median": rounded(value) for name, value in zip(StepShape._fields, medians, strict=True)},
        "draws": len(fits),
        "failed": sum(fit.model is None for fit in fits),
        "converged": sum(bool(fit.converged) for fit in fits),
        "least_fluctuation": int(minimum.sum()),
        "noise": "" if model is None else rounded(noise_deviation(model)),
        "log_evidence": rounded(getattr(model, "log_evidence_", None)),
        "seconds": rounded(float(np.mean([fit.seconds for fit in fits]))),
        "reason": next((fit.reason for fit in fits if fit.reason), ""),
    }
