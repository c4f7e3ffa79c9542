"""Posteriors between clusters of data: bands of the network's output along a line through a gap.

The training data are those of a gap split: one third of the sorted values of an input is left out. The line connects
the means of the training inputs on the two sides of the gap, and covers the range of that input. The variances of noise
and weights are known. The reference is sampled here, by chains of Hamiltonian Monte Carlo as in ``reference``.

A distribution of the output f is stored as the means of its quantile function over ``LEVELS`` intervals of equal
probability, from which bands, moments and Wasserstein distances follow.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import AfterValidator, Field, NonNegativeInt, PositiveInt

from ep_bench import data
from ep_bench.errors import Failure
from ep_bench.experiments.method_entries import Options, distinct_names
from ep_bench.experiments.posteriors import distances
from ep_bench.experiments.posteriors.fidelity.compute import Approximation, approximations, fitted
from ep_bench.experiments.posteriors.fidelity.pairs import FLOOR
from ep_bench.experiments.posteriors.reference import compute as reference
from ep_bench.experiments.posteriors.reference.compute import Posterior, SplitData
from ep_bench.methods.hmc.draws import by_input
from ep_bench.predictions import Predictive
from ep_bench.types import Array, SplitScheme

LEVELS = 40  # a divisor of ``distances.INTERVALS``; the band of 95 % is between the outermost of them
REFERENCE = "HMC"
MIDDLE: dict[str, Callable[[Array], Any]] = {"mean_error": np.mean, "std_ratio": np.median, "wasserstein_2": np.mean}


class Config(Options):
    """Options of the experiment."""

    posteriors: tuple[Posterior, ...] = Field(
        (Posterior.model_validate({"use": "hmc", "label": "relu", "dataset": "cubic", "noise_variance": 0.03,
                                   "prior_variance": 1.0}),),
        min_length=1,
        description="entries of hmc with a data set, noise_variance and prior_variance, as those of reference",
    )  # fmt: skip
    methods: Annotated[tuple[Approximation, ...], AfterValidator(distinct_names)] = Field(
        (Approximation.model_validate({"use": "pbp", "label": "PBP"}),),
        min_length=1,
        description="method entries as in fidelity, for the posteriors whose label is their network",
    )
    gap: NonNegativeInt = Field(
        0, description="input whose values have the gap; the public gap split where there is one"
    )
    points: PositiveInt = Field(61, ge=3, description="points of the line")
    chains: PositiveInt = Field(4, ge=2, description="independent chains per posterior")
    draws: PositiveInt = Field(2000, description="draws per posterior, evenly thinned")


class GapLine(NamedTuple):
    """Training data outside a gap, in original units, and a line through it."""

    X: Array  # (n, d)
    y: Array  # (n,)
    inputs: Array  # (G, d) points of the line
    places: Array  # (G,) their values of the input with the gap
    inside: NDArray[np.bool_]  # (G,) whether they are in the gap

    @property
    def standardised(self) -> SplitData:
        """Training data and line in standardised units."""
        return reference.standardised(self.X, self.y, self.inputs)


def gap_line(dataset: str, gap: int, points: int) -> GapLine:
    """Return the training data of a gap split, and the line."""
    loaded = data.load_dataset(dataset)
    split = data.make_split(SplitScheme("gap", files="public"), loaded, gap)
    X, left_out = loaded.X[split.train], loaded.X[split.test, gap]
    low, high = float(left_out.min()), float(left_out.max())
    above = X[:, gap] > 0.5 * (low + high)
    first, second = X[~above].mean(axis=0), X[above].mean(axis=0)
    places = np.linspace(X[:, gap].min(), X[:, gap].max(), points)
    along = (places - first[gap]) / (second[gap] - first[gap])
    inside = (places >= low) & (places <= high)
    return GapLine(X, loaded.y[split.train], first + along[:, None] * (second - first), places, inside)


def calls(config: Config, seed: int) -> list[tuple[Any, ...]]:
    """Return the arguments of ``part``: of each posterior the chains, then the methods."""
    kept = config.draws // config.chains
    return [
        (entry.model_dump_json(), one, config.gap, config.points, kept, seed)
        for entry in config.posteriors
        for one in [*range(config.chains), *(one.model_dump_json() for one in approximations(config.methods, entry))]
    ]


def part(entry: str, one: int | str, gap: int, points: int, kept: int, seed: int) -> dict[str, Any]:
    """Return a chain, if ``one`` is its number, or the quantile function of a method; or ``failure``."""
    posterior = Posterior.model_validate_json(entry)
    line = gap_line(posterior.dataset, gap, points)
    if isinstance(one, int):
        return reference.draw_chain(posterior, line.standardised, kept, (seed, gap, one))
    noise = posterior.variances[0] * line.standardised.scale**2
    try:
        fit = fitted(Approximation.model_validate_json(one), posterior, line.X, line.y, seed)
        levels = _levels(distances.without_noise(fit.model.predict_dist(line.inputs), noise))
    except (ArithmeticError, ValueError) as error:  # a fit that diverges is a result
        return {"failure": Failure.of(error).reason}
    return {**reference.encoded(levels), "seconds": fit.seconds}


def combine(config: Config, values: Sequence[Any]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return the bands, and one summary row per posterior and method; the first row of each compares halves of chains.

    Arrays have names ``<network>/<data set>/<name>``: ``places`` and ``inside`` (G,) of the line, ``labels`` (M,) of
    the chains and the methods, and their ``levels`` (M, LEVELS, G), NaN for a fit that failed.
    """
    arrays: dict[str, Any] = {}
    summary, found = [], iter(values)
    for entry in config.posteriors:
        line = gap_line(entry.dataset, config.gap, config.points)
        draws = np.array([reference.decoded(next(found)) for _ in range(config.chains)], dtype=np.float64)
        halves = [_levels(_mixture(half)) for half in np.array_split(draws, 2)]
        r_hat = float(by_input(draws)["r_hat"].max())
        exact, methods = _levels(_mixture(draws)), {one: next(found) for one in approximations(config.methods, entry)}
        first = {"network": entry.label, "dataset": entry.dataset}
        summary.append({**first, **_row(FLOOR, _apart(halves[0], halves[1], line.inside), r_hat=round(r_hat, 4))})
        levels = [exact]
        for method, value in methods.items():
            ok = "failure" not in value
            levels.append(reference.decoded(value) if ok else np.full_like(exact, np.nan))
            known = {name: value.get(name, "") for name in ("seconds", "failure")}
            apart = _apart(levels[-1], exact, line.inside) if ok else {}
            summary.append({**first, **_row(method.label or method.use, apart, same=method.knows_variances, **known)})
        prefix = f"{entry.label}/{entry.dataset}/"
        labels = np.array([REFERENCE, *(one.label or one.use for one in methods)], dtype=str)
        arrays |= {f"{prefix}places": line.places, f"{prefix}inside": line.inside, f"{prefix}labels": labels,
                   f"{prefix}levels": np.array(levels, dtype=np.float32)}  # fmt: skip
    return arrays, summary


