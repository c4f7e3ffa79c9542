"""Two contradicting observations: the latent function between them by every approximation (figure 1).

Each method is fitted to the two examples of ``conflict_examples`` with its own hyperparameters. The result is the
regression, and the density of f(2), midway between the two observations. For a sampler, the density is the mean over
the draws of the density given each draw, with f integrated out; the draws include the hyperparameters. If a method
fails, the summary has the reason.

Deviation: the examples are ours. Priors are those of the options, by default flat as in the paper. Chains have the weak
priors, because under flat priors the posterior of such small data sets may be improper. Laplace's method has one
starting point: its evidence is unbounded where the curvature at the mode vanishes, and more starts find such points.
``kl`` is not among the paper's methods.
"""

from __future__ import annotations

import time
from typing import Any, NamedTuple

import numpy as np
from pydantic import Field

from ep_bench.estimator import Estimator, warm_up
from ep_bench.experiments import distribution_distances
from ep_bench.experiments.gp_t_2011 import EXAMPLES, MIDPOINT
from ep_bench.experiments.gp_t_2011.conflict_examples import example, truth
from ep_bench.experiments.method_entries import KnownNoiseMethod, Options
from ep_bench.methods.gp_t import sampling
from ep_bench.predictions import Predictive
from ep_bench.types import Array

MARGIN = 1.6  # of the grid of f(2) beyond the two observations, in the unit of y
FLAT: dict[str, Any] = {"use": "gp_t", "nu": "optimize", "prior": "none", "evidence_check": None}


def _entry(label: str, **options: Any) -> KnownNoiseMethod:
    return KnownNoiseMethod.model_validate({**FLAT, "label": label, **options})


class Config(Options):
    """Options of the experiment."""

    methods: tuple[KnownNoiseMethod, ...] = Field(
        (
            _entry("MCMC", inference="mcmc", prior="weak", chains=4, warmup=1000, samples=4000, stored=2000),
            _entry("EP", starts=5),
            _entry("EP, η = 0.5", fraction=0.5, starts=5),
            _entry("LA", inference="laplace"),
            _entry("VB", inference="vb", starts=5),
            _entry("fVB", inference="fvb"),
            _entry("KL", inference="kl"),
        ),
        min_length=1,
        max_length=8,
        description="method entries as in a study; the first one is the reference (figure 1)",
    )
    bands: tuple[str, ...] = Field(
        ("EP", "EP, η = 0.5"), max_length=2, description="labels of the methods whose regression is drawn (figure 1)"
    )
    points: int = Field(241, ge=3, description="points of the grids of inputs and of f(2)")


class LatentMixture(NamedTuple):
    """A mixture of S Gaussians for f at each of n inputs."""

    weights: Array  # (S,)
    means: Array  # (S, n)
    variances: Array  # (S, n)

    def density(self, f: Array, at: int) -> Array:
        """Return the density (G,) at the values f (G,), for the input with index ``at``."""
        mean, variance = self.means[:, at, None], self.variances[:, at, None]
        heights = np.exp(-0.5 * (f - mean) ** 2 / variance) / np.sqrt(2.0 * np.pi * variance)
        return np.asarray(self.weights @ heights)


