"""Reference posteriors: long chains of Hamiltonian Monte Carlo on networks whose variances are known.

The variances of noise and weights are fixed at stated values, so that all methods can approximate the same posterior.
Stored are thinned draws of the network's output f at the test inputs, without noise, in the unit of the target, rounded
to a small fraction of the posterior's standard deviation. A part of the computation is one chain, so that an
interrupted run continues with the chains that are missing.

Convergence is judged at all test inputs, of more draws than are stored. The two halves of the stored chains give the
distance that a comparison with the reference cannot resolve.
"""

from __future__ import annotations

import base64
import time
import zlib
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from pydantic import Field, NonNegativeInt, PositiveInt, model_validator

from ep_bench import data
from ep_bench.estimator import standardisation
from ep_bench.experiments.dataset_entries import SetName
from ep_bench.experiments.method_entries import ExperimentMethod, Options
from ep_bench.experiments.posteriors import distances
from ep_bench.methods import hmc
from ep_bench.methods.hmc.draws import by_input, draw_outputs
from ep_bench.predictions import Predictive
from ep_bench.results.references import rounded
from ep_bench.types import Array, Rows

GRADES = ((1.01, "1.01"), (1.05, "1.05"), (np.inf, "not converged"))


class Posterior(ExperimentMethod):
    """A network with known variances on a data set: an entry of ``hmc``, whose label is the name of the network."""

    dataset: SetName

    @model_validator(mode="after")
    def _known_variances(self) -> Posterior:
        if self.use != "hmc":
            raise ValueError("a reference posterior takes the method hmc")
        if self.config.noise_variance is None or self.config.prior_variance is None:
            raise ValueError("a reference posterior needs noise_variance and prior_variance")
        return self

    @property
    def config(self) -> hmc.Config:
        """The options of the sampler; ``chains`` and ``stored`` are not used."""
        return hmc.Config(**(self.model_extra or {}))

    @property
    def variances(self) -> tuple[float, float]:
        """The known variances of noise and weights, for standardised inputs and target."""
        return float(self.config.noise_variance or 0.0), float(self.config.prior_variance or 0.0)


class Config(Options):
    """Options of the experiment."""

    posteriors: tuple[Posterior, ...] = Field(
        (Posterior.model_validate({"use": "hmc", "label": "relu", "dataset": "boston", "noise_variance": 0.041,
                                   "prior_variance": 0.18}),),
        min_length=1,
        description="entries of hmc with a data set, noise_variance and prior_variance (standardised target); the "
        "label names the network",
    )  # fmt: skip
    splits: tuple[NonNegativeInt, ...] = Field((0,), min_length=1, description="standard splits")
    chains: PositiveInt = Field(4, ge=2, description="independent chains per posterior")
    draws: PositiveInt = Field(2000, description="draws per posterior, evenly thinned, of which R-hat is computed")
    stored: PositiveInt = Field(1000, description="draws of these that are stored, evenly thinned")


class SplitData(NamedTuple):
    """Standardised training data, standardised test inputs, and what the target was standardised with."""

    train: Rows
    inputs: Array  # (N, d)
    shift: float
    scale: float


def split_data(dataset: str, split: int) -> SplitData:
    """Return the data of a standard split."""
    found = data.load_dataset(dataset)
    train, test = data.standard_split(len(found.y), split)
    return standardised(found.X[train], found.y[train], found.X[test])


def standardised(X: Array, y: Array, inputs: Array) -> SplitData:
    """Return training data X (n, d), y (n,) and further inputs (N, d) in standardised units."""
    by_column, target = standardisation(X, y)
    rows = Rows(by_column.apply(X), target.apply(y[:, None])[:, 0])
    return SplitData(rows, by_column.apply(inputs), float(target.shift[0]), float(target.scale[0]))


def calls(config: Config, seed: int) -> list[tuple[Any, ...]]:
    """Return the arguments of ``part``, by posterior, split and chain."""
    kept = config.draws // config.chains
    return [
        (entry.model_dump_json(), split, chain, kept, seed)
        for entry in config.posteriors
        for split in config.splits
        for chain in range(config.chains)
    ]


def estimates(config: Config) -> list[float | None]:
    """Return the rough seconds of each part."""
    found: list[float | None] = []
    for entry in config.posteriors:
        card = data.card(entry.dataset)
        seconds = hmc.METHOD.seconds(entry.config.model_copy(update={"chains": 1}), card.n, card.d)  # type: ignore[misc]
        found += [seconds] * (len(config.splits) * config.chains)
    return found