def _mixture(draws: Array) -> Predictive:
    """Return the distribution of draws (chains, S, G) at each input."""
    return Predictive.equal_mixture(draws.reshape(-1, draws.shape[2]), 0.0)


def _levels(function: Predictive) -> Array:
    """Return the means (LEVELS, G) of the quantile functions over intervals of equal probability."""
    fine = distances.interval_means(function)
    return np.asarray(fine.reshape(LEVELS, -1, fine.shape[1]).mean(axis=1))


def _apart(levels: Array, exact: Array, inside: NDArray[np.bool_]) -> dict[str, float]:
    """Return the distances of a method from the reference, in and outside the gap; levels are (LEVELS, G)."""
    unit = exact.std(axis=0)
    columns = {
        "mean_error": np.abs(levels.mean(axis=0) - exact.mean(axis=0)) / unit,
        "std_ratio": levels.std(axis=0) / unit,
        "wasserstein_2": np.sqrt(((levels - exact) ** 2).mean(axis=0)) / unit,
    }
    regions = {"gap": inside, "outside": ~inside}
    return {
        f"{name}_{region}": float(f"{float(MIDDLE[name](values[rows])):.5g}")
        for name, values in columns.items()
        for region, rows in regions.items()
    }


def _row(
    label: str, apart: dict[str, float], *, same: bool = True, seconds: Any = "", failure: str = "", r_hat: Any = ""
) -> dict[str, Any]:
    names = [f"{name}_{region}" for name in MIDDLE for region in ("gap", "outside")]
    return {
        "method": label, "same_posterior": str(same).lower(), **{name: apart.get(name, "") for name in names},
        "seconds": round(seconds, 3) if seconds else "", "r_hat": r_hat, "failure": failure,
    }  # fmt: skip
