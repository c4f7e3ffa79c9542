"""Times of inference at the same 28 hyperparameters (table 1, third row).

For each data set there are 28 configurations: the posterior means of Markov chains over its training data
(``posterior_means``), and all combinations of three values each of nu, sigma and the standard deviation sigma_se of the
latent function around them, with random lengthscales. A time includes the inference only. A configuration at which any
method finds no solution is excluded for all methods; the summary counts these.

Deviation: the paper does not state its "clearly different" values; ours are ratios to the means. Of its four data sets,
concrete quality is not public.
"""

from __future__ import annotations

import itertools
import time
from typing import Any

import numpy as np
from pydantic import Field, PositiveFloat

from ep_bench import data
from ep_bench.covariances.hyperparameters import LIMITS
from ep_bench.estimator import Estimator, standardisation, warm_up
from ep_bench.experiments.dataset_entries import SetName
from ep_bench.experiments.gp_t_2011.posterior_means import ChainOptions, posterior_means
from ep_bench.experiments.method_entries import KnownNoiseMethod, Options, short
from ep_bench.types import Rows, SplitScheme

Triple = tuple[PositiveFloat, PositiveFloat, PositiveFloat]


class TimedDataset(Options):
    """A data set, and the scheme whose first split provides the training data."""

    name: SetName
    scheme: str = Field("kfold", pattern="^(kfold|holdout|standard)$")
    folds: int | None = Field(None, ge=2)


class Config(Options):
    """Options of the experiment."""

    datasets: tuple[TimedDataset, ...] = Field(
        (
            TimedDataset(name="friedman-outliers", scheme="holdout"),
            TimedDataset(name="boston", folds=10),
            TimedDataset(name="concrete", folds=2),
        ),
        min_length=1,
        description="data sets (section 6: Friedman, boston, concrete quality, compressive strength)",
    )
    methods: tuple[KnownNoiseMethod, ...] = Field(
        (
            KnownNoiseMethod.named("gp_t", "LA1", inference="laplace"),
            KnownNoiseMethod.named("gp", "GA"),
            KnownNoiseMethod.named("gp_t", "EP1", inference="ep"),
            KnownNoiseMethod.named("gp_t", "fVB1", inference="fvb"),
            KnownNoiseMethod.named("gp_t", "VB1", inference="vb"),
        ),
        min_length=2,
        description="method entries; times are relative to the first (table 1)",
    )
    chains: ChainOptions = Field(
        ChainOptions(warmup=150, samples=150),
        description="chains whose means of logarithms are the posterior means; ours",
    )
    nu: Triple = Field((0.5, 1.0, 2.0), description="ratios to the posterior mean; ours")
    scale: Triple = Field((0.5, 1.0, 2.0), description="ratios to the posterior mean; ours")
    sigma_se: Triple = Field((0.5, 1.0, 2.0), description="ratios to the posterior mean of sigma_se; ours")
    spread: float = Field(
        1.0, ge=0.0, description="standard deviation of the logarithms of random lengthscales around sqrt(inputs); ours"
    )


def compute(config: Config, seed: int) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return the arrays of the figure, and one summary row per data set and method.

    ``labels`` (M,) and ``datasets`` (D,) name the methods and the data sets; ``seconds`` (D, M, C) are the times of
    inference at each of the C configurations, NaN without a solution.
    """
    seconds, summary = [], []
    rng = np.random.default_rng(seed)
    for part in config.datasets:
        rows = _training(part)
        fixed, r_hat = posterior_means(rows, config.chains, seed)
        configurations = configurations_around(fixed, config, rows.X.shape[1], rng)
        found = np.array([[_timed(entry, rows, one, seed) for one in configurations] for entry in config.methods])
        seconds.append(found)
        solved = np.flatnonzero(np.isfinite(found).all(axis=0))
        means = found[:, solved].mean(axis=1) if len(solved) else np.full(len(found), np.nan)
        summary += [
            {
                "dataset": part.name, "method": entry.name, "rows": len(rows.y), "seconds": short(mean),
                "relative": short(mean / means[0]), "configurations": len(solved),
                "without_solution": int(np.isnan(times).sum()), "r_hat": round(r_hat, 4),
            }
            for entry, times, mean in zip(config.methods, found, means.tolist(), strict=True)
        ]  # fmt: skip
    labels, names = [entry.name for entry in config.methods], [part.name for part in config.datasets]
    return {"labels": np.array(labels), "datasets": np.array(names), "seconds": np.array(seconds)}, summary


def configurations_around(
    mean: dict[str, Any], config: Config, d: int, rng: np.random.Generator
) -> list[dict[str, Any]]:
    """Return the posterior mean and the 27 configurations around it, each with d lengthscales."""
    found = [mean]
    for nu, scale, sigma_se in itertools.product(config.nu, config.scale, config.sigma_se):
        lengthscales = np.sqrt(d) * np.exp(config.spread * rng.standard_normal(d))
        found.append({
            "lengthscale": tuple(lengthscales.tolist()),
            "magnitude": mean["magnitude"] * sigma_se**2,
            "scale": mean["scale"] * scale,
            "nu": max(mean["nu"] * nu, LIMITS["nu"][0]),
        })  # fmt: skip
    return found


def _training(part: TimedDataset) -> Rows:
    """Return the standardised training data of the first split."""
    whole = data.load_dataset(part.name)
    scheme = data.resolve_scheme(SplitScheme(part.scheme, folds=part.folds), whole.card)  # type: ignore[arg-type]
    train = data.make_split(scheme, whole, 0).train
    scaling, of_target = standardisation(whole.X[train], whole.y[train])
    return Rows(scaling.apply(whole.X[train]), of_target.apply(whole.y[train][:, None])[:, 0])


def _timed(entry: KnownNoiseMethod, rows: Rows, fixed: dict[str, Any], seed: int) -> float:
    """Return the seconds of one inference, NaN without a solution."""
    options = {**entry.options(1.0), **fixed, "optimize": False, "standardize": False}
    if entry.use == "gp":
        options["noise_variance"] = options.pop("scale") ** 2
        del options["nu"]
    warm_up(entry.use, options)
    model = Estimator(entry.use, **options, random_state=seed)
    started = time.perf_counter()
    try:
        model.fit(rows.X, rows.y)
    except FloatingPointError:
        return float("nan")
    return time.perf_counter() - started
