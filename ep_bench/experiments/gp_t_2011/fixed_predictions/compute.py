"""Approximations at the same hyperparameters, compared with Markov chains (figure 5).

Chains over all data points determine the hyperparameters, which are then fixed (``posterior_means``). In 10-fold
cross-validation, every approximation, and chains that sample everything except the hyperparameters, predict the test
points: mean and standard deviation of the latent function, and density of the observation.

Deviation: inputs and target are standardised once, by all data points, so that the hyperparameters have the same
meaning in all folds.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from pydantic import Field, PositiveInt

from ep_bench import data
from ep_bench.estimator import Estimator, standardisation, warm_up
from ep_bench.experiments.dataset_entries import SetName
from ep_bench.experiments.gp_t_2011.posterior_means import ChainOptions, posterior_means
from ep_bench.experiments.method_entries import KnownNoiseMethod, Options
from ep_bench.types import Array, Rows, SplitScheme

COLUMNS = ("mean", "deviation", "log_density")


class Config(Options):
    """Options of the experiment."""

    dataset: SetName = Field("boston", description="name of the data set (figure 5: boston)")
    folds: int = Field(10, ge=2, description="folds of the cross-validation (section 6.1: 10)")
    chains: ChainOptions = Field(
        ChainOptions(), description="chains whose means of logarithms are the hyperparameters; ours"
    )
    methods: tuple[KnownNoiseMethod, ...] = Field(
        (
            KnownNoiseMethod.named("gp_t", "MCMC", inference="mcmc", chains=2, warmup=100, samples=1500, stored=600),
            KnownNoiseMethod.named("gp_t", "LA", inference="laplace"),
            KnownNoiseMethod.named("gp_t", "EP", inference="ep"),
            KnownNoiseMethod.named("gp_t", "fVB", inference="fvb"),
            KnownNoiseMethod.named("gp_t", "VB", inference="vb"),
        ),
        min_length=2,
        max_length=7,
        description="entries of gp_t; the first one is the reference (figure 5)",
    )
    rows: PositiveInt | None = Field(None, description="use only the first data points, for a quick trial")


def compute(config: Config, seed: int) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return the arrays of the figure, and one summary row per method.

    ``labels`` name the methods. For method i and each of N data points as a test point, in standardised units:
    ``mean_<i>`` and ``deviation_<i>`` (standard deviation) of the latent function, ``log_density_<i>`` of the
    observation; NaN if the method failed. ``hyperparameters`` (P,) are the fixed values of ``names`` (P,).
    """
    rows, dataset = _standardised(config)
    fixed, r_hat = posterior_means(rows, config.chains, seed)
    scheme = data.resolve_scheme(SplitScheme("kfold", folds=config.folds), dataset.card)
    folds = [data.make_split(scheme, dataset, index) for index in range(config.folds)]
    arrays: dict[str, Any] = {"labels": np.array([entry.name for entry in config.methods]), **_named(fixed)}
    summary: list[dict[str, Any]] = []
    reference: Array | None = None
    for i, entry in enumerate(config.methods):
        found = np.full((len(COLUMNS), len(rows.y)), np.nan)
        seconds, mixing, reasons = 0.0, [np.nan], []
        options = {**entry.options(1.0), **fixed, "optimize": False, "standardize": False}
        warm_up(entry.use, options)
        for fold in folds:
            started = time.perf_counter()
            try:
                found[:, fold.test], own = _predicted(entry.use, options, rows, fold.train, fold.test, seed)
                mixing.append(own)
            except FloatingPointError as error:
                reasons.append(str(error))
            seconds += time.perf_counter() - started
        reference = found if reference is None else reference
        arrays |= {f"{name}_{i}": values for name, values in zip(COLUMNS, found, strict=True)}
        summary.append({
            "method": entry.name, **_distance(found, reference), "seconds": round(seconds, 3), "failed": len(reasons),
            "r_hat": round(float(np.fmax.reduce(mixing)), 4), "r_hat_of_hyperparameters": round(r_hat, 4),
            "reason": reasons[0] if reasons else "",
        })  # fmt: skip
    return arrays, summary


def _standardised(config: Config) -> tuple[Rows, Any]:
    whole = data.load_dataset(config.dataset)
    if config.rows is not None:
        from dataclasses import replace

        whole = replace(whole, X=whole.X[: config.rows], y=whole.y[: config.rows])
    scaling, of_target = standardisation(whole.X, whole.y)
    return Rows(scaling.apply(whole.X), of_target.apply(whole.y[:, None])[:, 0]), whole


def _predicted(use: str, options: dict[str, Any], rows: Rows, train: Any, test: Any, seed: int) -> tuple[Array, float]:
    """Return means and standard deviations of f and log densities of y (3, n) at the test points, and R-hat.

    R-hat is that of a sampler's predictions, NaN for other methods.
    """
    model = Estimator(use, **options, random_state=seed).fit(rows.X[train], rows.y[train])
    mean, variance = model.latent(rows.X[test])
    found = np.stack([mean, np.sqrt(variance), model.predict_dist(rows.X[test]).logpdf(rows.y[test])])
    return found, float(getattr(model, "diagnostics_", {}).get("r_hat_predictions", np.nan))


def _named(fixed: dict[str, Any]) -> dict[str, Any]:
    """Return names and values of the hyperparameters, one entry per scalar."""
    pairs = [(name, value) for name, values in fixed.items() for value in np.atleast_1d(values).tolist()]
    return {"names": np.array([name for name, _ in pairs]), "hyperparameters": np.array([value for _, value in pairs])}


def _distance(found: Array, reference: Array) -> dict[str, float]:
    """Return differences from the reference over the points that the method predicted; standardised units, nats.

    Root mean squared differences of means and of log densities, mean ratio of standard deviations, and mean log
    density.
    """
    known = np.isfinite(found).all(axis=0)
    if not known.any():
        return dict.fromkeys(("mean_rms", "deviation_ratio", "log_density_rms", "log_density"), float("nan"))
    own, other = found[:, known], reference[:, known]
    difference = own - other
    values = {
        "mean_rms": np.sqrt(np.mean(difference[0] ** 2)),
        "deviation_ratio": np.mean(own[1] / other[1]),
        "log_density_rms": np.sqrt(np.mean(difference[2] ** 2)),
        "log_density": np.mean(own[2]),
    }
    return {name: round(float(value), 6) for name, value in values.items()}