def part(entry: str, split: int, chain: int, kept: int, seed: int) -> dict[str, Any]:
    """Return one chain: ``draws`` (kept, N) of f in the unit of the target, as text, and its counts."""
    posterior = Posterior.model_validate_json(entry)
    return draw_chain(posterior, split_data(posterior.dataset, split), kept, (seed, split, chain))


def draw_chain(posterior: Posterior, known: SplitData, kept: int, place: tuple[int, int, int]) -> dict[str, Any]:
    """Return one chain; its random numbers depend on ``place`` (seed, split, chain), data set and network."""
    seed, *rest = place
    rng = np.random.default_rng([seed, zlib.crc32(f"{posterior.dataset} {posterior.label}".encode()), *rest])
    started = time.process_time()
    predictions, counts = draw_outputs(known.train, posterior.config, known.inputs, kept, rng)
    draws = known.shift + known.scale * predictions
    return {**encoded(draws), "cpu_seconds": time.process_time() - started, **counts}


def encoded(draws: Array) -> dict[str, Any]:
    """Return values (S, N) as text, in single precision."""
    return {"draws": base64.b64encode(draws.astype("<f4").tobytes()).decode("ascii"), "inputs": draws.shape[1]}


def combine(config: Config, values: Sequence[Any]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return the draws of all posteriors, and one summary row per posterior and split.

    Arrays have names ``<network>/<data set>/<split>/<name>``: those of ``rounded`` for the stored draws, and ``r_hat``,
    ``ess_bulk`` and ``ess_tail`` (N,) of all draws; ``variances`` (2,) of noise and weights, standardised;
    ``noise_deviation`` in the unit of the target.
    """
    arrays: dict[str, Any] = {}
    summary = []
    places = [(entry, split) for entry in config.posteriors for split in config.splits]
    for place, (entry, split) in enumerate(places):
        parts = values[place * config.chains : (place + 1) * config.chains]
        draws = np.array([decoded(one) for one in parts], dtype=np.float64)
        measures, stored = by_input(draws), draws[:, :: -(-config.draws // config.stored)]
        noise = split_data(entry.dataset, split).scale * entry.variances[0] ** 0.5
        prefix = f"{entry.label}/{entry.dataset}/{split}/"
        about = {"variances": np.array(entry.variances), "noise_deviation": np.array(noise)}
        arrays |= {f"{prefix}{name}": value for name, value in (rounded(stored) | measures | about).items()}
        summary.append(_row(entry, split, stored, measures, parts))
    return arrays, summary


def floor(draws: Array, noise_variance: float, partners: Any) -> dict[str, Array]:
    """Return the distances (N,) of the first half of the chains from the second; ``draws`` (chains, draws, N)."""
    first, second = (half.reshape(-1, draws.shape[2]) for half in np.array_split(draws, 2))
    return distances.compare(Predictive.equal_mixture(first, noise_variance), second, noise_variance, partners)


def decoded(value: Mapping[str, Any]) -> Any:
    """Return the values (S, N) of ``encoded``."""
    return np.frombuffer(base64.b64decode(value["draws"]), dtype="<f4").reshape(-1, value["inputs"])


def _row(
    entry: Posterior, split: int, draws: Array, measures: dict[str, Array], parts: Sequence[Any]
) -> dict[str, Any]:
    """Return a row of the summary."""
    worst, (noise, prior) = float(measures["r_hat"].max()), entry.variances
    halves = (half.reshape(-1, draws.shape[2]) for half in np.array_split(draws, 2))
    first, second = (Predictive.equal_mixture(half, 0.0) for half in halves)
    gap = (distances.interval_means(first) - distances.interval_means(second)) / second.std()
    return {
        "network": entry.label, "dataset": entry.dataset, "split": split,
        "noise_variance": noise, "prior_variance": prior,
        "inputs": draws.shape[2], "draws": draws.shape[0] * draws.shape[1],
        "grade": next(name for limit, name in GRADES if worst <= limit),
        "r_hat": round(worst, 4), "r_hat_median": round(float(np.median(measures["r_hat"])), 4),
        **{name: round(float(measures[name].min()), 1) for name in ("ess_bulk", "ess_tail")},
        "floor": round(float(np.sqrt((gap**2).mean(axis=0)).mean()), 4),
        "acceptance": round(float(np.mean([one["acceptance"] for one in parts])), 3),
        "divergences": sum(int(one["divergences"]) for one in parts),
        "gradients": round(sum(one["gradients"] for one in parts) / 1e6, 3),
        "cpu_seconds": round(sum(one["cpu_seconds"] for one in parts), 1),
    }  # fmt: skip
