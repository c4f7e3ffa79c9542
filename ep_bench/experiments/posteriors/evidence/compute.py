"""Log evidence of networks with known variances: by approximate inference, and by annealed importance sampling.

EP and Laplace's approximation have their own estimates. Approximations by variational inference have the variational
lower bound (ELBO), with the expected log-likelihood over draws from the approximation. All are for the standardised
target, on the training data of a standard split.
"""

from __future__ import annotations

import time
import zlib
from collections.abc import Sequence
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import AfterValidator, Field, NonNegativeInt, PositiveInt
from scipy.special import gammaln

from ep_bench import data
from ep_bench.errors import Failure
from ep_bench.experiments.method_entries import Options, distinct_names
from ep_bench.experiments.posteriors.evidence import BACK, THERE
from ep_bench.experiments.posteriors.fidelity.compute import Approximation, approximations, fitted
from ep_bench.experiments.posteriors.reference.compute import Posterior, split_data
from ep_bench.methods.hmc import annealing, model_of


class Estimate(Approximation):
    """An entry of a method that estimates the log evidence, or whose approximation has a variational bound."""

    use: Literal["ep_nn", "laplace", "vi", "vi_graves"]


class Config(Options):
    """Options of the experiment."""

    posteriors: tuple[Posterior, ...] = Field(
        (Posterior.model_validate({"use": "hmc", "label": "relu", "dataset": "boston", "noise_variance": 0.041,
                                   "prior_variance": 0.18, "steps": 20}),),
        min_length=1,
        description="entries of hmc with a data set, noise_variance and prior_variance, as those of reference; of the "
        "sampler's options, steps and target_acceptance are used",
    )  # fmt: skip
    methods: Annotated[tuple[Estimate, ...], AfterValidator(distinct_names)] = Field(
        (Estimate.model_validate({"use": "laplace", "label": "LA, full"}),),
        min_length=1,
        description="method entries as in fidelity, for the posteriors of their network",
    )
    split: NonNegativeInt = Field(0, description="standard split")
    temperatures: PositiveInt = Field(20_000, ge=100, description="steps from the prior to the posterior")
    chains: PositiveInt = Field(4, description="independent repetitions, each with its own step sizes")
    runs: PositiveInt = Field(2, description="runs per repetition, there and back; at least two in all")


def calls(config: Config, seed: int) -> list[tuple[Any, ...]]:
    """Return the arguments of ``part``: of each posterior the repetitions of annealing, then the methods."""
    sizes = (config.temperatures, config.runs)
    return [
        (entry.model_dump_json(), one, config.split, sizes, seed)
        for entry in config.posteriors
        for one in [*range(config.chains), *(one.model_dump_json() for one in approximations(config.methods, entry))]
    ]


def part(entry: str, one: int | str, split: int, sizes: Sequence[int], seed: int) -> dict[str, Any]:
    """Return the log ratios of a repetition, if ``one`` is its number, or the evidence by a method; or ``failure``."""
    posterior = Posterior.model_validate_json(entry)
    if isinstance(one, str):
        return _by_method(posterior, Estimate.model_validate_json(one), split, seed)
    model, options = model_of(split_data(posterior.dataset, split).train, posterior.config), posterior.config
    rng = np.random.default_rng([seed, zlib.crc32(f"{posterior.dataset} {posterior.label}".encode()), split, one])
    started = time.process_time()
    path = annealing.adapted(model, sizes[0], options.steps, options.target_acceptance, rng)
    there, back = zip(*(annealing.log_ratios(model, path, rng) for _ in range(sizes[1])), strict=True)
    return {"there": there, "back": back, "seconds": time.process_time() - started}


def combine(config: Config, values: Sequence[Any]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return the log ratios of the runs, and one summary row per posterior and estimate.

    Arrays ``<network>/<data set>/there`` and ``back`` (R,) are the log ratios of all runs.
    """
    arrays: dict[str, Any] = {}
    summary, found = [], iter(values)
    for entry in config.posteriors:
        repeated = [next(found) for _ in range(config.chains)]
        ratios = {name: np.concatenate([one[name] for one in repeated]) for name in ("there", "back")}
        arrays |= {f"{entry.label}/{entry.dataset}/{name}": logs for name, logs in ratios.items()}
        (there, error), (back, back_error) = (annealing.log_mean(ratios[name]) for name in ("there", "back"))
        seconds = sum(one["seconds"] for one in repeated)
        first = {"log_evidence": there, "stderr": error, "seconds": seconds}
        rows = {THERE: first, BACK: {"log_evidence": -back, "stderr": back_error}}
        rows |= {method.label or method.use: next(found) for method in approximations(config.methods, entry)}
        summary += [_row(entry, label, value, there) for label, value in rows.items()]
    return arrays, summary


def _by_method(posterior: Posterior, method: Estimate, split: int, seed: int) -> dict[str, Any]:
    loaded = data.load_dataset(posterior.dataset)
    train, _ = data.standard_split(len(loaded.y), split)
    try:
        fit = fitted(method, posterior, loaded.X[train], loaded.y[train], seed)
    except (ArithmeticError, ValueError) as error:  # a fit that diverges is a result
        return {"failure": Failure.of(error).reason}
    state, known = fit.model.state_, {"seconds": fit.seconds}
    if hasattr(state, "log_evidence"):
        return {**known, "log_evidence": float(state.log_evidence), "estimate": method.use.replace("_nn", "").upper()}
    model = model_of(split_data(posterior.dataset, split).train, posterior.config)
    value, stderr = annealing.bound(model, state.mean, getattr(state, "factor", state.std), np.random.default_rng(0))
    return {**known, "log_evidence": value, "stderr": stderr, "estimate": "ELBO"}


def _row(entry: Posterior, label: str, value: dict[str, Any], exact: float) -> dict[str, Any]:
    units, odd = int(entry.config.hidden[0]), entry.config.activation != "relu"
    numbers = {name: round(value[name], 3) if name in value else "" for name in ("log_evidence", "stderr", "seconds")}
    known = "log_evidence" in value
    return {
        "network": entry.label, "dataset": entry.dataset, "method": label, "estimate": value.get("estimate", ""),
        "log_evidence": numbers["log_evidence"], "stderr": numbers["stderr"],
        "difference": round(value["log_evidence"] - exact, 3) if known else "",
        "log_copies": round(float(gammaln(units + 1)) + odd * units * np.log(2.0), 3),
        "seconds": numbers["seconds"], "failure": value.get("failure", ""),
    }  # fmt: skip
