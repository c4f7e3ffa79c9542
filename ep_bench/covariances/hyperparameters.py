"""The hyperparameters of a Gaussian process: their weak priors, starting points, limits, and those that are given.

All are positive, and stand as natural logarithms in one vector (P,): those of the covariance, then what the likelihood
adds. Under the priors the logarithms are independent Gaussians, in the units that the method sees (standardised ones as
a rule), d the number of inputs:

                     median      deviation of the logarithm
    lengthscale      sqrt(d)     2
    weight_variance  1 / d       3
    magnitude        1           3
    bias_variance    1           3
    noise_variance   0.1         3
    scale            0.3         1.5
    nu               4           1

Ours: the medians are where d standardised inputs give covariances of size 1 that fall by 1 / e within the data; ten
times a median costs 0.3 to 0.7 nats, a thousand times 2.7 to 6. The limits bound the search alone.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import groupby
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ep_bench.types import Array

Given = Mapping[str, float | tuple[float, ...] | None]


class LogNormalPrior(NamedTuple):
    """A log-normal law with the median ``median * d**power``."""

    median: float
    power: float
    deviation: float  # of the logarithm


PRIORS = {
    "lengthscale": LogNormalPrior(1.0, 0.5, 2.0),
    "weight_variance": LogNormalPrior(1.0, -1.0, 3.0),
    "magnitude": LogNormalPrior(1.0, 0.0, 3.0),
    "bias_variance": LogNormalPrior(1.0, 0.0, 3.0),
    "noise_variance": LogNormalPrior(0.1, 0.0, 3.0),
    "scale": LogNormalPrior(0.3, 0.0, 1.5),
    "nu": LogNormalPrior(4.0, 0.0, 1.0),
}
LIMITS = {"lengthscale": (1e-4, 1e5), "scale": (1e-4, 1e4), "nu": (1.0, 1e3)}
VARIANCE_LIMITS = (1e-8, 1e8)
SPREAD = 1.0  # of the logarithms of random starting points around the medians


@dataclass(frozen=True, eq=False)
class Hyperparameters:
    """The vector's entries. ``given`` holds the logarithms of those that are not learned, NaN elsewhere."""

    names: tuple[str, ...]
    median: Array  # (P,) of the logarithms
    deviation: Array  # (P,) of the logarithms, infinite for a flat prior
    low: Array  # (P,) limits of the search
    high: Array
    given: Array  # (P,)

    @classmethod
    def of(cls, names: tuple[str, ...], d: int, given: Given, *, flat: bool = False) -> Hyperparameters:
        """Return the entries of these names, of a model with d inputs; ``flat`` makes the logarithms' priors flat.

        ``given`` has by the last part of a name one value for all such entries, or one an input, or None.
        Raises ValueError for another number of values.
        """
        roles = [role(name) for name in names]
        priors = [PRIORS[one] for one in roles]
        limits = np.log([LIMITS.get(one, VARIANCE_LIMITS) for one in roles])
        median = np.array([math.log(prior.median) + prior.power * math.log(d) for prior in priors])
        deviation = np.array([math.inf if flat else prior.deviation for prior in priors])
        return cls(names, median, deviation, limits[:, 0], limits[:, 1], _fixed_values(names, given))

    @property
    def free(self) -> NDArray[np.bool_]:
        """Which entries are learned (P,)."""
        return np.isnan(self.given)

    def holding(self, name: str, value: float) -> Hyperparameters:
        """Return the same with one value given to all entries of a name."""
        return replace(self, given=np.where([one == name for one in self.names], math.log(value), self.given))

    def start(self) -> Array:
        """Return the medians, and what is given (P,)."""
        return np.where(self.free, self.median, self.given)

    def random_start(self, rng: np.random.Generator) -> Array:
        """Return a point drawn around the medians, and what is given (P,)."""
        return np.where(self.free, self.median + SPREAD * rng.standard_normal(len(self.names)), self.given)

    def log_prior(self, theta: Array) -> tuple[float, Array]:
        """Return the log density of the learned logarithms, nats, 0 under flat priors, and its gradient (P,)."""
        if np.isinf(self.deviation).any():
            return 0.0, np.zeros(len(theta))
        z = np.where(self.free, (theta - self.median) / self.deviation, 0.0)
        constant = np.log(self.deviation[self.free]).sum() + 0.5 * self.free.sum() * math.log(2.0 * math.pi)
        return float(-0.5 * z @ z - constant), -z / self.deviation

    def stopped(self, theta: Array) -> str:
        """Return which learned magnitude or size of the noise (P,) stands at a limit of the search, or ''.

        A lengthscale or weight variance may well run there: an input without relevance has no finite optimum.
        """
        for at in np.flatnonzero(self.free & ((theta <= self.low) | (theta >= self.high))):
            if role(self.names[at]) in {"magnitude", "noise_variance", "scale"}:
                end = "0" if theta[at] <= self.low[at] else "infinity"
                return f"{self.names[at]} runs to {end}, stopped at {math.exp(theta[at]):.3g}"
        return ""

    def values(self, theta: Array) -> dict[str, float | Array]:
        """Return the hyperparameters by name, an array where one stands for each input."""
        found: dict[str, float | Array] = {}
        for name, places in _groups(self.names):
            values = np.exp(theta[places])
            found[name] = float(values[0]) if len(places) == 1 else values
        return found

    def words(self, theta: Array) -> str:
        """Return the hyperparameters as a line of text."""
        shown = ((name, np.atleast_1d(value)) for name, value in self.values(theta).items())
        return ", ".join(f"{name} {' '.join(f'{value:.4g}' for value in values)}" for name, values in shown)


def role(name: str) -> str:
    """Return what a parameter is, without the number of its part."""
    return name.rpartition(".")[2]


def _groups(names: tuple[str, ...]) -> list[tuple[str, list[int]]]:
    """Return each name with its places, which follow each other."""
    return [(name, [at for at, _ in run]) for name, run in groupby(enumerate(names), key=lambda pair: pair[1])]


def _fixed_values(names: tuple[str, ...], given: Given) -> Array:
    logs = np.full(len(names), np.nan)
    for name, places in _groups(names):
        values = given.get(role(name))
        if values is None:
            continue
        if isinstance(values, tuple) and len(values) != len(places):
            takes = f"{len(places)}, or one number, not in a list, for all"
            raise ValueError(f"{role(name)} has {len(values)} values, the covariance takes {takes}")
        logs[places] = np.log(values)
    return logs
