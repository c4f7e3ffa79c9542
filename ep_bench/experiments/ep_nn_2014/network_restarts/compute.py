"""Expectation propagation for networks from many random starts: how often it converges, how far apart it ends.

Fits to the training rows of standard split 0 that differ in nothing but their seed, the order in which rows are taken.
Kept of each are root mean squared error and mean log density on the test rows, log evidence, sweeps, the last relative
step and the seconds; a fit without a proper posterior is failed, a score or log evidence that is not finite is counted.
Any other error ends the experiment.

Restart r of a set has the seed + r, so that a longer run begins with the fits of a shorter one. A run that was cut
short goes on after the fits that it had.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, PositiveInt, field_validator

from ep_bench import data
from ep_bench.experiments import checkpoints
from ep_bench.experiments.ep_nn_2014.network_fits import NetworkFit, fitted, rounded
from ep_bench.experiments.method_entries import ExperimentMethod, refuse_unknown
from ep_bench.types import Array

MEASURES = ("rmse", "ll", "log_evidence", "sweeps", "step", "seconds", "converged")  # of a fit, in this order


class RestartedDataset(BaseModel):
    """A data set and how many fits of each method it has."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    restarts: PositiveInt = 50

    @field_validator("name")
    @classmethod
    def _known(cls, name: str) -> str:
        refuse_unknown("unknown data set", name, data.names())
        return name


def _entry(label: str, **options: Any) -> ExperimentMethod:
    return ExperimentMethod.model_validate({"use": "ep_nn", "label": label, **options})


class Config(BaseModel):
    """Options of the experiment."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    datasets: tuple[RestartedDataset, ...] = Field(
        tuple(RestartedDataset(name=name) for name in ("boston", "yacht", "concrete", "energy", "wine")),
        min_length=1,
        description="regression sets, each with its number of restarts; ours",
    )
    methods: tuple[ExperimentMethod, ...] = Field(
        (_entry("NN-EP-LA", prior="laplace"), _entry("NN-EP-ARD", prior="ard")),
        min_length=1,
        max_length=4,
        description="method entries as in a study: use, label and options",
    )
    split: int = Field(0, ge=0, description="of the standard splits")


def compute(config: Config, seed: int) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return the arrays of the figure and one summary row a data set and method.

    ``labels`` (M,) and ``datasets`` (D,) name both, ``measures`` (7,) the rows of ``found_<i>`` (M, 7, R) of data
    set i: scores in original units, log evidence in nats; NaN where a fit failed.
    """
    labels, names = [entry.name for entry in config.methods], [part.name for part in config.datasets]
    arrays: dict[str, Any] = {"labels": np.array(labels), "datasets": np.array(names), "measures": np.array(MEASURES)}
    calls = [
        (entry.to_json(), part.name, config.split, seed + restart)
        for part in config.datasets
        for entry in config.methods
        for restart in range(part.restarts)
    ]
    fits = iter(checkpoints.each(restarted, calls))
    summary = []
    for i, part in enumerate(config.datasets):
        found = np.empty((len(labels), len(MEASURES), part.restarts))
        for j, label in enumerate(labels):
            values, reasons = zip(*(next(fits) for _ in range(part.restarts)), strict=True)
            found[j] = np.array(values).T
            summary.append({"dataset": part.name, "method": label, **summarise(found[j], list(reasons))})
        arrays[f"found_{i}"] = found
    return arrays, summary


def restarted(entry: dict[str, Any], dataset: str, split: int, seed: int) -> tuple[list[float], str]:
    """Return the measures (7,) of a fit, and why there is none."""
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
    """Return root mean squared error and mean log density (nats) of rows X (n, d), y (n,); original units."""
    error = float(np.sqrt(np.mean((fit.model.predict(X) - y) ** 2)))
    return error, float(np.mean(fit.model.predict_dist(X).logpdf(y)))


def last_step(fit: NetworkFit) -> float:
    """Return the largest relative step of a group of sites in the last sweep, NaN of methods without sites."""
    steps = [values[-1] for name, values in fit.model.trace_.items() if name.startswith("step_")]
    return float(np.max(steps)) if steps else math.nan


def summarise(found: Array, reasons: list[str]) -> dict[str, Any]:
    """Return a summary of measures (7, R): counts, and quantiles of those that converged or not alike."""
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
    """Return a quantile of the finite values, nothing where there is none."""
    known = values[np.isfinite(values)]
    return rounded(float(np.quantile(known, q))) if len(known) else ""
