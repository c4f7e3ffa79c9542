"""The log evidence of two contradicting observations over two hyperparameters (figure 4).

For both examples of ``conflict_examples``, the log evidence is computed over a grid of lengthscales and magnitudes,
with nu and sigma fixed: by expectation propagation with the powers 1 and 0.5 of the likelihood, and by annealed
importance sampling, whose errors are small and known. For each value of EP, the arrays also record whether sequential
sweeps with damping 0.8 converge. The value is NaN if the robust scheme finds no solution. The hyperparameters of
highest evidence (crosses and rings in the paper) are found by a search.

Deviation: the examples are ours. nu and sigma are those of highest density by EP, rounded; nu of example 2 is at its
lower limit.
"""

from __future__ import annotations

import math
from itertools import islice
from typing import Annotated, Any

import numpy as np
from pydantic import Field, PositiveFloat, PositiveInt

from ep_bench.estimator import Estimator
from ep_bench.experiments.gp_t_2011 import EXAMPLES
from ep_bench.experiments.gp_t_2011.conflict_examples import Example, ExampleHyperparameters, covariances, example
from ep_bench.experiments.method_entries import Options, short
from ep_bench.methods.gp_t import annealing, ep, sweeps
from ep_bench.methods.gp_t.sites import SiteModel, empty
from ep_bench.types import Array

DAMPING = 0.8
SWEEPS, CLOSE = 100, 1e-4  # maximum of sequential sweeps; the paper's tolerance
STARTS = 5  # starting points of the searches for the highest evidence

Power = Annotated[float, Field(gt=0, le=1)]
Range = tuple[PositiveFloat, PositiveFloat]


class Noise(Options):
    """The parameters of an example's likelihood."""

    scale: PositiveFloat
    nu: PositiveFloat


class Config(Options):
    """Options of the experiment."""

    fractions: tuple[Power, ...] = Field(
        (1.0, 0.5), min_length=1, max_length=2, description="powers eta of the likelihood (figure 4: 1 and 0.5)"
    )
    noise: tuple[Noise, Noise] = Field(
        (Noise(scale=0.095, nu=1.2), Noise(scale=0.0465, nu=1.0)), description="likelihoods of examples 1 and 2; ours"
    )
    lengthscales: Range = Field((0.4, 4.0), description="range of the grid; ours")
    magnitudes: Range = Field((0.3, 30.0), description="range of the grid, variances; ours")
    points: tuple[PositiveInt, PositiveInt] = Field((17, 17), description="lengthscales and magnitudes; ours")
    runs: int = Field(500, ge=2, description="runs of annealed importance sampling per point; ours")
    temperatures: PositiveInt = Field(200, description="temperatures per run; ours")


def compute(config: Config, seed: int) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return the arrays of the figure, and one summary row per example and power.

    ``lengthscales`` (L,), ``magnitudes`` (M,), ``fractions`` (F,). For example e: ``annealed_<e>`` and its standard
    error ``error_<e>`` (M, L), nats. For power i of the likelihood: ``evidence_<e>_<i>`` (M, L), NaN without a
    solution; ``swept_<e>_<i>`` (M, L), whether sequential sweeps converge; ``mode_<e>_<i>`` (2,), lengthscale and
    magnitude of the highest evidence, NaN if the search fails.
    """
    axes = [
        np.geomspace(*ends, n) for ends, n in zip((config.lengthscales, config.magnitudes), config.points, strict=True)
    ]
    arrays: dict[str, Any] = {
        "lengthscales": axes[0], "magnitudes": axes[1], "fractions": np.array(config.fractions),
    }  # fmt: skip
    summary = []
    for number, noise, rng in zip(
        EXAMPLES, config.noise, np.random.default_rng(seed).spawn(len(EXAMPLES)), strict=True
    ):
        data = example(number)
        grid = [[ExampleHyperparameters(length, size, noise.scale, noise.nu) for length in axes[0]] for size in axes[1]]
        annealed = np.array([[_annealed(data, hyper, config, rng) for hyper in row] for row in grid])
        arrays |= {f"annealed_{number}": annealed[:, :, 0], f"error_{number}": annealed[:, :, 1]}
        for i, eta in enumerate(config.fractions):
            evidence = np.array([[solved(data, hyper, eta) for hyper in row] for row in grid])
            swept = np.array([[sweeps_converge(data, hyper, eta) for hyper in row] for row in grid])
            mode = _mode(data, noise, eta, seed)
            arrays |= {f"evidence_{number}_{i}": evidence, f"swept_{number}_{i}": swept, f"mode_{number}_{i}": mode}
            row = _row(evidence, swept, annealed[:, :, 0], mode)
            summary.append({"example": number, "eta": eta, **row, "largest_error": short(annealed[:, :, 1].max())})
    return arrays, summary


def solved(data: Example, hyper: ExampleHyperparameters, eta: float) -> float:
    """Return the log evidence by the robust scheme, NaN if it finds no solution."""
    try:
        return ep.infer(covariances(data.x, hyper), data.y, hyper.nu, hyper.scale, eta, DAMPING).log_evidence
    except FloatingPointError:
        return math.nan


def sweeps_converge(data: Example, hyper: ExampleHyperparameters, eta: float) -> bool:
    """Return whether damped sequential sweeps from empty sites converge."""
    model = SiteModel(covariances(data.x, hyper), data.y, hyper.nu, hyper.scale, eta)
    states = islice(sweeps.sequential(model, empty(model), DAMPING), SWEEPS)
    return any(now.mismatch < CLOSE for now in states)


def _annealed(
    data: Example, hyper: ExampleHyperparameters, config: Config, rng: np.random.Generator
) -> tuple[float, float]:
    K = covariances(data.x, hyper)
    found = annealing.log_evidence(
        K, data.y, hyper.nu, hyper.scale, rng, runs=config.runs, temperatures=config.temperatures
    )
    return found.log_evidence, found.error


def _mode(data: Example, noise: Noise, eta: float, seed: int) -> Array:
    """Return lengthscale and magnitude of the highest evidence."""
    options = {"fraction": eta, "prior": "none", "starts": STARTS, "standardize": False, "random_state": seed}
    try:
        model = Estimator("gp_t", scale=noise.scale, nu=noise.nu, **options).fit(data.x[:, None], data.y)
    except FloatingPointError:
        return np.full(2, np.nan)
    found = model.hyperparameters_
    return np.array([np.ravel(found[name])[0] for name in ("lengthscale", "magnitude")])


def _row(evidence: Array, swept: Array, annealed: Array, mode: Array) -> dict[str, Any]:
    """Return errors against annealed importance sampling (nats), and the numbers of points with a failure."""
    known = np.isfinite(evidence)
    errors = (evidence - annealed)[known]
    return {
        "mean_absolute_error": short(np.abs(errors).mean()) if known.any() else "",
        "mean_error": short(errors.mean()) if known.any() else "",
        "points": evidence.size,
        "without_solution": int((~known).sum()),
        "sweeps_not_converged": int(swept.size - swept.sum()),
        "lengthscale": short(mode[0]),
        "magnitude": short(mode[1]),
    }
