"""Ten additive effects, from none to strongly nonlinear, by networks with two kinds of priors (case 2, figures 3, 4).

There are 200 data points with ten inputs in [-pi, pi], and noise with standard deviation 0.2. Input 1 has no effect;
the effects of inputs 2 to 5 are linear and increasing; those of inputs 6 to 10 are nonlinear. An effect is f along one
input from -5 to 5, with all others at 0, and is scored within [-pi, pi]. The first network has fixed Gaussian priors.
The second starts with the same priors; when EP has converged, it gets Gaussian priors with one scale per input
(``release``).

All data are in original units. The paper states that observations are not normalised for case 1 only. Its prior
variance of the weights, 0.4^2, would be 0.53 for standardised inputs, where it otherwise uses 0.5.

Deviation: the paper shows the effects only as a picture. Ours are s x for inputs 2 to 5, s = 0.25, 0.5, 0.75 and 1, and
tanh(s x) for inputs 6 to 10, s = 0.5, 1, 2, 4 and 8. The paper states that the last three need three units or more, and
shows five units for all of inputs 6 to 10: one each. ``effects: waves`` uses those of the embedded data set
``additive``, which ten units cannot represent: least squares on 1,500 points without noise leave an error of 0.38 for
the best of four starts (16 units: 0.06; ten units and the effects above: 0.006). Each draw has new data; the figure
shows the first on which all fits have converged, or else the first.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from ep_bench import data
from ep_bench.experiments.ep_nn_2014.network_fits import (
    NetworkFit,
    excludes_zero,
    fitted,
    is_network,
    marginals,
    noise_deviation,
    rounded,
    unconverged,
)
from ep_bench.experiments.method_entries import ExperimentMethod, Options
from ep_bench.types import Array

EMBEDDED = "additive"
ROWS, NOISE = 200, 0.2  # number of data points; standard deviation
SLOPES, STEEPNESS = (0.25, 0.5, 0.75, 1.0), (0.5, 1.0, 2.0, 4.0, 8.0)
SWEEPS = 1000  # maximum per fit; the second network converges twice
KINDS = ("none", *("linear",) * 4, *("nonlinear",) * 5)  # of the effects
HELD_OUT = 2000  # inputs at which f is compared with the true function


def _entry(label: str, **options: Any) -> ExperimentMethod:
    noise = {"noise_mean": 2.0 * math.log(0.05), "noise_deviation": 2.0}
    options = {"hidden": [10], "weight_variance": 0.4**2, "sweeps": SWEEPS, **noise, **options}
    return ExperimentMethod.model_validate({"use": "ep_nn", "label": label, **options})


class Config(Options):
    """Options of the experiment."""

    methods: tuple[ExperimentMethod, ...] = Field(
        (
            _entry("fixed Gaussian priors", prior="gaussian"),
            _entry("ARD priors", prior="ard", release=1e-4, scale_mean=2.0 * math.log(0.01), scale_deviation=2.5),
        ),
        min_length=1,
        max_length=4,
        description="method entries as in a study: use, label and options; only the weights of the last finite network "
        "are drawn (section 4.2)",
    )
    effects: Literal["steps", "waves"] = Field(
        "steps", description="effects of inputs 6 to 10: hyperbolic tangents, or those of the data set additive; ours"
    )
    standardize: bool = Field(False, description="standardise inputs and target; not stated in the paper")
    draws: int = Field(
        5, ge=1, description="draws of the data; the figure shows the first on which all fits have converged; ours"
    )
    half_width: float = Field(5.0, gt=0, description="half-width of the grid around 0 (figure 3)")
    points: int = Field(101, ge=11, description="points of the grid")


class EffectScore(NamedTuple):
    """Scores of an effect, or of f at the held-out inputs; NaN if the fit failed."""

    rmse: float
    correlation: float  # NaN if the true effect is constant
    range: float  # of the mean of f
    deviation: float  # mean posterior standard deviation of f


def compute(config: Config, seed: int) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return the arrays of the figures, and one summary row per method and input, and per method for all inputs.

    ``grid`` (G,). ``truth`` (d, G): true effects. ``mean_<i>`` and ``std_<i>`` (d, G) of f by method i on draw
    ``shown``. ``labels`` (M,): names of the methods. ``unconverged`` (M,): which fits did not converge.
    ``judged_half_width``: range within which effects are scored. ``standardized``: whether weights are in standardised
    units. ``errors`` (draws, M, d + 1): root mean squared errors of the effects, with that at held-out inputs last. For
    the method ``network``, the last finite network: ``network_fits.marginals`` of its weights.
    """
    streams = np.random.default_rng(seed).spawn(config.draws + 1)
    held_out = streams[-1].uniform(-math.pi, math.pi, (HELD_OUT, len(KINDS)))
    grid = np.linspace(-config.half_width, config.half_width, config.points)
    function = true_function(config.effects)
    probes = _probes(grid)
    arrays: dict[str, Any] = {
        "labels": np.array([entry.name for entry in config.methods]),
        "grid": grid,
        "truth": function(probes).reshape(len(KINDS), -1),
        "judged_half_width": np.array(math.pi),
        "standardized": np.array(config.standardize),
    }
    truth = np.concatenate([arrays["truth"].ravel(), function(held_out)])
    fits, curves, scores = [], [], []
    for draw, rng in enumerate(streams[:-1]):
        X, y = rows_of(config.effects, rng)
        fits.append([fitted(one, X, y, standardize=config.standardize, seed=seed + draw) for one in config.methods])
        curves.append([fit.latent(np.concatenate([probes, held_out])) for fit in fits[-1]])
        scores.append([_scores(grid, truth, mean, std) for mean, std in curves[-1]])
    shown = next((draw for draw, each in enumerate(fits) if not unconverged(each).any()), 0)
    arrays |= {"shown": np.array(shown), "unconverged": unconverged(fits[shown])}
    for i, (mean, std) in enumerate(curves[shown]):
        parts = (part[: len(probes)].reshape(len(KINDS), -1) for part in (mean, std))
        arrays |= dict(zip((f"mean_{i}", f"std_{i}"), parts, strict=True))
    arrays |= _weights(fits[shown])
    arrays["errors"] = np.array([[[one.rmse for one in method] for method in each] for each in scores])
    lowest = arrays["errors"] <= np.fmin.reduce(arrays["errors"], axis=1, keepdims=True)
    rows = [
        row
        for i, entry in enumerate(config.methods)
        for row in _rows(
            entry, [draw[i] for draw in fits], shown, scores[shown][i], arrays["errors"][:, i], lowest[:, i].sum(axis=0)
        )
    ]
    return arrays, rows


