"""Data points with the same inputs, merged into one: exact for Gaussian noise of equal variance.

c_g     number of data points of group g, all with the same inputs
ybar_g  mean of their targets
s       sum over all groups of the squared differences between targets and their group's mean

The likelihood of a group depends on the targets through c_g, ybar_g and s only. With f_g the function at its inputs,

    prod_i N(y_i | f_g, sigma^2) = N(ybar_g | f_g, sigma^2 / c_g) exp(r_g),

and the sum of r_g over all G groups of N data points is

    r = -(N - G) / 2 log(2 pi sigma^2) - sum_g log(c_g) / 2 - s / (2 sigma^2).

If s is 0 and N > G, r grows without bound as sigma falls to 0, and with it the evidence.
"""

from __future__ import annotations

import math
import warnings
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ep_bench.types import Array

Duplicates = Literal["keep", "merge"]
EQUAL = 1e-12  # largest s, divided by the sum of squared differences between targets and their mean, that counts as 0
ROUNDING = 1e-15  # relative rounding error of a target


class Replicates(NamedTuple):
    """What merged data points keep of the original ones, apart from the means of their targets."""

    counts: Array  # (G,) c_g, all 1 if nothing is merged
    squares: float  # s

    @classmethod
    def none(cls, n: int) -> Replicates:
        """Return the value for n data points that are not merged."""
        return cls(np.ones(n), 0.0)

    def part(self, some: NDArray[np.intp]) -> Replicates:
        """Return the value for some of the groups; s is divided in proportion to the number of merged data points."""
        found = Replicates(self.counts[some], 0.0)
        return found._replace(squares=self.squares * found.merged / self.merged) if found.merged else found

    @property
    def data_points(self) -> float:
        """Number of data points, N."""
        return float(self.counts.sum())

    @property
    def merged(self) -> float:
        """Number of data points less the number of groups, N - G."""
        return self.data_points - len(self.counts)

    def log_density(self, log_noise: float) -> tuple[float, float]:
        """Return r (nats) at the logarithm of sigma^2, and its derivative by this logarithm."""
        if self.merged == 0.0:
            return 0.0, 0.0
        scaled = 0.5 * self.squares * math.exp(-log_noise)
        constant = self.merged * math.log(2.0 * math.pi) + float(np.log(self.counts).sum())
        return -0.5 * (constant + self.merged * log_noise) - scaled, -0.5 * self.merged + scaled


def groups(X: Array) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the index of the first data point of each group (G,), in order, and the group of each point (N,)."""
    _, first, group = np.unique(X, axis=0, return_index=True, return_inverse=True)
    order = np.argsort(first)
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    return first[order], rank[group.reshape(-1)]


def merge(X: Array, y: Array) -> tuple[Array, Array, Replicates]:
    """Return the distinct inputs (G, d) of X (N, d), the means (G,) of the targets y (N,), and the rest of the data."""
    first, group = groups(X)
    counts = np.bincount(group).astype(np.float64)
    means = np.bincount(group, y) / counts
    return np.ascontiguousarray(X[first]), means, Replicates(counts, float(((y - means[group]) ** 2).sum()))


def warn_of_repeats(X: Array) -> None:
    """Warn with UserWarning if inputs X (N, d) repeat, so that merging them gives the same evidence in less time."""
    if repeated := len(X) - len(groups(X)[0]):
        warnings.warn(
            f"{repeated} of {len(X)} data points repeat the inputs of another one; duplicates: merge has the same "
            "evidence with smaller matrices",
            UserWarning,
            stacklevel=3,
        )


def unbounded_evidence(X: Array, y: Array) -> str:
    """Return a message if repeated inputs X (N, d) always have equal targets y (N,), else ''."""
    distinct, _, replicates = merge(X, y)
    if len(distinct) == len(X):
        return ""
    if replicates.squares > EQUAL * float(((y - y.mean()) ** 2).sum()) + ROUNDING**2 * float(y @ y):
        return ""
    return (
        f"{len(X) - len(distinct)} of {len(X)} data points repeat the inputs and the target of another one: "
        "the evidence grows without bound as the noise falls to 0"
    )
