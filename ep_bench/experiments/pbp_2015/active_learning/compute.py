"""Active learning (Hernandez-Lobato and Adams 2015, section 5.4, table 2 and figure 2).

Each repetition divides a data set at random into training, test and pool points, the same for all methods. A method is
fitted and scored; then one point of the pool is moved to the training points, and the method is fitted again from
scratch. The point has the highest acquisition, or is the next one of a random order that all methods share. A target
of the pool is not used before its point is moved. Inputs and targets are standardised by the current training points.

A part of the computation is one method on one repetition of one data set; an interrupted run continues with the parts
that are missing.

Deviation: the paper does not state the priors of HMC, the settings of EP, or how ties are broken. Points of the pool
with equal acquisition are taken in its random order. A constant input is 0 after standardisation.
"""

from __future__ import annotations

import itertools
import math
import time
import warnings
import zlib
from collections.abc import Iterator, Sequence
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import AfterValidator, Field, ValidationInfo, field_validator

from ep_bench import data
from ep_bench.errors import Failure, UserError
from ep_bench.experiments.dataset_entries import RegressionSets
from ep_bench.experiments.method_entries import SCORES, AnyMethod, Options, distinct_names, score_prediction
from ep_bench.experiments.pbp_2015.active_learning.acquisition import UnsuitableAcquisitionError, values_of
from ep_bench.types import Array

SETS = ("boston", "concrete", "energy", "kin8nm", "naval", "power", "protein", "wine", "yacht")


class Learner(AnyMethod):
    """A method entry as in a study, external classes included, with the rule by which it chooses points."""

    acquisition: Literal["variance", "random", "mutual_information"] = Field(
        "variance",
        description="variance: the point with the largest predictive variance; random; mutual_information: the most "
        "informative point",
    )


def _paper() -> tuple[Learner, ...]:
    """Return the eight entries of table 2, with the names of its columns."""
    options: dict[str, dict[str, Any]] = {
        "PBP": {"use": "pbp", "hidden": [10], "epochs": 40},
        "HMC": {
            "use": "hmc",
            "hidden": [10],
            "chains": 2,
            "warmup": 250,
            "samples": 250,
            "steps": 100,
            "masses": "per weight",
        },
        "EP": {"use": "ep_nn", "hidden": [10]},
        "LA": {"use": "laplace", "hidden": [10], "hessian": "diag", "activation": "tanh"},
    }
    rules = (("R", "random"), ("A", "variance"))
    return tuple(
        Learner.model_validate({**entry, "label": f"{name}-{letter}", "acquisition": rule})
        for name, entry in options.items()
        for letter, rule in rules
    )


class Config(Options):
    """Options of the experiment."""

    datasets: RegressionSets = Field(
        SETS, min_length=1, validate_default=True, description="regression data sets; section 5.4: these nine"
    )
    methods: Annotated[tuple[Learner, ...], AfterValidator(distinct_names)] = Field(
        default_factory=_paper,
        min_length=1,
        description="method entries as in a study: use, label, acquisition and options; section 5.4: PBP, HMC, EP and "
        "LA with ten hidden units, each actively (-A) and at random (-R)",
    )
    train: int = Field(20, ge=2, validate_default=True, description="training points at the start; section 5.4: 20")
    test: int = Field(100, ge=1, validate_default=True, description="test points; section 5.4: 100")
    additions: int = Field(
        9, ge=1, validate_default=True, description="points moved from the pool to the training points; section 5.4: 9"
    )
    repetitions: int = Field(40, ge=1, description="repetitions, each with its own random division; section 5.4: 40")

    @field_validator("train", "test", "additions")
    @classmethod
    def _refuse_small_sets(cls, value: int, info: ValidationInfo) -> int:
        """Raise ValueError at the first size with which a data set has too few points."""
        sizes: dict[str, int] = {name: info.data[name] for name in ("train", "test", "additions") if name in info.data}
        sizes[str(info.field_name)] = value
        for name in info.data.get("datasets", ()):
            if (needed := sum(sizes.values())) > (count := data.card(name).n):
                names = " and ".join(", ".join(sizes).rsplit(", ", 1))
                verb = "need" if len(sizes) > 1 else "needs"
                raise ValueError(f"{name} has {count} data points; {names} {verb} {needed}")
        return value