def _probes(grid: Array) -> Array:
    """Return the inputs (d G, d) along each axis in turn."""
    return np.concatenate([np.outer(grid, axis) for axis in np.eye(len(KINDS))])


def true_function(effects: str) -> Callable[[Array], Array]:
    """Return the noise-free function of inputs (n, 10)."""
    embedded = data.true_function(EMBEDDED)
    return embedded if effects == "waves" and embedded is not None else _steps


def _steps(X: Array) -> Array:
    return np.asarray(X[:, 1:5] @ np.array(SLOPES) + np.tanh(X[:, 5:] * STEEPNESS).sum(axis=1))


def rows_of(effects: str, rng: np.random.Generator) -> tuple[Array, Array]:
    """Draw inputs (n, 10) uniform in [-pi, pi], and targets (n,) with noise."""
    X = rng.uniform(-math.pi, math.pi, (ROWS, len(KINDS)))
    return X, true_function(effects)(X) + NOISE * rng.standard_normal(ROWS)


def _scores(grid: Array, truth: Array, mean: Array, std: Array) -> list[EffectScore]:
    """Return the scores of each effect within [-pi, pi], and of f at the held-out inputs."""
    inside = np.abs(grid) <= math.pi
    count = len(KINDS) * len(grid)
    parts = [values[:count].reshape(len(KINDS), -1)[:, inside] for values in (truth, mean, std)]
    scores = [_compared(*effect) for effect in zip(*parts, strict=True)]
    return [*scores, _compared(truth[count:], mean[count:], std[count:])]


def _compared(truth: Array, mean: Array, std: Array) -> EffectScore:
    varied = np.ptp(truth) > 0.0 and np.ptp(mean) > 0.0
    correlation = float(np.corrcoef(truth, mean)[0, 1]) if varied else math.nan
    error = float(np.sqrt(np.mean((mean - truth) ** 2)))
    return EffectScore(error, correlation, float(np.ptp(mean)), float(std.mean()))


def _weights(fits: list[NetworkFit]) -> dict[str, Any]:
    """Return the marginals of the last finite network, empty without such a fit."""
    for i, fit in reversed(list(enumerate(fits))):
        if is_network(fit.model):
            return {"network": np.array(i), **marginals(fit.model)}
    return {}


def _rows(
    entry: ExperimentMethod,
    fits: list[NetworkFit],
    shown: int,
    scores: list[EffectScore],
    errors: Array,
    lowest: NDArray[np.intp],
) -> Iterator[dict[str, Any]]:
    """Yield one summary row per input on the draw that is shown, then one for all inputs, for a method.

    ``errors`` (draws, d + 1); ``lowest`` (d + 1,): on how many draws no method has a lower error.
    """
    model = fits[shown].model
    inputs = _inputs(model)
    whole = {
        "draws": len(fits),
        "failed": sum(fit.model is None for fit in fits),
        "converged": sum(bool(fit.converged) for fit in fits),
        "noise": "" if model is None else rounded(noise_deviation(model)),
        "log_evidence": rounded(getattr(model, "log_evidence_", None)),
        "seconds": rounded(float(np.mean([fit.seconds for fit in fits]))),
        "reason": next((fit.reason for fit in fits if fit.reason), ""),
    }
    for j, score in enumerate(scores):
        one = j < len(KINDS)
        yield {
            "method": entry.name,
            "input": j + 1 if one else "all",
            "effect": KINDS[j] if one else "",
            **{name: rounded(value) for name, value in score._asdict().items()},
            "rmse_median": rounded(float(np.median(errors[:, j]))),
            "lowest_rmse": int(lowest[j]),
            **(inputs[j] if one else {"clear": "", "scale": ""}),
            **(dict.fromkeys(whole, "") if one else whole),
        }


def _inputs(model: Any) -> list[dict[str, Any]]:
    """Return, per input, the number of weights that exclude 0 and the prior scale, if the model is a network."""
    rows: list[dict[str, Any]] = [{"clear": "", "scale": ""} for _ in KINDS]
    if is_network(model):
        found = marginals(model)
        counts = excludes_zero(found["weights"], found["weights_std"]).sum(axis=0)
        scales = np.exp(0.5 * found["scales"])
        for j, row in enumerate(rows):
            row["clear"] = int(counts[j])
            row["scale"] = rounded(float(scales[j])) if len(scales) >= len(KINDS) else ""
    return rows
