"""The hyperparameters of a Gaussian process: weak priors, starting points, limits, and fixed values.

All are positive. Their natural logarithms form one vector (P,): first those of the covariance, then those of the
likelihood. Under the priors the logarithms are independent Gaussians. Units are those of the training data, usually
standardised. d is the number of inputs:

                     median      standard deviation of the logarithm
    lengthscale      sqrt(d)     2
    weight_variance  1 / d       3
    magnitude        1           3
    bias_variance    1           3
    noise_variance   0.1         3
    scale            0.3         1.5
    nu               4           1

The priors are ours. At the medians, covariances of d standardised inputs have size 1 and fall by 1 / e within the data.
With a standard deviation of 3, ten times a median costs 0.3 nats and a thousand times 2.7; with one of 1, 2.7 and 24.
Searches stay within limits. They do not change the priors, except in ``gp_t`` with ``inference: mcmc``, which truncates
the priors at the limits.
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

FixedValues = Mapping[str, float | tuple[float, ...] | None]


class LogNormalPrior(NamedTuple):
    """A log-normal distribution with the median ``median * d**power``."""

    median: float
    power: float
    std: float  # of the logarithm


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
SPREAD = 1.0  # standard deviation of the logarithms of random starting points around the medians


@dataclass(frozen=True, eq=False)
class Hyperparameters:
    """Names, priors, limits and fixed values of the vector's entries."""

    names: tuple[str, ...]
    median: Array  # (P,) of the logarithms
    std: Array  # (P,) standard deviations of the logarithms, infinite for a flat prior
    low: Array  # (P,) limits of the search, logarithms
    high: Array  # (P,)
    fixed: Array  # (P,) logarithms of entries that are not learned, NaN elsewhere
    origin: Array  # (P,) logarithms at which the first search starts
    spread: Array  # (P,) standard deviations of random starting points around the origin

    @classmethod
    def of(cls, names: tuple[str, ...], d: int, fixed: FixedValues, *, flat: bool = False) -> Hyperparameters:
        """Return the entries with these names of a model with d inputs; ``flat`` makes the priors of logarithms flat.

        ``fixed`` maps the last part of a name to one value for all its entries, one value per entry, or None (learned).
        Raises ValueError for another number of values.
        """
        roles = [role(name) for name in names]
        priors = [PRIORS[one] for one in roles]
        limits = np.log([LIMITS.get(one, VARIANCE_LIMITS) for one in roles])
        median = np.array([math.log(prior.median) + prior.power * math.log(d) for prior in priors])
        std = np.array([math.inf if flat else prior.std for prior in priors])
        spread = np.full(len(names), SPREAD)
        return cls(names, median, std, limits[:, 0], limits[:, 1], _fixed_logarithms(names, fixed), median, spread)

    @property
    def free(self) -> NDArray[np.bool_]:
        """Which entries are learned (P,)."""
        return np.isnan(self.fixed)

    def fixing(self, name: str, value: float) -> Hyperparameters:
        """Return the same hyperparameters with all entries of a name fixed at one value."""
        return replace(self, fixed=np.where([one == name for one in self.names], math.log(value), self.fixed))

    def with_minimum(self, name: str, value: float) -> Hyperparameters:
        """Return the same hyperparameters with a lower limit of the search for all entries of a name."""
        named = np.array([role(one) == name for one in self.names])
        return replace(self, low=np.where(named, math.log(value), self.low))

    def with_maximum(self, name: str, value: float) -> Hyperparameters:
        """Return the same hyperparameters with an upper limit of the search for all entries of a name."""
        named = np.array([role(one) == name for one in self.names])
        return replace(self, high=np.where(named, math.log(value), self.high))

    def starting_at(self, name: str, value: float, varied: str) -> Hyperparameters:
        """Return the same hyperparameters with a name's first value, and random starting points of ``varied`` only."""
        roles = np.array([role(one) for one in self.names])
        origin = np.where(roles == name, math.log(value), self.origin)
        return replace(self, origin=origin, spread=np.where(roles == varied, SPREAD, 0.0))

    def start(self) -> Array:
        """Return logarithms (P,): the origin, by default the medians, and the fixed values."""
        return np.where(self.free, self.origin, self.fixed)

    def random_start(self, rng: np.random.Generator) -> Array:
        """Return logarithms (P,): random values around the origin, and the fixed values."""
        return np.where(self.free, self.origin + self.spread * rng.standard_normal(len(self.names)), self.fixed)

    def log_prior(self, theta: Array) -> tuple[float, Array]:
        """Return the log density (nats) of the learned logarithms, 0 under flat priors, and its gradient (P,)."""
        if np.isinf(self.std).any():
            return 0.0, np.zeros(len(theta))
        z = np.where(self.free, (theta - self.median) / self.std, 0.0)
        constant = np.log(self.std[self.free]).sum() + 0.5 * self.free.sum() * math.log(2.0 * math.pi)
        return float(-0.5 * z @ z - constant), -z / self.std

    def stopped(self, theta: Array) -> str:
        """Return a message if a learned magnitude or noise scale in theta (P,) is at a limit of the search, else ''.

        Lengthscales and weight variances are not checked: those of an irrelevant input have no finite optimum. Nor are
        limits that ``with_minimum`` has set.
        """
        low = np.log([LIMITS.get(role(one), VARIANCE_LIMITS)[0] for one in self.names])
        for at in np.flatnonzero(self.free & ((theta <= low) | (theta >= self.high))):
            if role(self.names[at]) in {"magnitude", "noise_variance", "scale"}:
                end = "0" if theta[at] <= low[at] else "infinity"
                return f"{self.names[at]} runs to {end}, stopped at {math.exp(theta[at]):.3g}"
        return ""

    def values(self, theta: Array) -> dict[str, float | Array]:
        """Return the hyperparameters by name; a name with several entries has an array."""
        found: dict[str, float | Array] = {}
        for name, places in _groups(self.names):
            values = np.exp(theta[places])
            found[name] = float(values[0]) if len(places) == 1 else values
        return found

    def words(self, theta: Array) -> str:
        """Return the hyperparameters as text, for messages."""
        shown = ((name, np.atleast_1d(value)) for name, value in self.values(theta).items())
        return ", ".join(f"{name} {' '.join(f'{value:.4g}' for value in values)}" for name, values in shown)


def role(name: str) -> str:
    """Return the name of a parameter without the number of its part: ``lengthscale`` for ``2.lengthscale``."""
    return name.rpartition(".")[2]


def _groups(names: tuple[str, ...]) -> list[tuple[str, list[int]]]:
    """Return each name with the indices of its entries, which are adjacent."""
    return [(name, [at for at, _ in run]) for name, run in groupby(enumerate(names), key=lambda pair: pair[1])]


def _fixed_logarithms(names: tuple[str, ...], fixed: FixedValues) -> Array:
    logs = np.full(len(names), np.nan)
    for name, places in _groups(names):
        values = fixed.get(role(name))
        if values is None:
            continue
        if isinstance(values, tuple) and len(values) != len(places):
            takes = f"{len(places)} in a list, or one number for all"
            raise ValueError(f"{role(name)} has {len(values)} values, the covariance takes {takes}")
        logs[places] = np.log(values)
    return logs