IndexArray = NDArray[np.int64]


class Sizes(NamedTuple):
    """Numbers of points, without the pool."""

    train: int
    test: int
    additions: int


class Division(NamedTuple):
    """Indices of the points of one repetition; the pool is in random order."""

    train: IndexArray
    test: IndexArray
    pool: IndexArray


def calls(config: Config, seed: int) -> list[tuple[Any, ...]]:
    """Return the arguments of ``part``, by data set, repetition and method."""
    sizes = [config.train, config.test, config.additions]
    entries = [entry.model_dump_json() for entry in config.methods]
    return [
        (dataset, entry, repetition, seed, sizes)
        for dataset in config.datasets
        for repetition in range(config.repetitions)
        for entry in entries
    ]


def combine(config: Config, values: Sequence[Any]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return the scores of all repetitions, and one summary row per data set, method and number of additions.

    ``rmse`` and ``ll`` (D, M, R, A + 1), NaN from the first fit that failed; ``datasets`` (D,), ``labels`` and
    ``acquisitions`` (M,) their names; ``seconds`` (D, M, R), mean CPU time per fit; ``failures`` and
    ``tracebacks`` have one text per repetition that failed.
    """
    sizes = Sizes(config.train, config.test, config.additions)
    shape = (len(config.datasets), config.repetitions, len(config.methods))
    found = np.array(values, dtype=object).reshape(shape).swapaxes(1, 2)
    arrays: dict[str, Any] = {
        name: np.array([[[_padded(run[name], sizes) for run in runs] for runs in row] for row in found])
        for name in SCORES
    }
    arrays["seconds"] = np.array([[[run["seconds"] for run in runs] for runs in row] for row in found])
    arrays["datasets"] = np.array(config.datasets)
    arrays["labels"] = np.array([entry.name for entry in config.methods])
    arrays["acquisitions"] = np.array([entry.acquisition for entry in config.methods])
    arrays["failures"] = np.array(list(_failures(config, found)), dtype=str)
    arrays["tracebacks"] = np.array([run.get("traceback", "") for run in found.ravel() if run["failure"]], dtype=str)
    return arrays, _summary(config, arrays)


def estimates(config: Config) -> list[float | None]:
    """Return the rough seconds of each part, None for a method without an estimate."""
    largest, fits = config.train + config.additions, config.additions + 1
    found: list[float | None] = []
    for dataset in config.datasets:
        inputs = data.card(dataset).d
        seconds = [entry.seconds(largest, inputs) for entry in config.methods]
        found += [None if one is None else fits * one for one in seconds] * config.repetitions
    return found


def part(name: str, entry: str, repetition: int, seed: int, sizes: list[int]) -> dict[str, Any]:
    """Return the scores of one method on one repetition: ``rmse`` and ``ll``, one value per fit.

    The lists are shorter if a fit or a choice fails; ``failure`` has the reason, and ``traceback`` the place of an
    exception. ``seconds`` is the mean CPU time per fit, one that failed included.
    """
    learner, size = Learner.model_validate_json(entry), Sizes(*sizes)
    dataset = data.load_dataset(name)
    stream = np.random.default_rng([seed, zlib.crc32(dataset.name.encode()), repetition])
    division = divide(len(dataset.y), size, stream)
    seeds = [int(value) for value in stream.integers(0, 2**31, size.additions + 1)]
    found: dict[str, Any] = {"rmse": [], "ll": [], "failure": ""}
    started, fits = time.process_time(), itertools.count()
    try:
        learner.warm_up()
        started = time.process_time()
        for scores in _evaluations(learner, dataset.X, dataset.y, division, seeds, fits):
            for score in SCORES:
                found[score].append(scores[score])
    except UnsuitableAcquisitionError as error:
        found["failure"] = str(error)
        found["unsuitable"] = f"{learner.name} on {dataset.name}: {error}"
    except (Exception, SystemExit) as error:  # noqa: BLE001 a failed fit is a result
        failure = Failure.of(error)
        found |= {"failure": failure.reason, "traceback": failure.traceback}
    return found | {"seconds": (time.process_time() - started) / max(next(fits), 1)}


def lost(reason: str) -> dict[str, Any]:
    """Return the scores of a repetition whose process ended: none."""
    return {"rmse": [], "ll": [], "failure": reason, "seconds": math.nan}


def check(run: dict[str, Any]) -> None:
    """Raise UserError if the acquisition of a method does not suit its predictions, which no repetition changes."""
    if run.get("unsuitable"):
        raise UserError(f"{run['unsuitable']}; the experiment stops, because all repetitions of this entry would fail")


def divide(count: int, sizes: Sizes, rng: np.random.Generator) -> Division:
    """Return a random division of ``count`` data points."""
    order = rng.permutation(count)
    return Division(
        order[: sizes.train], order[sizes.train : sizes.train + sizes.test], order[sizes.train + sizes.test :]
    )


def _evaluations(
    learner: Learner, X: Array, y: Array, division: Division, seeds: list[int], fits: Iterator[int]
) -> Iterator[dict[str, float]]:
    """Yield the test scores of every fit, which ``fits`` counts. Only targets of training and test points are read."""
    train, pool = list(division.train), list(division.pool)
    for place, seed in enumerate(seeds):
        model = learner.build(seed)
        next(fits)
        with warnings.catch_warnings(
            action="ignore"
        ):  # with 20 points hardly any method meets its criterion of convergence
            model.fit(X[train], y[train])
        yield score_prediction(model.predict_dist(X[division.test]), y[division.test])
        if place + 1 < len(seeds):
            train.append(pool.pop(_choice(learner, model, X[pool])))


def _choice(learner: Learner, model: Any, pool: Array) -> int:
    """Return the place of the next point among the inputs (P, d) of the pool."""
    if learner.acquisition == "random":
        return 0  # the pool is in random order
    values = values_of(learner.acquisition, model.predict_dist(pool))
    if not np.all(np.isfinite(values)):
        raise ValueError(f"the {learner.acquisition.replace('_', ' ')} of a point of the pool is not finite")
    return int(np.argmax(values))


def _padded(values: list[float], sizes: Sizes) -> Array:
    """Return a list of scores with NaN for fits that do not exist."""
    padded = np.full(sizes.additions + 1, np.nan)
    padded[: len(values)] = values
    return padded


def _failures(config: Config, found: Array) -> Iterator[str]:
    for i, dataset in enumerate(config.datasets):
        for j, entry in enumerate(config.methods):
            for k, run in enumerate(found[i, j]):
                if run["failure"]:
                    yield f"{entry.name} on {dataset}, repetition {k}, fit {len(run['rmse'])}: {run['failure']}"


def _summary(config: Config, arrays: dict[str, Any]) -> list[dict[str, Any]]:
    """Return one row per data set, method and number of additions; standard errors have ddof 0."""
    rows = []
    for i, dataset in enumerate(config.datasets):
        for j, entry in enumerate(config.methods):
            complete = np.isfinite(arrays["rmse"][i, j]).all(axis=1)
            count = int(complete.sum())
            for a in range(config.additions + 1):
                row: dict[str, Any] = {"dataset": dataset, "method": entry.name, "additions": a}
                for score in SCORES:
                    values = arrays[score][i, j, complete, a]
                    empty = not count or np.isnan(values).any()
                    row[score] = "" if empty else round(float(values.mean()), 6)
                    row[f"{score}_stderr"] = "" if empty else round(float(values.std() / np.sqrt(count)), 6)
                seconds = round(float(arrays["seconds"][i, j].mean()), 4)
                rows.append(row | {"repetitions": count, "seconds": seconds})
    return rows
