"""Scores of methods with several seeds on the standard splits of a data set.

Every method is fitted with every seed on every split. The score of a fit is modelled as x_sk = m + a_s + e_sk, with
independent effects of the split s and of the seed k on it. The variance of e is the mean over splits of the variance
over seeds (ddof 1). That of a is the variance over splits of the means over seeds (ddof 1), without the part of e, and
at least 0. This is the analysis of variance of one random factor.

Bouthillier and others (2021) compare such sources of variance of benchmarks, seeds and data among them.

A part of the computation is one fit; an interrupted run continues with the parts that are missing.
"""

from __future__ import annotations

import time
import warnings
import zlib
from collections.abc import Iterator
from typing import Annotated, Any

import numpy as np
from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from ep_bench import data
from ep_bench.experiments import checkpoints
from ep_bench.experiments.dataset_entries import DatasetEntry, RegressionSets
from ep_bench.experiments.failed_fits import reason_of
from ep_bench.experiments.method_entries import SCORES, AnyMethod, distinct_names, score_prediction
from ep_bench.types import Array, SplitScheme


def _default_methods() -> tuple[AnyMethod, ...]:
    return (AnyMethod(use="pbp", label="PBP-1"),)


class Config(BaseModel):
    """Options of the experiment."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    datasets: RegressionSets = Field(
        ("boston", "yacht"), min_length=1, validate_default=True, description="regression data sets"
    )
    methods: Annotated[tuple[AnyMethod, ...], AfterValidator(distinct_names)] = Field(
        default_factory=_default_methods,
        min_length=1,
        description="method entries as in a study: use, label and options, without a search for options",
    )
    splits: int = Field(20, ge=2, le=20, description="standard splits, the first ones of the data set")
    seeds: int = Field(5, ge=2, description="seeds per split, different ones on each split")


def compute(config: Config, seed: int) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return the scores of all fits, and one summary row per data set, method and score.

    ``rmse`` (original units) and ``ll`` (nats) (D, M, S, K), NaN for fits that failed; ``seconds`` (D, M, S, K), CPU
    time of fit and prediction; ``datasets`` (D,) and ``labels`` (M,) their names; ``failures`` one text per fit that
    failed.
    """
    shape = (len(config.datasets), len(config.methods), config.splits, config.seeds)
    calls = [
        (dataset.to_json(), entry.model_dump_json(), split, seed + place)
        for dataset in config.datasets
        for entry in config.methods
        for split in range(config.splits)
        for place in range(config.seeds)
    ]
    found = checkpoints.each(fit, calls, lost=_lost)
    arrays: dict[str, Any] = {
        key: np.array([run[key] for run in found], dtype=float).reshape(shape) for key in (*SCORES, "seconds")
    }
    for key, named in (("datasets", config.datasets), ("labels", config.methods)):
        arrays[key] = np.array([entry.name for entry in named])
    arrays["failures"] = np.array([run["failure"] for run in found if run["failure"]], dtype=str)
    return arrays, list(_summary(arrays))


def fit(named: Any, entry: str, split: int, seed: int) -> dict[str, Any]:
    """Return RMSE, mean test log-likelihood and CPU seconds of one fit, NaN and the reason if it fails."""
    method = AnyMethod.model_validate_json(entry)
    dataset = DatasetEntry.model_validate(named).load(constant_inputs="paper" if named == "naval" else "zero")
    part = data.make_split(SplitScheme("standard"), dataset, split)
    scores, failure, started = dict.fromkeys(SCORES, float("nan")), "", time.process_time()
    try:
        method.warm_up()
        started = time.process_time()
        model = method.build(_random_seed(dataset.name, split, seed))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the report of a study states convergence
            model.fit(dataset.X[part.train], dataset.y[part.train])
        scores = score_prediction(model.predict_dist(dataset.X[part.test]), dataset.y[part.test])
    except (Exception, SystemExit) as error:  # noqa: BLE001 a failed fit is a result
        failure = f"{method.name} on {dataset.name}, split {split}, seed {seed}: {reason_of(error)}"
    return scores | {"seconds": time.process_time() - started, "failure": failure}


def _lost(call: tuple[Any, ...], reason: str) -> dict[str, Any]:
    """Return the scores of a fit whose process ended: none."""
    named, entry, split, seed = call
    method, dataset = AnyMethod.model_validate_json(entry), DatasetEntry.model_validate(named)
    where = f"{method.name} on {dataset.name}, split {split}, seed {seed}"
    return dict.fromkeys((*SCORES, "seconds"), float("nan")) | {"failure": f"{where}: {reason}"}


def _random_seed(name: str, split: int, seed: int) -> int:
    return int(np.random.default_rng([seed, zlib.crc32(name.encode()), split]).integers(2**31))


def _summary(arrays: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield one row per data set, method and score, from the splits on which all fits succeeded."""
    for i, name in enumerate(arrays["datasets"]):
        for j, label in enumerate(arrays["labels"]):
            seconds = round(float(np.mean(arrays["seconds"][i, j])), 4)
            for score in SCORES:
                values = arrays[score][i, j]
                values = values[np.isfinite(values).all(axis=1)]
                numbers = spread(values) if len(values) > 1 else {}
                row: dict[str, Any] = {"dataset": str(name), "method": str(label), "score": score}
                row |= {key: round(number, 6) for key, number in numbers.items()}
                yield row | {"splits": len(values), "seeds": values.shape[1], "seconds": seconds}


def spread(values: Array) -> dict[str, float]:
    """Return mean and standard deviations of scores (S, K) of S splits with K seeds each.

    ``stderr`` is the standard error of the mean over splits with one seed each, ``seed_std`` the standard
    deviation over seeds on one split, ``split_std`` that over splits without the effect of seeds,
    ``seed_fraction`` the fraction of the variance of single fits that is due to the seed. ``lowest_mean`` and
    ``highest_mean`` are the extremes over seeds of the mean over splits.
    """
    splits, seeds = values.shape
    within = float(values.var(axis=1, ddof=1).mean())
    between = max(float(values.mean(axis=1).var(ddof=1)) - within / seeds, 0.0)
    total, means = within + between, values.mean(axis=0)
    return {
        "mean": float(values.mean()),
        "stderr": float(np.sqrt(total / splits)),
        "seed_std": float(np.sqrt(within)),
        "split_std": float(np.sqrt(between)),
        "seed_fraction": within / total if total > 0.0 else 0.0,
        "lowest_mean": float(means.min()),
        "highest_mean": float(means.max()),
    }