def compute(config: Config, seed: int) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return the arrays of the figure, and one summary row per example and method.

    ``labels`` (M,) name the methods; ``bands`` (M,): whether their regression is drawn. For example e: ``x_<e>`` and
    ``y_<e>`` (n,), with the contradicting pair first; ``grid_<e>`` and ``truth_<e>`` (G,) over inputs; ``latent_<e>``
    (G,), values of f(2). For method i: ``mean_<e>_<i>`` and ``std_<e>_<i>`` (G,) of f over inputs, and
    ``density_<e>_<i>`` (G,) of f(2), NaN if the method failed.
    """
    labels = [entry.name for entry in config.methods]
    arrays: dict[str, Any] = {"labels": np.array(labels), "bands": np.array([name in config.bands for name in labels])}
    summary = []
    for number in EXAMPLES:
        data = example(number)
        grid = np.linspace(data.x.min(), data.x.max(), config.points)
        f = np.linspace(data.y[:2].min() - MARGIN, data.y[:2].max() + MARGIN, config.points)
        arrays |= {f"x_{number}": data.x, f"y_{number}": data.y, f"grid_{number}": grid, f"latent_{number}": f}
        arrays[f"truth_{number}"] = truth(number, grid)
        reference: LatentMixture | None = None
        for i, entry in enumerate(config.methods):
            row, latent = _fitted(entry, data.x, data.y, np.append(grid, MIDPOINT), seed)
            reference = latent if i == 0 else reference
            arrays |= {f"{name}_{number}_{i}": values for name, values in _curves(latent, f).items()}
            summary.append({"example": number, "method": entry.name, **_summary(latent, reference), **row})
    return arrays, summary


def latent_of(model: Any, X: Array) -> LatentMixture:
    """Return the distribution of f at inputs X (n, d) by a fitted model, in its own units."""
    if isinstance(model.state_, sampling.Draws):
        means, variances = sampling.latents(model.state_, X)
        return LatentMixture(np.full(len(means), 1.0 / len(means)), means, variances)
    mean, variance = model.latent(X)
    return LatentMixture(np.ones(1), mean[None], variance[None])


def _fitted(
    entry: KnownNoiseMethod, x: Array, y: Array, at: Array, seed: int
) -> tuple[dict[str, Any], LatentMixture | None]:
    """Return hyperparameters, evidence and seconds of a fit, and its latent function.

    If the fit fails, the row has the reason, and the latent function is None.
    """
    options = {**entry.options(1.0), "standardize": False}
    warm_up(entry.use, options)
    started = time.perf_counter()
    empty = dict.fromkeys(("lengthscale", "magnitude", "scale", "nu", "log_evidence", "r_hat"), "")
    try:
        model = Estimator(entry.use, **options, random_state=seed).fit(x[:, None], y)
    except FloatingPointError as error:
        return {**empty, "seconds": _rounded(time.perf_counter() - started), "reason": str(error)}, None
    seconds = time.perf_counter() - started
    values: dict[str, Any] = {name: _rounded(value) for name, value in model.hyperparameters_.items()}
    values["log_evidence"] = _rounded(model.log_evidence_) if hasattr(model, "log_evidence_") else ""
    values["r_hat"] = _rounded(_r_hat(model)) if isinstance(model.state_, sampling.Draws) else ""
    return {**empty, **values, "seconds": _rounded(seconds), "reason": ""}, latent_of(model, at[:, None])


def _r_hat(model: Any) -> float:
    """Return the largest R-hat of a sampler's f(2) and hyperparameters."""
    of_fit = (value for name, value in model.diagnostics_.items() if name.startswith("r_hat_"))
    at_midpoint = model.diagnose(np.array([[MIDPOINT]]))["r_hat_predictions"]
    return max(float(r_hat) for r_hat in [at_midpoint, *of_fit])


def _curves(latent: LatentMixture | None, f: Array) -> dict[str, Array]:
    """Return mean and standard deviation of f over the inputs, and the density of f(2), the last input."""
    if latent is None:
        return dict.fromkeys(("mean", "std", "density"), np.full(len(f), np.nan))
    mean = latent.weights @ latent.means
    variance = latent.weights @ (latent.variances + (latent.means - mean) ** 2)
    return {"mean": mean[:-1], "std": np.sqrt(variance[:-1]), "density": latent.density(f, -1)}


def _summary(latent: LatentMixture | None, reference: LatentMixture | None) -> dict[str, Any]:
    """Return mean and standard deviation of f(2), and its 1-Wasserstein distance from the reference."""
    if latent is None:
        return {"mean": "", "deviation": "", "distance": ""}
    own = _at_last_input(latent)
    summary = {"mean": _rounded(own.mean()[0]), "deviation": _rounded(own.std()[0]), "distance": ""}
    if reference is not None:
        tables = (distribution_distances.tabulate(one) for one in (own, _at_last_input(reference)))
        summary["distance"] = _rounded(distribution_distances.compare(*tables).wasserstein[0])
    return summary


def _at_last_input(latent: LatentMixture) -> Predictive:
    return Predictive(latent.weights, latent.means[:, -1:], latent.variances[:, -1:])


def _rounded(value: Any) -> float:
    return float(f"{float(np.ravel(value)[0]):.5g}")
