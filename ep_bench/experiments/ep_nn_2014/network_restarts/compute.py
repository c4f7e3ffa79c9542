"""Expectation propagation for networks from many random starts: convergence, and spread of the results.

All fits use the training data of one standard split and differ only in their seed, which determines the order of the
data points. For each fit, root mean squared error and mean log density on the test data, log evidence, sweeps, last
relative step and seconds are recorded. A fit without a proper posterior is failed; scores and log evidences that are
not finite are counted. Any other error ends the experiment.

Restart r of a data set has the seed ``seed + r``, so that a longer run starts with the fits of a shorter one. An
interrupted run continues after its finished fits.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from pydantic import Field, PositiveInt

from ep_bench import data
from ep_bench.experiments.dataset_entries import SetName
from ep_bench.experiments.ep_nn_2014.network_fits import NetworkFit, fitted, rounded
from ep_bench.experiments.method_entries import ExperimentMethod, Options
from ep_bench.types import Array

MEASURES = ("rmse", "ll", "log_evidence", "sweeps", "step", "seconds", "converged")  # of each fit, in this order


class RestartedDataset(Options):
    """A data set, and the number of fits per method."""

    name: SetName
    restarts: PositiveInt = 50


class Config(Options):
    """Options of the experiment."""

    datasets: tuple[RestartedDataset, ...] = Field(
        tuple(RestartedDataset(name=name) for name in ("boston", "yacht", "concrete", "energy", "wine")),
        min_length=1,
        description="regression data sets with their numbers of restarts; ours",
    )
    methods: tuple[ExperimentMethod, ...] = Field(
        (
            ExperimentMethod.named("ep_nn", "NN-EP-LA", prior="laplace"),
            ExperimentMethod.named("ep_nn", "NN-EP-ARD", prior="ard"),
        ),
        min_length=1,
        max_length=4,
        description="method entries as in a study: use, label and options",
    )
    split: int = Field(0, ge=0, description="index of the standard split")


def calls(config: Config, seed: int) -> list[tuple[Any, ...]]:
    """Return the arguments of ``part``, by data set, method and restart."""
    return [
        (entry.to_json(), dataset.name, config.split, seed + restart)
        for dataset in config.datasets
        for entry in config.methods
        for restart in range(dataset.restarts)
    ]


def combine(
    config: Config,
    seed: int,  # noqa: ARG001 part of the calls
    values: Sequence[Any],
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return the arrays of the figure, and one summary row per data set and method.

    ``labels`` (M,) and ``datasets`` (D,) name the methods and the data sets. ``measures`` (7,) name the second axis of
    ``found_<i>`` (M, 7, R) for data set i: scores in original units, log evidence in nats; NaN if a fit failed.
    """
    labels, names = [entry.name for entry in config.methods], [part.name for part in config.datasets]
    arrays: dict[str, Any] = {"labels": np.array(labels), "datasets": np.array(names), "measures": np.array(MEASURES)}
    fits = iter(values)
    summary = []
    for i, part in enumerate(config.datasets):
        found = np.empty((len(labels), len(MEASURES), part.restarts))
        for j, label in enumerate(labels):
            measures, reasons = zip(*(next(fits) for _ in range(part.restarts)), strict=True)
            found[j] = np.array(measures).T
            summary.append({"dataset": part.name, "method": label, **summarise(found[j], list(reasons))})
        arrays[f"found_{i}"] = found
    return arrays, summary


def part(entry: dict[str, Any], dataset: str, split: int, seed: int) -> tuple[list[float], str]:
    """Return the measures (7,) of a fit, and the reason if it failed."""
    whole = data.load_dataset(dataset)
    train, test = data.standard_split(len(whole.y), split)
    fit = fitted(ExperimentMethod.of(entry), whole.X[train], whole.y[train], standardize=True, seed=seed)
    if fit.model is None:
        return [*[math.nan] * 5, fit.seconds, 0.0], fit.reason
    found = (
        *scores(fit, whole.X[test], whole.y[test]), getattr(fit.model, "log_evidence_", math.nan),
        getattr(fit.model, "n_iterations_", math.nan), last_step(fit), fit.seconds, bool(fit.converged),
    )  # fmt: skip
    return [float(value) for value in found], ""


def scores(fit: NetworkFit, X: Array, y: Array) -> tuple[float, float]:
    """Return root mean squared error and mean log density (nats) for X (n, d), y (n,); original units."""
    error = float(np.sqrt(np.mean((fit.model.predict(X) - y) ** 2)))
    return error, float(np.mean(fit.model.predict_dist(X).logpdf(y)))


def last_step(fit: NetworkFit) -> float:
    """Return the largest relative step of a group of sites in the last sweep, NaN for methods without sites."""
    steps = [values[-1] for name, values in fit.model.trace_.items() if name.startswith("step_")]
    return float(np.max(steps)) if steps else math.nan


def summarise(found: Array, reasons: list[str]) -> dict[str, Any]:
    """Return a summary of measures (7, R): counts, and quantiles over all fits that did not fail."""
    of = dict(zip(MEASURES, found, strict=True))
    failed = np.array([bool(reason) for reason in reasons])
    finite = np.isfinite([of[name] for name in ("rmse", "ll", "log_evidence")]).all(axis=0)
    row: dict[str, Any] = {
        "restarts": found.shape[1], "converged": int(of["converged"].sum()), "failed": int(failed.sum()),
        "non_finite": int(np.sum(~finite & ~failed)),
    }  # fmt: skip
    row |= {f"sweeps_{words}": quantile(of["sweeps"], q) for words, q in (("median", 0.5), ("most", 1.0))}
    row["step_most"] = quantile(of["step"], 1.0)
    for name in ("rmse", "ll", "log_evidence"):
        row |= {
            f"{name}_{words}": quantile(of[name], q) for words, q in (("least", 0.0), ("median", 0.5), ("most", 1.0))
        }
    row["ll_of_highest_evidence"] = rounded(of["ll"][np.nanargmax(of["log_evidence"])]) if finite.any() else ""
    return row | {"seconds": quantile(of["seconds"], 0.5), "reason": next(filter(None, reasons), "")}


def quantile(values: Array, q: float) -> float | str:
    """Return a quantile of the finite values, or an empty text if there are none."""
    known = values[np.isfinite(values)]
    return rounded(float(np.quantile(known, q))) if len(known) else ""
